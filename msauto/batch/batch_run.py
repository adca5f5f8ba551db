"""One run of a batch: which jobs are due, and each job isolated from the others.

How a job is run, the clock and the record are parameters. No job starts after the window has closed.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Final, Protocol

from msgspec import structs

from msauto.batch.batch_file import BatchFile, Job
from msauto.batch.batch_result import (
    BatchResult,
    DifferingTarget,
    JobResult,
    SentMessage,
    code_of,
    outcome_of,
)
from msauto.batch.schedule import DueStarts, due_starts, open_until, outside_of
from msauto.exit_codes import INTERRUPTED, REFUSED
from msauto.model.ports import Clock
from msauto.model.result import format_time
from msauto.playbook.input_files import beside

_DAY = timedelta(days=1)
_PROGRAM_SECONDS: Final = 60
_STDERR: Final = 2  # stdout is for the summary


@dataclass(frozen=True, slots=True)
class JobAttempt:
    """What came of one attempt of a job: its exit code, and why it is not 0.

    ``run`` is its id in the history, if it sent requests. ``again``: trying again is safe and may help, because a
    server was unreachable or another run held a lock. ``differing``: what a plan would change. ``warnings``: of the
    plan.
    """

    code: int
    reason: str = ""
    run: str = ""
    again: bool = False
    summary: dict[str, int] | None = None
    differing: tuple[DifferingTarget, ...] = ()
    warnings: tuple[str, ...] = ()
    skipped: bool = False


class JobRunner(Protocol):
    """Runs a job once."""

    def __call__(self, job: Job, attempt: int, until: datetime | None) -> JobAttempt:
        """Plan and apply; begin no target at or after ``until``. Never raises."""


class StopSignal(Protocol):
    """Whether the batch was asked to stop."""

    @property
    def requested(self) -> bool:
        """Whether it was."""

    def wait(self, seconds: float) -> bool:
        """Wait, or until the batch is asked to stop; return whether it was."""


def due_now(batch: BatchFile, handled: datetime | None, now: datetime) -> DueStarts:
    """Return which start of the schedule is to run now, and which are missed.

    ``handled`` is the instant until which all starts were run, missed or refused; ``None``: the batch never ran, and
    the starts before it was set up are not missed.
    """
    if handled is None:
        return DueStarts(due_starts(batch.schedule, batch.window, now - _DAY, now).now)
    return due_starts(batch.schedule, batch.window, handled, now)


def why_missed(batch: BatchFile, due: DueStarts, now: datetime) -> str | None:
    """Return why a start by the scheduler runs no job: it is outside its window; ``None``: it runs."""
    window = batch.window
    if window is not None and not window.is_open(now):
        return outside_of(window, now)
    if due.missed and due.now is None:
        start = due.missed[-1].astimezone(batch.schedule.zone)
        return f"the start of {start:%a %Y-%m-%d %H:%M %Z} was missed, and its window has closed"
    return None


def failed_jobs(last: BatchResult | None, batch: BatchFile) -> tuple[str, ...]:
    """Return the jobs that are not done, in the order of the file: all of them after a start that ran none.

    A start that another run of the batch locked out does not count: the jobs are those of that run.
    """
    if last is None or (not last.jobs and last.code and last.outcome != "locked"):
        return tuple(job.name for job in batch.jobs)
    found = [(job.name, last.last_of(job.name)) for job in batch.jobs]
    return tuple(name for name, result in found if result is None or not result.done)


@dataclass(frozen=True, slots=True)
class BatchRun:
    """A run of some jobs of a batch. ``record`` is called with the result so far, after each job."""

    batch: BatchFile
    run_job: JobRunner
    clock: Clock
    stop: StopSignal
    record: Callable[[BatchResult], None]
    started_job: Callable[[Job], None]
    ended_job: Callable[[Job, JobResult], None]
    check: bool = False

    def run(self, jobs: Sequence[Job], result: BatchResult, last: BatchResult | None) -> BatchResult:
        """Run the jobs in their order; return the result with their results."""
        before = {job.name: last.last_of(job.name) if last else None for job in self.batch.jobs}
        results = {job.name: _not_yet(job, before[job.name]) for job in jobs}
        earlier = tuple(each for name, each in before.items() if each is not None and name not in results)
        result = structs.replace(result, jobs=tuple(results.values()), earlier=earlier)
        self.record(result)
        closing = open_until(self.batch.window, self.clock.now())
        for job in jobs:
            results[job.name] = self._job(job, results, closing, before[job.name])
            result = structs.replace(result, jobs=tuple(results.values()))
            self.record(result)
        return structs.replace(
            result,
            drift_changed=any(_drift_changed(results[job.name], before[job.name]) for job in jobs),
            code=code_of(results.values()),
            outcome=outcome_of(code_of(results.values())),
        )

    def _job(
        self, job: Job, results: dict[str, JobResult], closing: datetime | None, before: JobResult | None
    ) -> JobResult:
        pending = results[job.name]
        unmet = _unmet_need(job, results)
        if self.stop.requested or any(each.code == INTERRUPTED for each in results.values()):
            return structs.replace(pending, code=INTERRUPTED, reason="the batch was interrupted")
        if closing is not None and self.clock.now() >= closing:
            return structs.replace(pending, code=REFUSED, reason=f"the window {self.batch.window} has closed")
        if unmet is not None:
            return structs.replace(pending, outcome="skipped", reason=unmet)
        self.started_job(job)
        result = self._attempts(job, pending, closing, before)
        self.ended_job(job, result)
        return result

    def _attempts(self, job: Job, pending: JobResult, closing: datetime | None, before: JobResult | None) -> JobResult:
        started = self.clock.now()
        until = started + job.args.max_time if job.args.max_time is not None else None
        ends = [end for end in (until, closing) if end is not None]
        runs: list[str] = []
        changed = 0
        for number in count(1):
            attempt = self.run_job(job, number, until)
            runs += [attempt.run] if attempt.run else []
            summary = attempt.summary or {}
            changed += summary.get("changed", 0)
            if not attempt.again or not self._wait(job, number, ends):
                break
        now = format_time(self.clock.now())
        return structs.replace(
            pending,
            outcome="skipped" if attempt.skipped else outcome_of(attempt.code),
            code=attempt.code,
            reason=attempt.reason,
            attempts=number,
            started=format_time(started),
            ended=now,
            runs=tuple(runs),
            summary=summary | ({"changed": changed} if changed else {}),
            warnings=attempt.warnings,
            drift=_drift(job, attempt, before),
            last_success=now if attempt.code == 0 and not self.check else pending.last_success,
        )

    def _wait(self, job: Job, number: int, ends: Sequence[datetime]) -> bool:
        """Wait before the next attempt; return whether there is one: never after the window or ``max_time``."""
        retry = job.args.retry
        if retry is None or number > retry.times:
            return False
        again = self.clock.now() + retry.wait
        return all(again < end for end in ends) and not self.stop.wait(retry.wait.total_seconds())


def _not_yet(job: Job, before: JobResult | None) -> JobResult:
    if before is None:
        return JobResult(job=job.name)
    return JobResult(job=job.name, last_success=before.last_success, drift=before.drift)


def _unmet_need(job: Job, results: dict[str, JobResult]) -> str | None:
    """Return which need of a job is not met; a need that is not part of this run is not looked at."""
    for name, required in (job.args.needs or {}).items():
        need = results.get(name)
        if need is not None and not need.done and required == "ok":
            return f"needs {name}, which ended with {need.outcome!r}"
    return None


# Drift ------------------------------------------------------------------------------------------------------------


def _drift(job: Job, attempt: JobAttempt, before: JobResult | None) -> tuple[DifferingTarget, ...]:
    """Return what differs, with the number of nights; a target is reported once it differs long enough.

    A job that failed does not show what differs: then it is what is known from the night before.
    """
    known = before.drift if before else ()
    if attempt.code != 0:
        return known
    nights = {each.id: each.nights for each in known}
    after = job.args.drift.after if job.args.drift else 1
    counted = [structs.replace(each, nights=nights.get(each.id, 0) + 1) for each in attempt.differing]
    return tuple(structs.replace(each, reported=each.nights >= after) for each in counted)


def _drift_changed(result: JobResult, before: JobResult | None) -> bool:
    """Return whether other targets drift than the night before; a job that failed found nothing out."""
    if result.code != 0:
        return False
    known = {each.id for each in before.reported_drift} if before else set()
    return {each.id for each in result.reported_drift} != known


# Programs -------------------------------------------------------------------------------------------------------------


def run_end_programs(job: Job, result: JobResult, batch: BatchResult, env: Mapping[str, str]) -> Iterator[SentMessage]:
    """Run the programs of a job one after another; yield what came of each. What they print goes to stderr."""
    about = {
        "MSAUTO_BATCH": batch.batch,
        "MSAUTO_BATCH_RUN": batch.run,
        "MSAUTO_JOB": job.name,
        "MSAUTO_OUTCOME": result.outcome,
        "MSAUTO_CODE": str(result.code),
        "MSAUTO_REASON": result.reason,
        "MSAUTO_ATTEMPTS": str(result.attempts),
        "MSAUTO_RUNS": " ".join(result.runs),
    }
    folder = Path(batch.file).parent
    for program, *arguments in job.args.on_end or ():
        path = str(Path(beside(batch.file, program)).absolute()) if "/" in program else program
        error = _run([path, *arguments], folder, {**env, **about})
        yield SentMessage(kind="program", to=program, error=error)


def _run(command: list[str], folder: Path, env: Mapping[str, str]) -> str:
    """Run a program; return why it failed, or nothing."""
    try:
        process = subprocess.Popen(  # noqa: S603 - the programs of the batch file, without a shell
            command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=_STDERR, start_new_session=True
        )
    except (OSError, ValueError) as error:
        return f"it cannot be started: {getattr(error, 'strerror', None) or error}"
    try:
        code = process.wait(_PROGRAM_SECONDS)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"it did not end within {_PROGRAM_SECONDS} s, and was killed"
    return f"it ended with {code}" if code else ""
