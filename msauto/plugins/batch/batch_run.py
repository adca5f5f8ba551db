"""``msauto batch run``: the frame around a run, which jobs are due, and each job isolated from the others.

Whatever happens inside, the result is recorded, reported and returned: bad playbooks, signals, errors of our own. How a
job is run, the clock and the record are parameters. No job starts after the window has closed.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, structs

from msauto.api.attempts import Attempt, origin_of, reason_of
from msauto.api.inputs import Tell, ledger_place
from msauto.concurrency import SystemClock
from msauto.errors import InputError, MsautoError, bug_text, exit_code_of
from msauto.exit_codes import ERROR, INTERRUPTED, OK, REFUSED
from msauto.file_access import may_be_there
from msauto.ledger.history import FOLDER, USER
from msauto.ledger.journal import new_run_name
from msauto.ledger.ledger import Ledger, LedgerPlace
from msauto.model.ports import Clock
from msauto.model.result import format_time, parse_time
from msauto.playbook.input_files import beside
from msauto.playbook.settings import load_settings
from msauto.playbook.settings_file import state_folder
from msauto.plugins.batch.batch_file import BatchFile, Job, load_batch
from msauto.plugins.batch.batch_job import BatchJobs, BatchLog, BatchSignals, JobAttempt
from msauto.plugins.batch.batch_result import (
    BatchResult,
    DifferingTarget,
    DifferingTargets,
    JobResult,
    SentMessage,
    code_of,
    last_result,
    outcome_of,
    record_result,
)
from msauto.plugins.batch.causes import TargetResults
from msauto.plugins.batch.monitoring import Monitor, notify_systemd
from msauto.plugins.batch.schedule import DueStarts, due_starts, open_until, outside_of
from msauto.report.sanitizing import visible
from msauto.report.text import render_error
from msauto.version import __version__

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_PROGRAM_SECONDS: Final = 60
_IN_TIME: Final = "run it within the window, or add --now"
_STDERR: Final = 2  # stdout is for the summary


def open_batch(file: str, state_dir: str | None, tell: Tell, *, check: bool) -> BatchFile:
    """Read a batch file; an attempt with a bad one is in the history as well."""
    try:
        return load_batch(file)
    except InputError as error:
        if not may_be_there(file):
            raise
        with suppress(MsautoError):
            place = ledger_place(state_dir, load_settings(None, Path(file).parent))
            Attempt(place, (file,), reason=reason_of(error), check=check, tell=tell).record(ERROR)
        raise


class JobChoice(Struct, frozen=True):
    """Which jobs to run: those that are named, those that failed, or all, as the scheduler starts them."""

    names: tuple[str, ...] = ()
    failed: bool = False
    check: bool = False

    @property
    def scheduled(self) -> bool:
        """Whether the run counts as a start of the schedule."""
        return not (self.names or self.failed or self.check)


@dataclass(slots=True)
class BatchSession:
    """One call of ``msauto batch run``; :meth:`run` never raises. ``result`` is what came of it so far.

    ``given`` are the options of the command that hold for all jobs, by their keywords.
    """

    batch: BatchFile
    choice: JobChoice
    state_dir: str | None
    signals: BatchSignals
    log: BatchLog = field(default_factory=BatchLog)
    clock: Clock = field(default_factory=SystemClock)
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    given: Mapping[str, Any] = field(default_factory=dict)
    result: BatchResult = field(init=False)
    _last: BatchResult | None = None
    _due: DueStarts = field(default_factory=DueStarts)
    _keeps: bool = False
    ledger: LedgerPlace = Path()
    _deliveries: list[SentMessage] = field(default_factory=list)
    _monitor: Monitor = field(init=False)

    def __post_init__(self) -> None:
        self._monitor = Monitor(self.batch, self.env, not self.choice.names)
        now = format_time(self.clock.now())
        trace = self.env.get("TRACEPARENT", "")
        if not _TRACEPARENT.fullmatch(trace):
            trace = ""
        handled = now if self.choice.scheduled else None
        self.result = BatchResult(
            run=new_run_name(self.clock.now()),
            batch=self.batch.name,
            file=self.batch.file,
            started=now,
            handled=handled,
            window=str(self.batch.window or ""),
            check=self.choice.check,
            msauto=__version__,
            user=origin_of(())[USER],
            host=socket.gethostname(),
            state_dir=self.state_dir or "",
            traceparent=trace,
        )

    def run(self) -> BatchResult:
        """Run the batch; return its result, which is recorded unless nothing may be written."""
        try:
            state_dir = self._open_state()
            with self._locked():
                result = self._run(state_dir)
        except MsautoError as error:
            self.log.tell(render_error(error, colour=False))
            result = self._ended(exit_code_of(error), reason_of(error), error.remedy)
        except Exception as error:  # noqa: BLE001 - a bug of msauto must not leave the night unreported
            result = self._ended(ERROR, bug_text(error))
            self.log.tell(f"Error: {result.reason}")
        now = format_time(self.clock.now())
        was_bad = self._last is not None and bool(self._last.code)
        is_good = result.code == OK and bool(result.jobs)
        result = structs.replace(result, ended=now, recovered=was_bad and is_good)
        if self.choice.scheduled:
            result = structs.replace(result, handled=now)
        self._record(result)
        notify_systemd(self.env, result.heading)
        is_known = result.jobs or result.code != OK
        if is_known and not self.choice.check:
            result = self._reported(result)
            if result.deliveries:
                self._record(result)
        return self.result

    def _reported(self, result: BatchResult) -> BatchResult:
        """Return the result with what was delivered of it; monitoring never changes its outcome."""
        try:
            self._deliveries += self._monitor.ended(result)
        except Exception as error:  # noqa: BLE001 - its text may hold a secret
            self.log.tell(f"Warning: this batch cannot be reported: {type(error).__name__}")
        for sent in self._deliveries:
            if sent.error:
                what = f"{sent.kind} {visible(sent.to)}"
                self.log.tell(f"Warning: {what}: not delivered: {visible(sent.error)}")
        return structs.replace(result, deliveries=tuple(self._deliveries))

    # Before the jobs ----------------------------------------------------------------------------------------------

    def _open_state(self) -> Path:
        """Find the ledger, and what it knows of the batch; without an expected ledger, nothing is recorded."""
        settings = load_settings(None, Path(self.batch.file).parent)
        self.ledger = self._monitor.ledger = ledger_place(self.state_dir, settings)
        if not self.choice.check:
            self._keeps = not settings.require_state or Ledger.exists(self.ledger)
        with Ledger.open(self.ledger, readonly=True) as ledger:
            last = self._last = last_result(ledger, self.batch.id)
        if last is not None:
            self.result = structs.replace(self.result, earlier=(*last.jobs, *last.earlier))
        if self.choice.scheduled:
            self._find_due(last)
        return state_folder(self.state_dir, settings.state_dir)

    def _find_due(self, last: BatchResult | None) -> None:
        handled = None
        if last is not None and last.handled is not None:
            handled = parse_time(last.handled)
        due = due_starts(self.batch.schedule, self.batch.window, handled, self.clock.now())
        self._due = due
        scheduled = None if due.now is None else format_time(due.now)
        missed = tuple(map(format_time, due.missed))
        self.result = structs.replace(self.result, scheduled=scheduled, missed=missed)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the batch, and the one that shows that this run is alive."""
        if not self._keeps:
            yield
            return
        with (
            Ledger.open(self.ledger) as ledger,
            ledger.running_batch(self.batch.id, self.result.run),
        ):
            yield

    # The jobs -----------------------------------------------------------------------------------------------------

    def _run(self, state_dir: Path) -> BatchResult:
        now, window = self.clock.now(), self.batch.window
        if self.choice.scheduled:
            why = why_missed(self.batch, self._due, now)
            if why is not None:
                self.log.tell(f"Warning: {why}: no job was run")
                missed = self._ended(REFUSED, why, _IN_TIME)
                return structs.replace(missed, outcome="missed")
        elif window is not None and not (self.choice.check or window.is_open(now)):
            why = outside_of(window, now)
            self.log.tell(f"Refused: {why}\n  → {_IN_TIME}")
            return self._ended(REFUSED, why, _IN_TIME)
        jobs = self._chosen_jobs()
        if not jobs:
            return self._ended(OK, "no job is left to run again")
        notes = {}
        if self.result.traceparent:
            notes["traceparent"] = self.result.traceparent
        if not self.choice.check:
            self._deliveries += self._monitor.started(self.result.run)
        run_job = BatchJobs(
            self.batch,
            state_dir,
            self.ledger,
            self.signals,
            notes,
            self.log,
            self.clock,
            self.choice.check,
            self.given,
        )
        run = BatchRun(
            self.batch,
            run_job,
            self.clock,
            self.signals.wait,
            self._record,
            self._job_started,
            self._job_ended,
            self.choice.check,
        )
        return run.run(jobs, self.result, self._last)

    def _chosen_jobs(self) -> list[Job]:
        jobs = list(self.batch.jobs)
        if self.choice.names:
            jobs = [job for job in jobs if job.name in self.choice.names]
        if self.choice.failed:
            failed = failed_jobs(self._last, self.batch)
            jobs = [job for job in jobs if job.name in failed]
        return jobs

    def _job_started(self, job: Job) -> None:
        self.log.tell(f"=== {self.batch.name}: {job.name}")
        notify_systemd(self.env, f"job {job.name} of {self.batch.name}")

    def _job_ended(self, job: Job, result: JobResult) -> None:
        self.log.tell(f"=== {self.batch.name}: {job.name}: {result.outcome}")
        if not self.choice.check:
            self._deliveries += run_end_programs(job, result, self.result, self.env)

    # The result ---------------------------------------------------------------------------------------------------

    def _ended(self, code: int, reason: str, remedy: str = "") -> BatchResult:
        outcome = outcome_of(code)
        return structs.replace(
            self.result, outcome=outcome, code=code, reason=reason, remedy=remedy
        )

    def _record(self, result: BatchResult) -> None:
        """Record the result so far; a failure is a warning, except before the first job."""
        first = not self.result.jobs and bool(result.jobs)
        self.result = result
        if not self._keeps:
            return
        try:
            with Ledger.open(self.ledger) as ledger:
                folder = origin_of((result.file,))[FOLDER]
                record_result(ledger, result, folder, self.batch.id[1])
        except MsautoError as error:
            if first and result.ended is None:
                raise
            self.log.tell(f"Warning: this batch is missing from the history: {error.message}")


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
    job_names = tuple(job.name for job in batch.jobs)
    if last is None:
        return job_names
    failed_at_start = bool(last.code) and not last.jobs
    if failed_at_start and last.outcome != "locked":
        return job_names
    failed = []
    for name in job_names:
        result = last.last_of(name)
        if result is None or not result.done:
            failed.append(name)
    return tuple(failed)


class BatchRun(Struct, frozen=True):
    """A run of some jobs of a batch. ``record`` is called with the result so far, after each job.

    ``run_job`` makes an attempt of a job (from 1), begins no target at or after a moment, and never raises; it gets
    what earlier attempts made of the targets. ``stopped`` waits so many seconds, or until the batch is asked to stop,
    and returns whether it was.
    """

    batch: BatchFile
    run_job: Callable[[Job, int, datetime | None, TargetResults], JobAttempt]
    clock: Clock
    stopped: Callable[[float], bool]
    record: Callable[[BatchResult], None]
    started_job: Callable[[Job], None]
    ended_job: Callable[[Job, JobResult], None]
    check: bool = False

    def run(
        self, jobs: Sequence[Job], result: BatchResult, last: BatchResult | None
    ) -> BatchResult:
        """Run the jobs in their order; return the result with their results."""
        results: dict[str, JobResult] = {}
        earlier = []
        for job in self.batch.jobs:
            before = None if last is None else last.last_of(job.name)
            if job in jobs:
                results[job.name] = _pending(job, before)
            elif before is not None:
                earlier.append(before)
        drifted = _reported(results.values())
        result = structs.replace(result, jobs=tuple(results.values()), earlier=tuple(earlier))
        self.record(result)
        closing = open_until(self.batch.window, self.clock.now())
        for job in jobs:
            results[job.name] = self._job(job, results, closing)
            result = structs.replace(result, jobs=tuple(results.values()))
            self.record(result)
        drift_changed = drifted != _reported(results.values())
        code = code_of(results.values())
        return structs.replace(
            result, drift_changed=drift_changed, code=code, outcome=outcome_of(code)
        )

    def _job(self, job: Job, results: dict[str, JobResult], closing: datetime | None) -> JobResult:
        pending = results[job.name]
        unmet = _unmet_need(job, results)
        if self.stopped(0) or any(result.code == INTERRUPTED for result in results.values()):
            why = "the batch was interrupted"
            return structs.replace(pending, code=INTERRUPTED, reason=why, remedy="run it again")
        if closing is not None and self.clock.now() >= closing:
            reason = f"the window {self.batch.window} has closed"
            remedy = "run it again with --now, or in a longer window"
            return structs.replace(pending, code=REFUSED, reason=reason, remedy=remedy)
        if unmet is not None:
            remedy = "correct that job: then both are run again"
            return structs.replace(pending, outcome="skipped", reason=unmet, remedy=remedy)
        self.started_job(job)
        result = self._attempts(job, pending, closing)
        self.ended_job(job, result)
        return result

    def _attempts(self, job: Job, pending: JobResult, closing: datetime | None) -> JobResult:
        started = self.clock.now()
        until = None
        ends = [] if closing is None else [closing]
        if job.args.max_time is not None:
            until = started + job.args.max_time
            ends.append(until)
        runs: list[str] = []
        outside: dict[tuple[str, ...], DifferingTarget] = {}
        targets: TargetResults = ()
        for number in count(1):
            result, may_help, targets = self.run_job(job, number, until, targets)
            runs += result.runs
            for target in result.outside:  # a later attempt does not find what this one overwrote
                earlier = outside.get(target.id, target)
                changes = dict.fromkeys(earlier.changes + target.changes)
                outside[target.id] = structs.replace(target, changes=tuple(changes))
            if not (may_help and self._wait(job, number, ends)):
                break
        now = format_time(self.clock.now())
        last_success = pending.last_success
        if result.code == OK and not self.check:
            last_success = now
        return structs.replace(
            result,
            attempts=number,
            started=format_time(started),
            ended=now,
            runs=tuple(runs),
            outside=tuple(outside.values()),
            drift=_drift(job, result, pending.drift, self.batch.schedule.last_start(started)),
            last_success=last_success,
        )

    def _wait(self, job: Job, number: int, ends: Sequence[datetime]) -> bool:
        """Wait before the next attempt; return whether there is one: never after the window or ``max_time``."""
        retry = job.args.retry
        if retry is None or number > retry.times:
            return False
        start = self.clock.now() + retry.wait
        if any(start >= end for end in ends):
            return False
        return not self.stopped(retry.wait.total_seconds())


def _pending(job: Job, before: JobResult | None) -> JobResult:
    """Return the result of a job until it is run: what is known of it from an earlier batch."""
    if before is None:
        return JobResult(job=job.name)
    drift = tuple(structs.replace(target, seen=False) for target in before.drift)
    return JobResult(job=job.name, last_success=before.last_success, drift=drift)


def _unmet_need(job: Job, results: dict[str, JobResult]) -> str | None:
    """Return which need of a job is not met; a need that is not part of this run is not looked at."""
    for name, required in (job.args.needs or {}).items():
        need = results.get(name)
        if need is None or required != "ok":
            continue
        if not need.done:
            return f"needs {name}, which ended with {need.outcome!r}"
    return None


# Drift ------------------------------------------------------------------------------------------------------------


def _drift(
    job: Job, result: JobResult, before: DifferingTargets, start: datetime
) -> DifferingTargets:
    """Return what differs, with the number of nights; a target is reported once it differs long enough.

    ``start`` is that of this night.

    Where a job could not plan all targets of a server, it did not see all that differs there: what is known from the
    night before is kept.
    """
    known = {target.id: target for target in before}
    after = job.args.drift.after if job.args.drift else 1
    night = format_time(start)
    drift = []
    for target in result.drift:
        nights = 1
        if target.id in known:
            earlier = known[target.id]
            nights = earlier.nights + (earlier.night != night)
        drift.append(structs.replace(target, nights=nights, night=night, reported=nights >= after))
    found = {target.id for target in drift}
    saw_nothing = result.code != OK and not result.causes
    unseen_servers = {cause.server for cause in result.causes}
    for target in before:
        is_unseen = saw_nothing or target.server in unseen_servers
        if is_unseen and target.id not in found:
            drift.append(target)
    return tuple(drift)


def _reported(results: Iterable[JobResult]) -> set[tuple[str, ...]]:
    """Return what identifies the drift of jobs that is reported."""
    reported = set[tuple[str, ...]]()
    for result in results:
        reported |= {(result.job, *target.id) for target in result.drift if target.reported}
    return reported


# Programs -------------------------------------------------------------------------------------------------------------


def run_end_programs(
    job: Job, result: JobResult, batch: BatchResult, env: Mapping[str, str]
) -> Iterator[SentMessage]:
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
        path = program
        if "/" in program:
            path = str(Path(beside(batch.file, program)).absolute())
        error = _run([path, *arguments], folder, {**env, **about})
        yield SentMessage(kind="program", to=program, error=error)


def _run(command: list[str], folder: Path, env: Mapping[str, str]) -> str:
    """Run a program; return why it failed, or nothing."""
    try:
        process = subprocess.Popen(  # noqa: S603 - the programs of the batch file, without a shell
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=_STDERR,
            start_new_session=True,
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
