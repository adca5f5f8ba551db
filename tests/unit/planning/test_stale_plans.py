"""A plan that no longer fits what is there: read again before it is applied, or planned again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from msgspec import structs

from msauto.model.desired import Intent
from msauto.model.plan import Plan, Target
from msauto.planning.saved_plan import STALE, differences, refuse_differences
from msauto.secrets.redaction import Secrets
from tests.tables import table
from tests.unit.planning.planning_world import Clip, Stage, stage, why_not
from tests.unit.planning.playbook_forms import asset_intent, rss_intent

FILM = Clip("Film", folder="Raw", fields={"comment": "raw"})


def planned(context: Stage, args: dict[str, Any]) -> Target:
    (target,) = context.plan(asset_intent({"title": "Film", **args})).targets
    return target


def why(context: Stage, target: Target) -> str | None:
    return why_not(target, context.reader) or None


def test_nothing_has_changed() -> None:
    context = stage(FILM)
    assert why(context, planned(context, {"fields": {"comment": "x"}})) is None


def test_an_agreed_target_is_the_same_in_whatever_order_a_server_shows_its_attributes() -> None:
    target = planned(stage(FILM), {"fields": {"comment": "x"}})
    orders: tuple[dict[str, Any], ...] = (
        {"track": "General", "title": "a"},
        {"title": "a", "track": "General"},
    )
    changes = ((structs.replace(target.changes[0], before=each),) for each in orders)
    one, other = (
        Plan("", "", targets=(structs.replace(target, changes=each),)) for each in changes
    )
    assert differences(one, other) == {}


@table("planning/drift", "drift", "words")
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
    another = "created 2026-11-20T08:00:00, 250 frames, link_id 99"
    assert why(context, target) == f"another clip now has this title ({another})"
    del context.server.clips["Film"]
    assert why(context, target) == "it no longer exists"


def test_the_new_title_is_taken_by_now() -> None:
    context = stage(replace(FILM, title="Film raw"))
    target = planned(context, {"was": ["Film raw"]})
    assert why(context, target) is None
    context.server.clips["Film"] = replace(FILM, link_id=99, orig_name="Another")
    assert why(context, target) == "another asset now has the title 'Film'"


def test_a_channel_that_has_moved_on() -> None:
    context = stage(channels={"c": []})
    (target,) = context.plan(
        rss_intent({"channel": "c", "items": [{"guid": "n", "text": "A"}]})
    ).targets
    assert why(context, target) is None
    context.server.channels["c"].append({"guid": "m", "title": "B"})
    assert why(context, target) is None, "no task names it"
    context.server.channels["c"].append({"guid": "n", "title": "B"})
    assert why(context, target) == "rss_item n was None, is {'title': 'B'}"


@table("planning/drift_in_full", "drift", "words")
def test_what_has_changed_is_told_as_far_as_the_plan_knows(
    drift: dict[str, Any], words: str
) -> None:
    clip = replace(FILM, xmp={"dc:a": ["old"]})
    context = stage(clip)
    segments = [{"number": 1, "start": 0, "duration": 5}]
    target = planned(
        context, {"fields": {"comment": "x"}, "xmp": {"dc:a": ["topsecret"]}, "segments": segments}
    )
    context.server.clips["Film"] = replace(clip, **drift)
    assert why(context, target) == words
    assert "old" not in why_not(target, context.reader, secrets=Secrets(["topsecret"]))


# Planned again ---------------------------------------------------------------------------------------------------


def plan_of(context: Stage, *intents: Intent) -> Plan:
    return Plan("", "", targets=context.plan(*intents).targets)


def comments(*titles: str) -> list[Intent]:
    return [asset_intent({"title": title, "fields": {"comment": "x"}}) for title in titles]


def test_the_same_plan_is_applied_and_nothing_else() -> None:
    context = stage(
        FILM,
        *(
            replace(FILM, title=title, link_id=n, orig_name=title)
            for n, title in enumerate("ABC", 2)
        ),
    )
    agreed = plan_of(context, *comments("Film", "A", "B"))
    assert refuse_differences(plan_of(context, *comments("Film", "A", "B")), agreed) == agreed
    context.server.clips["A"] = replace(context.server.clips["A"], fields={"comment": "theirs"})
    context.server.clips["B"] = replace(context.server.clips["B"], fields={"comment": "x"})
    found = refuse_differences(plan_of(context, *comments("Film", "A", "B", "C")), agreed)
    assert [(each.name, bool(each.requests)) for each in found.targets] == [
        ("Film", True), ("A", False), ("C", False), ("B", False),
    ]  # fmt: skip
    values = "field comment: planned 'raw' → 'x', now 'theirs' → 'x'"
    again = "\n  → make the plan again"
    assert [each.error for each in found.targets] == [
        None,
        f"{STALE}it has changed since the plan was made: {values}{again}",
        f"{STALE}it has changed since the plan was made: it is new in the plan{again}",
        f"{STALE}it is no longer in the plan{again}",
    ]


def test_where_the_playbook_is_does_not_matter() -> None:
    context = stage(FILM)
    agreed = plan_of(
        context, asset_intent({"title": "Film", "fields": {"comment": "x"}}, file="a.yml")
    )
    moved = plan_of(
        context, asset_intent({"title": "Film", "fields": {"comment": "x"}}, file="b/a.yml")
    )
    assert differences(agreed, moved) == {}


def test_what_cannot_be_planned_any_more_is_stale_unless_its_server_is_away() -> None:
    context = stage(FILM)
    agreed = plan_of(context, *comments("Film"))
    del context.server.clips["Film"]
    now = plan_of(context, *comments("Film"))
    (target,) = refuse_differences(now, agreed).targets
    assert str(target.error).startswith(f"{STALE}it cannot be planned any more: ")
    assert "not found" in str(target.error)
    away = structs.replace(now, unreachable=frozenset({"studio-a"}))
    assert refuse_differences(away, agreed) == away
    assert refuse_differences(now, now) == now


def test_two_clips_of_one_title_are_two_targets() -> None:
    context = stage(FILM)
    (target,) = plan_of(context, *comments("Film")).targets
    twin = structs.replace(target, clip=structs.replace(target.clip, link_id=7))
    both = Plan("", "", targets=(target, twin))
    assert refuse_differences(both, both) == both
    found = refuse_differences(both, Plan("", "", targets=(target, target)))
    assert [each.error is None for each in found.targets] == [True, False]


@table("planning/drift_of_identity", "now", "differs")
def test_which_clip_it_is_is_compared_and_a_difference_is_named(
    now: dict[str, Any], differs: str
) -> None:
    (target,) = plan_of(stage(FILM), *comments("Film")).targets
    clip = structs.replace(target.clip, link_id=1, hires="film.mxf", frames=100)
    plans = [
        Plan("", "", targets=(structs.replace(target, clip=structs.replace(clip, **each)),))
        for each in ({}, now)
    ]
    assert "".join(differences(*plans).values()) == differs


def test_an_entry_that_shows_the_clip_since_is_named() -> None:
    (target,) = plan_of(stage(FILM), *comments("Film")).targets
    seen = [("Playout/Film",), ("Playout/Film", "Playout/Late")]
    plans = [Plan("", "", targets=(structs.replace(target, places=places),)) for places in seen]
    assert list(differences(*plans).values()) == ["Playout/Late shows it, too"]


@table("planning/written_by_another_run", "item", "before", "later")
def test_what_only_the_ledger_knows_was_written_by_another_run(
    item: str, before: Any, later: Any
) -> None:
    aspect, _, name = item.partition(":")
    context = stage(replace(FILM, fields={}, xmp=None))
    if before is not None:
        context.memory.always[item] = before
    intent = asset_intent(
        {"title": "Film", **({"xmp": {name: ["9"]}} if aspect == "xmp" else {"fields": {name: 9}})}
    )
    agreed = plan_of(context, intent)
    assert differences(agreed, plan_of(context, intent)) == {}
    context.memory.always[item] = later
    assert len(differences(agreed, plan_of(context, intent))) == 1
