"""Whole way: a server that numbers the segments of a clip by their starts, with and without the dialect key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msauto.simulator import SimDialect, SimSegment, Simulator, empty_state
from tests.stage import Stage, lines

TITLES = ("One", "Two", "Three", "Four")


@pytest.fixture(scope="module")
def server() -> Iterator[Simulator]:
    with Simulator(state=empty_state()) as simulator:
        yield simulator


@pytest.fixture(params=["recreate", "overwrite"])
def stage(server: Simulator, tmp_path: Path, request: pytest.FixtureRequest) -> Stage:
    server.state = empty_state()
    server.clear_log()
    update = {"recreate": "refuse", "overwrite": "overwrite"}[request.param]
    server.dialect = SimDialect.parse(["segment_numbers=by_start", f"segment_update={update}"])
    clip = server.state.databases["NEWS"].add_clip("Film", "Raw", frames=500)
    clip.segments[:] = [SimSegment(n, 100 * n - 100, 100, [title], track="V1") for n, title in enumerate(TITLES, 1)]
    return Stage(server, tmp_path, {"segment_update": request.param, "segment_numbers": "by_start"})


def film(*segments: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "Film", "asset": {"title": "Film", "segments": list(segments), **more}}


def shown(stage: Stage) -> list[tuple[Any, ...]]:
    return [(each.number, each.start, *each.titles, each.track) for each in stage.sim.state.clip("Film").segments]


TASKS = {
    "absent": film({"number": 2, "state": "absent"}, {"number": 3, "state": "absent"}),
    "retitled": film({"number": 2, "start": 100, "duration": 100, "title": "New"}, lossy=True),
    "moved": film({"start": 400, "duration": 50, "title": "One"}, lossy=True),
    "in between": film({"start": 50, "duration": 20, "title": "New"}, {"start": 350, "duration": 20}),
    "exactly": film({"start": 50, "duration": 20, "title": "New"}, exactly=["segments"]),
}
LEFT: dict[str, list[tuple[Any, ...]]] = {
    "absent": [(1, 0, "One", "V1"), (2, 300, "Four", "V1")],
    "retitled": [(1, 0, "One", "V1"), (2, 100, "New", ""), (3, 200, "Three", "V1"), (4, 300, "Four", "V1")],
    "moved": [(1, 100, "Two", "V1"), (2, 200, "Three", "V1"), (3, 300, "Four", "V1"), (4, 400, "One", "")],
    "in between": [(1, 0, "One", "V1"), (2, 50, "New", ""), (3, 100, "Two", "V1"), (4, 200, "Three", "V1"),
                   (5, 300, "Four", "V1"), (6, 350, "")],
    "exactly": [(1, 50, "New", "")],
}  # fmt: skip


@pytest.mark.parametrize("task", TASKS)
def test_with_the_key_it_works(stage: Stage, task: str) -> None:
    result = stage.apply(TASKS[task])
    assert result.ok, [(target.message, target.target.error, target.differences) for target in result.targets]
    assert shown(stage) == LEFT[task]
    if task != "absent":  # a number is that of now
        assert stage.plan(TASKS[task]).requests == 0


@pytest.mark.parametrize("task", TASKS)
def test_undo_brings_back_what_went_and_leaves_the_others(stage: Stage, task: str) -> None:
    before = shown(stage)
    assert stage.apply(TASKS[task]).ok
    undone = stage.undo()
    assert undone.ok, [(target.message, target.target.error, target.differences) for target in undone.targets]
    assert [each[:3] for each in shown(stage)] == [each[:3] for each in before]
    kept = {each[1:] for each in LEFT[task]}
    assert {each[1:] for each in shown(stage)} >= {each[1:] for each in before} & kept, (
        "a segment of others was made again"
    )


@pytest.mark.parametrize("task", ["moved", "in between"])
def test_without_the_key_nothing_of_others_is_hit(stage: Stage, task: str) -> None:
    stage.dialect = {**stage.dialect, "segment_numbers": "fixed"}
    assert not stage.apply(TASKS[task]).ok
    assert {each[1:] for each in shown(stage)} >= {(100, "Two", "V1"), (200, "Three", "V1"), (300, "Four", "V1")}


def test_without_the_key_a_run_stops_between_two_requests_and_names_it(stage: Stage) -> None:
    stage.dialect = {"segment_update": "recreate", "segment_numbers": "fixed"}
    (target,) = stage.apply(TASKS["retitled"]).targets
    assert [each.outcome for each in target.requests] == ["done", "not sent"]
    assert "`segment_numbers`" in f"{target.message} {target.requests}"
    assert shown(stage) == [(1, 0, "One", "V1"), (2, 200, "Three", "V1"), (3, 300, "Four", "V1")]


def test_without_the_key_deletions_are_right_from_the_highest_number_down(stage: Stage) -> None:
    stage.dialect = {**stage.dialect, "segment_numbers": "fixed"}
    stage.apply(TASKS["absent"])
    assert shown(stage) == LEFT["absent"]
    assert [line.partition("seg_num=")[2] for line in lines(stage.sent())] == ["3", "2"]
