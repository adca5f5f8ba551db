"""One attempt of a job of a batch: a run as of ``msauto apply --yes``, or ``msauto plan``, in this process."""

from __future__ import annotations

import asyncio
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
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
from msauto.errors import (
    ClusterError,
    LockedError,
    MsautoError,
    PlanningError,
    bug_text,
    exit_code_of,
)
from msauto.exit_codes import ERROR, INCOMPLETE, INTERRUPTED, OK, REFUSED
from msauto.file_access import may_be_there
from msauto.ledger.history import ATTEMPT, BATCH, JOB
from msauto.ledger.ledger import LedgerPlace
from msauto.model.plan import Change, Plan, SkippedTarget, Target, target_key
from msauto.model.ports import Clock
from msauto.model.result import COUNT_OF, TargetResult
from msauto.plugins.batch.batch_file import BatchFile, Job
from msauto.plugins.batch.batch_result import (
    DIFFERING,
    DifferingTarget,
    DifferingTargets,
    JobResult,
    outcome_of,
)
from msauto.plugins.batch.causes import (
    Causes,
    TargetResults,
    causes_of,
    is_settled,
    may_get_better,
    results_so_far,
)
from msauto.plugins.batch.schedule import open_until
from msauto.plugins.batch.schema import AllowArgs
from msauto.report.layout import PLAIN, Layout
from msauto.report.losses import losses_of
from msauto.report.result_view import NOT_DONE
from msauto.report.text import render_error, render_plan, render_result
from msauto.report.texts import done_outside, refusal_error, show_value
from msauto.secrets.redacted_plans import redact_plan

_ALLOW = re.compile(r"--allow-(delete|remove|requests) (\d+) ?")
"""A flag that allows what was refused; a job has a key for it."""
_KEYS = {
    "give --lock-timeout SECONDS": "set `lock_timeout` for the job",
    "with --keep-going": "with `keep_going: true`",
    "--override-freeze REASON": "run it again after the freeze",
}
"""What a job has in the place of the flags of a remedy."""
_LONGEST = 60
"""Of a value that others had set: as much is in the summary."""


class BatchSignals:
    """SIGINT, SIGTERM and SIGHUP during a batch: each asks it to stop, and calls ``react``.

    While a job plans, that cancels it; while it applies, what is under way is finished. ``requested``: the batch was
    asked to stop.
    """

    def __init__(self) -> None:
        self.requested = False
        self.react: Callable[[], object] | None = None
        # Not an event: a handler waits for ever for a lock that the code holds which it interrupts.
        self._noted: SimpleQueue[int] = SimpleQueue()

    def wait(self, seconds: float) -> bool:
        """Wait, or until the batch is asked to stop; return whether it was."""
        if not self.requested:
            with suppress(Empty):
                self._noted.get(timeout=seconds)
        return self.requested

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
        self.requested = True
        self._noted.put(number)
        if self.react is not None:
            with suppress(RuntimeError):  # the job has just ended, and its loop is closed
                self.react()


class JobAttempt(NamedTuple):
    """What came of one attempt of a job.

    ``again``: trying again is safe and may help. ``targets``: what came of each target so far, in all attempts.
    """

    result: JobResult
    again: bool = False
    targets: TargetResults = ()


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

    def __call__(
        self, job: Job, attempt: int, until: datetime | None, before: TargetResults
    ) -> JobAttempt:
        """Run a job once; any error is its result. ``before``: what earlier attempts made of the targets.

        A target that is unverified is left as it is: the user must look at it.
        """
        is_missing = job.plan is not None and not may_be_there(job.plan)
        if is_missing and job.args.optional:
            reason = f"{job.plan} does not exist"
            return JobAttempt(JobResult(job=job.name, outcome="skipped", code=OK, reason=reason))
        record = self._record_of(job, attempt, before)
        is_passing = False
        told: list[str] = []

        def tell(text: str) -> None:
            told.append(text)
            self.log.tell(text)

        try:
            with record.recorded():
                try:
                    record.code = self._run(job, record, until, tell)
                finally:
                    outcome = _outcome_of(record, before)
                _decide(job, record, outcome)
            code = record.code
        except KeyboardInterrupt:
            code = INTERRUPTED
        except MsautoError as error:
            self.log.tell(render_error(error, colour=False))
            code = exit_code_of(error)
            is_passing = (
                isinstance(error, (LockedError, ClusterError)) or cause_of(error) in PASSING
            )
        except Exception as error:  # noqa: BLE001 - a job never stops the others
            self.log.tell(f"Error: {bug_text(error)}")
            code = ERROR
        result = _result(job, record, code, outcome)
        result = structs.replace(result, warnings=(*_warnings_of(told), *result.warnings))
        may_help = is_passing or _may_help(job, record, code, outcome.causes)
        return JobAttempt(result, may_help, outcome.targets)

    def _record_of(self, job: Job, attempt: int, before: TargetResults) -> Attempt:
        settled = [target_key(result.target) for result in before if is_settled(result)]
        return Attempt(
            self.ledger,
            _files(job),
            notes={**self.notes, BATCH: self.batch.name, JOB: job.name, ATTEMPT: str(attempt)},
            check=self.check,
            unverified_before=frozenset(settled),
            tell=self.log.tell,
            clock=self.clock,
        )

    def _run(self, job: Job, record: Attempt, until: datetime | None, tell: Tell) -> int:
        inputs = inputs_of(
            _files(job),
            **job.options,
            **self.given,
            state_dir=self.state_dir,
            beside=self.batch.file,
            now=self.clock.now(),
            tell=tell,
        )
        inputs = record.inputs = structs.replace(
            inputs, ledger=inputs.settings.ledger_url or self.ledger
        )
        allowed = job.args.allow or AllowArgs()
        options = RunOptions(
            allow_delete=allowed.delete,
            allow_remove=allowed.remove,
            allow_requests=allowed.requests,
            window=self.batch.window,
            until=until,
            lock_timeout=self._lock_timeout(job, until),
            keep_going=bool(job.args.keep_going),
        )
        loaded = load(inputs, keep_going=options.keep_going)
        try:
            with loaded.resolved.secrets.redacted_errors():
                applying = self._plan_and_apply(loaded, options, record, plans=not job.applies)
                return asyncio.run(applying)
        except asyncio.CancelledError:
            raise KeyboardInterrupt("nothing was sent") from None
        finally:
            self.signals.react = None

    def _lock_timeout(self, job: Job, until: datetime | None) -> float:
        """Return how long to wait for a lock, in seconds: not after ``until``, nor after the window."""
        wait = job.args.lock_timeout or timedelta()
        now = self.clock.now()
        for end in (until, open_until(self.batch.window, now)):
            if end is not None:
                wait = min(wait, end - now)
        return max(0.0, wait.total_seconds())

    async def _plan_and_apply(
        self, loaded: Loaded, options: RunOptions, record: Attempt, *, plans: bool
    ) -> int:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        # Once: more signals must not interrupt the closing of connections.
        self.signals.react = partial(
            loop.call_soon_threadsafe, lambda: task.cancelling() or task.cancel()
        )
        if self.signals.requested:
            raise asyncio.CancelledError
        if record.check or plans:
            plan = record.plan = await plan_only(loaded, options, self.clock)
            record.summary = to_json(plan.summary)
            if not record.check:
                record.summary[DIFFERING] = sum(bool(target.changes) for target in plan.targets)
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
            record.remedy = "run it again at an allowed time"
            self.log.tell(f"Error: {record.reason}\n  → {record.remedy}")
        return record.code

    def _show_plan(self, plan: Plan, *, keep_going: bool) -> None:
        layout = structs.replace(self.log.layout, keep_going=keep_going)
        self.log.show("".join(render_plan(plan, layout)))


# What came of it ------------------------------------------------------------------------------------------------------


class AttemptOutcome(Struct, frozen=True):
    """What an attempt made of the targets: ``targets`` so far, and the ``causes`` why some are not done.

    ``plan`` is the plan as it may be shown, if one was made; ``changing`` are the targets that it changes.
    """

    plan: Plan | None
    changing: list[Target]
    targets: TargetResults
    causes: Causes


def _files(job: Job) -> tuple[str, ...]:
    return job.playbooks or (job.plan or "",)


def _outcome_of(record: Attempt, before: TargetResults) -> AttemptOutcome:
    """Return what came of the targets that were applied, else of those in error: the others are only planned."""
    plan = None
    changing: list[Target] = []
    results: list[TargetResult] = []
    lost = frozenset[str]()
    if record.plan is not None:
        plan = redact_plan(record.plan)
        lost = plan.unreachable
        for target in plan.targets:
            if target.changes:
                changing.append(target)
            if target.error is not None:
                results.append(TargetResult(target, "not attempted", target.error))
    if record.result is not None:
        results = list(record.result.targets)
        lost |= record.result.unreachable
    targets = results_so_far(before, results)
    return AttemptOutcome(plan, changing, targets, causes_of(targets, lost))


def _decide(job: Job, record: Attempt, outcome: AttemptOutcome) -> None:
    """Set the exit code and the reason of a run that ended without an error."""
    plan = outcome.plan
    refusals = plan.refusals if plan is not None else ()
    if record.code == OK and job.applies:
        if outcome.causes:
            record.code = INCOMPLETE
        elif record.check and refusals:
            record.code = REFUSED
            error = refusal_error(refusals)
            record.reason, record.remedy = error.message, error.remedy
    if record.code != OK and not (record.closing_reasons or record.reason):
        record.reason = "; ".join(f"{cause.server}: {cause.text}" for cause in outcome.causes)


def _may_help(job: Job, record: Attempt, code: int, causes: Causes) -> bool:
    """Return whether another attempt is safe and may help, as far as the targets show."""
    is_open = code in {ERROR, INCOMPLETE} and not record.closing_reasons
    if not (is_open and causes):
        return False
    needs_all = job.applies and not job.args.keep_going and record.result is None
    return may_get_better(causes, every=needs_all)


def _result(job: Job, record: Attempt, code: int, outcome: AttemptOutcome) -> JobResult:
    """Return the result of a job: what it changed, or would change where it only plans."""
    changed = [result.target for result in outcome.targets if result.outcome == "changed"]
    losses = losses_of(changed)
    if code == REFUSED and record.result is None:
        losses = losses_of(outcome.changing, would=True)
    compared = outcome.changing
    summary = record.summary
    drift: DifferingTargets = ()
    would_change: DifferingTargets = ()
    if not job.applies:
        drift = _differing(outcome.changing, _named)
    elif record.check:
        would_change = _differing(outcome.changing, _with_action)
    else:
        compared = [result.target for result in outcome.targets]
        summary = _summary(record, outcome)
    warnings: tuple[str, ...] = ()
    skipped: tuple[SkippedTarget, ...] = ()
    if outcome.plan is not None:
        warnings = outcome.plan.warnings
        skipped = _reported_skipped(outcome.plan)
    return JobResult(
        job=job.name,
        outcome=outcome_of(code),
        code=code,
        reason=record.reason or "".join(record.closing_reasons[-1:]),
        remedy=_with_keys(record.remedy),
        runs=(record.run,) if record.run else (),
        summary=summary,
        causes=outcome.causes,
        changed=dict(Counter(target.server for target in changed)),
        outside=_differing(compared, _overwritten),
        warnings=warnings,
        skipped=skipped,
        drift=drift,
        would_change=would_change,
        losses=tuple(losses),
    )


def _reported_skipped(plan: Plan) -> tuple[SkippedTarget, ...]:
    """Return the targets that were skipped, but for those whose ``when`` was false in the last run as well."""
    reported = []
    for target in plan.skipped:
        if target.reason != "when" or not target.repeated:
            reported.append(target)
    return tuple(reported)


def _summary(record: Attempt, outcome: AttemptOutcome) -> dict[str, int]:
    """Return the counts of a job that applies: of the plan, and of what came of all targets."""
    summary = dict(record.summary)
    if outcome.plan is None and not outcome.targets:
        return summary
    counts = Counter(result.outcome for result in outcome.targets)
    applied = set()
    if record.result is None:
        counts["not attempted"] += len(outcome.changing)
    else:
        applied = {target_key(result.target) for result in record.result.targets}
    for shown in ("changed", *NOT_DONE):
        summary[COUNT_OF[shown]] = counts[shown]
    if "unchanged" in summary:
        summary["unchanged"] += counts["unchanged"]
        for result in outcome.targets:
            if result.outcome == "changed" and target_key(result.target) not in applied:
                summary["unchanged"] -= 1  # an earlier attempt changed it
        summary["unchanged"] = max(0, summary["unchanged"])
    return summary


def _warnings_of(told: Iterable[str]) -> Iterator[str]:
    """Yield the warnings among messages, each with the lines that follow it."""
    for message in re.split(r"\n(?=\S)", "\n".join(told)):
        if message.startswith("Warning: "):
            yield message.removeprefix("Warning: ")


def _with_keys(remedy: str) -> str:
    """Return a remedy with the keys of a job in the place of flags."""
    allowed = [f"{what}: {count}" for what, count in _ALLOW.findall(remedy)]
    if allowed:
        remedy = f"{_ALLOW.sub('', remedy)}to allow it, set allow: {{{', '.join(allowed)}}}"
    for flag, key in _KEYS.items():
        remedy = remedy.replace(flag, key)
    return remedy


def _named(change: Change) -> str:
    return f"{change.aspect} {change.key}".rstrip()


def _with_action(change: Change) -> str:
    return f"{change.action} {_named(change)}"


def _overwritten(change: Change) -> str:
    """Return what others had changed, and a value that they had set; nothing for another change."""
    if change.outside is None:
        return ""
    if change.action == "delete":
        title = text_of(mapping(change.before).get("title"))
        shown = f"{show_value(title, limit=_LONGEST)} removed" if title else "removed"
    elif change.before is None or isinstance(change.before, dict):
        shown = done_outside(change, change.outside)
    else:
        shown = show_value(change.before, limit=_LONGEST)
    return f"{_named(change)} {shown}"


def _differing(targets: Iterable[Target], describe: Callable[[Change], str]) -> DifferingTargets:
    """Return the targets that differ, each with its changes as ``describe`` shows them: one without a text is left out.

    Only a live marker names a user: nothing else of the interface does.
    """
    differing = []
    for target in targets:
        changes = []
        users = set()
        for change in target.changes:
            text = describe(change)
            if text:
                changes.append(text)
                users.add(_user_of(change))
        if changes:
            shown = DifferingTarget(
                server=target.server,
                database=target.database,
                kind=target.kind,
                name=target.name,
                changes=tuple(changes),
                by=tuple(sorted(users - {""})),
            )
            differing.append(shown)
    return tuple(differing)


def _user_of(change: Change) -> str:
    user = text_of(mapping(change.before).get("user"))
    if not user and change.outside is not None:
        user = change.outside.user
    return user
