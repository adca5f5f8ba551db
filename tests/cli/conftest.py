"""One simulator for the tests of the command line; each test gets a folder, and the house as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from msauto.simulator import Simulator, seeded_house
from tests.cli.command_line import Desk


@pytest.fixture(scope="session")
def _one_simulator() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


@pytest.fixture
def sim(_one_simulator: Simulator) -> Simulator:
    _one_simulator.house = seeded_house()
    _one_simulator.faults.clear()
    _one_simulator.clear_log()
    return _one_simulator


@pytest.fixture
def desk(sim: Simulator, tmp_path: Path) -> Desk:
    return Desk(tmp_path, sim.url)


@pytest.fixture
def away(tmp_path: Path) -> Desk:
    """A desk whose server is not there."""
    return Desk(tmp_path)
