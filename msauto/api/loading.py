"""What a run works on: playbooks, or a run to undo, which are planned now; and what was agreed to before.

A saved plan is planned again like anything else, and then compared with what was agreed to.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import Struct, structs

from msauto.api.inputs import Inputs
from msauto.api.saved_plans import changed_inputs
from msauto.api.stages import undo_of, workplace_on
from msauto.api.workplace import StageContext, Workplace
from msauto.errors import InputError, MsautoError, RefusedError
from msauto.file_access import find_repository, may_be_file
from msauto.ledger.ledger import Ledger
from msauto.model.desired import ResolvedPlaybooks
from msauto.model.plan import Plan, TargetKey
from msauto.model.ports import Clock
from msauto.model.result import RunDetails, RunSummary
from msauto.model.server import ServerSpec
from msauto.planning.saved_plan import refuse_differences
from msauto.playbook.hosts import NamedServer, named_servers
from msauto.playbook.resolve import resolve
from msauto.playbook.settings import load_settings
from msauto.report.sanitizing import visible


class Agreement(Struct, frozen=True):
    """What was agreed to before: nothing else is sent.

    ``plan`` is a saved plan, or one that was shown. ``warnings`` are those of the plan that is made.
    """

    plan: Plan
    warnings: tuple[str, ...] = ()

    def hold(self, made: Plan, as_desired: Collection[TargetKey] = ()) -> Plan:
        """Return what of a plan may be sent; its refusals are those of all of it."""
        made = structs.replace(made, warnings=(*self.warnings, *made.warnings))
        return refuse_differences(made, self.plan, as_desired)


@dataclass(frozen=True, slots=True, repr=False)
class Loaded:  # not a Struct: rich, and what uses it, shows each part of one, whatever its ``__repr__``
    """What a run works on: what its ``inputs`` come to, and what was agreed to before.

    ``workplace`` is where its servers are read and written; without it, ``on`` of the inputs decides.
    """

    inputs: Inputs
    resolved: ResolvedPlaybooks
    agreements: tuple[Agreement, ...] = ()
    workplace: Workplace | None = None

    def __repr__(self) -> str:
        return f"<Loaded {' '.join(self.inputs.named)}: {', '.join(spec.name for spec in self.resolved.specs)}>"


def stage_of(loaded: Loaded, ledger: Ledger, clock: Clock) -> StageContext:
    """Return what the stages of a run have in common."""
    workplace = loaded.workplace or workplace_on(loaded.inputs.on)
    return StageContext(ledger, loaded.resolved, clock, loaded.inputs.forks, workplace)


def load(inputs: Inputs, *, keep_going: bool = False) -> Loaded:
    """Return what the inputs name: playbooks, a saved plan, or a run to undo.

    Raises :class:`InputError`, and :class:`RefusedError` for a saved plan whose files have changed.
    """
    inputs = with_past_runs(inputs)
    agreed, undone = inputs.agreed, inputs.undone
    stale: list[str] = []
    if agreed is not None:
        stale += changed_inputs(agreed, inputs.base, inputs.settings.used)
    if stale and not keep_going:
        raise RefusedError(
            f"the plan is stale: {', '.join(stale)}; nothing was sent",
            remedy="make the plan again, or apply the targets that are the same with --keep-going",
        )
    if undone is not None:
        servers = _servers_of(inputs, undone)
        specs = [server.spec for server in servers]
        resolved = undo_of(undone, specs, inputs.given.targets)
    else:
        resolved = resolve(inputs.resolving)
    loaded = Loaded(inputs, resolved)
    if agreed is None:
        return loaded
    _check_servers(inputs, agreed, resolved.specs)
    warnings = tuple(f"the plan is stale: {change}" for change in stale)
    return replace(loaded, agreements=(Agreement(agreed, warnings=warnings),))


def _servers_of(inputs: Inputs, undone: RunDetails) -> Sequence[NamedServer]:
    """Return the servers that a run changed, of which ``--limit`` may choose some."""
    changed = undone.changed_servers
    if inputs.given.limit is None:
        return named_servers(inputs.resolving, names=changed)
    chosen = [server for server in named_servers(inputs.resolving) if server.spec.name in changed]
    if not chosen:
        raise MsautoError(
            f"--limit {inputs.given.limit!r} matches no server that the run changed",
            remedy=f"it changed {', '.join(changed)}",
        )
    return chosen


def _check_servers(inputs: Inputs, plan: Plan, specs: tuple[ServerSpec, ...]) -> None:
    """Refuse to apply a plan to another server: two inventories may use the same name, and a variable may move one."""
    urls = {server.name: server.url for server in plan.servers}
    typed = _typed_servers(inputs, [spec.name for spec in specs])
    for spec in specs:
        planned = urls.get(spec.name, spec.url)
        if planned != spec.url:
            raise RefusedError(
                f"the plan was made for {spec.name} at {planned}, but the inventory has it at {spec.url}",
                remedy="use the inventory of the plan (-i), or make the plan again",
            )
        if typed.get(spec.name, spec) != spec:
            raise RefusedError(
                f"the variables of the plan change the server {spec.name}, and a plan file cannot decide where to send",
                remedy="give them again with -e",
            )


def _typed_servers(inputs: Inputs, names: Sequence[str]) -> dict[str, ServerSpec | None]:
    """Return the servers as they are without the variables that only the plan has; empty if it has none.

    A server that needs one of these is ``None``.
    """
    if not names or inputs.typed.extra_vars == inputs.given.extra_vars:
        return {}
    options = structs.replace(inputs.resolving, extra_vars=inputs.typed.extra_vars)
    folder = str(Path(*inputs.given.playbooks[:1]).parent)
    try:
        servers = named_servers(options, names=names, folder=folder)
    except InputError:
        return dict.fromkeys(names)
    return {server.spec.name: server.spec for server in servers}


# Past runs -----------------------------------------------------------------------------------------------------------


def with_past_runs(inputs: Inputs) -> Inputs:
    """Return the inputs with the run to undo, if they name one.

    The settings of that run apply: its protected names, limits and freezes, in any folder. The ledger stays the one in
    which it was found.
    """
    if inputs.undone is not None or not inputs.given.undo:
        return inputs
    undone = _find_run(inputs, inputs.given.undo)
    given = structs.replace(inputs.given, undo=undone.summary.run)
    with_run = structs.replace(inputs, given=given, undone=undone)
    recorded = undone.summary.settings
    if not recorded or inputs.given.config is not None:
        return with_run
    if may_be_file(recorded):
        return structs.replace(with_run, settings=load_settings(recorded))
    if inputs.settings.file is not None:
        remedy = "name the settings to use: --config FILE"
        used = visible(inputs.settings.file)
        inputs.tell(f"Warning: {visible(recorded)} does not exist; using {used}\n  → {remedy}")
    return with_run


def _find_run(inputs: Inputs, name: str) -> RunDetails:
    """Return a run by its name, or ``last``, in a repository that of it; raises ``LedgerError`` if it is not found.

    If the ``last`` run changed nothing, the run before it may be days old: the user must decide whether to undo that
    one, so :class:`RefusedError` names it.
    """
    repository = find_repository(Path())
    with Ledger.open(inputs.ledger, readonly=True) as ledger:
        details = ledger.run_details(name, repository)
        if name != "last":
            return details
        run = details.summary
        newest = ledger.find(name, repository)
        if newest.run != run.run:
            why = visible(": ".join(filter(None, (newest.status, newest.reason))))
            inputs.tell(
                f"Note: the last attempt, {newest.run}, wrote nothing ({why}); the last run is {run.run}"
            )
        if run.status == "running" or details.changed_servers:
            return details
        remedy = "nothing is left to undo: see `msauto history`"
        for other in ledger.history():
            is_earlier = other.run != run.run and (repository is None or other.is_of(repository))
            if (
                is_earlier
                and _counts_changes(other)
                and ledger.run_details(other.run).changed_servers
            ):
                remedy = f"undo the last run that did: msauto undo {other.run}"
                break
    raise RefusedError(f"the last run, {run.run}, changed nothing", remedy=remedy)


def _counts_changes(run: RunSummary) -> bool:
    """Whether a run counts any target that it may have changed; one that has not ended counts none yet."""
    counts = ("changed", "failed", "unverified")
    return run.ended is None or any(map(run.summary.get, counts))
