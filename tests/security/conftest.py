"""The desk of those who work with marked secrets: the unchanged sample state, and the environment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from msauto.plugins.simulator.embedded import Simulator, sample_state
from tests.cli.command_line import Desk
from tests.security.marked import ENV


@pytest.fixture(scope="session")
def _shared_simulator() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


@pytest.fixture
def sim(_shared_simulator: Simulator) -> Simulator:
    _shared_simulator.state = sample_state()
    _shared_simulator.faults.clear()
    _shared_simulator.clear_log()
    return _shared_simulator


@pytest.fixture
def desk(sim: Simulator, tmp_path: Path) -> Desk:
    return Desk(tmp_path, sim.url, dict(ENV))
