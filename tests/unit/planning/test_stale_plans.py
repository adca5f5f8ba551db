"""A saved plan that no longer fits what is there."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from msauto.model.plan import Target, TargetId
from msauto.planning.saved_plans.live_state_check import why_stale
from tests.unit.planning.planning_world import Clip, Stage, stage
from tests.unit.planning.playbook_forms import asset_intent, rss_intent

FILM = Clip("Film", folder="Raw", fields={"comment": "raw"})


def planned(context: Stage, args: dict[str, Any]) -> Target:
    (target,) = context.plan(asset_intent({"title": "Film", **args})).targets
    return target


def why(context: Stage, target: Target) -> str | None:
    return asyncio.run(why_stale(target, context.reader.fresh(), context.memory))


def test_nothing_has_changed() -> None:
    context = stage(FILM)
    assert why(context, planned(context, {"fields": {"comment": "x"}})) is None


@pytest.mark.parametrize(
    ("drift", "words"),
    [
        (
            {"fields": {"comment": "other"}},
            "it has changed since the plan was made: field comment was 'raw', is 'other'",
        ),
        (
            {"create_time": "2026-11-21T08:00:00"},
            (
                "it has changed since the plan was made: it is another clip now: created 2026-11-21T08:00:00, "
                "250 frames, link_id 1"
            ),
        ),
        (
            {"link_id": 2},
            (
                "it has changed since the plan was made: it is another clip now: created 2026-11-20T08:00:00, "
                "250 frames, link_id 2"
            ),
        ),
        (
            {"frames": 251},
            (
                "it has changed since the plan was made: it is another clip now: created 2026-11-20T08:00:00, "
                "251 frames, link_id 1"
            ),
        ),
    ],
)
def test_drift_and_another_clip_of_the_same_title(drift: dict[str, Any], words: str | None) -> None:
    context = stage(FILM)
    target = planned(context, {"fields": {"comment": "x"}})
    context.server.clips["Film"] = replace(FILM, **drift)
    assert why(context, target) == words


def test_a_deletion_does_not_hit_a_clip_recorded_since() -> None:
    context = stage(FILM)
    target = planned(context, {"state": "absent"})
    assert why(context, target) is None
    context.server.clips["Film"] = replace(FILM, link_id=99)
    assert (
        why(context, target)
        == "it has changed since the plan was made: it is another clip now: created 2026-11-20T08:00:00, "
        "250 frames, link_id 99"
    )
    del context.server.clips["Film"]
    assert why(context, target) == "it has changed since the plan was made: it no longer exists"


def test_the_new_title_is_taken_by_now() -> None:
    context = stage(replace(FILM, title="Film raw"))
    target = planned(context, {"was": ["Film raw"]})
    assert why(context, target) is None
    context.server.clips["Film"] = replace(FILM, link_id=99, orig_name="Another")
    assert why(context, target) == "it has changed since the plan was made: another asset now has the title 'Film'"


@pytest.mark.parametrize(
    ("item", "before", "later"),
    [
        ("field:comment", "ours", "theirs"),
        ("field:first_frame", "10", "12"),
        ("xmp:dc:a", ["1"], ["2"]),
    ],
)
def test_what_only_the_ledger_knows_was_written_by_another_run(item: str, before: Any, later: Any) -> None:
    aspect, _, name = item.partition(":")
    context = stage(replace(FILM, fields={}, xmp=None))
    context.memory.always[item] = before
    desired = {"xmp": {name: ["9"]}} if aspect == "xmp" else {"fields": {name: 9}}
    target = planned(context, desired)
    assert why(context, target) is None
    context.memory.always.clear()
    assert why(context, target) is None  # a ledger that knows nothing says nothing
    context.memory.items[TargetId("studio-a", "NEWS", "asset", "Film", 1, FILM.create_time)] = {item: later}
    assert why(context, target) == "another run has written it since the plan was made"


@pytest.mark.parametrize(("item", "written"), [("field:comment", "9"), ("xmp:dc:a", ["9"])])
def test_what_nobody_knew_was_written_by_another_run(item: str, written: Any) -> None:
    aspect, _, name = item.partition(":")
    context = stage(replace(FILM, fields={}, xmp=None))
    target = planned(context, {"xmp": {name: ["9"]}} if aspect == "xmp" else {"fields": {name: 9}})
    assert [change.basis for change in target.changes] == ["none"]
    assert why(context, target) is None
    context.memory.always[item] = written
    assert why(context, target) == "another run has written it since the plan was made"


def test_a_channel_that_has_moved_on() -> None:
    context = stage(channels={"c": []})
    (target,) = context.plan(rss_intent({"channel": "c", "items": [{"guid": "n", "text": "A"}]})).targets
    assert why(context, target) is None
    context.server.channels["c"].append({"guid": "m", "title": "B"})
    assert why(context, target) == "it has changed since the plan was made: one of items"


@pytest.mark.parametrize(
    ("drift", "words"),
    [
        ({"xmp": {"dc:a": ["new"]}}, "made: xmp dc:a was ['old'], is ['new']"),
        ({"fields": {"comment": "x" * 99}}, f"made: field comment was 'raw', is '{'x' * 59}…"),
        ({"segments": {1: {"start": 0, "duration": 9}}}, "made: one of length, segments"),
    ],
)
def test_what_has_changed_is_told_as_far_as_the_plan_knows(drift: dict[str, Any], words: str) -> None:
    clip = replace(FILM, xmp={"dc:a": ["old"]})
    context = stage(clip)
    segments = [{"number": 1, "start": 0, "duration": 5}]
    target = planned(context, {"fields": {"comment": "x"}, "xmp": {"dc:a": ["9"]}, "segments": segments})
    context.server.clips["Film"] = replace(clip, **drift)
    told = why(context, target)
    assert told is not None
    assert told.endswith(words), told
    secret = structs.replace(target, changes=tuple(structs.replace(change, secret=True) for change in target.changes))
    assert "old" not in (why(context, secret) or "")
