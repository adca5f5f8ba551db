"""What the ledger keeps: the journal of runs with their notes, what is remembered, and what old runs leave."""

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from msgspec import structs

from msauto.codec import dump, load, to_json
from msauto.errors import LedgerError
from msauto.ledger import journal
from msauto.ledger.ledger import FILE, Ledger, count_rows
from msauto.model.identity import ClipIdentity
from msauto.model.plan import Target, TargetId
from msauto.model.result import (
    COUNTED_BY_SERVER,
    Difference,
    RequestRecord,
    RequestResult,
    Result,
    RunSummary,
    TargetRecord,
    TargetResult,
    format_time,
)
from msauto.model.snapshot import Json
from tests.tables import table
from tests.unit.ledger.ledger_plans import channel, plan, target


class Time:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 20, 10, 15, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def test_a_target_comes_back_as_it_was() -> None:
    for each in (target(), channel()):
        assert load(Target, dump(each)) == each


def test_a_row_of_an_older_msauto_gets_defaults() -> None:
    assert load(Target, '{"server":"a","database":"b","kind":"asset","name":"c"}') == Target(
        "a", "b", "asset", "c"
    )


def test_a_run_from_start_to_end(place: Path | str) -> None:
    whole = plan()
    first, second = whole.targets
    with Ledger.open(place, now=Time()) as ledger:
        assert ledger.empty
        name = ledger.journal.next_run
        run = ledger.journal.start(whole, ["news.yml", "rss.yml"])
        assert run == name
        assert run.startswith("20261120T1015")
        assert [each.status for each in ledger.history()] == ["running"]
        assert ledger.history()[0].summary["sent"] == 0
        ledger.journal.sending(run, first, 0)
        assert ledger.history()[0].summary["sent"] == 1
        ledger.journal.settled(run, first, 0, RequestResult("done", 200, "", 1))
        ledger.journal.sending(run, first, 1)
        ledger.journal.sending(run, first, 1)
        ledger.journal.settled(run, first, 1, RequestResult("failed", 500, "no", 2))
        differences = (Difference("field", "user_1", "Ready", None),)
        results = (RequestResult("done", 200, "", 1), RequestResult("failed", 500, "no", 2))
        first_result = TargetResult(first, "failed", "request 2 of 2: no", results, differences)
        ledger.journal.finished(run, first_result)
        second_result = TargetResult(
            second, "not attempted", "stopped", (RequestResult("not sent"),)
        )
        ledger.journal.end(run, Result(run, whole, (first_result, second_result), interrupted=True))
    with Ledger.open(place, readonly=True) as ledger:
        assert not ledger.empty
        (summary,) = ledger.history()
        details = ledger.run_details(run)
        assert ledger.run_details("last").summary == details.summary
    assert summary == details.summary
    assert (summary.status, summary.playbooks) == ("interrupted", ("news.yml", "rss.yml"))
    assert summary.ended is not None
    assert summary.started < summary.ended
    assert (summary.summary["requests"], summary.summary["sent"]) == (3, 2)
    assert (summary.summary["failed"], summary.summary["not_attempted"]) == (1, 1)
    assert {"run", "started", "ended", "status", "playbooks", "summary"} < set(to_json(summary))
    one, two = details.targets
    assert (one.target, two.target) == (first, second)
    assert (one.outcome, one.message, one.differences) == (
        "failed",
        "request 2 of 2: no",
        differences,
    )
    assert [(each.state, each.tries, each.status) for each in one.requests] == [
        ("done", 1, 200),
        ("failed", 2, 500),
    ]
    assert (two.outcome, two.begun, two.requests[0].state) == ("not attempted", None, "not sent")


def test_a_run_that_nobody_ended_has_died(place: Path | str) -> None:
    whole = plan()
    with Ledger.open(place) as ledger:
        run = ledger.journal.start(whole, [])
        ledger.journal.sending(run, whole.targets[0], 0)
        with Ledger.open(place, readonly=True) as other:
            assert other.history()[0].status == "running"
    with Ledger.open(place, readonly=True) as ledger:
        assert ledger.history()[0].status == "died"
        states = [each.state for each in ledger.run_details(run).targets[0].requests]
        assert states == ["sending", "planned"]
        assert ledger.run_details(run).targets[0].outcome is None


def states(record: TargetRecord) -> list[str]:
    return [request.state for request in record.requests]


def test_what_another_process_began_is_continued(place: Path | str) -> None:
    begun = target(requests=3)
    with Ledger.open(place, now=Time()) as ledger:
        run = ledger.journal.start(plan(begun), [])
        ledger.journal.sending(run, begun, 0)
        ledger.journal.settled(run, begun, 0, RequestResult("done", 200, "", 1))
        ledger.journal.sending(run, begun, 1)
    with Ledger.open(place, now=Time()) as ledger:
        (left,) = ledger.run_details(run).targets
        assert states(left) == ["done", "sending", "planned"]
        assert ledger.history()[0].summary["sent"] == 2
        assert ledger.journal.reopen(run, [begun])
        ledger.journal.settled(run, begun, 1, RequestResult("unverified", None, "lost", 1))
        (settled,) = ledger.run_details(run).targets
        assert states(settled) == ["done", "unverified", "planned"]
        first, second, _ = left.requests
        assert settled.requests[0] == first
        assert settled.requests[1].sent == second.sent


def test_what_is_written_grows_with_the_requests_alone(tmp_path: Path) -> None:
    written = []
    for count in (50, 100):
        many = target(requests=count)
        with Ledger.open(tmp_path / str(count)) as ledger:
            run, length = ledger.journal.start(plan(many), []), 0
            for index in range(count):
                with ledger.journal.together():
                    ledger.journal.sending(run, many, index)
                    length += sum(len(str(rows)) for rows in ledger._store._put.values())
                ledger.journal.settled(run, many, index, RequestResult("done", 200, "", 1))
        written.append(length)
    assert written[1] < 2.1 * written[0], written


def make_older(place: Path | str, version: int, *lacks: str) -> None:
    """Make a ledger one of an older msauto, which lacks these tables."""
    dropped = [f"DROP TABLE {name}" for name in lacks]
    if isinstance(place, Path):
        with closing(sqlite3.connect(place / FILE)) as connection, connection:
            for statement in (*dropped, f"PRAGMA user_version = {version}"):
                connection.execute(statement)
        return
    with psycopg.connect(place) as shared:
        shared.execute("SET search_path = msauto")
        for statement in (*dropped, f"UPDATE ledger_version SET version = {version}"):
            shared.execute(statement.encode())


def test_a_ledger_of_the_version_before_is_read_and_goes_on(place: Path | str) -> None:
    """An older msauto wrote the requests of a target in progress with its record, and had no table for them."""
    begun, other = target(requests=3), target("Other", 1)
    known: tuple[RequestRecord, ...] = (
        RequestRecord("done", 1, 200, "", "2026-11-20T10:15:09.000Z", "2026-11-20T10:15:10.000Z"),
    )
    known += (RequestRecord("sending", 1, sent="2026-11-20T10:15:11.000Z"),)
    with Ledger.open(place, now=Time()) as ledger:
        run = ledger.journal.start(plan(begun, other), [])
        row = (1, 0, "2026-11-20T10:15:09.000Z", 2, dump(known), None, "", "[]", "{}", "[]")
        ledger._store.write(f"INSERT INTO record VALUES ({', '.join('?' * len(row))})", row)
    make_older(place, 6, "request", "clip", "entered")
    with Ledger.open(place, readonly=True) as ledger:
        first, second = ledger.run_details(run).targets
        assert first.requests == (*known, RequestRecord("planned"))
        assert first.begun == "2026-11-20T10:15:09.000Z"
        assert second.begun is None
        assert ledger.history()[0].summary["sent"] == 2
        assert count_rows(ledger._store)["request"] == 0
    with Ledger.open(place, now=Time()) as ledger:
        assert ledger.journal.reopen(run, [begun, other])
        ledger.journal.settled(run, begun, 1, RequestResult("done", 200, "", 1))
        ledger.journal.sending(run, begun, 2)
        first, second = ledger.run_details(run).targets
        assert states(first) == ["done", "done", "sending"]
        assert first.requests[0] == known[0]
        assert COUNTED_BY_SERVER in ledger.run_details(run).notes
        results = (RequestResult("done", 200, "", 1),) * 3
        ledger.journal.settled(run, begun, 2, results[2])
        ledger.journal.finished(run, TargetResult(begun, "changed", requests=results))
        first, second = ledger.run_details(run).targets
        assert first.outcome == "changed"
        assert first.begun == "2026-11-20T10:15:09.000Z"
        assert states(first) == ["done"] * 3
        assert ledger.history()[0].summary["sent"] == 3
        assert ledger._store.read("SELECT count(*) FROM request") == [(0,)]


def test_newest_first(place: Path | str) -> None:
    with Ledger.open(place, now=Time()) as ledger:
        runs = []
        for _ in range(3):
            runs.append(ledger.journal.start(plan(), []))
            ledger.journal.end(runs[-1], Result(runs[-1], plan(), ()))
        assert [each.run for each in ledger.history()] == runs[::-1]
        assert {each.status for each in ledger.history()} == {"ok"}
        assert sorted(runs) == runs
    if isinstance(place, Path):
        assert not list((place / "runs").iterdir())


def names_of(runs: Iterable[RunSummary]) -> list[str]:
    return [run.run for run in runs]


def test_the_order_is_that_of_the_ledger_whatever_the_clocks_show(place: Path | str) -> None:
    """The clock of the second machine is a day behind; an attempt and a batch are among the runs."""
    times = [datetime(2026, 11, day, 12, tzinfo=UTC) for day in (20, 19, 18, 17)]
    entered: list[str] = []
    for number, now in enumerate(times):
        with Ledger.open(place, now=lambda now=now: now) as ledger:  # type: ignore[misc]
            name, time = f"attempt-{number}", format_time(now)
            if number % 2:
                ledger.record(RunSummary(name, time, time, "refused", (), {}))
            else:
                name = ledger.journal.start(plan(), [])
                ledger.journal.end(name, Result(name, plan(), ()))
            entered.append(name)
    with Ledger.open(place) as ledger:
        batch = RunSummary("batch", format_time(times[3]), None, "ok", (), {}, batch="night")
        for _ in range(2):
            ledger.record_batch(batch, "{}", ran=True)
        assert names_of(ledger.attempts()) == ["batch", *entered[::-1]]
        assert names_of(ledger.history()) == [entered[2], entered[0]]
        assert ledger.run_details("last").summary.run == entered[2]
        assert ledger.find("last").run == "batch"
        ledger.prune(keep_runs=1)
        assert names_of(ledger.history()) == [entered[2]]
        kept = ledger._store.read("SELECT name FROM entered")
        assert {name for (name,) in kept} == {*names_of(ledger.attempts())}


def test_runs_and_attempts_of_one_name_are_all_recorded(place: Path | str) -> None:
    """Names end with four random digits: now and then, two of one second get the same."""
    time = format_time(datetime(2026, 11, 20, 12, tzinfo=UTC))
    with Ledger.open(place) as ledger:
        first = ledger.journal.start(plan(), [])
        ledger.journal.end(first, Result(first, plan(), ()))
        for reason in ("no consent", "stale plan"):
            attempt = RunSummary(first, time, time, "refused", (), {}, reason=reason)
            ledger.record(attempt)
        attempts = ledger.attempts()
        reasons = [attempt.reason for attempt in attempts]
        assert reasons == ["stale plan", "no consent", ""]
        assert len(set(names_of(attempts))) == 3
        next_run = ledger.journal.next_run
        ledger.record(RunSummary(next_run, time, time, "refused", (), {}))
        ledger.journal.start(plan(), [])
        assert len(set(names_of(ledger.attempts()))) == 5


def test_a_target_outside_the_plan_is_refused(place: Path | str) -> None:
    with Ledger.open(place) as ledger:
        run = ledger.journal.start(plan(), [])
        with pytest.raises(LedgerError, match="Extra is not among the targets of this run"):
            ledger.journal.sending(run, target("Extra", 1), 0)


@pytest.mark.parametrize("begun", [True, False])
def test_nothing_of_a_run_that_the_ledger_lacks_is_sent(place: Path | str, begun: bool) -> None:
    whole = plan()
    with Ledger.open(place) as ledger:
        run = ledger.journal.start(whole, [])
        if begun:
            ledger.journal.sending(run, whole.targets[0], 0)
        ledger._store.write("DELETE FROM run", ())
        with pytest.raises(LedgerError, match=r"cannot be used: .*(?i:foreign key)"):
            ledger.journal.sending(run, whole.targets[0], 1)


def test_together_is_all_or_nothing(place: Path | str) -> None:
    whole = plan()
    one = whole.targets[0]

    def fail() -> None:
        with ledger.journal.together():
            ledger.journal.sending(run, one, 0)
            ledger.memory().remember(one.id, {"field:comment": "x"})
            raise ZeroDivisionError

    with Ledger.open(place) as ledger:
        run = ledger.journal.start(whole, [])
        with pytest.raises(ZeroDivisionError):
            fail()
        assert ledger.run_details(run).targets[0].requests[0].state == "planned"
        assert ledger.memory().recall(one.id) == {}
        with ledger.journal.together():
            ledger.journal.sending(run, one, 0)
        assert ledger.run_details(run).targets[0].requests[0].state == "sending"


def test_an_unknown_run(place: Path | str) -> None:
    with (
        Ledger.open(place) as ledger,
        pytest.raises(LedgerError, match="run R not found") as caught,
    ):
        ledger.run_details("R")
    assert "msauto history" in caught.value.remedy


def test_a_ledger_without_runs_has_no_last_one(place: Path | str) -> None:
    with (
        Ledger.open(place) as ledger,
        pytest.raises(LedgerError, match="contains no runs") as caught,
    ):
        ledger.run_details("last")
    assert "--state-dir" in caught.value.remedy


# Notes of a run


def test_the_notes_of_the_end_are_those_of_one_run(place: Path | str) -> None:
    with Ledger.open(place) as ledger:
        run = ledger.journal.start(plan(), [])
        ledger.note_end(run, {"code": "3", "reason": "the disk is full"})
        ledger.note_end(run, {"code": "0"})
        ledger.note_end("nobody", {"code": "3"})
        (summary,) = ledger.history()
        assert (summary.code, summary.reason) == (0, "the disk is full")


def test_a_note_belongs_to_the_next_run_alone(place: Path | str) -> None:
    with Ledger.open(place) as ledger:
        ledger.journal.notes["override_freeze"] = "Новости: the minister resigned"
        first = ledger.journal.start(plan(), [])
        second = ledger.journal.start(plan(), [])
    with Ledger.open(place, readonly=True) as ledger:
        assert ledger.run_details(first).notes == {
            "override_freeze": "Новости: the minister resigned"
        }
        assert ledger.run_details(second).notes == {}


# What is remembered of a target, and of nothing else


SIGHTING = ClipIdentity(7, "2026-11-20T10:00:00", 250, "news.mxf")
CLIP = TargetId("studio-a", "NEWS", "asset", "Новости дня й", SIGHTING)


def test_items_come_back(place: Path | str) -> None:
    items: dict[str, Json] = {
        "field:comment": "a\nb",
        "field:layer": 3,
        "segment:1": {"keywords": ["x", None, 1.5]},
        "flag": False,
    }
    with Ledger.open(place) as ledger:
        ledger.memory().remember(CLIP, items)
        assert ledger.memory().recall(CLIP) == items
    with Ledger.open(place, readonly=True) as ledger:
        assert ledger.memory().recall(CLIP) == items


def test_none_forgets(place: Path | str) -> None:
    with Ledger.open(place) as ledger:
        ledger.memory().remember(CLIP, {"a": 1, "b": 2})
        ledger.memory().remember(CLIP, {"a": None, "c": None, "b": 3})
        assert ledger.memory().recall(CLIP) == {"b": 3}


def test_a_kind_of_item_is_forgotten_of_all_assets_of_a_database(place: Path | str) -> None:
    clips = [CLIP, structs.replace(CLIP, name="News", clip=ClipIdentity(8))]
    others = [
        structs.replace(CLIP, server="studio-b"),
        structs.replace(CLIP, database="OLD"),
        structs.replace(CLIP, name="NEWS", kind="database"),
    ]
    with Ledger.open(place) as ledger:
        for target in (*clips, *others):
            ledger.memory().remember(
                target, {"xmp:dc:title": ["a"], "xmp_batch:x": True, "field:xmp:": "b"}
            )
        ledger.memory().forget_assets("studio-a", "NEWS", "xmp:")
        assert [sorted(ledger.memory().recall(clip)) for clip in clips] == [
            ["field:xmp:", "xmp_batch:x"]
        ] * 2
        assert all("xmp:dc:title" in ledger.memory().recall(other) for other in others)


@table("ledger/remembered_clips", "other", "answer")
def test_a_clip_is_known_by_what_it_is(
    place: Path | str, other: dict[str, Any], answer: str | None
) -> None:
    """Its title finds candidates; what is unknown is its own under its title alone."""
    values = dict(other)
    name = values.pop("name", CLIP.name)
    clip = structs.replace(SIGHTING, **values)
    now = structs.replace(CLIP, name=name, clip=clip)
    third = structs.replace(CLIP, name="X", clip=ClipIdentity(1))
    with Ledger.open(place) as ledger:
        ledger.memory().remember(CLIP, {"a": 1})
        ledger.memory().remember(third, {"b": 1})
    with Ledger.open(place, readonly=True) as ledger:
        answers = [record.answer for record in ledger.memory().records(now)]
        assert answers == ([answer] if answer else [])
        recalled = {"a": 1} if answer == "same" else {}
        assert ledger.memory().recall(now) == recalled


def test_nothing_is_remembered_of_another_server_database_or_kind(place: Path | str) -> None:
    others = [
        structs.replace(CLIP, server="studio-b"),
        structs.replace(CLIP, database="OLD"),
        structs.replace(CLIP, kind="rss_channel"),
    ]
    with Ledger.open(place) as ledger:
        ledger.memory().remember(CLIP, {"a": 1})
        assert [ledger.memory().recall(other) for other in others] == [{}] * len(others)


def test_clips_that_exchange_their_titles_keep_what_is_remembered(place: Path | str) -> None:
    one = ClipIdentity(frames=100, orig_name="100.mxf")
    two = ClipIdentity(frames=200, orig_name="200.mxf")
    with Ledger.open(place) as ledger:
        for name, clip in (("One", one), ("Two", two)):
            before = structs.replace(CLIP, name=name, clip=clip)
            ledger.memory().remember(before, {"is": name})
        for name, clip in (("Two", one), ("One", two)):
            now = structs.replace(CLIP, name=name, clip=clip)
            (record,) = ledger.memory().records(now)
            ledger.memory().keep_clip(record.target, now, "R", {"marker": "m"})
            ledger.memory().remember(now, {"now": name})
    with Ledger.open(place, readonly=True) as ledger:
        for was, name, clip in (("One", "Two", one), ("Two", "One", two)):
            now = structs.replace(CLIP, name=name, clip=clip)
            (record,) = ledger.memory().records(now)
            assert record.items == {"is": was, "now": name}
            assert record.run == "R"
            assert record.seen == {"marker": "m"}


def test_a_clip_that_is_gone_is_forgotten(place: Path | str) -> None:
    with Ledger.open(place) as ledger:
        ledger.memory().remember(CLIP, {"a": 1})
        ledger.memory().forget_clip(CLIP)
        assert ledger.memory().records(CLIP) == []
        assert count_rows(ledger._store)["clip"] == count_rows(ledger._store)["memory"] == 0


def test_what_an_older_ledger_remembers_is_found_and_goes_on(place: Path | str) -> None:
    """It kept a clip by its title, link_id and creation time."""
    with Ledger.open(place) as ledger:
        row = ("studio-a", "NEWS", "asset", CLIP.name, "7", "2026-11-20T10:00:00", "a", "1", "")
        ledger._store.write("INSERT INTO memory VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    make_older(place, 7, "clip", "entered")
    with Ledger.open(place, readonly=True) as ledger:
        assert ledger.memory().recall(CLIP) == {"a": 1}
    renamed = structs.replace(CLIP, name="News, final")
    with Ledger.open(place) as ledger:
        assert [record.answer for record in ledger.memory().records(renamed)] == ["unknown"]
        (record,) = ledger.memory().records(CLIP)
        ledger.memory().keep_clip(record.target, CLIP, "R", {})
        ledger.memory().remember(CLIP, {"b": 2})
        assert ledger.memory().recall(renamed) == {"a": 1, "b": 2}


def test_one_title_in_two_spellings_of_unicode(place: Path | str) -> None:
    decomposed = unicodedata.normalize("NFD", CLIP.name)
    assert decomposed != CLIP.name
    with Ledger.open(place) as ledger:
        ledger.memory().remember(structs.replace(CLIP, name=decomposed), {"a": 1})
        assert ledger.memory().recall(CLIP) == {"a": 1}


def test_what_is_owed_is_found_without_knowing_of_whom(place: Path | str) -> None:
    with Ledger.open(place) as ledger:
        assert ledger.memory().pending("studio-a") == frozenset()
        ledger.memory().remember(
            CLIP, {"pending:handler:Export": {"run": "r"}, "field:comment": "x"}
        )
        ledger.memory().remember(
            structs.replace(CLIP, name="Film"), {"field:pending:": "x", "command:X": True}
        )
        ledger.memory().remember(
            structs.replace(CLIP, server="studio-b", name="Other"),
            {"pending:command:X": {"run": "r"}},
        )
        ledger.memory().remember(
            structs.replace(CLIP, kind="database", name="NEWS"), {"pending:x": True}
        )
        assert ledger.memory().pending("studio-a") == {
            ("NEWS", unicodedata.normalize("NFC", CLIP.name))
        }
        ledger.memory().remember(CLIP, {"pending:handler:Export": None})
        assert ledger.memory().pending("studio-a") == frozenset()


def test_a_missing_ledger_has_nothing_pending(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "nowhere", readonly=True) as ledger:
        assert ledger.memory().pending("studio-a") == frozenset()


# Old runs go by the settings' rules; what is not closed, and what is remembered of assets, stays


NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


class Days:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def days() -> Days:
    return Days()


@pytest.fixture
def ledger(place: Path | str, days: Days) -> Iterator[Ledger]:
    with Ledger.open(place, now=days) as opened:
        yield opened


def run_on(ledger: Ledger, days: Days, ago: int, *, close: bool = True) -> str:
    days.now = NOW - timedelta(days=ago)
    desired = plan()
    run = ledger.journal.start(desired, ["news.yml"])
    (target, *_) = desired.targets
    ledger.journal.sending(run, target, 0)
    results = (RequestResult("done", 200),) * len(target.requests)
    if close:
        result = TargetResult(target, "changed", requests=results, left={"marker new 1": ["3", {}]})
        ledger.journal.finished(run, result)
        ledger.journal.end(run, Result(run, desired, (result,)))
    ledger.memory().remember(target.id, {f"field:{ago}": "kept"})
    days.now = NOW
    return run


def names(ledger: Ledger) -> list[str]:
    return [run.run for run in ledger.history()]


def test_without_a_rule_all_stay(ledger: Ledger, days: Days) -> None:
    runs = [run_on(ledger, days, ago) for ago in (900, 1)]
    assert ledger.prune() == 0
    assert names(ledger) == runs[::-1]


def test_the_newest_stay(ledger: Ledger, days: Days) -> None:
    runs = [run_on(ledger, days, ago) for ago in (5, 4, 3, 2)]
    assert ledger.prune(keep_runs=2) == 2
    assert names(ledger) == [runs[3], runs[2]]
    assert ledger.run_details(runs[2]).targets[0].left == {"marker new 1": ["3", {}]}
    assert ledger.prune(keep_runs=0) == 1, "the last run stays, whatever the rule"


def test_the_last_days_stay(ledger: Ledger, days: Days) -> None:
    runs = [run_on(ledger, days, ago) for ago in (50, 31, 29, 2)]
    assert ledger.prune(keep_days=30) == 2
    assert names(ledger) == [runs[3], runs[2]]


def test_a_run_stays_that_one_of_the_rules_keeps(ledger: Ledger, days: Days) -> None:
    runs = [run_on(ledger, days, ago) for ago in (50, 31, 29, 2)]
    assert ledger.prune(keep_days=30, keep_runs=3) == 1
    assert names(ledger) == runs[:0:-1]


def test_numbers_of_any_size_are_rules(ledger: Ledger, days: Days) -> None:
    runs = [run_on(ledger, days, ago) for ago in (50, 2)]
    assert ledger.prune(keep_days=10**15) == ledger.prune(keep_runs=10**30) == 0
    assert names(ledger) == runs[::-1]


def test_what_is_not_closed_stays(ledger: Ledger, days: Days, place: Path | str) -> None:
    died = run_on(ledger, days, 90, close=False)
    run_on(ledger, days, 80)
    last = run_on(ledger, days, 1)
    assert ledger.prune(keep_runs=1) == 1
    assert names(ledger) == [last, died]
    ledger.journal.close()
    assert [run.status for run in ledger.history()] == ["ok", "died"]


def test_nothing_is_left_of_a_forgotten_run_but_what_is_remembered(
    ledger: Ledger, days: Days
) -> None:
    old, last = run_on(ledger, days, 90), run_on(ledger, days, 1)
    assert ledger.prune(keep_runs=1) == 1
    store = ledger._store
    for name in ("target", "record", "request", "note"):
        left = store.read(f"SELECT DISTINCT r.name FROM {name} t JOIN run r ON r.id = t.run")
        assert {row[0] for row in left} <= {last}, (name, old)
        assert store.read(f"SELECT count(*) FROM {name} WHERE run NOT IN (SELECT id FROM run)") == [
            (0,)
        ]
    remembered = ledger.memory().recall(plan().targets[0].id)
    assert {"field:90", "field:1"} <= set(remembered)


def test_a_clip_is_found_by_its_title_without_reading_all_clips_of_its_database() -> None:
    tables = Path(journal.__file__).with_name("tables.sql").read_text()
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(tables)
        query = f"EXPLAIN QUERY PLAN {journal._CLIPS_TITLED}"
        steps = [row[3] for row in connection.execute(query, ("server", "database", "title"))]
    searches = [step for step in steps if step.startswith("SEARCH")]
    assert len(searches) == 2
    assert "clip_title (server=? AND database=? AND title=?)" in searches[0]
    assert "create_time=?" in searches[1]
