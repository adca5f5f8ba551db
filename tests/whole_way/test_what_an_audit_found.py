"""What an audit found: other people's things that a run hit, and successes without their effect. One test for each.

Each runs over HTTP against a server that another user changes at a chosen moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from msauto.applying.states import RetryPolicy
from msauto.concurrency import SystemClock
from msauto.errors import MsautoError
from msauto.model.plan import Plan
from msauto.model.result import TargetResult
from msauto.simulator import (
    Fault,
    Item,
    ServerState,
    SimChannel,
    SimClip,
    SimMarker,
    SimSegment,
    Simulator,
    empty_state,
)
from msauto.simulator.rss import put_item
from msauto.simulator.state import SimDatabase
from tests.cli.command_line import Desk
from tests.stage import Stage

BUSY = pytest.mark.parametrize("status", [503, 429])
WRITES = "^(POST|PUT|DELETE)"
Change = Callable[[ServerState], object]


@dataclass
class Clock(SystemClock):
    """The real clock, to which a test adds time."""

    passed: timedelta = field(default_factory=timedelta)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.passed

    def monotonic(self) -> float:
        return super().monotonic() + self.passed.total_seconds()


@pytest.fixture
def sim() -> Iterator[Simulator]:
    state = empty_state()
    news = state.databases["NEWS"]
    for folder in ("Playout", "Films", "Master"):
        news.make_folder(folder)
    news.add_clip("Film", "Raw", frames=500)
    news.add_clip("Other", "Raw", frames=300, create_time="2026-11-14T10:00:00")
    state.add_channel("ticker")
    with Simulator(state) as running:
        yield running


@pytest.fixture
def stage(sim: Simulator, tmp_path: Path) -> Stage:
    return Stage(sim, tmp_path, clock=Clock())


# Words of these tests ---------------------------------------------------------------------------------------------


def film(**desired: Any) -> dict[str, Any]:
    return {"name": "The film", "asset": {"title": "Film", **desired}}


def ticker(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "The ticker", "rss": {"channel": "ticker", "items": list(items), **more}}


def news(stage: Stage) -> SimDatabase:
    return stage.sim.state.databases["NEWS"]


def clip(stage: Stage, title: str = "Film") -> SimClip:
    return stage.sim.state.clip(title)


def channel(stage: Stage) -> SimChannel:
    return stage.sim.state.channels["ticker"]


def mark(uid: int, at: int, title: str, track: str = "Cue Point") -> SimMarker:
    return SimMarker(uid, at, {"track": track, "title": title})


def part(number: int, start: int, title: str, duration: int = 10) -> SimSegment:
    return SimSegment(number, start, duration, [title])


def put(stage: Stage, file: str, text: str) -> None:
    """Another user puts an item; a document where the name ends so."""
    put_item(channel(stage), file, text.encode(), stage.sim.dialect)


def marks(stage: Stage) -> list[tuple[int, int, str]]:
    return [(each.uid, each.pos, each.fields.get("title", "")) for each in clip(stage).markers]


def parts(stage: Stage) -> list[tuple[int, int, str]]:
    return [(each.number, each.start, "".join(each.titles)) for each in clip(stage).segments]


def items(stage: Stage) -> list[tuple[str, str, str]]:
    return [(each.guid, each.title, each.description) for each in channel(stage).items]


def sends(stage: Stage, word: str = "") -> int:
    return sum(word in entry.line for entry in stage.sent())


def then(match: str, change: Callable[[], object], when: str = "after", skip: int = 0) -> Fault:
    """What another user does right before or after a request, once."""
    return Fault(match, when, times=1, after=skip, change=lambda _: change())


def applied(stage: Stage, task: dict[str, Any], *faults: str | Fault, **options: Any) -> TargetResult:
    """Plan and apply in one go; faults hold while it is applied."""
    plan = planned(stage, task)
    return finished(stage, plan, task, *faults, **options)


def planned(stage: Stage, *tasks: dict[str, Any]) -> Plan:
    """A plan without errors."""
    plan = stage.plan(*tasks)
    assert not plan.errors, [each.error for each in plan.targets]
    return plan


def finished(stage: Stage, plan: Plan, task: dict[str, Any], *faults: str | Fault, **options: Any) -> TargetResult:
    stage.sim.clear_log()
    assert plan.targets, "nothing to do"
    stage.sim.faults.add(*faults)
    (target,) = stage.applied(plan, stage.resolved(task), **options).targets
    stage.sim.faults.clear()
    return target


def command(stage: Stage, name: str, *arguments: str) -> int:
    """The exit code of a command, in the folder of the stage."""
    desk = Desk(stage.folder / "desk")
    desk.folder = stage.folder  # whose inventory stays
    flags = ("-i", "inventory.yml", "--state-dir", "state", *(["--yes"] if name != "plan" else []))
    return desk.run(name, *arguments, *flags).code


def refused(stage: Stage, *tasks: dict[str, Any]) -> str:
    """Why nothing of this can be planned."""
    try:
        plan = stage.plan(*tasks)
    except MsautoError as error:
        return str(error)
    told = [each.error for each in plan.targets if each.error]
    assert told, [each.changes for each in plan.targets]
    return "\n".join(told)


def undone(stage: Stage) -> None:
    stage.sim.clear_log()
    stage.undo("last")


# A write was done and rejected, and its key is given again ----------------------------------------------------------


@BUSY
def test_a_deleted_marker_whose_uid_somebody_gets(stage: Stage, status: int) -> None:
    clip(stage).markers = [mark(1, 10, "one"), mark(2, 20, "old")]
    again = then("DELETEMARKER", lambda: clip(stage).markers.append(mark(2, 70, "theirs")))
    target = applied(
        stage, film(markers=[{"uid": 2, "state": "absent"}]), again, f"done_status:{status}@DELETEMARKER*1"
    )
    assert marks(stage) == [(1, 10, "one"), (2, 70, "theirs")]
    assert (sends(stage), target.outcome) == (1, "unverified")


@BUSY
def test_a_deleted_segment_whose_number_somebody_takes(stage: Stage, status: int) -> None:
    clip(stage).segments = [part(1, 0, "one"), part(2, 20, "old")]
    again = then("DELETESEGMENT", lambda: clip(stage).segments.append(part(2, 70, "theirs")))
    task = film(segments=[{"number": 2, "state": "absent"}])
    target = applied(stage, task, again, f"done_status:{status}@DELETESEGMENT*1")
    assert parts(stage) == [(1, 0, "one"), (2, 70, "theirs")]
    assert (sends(stage), target.outcome) == (1, "unverified")


@BUSY
def test_a_deleted_item_whose_guid_somebody_takes(stage: Stage, status: int) -> None:
    put(stage, "n-1.txt", "old")
    again = then("^DELETE", lambda: put(stage, "n-1.txt", "theirs"))
    target = applied(stage, ticker({"guid": "n-1", "state": "absent"}), again, f"done_status:{status}@^DELETE*1")
    assert items(stage) == [("n-1", "theirs", "theirs")]
    assert (sends(stage), target.outcome) == (1, "unverified")


@BUSY
def test_a_changed_marker_whose_uid_somebody_gets(stage: Stage, status: int) -> None:
    clip(stage).markers = [mark(1, 10, "one"), mark(2, 20, "old")]

    def replace() -> None:
        clip(stage).markers[1] = mark(2, 70, "theirs")

    task = film(markers=[{"uid": 2, "title": "new"}])
    target = applied(stage, task, then("CREATEMARKER", replace), f"done_status:{status}@CREATEMARKER*1")
    assert marks(stage) == [(1, 10, "one"), (2, 70, "theirs")]
    assert (sends(stage), target.outcome) == (1, "unverified")


# After a rejection there is a newer value of somebody --------------------------------------------------------------


@BUSY
def test_a_newer_field_is_not_overwritten_by_the_second_send(stage: Stage, status: int) -> None:
    edit = then("SETFIELD", lambda: clip(stage).home.fields.update(comment="theirs"))
    target = applied(stage, film(fields={"comment": "ours"}), edit, f"status:{status}@SETFIELD*1")
    assert clip(stage).home.fields == {"comment": "theirs"}
    assert (sends(stage), target.outcome) == (1, "unverified")


@BUSY
def test_a_newer_xmp_field_is_not_overwritten_by_the_second_send(stage: Stage, status: int) -> None:
    edit = then("SETUSERFIELDS", lambda: clip(stage).xmp.update({"dc:subject": ["theirs"]}))
    target = applied(stage, film(xmp={"dc:subject": ["ours"]}), edit, f"status:{status}@SETUSERFIELDS*1")
    assert clip(stage).xmp == {"dc:subject": ["theirs"]}
    assert (sends(stage), target.outcome) == (1, "unverified")


@BUSY
def test_a_newer_marker_is_not_overwritten_by_the_second_send(stage: Stage, status: int) -> None:
    clip(stage).markers = [mark(2, 20, "old")]
    edit = then("CREATEMARKER", lambda: clip(stage).markers[0].fields.update(title="theirs"))
    task = film(markers=[{"at": 20, "track": "Cue Point", "title": "ours"}])
    target = applied(stage, task, edit, f"status:{status}@CREATEMARKER*1")
    assert marks(stage) == [(2, 20, "theirs")]
    assert (sends(stage), target.outcome) == (1, "unverified")


# Something equal of somebody --------------------------------------------------------------------------------------


LIKE: dict[str, tuple[dict[str, Any], Callable[[Stage], object], Callable[[Stage], int]]] = {
    "marker": (
        film(markers=[{"at": 20, "track": "Cue Point", "title": "Ad"}]),
        lambda stage: clip(stage).markers.append(mark(clip(stage).new_uid(), 20, "Ad")),
        lambda stage: len(clip(stage).markers),
    ),
    "segment": (
        film(segments=[{"number": 1, "start": 20, "duration": 10, "title": "Part"}]),
        lambda stage: clip(stage).segments.append(part(1, 20, "Part")),
        lambda stage: len(clip(stage).segments),
    ),
    "link": (
        film(links=[{"folder": "Playout", "title": "Film tonight"}]),
        lambda stage: news(stage).add_entry(clip(stage), "Playout", "Film tonight"),
        lambda stage: len(clip(stage).entries) - 1,
    ),
    "item": (
        ticker({"guid": "n-1", "file": "n-1.txt", "text": "Flash"}),
        lambda stage: put(stage, "n-1.txt", "Flash"),
        lambda stage: len(channel(stage).items),
    ),
}
EQUAL = pytest.mark.parametrize("kind", LIKE)


@BUSY
@EQUAL
def test_what_somebody_made_after_a_rejection_stays_theirs(stage: Stage, kind: str, status: int) -> None:
    stage.dialect = {"link_delete": "by_title"}
    task, make, count = LIKE[kind]
    applied(stage, task, then(WRITES, lambda: make(stage)), f"status:{status}@{WRITES}*1")
    assert (sends(stage), count(stage)) == (1, 1)
    undone(stage)
    assert (sends(stage), count(stage)) == (0, 1)


@pytest.mark.parametrize("kind", [pytest.param("marker"), "segment", "link"])
def test_of_two_equal_things_nobody_knows_which_is_ours(stage: Stage, kind: str) -> None:
    stage.sim.dialect = stage.sim.dialect.with_values({"segment_update": "duplicate"})
    stage.dialect = {"link_delete": "by_title"}
    task, make, count = LIKE[kind]
    target = applied(stage, task, then(WRITES, lambda: make(stage), when="before"))
    assert (target.outcome in ("unverified", "failed"), count(stage)) == (True, 2)
    undone(stage)
    assert (sends(stage), count(stage)) == (0, 2)


@pytest.mark.parametrize("kind", ["marker", "item"])
def test_what_somebody_made_after_a_kill_stays_theirs(stage: Stage, kind: str) -> None:
    task, make, count = LIKE[kind]
    stage.sim.faults.add(f"status:503:60@{WRITES}")  # rejected: nothing is done
    stage.killed(task, when=lambda: sends(stage) > 0)
    stage.sim.faults.clear()
    make(stage)
    stage.sim.clear_log()
    assert command(stage, "apply", "playbook.yml") == 0
    command(stage, "undo", stage.runs()[-1])
    assert (sends(stage), count(stage)) == (0, 1)


# RSS items ---------------------------------------------------------------------------------------------------------


def test_an_item_of_an_agency_with_our_text_is_not_learned_as_ours(stage: Stage) -> None:
    ours = {"guid": "n-1", "file": "n-1.txt", "text": "Flash"}
    agency = then("^PUT", lambda: channel(stage).items.append(Item("a.txt", b"Flash", "agency-7", "Flash", "Flash")))
    applied(stage, ticker(ours), agency, "swallow@^PUT*1")
    assert stage.apply(ticker({"guid": "n-1", "state": "absent"})).ok
    assert [guid for guid, _, _ in items(stage)] == ["agency-7"]


DOCUMENT = (
    "<item><guid>n-1</guid><title>Old</title><description>Body</description>"
    "<link>http://x/</link><pubDate>Fri, 20 Nov 2026 10:00:00 +0100</pubDate></item>"
)
RETITLED = {"guid": "n-1", "file": "n-1.xml", "item": {"title": "New"}}


def rest(stage: Stage) -> tuple[str, str, str, str]:
    (item,) = channel(stage).items
    return item.title, item.description, item.link, item.pub_date[:16]


def test_an_item_keeps_what_nobody_named(stage: Stage) -> None:
    put(stage, "n-1.xml", DOCUMENT)
    assert applied(stage, ticker(RETITLED)).outcome == "changed"
    assert rest(stage) == ("New", "Body", "http://x/", "Fri, 20 Nov 2026")
    undone(stage)
    assert rest(stage) == ("Old", "Body", "http://x/", "Fri, 20 Nov 2026")


def test_undo_leaves_an_item_that_another_user_has_extended(stage: Stage) -> None:
    put(stage, "n-1.xml", DOCUMENT)
    applied(stage, ticker(RETITLED))
    channel(stage).items[0].link = "http://theirs/"
    undone(stage)
    assert sends(stage) == 0
    assert channel(stage).items[0].link == "http://theirs/"


@pytest.mark.parametrize(
    ("title", "body"), [("Storm", "Storm\nthe wrong body"), ("the wrong title", "Storm")], ids=["title", "body"]
)
def test_an_item_of_which_a_part_alone_equals_the_text_is_changed(stage: Stage, title: str, body: str) -> None:
    channel(stage).items.append(Item("n-1.txt", body.encode(), "n-1", title, body))
    assert applied(stage, ticker({"guid": "n-1", "file": "n-1.txt", "text": "Storm"})).outcome == "changed"
    assert items(stage) == [("n-1", "Storm", "Storm")]


def test_an_item_that_a_put_replaced_is_named_as_lost(stage: Stage) -> None:
    put(stage, "top.xml", DOCUMENT.replace("n-1", "agency-7"))
    item = {"guid": "n-1", "file": "top.xml", "item": {"title": "Ours", "description": "Ours"}}
    target = applied(stage, ticker(item))
    assert target.outcome == "failed"
    assert "agency-7" in [each.key for each in target.differences]


def test_the_items_that_exactly_removes_are_read_once_before_they_go(stage: Stage) -> None:
    for number in range(20):
        put(stage, f"o-{number}.txt", f"old {number}")
    applied(stage, ticker({"guid": "n-1", "file": "n-1.txt", "text": "new"}, exactly=True))
    assert (len(stage.sent()), len(stage.reads())) == (21, 2)


# Servers that number segments anew ---------------------------------------------------------------------------------


@pytest.fixture
def renumbering(stage: Stage) -> Stage:
    stage.sim.dialect = stage.sim.dialect.with_values({"segment_numbers": "by_start", "segment_update": "overwrite"})
    clip(stage).segments = [part(1, 0, "one"), part(2, 20, "two"), part(3, 40, "three"), part(4, 60, "four")]
    return stage


SECOND = {"number": 2, "start": 20, "duration": 10, "title": "new"}
TWO_AND_THREE = [{"number": 2, "state": "absent"}, {"number": 3, "state": "absent"}]


def test_a_renumbering_server_loses_no_segment_that_nobody_named(renumbering: Stage) -> None:
    target = applied(renumbering, film(segments=[SECOND]))
    assert {title for _, _, title in parts(renumbering)} >= {"one", "three", "four"}
    assert target.outcome == "failed"
    assert "segment_numbers" in target.message


def test_two_segments_by_number_on_a_renumbering_server(renumbering: Stage) -> None:
    applied(renumbering, film(segments=TWO_AND_THREE))
    assert {title for _, _, title in parts(renumbering)} >= {"one", "four"}


def test_with_its_dialect_a_renumbering_server_is_written_as_desired(renumbering: Stage) -> None:
    renumbering.dialect = {"segment_numbers": "by_start"}
    assert applied(renumbering, film(segments=[SECOND])).outcome == "changed"
    assert parts(renumbering) == [(1, 0, "one"), (2, 20, "new"), (3, 40, "three"), (4, 60, "four")]
    assert applied(renumbering, film(segments=TWO_AND_THREE)).outcome == "changed"
    assert parts(renumbering) == [(1, 0, "one"), (2, 60, "four")]


# Lists -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "desired",
    [
        {"markers": [{"uid": 1, "state": "absent"}]},
        {"markers": [{"uid": 1, "title": "new"}]},
        {"markers": [{"at": 20, "track": "Cue Point", "title": "one"}], "exactly": ["markers"]},
    ],
    ids=["absent", "changed", "exactly"],
)
def test_two_markers_of_one_uid_are_not_touched(stage: Stage, desired: dict[str, Any]) -> None:
    clip(stage).markers = [mark(1, 20, "one"), mark(1, 70, "theirs")]
    assert "uid 1" in refused(stage, film(**desired))


@pytest.mark.parametrize("title", ["theirs", pytest.param("Part")])
def test_undo_of_a_segmentation_leaves_what_somebody_put_at_the_place_of_a_piece(stage: Stage, title: str) -> None:
    clip(stage).frames = 100
    assert applied(stage, film(segmentation={"duration": 50, "title": "Part"})).outcome == "changed"
    clip(stage).segments = [clip(stage).segments[0], part(7, 50, title, duration=50)]
    undone(stage)
    assert parts(stage) == [(7, 50, title)]


def test_what_no_answer_shows_is_told_where_a_segment_is_recreated(stage: Stage) -> None:
    stage.sim.dialect = stage.sim.dialect.with_values({"segment_keywords": "hidden"})
    clip(stage).segments = [SimSegment(2, 20, 10, ["old"], keywords="storm coast")]
    plan = planned(stage, film(segments=[SECOND]))
    assert "keywords" in f"{plan.targets[0].changes} {plan.warnings}"


def test_an_empty_title_is_no_key_of_a_segment(stage: Stage) -> None:
    untitled = [SimSegment(number, 10 * number, 10) for number in range(1, 5)]
    clip(stage).segments = list(untitled)
    assert "title" in refused(stage, film(segments=[{"title": "", "state": "absent"}]))
    assert applied(stage, film(segments=[{"title": "", "start": 50, "duration": 10}])).outcome == "changed"
    assert clip(stage).segments[:4] == untitled


@pytest.mark.parametrize("text", ["", " "])
def test_an_item_without_a_text_is_an_error(stage: Stage, text: str) -> None:
    put(stage, "n-1.txt", "On air")
    told = refused(stage, ticker({"guid": "n-1", "file": "n-1.txt", "text": text}))
    assert "text" in told
    assert "playbook.yml:" in told


def test_a_marker_of_another_title_is_not_the_absent_one(stage: Stage) -> None:
    clip(stage).markers = [mark(1, 10, "theirs")]
    task = film(markers=[{"at": 10, "track": "Cue Point", "title": "Ours", "state": "absent"}])
    assert stage.apply(task).ok
    assert marks(stage) == [(1, 10, "theirs")]


@pytest.mark.parametrize("wanted", [{"state": "absent"}, {"title": "new"}])
def test_of_two_markers_at_one_place_none_is_taken(stage: Stage, wanted: dict[str, Any]) -> None:
    clip(stage).markers = [mark(1, 10, "one"), mark(2, 10, "two")]
    assert "uid 1" in refused(stage, film(markers=[{"at": 10, "track": "Cue Point", **wanted}]))


def test_a_new_marker_gets_the_uid_that_a_task_removes(stage: Stage) -> None:
    stage.sim.dialect = stage.sim.dialect.with_values({"marker_uid": "lowest"})
    clip(stage).markers = [mark(1, 10, "old")]
    task = film(markers=[{"uid": 1, "state": "absent"}, {"at": 50, "title": "new"}])
    assert applied(stage, task).outcome == "changed"
    plan = planned(stage, task)
    assert (plan.requests, len(plan.warnings)) == (0, 1)
    assert "marker uid 1 is left alone: it is what" in plan.warnings[0]


# What is not looked at again ---------------------------------------------------------------------------------------


def test_the_in_point_moves_before_a_marker_is_written(stage: Stage) -> None:
    stage.sim.dialect = stage.sim.dialect.with_values({"position_origin": "in"})
    stage.dialect = {"position_origin": "in"}
    move = then("CREATEMARKER", lambda: clip(stage).home.fields.update(first_frame="100"), when="before")
    target = applied(stage, film(markers=[{"at": 50, "title": "Ad"}]), move)
    assert marks(stage) == [(1, 150, "Ad")]
    assert target.outcome == "failed"


def hour_later(stage: Stage, task: dict[str, Any], change: Callable[[], object]) -> TargetResult:
    """Plan, let an hour pass in which another user changes the server, and apply."""
    plan = planned(stage, task)
    change()
    assert isinstance(stage.clock, Clock)
    stage.clock.passed = timedelta(hours=1)
    return finished(stage, plan, task)


MOVED_IN = {"position_origin": "in"}
LATER: dict[str, tuple[dict[str, Any], Callable[[Stage], object]]] = {
    "the IN point": (
        {"markers": [{"at": 50, "title": "Ad"}]},
        lambda stage: clip(stage).home.fields.update(first_frame="100"),
    ),
    "segments, for a segmentation": (
        {"segmentation": {"duration": 250, "title": "Part"}},
        lambda stage: clip(stage).segments.append(part(1, 30, "theirs")),
    ),
    "the file, for a restore": (
        {"restore": True, "fields": {"comment": "Ready"}},
        lambda stage: setattr(clip(stage), "online", True),
    ),
    "the folder of a guard": (
        {"folder": "Raw", "fields": {"comment": "Ready"}},
        lambda stage: news(stage).change_entry(clip(stage).home, folder=("Master",)),
    ),
    "a marker that is absent by its place": (
        {"markers": [{"at": 10, "track": "Cue Point", "state": "absent"}]},
        lambda stage: setattr(clip(stage), "markers", [mark(1, 70, "theirs")]),
    ),
    "a link that holds": (
        {"links": [{"folder": "Playout", "title": "Film on air"}], "fields": {"comment": "Ready"}},
        lambda stage: news(stage).remove_link(clip(stage).entries[1]),
    ),
}


def relying(stage: Stage, what: str) -> tuple[dict[str, Any], Callable[[Stage], object]]:
    """A task, and a change of what its plan relies on."""
    desired, change = LATER[what]
    film_clip = clip(stage)
    film_clip.markers = [mark(1, 10, "old")]
    news(stage).add_entry(film_clip, "Playout", "Film on air")
    if "restore" in desired:
        film_clip.online, film_clip.archive = False, "$(archive)/film.mxf"
    if what == "the IN point":
        stage.sim.dialect = stage.sim.dialect.with_values(MOVED_IN)
        stage.dialect = MOVED_IN
    return film(**desired), change


@pytest.mark.parametrize("what", LATER)
def test_what_a_plan_relies_on_is_looked_at_again_after_an_hour(stage: Stage, what: str) -> None:
    task, change = relying(stage, what)
    target = hour_later(stage, task, lambda: change(stage))
    assert (target.outcome, sends(stage)) == ("not attempted", 0)
    assert "changed since it was planned" in target.message


@pytest.mark.parametrize("what", LATER)
def test_what_a_saved_plan_relies_on_is_looked_at_again(stage: Stage, what: str) -> None:
    task, change = relying(stage, what)
    stage.write(task)
    assert command(stage, "plan", "playbook.yml", "--out", "p.json") == 0
    change(stage)
    assert command(stage, "apply", "p.json") == 4
    assert sends(stage) == 0


@pytest.mark.parametrize("what", ["the folder of a guard", "a link that holds"])
def test_what_a_task_names_and_holds_already_is_verified_too(stage: Stage, what: str) -> None:
    task, change = relying(stage, what)
    assert applied(stage, task, then(WRITES, lambda: change(stage))).outcome == "failed"


def test_what_was_read_a_minute_ago_is_read_again_in_the_middle_of_a_target(stage: Stage) -> None:
    clip(stage).markers = [mark(uid, uid, f"old {uid}") for uid in range(1, 6)]
    clock = stage.clock
    assert isinstance(clock, Clock)

    def replaced() -> None:
        """The first marker took two minutes; meanwhile another recording took its place."""
        clock.passed += timedelta(minutes=2)
        news(stage).remove_clip(clip(stage))
        again = news(stage).add_clip("Film", "Raw", frames=500, create_time="2026-11-15T10:00:00")
        again.markers = [mark(uid, 100 + uid, f"theirs {uid}") for uid in range(1, 6)]

    target = applied(stage, film(markers=[], exactly=["markers"]), then("DELETEMARKER", replaced))
    assert [title for _, _, title in marks(stage)] == [f"theirs {uid}" for uid in range(1, 6)]
    assert (target.outcome, sends(stage)) == ("failed", 1)


def test_a_deletion_is_checked_after_it_has_a_connection(stage: Stage) -> None:
    """The second deletion waits for the first; meanwhile its title is given to another clip."""
    stage.block = {"connections": 1}
    news(stage).add_clip("Keep", "Master", frames=77, create_time="2026-11-16T10:00:00")
    tasks = [{"name": f"No {title}", "asset": {"title": title, "state": "absent"}} for title in ("Film", "Other")]

    def swap() -> None:
        deleted = stage.sim.log[-1].target.partition("@")[2]
        left, kept = clip(stage, {"Film": "Other", "Other": "Film"}[deleted]).home, clip(stage, "Keep").home
        title = left.title
        news(stage).change_entry(left, title="Moved away")
        news(stage).change_entry(kept, title=title)

    plan = planned(stage, *tasks)
    stage.sim.faults.add(then("^DELETE", swap))
    result = stage.applied(plan, stage.resolved(*tasks))
    assert sorted(each.home.folder for each in news(stage).clips()) == [("Master",), ("Raw",)]
    assert sorted(each.outcome for each in result.targets) == ["changed", "not attempted"]


# Links -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{}, {"comment": "Tonight"}], ids=["a link", "its field"])
def test_a_clip_of_somebody_is_no_link_of_ours(stage: Stage, more: dict[str, str]) -> None:
    """COPYLINK is answered and not done, and a clip of another user has the title in that folder."""
    theirs: list[SimClip] = []
    make = then("COPYLINK", lambda: theirs.append(news(stage).add_clip("Film tonight", "Playout", frames=50)))
    target = applied(
        stage, film(links=[{"folder": "Playout", "title": "Film tonight", **more}]), make, "swallow@COPYLINK*1"
    )
    assert theirs[0].home.fields == {}
    assert target.outcome == "failed"


# Deletions ---------------------------------------------------------------------------------------------------------

DELETED = film(state="absent")


def test_a_clip_that_was_renamed_and_moved_is_not_deleted(stage: Stage) -> None:
    move = then("^DELETE", lambda: news(stage).change_entry(clip(stage).home, "Kept", ("Master",)), when="before")
    target = applied(stage, DELETED, move)
    assert target.outcome == "failed"
    assert "Kept" in target.message


@pytest.mark.parametrize("task", ["where", "when"])
def test_a_condition_from_a_listing_that_lags_is_asked_again(stage: Stage, task: str) -> None:
    kept = clip(stage)
    kept.home.fields["comment"], kept.listed = "KEEP", {"comment": "DELETE"}
    old = "asset.comment == 'DELETE'"
    select: dict[str, Any] = {"folder": "Raw", "expect": {"min": 0}}
    if task == "where":
        work = {"name": "Old ones", "asset": {"select": select | {"where": old}, "state": "absent"}}
    else:
        work = {"name": "Old ones", "asset": {"select": select, "state": "absent"}, "when": old}
    stage.apply(work)
    assert sends(stage) == 0


def selected(stage: Stage, **conditions: Any) -> list[str]:
    """Which clips a selection finds, where the server leaves it to msauto."""
    stage.sim.dialect = stage.sim.dialect.with_values({"datetime_filter": "ignored"})
    select = {"folder": "Raw", "expect": {"min": 0}, **conditions}
    plan = planned(stage, {"name": "Some", "asset": {"select": select, "fields": {"comment": "found"}}})
    return [target.name for target in plan.targets]


def test_a_time_with_a_zone_keeps_it(stage: Stage) -> None:
    clip(stage).create_time = "2026-11-20T23:30:00-05:00"
    assert selected(stage, created_after="2026-11-21T02:00:00+00:00") == ["Film"]
    assert selected(stage, created_before="2026-11-21T02:00:00+00:00") == ["Other"]


@pytest.mark.parametrize("condition", ["created_before", "created_after"])
def test_a_clip_without_a_time_matches_no_condition_on_time(stage: Stage, condition: str) -> None:
    clip(stage).omitted = ("create_time", "rec_time")
    limit = {"created_before": "2026-12-31", "created_after": "2026-01-01"}[condition]
    assert selected(stage, **{condition: limit}) == ["Other"]


def test_a_comparison_with_an_unknown_time_matches_nothing(stage: Stage) -> None:
    clip(stage).shown = {"create_time": "yesterday"}
    assert selected(stage, created_before="2026-12-31") == ["Other"]


@pytest.mark.parametrize("text", ["recording", "growing", "off", ""])
def test_only_true_means_finalized(stage: Stage, text: str) -> None:
    clip(stage).shown = {"finalized": text}
    assert "record" in refused(stage, DELETED)


@pytest.mark.parametrize("how", ["exactly", "undo"])
def test_two_links_are_removed_in_one_run(stage: Stage, how: str) -> None:
    stage.dialect = {"link_delete": "by_title"}
    links = [{"folder": "Playout", "title": title} for title in ("L1", "L2")]
    assert applied(stage, film(links=links)).outcome == "changed"
    result = stage.undo("last") if how == "undo" else stage.apply(film(links=[], exactly=["links"]))
    assert result.ok, [each.message for each in result.targets]
    assert len(clip(stage).entries) == 1


def test_a_link_may_be_gone_before_its_clip_is_deleted(stage: Stage) -> None:
    news(stage).add_entry(clip(stage), "Playout", "Tonight")
    task = film(state="absent", with_links=True)
    plan = planned(stage, task)
    news(stage).remove_link(clip(stage).entries[1])
    assert finished(stage, plan, task).outcome == "changed"
    assert [each.title for each in news(stage).clips()] == ["Other"]


@pytest.mark.parametrize("when", ["always", "meanwhile"])
def test_a_clip_of_somebody_may_be_where_a_link_of_a_deleted_clip_was(stage: Stage, when: str) -> None:
    news(stage).add_entry(clip(stage), "Playout", "Tonight")
    task = film(folder="Raw", state="absent", with_links=True)

    def add() -> None:
        news(stage).add_clip("Tonight", "Playout", frames=33, create_time="2026-01-01T10:00:00")

    if when == "always":
        add()
    faults = [then("^DELETE", add)] if when == "meanwhile" else []
    assert applied(stage, task, *faults).outcome == "changed"
    assert {each.title for each in news(stage).clips()} == {"Other", "Tonight"}


EXPORT = {"name": "Export", "command": {"name": "PARTNER_EXPORT_VERSION"}}
DELETION = {"name": "A play", "handlers": [EXPORT], "tasks": [DELETED | {"notify": "Export"}]}


def test_the_handler_of_a_deletion_is_sent_after_the_check_of_the_deletion(stage: Stage) -> None:
    plan = planned(stage, DELETION)
    home, other = clip(stage).home, clip(stage, "Other").home
    news(stage).change_entry(home, title="Other")
    news(stage).change_entry(other, title="Film")
    target = finished(stage, plan, DELETION)
    assert (target.outcome, sends(stage)) == ("not attempted", 0)


def test_a_deletion_in_a_folder_named_like_the_database_succeeds_with_its_handler(stage: Stage) -> None:
    news(stage).change_entry(clip(stage).home, folder=("NEWS",))
    assert applied(stage, DELETION).outcome == "changed"
    assert [each.title for each in news(stage).clips()] == ["Other"]


# Which clip --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [{"file": "$(video_path)/another.mxf"}, {"frames": 400}], ids=["file", "length"])
def test_undo_writes_no_other_clip(stage: Stage, change: dict[str, Any]) -> None:
    applied(stage, film(fields={"comment": "Ready"}))
    for name, value in change.items():
        setattr(clip(stage), name, value)
    undone(stage)
    assert sends(stage) == 0
    assert clip(stage).home.fields == {"comment": "Ready"}


def test_a_saved_plan_is_not_applied_to_another_file(stage: Stage) -> None:
    stage.write(film(fields={"comment": "Ready"}))
    assert command(stage, "plan", "playbook.yml", "--out", "p.json") == 0
    clip(stage).file = "$(video_path)/another.mxf"
    assert command(stage, "apply", "p.json") == 4
    assert sends(stage) == 0


def test_resume_of_a_clip_that_was_replaced_does_not_end_well(stage: Stage) -> None:
    stage.write(film(fields={"comment": "Ready"}))
    stage.sim.faults.add("status:500@SETFIELD*1")
    assert command(stage, "apply", "playbook.yml") == 3
    stage.sim.clear_log()
    news(stage).remove_clip(clip(stage))
    news(stage).add_clip("Film", "Raw", frames=333, create_time="2026-12-24T10:00:00")
    assert command(stage, "apply", "--resume", "last") in (3, 4)
    assert sends(stage) == 0


# What is left out --------------------------------------------------------------------------------------------------


def mine(**desired: Any) -> dict[str, Any]:
    return {"name": "Mine", "asset": {"title": "Film", **desired}, "tags": ["mine"]}


AT_10 = {"at": 10, "track": "Cue Point", "title": "theirs"}


@pytest.mark.parametrize(
    "task",
    [
        mine(markers=[], exactly=["markers"]),
        mine(markers=[{"at": 10, "track": "Cue Point", "state": "absent"}]),
        mine(state="absent"),
    ],
    ids=["exactly", "absent", "asset"],
)
def test_what_tags_leave_out_still_protects(stage: Stage, task: dict[str, Any]) -> None:
    clip(stage).markers = [mark(1, 10, "theirs")]
    left_out = film(markers=[AT_10]) | {"tags": ["theirs"]}
    try:
        stage.apply(task, left_out, tags=("mine",))
    except MsautoError as error:
        assert "The film" in str(error)  # noqa: PT017 - either way is right
    assert marks(stage) == [(1, 10, "theirs")]
    assert sends(stage) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        film(markers=[AT_10, {"at": 9999, "title": "beyond"}]),
        film(markers=[AT_10]) | {"when": "asset.nothing"},
        pytest.param({"name": "All", "asset": {"select": {"folder": "Raw", "expect": {"min": 9}}, "markers": [AT_10]}}),
        pytest.param(
            {"name": "All", "asset": {"select": {"folder": "Raw", "where": "asset.nothing"}, "markers": [AT_10]}},
        ),
    ],
    ids=["a position", "when", "expect", "where"],
)
def test_what_an_error_leaves_out_still_protects(stage: Stage, wrong: dict[str, Any]) -> None:
    clip(stage).markers = [mark(1, 10, "theirs")]
    stage.write(wrong, mine(markers=[], exactly=["markers"]))
    command(stage, "apply", "playbook.yml", "--keep-going")
    assert marks(stage) == [(1, 10, "theirs")]


# Servers that do more, or later --------------------------------------------------------------------------------------


def test_xmp_fields_that_a_server_clears_are_named(stage: Stage) -> None:
    stage.sim.dialect = stage.sim.dialect.with_values({"xmp_update": "clear"})
    clip(stage).xmp = {"dc:title": ["theirs"], "dc:subject": ["old"]}
    target = applied(stage, film(xmp={"dc:subject": ["new"]}))
    assert target.outcome == "failed"
    assert [each.key for each in target.differences] == ["dc:title"]


def test_a_rename_that_is_done_after_its_answer(stage: Stage) -> None:
    task = {"name": "A task", "asset": {"title": "Feature", "was": ["Film"], "fields": {"comment": "Ready"}}}
    target = applied(stage, task, "deferred:2@clip_name*1")
    assert target.outcome == "changed"
    assert [entry.status for entry in stage.sent()] == [202, 200]
    assert clip(stage, "Feature").home.fields == {"comment": "Ready"}


def test_a_frame_time_that_is_no_number_is_shown(stage: Stage) -> None:
    clip(stage).shown = {"frame_time": "0,04"}
    assert "0,04" in refused(stage, film(markers=[{"at": "00:00:01:00", "title": "Ad"}]))


@pytest.mark.parametrize("fault", ["status:429", "status:500", "swallow"])
def test_a_zero_that_was_not_written_is_not_verified(stage: Stage, fault: str) -> None:
    task = film(fields={"icon_pos": 0})
    target = applied(stage, task, f"{fault}@icon_pos*1")
    if fault == "swallow":
        assert (target.outcome, target.seen, target.unseen) == ("changed", 0, ("field",))
    else:
        assert target.outcome == "unverified"
        assert applied(stage, task).outcome == "changed"
        assert clip(stage).home.fields == {"icon_pos": "0"}


def test_a_zero_that_a_server_shows_as_empty_is_written_once(stage: Stage) -> None:
    clip(stage).shown = {"icon_pos": ""}
    applied(stage, film(fields={"icon_pos": 0}))
    assert stage.plan(film(fields={"icon_pos": 0})).requests == 0
    assert applied(stage, film(fields={"icon_pos": 7})).outcome == "failed"
    assert stage.plan(film(fields={"icon_pos": 0})).requests == 1, "the last one that was written is 7"


# What no request touches ------------------------------------------------------------------------------------------


def test_markers_that_are_lost_while_a_field_is_written_are_named(stage: Stage) -> None:
    clip(stage).markers = [mark(1, 10, "theirs"), mark(2, 20, "theirs")]
    target = applied(stage, film(fields={"comment": "Ready"}), then("SETFIELD", lambda: clip(stage).markers.pop()))
    assert target.outcome == "failed"
    assert [(each.aspect, each.key, each.why) for each in target.differences] == [
        ("marker", "", "shows less than before")
    ]


@pytest.mark.parametrize("there", [[], [mark(1, 10, "theirs")]], ids=["the first one", "another one"])
def test_a_marker_that_is_new_while_a_field_is_written_is_a_note(stage: Stage, there: list[SimMarker]) -> None:
    clip(stage).markers = list(there)
    new = then("SETFIELD", lambda: clip(stage).markers.append(mark(7, 70, "theirs")))
    target = applied(stage, film(fields={"comment": "Ready"}), new)
    assert (target.outcome, target.notes) == ("changed", ("marker changed meanwhile, and no task names it",))


# Found by the worlds ------------------------------------------------------------------------------------------------


CHANGED = {"markers": [{"at": 120, "track": "Cue Point", "title": "new"}]}
MARKER = {"markers": [{"at": 150, "title": "fresh"}]}
SEGMENT = {"segments": [{"number": 6, "start": 150, "duration": 10, "title": "fresh"}]}


@pytest.mark.parametrize(
    ("wanted", "minutes"),
    [
        (CHANGED, 0),
        (MARKER, 0),
        (SEGMENT, 0),
        (CHANGED, 2),
        (MARKER, 2),
        (SEGMENT, 2),
    ],
)
def test_the_in_point_moves_between_two_requests(stage: Stage, wanted: dict[str, Any], minutes: int) -> None:
    stage.sim.dialect = stage.sim.dialect.with_values(MOVED_IN)
    stage.dialect = MOVED_IN
    clip(stage).markers = [mark(5, 120, "old")]

    def moved() -> None:
        clip(stage).home.fields["first_frame"] = "30"
        assert isinstance(stage.clock, Clock)
        stage.clock.passed = timedelta(minutes=minutes)

    target = applied(stage, film(fields={"comment": "Ready"}, **wanted), then("SETFIELD", moved))
    assert target.outcome == "failed"
    assert not minutes or sends(stage) == 1


@pytest.mark.parametrize("shown", ["reported", "hidden"])
def test_a_rename_that_is_done_long_after_its_answer(stage: Stage, shown: str) -> None:
    stage.policy = RetryPolicy(backoff=(0.01,), read_pauses=(0.01,) * 6)
    stage.sim.dialect = stage.sim.dialect.with_values({"link_fields": shown})
    task = {"name": "A task", "asset": {"title": "Feature", "was": ["Film"], "fields": {"comment": "Ready"}}}
    applied(stage, task, "deferred:4@clip_name*1")
    assert 404 not in [entry.status for entry in stage.sent()]


def test_undo_leaves_a_segment_that_refused_ours(stage: Stage) -> None:
    """Theirs came between DELETESEGMENT and CREATESEGMENT, which was answered 409."""
    clip(stage).segments = [part(2, 20, "old")]
    make = then("CREATESEGMENT", lambda: clip(stage).segments.append(part(2, 20, "new")), when="before")
    applied(stage, film(segments=[SECOND]), make)
    undone(stage)
    assert (2, 20, "new") in parts(stage)


@pytest.mark.parametrize(
    "change",
    [{"file": "$(video_path)/another.mxf"}, {"frames": 400}],
    ids=["file", "length"],
)
def test_undo_of_a_rename_writes_no_other_clip(stage: Stage, change: dict[str, Any]) -> None:
    applied(stage, {"name": "A task", "asset": {"title": "Feature", "was": ["Film"], "fields": {"comment": "Ready"}}})
    for name, value in change.items():
        setattr(clip(stage, "Feature"), name, value)
    undone(stage)
    assert sends(stage) == 0


@pytest.mark.parametrize("kind", ["segments", "markers"])
def test_what_comes_into_a_list_of_which_nothing_had_to_go(stage: Stage, kind: str) -> None:
    """``exactly`` holds when it is planned; then another user adds something."""
    things: list[Any] = getattr(clip(stage), kind)
    new = part(3, 80, "theirs") if kind == "segments" else mark(3, 80, "theirs")
    add = then("SETFIELD", lambda: things.append(new))
    target = applied(stage, film(fields={"comment": "Ready"}, exactly=[kind], **{kind: []}), add)
    assert target.outcome == "failed"


def test_what_is_absent_by_its_number_warns_of_the_next_run(renumbering: Stage) -> None:
    """By start, the next segment has the number as soon as the first is gone."""
    renumbering.dialect = {"segment_numbers": "by_start"}
    warnings = planned(renumbering, film(segments=[{"number": 2, "state": "absent"}])).warnings
    assert any("goes in the next run" in each for each in warnings)


def test_undo_after_the_in_point_has_moved(stage: Stage) -> None:
    stage.sim.dialect = stage.sim.dialect.with_values(MOVED_IN)
    stage.dialect = MOVED_IN
    clip(stage).markers = [mark(5, 120, "old")]
    applied(stage, film(markers=[{"uid": 5, "at": 130}]))
    clip(stage).home.fields["first_frame"] = "30"
    undone(stage)
    assert marks(stage) in ([(5, 120, "old")], [(5, 130, "old")])  # brought back, or left


def test_of_two_tasks_that_want_a_marker_to_be_absent_each_counts(stage: Stage) -> None:
    clip(stage).markers = [mark(5, 120, "theirs")]
    at = {"at": 120, "track": "Cue Point", "state": "absent"}
    assert stage.apply(film(markers=[at | {"title": "ours"}]), film(markers=[at])).ok
    assert marks(stage) == []


def test_a_marker_that_is_to_stay_and_to_move_is_a_contradiction(stage: Stage) -> None:
    clip(stage).markers = [mark(5, 120, "kept")]
    stays = film(markers=[{"at": 120, "track": "Cue Point", "title": "kept"}])
    told = refused(stage, stays, film(markers=[{"uid": 5, "at": 130}]))
    assert "uid 5" in told
    assert told.count("playbook.yml:") == 2


@BUSY
def test_what_a_settling_read_shows_of_a_later_request_is_not_overwritten(stage: Stage, status: int) -> None:
    """The first of two requests was done and rejected; the read after it shows a newer value for the second."""
    edit = then("SETFIELD", lambda: clip(stage).home.fields.update(user_1="theirs"))
    task = film(fields={"comment": "ours", "user_1": "ours"})
    target = applied(stage, task, edit, f"done_status:{status}@SETFIELD*1")
    assert clip(stage).home.fields == {"comment": "ours", "user_1": "theirs"}
    assert (sends(stage), target.outcome) == (1, "failed")


def test_a_marker_that_a_task_names_by_its_uid_still_stands_at_its_place(stage: Stage) -> None:
    """Of two at one place, the one that is as desired is named by a task, too; the other is not retitled for it."""
    clip(stage).markers = [mark(5, 120, "one"), mark(6, 120, "theirs")]
    named = film(markers=[{"uid": 5, "title": "ours", "state": "absent"}])
    stage.apply(named, film(markers=[{"at": 120, "track": "Cue Point", "title": "one"}]))
    assert marks(stage) == [(5, 120, "one"), (6, 120, "theirs")]


def test_a_field_of_a_link_whose_title_leads_to_another_clip(stage: Stage) -> None:
    """In the folder of the link, another clip has its title, and a request by that title means that clip."""
    other = news(stage).add_clip("Film tonight", "Playout", frames=50)
    news(stage).add_entry(clip(stage), "Playout", "Film tonight")
    stage.apply(film(links=[{"folder": "Playout", "title": "Film tonight", "comment": "ours"}]))
    assert other.home.fields == {}


# Which clip: its files ---------------------------------------------------------------------------------------------

READY = {"fields": {"comment": "Ready"}}


def _after_a_saved_plan(stage: Stage, change: Callable[[], object]) -> None:
    stage.write(film(**READY))
    assert command(stage, "plan", "playbook.yml", "--out", "plan.json") == 0
    change()
    stage.sim.clear_log()
    command(stage, "apply", "plan.json")


def _before_undo(stage: Stage, change: Callable[[], object]) -> None:
    applied(stage, film(**READY))
    change()
    undone(stage)


def _after_an_hour(stage: Stage, change: Callable[[], object]) -> None:
    hour_later(stage, film(**READY), change)


def _before_a_deletion(stage: Stage, change: Callable[[], object]) -> None:
    task = film(state="absent")
    plan = planned(stage, task)
    change()
    finished(stage, plan, task)


WAYS = [_after_a_saved_plan, _before_undo, _after_an_hour, _before_a_deletion]
OF_A_WAY = pytest.mark.parametrize("way", WAYS, ids=[way.__name__.strip("_").replace("_", " ") for way in WAYS])


@OF_A_WAY
def test_another_file_with_the_same_proxy_is_another_clip(
    stage: Stage, way: Callable[[Stage, Callable[[], object]], None]
) -> None:
    """On many servers the path of the proxy is that of the title."""
    clip(stage).proxy = "$(proxy_path)/Film.mp4"
    way(stage, lambda: setattr(clip(stage), "file", "$(video_path)/another.mxf"))
    assert sends(stage) == 0


def _archived(stage: Stage) -> None:
    """The clip has an archive copy, and nothing else any more."""
    clip(stage).archive, clip(stage).online = "$(archive)/film.mxf", False


@OF_A_WAY
@pytest.mark.parametrize("what", ["proxy", "archive", "purged"])
def test_a_copy_that_appears_makes_no_other_clip(
    stage: Stage, what: str, way: Callable[[Stage, Callable[[], object]], None]
) -> None:
    way(stage, lambda: _archived(stage) if what == "purged" else setattr(clip(stage), what, f"$(x)/film.{what}"))
    assert sends(stage) == 1


def test_resume_after_proxies_were_made(stage: Stage) -> None:
    stage.sim.faults.add("status:500@SETFIELD*3")
    stage.write(*({"name": title, "asset": {"title": title, **READY}} for title in ("Film", "Other")))
    assert command(stage, "apply", "playbook.yml", "--forks", "1") == 3
    stage.sim.faults.clear()
    for title in ("Film", "Other"):
        clip(stage, title).proxy = f"$(proxy_path)/{title}.mp4"
    assert command(stage, "apply", "--resume", "last") == 0


def test_the_second_of_two_twins_is_not_another_marker(stage: Stage) -> None:
    """One request took both; when the second is due, another user's marker has their uid, and is read."""
    clip(stage).markers = [mark(5, 20, "one"), mark(5, 70, "two")]

    def gets_the_uid() -> None:
        assert isinstance(stage.clock, Clock)
        stage.clock.passed = timedelta(minutes=2)
        clip(stage).markers.append(mark(5, 90, "theirs"))

    task = film(markers=[], exactly=["markers"], lossy=True)
    applied(stage, task, then("DELETEMARKER", gets_the_uid))
    assert marks(stage) == [(5, 90, "theirs")]


def test_fields_of_a_link_beside_a_clip_of_its_title_are_not_set(stage: Stage) -> None:
    """The link was made in an earlier run; another user has put a clip of its title into its folder since."""
    link = {"folder": "Playout", "title": "Film tonight"}
    assert stage.apply(film(links=[link])).ok
    theirs = news(stage).add_clip("Film tonight", "Playout", frames=50, create_time="2026-11-13T10:00:00")
    assert "another clip has its title" in refused(stage, film(links=[link | {"comment": "ours"}]))
    assert "comment" not in theirs.home.fields
