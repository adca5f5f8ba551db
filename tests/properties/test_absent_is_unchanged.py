"""Absent and not there is unchanged, everywhere, on every run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msauto.plugins.simulator.embedded import Simulator, empty_state
from tests.stage import Stage

TASKS: list[dict[str, Any]] = [
    {"name": "Plain", "asset": {"title": "Old", "state": "absent"}},
    {
        "name": "Short ones",
        "when": "asset.frames < 500",
        "asset": {"title": "Old", "state": "absent"},
    },
]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task["name"])
def test_deleted_once_and_unchanged_ever_after(task: dict[str, Any], tmp_path: Path) -> None:
    state = empty_state()
    state.add_clip("Old", "Promos", frames=250)
    with Simulator(state=state) as sim:
        stage = Stage(sim, tmp_path)
        assert stage.apply(task).ok
        assert [entry.method for entry in stage.sent()] == ["DELETE"]
        again = stage.plan(task)
        assert (again.errors, again.requests, again.unchanged) == (0, 0, 1), again
