"""A batch and its times, on a clock that goes on when the server is written to: the window, ``max_time``, locks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from msauto.concurrency import SystemClock
from msauto.ledger import locks
from msauto.ledger.ledger import Ledger
from msauto.ledger.locks import LockScope
from msauto.plugins.batch.batch_file import load_batch
from msauto.plugins.batch.batch_job import BatchSignals
from msauto.plugins.batch.batch_result import BatchResult
from msauto.plugins.batch.batch_run import BatchSession, JobChoice
from msauto.plugins.simulator.embedded import Simulator
from tests.cli.batch.test_cli_batch import batch
from tests.cli.command_line import Desk
from tests.cli.runs.test_cli_interrupts import episodes
from tests.stage import entered

NIGHT = {"schedule": {"at": "03:10", "tz": "UTC"}, "window": {"from": "02:00", "to": "05:00"}}
JOBS = {name: {"playbooks": "play.yml", "forks": 1} for name in ("a", "b")}


@dataclass
class ServerClock(SystemClock):
    """Begins at a time; each write to the server takes an hour."""

    sim: Simulator
    begin: datetime

    def now(self) -> datetime:
        return self.begin + timedelta(hours=len(self.sim.writes()))


class NoPause(BatchSignals):
    """Waits for nothing; ``meanwhile`` is what happens during a pause."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__()
        self.meanwhile = meanwhile

    def wait(self, seconds: float) -> bool:
        if seconds:
            self.meanwhile()
        return self.requested


def night(
    desk: Desk, sim: Simulator, *, at: str = "2026-11-20T03:10:00+00:00", **choice: Any
) -> BatchResult:
    signals = choice.pop("signals", None) or BatchSignals()
    with standing(desk), signals.noted():
        clock = ServerClock(sim, datetime.fromisoformat(at))
        session = BatchSession(
            load_batch("batch.yml"), JobChoice(**choice), "state", signals, clock=clock, env={}
        )
        return session.run()


@contextmanager
def standing(desk: Desk) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(desk.folder)
    try:
        yield
    finally:
        os.chdir(before)


def outcomes(result: BatchResult) -> list[tuple[str, int | None]]:
    return [(each.outcome, each.code) for each in result.jobs]


def test_the_end_of_the_window_stops_gently(desk: Desk, sim: Simulator) -> None:
    episodes(desk, 5)
    batch(desk, JOBS, **NIGHT)
    result = night(desk, sim)
    assert outcomes(result) == [("failed", 3), ("not attempted", 4)]
    assert result.jobs[0].summary["changed"] == 1  # of two requests, at 04:10 and 05:10
    assert result.jobs[0].summary["not_attempted"] == 4
    assert "outside the window 02:00-05:00" in result.jobs[0].reason
    again = night(desk, sim, failed=True)
    assert (again.code, again.jobs) == (4, ()), "the window holds for --failed as well"
    rest = night(
        desk, sim, at="2026-11-21T00:10:00+00:00", failed=True
    )  # two hours later: two requests are done
    assert [each.summary.get("changed") for each in rest.jobs] == [2, None]


def test_max_time_stops_gently(desk: Desk, sim: Simulator) -> None:
    episodes(desk, 5)
    batch(
        desk, {"a": {**JOBS["a"], "max_time": "90m"}, "b": {"playbooks": "play.yml", "do": "plan"}}
    )
    result = night(desk, sim)
    assert outcomes(result) == [("failed", 3), ("ok", 0)]
    assert result.jobs[0].summary["not_attempted"] == 4
    assert "max_time" in result.jobs[0].reason
    assert len(result.jobs[1].drift) == 4


@pytest.mark.parametrize("times", [0, 1])
def test_a_lock_is_tried_again(desk: Desk, sim: Simulator, times: int) -> None:
    desk.comment("new")
    job: dict[str, Any] = {"playbooks": "play.yml"}
    outcome, code = "locked", 5
    if times:
        job["retry"] = {"times": times, "wait": "1m"}
        outcome, code = "ok", 0
    batch(desk, {"a": job, "b": {"playbooks": "play.yml"}})
    with Ledger.open(desk.state) as ledger, ExitStack() as locked:
        lock = ledger.hold([LockScope(sim.url, "NEWS")], SystemClock())
        locked.enter_context(entered(lock))
        result = night(desk, sim, signals=NoPause(locked.close))
    assert outcomes(result) == [(outcome, code), (outcome, code)]
    assert result.jobs[0].attempts == 1 + times
    assert result.code == code


@pytest.mark.parametrize(
    ("wait", "waited"), [("1m", 60), ("3h", 75 * 60)], ids=["its time", "until the window closes"]
)
def test_a_job_waits_for_a_lock_of_another_run(
    desk: Desk, sim: Simulator, monkeypatch: pytest.MonkeyPatch, wait: str, waited: int
) -> None:
    """`lock_timeout` is how long, at most until the window closes."""
    passed = 0.0

    async def sleep(_: ServerClock, pause: float) -> None:
        nonlocal passed
        passed += pause

    monkeypatch.setattr(locks, "_POLL", 30)
    monkeypatch.setattr(ServerClock, "sleep", sleep)
    monkeypatch.setattr(ServerClock, "monotonic", lambda _: passed)
    desk.comment("new")
    batch(
        desk,
        {"a": {"playbooks": "play.yml", "lock_timeout": wait}},
        **NIGHT | {"window": {"from": "02:00", "to": "04:25"}},
    )
    with Ledger.open(desk.state) as ledger:
        lock = ledger.hold([LockScope(sim.url, "NEWS")], SystemClock())
        with entered(lock):
            result = night(desk, sim)
    assert outcomes(result) == [("locked", 5)]
    assert passed == pytest.approx(waited)


def test_missed_nights_are_reported_once(desk: Desk, sim: Simulator) -> None:
    desk.comment("new")
    batch(desk, {"a": {"playbooks": "play.yml", "do": "plan"}}, **NIGHT)
    assert night(desk, sim, at="2026-11-20T03:10:00+00:00").scheduled == "2026-11-20T03:10:00.000Z"
    late = night(desk, sim, at="2026-11-23T04:00:00+00:00")
    assert (late.code, late.scheduled) == (0, "2026-11-23T03:10:00.000Z")
    assert late.missed == ("2026-11-21T03:10:00.000Z", "2026-11-22T03:10:00.000Z")
    missed = night(desk, sim, at="2026-11-24T12:00:00+00:00")
    assert (missed.code, missed.outcome, missed.missed) == (
        4,
        "missed",
        ("2026-11-24T03:10:00.000Z",),
    )
    assert [each.job for each in missed.earlier] == ["a"]
    assert night(desk, sim, at="2026-11-25T03:10:00+00:00").missed == ()


def test_a_start_in_the_window_of_the_next_night_and_before_its_start_runs_nothing(
    desk: Desk, sim: Simulator
) -> None:
    desk.comment("new")
    batch(desk, {"a": {"playbooks": "play.yml", "do": "plan"}}, **NIGHT)
    assert night(desk, sim).code == 0
    missed = night(desk, sim, at="2026-11-22T02:30:00+00:00")
    assert (missed.code, missed.outcome, missed.jobs) == (4, "missed", ())
    assert missed.reason == (
        "the start of Sat 2026-11-21 03:10 UTC was missed, and its window has closed"
    )
    assert night(desk, sim, at="2026-11-22T03:10:00+00:00").scheduled == "2026-11-22T03:10:00.000Z"


def test_a_night_of_a_wrong_clock_hides_no_missed_start(desk: Desk, sim: Simulator) -> None:
    desk.comment("new")
    batch(desk, {"a": {"playbooks": "play.yml", "do": "plan"}}, **NIGHT)
    for at in ("2027-11-20T03:10:00+00:00", "2026-11-20T03:10:00+00:00"):
        assert night(desk, sim, at=at).code == 0
    late = night(desk, sim, at="2026-11-22T04:00:00+00:00")
    assert late.missed == ("2026-11-21T03:10:00.000Z",)


def test_a_freeze_refuses_and_the_others_run(desk: Desk, sim: Simulator) -> None:
    desk.comment("new")
    batch(
        desk,
        {"a": {"playbooks": "play.yml"}, "b": {"playbooks": "play.yml", "do": "plan"}},
        **NIGHT,
    )
    text = '[[freeze]]\nstart = 2026-11-20\nend = 2026-11-21\nreason = "election"\ntz = "UTC"\n'
    desk.write("msauto.toml", f'inventory = "inventory.yml"\n{text}')
    result = night(desk, sim)
    assert outcomes(result) == [("refused", 4), ("ok", 0)]
    assert "election" in result.jobs[0].reason
    assert not sim.writes()
    assert outcomes(night(desk, sim, at="2026-11-22T03:10:00+00:00")) == [("ok", 0), ("ok", 0)]
