"""Old runs go by the settings' rules; what is not closed, and what is remembered of assets, stays."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from msauto.ledger import Ledger
from msauto.model.result import RequestResult, Result, TargetResult
from tests.unit.ledger.ledger_plans import plan

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
    ledger.journal.planned(run, target)
    ledger.journal.sending(run, target, 0)
    results = (RequestResult("done", 200),) * len(target.requests)
    if close:
        result = TargetResult(target, "changed", requests=results, learned={"marker:Cue Point@7": 3})
        ledger.journal.finished(run, result)
        ledger.journal.end(run, Result(run, desired, (result,)))
    ledger.memory.remember(target.id, {f"field:{ago}": "kept"})
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
    assert ledger.run_details(runs[2]).targets[0].learned == {"marker:Cue Point@7": 3}
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


def test_nothing_is_left_of_a_forgotten_run_but_what_is_remembered(ledger: Ledger, days: Days) -> None:
    old, last = run_on(ledger, days, 90), run_on(ledger, days, 1)
    assert ledger.prune(keep_runs=1) == 1
    store = ledger._store
    for table in ("target", "request", "note", "learned"):
        left = store.read(f"SELECT DISTINCT r.name FROM {table} t JOIN run r ON r.id = t.run")
        assert {row[0] for row in left} <= {last}, (table, old)
        assert store.read(f"SELECT count(*) FROM {table} WHERE run NOT IN (SELECT id FROM run)") == [(0,)]
    remembered = ledger.memory.recall(plan().targets[0].id)
    assert {"field:90", "field:1"} <= set(remembered)
