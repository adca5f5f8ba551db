"""Markers that another user makes, changes or removes during a run are neither lost nor taken for ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from msauto.model.result import Result
from msauto.simulator import Fault, ServerState, SimDialect, SimMarker, Simulator, empty_state
from tests.stage import Stage

GENERAL = {"track": "General"}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    state = empty_state()
    clip = state.databases["NEWS"].add_clip("Film", "Raw", frames=500)
    clip.markers[:] = [
        SimMarker(1, 10, {**GENERAL, "title": "one", "comment": "said"}),
        SimMarker(7, 70, {**GENERAL, "title": "seven"}),
    ]
    with Simulator(state=state) as sim:
        yield Stage(sim, tmp_path)


def film(*markers: dict[str, Any], **args: Any) -> dict[str, Any]:
    return {"name": "A task", "asset": {"title": "Film", "markers": [*markers], **args}}


def shown(stage: Stage) -> dict[int, tuple[int, str]]:
    return {each.uid: (each.pos, each.fields.get("title", "")) for each in stage.sim.state.clip("Film").markers}


def add(uid: int, frame: int, title: str) -> Callable[[ServerState], None]:
    """Return the change by which another user makes a marker."""
    return lambda state: state.clip("Film").markers.append(SimMarker(uid, frame, {**GENERAL, "title": title}))


def outcome(result: Result) -> str:
    return result.targets[0].outcome


def test_a_deletion_is_sent_once_where_the_uid_is_given_again(stage: Stage) -> None:
    stage.sim.faults.add(
        "done_status:503@DELETEMARKER", Fault("DELETEMARKER", "after", times=1, change=add(7, 99, "x"))
    )
    result = stage.apply(film({"uid": 7, "state": "absent"}))
    assert outcome(result) == "unverified"
    assert len(stage.sim.writes()) == 1
    assert shown(stage)[7] == (99, "x")


def test_a_newer_title_is_not_written_over(stage: Stage) -> None:
    def retitle(state: ServerState) -> None:
        state.clip("Film").markers[1].fields["title"] = "newer"

    stage.sim.faults.add("done_status:503@CREATEMARKER", Fault("CREATEMARKER", "after", times=1, change=retitle))
    result = stage.apply(film({"uid": 7, "title": "ours"}))
    assert outcome(result) == "unverified"
    assert len(stage.sim.writes()) == 1
    assert shown(stage)[7] == (70, "newer")


def test_an_equal_marker_of_another_user_is_not_ours(stage: Stage) -> None:
    stage.sim.faults.add("status:503@CREATEMARKER", Fault("CREATEMARKER", "before", times=1, change=add(8, 90, "n")))
    assert outcome(stage.apply(film({"at": 90, "title": "n"}))) == "changed"
    assert len(stage.sim.writes()) == 1
    plan = stage.undo(dry=True)
    assert plan.requests == 0
    assert any("it is not known whether the run made it" in warning for warning in plan.warnings)


def test_a_marker_at_a_place_that_is_to_be_empty_is_told(stage: Stage) -> None:
    stage.sim.faults.add(Fault("CREATEMARKER", "before", times=1, change=add(8, 30, "theirs")))
    result = stage.apply(film({"at": 30, "state": "absent"}, {"at": 90}))
    assert outcome(result) == "failed"
    assert [(each.aspect, each.key) for each in result.targets[0].differences] == [("marker", "uid 8")]
    assert shown(stage)[8] == (30, "theirs")


def test_a_marker_of_another_title_at_that_place_is_no_failure(stage: Stage) -> None:
    stage.sim.faults.add(Fault("CREATEMARKER", "before", times=1, change=add(8, 30, "theirs")))
    assert stage.apply(film({"at": 30, "title": "ours", "state": "absent"}, {"at": 90})).ok


def test_a_marker_that_is_left_alone_stays(stage: Stage) -> None:
    result = stage.apply(film({"uid": 7, "title": "ours", "state": "absent"}, {"at": 90}))
    assert result.ok
    assert shown(stage)[7] == (70, "seven")
    assert any("its title is 'seven', not 'ours'" in warning for warning in result.plan.warnings)


def test_a_new_marker_in_the_tracks_of_a_complete_list_is_told(stage: Stage) -> None:
    complete = {"markers": {"tracks": ["General"]}}
    stage.sim.faults.add(Fault("CREATEMARKER", "before", times=1, change=add(8, 30, "theirs")))
    result = stage.apply(film({"at": 10}, {"at": 70}, {"at": 90}, exactly=complete))
    assert outcome(result) == "failed"
    assert shown(stage)[8] == (30, "theirs")


def test_a_marker_that_nobody_named_and_that_is_gone_is_a_failure(stage: Stage) -> None:
    def remove(state: ServerState) -> None:
        state.clip("Film").markers.pop(0)

    stage.sim.faults.add(Fault("CREATEMARKER", "before", times=1, change=remove))
    result = stage.apply(film({"at": 90}))
    assert outcome(result) == "failed"
    assert [each.key for each in result.targets[0].differences] == ["uid 1"]


def test_a_marker_that_a_task_holds_and_that_is_gone_is_one_failure(stage: Stage) -> None:
    def remove(state: ServerState) -> None:
        state.clip("Film").markers.pop(0)

    stage.sim.faults.add(Fault("CREATEMARKER", "before", times=1, change=remove))
    result = stage.apply(film({"at": 10, "title": "one"}, {"at": 90}))
    assert [each.key for each in result.targets[0].differences] == ["uid 1"]


def test_texts_that_a_server_clears_are_a_failure(stage: Stage) -> None:
    stage.sim.dialect = SimDialect.parse(["marker_update=clear"])
    stage.dialect = {"marker_update": "changed"}
    result = stage.apply(film({"uid": 1, "title": "ours"}))
    (difference,) = result.targets[0].differences
    assert (outcome(result), difference.key) == ("failed", "uid 1")
    assert difference.desired == {"frame": 10, "track": "General", "title": "ours", "comment": "said"}


def test_all_markers_of_one_uid_go_if_a_task_says_so(stage: Stage) -> None:
    add(7, 80, "twin")(stage.sim.state)
    twins = film({"uid": 7, "state": "absent"}, lossy=True)
    assert stage.plan(film({"uid": 7, "state": "absent"})).errors == 1
    assert stage.apply(twins).ok
    assert shown(stage) == {1: (10, "one")}
    assert stage.plan(twins).requests == 0
