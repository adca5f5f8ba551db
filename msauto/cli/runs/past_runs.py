"""Past runs that a command undoes or resumes: which run, its settings, and what it was planned with."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from msauto.api.saved_plans import options_again
from msauto.api.stages import undo_of
from msauto.cli.flags import Flags
from msauto.cli.output import print_message
from msauto.errors import RefusedError
from msauto.ledger import Ledger
from msauto.ledger.history import OPTIONS
from msauto.model.codec import load
from msauto.model.desired import ResolvedPlaybooks
from msauto.model.plan import PlanOptions
from msauto.model.run_records import RunDetails, RunSummary
from msauto.planning.undo import servers_of
from msauto.playbook.inventory.hosts import named_servers
from msauto.playbook.settings import load_settings
from msauto.report.sanitizing import visible


def find_run(flags: Flags, name: str, *, to_undo: bool = False) -> RunDetails:
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

    They are in the ``msauto.toml`` that the run recorded. The ledger stays the one in which the run was found.
    """
    recorded = details.summary.settings
    if not recorded:
        return flags
    if Path(recorded).is_file():
        return flags.under(load_settings(recorded))
    if flags.settings.file is not None:
        print_message(
            f"Warning: {visible(recorded)} does not exist; using {visible(flags.settings.file)}\n"
            "  → name the settings to use: --config FILE"
        )
    return flags


def options_of(details: RunDetails, given: PlanOptions) -> PlanOptions:
    """Return the options that a run was planned with, to plan it again; raises ``RefusedError``."""
    kept, name = details.notes.get(OPTIONS), details.summary.run
    if kept is None:
        raise RefusedError(
            f"run {name} does not record what it was planned with",
            remedy=f"name its playbooks: msauto apply PLAYBOOK --resume {name}",
        )
    return structs.replace(options_again(load(PlanOptions, kept), given, f"run {name}", None), resume=name)


def undo_of_run(flags: Flags, details: RunDetails) -> ResolvedPlaybooks:
    """Return what undoes a run; raises ``RefusedError``."""
    return undo_of(details, tuple(each.spec for each in named_servers(flags.options, names=servers_of(details))))
