"""What the plan of segments holds for guards, verification and undo: effects in frames of the file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from msauto.aspects import ASPECTS
from msauto.aspects.aspect import Aspect
from msauto.aspects.plan_builder import PlanBuilder, PlanContext
from msauto.aspects.segment_arguments import DesiredSegment, DesiredSegments
from msauto.model.desired import Sourced, TaskSource
from msauto.model.live import Asset, AssetSnapshot, Segment
from msauto.model.plan import Target
from msauto.model.ports import LiveTarget
from msauto.model.server import Dialect, ServerSpec
from msauto.model.snapshot import Effect, Json
from tests.unit.planning.planning_world import Clip, stage
from tests.unit.planning.playbook_forms import asset_intent

RULE: Aspect = ASPECTS["segment"]
FROM_IN = Dialect(position_origin="in")
ONE: dict[str, Json] = {"start": 0, "duration": 10, "title": "One"}
TWO: dict[str, Json] = {"start": 20, "duration": 30, "title": "Two", "track": "V1"}
ONE_IN_FILE: dict[str, Json] = {**ONE, "start": 50}
TWO_IN_FILE: dict[str, Json] = {**TWO, "start": 70}


def plan(
    live: dict[int, Any] | None = None,
    *,
    ledger: dict[str, Json] | None = None,
    dialect: Dialect = FROM_IN,
    **args: Any,
) -> Target:
    """Return the plan for a clip whose in point is frame 50, on a server that shows no keywords."""
    clip = Clip(
        "Film", fields={"first_frame": "50"}, segments={1: ONE, 2: TWO} if live is None else live
    )
    context = stage(clip, dialect=dialect, reports_keywords=False)
    context.memory.always.update(ledger or {})
    (target,) = context.plan(asset_intent({"title": "Film", **args})).targets
    assert target.error is None
    return target


def test_a_segment_is_gone_before_it_is_there_again() -> None:
    target = plan(
        segments=[{"number": 1, "start": 50, "duration": 20}],
        ledger={"segment:1": {"keywords": "k"}},
    )
    known: Json = {"keywords": "k", "start": 50, "duration": 10, "title": "One"}
    again: Json = {"start": 50, "duration": 20, "title": "One", "keywords": "k"}
    assert target.effects == (
        (Effect("segment", "1", known, None),),
        (Effect("segment", "1", None, again),),
    )


def test_what_is_not_sent_is_known_and_not_compared() -> None:
    target = plan(segments=[{"number": 7, "start": 150, "duration": 20}])
    assert target.effects == (
        (Effect("segment", "7", None, {"start": 150, "duration": 20, "keywords": None}),),
    )
    assert not RULE.misses(
        target.effects[0][0].after,
        {"start": 150, "duration": 20, "title": "", "keywords": "theirs"},
    )
    assert RULE.hidden(target.effects[0][0].after, {"start": 150, "duration": 20, "title": ""}) == [
        "keywords"
    ]


def test_of_what_is_written_over_nothing_must_stay() -> None:
    dialect = replace(FROM_IN, segment_update="overwrite")
    target = plan(
        segments=[{"number": 2, "start": 70, "duration": 20}], dialect=dialect, lossy=True
    )
    after: Json = {"start": 70, "duration": 20, "title": "Two", "keywords": None}
    assert target.effects == (
        (Effect("segment", "2", TWO_IN_FILE, None), Effect("segment", "2", None, after)),
    )


def test_a_deletion_moves_the_numbers_after_it() -> None:
    dialect = replace(FROM_IN, segment_numbers="by_start")
    target = plan(segments=[{"number": 1, "state": "absent"}], dialect=dialect)
    gone = Effect("segment", "1", ONE_IN_FILE, None), Effect("segment", "1", None, TWO_IN_FILE)
    assert target.effects == ((*gone, Effect("segment", "2", TWO_IN_FILE, None)),)


def test_the_pieces_of_a_segmentation_are_new_segments() -> None:
    target = plan({}, segmentation={"duration": 200, "title": "Part"})
    first: Json = {"keywords": None, "start": 0, "duration": 200, "title_begins": "Part"}
    second: Json = {"keywords": None, "start": 200, "duration": 50, "title_begins": "Part"}
    assert target.effects == (
        (Effect("segment", "new 1", None, first), Effect("segment", "new 2", None, second)),
    )
    (change,) = target.changes
    assert (change.before, change.after) == (None, {"duration": 200, "pieces": 2, "title": "Part"})
    assert not RULE.misses(first, {"start": 0, "duration": 200, "title": "Part 1"})
    assert RULE.misses(first, {"start": 0, "duration": 200, "title": "Other"}) == ["title_begins"]


def test_a_segmentation_shows_what_it_makes_again() -> None:
    target = plan(
        {1: {"start": 0, "duration": 25}}, segmentation={"duration": 25}, dialect=Dialect()
    )
    (change,) = target.changes
    shown = {"number": 1, "start": 0, "duration": 25, "title": ""}
    assert (change.before, change.after) == (
        [shown],
        {"duration": 25, "pieces": 10, "keywords": None},
    )


@pytest.mark.parametrize(
    ("start", "duration", "why"),
    [(-1, 9, "frame -1"), (0, 0, "0 frames"), (9, 92, "ends at frame 101")],
)
def test_what_no_task_can_place_is_not_exported(start: int, duration: int, why: str) -> None:
    clip = Asset("Film", attributes={"frames": "100"}, segments=(Segment(1, start, duration),))
    part = RULE.export(AssetSnapshot("Film", clip), Dialect())
    assert why in str(part.items)
    assert not part.complete


def test_several_segments_of_one_number_take_a_request_each_for_one_effect() -> None:
    clip = Asset(
        "Film", segments=(Segment(1, 0, 5, titles=("A",)), Segment(1, 9, 5, titles=("B",)))
    )
    builder = planned(clip, DesiredSegment(1, present=False), lossy=True)
    twins: Json = {
        "twins": [
            {"start": 0, "duration": 5, "title": "A"},
            {"start": 9, "duration": 5, "title": "B"},
        ]
    }
    assert [request.effects for request in builder.requests()] == [
        (Effect("segment", "1", twins, None),)
    ] * 2
    assert [(change.key, change.losses) for change in builder.changes] == [("1", 0), ("1", 0)]


def test_only_lists_without_numbers_depend_on_all_segments() -> None:
    def looks(segment: dict[str, Any], dialect: Dialect = FROM_IN) -> bool:
        return "segment" in plan(segments=[segment], dialect=dialect).depends_on.names

    numbered, unnumbered = {"number": 3, "start": 200, "duration": 5}, {"start": 200, "duration": 5}
    by_start = Dialect(segment_numbers="by_start")
    assert not looks(numbered)
    assert looks(unnumbered)
    assert looks(numbered, by_start)
    assert looks(unnumbered, by_start)


def test_an_empty_title_removes_nothing() -> None:
    clip = Asset("Film", segments=(Segment(1, 0, 5), Segment(2, 9, 5)))
    assert not planned(clip, DesiredSegment(fields={"title": ""}, present=False)).requests()


def planned(asset: Asset, *segments: DesiredSegment, lossy: bool = False) -> PlanBuilder:
    """Plan segments that no playbook may ask for, and a model of a server does not have."""
    source, live = TaskSource("a.yml"), LiveTarget(asset=asset)
    path, server = "/storage/NEWS@Film", ServerSpec("studio", "http://studio")
    context = PlanContext(
        server, "NEWS", path, path, "Film", "Film", asset, live, PlanBuilder(), lossy=lossy
    )
    RULE.plan(context, DesiredSegments(tuple(Sourced(each, source) for each in segments)))
    return context.builder
