"""The link fields of a link, set by its own title: what is sent, read back, remembered, refused and taken back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msauto.applying.states import RetryPolicy
from msauto.simulator import Fault, ServerState, Simulator, empty_state
from tests.stage import Stage

PLACE = {"folder": "Playout/Tonight", "title": "Film tonight"}


@pytest.fixture
def sim() -> Iterator[Simulator]:
    state = empty_state()
    news = state.databases["NEWS"]
    news.make_folder("Playout/Tonight")
    news.make_folder("Archive")
    clip = news.add_clip("Film", "Raw", frames=500)
    clip.home.fields.update(comment="of the clip")
    news.add_clip("Another", "Raw", frames=100)
    with Simulator(state=state) as running:
        yield running


@pytest.fixture
def stage(sim: Simulator, tmp_path: Path) -> Stage:
    return Stage(sim, tmp_path)


def film(*links: dict[str, Any], **args: Any) -> dict[str, Any]:
    return {"name": "Place it", "asset": {"title": "Film", "links": list(links), **args}}


def entry_fields(sim: Simulator, folder: str, title: str) -> dict[str, str]:
    found = sim.state.databases["NEWS"].folder(folder)
    assert found is not None
    (entry,) = (entry for entry in found.entries.values() if entry.title == title)
    return dict(entry.fields)


def error_of(stage: Stage, task: dict[str, Any]) -> str:
    (target,) = stage.plan(task).targets
    assert target.error is not None
    assert "playbook.yml:" in target.error
    return target.error


def sent(sim: Simulator) -> list[str]:
    return [
        entry.target.partition("?")[0].rpartition("@")[2] + " " + entry.target.partition("?command=")[2]
        for entry in sim.writes()
    ]


@pytest.mark.parametrize("shown", ["reported", "reported_when_set", "hidden"])
def test_a_new_link_and_then_its_fields(sim: Simulator, stage: Stage, shown: str) -> None:
    sim.dialect = sim.dialect.with_values({"link_fields": shown})
    task = film({**PLACE, "comment": "On air", "layer": "2", "user_3": "", "icon_pos": "00:00:01:00"})
    assert stage.apply(task).ok
    assert sent(sim) == [
        "Film COPYLINK&title=Film%20tonight&folder=Playout%2FTonight",
        "Film%20tonight SETFIELD&name=comment&val=On%20air",
        "Film%20tonight SETFIELD&name=icon_pos&val=25",
        "Film%20tonight SETFIELD&name=layer&val=2",
    ]
    assert entry_fields(sim, "Playout/Tonight", "Film tonight") == {"comment": "On air", "layer": "2", "icon_pos": "25"}
    assert sim.state.databases["NEWS"].clip("Film").home.fields == {"comment": "of the clip"}
    again = stage.plan(task)
    assert again.requests == (1 if shown == "hidden" else 0)  # what nobody knows of is written once: user_3
    assert stage.apply(task).ok
    assert stage.plan(task).requests == 0
    changed = film({**PLACE, "comment": "", "layer": "2"})
    sim.clear_log()
    assert stage.apply(changed).ok
    assert sent(sim) == ["Film%20tonight SETFIELD&name=comment&val="]
    assert stage.plan(changed).requests == 0


@pytest.mark.parametrize("shown", ["reported", "reported_when_set", "hidden"])
def test_fields_are_taken_back(sim: Simulator, stage: Stage, shown: str) -> None:
    sim.dialect = sim.dialect.with_values({"link_fields": shown})
    assert stage.apply(film({**PLACE, "comment": "one", "layer": "2"})).ok
    assert stage.apply(film({**PLACE, "comment": "two", "layer": "3"})).ok
    assert stage.undo().ok
    assert entry_fields(sim, "Playout/Tonight", "Film tonight") == {"comment": "one", "layer": "2"}


def test_a_field_changed_since_is_left_alone_by_undo(sim: Simulator, stage: Stage) -> None:
    assert stage.apply(film({**PLACE, "comment": "one", "layer": "2"})).ok
    assert stage.apply(film({**PLACE, "comment": "two", "layer": "3"})).ok
    folder = sim.state.databases["NEWS"].folder("Playout/Tonight")
    assert folder is not None
    next(iter(folder.entries.values())).fields["comment"] = "by hand"
    plan = stage.undo(dry=True)
    assert plan.requests == 0, "a link is one item"
    assert any("link Playout/Tonight/Film tonight is left alone" in warning for warning in plan.warnings)


def test_two_tasks_say_one_link(stage: Stage) -> None:
    one, two = film({**PLACE, "comment": "x"}), film({**PLACE, "layer": "2"})
    assert stage.plan(one, two).requests == 3
    assert "two tasks declare different values" in error_of_two(stage, one, film({**PLACE, "comment": "y"}))


def error_of_two(stage: Stage, *tasks: dict[str, Any]) -> str:
    (target,) = stage.plan(*tasks).targets
    return target.error or ""


def test_a_link_with_the_assets_own_title_is_refused(stage: Stage) -> None:
    for link in ({"folder": "Archive", "comment": "x"}, {"folder": "Archive", "title": "Film", "comment": "x"}):
        assert "has the asset's own title, which leads to the asset: its fields cannot be set" in error_of(
            stage, film(link)
        )


def test_a_title_that_leads_to_another_clip_is_refused(sim: Simulator, stage: Stage) -> None:
    link = {"folder": "Playout/Tonight", "title": "Another", "comment": "x"}
    assert "another entry has its title already" in error_of(stage, film(link))
    news = sim.state.databases["NEWS"]
    news.add_entry(news.clip("Film"), "Playout/Tonight", "Another")
    assert "cannot be set: another clip has its title" in error_of(stage, film(link))
    assert stage.plan(film({"folder": "Playout/Tonight", "title": "Another"})).requests == 0


def test_a_title_of_two_links_is_refused_for_the_second(sim: Simulator, stage: Stage) -> None:
    news = sim.state.databases["NEWS"]
    news.add_entry(news.clip("Film"), "Archive", "Film tonight")
    news.add_entry(news.clip("Film"), "Playout/Tonight", "Film tonight")
    assert "leads to another entry" in error_of(stage, film({**PLACE, "comment": "x"}))
    assert stage.plan(film({"folder": "Archive", "title": "Film tonight", "comment": "x"})).requests == 1


def test_positions_of_a_link_stay_within_the_clip(stage: Stage) -> None:
    assert "lies beyond the end" in error_of(stage, film({**PLACE, "last_frame": 501}))


def test_an_absent_link_has_no_fields(stage: Stage) -> None:
    assert "has no fields" in error_of(stage, film({**PLACE, "state": "absent", "comment": "x"}))


# A field that the server does not take -----------------------------------------------------------------------------


def described(**fields: str) -> dict[str, Any]:
    return {"name": "Describe", "asset": {"title": "Film", "fields": fields}}


@pytest.mark.parametrize(
    "task", [described(comment="Ready", user_3="x"), film({**PLACE, "comment": "On air", "user_3": "x"})]
)
def test_a_first_value_that_is_not_shown_beside_others_is_told_and_sent_again(
    sim: Simulator, stage: Stage, task: dict[str, Any]
) -> None:
    sim.dialect = sim.dialect.with_values({"link_fields": "reported_when_set"})
    sim.faults.add("swallow@SETFIELD&name=user_3")
    stage.policy = RetryPolicy(read_pauses=())
    result = stage.apply(task)
    assert not result.ok
    (difference,) = result.targets[0].differences
    live = difference.live
    assert (live["user_3"] if isinstance(live, dict) else live) == ""
    sim.faults.clear()
    assert stage.plan(task).requests == 1
    assert stage.apply(task).ok
    assert stage.plan(task).requests == 0


def test_a_value_known_from_the_ledger_alone_is_sent_again_once_other_fields_show(sim: Simulator, stage: Stage) -> None:
    sim.dialect = sim.dialect.with_values({"link_fields": "reported_when_set"})
    sim.state.databases["NEWS"].clip("Film").home.fields.clear()
    sim.faults.add("swallow@SETFIELD&name=user_3*1")
    assert stage.apply(described(user_3="x")).ok  # the answers show no field at all
    assert stage.plan(described(user_3="x")).requests == 0
    assert stage.apply(described(comment="Ready")).ok
    assert stage.plan(described(user_3="x")).requests == 1


def test_what_is_not_shown_because_it_is_empty_or_the_default_is_done(sim: Simulator, stage: Stage) -> None:
    sim.dialect = sim.dialect.with_values({"link_fields": "reported_when_set"})
    sim.faults.add("swallow@SETFIELD&name=layer")  # as if layer 0 were not shown
    task = described(comment="Ready", user_3="", layer="0")
    assert stage.apply(task).ok
    assert stage.plan(task).requests == 0
    assert stage.apply(described(comment="", user_3="")).ok


def test_a_server_that_shows_no_field_is_compared_with_the_ledger(sim: Simulator, stage: Stage) -> None:
    sim.dialect = sim.dialect.with_values({"link_fields": "hidden"})
    task = described(comment="Ready", user_3="x", last_frame="400")
    assert stage.apply(task).ok
    assert stage.plan(task).requests == 0


# The entry of another clip -----------------------------------------------------------------------------------------


def take_the_place(state: ServerState) -> None:
    """Another user puts a clip of the link's title where the link is to be."""
    state.databases["NEWS"].add_clip("Film tonight", PLACE["folder"], frames=7)


@pytest.mark.parametrize("fields", [{}, {"comment": "On air"}])
def test_a_link_that_was_not_made_where_another_clip_is_by_now(
    sim: Simulator, stage: Stage, fields: dict[str, str]
) -> None:
    stage.policy = RetryPolicy(read_pauses=())
    sim.faults.add("swallow@COPYLINK", Fault("COPYLINK", "before", change=take_the_place))
    result = stage.apply(film({**PLACE, **fields}))
    assert sent(sim) == ["Film COPYLINK&title=Film%20tonight&folder=Playout%2FTonight"]
    assert result.targets[0].outcome == "failed"
    (difference,) = result.targets[0].differences
    assert (difference.desired, difference.live) == (
        {"entries": 1}, {"link_id": 3, "entries": 0, "other_clip": "orig_name, frames"}
    )  # fmt: skip
    assert entry_fields(sim, PLACE["folder"], "Film tonight") == {}
