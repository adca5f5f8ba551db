"""Whole way: what tags, --target or an error leave out of a run is not removed by the rest of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msauto.simulator import Simulator, empty_state
from tests.stage import Stage, changes, errors, outcomes

BREAK = {"at": 100, "track": "Cue Point", "title": "Break"}
START = {"at": 0, "track": "Cue Point"}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    state = empty_state()
    news = state.databases["NEWS"]
    film = state.add_clip("Film", "Raw", frames=500)
    state.add_clip("Other", "Raw", frames=400)
    news.add_entry(film, "Playout", "Film on air")
    with Simulator(state=state) as sim:
        yield Stage(sim, tmp_path)


def task(name: str, *tags: str, **asset: Any) -> dict[str, Any]:
    return {"name": name, "asset": asset, "tags": [*tags]}


BREAKS = task("Breaks", "breaks", title="Film", markers=[BREAK])
ONLY_THE_START = task("Start", "start", title="Film", markers=[START], exactly=["markers"])
EVERY = task("Every clip", "every", select={"folder": "Raw"}, markers=[{**START, "comment": "x"}])


def test_exactly_does_not_remove_what_tags_leave_out(stage: Stage) -> None:
    stage.apply(BREAKS)
    plan = stage.plan(BREAKS, ONLY_THE_START, tags=("start",))
    (error,) = errors(plan)
    assert "is removed by the task 'Start'" in error
    assert "the task 'Breaks'" in error
    assert "is left out of this plan, and still protects what it names" in error
    assert errors(stage.plan(ONLY_THE_START)) == []


def test_what_tags_leave_out_costs_no_read_where_nothing_is_lost(stage: Stage) -> None:
    comment = task("Comment", "comment", title="Film", fields={"comment": "x"})
    stage.sim.clear_log()
    plan = stage.plan(comment, BREAKS, EVERY, task("On air", title="Film on air", markers=[BREAK]), tags=("comment",))
    assert changes(plan) == ["change field comment"]
    assert stage.reads() == ["/storage/NEWS@Film"]


@pytest.mark.parametrize(
    "other",
    [
        task("On air", "breaks", title="Film on air", markers=[BREAK]),
        task("Every break", "breaks", select={"folder": "Raw", "where": "asset.frames == 500"}, markers=[BREAK]),
    ],
    ids=["by a link", "by a select"],
)
def test_exactly_does_not_remove_what_is_named_otherwise(stage: Stage, other: dict[str, Any]) -> None:
    stage.apply(BREAKS)
    (error,) = errors(stage.plan(other, ONLY_THE_START, tags=("start",)))
    assert "is left out of this plan, and still protects what it names" in error
    assert errors(stage.plan(other, ONLY_THE_START, targets=("Film",))) != []


def test_a_clip_is_not_deleted_that_tags_leave_out(stage: Stage) -> None:
    gone = task(
        "Old ones", "old", select={"folder": "Raw", "where": "asset.frames > 450"}, state="absent", with_links=True
    )
    (error,) = errors(stage.plan(gone, BREAKS, tags=("old",)))
    assert "the asset is removed by the task 'Old ones'" in error
    assert changes(stage.plan(gone, tags=("old",))) == ["delete asset Film"]


def test_what_an_error_leaves_out_is_not_removed_under_another_name(stage: Stage) -> None:
    stage.apply(BREAKS)
    late = task("Late", title="Film on air", fields={"comment": "{{ 7 / (asset.frames - 500) }}"})
    result = stage.apply(ONLY_THE_START, late, task("Other", title="Other", fields={"comment": "x"}))
    assert outcomes(result) == ["studio Film: not attempted", "studio Other: changed"]
    assert [marker.fields["title"] for marker in stage.sim.state.databases["NEWS"].clip("Film").markers] == ["Break"]


def test_a_deletion_is_left_out_that_a_select_in_error_may_have_chosen(stage: Stage) -> None:
    gone = task("Old", title="Film", state="absent", with_links=True)
    every = task("Every", select={"folder": "Raw", "expect": {"max": 1}}, markers=[BREAK])
    plan = stage.plan(gone, every)
    assert [("is removed by the task 'Old'" in error, "finds 2 assets" in error) for error in errors(plan)] == [
        (True, False),
        (False, True),
    ]
