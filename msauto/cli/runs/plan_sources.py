"""What ``apply`` works on: playbooks, which are planned now, or a saved plan, which is compared with live state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from msauto.aio import make_plan, recheck_plan, scopes_of, scopes_of_plan, specs_of
from msauto.cli.flags import Flags
from msauto.cli.plan_files import is_plan_file, read_plan_file
from msauto.errors import InputError, Problem, RefusedError, SourceLocation
from msauto.ledger import LockScope
from msauto.model.desired import ResolvedPlaybooks
from msauto.model.events import Observer
from msauto.model.plan import Limits, Plan
from msauto.model.ports import Clock, NamedMemory
from msauto.model.server import ServerSpec
from msauto.planning.limits import refusals
from msauto.playbook.input_files import Files, repository_of
from msauto.playbook.inventory.servers import servers_called
from msauto.playbook.resolve import resolve
from msauto.playbook.tasks.operation_modules import check_dest
from msauto.playbook.templates.lookup_context import LookupContext
from msauto.playbook.templates.secret_values import read_secret
from msauto.playbook.yaml.document import Document, SourceNode
from msauto.secrets.redaction import Secrets


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A plan; ``stale`` counts the targets of a saved one that have changed since, and carry that as their error."""

    plan: Plan
    stale: int = 0


@dataclass(frozen=True, slots=True)
class PlanSource:
    """The servers of a run, what it must lock, its secrets, and how to plan it, which sends GET and HEAD only."""

    specs: tuple[ServerSpec, ...]
    scopes: frozenset[LockScope]
    secrets: Secrets
    plan: Callable[[NamedMemory, Clock, int, Limits, Observer], Awaitable[PlannedRun]]


def resolved_source(
    resolved: ResolvedPlaybooks,
    *,
    forget_pending: bool = False,
    targets: tuple[str, ...] = (),
    on: str | None = None,
) -> PlanSource:
    """Return the source of playbooks, or of what undoes a run; ``targets`` are globs of titles, ``on`` is a cluster."""

    async def plan(memory: NamedMemory, clock: Clock, forks: int, limits: Limits, observer: Observer) -> PlannedRun:
        return PlannedRun(
            await make_plan(
                resolved,
                memory=memory,
                clock=clock,
                forks=forks,
                limits=limits,
                forget_pending=forget_pending,
                targets=targets,
                observer=observer,
                on=on,
            )
        )

    return PlanSource(specs_of(resolved), scopes_of(resolved), resolved.secrets, plan)


def saved_source(saved: Plan, specs: tuple[ServerSpec, ...]) -> PlanSource:
    """Return the source of a saved plan: every target is read again, and the limits are those of today."""

    async def plan(memory: NamedMemory, clock: Clock, forks: int, limits: Limits, observer: Observer) -> PlannedRun:
        find_links = bool(limits.protected)
        plan, stale = await recheck_plan(
            saved, specs, memory=memory, clock=clock, forks=forks, find_links=find_links, observer=observer
        )
        return PlannedRun(structs.replace(plan, refusals=refusals(plan, limits)), stale)

    return PlanSource(specs, scopes_of_plan(saved, specs), Secrets(saved.secrets.texts), plan)


def open_source(flags: Flags, paths: tuple[str, ...]) -> PlanSource:
    """Return the source that the paths name: playbooks, or one saved plan; raises :class:`InputError`."""
    saved = [path for path in paths if is_plan_file(path)]
    if not saved:
        resolved = resolve(flags.options)
        return resolved_source(resolved, forget_pending=flags.forget_pending, targets=flags.targets, on=flags.on)
    if len(paths) > 1:
        raise _invalid(saved[0], "a saved plan is applied alone", "name either the plan or playbooks")
    options = flags.options
    given = {
        "--limit": options.limit,
        "--tags": options.tags,
        "--skip-tags": options.skip_tags,
        "--forget-pending": flags.forget_pending,
        "--target": flags.targets,
    }
    for flag in (flag for flag, value in given.items() if value):
        raise _invalid(saved[0], f"{flag} cannot change a saved plan", "make the plan again with this flag")
    plan = read_plan_file(saved[0], lambda source: read_secret(_lookups(flags), options.inventories, source, saved[0]))
    _check_downloads(plan, saved[0], flags)
    specs = servers_called(options, [target.server for target in plan.targets])
    _check_urls(plan, specs)
    return saved_source(plan, specs)


def _check_urls(plan: Plan, specs: tuple[ServerSpec, ...]) -> None:
    """Refuse to apply a plan to another server: two inventories may use the same name."""
    urls = {server.name: server.url for server in plan.servers if server.url}
    for spec in specs:
        planned = urls.get(spec.name, spec.url)
        if planned != spec.url:
            raise RefusedError(
                f"the plan was made for {spec.name} at {planned}, but the inventory has it at {spec.url}",
                remedy="use the inventory of the plan (-i), or make the plan again",
            )


def _check_downloads(plan: Plan, path: str, flags: Flags) -> None:
    """Refuse a plan that writes a file outside the allowed folders: the plan may come from an untrusted source."""
    for request in (request for target in plan.targets for request in target.requests if request.dest is not None):
        check_dest(str(request.dest), SourceNode(Document(path)), _lookups(flags))


def _lookups(flags: Flags) -> LookupContext:
    """Return what a saved plan may read and write: the same as a playbook in the working folder."""
    options, here = flags.options, Path()
    return LookupContext(
        options.env,
        Files(),
        here,
        repository_of(here),
        options.lookup_folders,
        flags.settings.download_folders,
    )


def _invalid(path: str, message: str, remedy: str) -> InputError:
    return InputError([Problem(message, SourceLocation(path), remedy, kind="plan-file")])
