"""Any server: the story on a set of dialects in which every two answers to every two unknowns meet.

In every row, a reported value is compared with the answer, a hidden one with what we last wrote (the ledger's rule).
The end is right, a second plan is empty, planning writes nothing, and what the contract refuses is refused.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from msauto.errors import InputError
from msauto.model.plan import Plan
from msauto.model.server import Dialect
from msauto.plugins.simulator.embedded import SimDialect, Simulator
from tests.dialects.fitting import (
    APART,
    FITTING,
    LOOKS_AT,
    ours_of,
    parameters,
    possible,
    rows,
    server_of,
)
from tests.dialects.pairwise import Row, all_pairs, pairs_of
from tests.dialects.story import FILM, LINK, STORY, check_end, put_story
from tests.stage import Stage, lines

pytestmark = pytest.mark.scale

ROWS = rows()


def test_every_pair_is_covered() -> None:
    pairs = set(all_pairs(parameters()))
    desired = {pair for pair in pairs if possible(dict(pair))}
    met = {pair for row in ROWS for pair in pairs_of(row)}
    assert desired == met
    assert all(possible(row) for row in ROWS)
    assert len(ROWS) < 80
    assert not desired <= {pair for row in ROWS[:-1] for pair in pairs_of(row)}, "a row too many"


def test_only_what_does_not_fit_is_left_out() -> None:
    """A pair without a row has a value of a key that no server with that switch, or that other key, can have."""
    for pair in set(all_pairs(parameters())):
        if not possible(dict(pair)):
            keys = [name.removeprefix("our_") for name, _ in pair if name.startswith("our_")]
            assert keys, pair
            switches = {switch for key in keys for switch in LOOKS_AT.get(key, (key,))}
            assert {name for name, _ in pair if not name.startswith("our_")} <= switches, pair


def test_every_switch_and_every_key_takes_part() -> None:
    free_text = {name for name, values in SimDialect.choices().items() if not values}
    assert parameters().keys() >= SimDialect.choices().keys() - free_text - APART
    assert free_text == {"list_separator", "line_limit", "auth_secret"}
    # shows_after is a time, and fits none of the switches: the faults `lag` and `deferred` show late.
    assert FITTING.keys() | {"shows_after"} == {field.name for field in fields(Dialect)}
    assert all(set(row) == set(parameters()) for row in ROWS)


def test_every_value_of_our_keys_is_taken_by_some_row() -> None:
    for name, values in parameters().items():
        if name.startswith("our_"):
            assert {ours_of(row)[name.removeprefix("our_")] for row in ROWS} == set(values), name


def play(row: Row, sim: Simulator, folder: Path) -> None:
    """Play the story on a row."""
    server, ours = server_of(row), ours_of(row)
    put_story(sim, server)
    stage = Stage(sim, folder, ours)
    plan = stage.plan(*STORY)
    assert not plan.errors, told(plan)
    assert not sim.writes()
    check_bases(plan, server, ours)
    result = stage.apply(*STORY)
    failed = [each for each in result.targets if each.outcome != "changed"]
    assert result.ok, [
        (each.target.name, each.outcome, each.message, each.differences) for each in failed
    ]
    check_end(sim)
    check_nothing_left(stage)
    check_refusals(stage, ours)
    check_ways(stage, ours)
    check_nothing_left(stage, *(() if ours["link_delete"] == "refuse" else ("links",)))


def told(plan: Plan) -> list[tuple[str, str | None]]:
    return [(target.name, target.error) for target in plan.targets if target.error]


def check_bases(plan: Plan, server: SimDialect, ours: dict[str, str]) -> None:
    """What the server shows is compared with that; what it hides was never known, and is written once."""
    (film,) = [target for target in plan.targets if target.name == FILM]
    bases = {(change.aspect, change.key): change.basis for change in film.changes}
    assert bases["field", "comment"] == ("none" if server.link_fields == "hidden" else "live")
    assert bases["field", "user_0"] == ("live" if server.link_fields == "reported" else "none")
    readable = server.xmp_shape != "unreadable" and ours["xmp_read"] == "auto"
    assert bases["xmp", "dc:title"] == ("live" if readable else "none")


def check_nothing_left(stage: Stage, *without: str) -> None:
    story = [
        task | {"asset": {key: value for key, value in task["asset"].items() if key not in without}}
        if "asset" in task
        else task
        for task in STORY
    ]
    stage.sim.clear_log()
    plan = stage.plan(*story)
    assert (plan.requests, plan.errors) == (0, 0), [
        (
            target.error,
            [(change.aspect, change.key, change.before, change.after) for change in target.changes],
        )
        for target in plan.targets
    ]
    assert not stage.sent(), lines(stage.sent())


def check_refusals(stage: Stage, ours: dict[str, str]) -> None:
    """What the contract refuses is refused when planning, each target for its own reason."""
    reasons: dict[str, tuple[dict[str, Any], str]] = {
        "Loose": ({"markers": [{"uid": 99, "at": 1}]}, "99"),
        "Sound": ({"links": [{"folder": "No/Such"}]}, "folder_missing"),
        FILM: (
            {"links": [{"folder": "Playout/Tonight", "title": LINK, "state": "absent"}]},
            "link_delete",
        ),
    }
    allowed = {"Sound": ours["folder_missing"] == "create", FILM: ours["link_delete"] == "by_title"}
    reasons = {title: sourced for title, sourced in reasons.items() if not allowed.get(title)}
    stage.sim.clear_log()
    plan = stage.plan(
        *({"asset": {"title": title} | desired} for title, (desired, _) in reasons.items())
    )
    errors = {target.name: target.error or "" for target in plan.targets}
    for title, (_, why) in reasons.items():
        assert why in errors[title], (title, errors)
    with pytest.raises(InputError, match="list_separator"):
        stage.plan(
            {"asset": {"title": "Grid", "xmp": {"dc:title": [f"a{ours['list_separator']}b"]}}}
        )
    assert not stage.sent(), lines(stage.sent())


def check_ways(stage: Stage, ours: dict[str, str]) -> None:
    """Where the dialect names a way, it is gone, and leads there."""
    news = stage.sim.state.databases["NEWS"]
    if ours["folder_missing"] == "create":
        assert stage.apply({"asset": {"title": "Sound", "links": [{"folder": "No/Such"}]}}).ok
        made = news.folder("No/Such")
        assert made is not None
        assert [entry.title for entry in made.entries.values()] == ["Sound"]
    if ours["link_delete"] == "by_title":
        gone = {"folder": "Playout/Tonight", "title": LINK, "state": "absent"}
        assert stage.apply({"asset": {"title": FILM, "folder": "Raw/2026", "links": [gone]}}).ok
        assert [entry.title for entry in news.clip(FILM).entries] == [FILM, FILM]


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_the_story_on_every_pair_of_habits(row: Row, sim: Simulator, tmp_path: Path) -> None:
    play(row, sim, tmp_path)


@pytest.mark.parametrize("seed", range(1, 3))
def test_the_story_on_other_sets(seed: int, sim: Simulator, tmp_path: Path) -> None:
    for number, row in enumerate(rows(seed)):
        folder = tmp_path / str(number)
        folder.mkdir()
        play(row, sim, folder)
