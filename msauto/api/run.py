"""One run of ``apply`` or ``undo``: locked from the first read to the last verification, and recorded.

:func:`~msauto.api.loading.load` gives what to plan, offline. :meth:`Run.apply` is the run of the command, of a job and
of the library: who decides on the plan, and what stops it, are parameters. :func:`check_plan` raises why a plan may not
be applied. ``plan`` alone is :func:`plan_only`, which writes nothing anywhere.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct, field, structs

from msauto.api.attempts import Attempt, origin_of
from msauto.api.inputs import Inputs
from msauto.api.loading import Loaded, stage_of
from msauto.api.stages import apply_plan, make_plan, recover_runs, scopes_of
from msauto.api.workplace import StageContext
from msauto.codec import to_json
from msauto.concurrency import SystemClock
from msauto.errors import MsautoError, PlanningError, RefusedError
from msauto.exit_codes import INCOMPLETE, OK
from msauto.ledger.ledger import Ledger
from msauto.model.events import (
    Event,
    Notify,
    PlanningEnded,
    PlanningStarted,
    TargetPlanned,
    ignore,
)
from msauto.model.plan import (
    Limits,
    Plan,
    PlanOptions,
    Refusal,
    SkippedTarget,
    TargetKey,
    target_key,
)
from msauto.model.ports import Clock
from msauto.model.result import UNTREATED_NOTE, Result, Untreated
from msauto.planning.limits import refusals, without_forbidden
from msauto.planning.saved_plan import stale_targets
from msauto.playbook.change_windows import DatedFreeze, Freeze, Window, freeze_at, parse_window
from msauto.playbook.input_files import base_of
from msauto.playbook.settings import Settings
from msauto.report.sanitizing import visible
from msauto.report.texts import plural, refusal_error, refusal_reason
from msauto.secrets.redacted_plans import Redactor, redact_plan

if TYPE_CHECKING:
    from msauto.applying.apply_context import Cancellation


class AllowedTimes(Struct, frozen=True):
    """When a run may begin a target: outside of every freeze, within the window of the run, and before ``until``."""

    freezes: tuple[Freeze | DatedFreeze, ...] = ()
    window: Window | None = None
    until: datetime | None = None

    def refusals(self, now: datetime) -> Iterator[Refusal]:
        """Yield why no target may begin now."""
        frozen = freeze_at(self.freezes, now) if self.freezes else None
        if frozen is not None:
            since = now.astimezone(frozen.since.tzinfo)
            yield Refusal("freeze", str(frozen), _time(since), "--override-freeze REASON")
        window = self.window
        if window is not None and not window.is_open(now):
            shown = f"{window} ({window.timezone or 'the time zone of this machine'})"
            remedy = "run it within the window, or without --window"
            yield Refusal("window", shown, _time(window.clock(now)), remedy)
        if self.until is not None and now >= self.until:
            until = _time(self.until.astimezone(now.tzinfo))
            yield Refusal("max_time", until, _time(now), "give the job more time: max_time")


def _time(moment: datetime) -> str:
    return f"{moment:%a %H:%M %Z}"


def why_closed(times: AllowedTimes, closing_reasons: list[str], now: datetime) -> str | None:
    """Return why no more targets may begin at this time: a freeze, or the window; add it to ``closing_reasons``."""
    refusal = next(times.refusals(now), None)
    if refusal is None:
        return None
    reason = refusal_reason(refusal)
    closing_reasons.append(reason)
    return reason


class RunOptions(Struct, frozen=True):
    """What the user consents to beside the settings, and when targets may begin.

    ``window``: a text such as ``23:00-05:30`` is in the time zone of the settings. ``lock_timeout`` is in seconds.
    ``keep_going`` leaves out targets in error.
    """

    allow_delete: int | None = None
    allow_remove: int | None = None
    allow_requests: int | None = None
    override_freeze: str | None = None
    window: Window | str | None = None
    until: datetime | None = None
    lock_timeout: float = 0.0
    keep_going: bool = False

    def __post_init__(self) -> None:
        if self.override_freeze is not None and not self.override_freeze.strip():
            raise MsautoError(
                "override_freeze: the reason is empty", remedy="give the reason: it is recorded"
            )
        if isinstance(self.window, str):
            try:
                parse_window(self.window)
            except ValueError as error:
                message = f"window: {self.window!r} is not a valid window: {error}"
                raise MsautoError(message, remedy="write the hours as 23:00-05:30") from None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> RunOptions:
        """Return the options that keywords or flags give, among others."""
        names = given.keys() & {*cls.__struct_fields__}
        return cls(**{name: given[name] for name in names})

    def limits(self, settings: Settings) -> Limits:
        """Return the limits of the settings, with what is allowed for this run."""
        limits = settings.limits
        changed: dict[str, int] = {}
        if self.allow_delete is not None:
            changed["delete_assets"] = self.allow_delete
        if self.allow_remove is not None:
            changed["allow_remove"] = self.allow_remove
        if self.allow_requests is not None:
            changed["requests"] = self.allow_requests
        return structs.replace(limits, **changed)

    def times(self, settings: Settings) -> AllowedTimes:
        """Return when targets may begin."""
        freezes = () if self.override_freeze else settings.freezes
        window = self.window
        if isinstance(window, str):
            window = parse_window(window, settings.timezone)
        return AllowedTimes(freezes, window, self.until)


# Plan ----------------------------------------------------------------------------------------------------------------


def _without(plan: Plan, keys: Collection[TargetKey]) -> Plan:
    targets = [target for target in plan.targets if target_key(target) not in keys]
    return structs.replace(plan, targets=tuple(targets))


async def plan_only(
    loaded: Loaded, options: RunOptions, clock: Clock | None = None, notify: Notify = ignore
) -> Plan:
    """Return the plan; writes nothing anywhere."""
    clock = clock or SystemClock()
    place = loaded.inputs.ledger
    with (
        loaded.resolved.secrets.redacted_errors(),
        Ledger.open(place, readonly=True, now=clock.now) as ledger,
    ):
        return await _plan(loaded, options, stage_of(loaded, ledger, clock), notify)


async def _plan(loaded: Loaded, options: RunOptions, stage: StageContext, notify: Notify) -> Plan:
    """Return the plan, of which nothing is sent that was not agreed to; sends GET and HEAD only."""
    inputs, given = loaded.inputs, loaded.inputs.given
    limits = options.limits(inputs.settings)
    as_desired: set[TargetKey] = set()

    def noting(event: Event) -> None:
        if isinstance(event, TargetPlanned) and event.state == "unchanged":
            as_desired.add((event.server, event.database, event.kind, event.name))
        notify(event)

    notify(PlanningStarted(tuple(spec.name for spec in loaded.resolved.specs)))
    observe = noting if loaded.agreements else notify
    plan = await make_plan(
        stage,
        limits,
        observe,
        targets=given.targets,
        forget_pending=given.forget_pending,
    )
    for agreement in loaded.agreements:
        plan = agreement.hold(plan, as_desired)
    if loaded.agreements:
        plan = structs.replace(plan, refusals=refusals(plan, limits))
    if options.keep_going and given.undo:
        plan = without_forbidden(plan, limits)
    plan = _of_this_run(plan, inputs, options, stage)
    notify(PlanningEnded(plan.summary, plan.refusals))
    if inputs.settings.require_state and stage.ledger.empty:
        plan = structs.replace(plan, refusals=(*plan.refusals, _no_ledger(inputs)))
    return plan


def _of_this_run(plan: Plan, inputs: Inputs, options: RunOptions, stage: StageContext) -> Plan:
    """Return a plan with what it is made from, when it may be applied, and what the last run did not treat either."""
    ledger, settings, base = stage.ledger, inputs.settings, base_of(inputs.given.playbooks)
    times: Iterable[Refusal] = ()
    if plan.requests:
        times = options.times(settings).refusals(stage.clock.now())
    before = Untreated.unpack(ledger.last_note(_untreated_note(inputs.given, base)))
    skipped_before = {target.identity for target in before.skipped}
    skipped: list[SkippedTarget] = []
    for target in plan.skipped:
        is_repeated = target.identity in skipped_before
        skipped.append(structs.replace(target, repeated=is_repeated))
    return structs.replace(
        plan,
        settings=settings.used,
        options=inputs.kept(plan.secrets, base),
        warnings=(*ledger.warnings, *plan.warnings),
        refusals=(*plan.refusals, *times),
        skipped=tuple(skipped),
    )


def _no_ledger(inputs: Inputs) -> Refusal:
    """Return that the ledger which the settings require is empty: the user must decide whether it is right."""
    advice = "check `url` under [state]"
    if isinstance(inputs.ledger, Path):
        advice = "mount the folder that holds it"
    remedy = f"{advice}; for the very first run, set `require = false` under [state]"
    return Refusal("state", str(inputs.settings.file), str(inputs.ledger), remedy)


def _untreated_note(given: PlanOptions, base: Path) -> str:
    """Return the name of the note on what the runs of these playbooks did not treat."""
    named = given.playbooks or (given.undo,)
    return f"{UNTREATED_NOTE}{' '.join(os.path.normpath(base / name) for name in named)}"


def refuse_stale(plan: Plan, *, shown: bool = True) -> None:
    """Raise :class:`RefusedError` if the plan is not what was agreed to.

    It names the targets and what differs, unless the plan is ``shown``, which names them.
    """
    stale = stale_targets(redact_plan(plan))
    if not stale:
        return
    which = ""
    if not shown:
        names = [f"{name}: {_beginning(why)}" for name, why in stale[:3]]
        if len(stale) > 3:
            names.append(f"and {len(stale) - 3} more")
        which = f": {'; '.join(names)}"
    raise RefusedError(
        f"the plan is stale: {plural(len(stale), 'target')} changed since it was made; nothing was sent{which}",
        remedy="make the plan again, or apply the other targets with --keep-going",
    )


def _beginning(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"


def check_plan(
    plan: Plan, *, keep_going: bool = False, asked: Collection[str] = (), shown: bool = True
) -> None:
    """Raise why the plan may not be applied; limits in ``asked`` are not looked at: the user is asked.

    That is :class:`RefusedError` for a missing ledger, targets that are stale, a limit or the time; and
    :class:`PlanningError` for targets in error, unless ``keep_going`` leaves them out. ``shown``: the user
    sees the plan.
    """
    missing = [refusal for refusal in plan.refusals if refusal.code == "state"]
    if missing:
        raise refusal_error(missing)
    if plan.errors and not keep_going:
        refuse_stale(plan, shown=shown)
        first = next(target for target in redact_plan(plan).targets if target.error is not None)
        why, _, _ = str(first.error).partition("\n")
        raise PlanningError(
            f"cannot plan {plural(plan.errors, 'target')}: {first.name}: {why}",
            remedy="correct the targets in error, or apply the others with --keep-going",
        )
    refused = [refusal for refusal in plan.refusals if refusal.code not in asked]
    if refused:
        raise refusal_error(refused)


NOTHING_UNDONE: Final = "nothing was taken back"

# Apply ---------------------------------------------------------------------------------------------------------------

Decision = Literal["apply", "plan again", "leave"]
Agree = Callable[[Plan], Decision]
"""Decides on a plan, or raises why it may not be applied. It may block: the user is asked."""
Stopping = Callable[[], AbstractContextManager["Cancellation"]]
"""Makes what stops a run while its plan is applied."""


class Run(Struct, frozen=True):
    """One run; ``attempt`` is kept up to date, so that it can be recorded however the run ends."""

    loaded: Loaded
    options: RunOptions
    attempt: Attempt
    clock: Clock = field(default_factory=SystemClock)
    notify: Notify = ignore

    async def apply(self, agree: Agree, stopping: Stopping) -> Result | None:
        """Lock, plan until ``agree`` decides, and apply the plan; return the result, ``None`` if it is not applied.

        To stop it while it plans, cancel the task. Raises ``LockedError``, and ``RefusedError`` for a cluster without a
        shared ledger, before anything is read.
        """
        attempt = self.attempt
        with self.loaded.resolved.secrets.redacted_errors():
            async with self._locked() as stage:
                decision: Decision = "plan again"
                while decision == "plan again":
                    plan = await _plan(self.loaded, self.options, stage, self.notify)
                    if attempt.unverified_before:
                        plan = _without(plan, attempt.unverified_before)
                    attempt.plan, attempt.summary = plan, to_json(plan.summary)
                    decision = agree(plan)
                if decision == "leave":
                    return None
                with stopping() as stop:
                    # What cancelled the task before ends it here: nothing is sent.
                    await asyncio.sleep(0)
                    result = await self._apply(stage, plan, stop)
                attempt.code = attempt.code_of(result)
                is_undo = bool(self.loaded.inputs.given.undo)
                if is_undo and attempt.code == OK and _undoes_nothing(result.plan, stage.ledger):
                    attempt.code, attempt.reason = INCOMPLETE, NOTHING_UNDONE
                attempt.note_run(stage.ledger)
        return result

    @asynccontextmanager
    async def _locked(self) -> AsyncIterator[StageContext]:
        """Open the ledger, take the locks, and settle by reading what runs left in doubt when they died.

        If the settings require a ledger and this one is missing, none is created and nothing is locked: the plan of
        such a run is refused.
        """
        inputs, resolved = self.loaded.inputs, self.loaded.resolved
        if inputs.settings.require_state:
            with Ledger.open(inputs.ledger, readonly=True) as ledger:
                if ledger.empty:
                    yield stage_of(self.loaded, ledger, self.clock)
                    return
        with Ledger.open(inputs.ledger, now=self.clock.now) as ledger:
            stage, scopes = stage_of(self.loaded, ledger, self.clock), scopes_of(resolved)
            stage.workplace.check_ledger(ledger)
            async with ledger.hold(scopes, self.clock, lock_timeout=self.options.lock_timeout):
                for line in await recover_runs(stage, scopes):
                    prefix = "" if line.startswith(" ") else "Warning: "
                    inputs.tell(f"{prefix}{visible(line)}")
                yield stage

    async def _apply(self, stage: StageContext, plan: Plan, stop: Cancellation) -> Result:
        """Send, settle, verify and record a plan that is not refused; its targets in error are not attempted.

        Afterwards old runs are removed from the ledger, as the settings require; a failure does not affect this run.
        """
        inputs, attempt, options = self.loaded.inputs, self.attempt, self.options
        notes = {**origin_of(attempt.playbooks, inputs.settings), **attempt.notes}
        if options.override_freeze:
            notes["override_freeze"] = plan.secrets.redact_message(options.override_freeze)
        untreated = Untreated(plan.servers, Redactor(plan.secrets)(plan.skipped))
        base = base_of(inputs.given.playbooks)
        notes[_untreated_note(inputs.given, base)] = untreated.pack()
        result = await apply_plan(
            plan,
            stage,
            self.notify,
            playbooks=attempt.playbooks,
            cancellation=stop,
            frozen=partial(why_closed, options.times(inputs.settings), attempt.closing_reasons),
            notes=notes,
        )
        attempt.run, attempt.result = result.run, result
        try:
            stage.ledger.prune(
                keep_runs=inputs.settings.keep_runs, keep_days=inputs.settings.keep_days
            )
        except MsautoError as error:
            inputs.tell(f"Warning: cannot remove old runs from the ledger: {error.message}")
        return result


def _undoes_nothing(plan: Plan, ledger: Ledger) -> bool:
    """Return whether an undo found nothing to take back, and warns why; nothing that is not so already."""
    warns_why_not = len(plan.warnings) > len(ledger.warnings)
    return warns_why_not and not plan.requests and not plan.unchanged


async def apply_unasked(loaded: Loaded, options: RunOptions, notify: Notify = ignore) -> Result:
    """Plan and apply what is loaded, as ``msauto apply --yes`` does, and record the attempt.

    Cancelled while it reads, it ends. Cancelled while it applies, it finishes the requests in flight; cancelled again,
    it stops at once. It raises ``CancelledError`` once everything is settled, recorded and closed.
    """
    from msauto.applying.apply_context import Cancellation

    inputs = loaded.inputs
    stop = Cancellation()
    is_applying = False
    attempt = Attempt(inputs.ledger, inputs.named, inputs=inputs, tell=inputs.tell)

    def agree(plan: Plan) -> Decision:
        check_plan(plan, keep_going=options.keep_going, shown=False)
        return "apply"

    @contextmanager
    def stopping() -> Iterator[Cancellation]:
        nonlocal is_applying
        is_applying = True
        yield stop

    async def work() -> Result:
        with attempt.recorded():
            result = await Run(loaded, options, attempt, notify=notify).apply(agree, stopping)
            if result is None or result.interrupted:
                raise asyncio.CancelledError
        return result

    task = asyncio.ensure_future(work())
    was_cancelled = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            if is_applying:
                stop()
            elif not was_cancelled:
                # Once: more of them must not interrupt the closing of connections.
                task.cancel()
            was_cancelled = True
    result = task.result()
    if was_cancelled:  # too late to stop anything
        raise asyncio.CancelledError
    return result
