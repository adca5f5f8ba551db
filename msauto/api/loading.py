"""What a run works on: playbooks, or a run to undo, which are planned now; and what was agreed to before.

A saved plan is planned again like anything else, and then compared with what was agreed to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import Struct, structs

from msauto.api.inputs import Inputs
from msauto.api.saved_plans import changed_inputs
from msauto.api.stages import make_plan, undo_of, workplace_on
from msauto.api.workplace import StageContext, Workplace
from msauto.errors import RefusedError
from msauto.file_access import find_repository
from msauto.ledger.ledger import Ledger
from msauto.model.desired import ResolvedPlaybooks
from msauto.model.events import Notify
from msauto.model.plan import Limits, Plan
from msauto.model.ports import Clock
from msauto.model.result import RunDetails
from msauto.model.server import ServerSpec
from msauto.planning.limits import refusals
from msauto.planning.saved_plan import refuse_differences
from msauto.planning.undo import may_have_changed, servers_of
from msauto.playbook.hosts import named_servers
from msauto.playbook.resolve import resolve
from msauto.playbook.settings import load_settings
from msauto.report.sanitizing import visible


class Agreement(Struct, frozen=True):
    """What was agreed to before: nothing else is sent.

    ``plan`` is a saved plan, or one that was shown. ``warnings`` are those of the plan that is made.
    """

    plan: Plan
    warnings: tuple[str, ...] = ()

    def hold(self, made: Plan) -> Plan:
        """Return what of a plan may be sent; its refusals are those of all of it."""
        made = structs.replace(made, warnings=(*self.warnings, *made.warnings))
        return refuse_differences(made, self.plan)


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


def held_to(loaded: Loaded, agreement: Agreement) -> Loaded:
    """Return what sends only what is agreed to as well."""
    return replace(loaded, agreements=(*loaded.agreements, agreement))


def stage_of(loaded: Loaded, ledger: Ledger, clock: Clock) -> StageContext:
    """Return what the stages of a run have in common."""
    workplace = loaded.workplace or workplace_on(loaded.inputs.on)
    return StageContext(ledger, loaded.resolved, clock, loaded.inputs.forks, workplace)


async def plan_loaded(loaded: Loaded, ledger: Ledger, clock: Clock, limits: Limits, notify: Notify) -> Plan:
    """Return the plan, of which nothing is sent that was not agreed to; sends GET and HEAD only."""
    stage, given = stage_of(loaded, ledger, clock), loaded.inputs.given
    made = await make_plan(stage, limits, notify, targets=given.targets, forget_pending=given.forget_pending)
    for agreement in loaded.agreements:
        made = agreement.hold(made)
    return structs.replace(made, refusals=refusals(made, limits)) if loaded.agreements else made


def load(inputs: Inputs, *, keep_going: bool = False) -> Loaded:
    """Return what the inputs name: playbooks, a saved plan, or a run to undo.

    Raises :class:`InputError`, and :class:`RefusedError` for a saved plan whose files have changed.
    """
    inputs = with_past_runs(inputs)
    agreed, undone = inputs.agreed, inputs.undone
    stale = [] if agreed is None else [*changed_inputs(agreed, inputs.base, inputs.settings.used)]
    if stale and not keep_going:
        raise RefusedError(
            f"the plan is stale: {', '.join(stale)}; nothing was sent",
            remedy="make the plan again, or apply the targets that are the same with --keep-going",
        )
    if undone is not None:
        servers = named_servers(inputs.resolving, names=servers_of(undone))
        loaded = Loaded(inputs, undo_of(undone, tuple(each.spec for each in servers)))
    else:
        loaded = Loaded(inputs, resolve(inputs.resolving))
    if agreed is not None:
        _check_servers(inputs, agreed, loaded.resolved.specs)
        warnings = tuple(f"the plan is stale: {each}" for each in stale)
        loaded = held_to(loaded, Agreement(agreed, warnings=warnings))
    return loaded


def _check_servers(inputs: Inputs, plan: Plan, specs: tuple[ServerSpec, ...]) -> None:
    """Refuse to apply a plan to another server: two inventories may use the same name, and a variable may move one."""
    urls = {server.name: server.url for server in plan.servers}
    folder = str(Path(*inputs.given.playbooks[:1]).parent)
    typed = structs.replace(inputs.resolving, extra_vars=inputs.typed.extra_vars)
    names = [spec.name for spec in specs] if inputs.typed.extra_vars != inputs.given.extra_vars else []
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
    if Path(recorded).is_file():
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
        run = details.summary.run
        if name == "last" and (newest := ledger.find(name, repository)).run != run:
            why = visible(": ".join(filter(None, (newest.status, newest.reason))))
            inputs.tell(f"Note: the last attempt, {newest.run}, wrote nothing ({why}); the last run is {run}")
        if name != "last" or details.summary.status == "running" or may_have_changed(details):
            return details
        counts = ("changed", "failed", "unverified", "interrupted")  # a run that has not ended has none yet
        earlier = (
            each
            for each in ledger.history()
            if each.run != run and (repository is None or each.is_of(repository))
            if (each.ended is None or any(map(each.summary.get, counts)))
        )
        changed = next((each.run for each in earlier if may_have_changed(ledger.run_details(each.run))), None)
    undo_it = f"undo the last run that did: msauto undo {changed}"
    raise RefusedError(
        f"the last run, {run}, changed nothing", remedy=undo_it if changed else "no other run changed anything"
    )
