"""One simulator for the tests of the command line; each test gets a folder, and the server state as it was."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from msauto.concurrency import SystemClock
from msauto.plugins.simulator.embedded import SimDialect, Simulator, sample_state
from tests.cli.command_line import Desk


@pytest.fixture(scope="session")
def _one_simulator() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


@pytest.fixture
def sim(_one_simulator: Simulator) -> Simulator:
    _one_simulator.state = sample_state()
    _one_simulator.dialect = SimDialect()
    _one_simulator.faults.clear()
    _one_simulator.clear_log()
    return _one_simulator


@pytest.fixture
def other_sim() -> Iterator[Simulator]:
    """A second server."""
    with Simulator() as simulator:
        simulator.state = sample_state()
        yield simulator


@pytest.fixture
def desk(sim: Simulator, tmp_path: Path) -> Desk:
    return Desk(tmp_path, sim.url)


@pytest.fixture
def away(tmp_path: Path) -> Desk:
    """A desk whose server does not run."""
    return Desk(tmp_path)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time passes fifty times as fast for pauses and retries, in this process; socket timeouts stay."""

    async def sleep(_: object, seconds: float) -> None:
        await asyncio.sleep(seconds / 50)

    monkeypatch.setattr(SystemClock, "sleep", sleep)
    monkeypatch.setattr(SystemClock, "monotonic", lambda _: time.monotonic() * 50)
