"""A run of a batch on a virtual clock: needs, retries, ``max_time``, the window, signals, drift, and exit codes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from msauto.playbook.change_windows import DatedFreeze, freeze_at
from msauto.plugins.batch.batch_file import BatchFile, Job, load_batch
from msauto.plugins.batch.batch_job import JobAttempt
from msauto.plugins.batch.batch_result import (
    BatchResult,
    DifferingTarget,
    JobResult,
    code_of,
    outcome_of,
)
from msauto.plugins.batch.batch_run import BatchRun, failed_jobs, why_missed
from msauto.plugins.batch.causes import Cause
from msauto.plugins.batch.monitoring import events_of
from msauto.plugins.batch.schedule import due_starts
from msauto.plugins.batch.summary import SUMMARY_FORMS, render_text

START = datetime.fromisoformat("2026-11-20T03:10:00+00:00")
HEAD = 'name: nightly\nschedule: {at: "03:10", tz: UTC}\nwindow: {from: "02:00", to: "05:00"}\n'


def attempt(code: int, reason: str = "", *, again: bool = False, **more: Any) -> JobAttempt:
    return JobAttempt(
        JobResult(job="a", outcome=outcome_of(code), code=code, reason=reason, **more), again
    )


OK, FAILED, REFUSED, LOCKED = (
    attempt(0),
    attempt(3, "failed"),
    attempt(4, "refused"),
    attempt(5, again=True),
)
UNREACHABLE = attempt(1, "unreachable", again=True)


@dataclass
class Night:
    """A clock and a stop signal; ``attempts`` has what each attempt of a job gives, and how long it takes."""

    attempts: dict[str, list[JobAttempt]]
    minutes: int = 0
    now_: datetime = START
    nights_later: int = 0
    stop_in: str = ""
    ran: list[tuple[str, int]] = field(default_factory=list)
    until: dict[str, datetime | None] = field(default_factory=dict)
    requested: bool = False
    recorded: list[BatchResult] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.now_ += timedelta(days=self.nights_later)

    def now(self) -> datetime:
        return self.now_

    def monotonic(self) -> float:
        return self.now_.timestamp()

    async def sleep(self, seconds: float) -> None:
        self.now_ += timedelta(seconds=seconds)

    def wait(self, seconds: float) -> bool:
        self.now_ += timedelta(seconds=seconds)
        return self.requested

    def run_job(self, job: Job, number: int, until: datetime | None, _: object) -> JobAttempt:
        self.ran.append((job.name, number))
        self.until[job.name] = until
        self.now_ += timedelta(minutes=self.minutes)
        self.requested = self.requested or job.name == self.stop_in
        left = self.attempts.get(job.name, [OK])
        made = left[min(number, len(left)) - 1]
        return made._replace(result=structs.replace(made.result, job=job.name))


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], BatchFile]:
    def load(jobs: str) -> BatchFile:
        path = tmp_path / "batch.yml"
        path.write_text(HEAD + jobs, encoding="utf-8")
        return load_batch(str(path))

    return load


def run(
    batch: BatchFile, night: Night, last: BatchResult | None = None, names: set[str] | None = None
) -> BatchResult:
    def nothing(*_: Any) -> None:
        pass

    runner = BatchRun(
        batch, night.run_job, night, night.wait, night.recorded.append, nothing, nothing
    )
    jobs = [job for job in batch.jobs if names is None or job.name in names]
    return runner.run(
        jobs, BatchResult(run="r", batch="nightly", file=batch.file, started="x"), last
    )


def outcomes(result: BatchResult) -> dict[str, tuple[str, int | None]]:
    return {each.job: (each.outcome, each.code) for each in result.jobs}


CHAIN = """
jobs:
  a: {playbooks: p.yml}
  b: {playbooks: p.yml, needs: a}
  c: {playbooks: p.yml, needs: b}
  d: {playbooks: p.yml, needs: {b: any}}
  e: {playbooks: p.yml}
"""


@pytest.mark.parametrize("made", [FAILED, REFUSED, LOCKED, attempt(1)])
def test_only_what_needs_a_job_is_skipped(
    load: Callable[[str], BatchFile], made: JobAttempt
) -> None:
    night = Night({"a": [made]})
    result = run(load(CHAIN), night)
    assert [name for name, _ in night.ran] == ["a", "d", "e"]
    assert outcomes(result)["b"] == outcomes(result)["c"] == ("skipped", None)
    assert result.code == made.result.code
    assert failed_jobs(result, load(CHAIN)) == ("a", "b", "c")
    assert len(night.recorded) == 6, "the record is written at the start and after each job"


def test_a_need_that_is_not_part_of_the_run_is_not_looked_at(
    load: Callable[[str], BatchFile],
) -> None:
    assert outcomes(run(load(CHAIN), Night({}), names={"b"})) == {"b": ("ok", 0)}


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        ([0], 0),
        ([4], 4),
        ([0, 4], 4),
        ([4, 4, 0], 4),
        ([1, 4], 3),
        ([5, 5], 5),
        ([None, 1], 1),
        ([0, 130, 4], 130),
    ],
)
def test_the_exit_code(codes: list[int | None], code: int) -> None:
    assert code_of([JobResult(job="x", code=each) for each in codes]) == code


RETRY = "jobs: {a: {playbooks: p.yml, retry: {times: 3, wait: 10m}, max_time: %s}, b: {playbooks: p.yml}}"


@pytest.mark.parametrize("again", [UNREACHABLE, LOCKED])
def test_what_may_help_is_tried_again(load: Callable[[str], BatchFile], again: JobAttempt) -> None:
    result = run(load(RETRY % "2h"), Night({"a": [again, again, OK]}))
    assert [(each.outcome, each.attempts) for each in result.jobs] == [("ok", 3), ("ok", 1)]
    result = run(load(RETRY % "2h"), Night({"a": [again]}))
    assert [(each.code, each.attempts) for each in result.jobs] == [(again.result.code, 4), (0, 1)]


@pytest.mark.parametrize("made", [FAILED, REFUSED, attempt(1), OK])
def test_nothing_else_is_tried_again(load: Callable[[str], BatchFile], made: JobAttempt) -> None:
    assert run(load(RETRY % "2h"), Night({"a": [made, OK]})).jobs[0].attempts == 1


def test_no_attempt_begins_after_max_time(load: Callable[[str], BatchFile]) -> None:
    night = Night({"a": [UNREACHABLE]})
    assert run(load(RETRY % "25m"), night).jobs[0].attempts == 3
    assert night.until == {"a": START + timedelta(minutes=25), "b": None}


def test_no_attempt_and_no_job_begins_after_the_window(load: Callable[[str], BatchFile]) -> None:
    night = Night({"a": [UNREACHABLE]}, minutes=50)
    result = run(load(RETRY % "7h"), night)
    assert night.ran == [("a", 1), ("a", 2)]  # 03:10 and 04:10; the third would begin at 05:10
    assert outcomes(result) == {"a": ("failed", 1), "b": ("not attempted", 4)}
    assert result.jobs[1].reason == "the window 02:00-05:00 has closed"
    assert failed_jobs(result, load(RETRY % "7h")) == ("a", "b")


def test_a_signal_in_a_job_ends_the_batch_after_it(load: Callable[[str], BatchFile]) -> None:
    night = Night({"b": [attempt(130)]}, stop_in="b")
    result = run(load(CHAIN), night)
    assert outcomes(result)["b"] == ("interrupted", 130)
    assert {outcomes(result)[name] for name in "cde"} == {("not attempted", 130)}
    assert (result.code, result.outcome) == (130, "interrupted")


def test_a_signal_during_the_pause_ends_the_batch(load: Callable[[str], BatchFile]) -> None:
    night = Night({"a": [UNREACHABLE]}, stop_in="a")
    result = run(load(RETRY % "2h"), night)
    assert night.ran == [("a", 1)]
    assert outcomes(result) == {"a": ("failed", 1), "b": ("not attempted", 130)}


def test_the_last_success_is_kept(load: Callable[[str], BatchFile]) -> None:
    batch = load("jobs: {a: {playbooks: p.yml}, b: {playbooks: p.yml}}")
    first = run(batch, Night({}))
    night = Night({"a": [FAILED]}, now_=START + timedelta(days=1))
    second = run(batch, night, first, names={"a"})
    assert second.jobs[0].last_success == first.jobs[0].last_success == "2026-11-20T03:10:00.000Z"
    assert [each.job for each in second.earlier] == ["b"]
    third = run(batch, Night({}), second)
    assert not third.earlier


# Drift ------------------------------------------------------------------------------------------------------------


def drifting(*names: str) -> JobAttempt:
    found = [
        DifferingTarget(
            server="s", database="N", kind="asset", name=each, changes=("field comment",)
        )
        for each in names
    ]
    return attempt(0, drift=tuple(found))


DRIFTING_NIGHTS = [
    ("A", "", False), ("A", "A", True), ("A", "A", False), ("AB", "A", False), ("AB", "AB", True), ("B", "B", True),
    ("", "", True), ("A", "", False),
]  # fmt: skip
"""What differs, what is reported after it differed for two nights, and whether that is news."""


def test_drift_is_reported_once_until_other_targets_differ(
    load: Callable[[str], BatchFile],
) -> None:
    batch = load("jobs: {a: {playbooks: p.yml, do: plan, drift: {after: 2}}}")
    last: BatchResult | None = None
    for later, (names, reported, is_news) in enumerate(DRIFTING_NIGHTS):
        last = run(batch, Night({"a": [drifting(*names)]}, nights_later=later), last)
        (job,) = last.jobs
        assert "".join(target.name for target in job.reported_drift) == reported
        assert ("drift" in events_of(last)) == is_news


def test_a_night_without_a_plan_does_not_interrupt_drift(load: Callable[[str], BatchFile]) -> None:
    batch = load("jobs: {a: {playbooks: p.yml, do: plan, drift: {after: 2}}}")
    first = run(batch, Night({"a": [drifting("A")]}))
    second = run(batch, Night({"a": [UNREACHABLE]}), first)
    assert not second.drift_changed
    third = run(batch, Night({"a": [drifting("A")]}, nights_later=2), second)
    assert [(each.name, each.nights) for each in third.jobs[0].reported_drift] == [("A", 2)]


def test_a_night_without_a_plan_shows_no_drift_of_the_night_before(
    load: Callable[[str], BatchFile],
) -> None:
    batch = load("jobs: {a: {playbooks: p.yml, do: plan}}")
    first = run(batch, Night({"a": [drifting("A")]}))
    second = run(batch, Night({"a": [UNREACHABLE]}), first)
    third = run(batch, Night({"a": [drifting("A")]}, nights_later=2), second)
    assert first.drift_changed
    assert not second.drift_changed
    assert not third.drift_changed
    words = ("Show its targets</button>", '"status":"differs"')
    text = ""
    for night, differs in ((first, True), (second, False), (third, True)):
        shown = structs.replace(night, started=f"{START}")
        text, page = render_text(shown), SUMMARY_FORMS["html"][1](shown, None)
        assert ("s/N: A differs" in text) == differs
        assert [word in page for word in words] == [differs] * 2
    assert "for 2 nights" in text


def test_a_night_in_which_the_job_is_skipped_does_not_interrupt_drift(
    load: Callable[[str], BatchFile],
) -> None:
    batch = load(
        "jobs: {a: {playbooks: p.yml}, b: {playbooks: p.yml, do: plan, needs: a, drift: {after: 2}}}"
    )
    last: BatchResult | None = None
    changed = []
    for later, a in enumerate((OK, OK, FAILED, OK)):
        last = run(batch, Night({"a": [a], "b": [drifting("A")]}, nights_later=later), last)
        changed.append("drift" in events_of(last))
    assert changed == [False, True, False, False]


def test_drift_is_told_beside_a_target_in_error(load: Callable[[str], BatchFile]) -> None:
    batch = load("jobs: {a: {playbooks: p.yml, do: plan}}")
    first = run(batch, Night({"a": [drifting("A", "B")]}))
    lost = Cause(server="s", outcome="not attempted", count=1, names=("A",), message="not found")
    partly = drifting("B").result
    second = run(
        batch,
        Night(
            {"a": [JobAttempt(structs.replace(partly, code=1, outcome="failed", causes=(lost,)))]},
            nights_later=1,
        ),
        first,
    )
    assert [(each.name, each.nights) for each in second.jobs[0].reported_drift] == [("B", 2)]
    assert not second.drift_changed, "A is still known"
    third = run(batch, Night({"a": [drifting("A", "B")]}, nights_later=2), second)
    assert {each.name: each.nights for each in third.jobs[0].reported_drift} == {"A": 2, "B": 3}


def test_a_rerun_is_the_same_night(load: Callable[[str], BatchFile]) -> None:
    batch = load("jobs: {a: {playbooks: p.yml, do: plan}}")
    last: BatchResult | None = None
    nights = []
    for hours in (0, 3, 23, 24, 30, 48):
        again = Night({"a": [drifting("A")]}, now_=START + timedelta(hours=hours))
        last = run(batch, again, last)
        nights.append(last.jobs[0].drift[0].nights)
    assert nights == [1, 1, 1, 2, 2, 3]


def test_after_a_start_that_ran_no_job_all_are_left(load: Callable[[str], BatchFile]) -> None:
    batch = load(CHAIN)
    names = tuple(job.name for job in batch.jobs)
    good = run(batch, Night({}))
    missed = BatchResult(
        run="r", batch="b", file="f", started="x", outcome="missed", code=4, earlier=good.jobs
    )
    assert (failed_jobs(None, batch), failed_jobs(missed, batch), failed_jobs(good, batch)) == (
        names,
        names,
        (),
    )
    assert failed_jobs(run(batch, Night({}), names={"a", "b", "c", "d"}), batch) == ("e",)


@pytest.mark.parametrize(
    ("result", "events"),
    [
        ({"jobs": (JobResult(job="a"),), "code": 1}, ("failed",)),
        ({"jobs": (JobResult(job="a", code=0),), "code": 0}, ("ok",)),
        ({"jobs": (JobResult(job="a", code=0, summary={"changed": 2}),), "code": 0, "recovered": True},
         ("changed", "recovered", "ok")),
        ({"jobs": (JobResult(job="a", code=3), JobResult(job="b", code=4)), "code": 3}, ("failed", "refused")),
        ({"jobs": (JobResult(job="a", code=5),), "code": 5}, ("locked",)),
        ({"jobs": (JobResult(job="a", code=130),), "code": 130}, ("failed",)),
        ({"outcome": "missed", "code": 4}, ("missed",)),
        ({"code": 1}, ("failed",)),
        ({"jobs": (JobResult(job="a", code=0),), "code": 0, "missed": ("x",)}, ("missed", "ok")),
    ],
)  # fmt: skip
def test_what_happened(result: dict[str, Any], events: tuple[str, ...]) -> None:
    assert events_of(BatchResult(run="r", batch="b", file="f", started="x", **result)) == events


# Down-time --------------------------------------------------------------------------------------------------------


def test_in_a_year_of_down_time_each_night_is_run_missed_or_refused_exactly_once(
    load: Callable[[str], BatchFile],
) -> None:
    """As in ``msauto batch run``: a start handles all nights until then, also if a freeze refuses its jobs."""
    chosen, batch = random.Random(12), load("jobs: {a: {playbooks: p.yml}}")
    frozen = DatedFreeze(START + timedelta(days=100), START + timedelta(days=200))
    nights: list[datetime] = []
    fates: Counter[str] = Counter()
    now, handled = START, START
    while now < START + timedelta(days=365):
        now += timedelta(minutes=chosen.choice((5, 30, 60, 200, 700, 3000)))
        due = due_starts(batch.schedule, batch.window, handled, now)
        assert not (due.now and why_missed(batch, due, now))
        nights += [*due.missed, *filter(None, [due.now])]
        fates["missed"] += len(due.missed)
        if due.now is not None:
            refused = freeze_at([frozen], now) is not None
            fates["refused" if refused else "run"] += 1
        handled = now
    assert sorted(nights) == [*batch.schedule.starts_between(START, now)]
    for fate in ("run", "missed", "refused"):
        assert fates[fate] > 5
