"""``msauto batch run``: the frame around a run of a batch.

Whatever happens inside, the result is recorded, reported and returned: bad playbooks, signals, errors of our own.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import structs

from msauto.api.attempts import Attempt, origin_of, reason_of
from msauto.api.inputs import Tell, ledger_place, state_folder
from msauto.batch.batch_file import BatchFile, Job, load_batch
from msauto.batch.batch_job import BatchJobs, BatchLog, BatchSignals, bug_text
from msauto.batch.batch_result import BatchResult, JobResult, SentMessage, outcome_of
from msauto.batch.batch_run import BatchRun, due_now, failed_jobs, run_end_programs, why_missed
from msauto.batch.batch_summary import heading_of
from msauto.batch.monitoring import Monitor, notify_systemd
from msauto.batch.past_batches import last_result, record_result
from msauto.batch.schedule import DueStarts, outside_of
from msauto.concurrency import SystemClock
from msauto.errors import InputError, MsautoError, exit_code_of
from msauto.exit_codes import ERROR, OK, REFUSED
from msauto.ledger import Ledger, LedgerPlace
from msauto.ledger.history import FOLDER, REPOSITORY, USER
from msauto.ledger.journal import new_run_name
from msauto.model.ports import Clock
from msauto.model.result import format_time, parse_time
from msauto.playbook.settings import load_settings
from msauto.report.sanitizing import visible
from msauto.report.text import render_error
from msauto.version import __version__

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


def open_batch(file: str, state_dir: str | None, tell: Tell, *, check: bool) -> BatchFile:
    """Read a batch file; an attempt with a bad one is in the history as well."""
    try:
        return load_batch(file)
    except InputError as error:
        with suppress(MsautoError):
            place = ledger_place(state_dir, load_settings(None, Path(file).parent))
            Attempt(place, (file,), reason=reason_of(error), check=check, tell=tell).record(ERROR)
        raise


@dataclass(frozen=True, slots=True)
class JobChoice:
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

    ``on`` is the cluster that the jobs run on.
    """

    batch: BatchFile
    choice: JobChoice
    state_dir: str | None
    signals: BatchSignals
    log: BatchLog = field(default_factory=BatchLog)
    clock: Clock = field(default_factory=SystemClock)
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    on: str | None = None
    result: BatchResult = field(init=False)
    _last: BatchResult | None = None
    _due: DueStarts = field(default_factory=DueStarts)
    _keeps: bool = False
    _ledger: LedgerPlace = Path()
    _deliveries: list[SentMessage] = field(default_factory=list)
    _monitor: Monitor = field(init=False)

    def __post_init__(self) -> None:
        self._monitor = Monitor(self.batch, self.env, heartbeat=not self.choice.names)
        now = format_time(self.clock.now())
        trace = self.env.get("TRACEPARENT", "")
        self.result = BatchResult(
            run=new_run_name(self.clock.now()),
            batch=self.batch.name,
            file=self.batch.file,
            started=now,
            handled=now if self.choice.scheduled else None,
            check=self.choice.check,
            msauto=__version__,
            user=origin_of(())[USER],
            host=socket.gethostname(),
            traceparent=trace if _TRACEPARENT.fullmatch(trace) else "",
        )

    def run(self) -> BatchResult:
        """Run the batch; return its result, which is recorded unless nothing may be written."""
        try:
            state_dir = self._open_state()
            with self._locked():
                result = self._run(state_dir)
        except MsautoError as error:
            self.log.tell(render_error(error, colour=False))
            result = self._ended(exit_code_of(error), reason_of(error))
        except Exception as error:  # noqa: BLE001 - a bug of msauto must not leave the night unreported
            result = self._ended(ERROR, bug_text(error))
            self.log.tell(f"Error: {result.reason}")
        now = format_time(self.clock.now())
        recovered = result.code == OK and bool(result.jobs) and self._last is not None and bool(self._last.code)
        result = structs.replace(result, ended=now, recovered=recovered)
        if self.choice.scheduled:
            result = structs.replace(result, handled=now)
        self._record(result)
        notify_systemd(self.env, heading_of(result))
        if not self.choice.check and (result.code != OK or result.jobs):  # without a job, nothing is known
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
        for each in self._deliveries:
            if each.error:
                self.log.tell(f"Warning: {each.kind} {visible(each.to)}: not delivered: {visible(each.error)}")
        return structs.replace(result, deliveries=tuple(self._deliveries))

    # Before the jobs ----------------------------------------------------------------------------------------------

    def _open_state(self) -> Path:
        """Find the ledger, and what it knows of the batch; without an expected ledger, nothing is recorded."""
        settings = load_settings(None, Path(self.batch.file).parent)
        self._ledger = ledger_place(self.state_dir, settings)
        self._keeps = not self.choice.check and (not settings.require_state or Ledger.exists(self._ledger))
        with Ledger.open(self._ledger, readonly=True) as ledger:
            last = self._last = last_result(ledger, self.batch.name)
        if last is not None:
            self.result = structs.replace(self.result, earlier=(*last.jobs, *last.earlier))
        if self.choice.scheduled:
            handled = parse_time(last.handled) if last is not None and last.handled is not None else None
            due = self._due = due_now(self.batch, handled, self.clock.now())
            scheduled = format_time(due.now) if due.now is not None else None
            self.result = structs.replace(self.result, scheduled=scheduled, missed=tuple(map(format_time, due.missed)))
        return state_folder(self.state_dir, settings)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the batch, and the one that shows that this run is alive."""
        if not self._keeps:
            yield
            return
        with Ledger.open(self._ledger) as ledger, ledger.running_batch(self.batch.name, self.result.run):
            yield

    # The jobs -----------------------------------------------------------------------------------------------------

    def _run(self, state_dir: Path) -> BatchResult:
        now, window = self.clock.now(), self.batch.window
        if self.choice.scheduled:
            why = why_missed(self.batch, self._due, now)
            if why is not None:
                self.log.tell(f"Warning: {why}: no job was run")
                return structs.replace(self.result, outcome="missed", code=REFUSED, reason=why)
        elif not self.choice.check and window is not None and not window.is_open(now):
            why = outside_of(window, now)
            self.log.tell(f"Refused: {why}\n  → run it within the window")
            return self._ended(REFUSED, why)
        names = self.choice.names or [job.name for job in self.batch.jobs]
        left = failed_jobs(self._last, self.batch) if self.choice.failed else names
        jobs = [job for job in self.batch.jobs if job.name in names and job.name in left]
        if not jobs:
            return self._ended(OK, "no job is left to run again")
        if not self.choice.check:
            self._deliveries += self._monitor.started(self.result.run)
        notes = {"traceparent": self.result.traceparent} if self.result.traceparent else {}
        batch, signals, clock, check = self.batch, self.signals, self.clock, self.choice.check
        runner = BatchJobs(batch, state_dir, self._ledger, signals, notes, self.log, clock, check, self.on)
        run = BatchRun(batch, runner, clock, signals, self._record, self._job_started, self._job_ended, check)
        return run.run(jobs, self.result, self._last)

    def _job_started(self, job: Job) -> None:
        self.log.tell(f"=== {self.batch.name}: {job.name}")
        notify_systemd(self.env, f"job {job.name} of {self.batch.name}")

    def _job_ended(self, job: Job, result: JobResult) -> None:
        self.log.tell(f"=== {self.batch.name}: {job.name}: {result.outcome}")
        if not self.choice.check:
            self._deliveries += run_end_programs(job, result, self.result, self.env)

    # The result ---------------------------------------------------------------------------------------------------

    def _ended(self, code: int, reason: str) -> BatchResult:
        return structs.replace(self.result, outcome=outcome_of(code), code=code, reason=reason)

    def _record(self, result: BatchResult) -> None:
        """Record the result so far; a failure is a warning, except before the first job."""
        first = not self.result.jobs and bool(result.jobs)
        self.result = result
        if not self._keeps:
            return
        try:
            with Ledger.open(self._ledger) as ledger:
                origin = origin_of((result.file,))
                record_result(ledger, result, origin[FOLDER], origin[REPOSITORY])
        except MsautoError as error:
            if first and result.ended is None:
                raise
            self.log.tell(f"Warning: this batch is missing from the history: {error.message}")
