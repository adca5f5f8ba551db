"""One attempt of a job of a batch: a run as of ``msauto apply --yes``, or ``msauto plan``, in this process."""

from __future__ import annotations

import asyncio
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Any, NamedTuple

from msgspec import Struct, structs

from msauto.api.attempts import Attempt
from msauto.api.inputs import Tell, tell_nothing
from msauto.api.keywords import inputs_of
from msauto.api.loading import Loaded, load
from msauto.api.run import Decision, Run, RunOptions, check_plan, plan_only, refuse_stale
from msauto.applying.apply_context import Cancellation
from msauto.aspects.comparison import mapping, text_of
from msauto.circuit_breaker import PASSING, cause_of
from msauto.codec import to_json
from msauto.concurrency import HANG_UP, stop_signals
from msauto.errors import ClusterError, LockedError, MsautoError, PlanningError, bug_text, exit_code_of
from msauto.exit_codes import ERROR, INCOMPLETE, INTERRUPTED, OK, REFUSED
from msauto.ledger.history import ATTEMPT, BATCH, JOB
from msauto.ledger.ledger import LedgerPlace
from msauto.model.plan import Change, Plan, Target
from msauto.model.ports import Clock
from msauto.model.result import TargetResult, key_of
from msauto.plugins.batch.batch_file import BatchFile, Job
from msauto.plugins.batch.batch_result import DIFFERING, DifferingTarget, JobResult, outcome_of
from msauto.plugins.batch.causes import Cause, causes_of, is_settled, may_get_better, results_so_far
from msauto.plugins.batch.schedule import open_until
from msauto.report.layout import PLAIN, Layout
from msauto.report.result_view import NOT_DONE
from msauto.report.sanitizing import visible
from msauto.report.text import render_error, render_plan, render_result
from msauto.report.texts import done_outside, refusal_reason, show_value, target_key
from msauto.secrets.redacted_plans import redact_plan

_ALLOW = re.compile(r"--allow-(delete|remove) (\d+)")
"""A flag that allows what was refused; a job has a key for it."""
_LONGEST = 60
"""Of a value that others had set: as much is in the summary."""


class BatchSignals:
    """SIGINT, SIGTERM and SIGHUP during a batch: each asks it to stop, and calls ``react``.

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
        before = [(number, signal.signal(number, self._note)) for number in stop_signals()]
        try:
            yield
        finally:
            for number, handler in before:
                signal.signal(number, handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.requested and number == HANG_UP:
            return
        self._event.set()
        if self.react is not None:
            self.react()


class JobAttempt(NamedTuple):
    """What came of one attempt of a job.

    ``again``: trying again is safe and may help. ``targets``: what came of each target so far, in all attempts.
    """

    result: JobResult
    again: bool = False
    targets: tuple[TargetResult, ...] = ()


class BatchLog(Struct, frozen=True):
    """Receives messages (``tell``), and plans and results that are rendered in a layout (``show``)."""

    tell: Tell = tell_nothing
    show: Tell = tell_nothing
    layout: Layout = PLAIN


class BatchJobs(Struct, frozen=True):
    """Runs the jobs of a batch. ``notes`` are recorded with each run; ``given`` are options of all jobs.

    A job whose own settings name a shared ledger uses that one, because its locks are there.
    """

    batch: BatchFile
    state_dir: Path
    ledger: LedgerPlace
    signals: BatchSignals
    notes: dict[str, str]
    log: BatchLog
    clock: Clock
    check: bool
    given: Mapping[str, Any]

    def __call__(self, job: Job, attempt: int, until: datetime | None, before: tuple[TargetResult, ...]) -> JobAttempt:
        """Run a job once; any error is its result. ``before``: what earlier attempts made of the targets.

        A target that is unverified is left as it is: the user must look at it.
        """
        if job.plan is not None and job.args.optional and not Path(job.plan).exists():
            reason = f"{job.plan} does not exist"
            return JobAttempt(JobResult(job=job.name, outcome="skipped", code=OK, reason=reason))
        notes = {**self.notes, BATCH: self.batch.name, JOB: job.name, ATTEMPT: str(attempt)}
        playbooks = job.playbooks or (job.plan or "",)
        held = frozenset(target_key(each.target) for each in before if is_settled(each))
        record = Attempt(
            self.ledger, playbooks, notes=notes, check=self.check, held=held, tell=self.log.tell, clock=self.clock
        )
        again = False
        try:
            with record.recorded():
                try:
                    record.code = self._run(job, record, until)
                finally:
                    targets = results_so_far(before, _results(record))
                    lost = (each.unreachable for each in (record.plan, record.result) if each is not None)
                    causes = causes_of(targets, frozenset[str]().union(*lost))
                if record.code == OK and job.args.do != "plan" and causes:
                    record.code = INCOMPLETE
                if record.code != OK and not record.closed:
                    record.reason = record.reason or "; ".join(f"{each.server}: {each.text}" for each in causes)
            code = record.code
        except KeyboardInterrupt:
            code = INTERRUPTED
        except MsautoError as error:
            self.log.tell(render_error(error, colour=False))
            code = exit_code_of(error)
            again = isinstance(error, (LockedError, ClusterError)) or cause_of(error) in PASSING
        except Exception as error:  # noqa: BLE001 - a job never stops the others
            self.log.tell(f"Error: {bug_text(error)}")
            code = ERROR
        refusals = record.plan.refusals if record.plan is not None and job.args.do != "plan" else ()
        if self.check and code == OK and refusals:
            code, record.reason = REFUSED, visible(refusal_reason(refusals[0]))
        result = _result(job, record, code, targets, causes)
        every = not (job.args.keep_going or record.result is not None or job.args.do == "plan")
        open_ended = code in {ERROR, INCOMPLETE} and bool(causes) and not record.closed
        return JobAttempt(result, again or (open_ended and may_get_better(causes, every=every)), targets)

    def _run(self, job: Job, record: Attempt, until: datetime | None) -> int:
        inputs = inputs_of(
            job.playbooks or (job.plan or "",),
            **job.options,
            **self.given,
            state_dir=self.state_dir,
            beside=self.batch.file,
            now=self.clock.now(),
            tell=self.log.tell,
        )
        inputs = record.inputs = structs.replace(inputs, ledger=inputs.settings.ledger_url or self.ledger)
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
                return asyncio.run(self._plan_and_apply(loaded, options, record, plans=job.args.do == "plan"))
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

    async def _plan_and_apply(self, loaded: Loaded, options: RunOptions, record: Attempt, *, plans: bool) -> int:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        # Once: more signals must not interrupt the closing of connections.
        self.signals.react = partial(loop.call_soon_threadsafe, lambda: task.cancelling() or task.cancel())
        if self.signals.requested:
            raise asyncio.CancelledError
        if record.check or plans:
            plan = record.plan = await plan_only(loaded, options, self.clock)
            record.summary = to_json(plan.summary)
            if not record.check:
                record.summary[DIFFERING] = sum(bool(each.changes) for each in plan.targets)
            self._show_plan(plan, keep_going=options.keep_going)
            refuse_stale(plan)
            return ERROR if plan.errors else OK

        def agree(plan: Plan) -> Decision:
            self._show_plan(plan, keep_going=options.keep_going)
            try:
                check_plan(plan, keep_going=options.keep_going)
            except PlanningError:
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


def _results(record: Attempt) -> Iterator[TargetResult]:
    """Yield what came of each target that is applied, else those in error: the others are only planned."""
    if record.result is not None:
        yield from record.result.targets
    elif record.plan is not None:
        for each in redact_plan(record.plan).targets:
            if each.error is not None:
                yield TargetResult(each, "not attempted", each.error)


def _result(
    job: Job, record: Attempt, code: int, targets: tuple[TargetResult, ...], causes: tuple[Cause, ...]
) -> JobResult:
    plan = None if record.plan is None else redact_plan(record.plan)
    changing = [each for each in plan.targets if each.changes] if plan is not None else []
    applies, with_action = job.args.do != "plan", partial(_named, action=True)
    summary = dict(record.summary)
    changed = Counter[str]()
    compared = [each.target for each in targets] if applies and not record.check else changing
    if applies and not record.check and (plan is not None or targets):
        outcomes = Counter(each.outcome for each in targets)
        outcomes["not attempted"] += len(changing) if record.result is None else 0
        sent = record.result.targets if record.result is not None else ()
        now = {target_key(each.target) for each in sent}
        changed.update(each.target.server for each in targets if each.outcome == "changed")
        again = sum(each.outcome == "changed" and target_key(each.target) not in now for each in targets)
        summary |= {key_of(each): outcomes[each] for each in ("changed", *NOT_DONE)}
        summary |= {"unchanged": max(0, summary["unchanged"] - again)} if "unchanged" in summary else {}
    return JobResult(
        job=job.name,
        outcome=outcome_of(code),
        code=code,
        reason=_reason(record, plan, code),
        runs=(record.run,) if record.run else (),
        summary=summary,
        causes=causes,
        changed=dict(changed),
        outside=tuple(each for each in (_differing(each, _overwritten) for each in compared) if each.changes),
        warnings=plan.warnings if plan is not None else (),
        drift=() if applies else tuple(map(_differing, changing)),
        would_change=tuple(_differing(each, with_action) for each in changing if record.check and applies),
    )


def _reason(record: Attempt, plan: Plan | None, code: int) -> str:
    """Return why the code is not 0, and which key of the job allows what was refused."""
    reason = record.reason or "".join(record.closed[-1:])
    if code == REFUSED and plan is not None:
        flags = (_ALLOW.fullmatch(each.remedy) for each in plan.refusals)
        allowed = ", ".join(f"{each[1]}: {each[2]}" for each in flags if each)
        reason += f"; to allow it, set allow: {{{allowed}}}" if allowed else ""
    return reason


def _named(change: Change, *, action: bool = False) -> str:
    return f"{f'{change.action} ' if action else ''}{change.aspect} {change.key}".rstrip()


def _overwritten(change: Change) -> str:
    """Return what others had changed, and a value that they had set; nothing for another change."""
    if change.outside is None:
        return ""
    is_value = not (change.before is None or isinstance(change.before, dict))
    shown = show_value(change.before, limit=_LONGEST) if is_value else done_outside(change, change.outside)
    return f"{_named(change)} {shown}"


def _differing(target: Target, told: Callable[[Change], str] = _named) -> DifferingTarget:
    """Return what differs, as ``told`` by it: a change of which that is nothing is left out.

    Only a live marker names a user: nothing else of the interface does.
    """
    changes = [each for each in target.changes if told(each)]
    users = {
        text_of(mapping(each.before).get("user")) or (each.outside.user if each.outside else "") for each in changes
    }
    return DifferingTarget(
        server=target.server,
        database=target.database,
        kind=target.kind,
        name=target.name,
        changes=tuple(map(told, changes)),
        by=tuple(sorted(filter(None, users))),
    )
