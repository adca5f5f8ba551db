"""One attempt of a job of a batch: a run as of ``msauto apply --yes``, or ``msauto plan``, in this process.

What it shows goes to stderr: stdout is for the summary of the batch.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event
from types import FrameType

from msauto.api.attempts import Attempt
from msauto.api.inputs import Inputs
from msauto.api.loading import load
from msauto.api.run import AllowedTimes, RunOptions, allow
from msauto.api.saved_plans import open_plan_file
from msauto.batch.batch_file import BatchFile, Job
from msauto.batch.batch_result import DifferingTarget
from msauto.batch.batch_run import JobAttempt
from msauto.cli.flags import Flags
from msauto.cli.interrupts import SIGNALS
from msauto.cli.output import print_message
from msauto.cli.plan_and_apply import RunDialog
from msauto.cli.run_flags import RunFlags
from msauto.concurrency import SystemClock
from msauto.documents.value_types import as_list
from msauto.errors import ClusterError, LockedError, MsautoError, UnreachableError, exit_code_of
from msauto.exit_codes import ERROR, INCOMPLETE, INTERRUPTED, OK, REFUSED
from msauto.ledger import LedgerPlace
from msauto.ledger.history import ATTEMPT, BATCH, JOB
from msauto.model.codec import to_json
from msauto.model.plan import Change, Plan, PlanOptions, Target
from msauto.model.ports import Clock
from msauto.report.result_view import NOT_DONE
from msauto.report.sanitizing import visible
from msauto.report.text import render_error
from msauto.report.texts import plural, refusal_reason
from msauto.secrets.redactor import redact_plan

_ALLOW = re.compile(r"--allow-(delete|remove) (\d+)")
"""A flag that allows what was refused; a job has a key for it."""


class BatchSignals:
    """SIGINT and SIGTERM during a batch: both ask it to stop.

    While a job plans, they cancel it; while it applies, what is under way is finished; between, they are noted.
    """

    def __init__(self) -> None:
        self._event = Event()

    @property
    def requested(self) -> bool:
        """Whether the batch was asked to stop."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait, or until the batch is asked to stop; return whether it was."""
        return self._event.wait(seconds)

    def note_only(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Only note signals from now on; ``loop`` no longer handles them."""
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            for number in SIGNALS:
                if loop is not None:
                    loop.remove_signal_handler(number)
                signal.signal(number, self._note)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note signals inside; restore the handlers at the end."""
        before = [(number, signal.getsignal(number)) for number in SIGNALS]
        self.note_only()
        try:
            yield
        finally:
            for number, handler in before:
                signal.signal(number, handler)

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Let signals raise ``KeyboardInterrupt`` inside, or cancel what reads."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, self._interrupt)
        try:
            if self.requested:
                raise KeyboardInterrupt
            yield
        finally:
            self.note_only()

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self._event.set()

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        signal.raise_signal(signal.SIGINT)


@dataclass(frozen=True, slots=True)
class BatchJobs:
    """Runs the jobs of a batch. ``notes`` are recorded with each run; ``on`` is the cluster that they run on.

    A job whose own settings name a shared ledger uses that one, because its locks are there.
    """

    batch: BatchFile
    state_dir: Path
    ledger: LedgerPlace
    signals: BatchSignals
    notes: dict[str, str]
    check: bool = False
    clock: Clock = field(default_factory=SystemClock)
    on: str | None = None

    def __call__(self, job: Job, attempt: int, until: datetime | None) -> JobAttempt:
        """Run a job once; any error is its result."""
        if job.plan is not None and job.args.optional and not Path(job.plan).exists():
            return JobAttempt(OK, f"{job.plan} does not exist", skipped=True)
        notes = {**self.notes, BATCH: self.batch.name, JOB: job.name, ATTEMPT: str(attempt)}
        check = self.check or job.args.do == "plan"
        playbooks = job.playbooks or (job.plan or "",)
        record = Attempt(self.ledger, playbooks, notes=notes, check=check, tell=print_message)
        again = False
        try:
            with redirect_stdout(sys.stderr), self.signals.interrupting():
                code = record.follow(partial(self._run, job, record, until))
        except KeyboardInterrupt:
            code = INTERRUPTED
        except MsautoError as error:
            print_message(render_error(error, colour=False))
            code, again = exit_code_of(error), isinstance(error, (LockedError, UnreachableError, ClusterError))
        except Exception as error:  # noqa: BLE001 - a job never stops the others
            print_message(f"Error: {_bug(error)}")
            code = ERROR
        again = again or (code in {ERROR, INCOMPLETE} and not record.closed and _only_unreachable(record))
        refusals = record.plan.refusals if record.plan is not None and job.args.do != "plan" else ()
        if self.check and code == OK and refusals:
            code, record.reason = REFUSED, visible(refusal_reason(refusals[0]))
        return _attempt_of(job, record, code, again)

    def _run(self, job: Job, record: Attempt, until: datetime | None) -> int:
        inputs = record.inputs = self._inputs(job)
        args, settings = job.args, inputs.settings
        extra = args.allow
        limits = allow(settings.limits, extra.delete, extra.remove, None) if extra else settings.limits
        times = AllowedTimes(settings.freezes, self.batch.window, until)
        options = RunOptions(limits, times)
        given = RunFlags(options, record, yes=True, check=record.check, keep_going=bool(args.keep_going))
        flags = Flags(inputs=inputs, no_color=True, playbook=next(iter(inputs.given.playbooks), "plan"))
        loaded = load(inputs, keep_going=given.keep_going)
        return RunDialog(flags, loaded, given, self.clock, self.signals.note_only).run()

    def _inputs(self, job: Job) -> Inputs:
        given = PlanOptions(
            playbooks=job.playbooks,
            inventories=job.inventories,
            extra_vars=job.extra_vars,
            limit=job.args.limit,
            tags=tuple(map(str, as_list(job.args.tags or []))),
            now=self.clock.now().isoformat(),
        )
        agreed: Plan | None = None
        base = Path()
        if job.plan is not None:
            agreed, given, base = open_plan_file((job.plan,), given)
        settings = job.settings(Path(each).parent for each in given.playbooks[:1])
        return Inputs(
            given,
            settings,
            ledger=settings.ledger_url or self.ledger,
            state_dir=self.state_dir,
            given_forks=job.args.forks,
            agreed=agreed,
            base=base,
            typed_vars=job.extra_vars,
            on=self.on,
            tell=print_message,
        )


def _bug(error: Exception) -> str:
    if os.environ.get("MSAUTO_DEBUG"):
        traceback.print_exc()
    return f"msauto itself failed: {type(error).__name__}: {error}"


def _only_unreachable(record: Attempt) -> bool:
    """Return whether all that is not done is on servers that do not answer, and nothing is unverified."""
    plan, result = record.plan, record.result
    if plan is None:
        return False
    if result is None:
        errors = [target for target in plan.targets if target.error is not None]
        return bool(errors) and all(each.server in plan.unreachable for each in errors)
    lost = result.unreachable | plan.unreachable
    left = [each for each in result.targets if each.outcome in NOT_DONE]
    return all(each.outcome != "unverified" and each.target.server in lost for each in left)


def _attempt_of(job: Job, record: Attempt, code: int, again: bool) -> JobAttempt:
    summary = dict(record.summary)
    if record.result is not None:
        outcomes = [each.outcome.replace(" ", "_") for each in record.result.targets]
        summary |= {
            each: outcomes.count(each) for each in ("changed", "failed", "unverified", "interrupted", "not_attempted")
        }
    elif record.plan is not None:
        summary |= to_json(record.plan.summary)
    reason = record.reason or (record.closed[-1] if record.closed else "")
    if code != OK and not reason:
        reason = _unfinished(record)
    if code == REFUSED and record.plan is not None:
        found = (_ALLOW.fullmatch(each.remedy) for each in record.plan.refusals)
        allow = ", ".join(f"{each[1]}: {each[2]}" for each in found if each)
        reason += f"; to allow it, set allow: {{{allow}}}" if allow else ""
    differing: tuple[DifferingTarget, ...] = ()
    if job.args.do == "plan" and code == OK and record.plan is not None:
        differing = tuple(_differing(each) for each in redact_plan(record.plan).targets if each.changes)
    warnings = redact_plan(record.plan).warnings if record.plan is not None else ()
    return JobAttempt(code, reason, record.run, again, summary, differing, warnings)


def _unfinished(record: Attempt) -> str:
    """Return the first target that is not as desired, and how many more there are."""
    if record.result is not None:
        found = [
            f"{each.target.name}: {each.outcome}{f': {each.message}' if each.message else ''}"
            for each in record.result.targets
            if each.outcome in NOT_DONE
        ]
    else:
        targets = redact_plan(record.plan).targets if record.plan is not None else ()
        found = [f"cannot plan {each.name}: {each.error}" for each in targets if each.error is not None]
    more = f" (and {plural(len(found) - 1, 'more target')})" if len(found) > 1 else ""
    return " ".join(found[0].partition("\n")[0].split()) + more if found else ""


def _differing(target: Target) -> DifferingTarget:
    return DifferingTarget(
        server=target.server,
        database=target.database,
        kind=target.kind,
        name=target.name,
        changes=tuple(f"{each.aspect} {each.key}".rstrip() for each in target.changes),
        by=tuple(sorted({user for each in target.changes if (user := _user(each))})),
    )


def _user(change: Change) -> str:
    """Return the user that a live marker names: nothing else of the interface names one."""
    before = change.before
    return str(before.get("user") or "") if isinstance(before, dict) else ""
