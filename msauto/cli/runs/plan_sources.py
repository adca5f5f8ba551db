"""What ``apply`` works on: playbooks, which are planned now, or a saved plan, which is held against what is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from msgspec import structs

from msauto.aio import check_servers, make_plan, recheck_plan, scopes_of, scopes_of_plan, specs_of, undo_of
from msauto.cli.flags import Flags
from msauto.cli.output import say
from msauto.cli.runs.saved_plans import is_plan_file, read_plan_file
from msauto.errors import InputError, Problem, RefusedError, SourceLocation
from msauto.ledger import LockScope
from msauto.model.desired import ResolvedPlaybooks
from msauto.model.history import RunDetails, TargetRecord
from msauto.model.limits import Limits
from msauto.model.plan import Plan, PlannedServer, Target
from msauto.model.ports import Clock, Memory
from msauto.model.server import ServerSpec
from msauto.planning.limits import refusals
from msauto.planning.undo import servers_of
from msauto.playbook.files import Files, repository_of
from msauto.playbook.inventory.servers import servers_called
from msauto.playbook.resolve import resolve
from msauto.playbook.tasks.operations import check_dest
from msauto.playbook.templates.lookups import LookupContext
from msauto.playbook.yaml.document import Document, SourceNode
from msauto.report.sanitizing import visible
from msauto.secrets.taint import NO_SECRETS, Secrets


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A plan; ``stale`` counts the targets of a saved one that do not fit any more, and carry that as their error."""

    plan: Plan
    stale: int = 0


class PlanSource(Protocol):
    """Yields the plan, and what it is about."""

    @property
    def specs(self) -> tuple[ServerSpec, ...]:
        """The servers."""

    @property
    def scopes(self) -> frozenset[LockScope]:
        """What the run must hold alone."""

    @property
    def secrets(self) -> Secrets:
        """The texts that must not show, as far as they are known."""

    async def plan(self, memory: Memory, clock: Clock, forks: int, limits: Limits) -> PlannedRun:
        """Read the servers; sends GET and HEAD only."""


@dataclass(frozen=True, slots=True)
class PlaybookSource:
    """Playbooks."""

    resolved: ResolvedPlaybooks
    forget_pending: bool = False

    @property
    def specs(self) -> tuple[ServerSpec, ...]:
        """The servers."""
        return specs_of(self.resolved)

    @property
    def scopes(self) -> frozenset[LockScope]:
        """What the run must hold alone."""
        return scopes_of(self.resolved)

    @property
    def secrets(self) -> Secrets:
        """The texts that must not show, as far as they are known."""
        return self.resolved.secrets.known()

    async def plan(self, memory: Memory, clock: Clock, forks: int, limits: Limits) -> PlannedRun:
        """Read, compare, plan."""
        forget = self.forget_pending
        return PlannedRun(
            await make_plan(
                self.resolved, memory=memory, clock=clock, forks=forks, limits=limits, forget_pending=forget
            )
        )


@dataclass(frozen=True, slots=True)
class SavedPlanSource:
    """A plan from a file. Its limits are looked at anew: those of the day on which it is applied count."""

    saved: Plan
    specs: tuple[ServerSpec, ...]

    @property
    def scopes(self) -> frozenset[LockScope]:
        """What the run must hold alone."""
        return scopes_of_plan(self.saved, self.specs)

    @property
    def secrets(self) -> Secrets:
        """A saved plan holds none."""
        return NO_SECRETS

    async def plan(self, memory: Memory, clock: Clock, forks: int, limits: Limits) -> PlannedRun:
        """Read every target again."""
        look = bool(limits.protected)
        plan, stale = await recheck_plan(
            self.saved, self.specs, memory=memory, clock=clock, forks=forks, find_links=look
        )
        return PlannedRun(structs.replace(plan, refusals=refusals(plan, limits)), stale)


def open_source(flags: Flags, paths: tuple[str, ...]) -> PlanSource:
    """Return the playbooks, or the saved plan, that the paths name; raises :class:`InputError`."""
    saved = [path for path in paths if is_plan_file(path)]
    if not saved:
        return PlaybookSource(resolve(flags.options), flags.forget_pending)
    if len(paths) > 1:
        raise _refuse(saved[0], "a saved plan is applied alone", "give the plan, or playbooks")
    options = flags.options
    told = {"--limit": options.limit, "--tags": options.tags, "--skip-tags": options.skip_tags}
    for flag, given in {**told, "--forget-pending": flags.forget_pending}.items():
        if given:
            raise _refuse(saved[0], f"a saved plan is applied as it was shown: {flag} has no say in it", "plan anew")
    plan = read_plan_file(saved[0])
    _check_downloads(plan, saved[0], flags)
    specs = servers_called(options, [target.server for target in plan.targets])
    _check_urls(plan, specs)
    return SavedPlanSource(plan, specs)


def _check_urls(plan: Plan, specs: tuple[ServerSpec, ...]) -> None:
    """Refuse to apply a plan to another server than it was made for: the names of two inventories may be the same."""
    urls = {server.name: server.url for server in plan.servers if server.url}
    for spec in specs:
        planned = urls.get(spec.name, spec.url)
        if planned != spec.url:
            raise RefusedError(
                f"the plan was made for {spec.name} at {planned}, and the inventory has it at {spec.url}",
                remedy="give the inventory that the plan was made with (-i), or make the plan again",
            )


def _check_downloads(plan: Plan, path: str, flags: Flags) -> None:
    """Refuse a plan that would write a file where no playbook may: it may have been made by anybody."""
    around = LookupContext({}, Files(), Path(), repository_of(Path()), writable=flags.settings.download_folders)
    for request in (request for target in plan.targets for request in target.requests if request.dest is not None):
        check_dest(str(request.dest), SourceNode(Document(path)), around)


def resume(flags: Flags, details: RunDetails) -> tuple[PlanSource, tuple[str, ...]]:
    """Return the plan of the targets that a run did not reach, and how to call it; raises ``RefusedError``.

    Each is held against what is there, as a saved plan is. What the run began is not part of it: that is for planning
    anew.
    """
    name = details.summary.run
    if details.summary.status == "running":
        raise RefusedError(f"run {name} still goes on", remedy="wait until it has ended")
    left = tuple(record.target for record in details.targets if _was_not_reached(record))
    half = [record for record in details.targets if _was_cut_short(record)]
    if not left and half:
        raise RefusedError(f"run {name} reached every target; {_half_told(half)}", remedy=_anew(details))
    if not left:
        raise RefusedError(f"run {name} left no target that it did not reach", remedy=_anew(details))
    if half:
        say(visible(f"Warning: {_half_told(half)}") + f"\n  → afterwards, {_anew(details)}")
    targets = tuple(structs.replace(target, batch=0) for target in left)
    _refuse_hidden(targets, name)
    specs = servers_called(flags.options, [target.server for target in targets])
    check_servers(details, specs)
    servers = tuple(PlannedServer(name, 0) for name in dict.fromkeys(target.server for target in targets))
    plan = Plan(details.summary.started, details.msauto, targets=targets, servers=servers)
    return SavedPlanSource(plan, specs), (f"resume {name}",)


def _refuse_hidden(targets: tuple[Target, ...], run: str) -> None:
    """Refuse targets that are sent a secret: the ledger holds none."""
    for target in targets:
        if any(request.secret for request in target.requests):
            raise RefusedError(
                f"run {run} did not reach {target.name!r}, to which it sends a secret, and the ledger holds none",
                remedy="apply the playbooks again: what is done already stays as it is",
            )


def undo(flags: Flags, details: RunDetails) -> tuple[PlanSource, tuple[str, ...]]:
    """Return what takes a run back, and how to call it; raises ``RefusedError``."""
    specs = servers_called(flags.options, servers_of(details))
    return PlaybookSource(undo_of(details, specs)), (f"undo {details.summary.run}",)


def _was_not_reached(record: TargetRecord) -> bool:
    never = record.begun is None and record.outcome is None
    return record.target.error is None and (never or record.outcome == "not attempted")


def _was_cut_short(record: TargetRecord) -> bool:
    """Tell whether some requests of a target were sent, and others not."""
    sent = [each.state not in {"planned", "not sent"} for each in record.requests]
    return any(sent) and not all(sent)


def _half_told(half: Sequence[TargetRecord]) -> str:
    """Name the targets that a run began and did not finish; what is left of them was planned for what was there."""
    names = ", ".join(repr(record.target.name) for record in half[:_SOME])
    more = f" and {len(half) - _SOME} more" if len(half) > _SOME else ""
    return f"it left {names}{more} half done, which is for planning anew and not for --resume"


def _anew(details: RunDetails) -> str:
    playbooks = [each for each in details.summary.playbooks if not each.startswith(("undo ", "resume "))]
    return (
        f"apply the playbooks again: msauto apply {' '.join(playbooks)}" if playbooks else "apply the playbooks again"
    )


_SOME = 3


def _refuse(path: str, message: str, remedy: str) -> InputError:
    return InputError([Problem(message, SourceLocation(path), remedy)])
