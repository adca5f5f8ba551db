"""The journal: what goes in comes out, in every state that a run can be left in."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from msauto.errors import LedgerError
from msauto.ledger import Ledger
from msauto.model.codec import dump, load, to_json
from msauto.model.plan import Target
from msauto.model.result import Difference, RequestResult, Result, TargetResult
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
    assert load(Target, '{"server":"a","database":"b","kind":"asset","name":"c"}') == Target("a", "b", "asset", "c")


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
        ledger.journal.planned(run, first)
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
        second_result = TargetResult(second, "not attempted", "stopped", (RequestResult("not sent"),))
        ledger.journal.end(run, Result(run, whole, (first_result, second_result), interrupted=True))
    with Ledger.open(place, readonly=True) as ledger:
        assert not ledger.empty
        (summary,) = ledger.history()
        details = ledger.run_details(run)
        assert ledger.run_details("last") == details
    assert summary == details.summary
    assert (summary.status, summary.playbooks) == ("interrupted", ("news.yml", "rss.yml"))
    assert summary.ended is not None
    assert summary.started < summary.ended
    assert (summary.summary["requests"], summary.summary["sent"]) == (3, 2)
    assert (summary.summary["failed"], summary.summary["not_attempted"]) == (1, 1)
    assert {"run", "started", "ended", "status", "playbooks", "summary"} < set(to_json(summary))
    one, two = details.targets
    assert (one.target, two.target) == (first, second)
    assert (one.outcome, one.message, one.differences) == ("failed", "request 2 of 2: no", differences)
    assert [(each.state, each.tries, each.status) for each in one.requests] == [("done", 1, 200), ("failed", 2, 500)]
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


def test_a_target_outside_the_plan_is_added(place: Path | str) -> None:
    extra = target("Extra", 1)
    with Ledger.open(place) as ledger:
        run = ledger.journal.start(plan(), [])
        ledger.journal.planned(run, extra)
        ledger.journal.sending(run, extra, 0)
        assert ledger.run_details(run).targets[2].target == extra
        assert ledger.run_details(run).targets[2].requests[0].state == "sending"


def test_a_request_that_the_ledger_lacks_is_not_sent(place: Path | str) -> None:
    whole = plan()
    with Ledger.open(place) as ledger:
        run = ledger.journal.start(whole, [])
        with pytest.raises(LedgerError, match="does not contain request 5 of Evening"):
            ledger.journal.sending(run, whole.targets[0], 5)


def test_together_is_all_or_nothing(place: Path | str) -> None:
    whole = plan()
    one = whole.targets[0]

    def fail() -> None:
        with ledger.journal.together():
            ledger.journal.sending(run, one, 0)
            ledger.memory.remember(one.id, {"field:comment": "x"})
            raise ZeroDivisionError

    with Ledger.open(place) as ledger:
        run = ledger.journal.start(whole, [])
        with pytest.raises(ZeroDivisionError):
            fail()
        assert ledger.run_details(run).targets[0].requests[0].state == "planned"
        assert ledger.memory.recall(one.id) == {}
        with ledger.journal.together():
            ledger.journal.sending(run, one, 0)
        assert ledger.run_details(run).targets[0].requests[0].state == "sending"


def test_an_unknown_run(place: Path | str) -> None:
    with Ledger.open(place) as ledger, pytest.raises(LedgerError, match="run R not found") as caught:
        ledger.run_details("R")
    assert "msauto history" in caught.value.remedy


def test_a_ledger_without_runs_has_no_last_one(place: Path | str) -> None:
    with Ledger.open(place) as ledger, pytest.raises(LedgerError, match="contains no runs") as caught:
        ledger.run_details("last")
    assert "--state-dir" in caught.value.remedy


def test_counts_of_an_earlier_msauto_come_under_the_same_names(place: Path | str) -> None:
    with Ledger.open(place, now=Time()) as ledger:
        ledger.journal.start(plan(), ["news.yml"])
        ledger._store.write("UPDATE run SET summary = ?", ('{"requests": 3, "not attempted": 2}',))
    with Ledger.open(place, readonly=True) as ledger:
        assert ledger.history()[0].summary == {"requests": 3, "not_attempted": 2, "sent": 0}
