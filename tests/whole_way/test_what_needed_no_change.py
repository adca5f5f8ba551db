"""Whole way: another user changes what needed no change, while msauto writes something else of the same target."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msauto.model.result import Difference, Result
from msauto.simulator import Fault, ServerState, SimMarker, SimSegment, Simulator, empty_state
from tests.plan_documents import plan_to_json
from tests.stage import Stage

EVERYTHING: dict[str, Any] = {
    "title": "Film",
    "fields": {"user_1": "one"},
    "xmp": {"dc:title": "Film"},
    "markers": [{"at": 10, "title": "Ten"}],
    "segments": [{"number": 3, "start": 0, "duration": 50}, {"number": 9, "state": "absent"}],
    "links": [{"folder": "Playout", "title": "Tonight"}, {"folder": "Playout", "title": "Gone", "state": "absent"}],
    "exactly": ["markers", "segments"],
}


@pytest.fixture
def sim() -> Iterator[Simulator]:
    state = empty_state()
    news = state.databases["NEWS"]
    news.make_folder("Playout")
    news.add_clip("Film", "Raw", frames=100, create_time="2026-11-13T10:00:00")
    with Simulator(state=state) as simulator:
        yield simulator


@pytest.fixture
def stage(sim: Simulator, tmp_path: Path) -> Stage:
    stage = Stage(sim, tmp_path)
    (target,) = stage.apply({"name": "Before", "asset": EVERYTHING}).targets
    assert target.outcome == "changed"
    return stage


def applied(stage: Stage, change: Any = None, **more: Any) -> tuple[Result, tuple[Difference, ...]]:
    """Write a comment (and more), and let another user make a change right before that."""
    asset = {**EVERYTHING, **more, "fields": {"user_1": "one", "comment": "Ready"}}
    if change is not None:
        stage.sim.faults.add(Fault("SETFIELD", "before", times=1, change=change))
    result = stage.apply({"name": "A task", "asset": asset})
    return result, result.targets[0].differences


def edit_field(state: ServerState) -> None:
    state.clip("Film").home.fields["user_1"] = "two"


def edit_xmp(state: ServerState) -> None:
    state.clip("Film").xmp["dc:title"] = ["Other"]


def edit_marker(state: ServerState) -> None:
    state.clip("Film").markers[0].fields["title"] = "Eleven"


def add_marker(state: ServerState) -> None:
    state.clip("Film").markers.append(SimMarker(77, 30, {"track": "Comment"}))


def remove_segment(state: ServerState) -> None:
    state.clip("Film").segments.clear()


def double_segment(state: ServerState) -> None:
    state.clip("Film").segments.append(SimSegment(3, 50, 20))


def add_segment(state: ServerState) -> None:
    state.clip("Film").segments.append(SimSegment(4, 50, 20))


def add_absent_segment(state: ServerState) -> None:
    state.clip("Film").segments.append(SimSegment(9, 50, 20))


def remove_link(state: ServerState) -> None:
    tonight = next(entry for entry in state.clip("Film").entries if entry.title == "Tonight")
    state.databases["NEWS"].remove_link(tonight)


def add_absent_link(state: ServerState) -> None:
    state.databases["NEWS"].add_entry(state.clip("Film"), "Playout", "Gone")


SECOND_LINK = {"links": [*EVERYTHING["links"], {"folder": "Playout", "title": "Second"}]}


@pytest.mark.parametrize(
    ("change", "more", "where"),
    [
        (edit_field, {}, ("field", "user_1")),
        (edit_xmp, {"xmp": {"dc:title": "Film", "dc:subject": "New"}}, ("xmp", "dc:title")),
        (edit_marker, {}, ("marker", "uid 1")),
        (add_marker, {}, ("marker", "uid 77")),
        (remove_segment, {}, ("segment", "3")),
        (double_segment, {}, ("segment", "3")),
        (add_segment, {}, ("segment", "4")),
        (add_absent_segment, {"exactly": ["markers"]}, ("segment", "9")),
        (remove_link, {}, ("link", "Playout/Tonight")),
        (remove_link, SECOND_LINK, ("link", "Playout/Tonight")),
        (add_absent_link, SECOND_LINK, ("link", "Playout/Gone")),
    ],
)
def test_what_is_no_longer_as_asked_fails(
    stage: Stage, change: Any, more: dict[str, Any], where: tuple[str, str]
) -> None:
    result, differences = applied(stage, change, **more)
    assert (result.targets[0].outcome, result.targets[0].message) == ("failed", "not as desired when read again")
    assert [(each.aspect, each.key) for each in differences] == [where]
    assert not result.ok  # exit code 3


@pytest.mark.parametrize("more", [{}, SECOND_LINK, {"xmp": {"dc:title": "Film", "dc:subject": "New"}}])
def test_without_other_users_all_is_changed(stage: Stage, more: dict[str, Any]) -> None:
    result, differences = applied(stage, **more)
    assert (result.targets[0].outcome, differences) == ("changed", ())


def test_what_the_changes_themselves_do_is_no_difference(stage: Stage) -> None:
    more = {
        "markers": [{"at": 10, "title": "Ten"}, {"at": 20}],
        "segments": [*EVERYTHING["segments"], {"number": 4, "start": 50, "duration": 10}],
    }
    result, differences = applied(stage, **more)
    assert (result.targets[0].outcome, differences) == ("changed", ())


def test_xmp_fields_take_a_request_of_their_own_and_are_read_only_if_some_were_written(stage: Stage) -> None:
    result, _ = applied(stage, edit_xmp)
    assert result.targets[0].outcome == "changed"


def test_it_is_in_no_file(stage: Stage) -> None:
    plan = stage.plan({"name": "A task", "asset": {**EVERYTHING, "fields": {"user_1": "one", "comment": "Ready"}}})
    assert {each.aspect for each in plan.targets[0].holding or ()} == {"field", "xmp", "marker", "segment", "link"}
    assert "holding" not in json.dumps(plan_to_json(plan))
