"""What ``apply`` works on: playbooks, or a run to undo, which are planned now; and what was agreed to before.

A saved plan, and the rest of a run, are planned again like anything else, and then compared with what was agreed to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from msauto.api.saved_plans import changed_inputs
from msauto.api.stages import check_servers, make_plan, scopes_of, specs_of
from msauto.cli.flags import Flags
from msauto.cli.runs.past_runs import find_run, undo_of_run
from msauto.errors import RefusedError
from msauto.ledger import LockScope
from msauto.ledger.remembered_values import LedgerMemory
from msauto.model.desired import ResolvedPlaybooks
from msauto.model.events import Observer
from msauto.model.plan import Limits, Plan, PlanOptions, TargetId
from msauto.model.ports import Clock
from msauto.model.run_records import RunDetails, TargetRecord
from msauto.model.server import ServerSpec
from msauto.planning.plan_assembly import refusals
from msauto.planning.saved_plan import refuse_differences
from msauto.playbook.inventory.hosts import named_servers
from msauto.playbook.resolve import resolve
from msauto.secrets.redaction import Secrets

MakePlan = Callable[[LedgerMemory, Clock, int, Limits, Observer], Awaitable[Plan]]


@dataclass(frozen=True, slots=True)
class PlanSource:
    """The servers of a run, what it must lock, its secrets, and how to plan it, which sends GET and HEAD only.

    ``options`` make the same plan again.
    """

    specs: tuple[ServerSpec, ...]
    scopes: frozenset[LockScope]
    secrets: Secrets
    plan: MakePlan
    options: PlanOptions


def open_source(flags: Flags, *, keep_going: bool = False, as_planned: bool = False) -> PlanSource:
    """Return the source that the flags name: playbooks, a saved plan, a run to undo, or the rest of a run.

    ``as_planned``: what that run did not reach must be as it was planned then. Raises :class:`InputError`, and
    :class:`RefusedError` for a saved plan whose files have changed.
    """
    agreed, given = flags.agreed, flags.given
    stale = [] if agreed is None else [*changed_inputs(agreed, flags.base, flags.settings.used)]
    if stale and not keep_going:
        raise RefusedError(
            f"the plan is stale: {', '.join(stale)}; nothing was sent",
            remedy="make the plan again, or apply the targets that are the same with --keep-going",
        )
    resolved = undo_of_run(flags, find_run(flags, given.undo)) if given.undo else resolve(flags.options)
    source = resolved_source(resolved, given, on=flags.on)
    if given.resume:
        source = _rest_of(find_run(flags, given.resume), source, as_planned=as_planned)
    if agreed is not None:
        _check_servers(flags, agreed, source.specs)
        source = _held_to(agreed, source, warnings=tuple(f"the plan is stale: {each}" for each in stale))
    return source


def resolved_source(resolved: ResolvedPlaybooks, options: PlanOptions, *, on: str | None = None) -> PlanSource:
    """Return the source of playbooks, or of what undoes a run; ``on`` is a cluster."""

    async def plan(memory: LedgerMemory, clock: Clock, forks: int, limits: Limits, observer: Observer) -> Plan:
        return await make_plan(
            resolved,
            memory=memory,
            clock=clock,
            forks=forks,
            limits=limits,
            forget_pending=options.forget_pending,
            targets=options.targets,
            observer=observer,
            on=on,
        )

    return PlanSource(specs_of(resolved), scopes_of(resolved), resolved.secrets, plan, options)


def _held_to(
    agreed: Plan | None,
    source: PlanSource,
    *,
    only: Collection[TargetId] | None = None,
    begun: Collection[TargetId] = (),
    warnings: tuple[str, ...] = (),
) -> PlanSource:
    """Return a source whose plan sends only what was agreed to, of ``only`` these targets."""

    async def plan(memory: LedgerMemory, clock: Clock, forks: int, limits: Limits, observer: Observer) -> Plan:
        made = await source.plan(memory, clock, forks, limits, observer)
        targets = tuple(each for each in made.targets if only is None or each.id in only)
        made = structs.replace(made, targets=targets, warnings=(*warnings, *made.warnings))
        if agreed is not None:
            made = refuse_differences(made, agreed, begun)
        return structs.replace(made, refusals=refusals(made, limits))

    return replace(source, plan=plan)


def _check_servers(flags: Flags, plan: Plan, specs: tuple[ServerSpec, ...]) -> None:
    """Refuse to apply a plan to another server: two inventories may use the same name, and a variable may move one."""
    urls = {server.name: server.url for server in plan.servers}
    folder = str(Path(*flags.given.playbooks[:1]).parent)
    typed = replace(flags.options, extra_vars=flags.typed_vars)
    names = [spec.name for spec in specs] if flags.typed_vars != flags.given.extra_vars else []
    known = {each.spec.name: each.spec for each in named_servers(typed, names=names, folder=folder)} if names else {}
    for spec in specs:
        planned = urls.get(spec.name, spec.url)
        if planned != spec.url:
            raise RefusedError(
                f"the plan was made for {spec.name} at {planned}, but the inventory has it at {spec.url}",
                remedy="use the inventory of the plan (-i), or make the plan again",
            )
        if known.get(spec.name, spec) != spec:
            raise RefusedError(
                f"the variables of the plan change the server {spec.name}, and a plan file cannot decide where to send",
                remedy="give them again with -e",
            )


def _rest_of(details: RunDetails, source: PlanSource, *, as_planned: bool) -> PlanSource:
    """Return a source of what a run did not finish; raises ``RefusedError``."""
    name = details.summary.run
    if details.summary.status == "running":
        raise RefusedError(f"run {name} is still running", remedy="wait until it ends")
    rest = [each for each in details.targets if each.outcome not in {"changed", "unchanged", "skipped"}]
    if not rest:
        raise RefusedError(f"run {name} finished every target", remedy="apply the playbooks without --resume")
    check_servers(details, source.specs)
    left = [each.target for each in rest if _was_not_reached(each)]
    return _held_to(
        Plan(details.summary.started, details.msauto, targets=tuple(left)) if as_planned else None,
        source,
        only={each.target.id for each in rest},
        begun={each.target.id for each in rest} - {each.id for each in left},
        warnings=(f"--resume narrows this plan to what run {name} did not finish",),
    )


def _was_not_reached(record: TargetRecord) -> bool:
    return record.outcome == "not attempted" or (record.begun is None and record.outcome is None)
