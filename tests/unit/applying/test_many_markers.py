"""What planning and verifying a clip with many markers takes: twice the markers take twice the steps."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from msauto.applying.verification import verify
from msauto.model.result import RequestResult
from tests.unit.planning.planning_world import Clip, read_after, stage
from tests.unit.planning.playbook_forms import asset_intent


def _calls(function: Callable[[], Any]) -> int:
    """Return how many calls a function takes."""
    count = 0

    def note(_frame: object, event: str, _arg: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def _new(count: int) -> dict[str, Any]:
    """New markers beside as many others."""
    return {"markers": _markers(range(1, 2 * count, 2), "new")}


def _exactly(count: int) -> dict[str, Any]:
    """New markers in place of as many others."""
    return {**_new(count), "exactly": ["markers"]}


def _changed(count: int) -> dict[str, Any]:
    """Other titles for as many markers."""
    return {"markers": _markers(range(0, 2 * count, 2), "changed")}


def _markers(frames: range, title: str) -> list[dict[str, Any]]:
    return [{"at": frame, "track": "Cue Point", "title": f"{title} {frame}"} for frame in frames]


@pytest.mark.parametrize("asked", [_new, _exactly, _changed])
def test_twice_the_markers_take_twice_the_steps(asked: Callable[[int], dict[str, Any]]) -> None:
    taken, planned = [], []
    for count in (100, 200):
        live = [
            {"uid": uid, "frame": 2 * uid, "track": "Cue Point", "title": "old"}
            for uid in range(count)
        ]
        world = stage(Clip("Film", markers=live, frames=1000))
        intent = asset_intent({"title": "Film", **asked(count)})
        planned.append(_calls(partial(world.plan, intent)))
        (target,) = world.plan(intent).targets
        assert len(target.requests) >= count
        for request in target.requests:
            world.server.apply(request)
        after = read_after(target, world.reader)
        results = [RequestResult("done", 200)] * len(target.requests)
        assert verify(target, results, after).differences == ()
        taken.append(_calls(partial(verify, target, results, after)))
    assert planned[1] < 2.2 * planned[0], planned
    assert taken[1] < 2.2 * taken[0], taken
