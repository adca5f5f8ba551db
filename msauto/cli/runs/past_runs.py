"""Past runs that a command undoes or resumes: which run, its settings, and the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from msauto.aio import check_servers, undo_of
from msauto.cli.flags import Flags
from msauto.cli.output import print_message
from msauto.cli.runs.plan_sources import PlannedRun, PlanSource, resolved_source, saved_source
from msauto.errors import RefusedError
from msauto.ledger import Ledger
from msauto.model.events import Observer
from msauto.model.plan import Limits, Plan, PlannedServer, Target
from msauto.model.ports import Clock, NamedMemory
from msauto.model.run_records import RunDetails, RunSummary, TargetRecord
from msauto.planning.limits import refusals
from msauto.planning.undo import servers_of
from msauto.playbook.inventory.servers import servers_called
from msauto.playbook.settings.settings import load_settings
from msauto.report.sanitizing import visible

_NAMED = 3


def find_run(flags: Flags, name: str, *, to_undo: bool) -> RunDetails:
    """Return a run by its name, or ``last``; raises ``LedgerError`` if it is not found.

    If the ``last`` run changed nothing, the run before it may be days old: the user must decide whether to undo that
    one, so :class:`RefusedError` names it.
    """
    with Ledger.open(flags.ledger, readonly=True) as ledger:
        details = ledger.run_details(name)
        _note_skipped(ledger, name, details.summary)
        if not to_undo or name != "last" or details.summary.status == "running" or servers_of(details):
            return details
        earlier = (each for each in ledger.history() if each.run != details.summary.run and _may_have_changed(each))
        changed = next((each.run for each in earlier if servers_of(ledger.run_details(each.run))), None)
    raise RefusedError(
        f"the last run, {details.summary.run}, changed nothing",
        remedy=f"undo the last run that did: msauto undo {changed}"
        if changed
        else "no run in the ledger changed anything",
    )


def _note_skipped(ledger: Ledger, name: str, run: RunSummary) -> None:
    """Report that ``last`` is not the newest row of the history, if that attempt wrote nothing."""
    newest = ledger.find("last")
    if name == "last" and newest.run != run.run:
        reason = visible(f"{newest.status}: {newest.reason}")
        print_message(f"Note: the last attempt, {newest.run}, wrote nothing ({reason}); the last run is {run.run}")


def _may_have_changed(run: RunSummary) -> bool:
    """Return whether a run may have changed something, by its summary; a run that has not ended has no counts yet."""
    return run.ended is None or any(
        run.summary.get(each) for each in ("changed", "failed", "unverified", "interrupted")
    )


def with_settings_of(details: RunDetails, flags: Flags) -> Flags:
    """Return the flags under the settings of a run: its protected names, limits and freezes apply in any folder.

    They are in the ``msauto.toml`` that the run recorded; ``--config`` of this command wins. The ledger stays the one
    in which the run was found.
    """
    recorded = details.summary.settings
    if flags.config is not None or not recorded:
        return flags
    if Path(recorded).is_file():
        return flags.under(load_settings(recorded))
    if flags.settings.file is not None:
        print_message(
            f"Warning: {visible(recorded)} does not exist; using {visible(flags.settings.file)}\n"
            "  → name the settings to use: --config FILE"
        )
    return flags


def undo_source(flags: Flags, details: RunDetails) -> PlanSource:
    """Return what undoes a run; raises ``RefusedError``."""
    specs = servers_called(flags.options, servers_of(details))
    return resolved_source(undo_of(details, specs), targets=flags.targets, on=flags.on)


def rest_of(details: RunDetails, source: PlanSource) -> PlanSource:
    """Return a source narrowed to the targets that a run did not finish; raises ``RefusedError``."""
    name = details.summary.run
    _require_ended(details)
    rest = {each.target.id for each in details.targets if each.outcome not in {"changed", "unchanged", "skipped"}}
    if not rest:
        raise RefusedError(f"run {name} finished every target", remedy="apply the playbooks without --resume")

    async def plan(memory: NamedMemory, clock: Clock, forks: int, limits: Limits, observer: Observer) -> PlannedRun:
        planned = await source.plan(memory, clock, forks, limits, observer)
        narrowed = structs.replace(
            planned.plan,
            targets=tuple(each for each in planned.plan.targets if each.id in rest),
            warnings=(f"--resume narrows this plan to what run {name} did not finish", *planned.plan.warnings),
        )
        return replace(planned, plan=structs.replace(narrowed, refusals=refusals(narrowed, limits)))

    return replace(source, plan=plan)


def _require_ended(details: RunDetails) -> None:
    if details.summary.status == "running":
        raise RefusedError(f"run {details.summary.run} is still running", remedy="wait until it ends")


def resume_source(flags: Flags, details: RunDetails) -> PlanSource:
    """Return the plan of the targets that a run did not reach; raises ``RefusedError``.

    Each is read and compared again, as with a saved plan. Targets that the run began are not part of it: they must be
    planned again.
    """
    name = details.summary.run
    _require_ended(details)
    left = tuple(record.target for record in details.targets if _was_not_reached(record))
    unfinished = [record for record in details.targets if _was_cut_short(record)]
    if not left:
        reason = _unfinished(unfinished) if unfinished else "there is nothing to resume"
        raise RefusedError(f"run {name} reached every target; {reason}", remedy=_apply_again(details))
    if unfinished:
        print_message(visible(f"Warning: {_unfinished(unfinished)}") + f"\n  → afterwards, {_apply_again(details)}")
    targets = tuple(structs.replace(target, batch=0) for target in left)
    _require_no_secret(targets, name)
    servers = tuple(dict.fromkeys(target.server for target in targets))
    specs = servers_called(flags.options, servers)
    check_servers(details, specs)
    return saved_source(
        Plan(
            details.summary.started,
            details.msauto,
            targets=targets,
            servers=tuple(PlannedServer(each, 0) for each in servers),
        ),
        specs,
    )


def _require_no_secret(targets: tuple[Target, ...], run: str) -> None:
    """Refuse targets that are sent a secret: the ledger holds none."""
    for target in targets:
        if any(request.secret for request in target.requests):
            raise RefusedError(
                f"run {run} did not reach {target.name!r}, which is sent a secret, and the ledger holds no secrets",
                remedy="apply the playbooks again: what is done already stays as it is",
            )


def _was_not_reached(record: TargetRecord) -> bool:
    never = record.begun is None and record.outcome is None
    return record.target.error is None and (never or record.outcome == "not attempted")


def _was_cut_short(record: TargetRecord) -> bool:
    """Return whether some requests of a target were sent, and others not."""
    sent = [each.state not in {"planned", "not sent"} for each in record.requests]
    return any(sent) and not all(sent)


def _unfinished(records: Sequence[TargetRecord]) -> str:
    """Name the targets that a run began and did not finish; their remaining requests fit the state of that time."""
    names = ", ".join(repr(record.target.name) for record in records[:_NAMED])
    more = f" and {len(records) - _NAMED} more" if len(records) > _NAMED else ""
    return f"it did not finish {names}{more}, which --resume cannot continue"


def _apply_again(details: RunDetails) -> str:
    playbooks = [each for each in details.summary.playbooks if not each.startswith(("undo ", "resume "))]
    return "apply the playbooks again" + (f": msauto apply {' '.join(playbooks)}" if playbooks else "")
