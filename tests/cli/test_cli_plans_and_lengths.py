"""A saved plan whose segments were held against the clip's length is stale once the clip has another."""

from __future__ import annotations

from typing import Any

import pytest

from msauto.simulator import Simulator
from tests.cli.command_line import Desk

pytestmark = pytest.mark.usefixtures("hurried")
INV = ("-i", "inventory.yml")
PART: dict[str, Any] = {"segments": [{"number": 1, "start": 0, "duration": 50}]}
EQUAL: dict[str, Any] = {"segmentation": {"duration": 50}}
NO_LENGTH: dict[str, Any] = {"fields": {"comment": "new"}, "segments": [{"number": 7, "state": "absent"}]}


@pytest.mark.parametrize("frames", [40, 51, 100_000])
@pytest.mark.parametrize("asked", [PART, EQUAL, NO_LENGTH], ids=["part", "equal", "none"])
def test_another_length(desk: Desk, sim: Simulator, asked: dict[str, Any], frames: int) -> None:
    desk.play({"asset": {"title": "EP001", **asked}})
    assert desk.run("plan", *INV, "play.yml", "--out", "kept").code == 0
    sim.state.clip("EP001").frames = frames
    sourced = desk.run("apply", "--yes", *INV, "kept")
    assert sourced.code == 4, sourced
    assert not sim.writes()
    assert "stale: it " in sourced.out
    assert f"{frames} frames" in sourced.out
