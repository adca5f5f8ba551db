"""One attempt of a job of a batch: a run as of ``msauto apply --yes``, or ``msauto plan``, in this process."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event
from types import FrameType
from typing import NamedTuple

from msgspec import Struct, field, structs

from msauto.api.attempts import Attempt
from msauto.api.inputs import Tell, tell_nothing
from msauto.api.keywords import inputs_of
from msauto.api.loading import Loaded, load
from msauto.api.run import Decision, Run, RunOptions, check_plan, plan_only, refuse_stale
from msauto.applying.apply_context import Cancellation
from msauto.batch.batch_file import BatchFile, Job
from msauto.batch.batch_result import DifferingTarget, JobResult, outcome_of
from msauto.batch.schedule import open_until
from msauto.codec import to_json
from msauto.concurrency import SystemClock
from msauto.documents.value_types import as_list
from msauto.errors import (
    ClusterError,
    LockedError,
    MsautoError,
    PlanningError,
    UnreachableError,
    bug_text,
    exit_code_of,
)
from msauto.exit_codes import ERROR, INCOMPLETE, INTERRUPTED, OK, REFUSED
from msauto.ledger.history import ATTEMPT, BATCH, JOB
from msauto.ledger.ledger import LedgerPlace
from msauto.model.plan import Plan, Target
from msauto.model.ports import Clock
from msauto.report.layout import PLAIN, Layout
from msauto.report.result_view import NOT_DONE
from msauto.report.sanitizing import visible
from msauto.report.text import render_error, render_plan, render_result
from msauto.report.texts import plural, refusal_reason
from msauto.secrets.redacted_plans import redact_plan

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ALLOW = re.compile(r"--allow-(delete|remove) (\d+)")
"""A flag that allows what was refused; a job has a key for it."""


class BatchSignals:
    """SIGINT and SIGTERM during a batch: both ask it to stop, and call ``react``.

    While a job plans, that cancels it; while it applies, what is under way is finished.
    """

    def __init__(self) -> None:
        self._event = Event()
        self.react: Callable[[], object] | None = None

    @property
    def requested(self) -> bool:
        """Whether the batch was asked to stop."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait, or until the batch is asked to stop; return whether it was."""
        return self._event.wait(seconds)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note signals inside; restore the handlers at the end."""
        before = [(number, signal.signal(number, self._note)) for number in _SIGNALS]
        try:
            yield
        finally:
            for number, handler in before:
                signal.signal(number, handler)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self._event.set()
        if self.react is not None:
            self.react()


class JobAttempt(NamedTuple):
    """What came of one attempt of a job.

    ``again``: trying again is safe and may help, because a server was unreachable or another run held a lock.
    """

    result: JobResult
    again: bool = False


class BatchLog(Struct, frozen=True):
    """Receives messages (``tell``), and plans and results that are rendered in a layout (``show``)."""

    tell: Tell = tell_nothing
    show: Tell = tell_nothing
    layout: Layout = PLAIN


class BatchJobs(Struct, frozen=True):
    """Runs the jobs of a batch. ``notes`` are recorded with each run; ``on`` is the cluster that they run on.

    A job whose own settings name a shared ledger uses that one, because its locks are there.
    """

    batch: BatchFile
    state_dir: Path
    ledger: LedgerPlace
    signals: BatchSignals
    notes: dict[str, str]
    log: BatchLog
    clock: Clock = field(default_factory=SystemClock)
    check: bool = False
    on: str | None = None

    def __call__(self, job: Job, attempt: int, until: datetime | None) -> JobAttempt:
        """Run a job once; any error is its result."""
        if job.plan is not None and job.args.optional and not Path(job.plan).exists():
            reason = f"{job.plan} does not exist"
            return JobAttempt(JobResult(job=job.name, outcome="skipped", code=OK, reason=reason))
        notes = {**self.notes, BATCH: self.batch.name, JOB: job.name, ATTEMPT: str(attempt)}
        check = self.check or job.args.do == "plan"
        playbooks = job.playbooks or (job.plan or "",)
        record = Attempt(self.ledger, playbooks, notes=notes, check=check, tell=self.log.tell)
        again = False
        try:
            with record.recorded():
                record.code = self._run(job, record, until)
            code = record.code
        except KeyboardInterrupt:
            code = INTERRUPTED
        except MsautoError as error:
            self.log.tell(render_error(error, colour=False))
            code, again = exit_code_of(error), isinstance(error, (LockedError, UnreachableError, ClusterError))
        except Exception as error:  # noqa: BLE001 - a job never stops the others
            self.log.tell(f"Error: {bug_text(error)}")
            code = ERROR
        again = again or (code in {ERROR, INCOMPLETE} and not record.closed and _only_unreachable(record))
        refusals = record.plan.refusals if record.plan is not None and job.args.do != "plan" else ()
        if self.check and code == OK and refusals:
            code, record.reason = REFUSED, visible(refusal_reason(refusals[0]))
        return JobAttempt(_result(job, record, code, check=self.check), again)

    def _run(self, job: Job, record: Attempt, until: datetime | None) -> int:
        inputs = inputs_of(
            job.playbooks or (job.plan or "",),
            inventory=job.inventories,
            extra_vars=job.extra_vars,
            limit=job.args.limit,
            tags=tuple(map(str, as_list(job.args.tags or []))),
            forks=job.args.forks,
            on=self.on,
            beside=self.batch.file,
            now=self.clock.now(),
            tell=self.log.tell,
        )
        ledger = inputs.settings.ledger_url or self.ledger
        inputs = record.inputs = structs.replace(inputs, ledger=ledger, state_dir=self.state_dir)
        allowed = job.args.allow
        options = RunOptions(
            allow_delete=allowed.delete if allowed else None,
            allow_remove=allowed.remove if allowed else None,
            window=self.batch.window,
            until=until,
            lock_timeout=self._lock_timeout(job, until),
            keep_going=bool(job.args.keep_going),
        )
        loaded = load(inputs, keep_going=options.keep_going)
        try:
            with loaded.resolved.secrets.redacted_errors():
                return asyncio.run(self._plan_and_apply(loaded, options, record))
        except asyncio.CancelledError:
            raise KeyboardInterrupt("nothing was sent") from None
        finally:
            self.signals.react = None

    def _lock_timeout(self, job: Job, until: datetime | None) -> float:
        """Return how long to wait for a lock, in seconds: not after ``until``, nor after the window."""
        now = self.clock.now()
        waits = [(end - now).total_seconds() for end in (until, open_until(self.batch.window, now)) if end is not None]
        wanted = job.args.lock_timeout
        return 0.0 if wanted is None else max(0.0, min(wanted.total_seconds(), *waits, float("inf")))

    async def _plan_and_apply(self, loaded: Loaded, options: RunOptions, record: Attempt) -> int:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        # Once: more signals must not interrupt the closing of connections.
        self.signals.react = partial(loop.call_soon_threadsafe, lambda: task.cancelling() or task.cancel())
        if self.signals.requested:
            raise asyncio.CancelledError
        if record.check:
            plan = record.plan = await plan_only(loaded, options, self.clock)
            self._show_plan(plan, keep_going=options.keep_going)
            refuse_stale(plan)
            return ERROR if plan.errors else OK

        def agree(plan: Plan) -> Decision:
            self._show_plan(plan, keep_going=options.keep_going)
            try:
                check_plan(plan, keep_going=options.keep_going)
            except PlanningError:
                record.reason = _unfinished(record)
                return "leave"
            return "apply"

        @contextmanager
        def stopping() -> Iterator[Cancellation]:
            stop = Cancellation()
            self.signals.react = partial(loop.call_soon_threadsafe, stop)
            if self.signals.requested:
                raise asyncio.CancelledError
            yield stop

        result = await Run(loaded, options, record, self.clock).apply(agree, stopping)
        if result is None:
            return ERROR
        self.log.show("".join(render_result(result, self.log.layout)))
        if record.code == REFUSED:
            self.log.tell(f"Error: {record.reason}\n  → run it again at an allowed time")
        return record.code

    def _show_plan(self, plan: Plan, *, keep_going: bool) -> None:
        self.log.show("".join(render_plan(plan, structs.replace(self.log.layout, keep_going=keep_going))))


# What came of it ------------------------------------------------------------------------------------------------------


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


def _result(job: Job, record: Attempt, code: int, *, check: bool) -> JobResult:
    plan = None if record.plan is None else redact_plan(record.plan)
    summary = dict(record.summary)
    if record.result is not None:
        counts = record.result.counts
        summary |= {each: counts[each] for each in ("changed", "failed", "unverified", "interrupted", "not_attempted")}
    elif plan is not None:
        summary |= to_json(plan.summary)
    changing = [each for each in plan.targets if each.changes] if plan is not None else []
    differing = changing if job.args.do == "plan" and code == OK else ()
    planned = changing if check and job.args.do != "plan" else ()
    return JobResult(
        job=job.name,
        outcome=outcome_of(code),
        code=code,
        reason=_reason(record, plan, code),
        runs=(record.run,) if record.run else (),
        summary=summary,
        warnings=plan.warnings if plan is not None else (),
        drift=tuple(map(_differing, differing)),
        would_change=tuple(_differing(each, actions=True) for each in planned),
    )


def _reason(record: Attempt, plan: Plan | None, code: int) -> str:
    """Return why the code is not 0, and which key of the job allows what was refused."""
    reason = record.reason or "".join(record.closed[-1:])
    if code != OK and not reason:
        reason = _unfinished(record)
    if code == REFUSED and plan is not None:
        flags = (_ALLOW.fullmatch(each.remedy) for each in plan.refusals)
        allowed = ", ".join(f"{each[1]}: {each[2]}" for each in flags if each)
        reason += f"; to allow it, set allow: {{{allowed}}}" if allowed else ""
    return reason


def _unfinished(record: Attempt) -> str:
    """Return the first target that is not as desired, and how many more there are."""
    if record.result is not None:
        left = [each for each in record.result.targets if each.outcome in NOT_DONE]
        reasons = [": ".join(filter(None, (each.target.name, each.outcome, each.message))) for each in left]
    else:
        targets = redact_plan(record.plan).targets if record.plan is not None else ()
        reasons = [f"cannot plan {each.name}: {each.error}" for each in targets if each.error is not None]
    more = f" (and {plural(len(reasons) - 1, 'more target')})" if len(reasons) > 1 else ""
    return " ".join(reasons[0].partition("\n")[0].split()) + more if reasons else ""


def _differing(target: Target, *, actions: bool = False) -> DifferingTarget:
    """Return what differs, with ``actions`` also how it would change.

    Only a live marker names a user: nothing else of the interface does.
    """
    before = [each.before for each in target.changes]
    return DifferingTarget(
        server=target.server,
        database=target.database,
        kind=target.kind,
        name=target.name,
        changes=tuple(
            f"{f'{each.action} ' if actions else ''}{each.aspect} {each.key}".rstrip() for each in target.changes
        ),
        by=tuple(sorted({str(each["user"]) for each in before if isinstance(each, dict) and each.get("user")})),
    )
