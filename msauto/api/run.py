"""One run of ``apply`` or ``undo``: locked from the first read to the last verification, and recorded.

:func:`~msauto.api.loading.load` gives what to plan, offline. Inside :func:`open_run`, :meth:`Run.plan` reads,
:func:`refuse_plan` raises ``RefusedError`` for limits and freezes, and :meth:`Run.apply` sends, settles and verifies.
``plan`` alone is :func:`plan_only`, which writes nothing anywhere.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from msauto.api.attempts import Attempt, origin_of
from msauto.api.inputs import Inputs
from msauto.api.loading import Loaded
from msauto.api.saved_plans import kept_options
from msauto.api.stages import apply_plan, recover_runs
from msauto.concurrency import SystemClock
from msauto.errors import MsautoError, RefusedError
from msauto.ledger import Ledger
from msauto.ledger.history import OPTIONS
from msauto.model.codec import dump, to_json
from msauto.model.events import SILENT, Observer, PlanningEnded, PlanningStarted
from msauto.model.plan import Limits, Plan, Refusal
from msauto.model.ports import Clock
from msauto.model.result import Result
from msauto.planning.saved_plan import count_stale
from msauto.playbook.change_windows import DatedFreeze, Freeze, Window, freeze_at, parse_window
from msauto.playbook.input_files import base_of
from msauto.playbook.settings import Settings
from msauto.report.sanitizing import visible
from msauto.report.texts import plural, refusal_error, refusal_reason

if TYPE_CHECKING:
    from msauto.applying.executor import Cancellation


@dataclass(frozen=True, slots=True)
class AllowedTimes:
    """When a run may begin a target: outside of every freeze, within the window of the run, and before ``until``."""

    freezes: tuple[Freeze | DatedFreeze, ...] = ()
    window: Window | None = None
    until: datetime | None = None

    def refusals(self, now: datetime) -> Iterator[Refusal]:
        """Yield why no target may begin now."""
        frozen = freeze_at(self.freezes, now)
        if frozen is not None:
            yield Refusal("freeze", str(frozen), _time(now.astimezone(frozen.since.tzinfo)), "--override-freeze REASON")
        window = self.window
        if window is not None and not window.is_open(now):
            shown = f"{window} ({window.timezone or 'the time zone of this machine'})"
            yield Refusal("window", shown, _time(window.clock(now)), "run it within the window, or without --window")
        if self.until is not None and now >= self.until:
            until = _time(self.until.astimezone(now.tzinfo))
            yield Refusal("max_time", until, _time(now), "give the job more time: max_time")


def allowed_times(settings: Settings, window: str | None = None, *, override_freeze: str | None = None) -> AllowedTimes:
    """Return when targets may begin; the time zone of the window is that of the settings."""
    freezes = () if override_freeze else settings.freezes
    return AllowedTimes(freezes, None if window is None else parse_window(window, settings.timezone))


def _time(moment: datetime) -> str:
    return f"{moment:%a %H:%M %Z}"


@dataclass(frozen=True, slots=True)
class TimesPassed:
    """Returns why no more targets may begin: a freeze, or the window; ``closed`` collects it."""

    times: AllowedTimes
    closed: list[str]

    def __call__(self, now: datetime) -> str | None:
        """Return the reason, at this time."""
        refusal = next(self.times.refusals(now), None)
        if refusal is None:
            return None
        self.closed.append(refusal_reason(refusal))
        return self.closed[-1]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The limits with what is allowed for this run, and when targets may begin. ``lock_timeout`` is in seconds."""

    limits: Limits
    times: AllowedTimes
    override_freeze: str | None = None
    lock_timeout: float = 0.0


def allow(limits: Limits, delete: int | None, remove: int | None, requests: int | None) -> Limits:
    """Return the limits with what is allowed for this run."""
    return replace(
        limits,
        delete_assets=max(delete or 0, limits.delete_assets),
        allow_remove=limits.allow_remove if remove is None else remove,
        requests=limits.requests if requests is None else requests,
    )


# Plan ----------------------------------------------------------------------------------------------------------------


async def plan_only(
    loaded: Loaded, options: RunOptions, clock: Clock | None = None, observer: Observer = SILENT
) -> Plan:
    """Return the plan; writes nothing anywhere. A missing ledger that the settings require is a refusal of the plan."""
    inputs = loaded.inputs
    with Ledger.open(inputs.ledger, readonly=True) as ledger:
        plan = await _plan(loaded, options, ledger, clock or SystemClock(), observer)
        if not (inputs.settings.require_state and ledger.empty):
            return plan
    found = "mount the folder that holds it" if isinstance(inputs.ledger, Path) else "check `url` under [state]"
    remedy = f"{found}; for the very first run, set `require = false` under [state]"
    refusal = Refusal("state", str(inputs.settings.file), str(inputs.ledger), remedy)
    return structs.replace(plan, refusals=(*plan.refusals, refusal))


def is_state_missing(inputs: Inputs) -> bool:
    """Return whether the settings require a ledger, and this one is empty: the user must decide whether it is right.

    The ledger is opened to read only: an unmounted folder must not get one by this check.
    """
    if not inputs.settings.require_state:
        return False
    with Ledger.open(inputs.ledger, readonly=True) as ledger:
        return ledger.empty


async def _plan(loaded: Loaded, options: RunOptions, ledger: Ledger, clock: Clock, observer: Observer) -> Plan:
    inputs = loaded.inputs
    observer.notify(PlanningStarted(tuple(spec.name for spec in loaded.specs)))
    plan = await loaded.plan(ledger.plan_memory(), clock, options.limits, observer)
    kept = kept_options(inputs.given, plan.secrets, base_of(inputs.given.playbooks))
    closed = tuple(options.times.refusals(clock.now())) if plan.requests else ()
    plan = structs.replace(plan, settings=inputs.settings.used, options=kept, refusals=(*plan.refusals, *closed))
    observer.notify(PlanningEnded(plan.summary, plan.refusals))
    return plan


def refuse_stale(plan: Plan) -> None:
    """Raise :class:`RefusedError` if the plan is not what was agreed to."""
    stale = count_stale(plan)
    if stale:
        raise RefusedError(
            f"the plan is stale: {plural(stale, 'target')} changed since it was made; nothing was sent",
            remedy="make the plan again, or apply the other targets with --keep-going",
        )


def refuse_plan(plan: Plan, *, asked: Collection[str] = ()) -> None:
    """Raise :class:`RefusedError` if a limit or the time forbids the plan; not for what is ``asked``."""
    refused = [refusal for refusal in plan.refusals if refusal.code not in asked]
    if refused:
        raise refusal_error(refused)


# Apply ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """One run, while its ledger is open and its locks are held: :func:`open_run`.

    ``attempt`` is kept up to date, so that it can be recorded however the run ends.
    """

    loaded: Loaded
    options: RunOptions
    attempt: Attempt
    ledger: Ledger
    clock: Clock
    observer: Observer

    async def plan(self) -> Plan:
        """Return the plan as of now; sends GET and HEAD only."""
        plan = await _plan(self.loaded, self.options, self.ledger, self.clock, self.observer)
        self.attempt.plan, self.attempt.summary = plan, to_json(plan.summary)
        return plan

    async def apply(self, plan: Plan, cancellation: Cancellation | None = None) -> Result:
        """Send, settle, verify and record a plan that is not refused; its targets in error are not attempted.

        Afterwards old runs are removed from the ledger, as the settings require; a failure does not affect this run.
        """
        inputs, attempt, options = self.loaded.inputs, self.attempt, self.options
        notes = {**origin_of(attempt.playbooks, inputs.settings), **attempt.notes}
        notes[OPTIONS] = dump(kept_options(inputs.given, plan.secrets, None))
        if options.override_freeze:
            notes["override_freeze"] = plan.secrets.redact_message(options.override_freeze)
        result = await apply_plan(
            plan,
            self.loaded.specs,
            ledger=self.ledger,
            clock=self.clock,
            observer=self.observer,
            forks=inputs.forks,
            playbooks=attempt.playbooks,
            cancellation=cancellation,
            frozen=TimesPassed(options.times, attempt.closed),
            notes=notes,
            on=inputs.on,
        )
        attempt.run, attempt.result = result.run, result
        try:
            self.ledger.prune(keep_runs=inputs.settings.keep_runs, keep_days=inputs.settings.keep_days)
        except MsautoError as error:
            inputs.tell(f"Warning: cannot remove old runs from the ledger: {error.message}")
        return result


@asynccontextmanager
async def open_run(
    loaded: Loaded,
    options: RunOptions,
    attempt: Attempt,
    *,
    clock: Clock | None = None,
    observer: Observer = SILENT,
) -> AsyncIterator[Run]:
    """Open the ledger, take the locks, and settle by reading what runs left in doubt when they died.

    Raises ``LockedError``, and ``RefusedError`` for a cluster without a shared ledger, before anything is read.
    """
    inputs, clock = loaded.inputs, clock or SystemClock()
    with Ledger.open(inputs.ledger) as ledger:
        if inputs.on is not None:
            ledger.admit_workers()
        async with ledger.hold(loaded.scopes, clock, lock_timeout=options.lock_timeout):
            lines = await recover_runs(
                ledger,
                loaded.specs,
                loaded.scopes,
                clock=clock,
                forks=inputs.forks,
                secrets=loaded.secrets,
                on=inputs.on,
            )
            for line in lines:
                inputs.tell(visible(line) if line.startswith(" ") else f"Warning: {visible(line)}")
            yield Run(loaded, options, attempt, ledger, clock, observer)
