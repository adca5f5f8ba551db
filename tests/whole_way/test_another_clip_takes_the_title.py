"""Whole way: another user changes the server while msauto applies, so that a title leads to another clip."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from msauto.api.stages import apply_plan
from msauto.api.workplace import StageContext
from msauto.applying.states import RetryPolicy
from msauto.concurrency import SystemClock
from msauto.ledger.ledger import Ledger
from msauto.model.events import ignore
from msauto.model.result import TargetResult
from msauto.simulator import Fault, ServerState, SimClip, SimMarker, Simulator, empty_state
from tests.stage import Stage, lines

FILM = "/storage/NEWS@Film"


@pytest.fixture
def sim() -> Iterator[Simulator]:
    state = empty_state()
    news = state.databases["NEWS"]
    news.make_folder("Playout")
    news.add_clip("Film", "Raw", frames=100, create_time="2026-11-13T10:00:00")
    news.add_clip("Twin", "Raw", frames=100, create_time="2026-11-13T10:00:00", orig_name="Film")
    with Simulator(state=state) as simulator:
        yield simulator


@pytest.fixture
def stage(sim: Simulator, tmp_path: Path) -> Stage:
    return Stage(sim, tmp_path)


def film(**desired: Any) -> dict[str, Any]:
    return {"name": "A task", "asset": {"title": "Film", **desired}}


DESCRIBED = film(fields={"comment": "Ready", "user_1": "one", "user_2": "two"})
DELETED = film(state="absent")


def applied(stage: Stage, task: dict[str, Any], *faults: str | Fault) -> TargetResult:
    stage.plan(task)
    stage.sim.faults.add(*faults)
    (target,) = stage.apply(task).targets
    stage.sim.faults.clear()
    return target


def by_id(sim: Simulator, link_id: int) -> SimClip | None:
    entries = sim.state.databases["NEWS"].root.walk()
    return next((entry.clip for entry in entries if entry.link_id == link_id), None)


# Writes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("swap", "reached"),
    [
        ("before:swap:Film:Twin@SETFIELD*1", "requests 1 to 3"),
        ("before:swap:Film:Twin@SETFIELD*1+1", "requests 1 to 3"),
        ("after:swap:Film:Twin@SETFIELD*1+2", "requests 1 to 3"),
    ],
    ids=["before the first write", "between two writes", "after the last write"],
)
def test_a_swap_is_told_and_nothing_is_verified(stage: Stage, swap: str, reached: str) -> None:
    target = applied(stage, DESCRIBED, swap)
    assert target.outcome == "failed"
    assert "another clip now has this title (created 2026-11-13T10:00:00, 100 frames, link_id 2)" in target.message
    assert f"{reached} may have reached it" in target.message
    assert target.seen == 0
    # Nothing of it is remembered: the next run writes to the clip that has the title now.
    again = stage.plan(film(fields={"comment": "Other"}))
    assert again.targets[0].changes[0].basis == "live"


def test_a_clip_that_is_recorded_anew_is_another_clip(stage: Stage) -> None:
    target = applied(stage, DESCRIBED, "before:rerecord:Film@SETFIELD*1+1")
    assert (target.outcome, "another clip now has this title" in target.message) == ("failed", True)


def test_a_swap_is_seen_while_an_answer_is_settled(stage: Stage) -> None:
    target = applied(stage, DESCRIBED, "before:swap:Film:Twin@SETFIELD*1", "status:503@SETFIELD*1")
    assert target.outcome == "failed"
    assert "another clip now has this title" in target.message
    assert len(stage.sent()) == 1  # it is not sent again


def test_values_that_are_not_reported_are_not_remembered_for_another_clip(stage: Stage) -> None:
    stage.sim.dialect = stage.sim.dialect.with_values({"link_fields": "hidden"})
    target = applied(stage, film(fields={"comment": "Ready"}), "before:swap:Film:Twin@SETFIELD*1")
    assert (target.outcome, "another clip" in target.message) == ("failed", True)
    news = stage.sim.state.databases["NEWS"]
    news.remove_clip(news.clip("Film"))
    news.change_entry(news.clip("Twin").home, title="Film")  # the clip that was planned has its title again
    assert stage.plan(film(fields={"comment": "Ready"})).requests == 1


def test_a_command_that_may_have_reached_another_clip_is_in_doubt(stage: Stage) -> None:
    task = {"name": "A task", "command": {"name": "PARTNER_EXPORT_VERSION", "title": "Film", "run": "once"}}
    target = applied(stage, task, "before:swap:Film:Twin@EXPORT*1")
    assert (target.outcome, "another clip" in target.message) == ("failed", True)


@pytest.mark.parametrize(
    "task",
    [
        film(fields={"comment": "Ready", "first_frame": 10, "last_frame": 80, "type": "x"}),
        film(links=[{"folder": "Playout"}]),
        film(links=[{"folder": "Playout"}], fields={"comment": "Ready"}),
        {"name": "A task", "asset": {"title": "Feature", "was": ["Film"], "fields": {"comment": "Ready"}}},
    ],
    ids=["in and out points", "a link of the same title", "a link and a field", "renamed"],
)
@pytest.mark.parametrize("omitted", [(), ("create_time",), ("create_time", "frames", "orig_name", "frame_time")])
def test_what_a_run_changes_itself_is_no_other_clip(
    stage: Stage, task: dict[str, Any], omitted: tuple[str, ...]
) -> None:
    for clip in stage.sim.state.databases["NEWS"].clips():
        clip.omitted = omitted
    if omitted[1:] and "first_frame" in task["asset"].get("fields", {}):
        pytest.skip("positions need a length")
    assert stage.apply(task).ok


def test_a_restored_file_is_no_other_clip(stage: Stage) -> None:
    clip = stage.sim.state.clip("Film")
    clip.online, clip.archive = False, "$(archive_path)/film.mxf"
    assert stage.apply(film(restore={"wait": "2s"})).ok


def test_a_clip_that_is_being_recorded_may_grow(stage: Stage) -> None:
    clip = stage.sim.state.clip("Film")
    clip.finalized = False
    grow = Fault("SETFIELD", "before", change=lambda _: setattr(clip, "frames", clip.frames + 25))
    assert applied(stage, film(unfinalized="allow", fields={"comment": "Ready"}), grow).outcome == "changed"


# Deletions -------------------------------------------------------------------------------------------------------


def add_namesake(state: ServerState) -> None:
    """Another user puts a clip with the same title in another folder."""
    state.databases["NEWS"].add_clip("Film", "Other", frames=100)


def namesake(when: str, match: str) -> Fault:
    return Fault(match, when, times=1, change=add_namesake)


def test_a_deletion_does_not_take_a_clip_that_took_the_title(stage: Stage) -> None:
    target = applied(stage, DELETED, "before:swap:Film:Twin@GET .*@Film*1+1")
    assert (target.outcome, stage.sent()) == ("not attempted", [])
    assert "another clip now has this title" in target.message
    assert by_id(stage.sim, 1)
    assert by_id(stage.sim, 2)


def test_a_deletion_does_not_take_a_clip_that_was_moved(stage: Stage) -> None:
    def move(state: ServerState) -> None:
        news = state.databases["NEWS"]
        news.change_entry(news.clip("Film").home, folder=("Master",))

    target = applied(stage, DELETED, Fault("GET .*@Film", "before", times=1, after=1, change=move))
    assert (target.outcome, stage.sent()) == ("not attempted", [])
    assert "changed since it was planned: it is in 'Master', and was in 'Raw'" in target.message


def test_a_deletion_does_not_take_a_clip_that_got_a_link(stage: Stage) -> None:
    def link(state: ServerState) -> None:
        news = state.databases["NEWS"]
        news.add_entry(news.clip("Film"), "Playout", "Film tonight")

    target = applied(stage, DELETED, Fault("GET /storage/NEWS$", "before", times=1, after=1, change=link))
    assert (target.outcome, stage.sent()) == ("not attempted", [])
    assert "changed since it was planned: Playout/Film tonight shows it, too" in target.message


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_twin_is_no_sign_that_a_deletion_was_not_done(stage: Stage, status: int, when: str) -> None:
    target = applied(stage, DELETED, namesake(when, "DELETE"), f"done_status:{status}@DELETE*1")
    assert target.outcome == "changed"
    assert len(stage.sent()) == 1, target.message
    assert by_id(stage.sim, 1) is None
    assert by_id(stage.sim, 3) is not None


@pytest.mark.parametrize("status", [429, 503])
def test_a_deletion_that_was_not_done_is_sent_again(stage: Stage, status: int) -> None:
    assert applied(stage, DELETED, f"status:{status}@DELETE*1").outcome == "changed"
    assert len(stage.sent()) == 2
    assert by_id(stage.sim, 1) is None


@pytest.mark.parametrize("status", [429, 503])
def test_a_deletion_that_may_take_a_twin_is_not_sent_again(stage: Stage, status: int) -> None:
    """The server deletes late: what it shows leaves open whether the title still means the planned clip."""
    stage.policy = RetryPolicy(backoff=(0.01,), read_pauses=(0.02, 0.1))
    target = applied(stage, DELETED, namesake("after", "DELETE"), f"lag:1:{status}@DELETE*1")
    assert len(stage.sent()) == 1, target.message
    assert target.outcome == "unverified"
    assert "not sent again: " in target.message


@pytest.mark.parametrize("status", [429, 503])
def test_without_anything_that_tells_clips_apart_a_deletion_is_not_sent_again(stage: Stage, status: int) -> None:
    """All entries have one ``link_id``, and nothing else is reported."""
    bare = ("create_time", "frames", "orig_name", "frame_time")
    for clip in stage.sim.state.databases["NEWS"].clips():
        clip.omitted, clip.online = bare, False

    def twin(state: ServerState) -> None:
        state.databases["NEWS"].add_entry(SimClip(omitted=bare, online=False), "Other", "Film", link_id=1)

    deleted = film(folder="Raw", state="absent", with_links=True)  # any entry may be a link, or the clip
    target = applied(stage, deleted, Fault("DELETE", "after", times=1, change=twin), f"done_status:{status}@DELETE*1")
    assert len(stage.sent()) == 1, target.message
    assert target.outcome == "unverified"


def test_a_clip_that_was_renamed_is_not_called_deleted(stage: Stage) -> None:
    target = applied(stage, DELETED, "before:rename:Film:Kept@DELETE*1")
    assert target.outcome != "changed"
    assert by_id(stage.sim, 1) is not None


def test_no_removal_is_verified_where_no_clip_has_the_title(stage: Stage) -> None:
    clip = stage.sim.state.clip("Film")
    clip.markers = [SimMarker(1, 10, {"title": "Old"})]
    task = film(markers=[], exactly=["markers"])
    result = applied(stage, task, "before:rename:Film:Gone@POST", "cut_after@POST")
    assert result.outcome == "unverified"
    assert len(clip.markers) == 1


def test_a_deleted_link_is_read_again_as_well(stage: Stage) -> None:
    news = stage.sim.state.databases["NEWS"]
    news.add_entry(news.clip("Film"), "Playout", "Film tonight")
    stage.dialect = {"link_delete": "by_title"}
    task = film(links=[{"folder": "Playout", "title": "Film tonight", "state": "absent"}])
    target = applied(stage, task, "after:swap:Film tonight:Twin@GET .*Film%20tonight*1")
    assert (target.outcome, lines(stage.sent())) == ("not attempted", [])
    assert by_id(stage.sim, 2)


# What was read long ago ------------------------------------------------------------------------------------------


def late(stage: Stage, task: dict[str, Any], change: Any, *, after: float) -> TargetResult:
    """Plan, let time pass in which another user changes the server, and apply."""
    plan = stage.plan(task)
    assert plan.read_since is not None
    change(stage.sim.state)
    plan = structs.replace(plan, read_since=plan.read_since - timedelta(seconds=after))
    with Ledger.open(stage.place) as ledger:
        context = StageContext(ledger, stage.resolved(task), SystemClock(), forks=8)
        (target,) = asyncio.run(apply_plan(plan, context, ignore)).targets
    return target


def edit(state: ServerState) -> None:
    state.clip("Film").home.fields["comment"] = "theirs"


def swap(state: ServerState) -> None:
    news = state.databases["NEWS"]
    film, twin = news.clip("Film").home, news.clip("Twin").home
    news.change_entry(film, title="Twin")
    news.change_entry(twin, title="Film")


@pytest.mark.parametrize(
    ("change", "why"), [(edit, "field comment was '', is 'theirs'"), (swap, "another clip now has this title (created")]
)
def test_what_was_read_a_minute_ago_is_read_again_before_the_first_write(stage: Stage, change: Any, why: str) -> None:
    target = late(stage, DESCRIBED, change, after=61)
    assert (target.outcome, stage.sent()) == ("not attempted", [])
    assert why in target.message


def test_a_long_run_goes_on_where_nothing_changed(stage: Stage) -> None:
    grown = stage.sim.state.clip("Film")
    grown.finalized = False
    task = film(unfinalized="allow", fields={"comment": "Ready"}, markers=[{"at": 3}])
    assert late(stage, task, lambda _: setattr(grown, "frames", 130), after=61).outcome == "changed"


def test_what_was_read_just_now_is_not_read_again(stage: Stage) -> None:
    stage.sim.clear_log()
    assert late(stage, DESCRIBED, lambda _: None, after=0).outcome == "changed"
    assert stage.reads() == [FILM, FILM]  # once when it was planned, once when it was verified


def test_a_folder_named_like_its_database_is_no_change(stage: Stage) -> None:
    news = stage.sim.state.databases["NEWS"]
    news.change_entry(news.clip("Film").home, folder=("NEWS", "Raw"))
    task = film(folder="NEWS/Raw", fields={"comment": "Ready"})
    assert late(stage, task, lambda _: None, after=61).outcome == "changed"
