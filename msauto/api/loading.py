"""What a run works on: playbooks, or a run to undo, which are planned now; and what was agreed to before.

A saved plan, and the rest of a run, are planned again like anything else, and then compared with what was agreed to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import Struct, structs

from msauto.api.inputs import Inputs
from msauto.api.saved_plans import changed_inputs, options_again
from msauto.api.stages import check_servers, make_plan, undo_of, workplace_on
from msauto.api.workplace import StageContext, Workplace
from msauto.codec import load as load_json
from msauto.errors import RefusedError
from msauto.ledger.history import OPTIONS
from msauto.ledger.ledger import Ledger
from msauto.model.desired import ResolvedPlaybooks
from msauto.model.events import Notify
from msauto.model.plan import Limits, Plan, PlanOptions, Target, TargetId
from msauto.model.ports import Clock
from msauto.model.result import RunDetails
from msauto.model.server import ServerSpec
from msauto.planning.limits import refusals
from msauto.planning.saved_plan import refuse_differences, rest_of
from msauto.planning.undo import may_have_changed, servers_of
from msauto.playbook.hosts import named_servers
from msauto.playbook.input_files import find_repository
from msauto.playbook.resolve import resolve
from msauto.playbook.settings import load_settings
from msauto.report.sanitizing import visible


class Agreement(Struct, frozen=True):
    """What was agreed to before: nothing else is sent.

    ``plan`` is a saved plan, or one that was shown. ``rest`` are the targets that a run did not finish; it has
    ``begun`` some of them. ``warnings`` are those of the plan that is made.
    """

    plan: Plan | None = None
    rest: tuple[Target, ...] | None = None
    begun: frozenset[TargetId] = frozenset()
    warnings: tuple[str, ...] = ()

    def hold(self, made: Plan) -> Plan:
        """Return what of a plan may be sent; its refusals are those of all of it."""
        targets = made.targets if self.rest is None else rest_of(made, self.rest)
        made = structs.replace(made, targets=targets, warnings=(*self.warnings, *made.warnings))
        return made if self.plan is None else refuse_differences(made, self.plan, self.begun)


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
    """Return what the inputs name: playbooks, a saved plan, a run to undo, or the rest of a run.

    Without playbooks, what that run did not reach must be as it was planned then. Raises :class:`InputError`, and
    :class:`RefusedError` for a saved plan whose files have changed.
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
    if inputs.resumed is not None:
        loaded = held_to(loaded, _rest_of(inputs.resumed, loaded, as_planned=not inputs.typed.playbooks))
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


def _rest_of(details: RunDetails, loaded: Loaded, *, as_planned: bool) -> Agreement:
    """Return what holds a plan to what a run did not finish; raises ``RefusedError``."""
    name = details.summary.run
    if details.summary.status == "running":
        raise RefusedError(f"run {name} is still running", remedy="wait until it ends")
    rest = [each for each in details.targets if each.outcome not in {"changed", "unchanged", "skipped"}]
    if not rest:
        raise RefusedError(f"run {name} finished every target", remedy="apply the playbooks without --resume")
    check_servers(details, loaded.resolved.specs)
    left = [
        each.target for each in rest if each.outcome == "not attempted" or (each.begun is None and each.outcome is None)
    ]
    return Agreement(
        Plan(details.summary.started, details.msauto, targets=tuple(left)) if as_planned else None,
        rest=tuple(each.target for each in rest),
        begun=frozenset(each.target.id for each in rest) - {each.id for each in left},
        warnings=(f"--resume narrows this plan to what run {name} did not finish",),
    )


# Past runs -----------------------------------------------------------------------------------------------------------


def with_past_runs(inputs: Inputs) -> Inputs:
    """Return the inputs with the run to undo or to resume, if they name one.

    Without playbooks, the settings of that run apply: its protected names, limits and freezes, in any folder. The
    ledger stays the one in which it was found.
    """
    if inputs.resumed is not None or inputs.undone is not None:
        return inputs
    given, resumed, undone, past = inputs.given, None, None, None
    if given.resume:
        resumed = _find_run(inputs, given.resume)
        if given.playbooks:
            given = structs.replace(given, resume=resumed.summary.run)
        else:
            past, given = resumed, _options_of(resumed, given)
    if given.undo:
        past = undone = _find_run(inputs, given.undo, to_undo=True)
        given = structs.replace(given, undo=undone.summary.run)
    with_runs = structs.replace(inputs, given=given, resumed=resumed, undone=undone)
    recorded = past.summary.settings if past is not None and inputs.given.config is None else ""
    if recorded and Path(recorded).is_file():
        with_runs = structs.replace(with_runs, settings=load_settings(recorded))
    elif recorded and inputs.settings.file is not None:
        remedy = "name the settings to use: --config FILE"
        used = visible(inputs.settings.file)
        inputs.tell(f"Warning: {visible(recorded)} does not exist; using {used}\n  → {remedy}")
    return with_runs


def _find_run(inputs: Inputs, name: str, *, to_undo: bool = False) -> RunDetails:
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
        if not to_undo or name != "last" or details.summary.status == "running" or may_have_changed(details):
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


def _options_of(details: RunDetails, given: PlanOptions) -> PlanOptions:
    """Return the options that a run was planned with, to plan it again; raises ``RefusedError``."""
    kept, name = details.notes.get(OPTIONS), details.summary.run
    if kept is None:
        raise RefusedError(
            f"run {name} does not record what it was planned with",
            remedy=f"name its playbooks: msauto apply PLAYBOOK --resume {name}",
        )
    return structs.replace(options_again(load_json(PlanOptions, kept), given, f"run {name}", None), resume=name)
