"""``msauto batch run``: the frame around a run of a batch.

Whatever happens inside, the result is recorded, reported and returned: bad playbooks, signals, errors of our own.
"""

from __future__ import annotations

import os
import re
import socket
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import structs

from msauto.api.attempts import Attempt, origin_of, reason_of
from msauto.api.inputs import ledger_place, state_folder
from msauto.batch.batch_file import BatchFile, Job, load_batch
from msauto.batch.batch_result import INTERRUPTED, BatchResult, JobResult, SentMessage, outcome_of
from msauto.batch.batch_run import BatchRun, due_now, failed_jobs, moment_of, run_end_programs, time_text, why_missed
from msauto.batch.batch_summary import heading_of
from msauto.batch.monitoring import Monitor, notify_systemd
from msauto.batch.past_batches import last_result, record_result
from msauto.batch.schedule import DueStarts, outside_of
from msauto.cli.batch_job import BatchJobs, BatchSignals
from msauto.cli.output import print_message
from msauto.concurrency import SystemClock
from msauto.errors import InputError, MsautoError, exit_code_of
from msauto.exit_codes import ERROR, REFUSED
from msauto.ledger import Ledger, LedgerPlace
from msauto.ledger.history import FOLDER, REPOSITORY, USER
from msauto.ledger.journal import new_run_name
from msauto.model.ports import Clock
from msauto.playbook.settings import load_settings
from msauto.report.sanitizing import visible
from msauto.report.text import render_error
from msauto.version import __version__

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


def open_batch(file: str, state_dir: str | None, *, check: bool) -> BatchFile:
    """Read a batch file; an attempt with a bad one is in the history as well."""
    try:
        return load_batch(file)
    except InputError as error:
        with suppress(MsautoError):
            place = ledger_place(state_dir, load_settings(None, Path(file).parent))
            Attempt(place, (file,), reason=reason_of(error), check=check, tell=print_message).record(ERROR)
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
    """One call of ``msauto batch run``; :meth:`run` never raises, except on errors of the batch file itself."""

    batch: BatchFile
    choice: JobChoice
    state_dir: str | None
    signals: BatchSignals
    clock: Clock = field(default_factory=SystemClock)
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    last: BatchResult | None = None
    on: str | None = None
    _due: DueStarts = field(default_factory=DueStarts)
    _keeps: bool = False
    _state: Path = Path()
    _ledger: LedgerPlace = Path()
    _result: BatchResult | None = None
    _deliveries: list[SentMessage] = field(default_factory=list)
    _monitor: Monitor = field(init=False)

    def __post_init__(self) -> None:
        self._monitor = Monitor(self.batch, self.env, heartbeat=not self.choice.names)

    def run(self) -> BatchResult:
        """Run the batch; return its result, which is recorded unless nothing may be written."""
        result = self._result = self._new_result()
        try:
            with self.signals.interrupting():
                self._open_state()
                jobs = self._chosen_jobs()
            with self._locked():
                result = self._run(jobs)
        except KeyboardInterrupt:
            result = self._ended(INTERRUPTED, "interrupted")
        except MsautoError as error:
            print_message(render_error(error, colour=False))
            result = self._ended(exit_code_of(error), reason_of(error))
        except Exception as error:  # noqa: BLE001 - a bug of msauto must not leave the night unreported
            if self.env.get("MSAUTO_DEBUG"):
                traceback.print_exc()
            result = self._ended(ERROR, f"msauto itself failed: {type(error).__name__}: {error}")
            print_message(f"Error: {result.reason}")
        now = time_text(self.clock.now())
        recovered = result.code == 0 and bool(result.jobs) and self.last is not None and bool(self.last.code)
        result = structs.replace(result, ended=now, recovered=recovered)
        if self.choice.scheduled:
            result = structs.replace(result, handled=now)
        self._record(result)
        result = self._reported(result)
        if result.deliveries:
            self._record(result)
        return result

    def _reported(self, result: BatchResult) -> BatchResult:
        """Return the result with what was delivered of it; monitoring never changes its outcome."""
        notify_systemd(self.env, heading_of(result))
        if self.choice.check or (result.code == 0 and not result.jobs):  # without a job, nothing is known
            return result
        try:
            self._deliveries += self._monitor.ended(result)
        except Exception as error:  # noqa: BLE001 - its text may hold a secret
            print_message(f"Warning: this batch cannot be reported: {type(error).__name__}")
        for each in self._deliveries:
            if each.error:
                print_message(f"Warning: {each.kind} {visible(each.to)}: not delivered: {visible(each.error)}")
        return structs.replace(result, deliveries=tuple(self._deliveries))

    # Before the jobs ----------------------------------------------------------------------------------------------

    def _new_result(self) -> BatchResult:
        now = self.clock.now()
        trace = self.env.get("TRACEPARENT", "")
        return BatchResult(
            run=new_run_name(now),
            batch=self.batch.name,
            file=self.batch.file,
            started=time_text(now),
            handled=time_text(now) if self.choice.scheduled else None,
            check=self.choice.check,
            msauto=__version__,
            user=origin_of(())[USER],
            host=socket.gethostname(),
            traceparent=trace if _TRACEPARENT.fullmatch(trace) else "",
        )

    def _open_state(self) -> None:
        """Find the ledger, and what it knows of the batch; without an expected ledger, nothing is recorded."""
        settings = load_settings(None, Path(self.batch.file).parent)
        self._state = state_folder(self.state_dir, settings)
        self._ledger = ledger_place(self.state_dir, settings)
        self._keeps = not self.choice.check and (not settings.require_state or Ledger.exists(self._ledger))
        with Ledger.open(self._ledger, readonly=True) as ledger:
            self.last = last_result(ledger, self.batch.name)
        if self.last is not None:
            self._result = structs.replace(self._now, earlier=(*self.last.jobs, *self.last.earlier))
        if self.choice.scheduled:
            last = self.last.handled if self.last is not None else None
            due = self._due = due_now(self.batch, moment_of(last) if last is not None else None, self.clock.now())
            scheduled = time_text(due.now) if due.now is not None else None
            self._result = structs.replace(self._now, scheduled=scheduled, missed=tuple(map(time_text, due.missed)))

    def _chosen_jobs(self) -> tuple[Job, ...]:
        names: Sequence[str] = [job.name for job in self.batch.jobs]
        names = self.choice.names or names
        if self.choice.failed:
            failed = failed_jobs(self.last, self.batch)
            names = [name for name in names if name in failed]
        return tuple(job for job in self.batch.jobs if job.name in names)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the batch, and the one that shows that this run is alive."""
        if not self._keeps:
            yield
            return
        with Ledger.open(self._ledger) as ledger, ledger.running_batch(self.batch.name, self._now.run):
            yield

    # The jobs -----------------------------------------------------------------------------------------------------

    def _run(self, jobs: tuple[Job, ...]) -> BatchResult:
        now = self.clock.now()
        window = self.batch.window
        if self.choice.scheduled:
            why = why_missed(self.batch, self._due, now)
            if why is not None:
                print_message(f"Warning: {why}: no job was run")
                return structs.replace(self._now, outcome="missed", code=REFUSED, reason=why)
        elif not self.choice.check and window is not None and not window.is_open(now):
            why = outside_of(window, now)
            print_message(f"Refused: {why}\n  → run it within the window")
            return self._ended(REFUSED, why)
        if not jobs:
            return structs.replace(self._now, outcome="ok", code=0, reason="no job is left to run again")
        if not self.choice.check:
            self._deliveries += self._monitor.started(self._now.run)
        notes = {"traceparent": self._now.traceparent} if self._now.traceparent else {}
        runner = BatchJobs(
            self.batch, self._state, self._ledger, self.signals, notes, self.choice.check, self.clock, self.on
        )
        run = BatchRun(
            self.batch,
            runner,
            self.clock,
            self.signals,
            self._record,
            self._job_started,
            self._job_ended,
            self.choice.check,
        )
        return run.run(jobs, self._now, self.last)

    def _job_started(self, job: Job) -> None:
        print_message(f"=== {self.batch.name}: {job.name}")
        notify_systemd(self.env, f"job {job.name} of {self.batch.name}")

    def _job_ended(self, job: Job, result: JobResult) -> None:
        print_message(f"=== {self.batch.name}: {job.name}: {result.outcome}")
        if not self.choice.check:
            self._deliveries += run_end_programs(job, result, self._now, self.env)

    # The result ---------------------------------------------------------------------------------------------------

    @property
    def _now(self) -> BatchResult:
        assert self._result is not None
        return self._result

    def _ended(self, code: int, reason: str) -> BatchResult:
        return structs.replace(self._now, outcome=outcome_of(code), code=code, reason=reason)

    def _record(self, result: BatchResult) -> None:
        """Record the result so far; a failure is a warning, except before the first job."""
        first = self._result is not None and not self._result.jobs and bool(result.jobs)
        self._result = result
        if not self._keeps:
            return
        try:
            with Ledger.open(self._ledger) as ledger:
                origin = origin_of((result.file,))
                record_result(ledger, result, origin[FOLDER], origin[REPOSITORY])
        except MsautoError as error:
            if first and result.ended is None:
                raise
            print_message(f"Warning: this batch is missing from the history: {error.message}")
