"""A changed segment in plans: all that it had, what it loses, and no difference where nothing differs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from msauto.model.plan import Change
from msauto.planning.saved_plan import plan_from_json
from msauto.simulator import SimDialect, SimSegment, Simulator, empty_state
from tests.plan_documents import plan_to_json
from tests.stage import Stage
from tests.unit.report.made_plans import text_of


@pytest.fixture(scope="module")
def server() -> Iterator[Simulator]:
    with Simulator(state=empty_state()) as simulator:
        yield simulator


@pytest.fixture
def stage(server: Simulator, tmp_path: Path) -> Stage:
    server.state = empty_state()
    server.dialect = SimDialect()
    clip = server.state.databases["NEWS"].add_clip("Film", "Raw", frames=100)
    clip.segments[:] = [
        SimSegment(1, 0, 5, ["One", "Eins"], track="V1", rating=3),
        SimSegment(2, 10, 6, ["Two"], rating=0),
    ]
    return Stage(server, tmp_path)


def segments(*desired: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "A task", "asset": {"title": "Film", "segments": list(desired), **more}}


def change_of(stage: Stage, task: dict[str, Any]) -> Change:
    ((change,),) = (target.changes for target in stage.plan(task).targets)
    return change


def told(change: Change) -> tuple[dict[str, Any], dict[str, Any]]:
    assert isinstance(change.before, dict)
    assert isinstance(change.after, dict)
    return dict(change.before), dict(change.after)


def test_what_a_lossy_change_loses_is_in_the_plan(stage: Stage) -> None:
    task = segments({"number": 1, "start": 0, "duration": 7}, lossy=True)
    before, after = told(change_of(stage, task))
    assert (before["further_titles"], before["track"], before["rating"]) == (["Eins"], "V1", "3")
    assert (after["further_titles"], after["track"], after["rating"]) == (None, None, None)
    plan = stage.plan(task)
    text = text_of(plan, colour=False)
    assert 'track "V1" → (nothing)' in " ".join(text.split())
    assert "Eins" in text
    assert plan_from_json(plan_to_json(plan)) == structs.replace(plan, read_since=None)
    assert stage.apply(task).ok


def test_keywords_that_are_never_shown_are_lost_in_the_plan_unless_a_run_knows_them(stage: Stage) -> None:
    stage.sim.dialect = SimDialect().with_values({"segment_keywords": "hidden"})
    task = segments({"number": 2, "start": 10, "duration": 7})
    text = " ".join(text_of(stage.plan(task), colour=False).split())
    assert "keywords (unknown) → (nothing)" in text
    assert "(cannot be undone)" in text
    change = change_of(stage, task)
    assert (change.losses, change.reversible) == (0, False)
    assert stage.apply(task).ok
    told = "\n".join(stage.undo(dry=True).warnings)
    assert "segment 2 comes back without its keywords, which were never known" in told
    change = change_of(stage, segments({"number": 2, "start": 10, "duration": 8}))
    assert (change.losses, change.reversible) == (0, True), "this run has sent none"


def test_a_rating_of_nought_is_none_and_is_not_lost(stage: Stage) -> None:
    before, after = told(change_of(stage, segments({"number": 2, "start": 10, "duration": 7})))
    assert after.get("rating", "0") == before.get("rating", "0")


def test_a_deleted_segment_shows_all_its_titles(stage: Stage) -> None:
    change = change_of(stage, segments({"number": 1, "state": "absent"}))
    assert isinstance(change.before, dict)
    assert change.before["further_titles"] == ["Eins"]


@pytest.mark.parametrize("keywords", ["reported", "hidden"])
def test_keywords_that_are_empty_and_stay_so_are_no_difference(stage: Stage, keywords: str) -> None:
    stage.sim.dialect = SimDialect().with_values({"segment_keywords": keywords})
    first = segments({"number": 5, "start": 50, "duration": 5, "title": "Five", "keywords": ""})
    assert stage.apply(first).ok
    before, after = told(change_of(stage, segments({"number": 5, "start": 50, "duration": 7})))
    assert {name for name in after if before.get(name) != after[name]} == {"duration"}
    assert stage.apply(segments({"number": 5, "start": 50, "duration": 7})).ok
    (target,) = stage.undo(dry=True).targets
    before, after = told(target.changes[0])
    assert {name for name in after if before.get(name) != after[name]} == {"duration"}
