"""What a plan leaves out by tags, --target or an error protects what it names, also under other names of a clip."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from msauto.errors import InputError, Problem, SourceLocation
from msauto.model.desired import Desired, IdRef, Intent, Ref, SelectRef
from msauto.model.facts import Facts
from msauto.planning.left_out import TargetChoice
from msauto.planning.survey import Survey
from tests.unit.planning.planning_world import Clip, Stage, stage
from tests.unit.planning.playbook_forms import asset_intent

BREAK = {"at": 100, "track": "Cue Point"}
START = {"at": 0, "track": "Cue Point"}


def house(**clip: Any) -> Stage:
    film = Clip(
        "Film",
        folder="Raw",
        markers=[
            {"uid": 1, "frame": 0, "track": "Cue Point"},
            {"uid": 2, "frame": 100, "track": "Cue Point"},
        ],
        links=["Playout/Film on air"],
        **clip,
    )
    other = Clip("Other", folder="Raw", link_id=2, create_time="2026-11-19T08:00:00")
    return stage(
        film, other, folders={"Raw", "Playout"}, ids={"handle:7": "Film", "handle:8": "Other"}
    )


def task(title: str, name: str = "left_out.yml", **args: Any) -> Intent:
    return asset_intent({"title": title, **args}, file=name)


def naming(ref: Ref, **args: Any) -> Intent:
    return structs.replace(task("-", **args), ref=ref)


def marked(title: str) -> Intent:
    return task(title, markers=[BREAK])


EXACTLY = task("Film", "task.yml", markers=[START], exactly=["markers"])
REMOVED = "the marker at 100 (Cue Point) is removed by the task 'task.yml'"


def error_of(found: Survey) -> str:
    (target,) = found.targets
    return target.error or ""


def every(where: Any = None) -> SelectRef:
    return SelectRef("NEWS", ("Raw",), where=where)


@pytest.mark.parametrize(
    "ref", [every(), every(lambda facts: facts.get("frames") == 250), IdRef("NEWS", "handle", "7")]
)
def test_exactly_removes_nothing_that_is_named_by_a_select_or_an_id(ref: Ref) -> None:
    context = house()
    error = error_of(context.plan(EXACTLY, left_out=(naming(ref, markers=[BREAK]),)))
    assert REMOVED in error
    assert "asset Other" not in context.reader.asked


@pytest.mark.parametrize(
    "ref",
    [
        every(lambda facts: facts.get("title") != "Film"),
        every(lambda facts: facts.get("hires") == ""),
        SelectRef("NEWS", ("Nowhere",)),
        IdRef("NEWS", "handle", "8"),
    ],
)
def test_what_names_another_clip_protects_nothing(ref: Ref) -> None:
    context = house()
    found = context.plan(EXACTLY, left_out=(naming(ref, markers=[BREAK]), marked("Other")))
    assert [change.key for target in found.targets for change in target.changes] == ["uid 2"]
    assert "asset Other" not in context.reader.asked


def test_facts_that_the_plan_does_not_need_are_read_only_where_something_is_lost() -> None:
    def evaluate(facts: Facts) -> Desired | None:
        return marked("Film").evaluate(facts) if facts.get("frames") and facts.get("xmp") else None

    left_out = (structs.replace(marked("Film"), evaluate=evaluate),)
    context = house(xmp={"dc:a": ["1"]})
    (target,) = context.plan(
        task("Film", "task.yml", fields={"comment": "x"}), left_out=left_out
    ).targets
    assert (target.error, target.depends_on.names, context.reader.asked) == (
        None,
        (),
        ["asset Film"],
    )
    assert REMOVED in error_of(context.plan(EXACTLY, left_out=left_out))


def test_the_plan_is_the_same_where_nothing_contradicts() -> None:
    agreed = task("Film", "task.yml", markers=[START], exactly=["markers"], fields={"comment": "x"})
    left_out = [
        task(name, markers=[START], fields={"user_1": "y"}) for name in ("Film", "Film on air")
    ]
    left_out += [
        naming(ref, markers=[START], xmp={"dc:a": ["1"]})
        for ref in (every(), IdRef("NEWS", "handle", "7"))
    ]
    (alone,) = house().plan(agreed).targets
    (target,) = house().plan(agreed, left_out=tuple(left_out)).targets
    assert target.error is None
    assert (target.changes, target.requests, target.id) == (alone.changes, alone.requests, alone.id)


def failing(title: str) -> Intent:
    def evaluate(_: Facts) -> Desired | None:
        raise InputError([Problem("'fps' is undefined", SourceLocation("news.yml", 3, 7))])

    return structs.replace(task(title), evaluate=evaluate)


def test_a_target_in_error_protects_the_clip_under_its_other_name() -> None:
    found = house().plan(EXACTLY, failing("Film on air"), marked("Film on air"))
    assert "news.yml:3:7" in error_of(found)


def test_a_glob_that_is_given_twice_is_named_once() -> None:
    (warning,) = TargetChoice(["EP*", "EP*"]).warnings
    assert warning.startswith("--target narrows this plan to 'EP*';")
