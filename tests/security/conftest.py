"""The desk of those who work with marked secrets: a seeded house that nobody has touched, and the environment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from msauto.simulator import Simulator, seeded_house
from tests.cli.command_line import Desk
from tests.security.marked import ENV


@pytest.fixture(scope="session")
def _one_house() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


@pytest.fixture
def sim(_one_house: Simulator) -> Simulator:
    _one_house.house = seeded_house()
    _one_house.faults.clear()
    _one_house.clear_log()
    return _one_house


@pytest.fixture
def desk(sim: Simulator, tmp_path: Path) -> Desk:
    return Desk(tmp_path, sim.url, dict(ENV))
