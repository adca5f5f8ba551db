"""Rows: each test on a plain server, and among the slow tests on servers of the pairwise set of dialects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from msauto.plugins.simulator.embedded import Simulator, empty_state
from tests.dialects.fitting import some_rows
from tests.dialects.keeping_switches import kept_by
from tests.stage import Stage


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "row" in metafunc.fixturenames:
        test = metafunc.function
        slow = [
            pytest.param(row | kept_by(test), id=f"row{number}", marks=pytest.mark.scale)
            for number, row in some_rows(test.__name__)
        ]
        metafunc.parametrize("row", [pytest.param({}, id="plain"), *slow])


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A server with a clip and a folder."""
    state = empty_state()
    state.databases["NEWS"].add_clip("Film", "Raw", frames=50_000)
    state.databases["NEWS"].make_folder("Playout")
    with Simulator(state=state) as sim:
        yield Stage(sim, tmp_path)
