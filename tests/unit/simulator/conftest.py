"""One simulator for each test: it starts in milliseconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from msauto.plugins.simulator.embedded import Simulator
from tests.unit.simulator.asking import Asker


@pytest.fixture
def sim() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


@pytest.fixture
def ask(sim: Simulator) -> Asker:
    return Asker(sim)
