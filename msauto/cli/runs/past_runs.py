"""Runs of the ledger that a command takes back or goes on with: which one is meant, and the settings that hold."""

from __future__ import annotations

from pathlib import Path

from msauto.cli.flags import Flags
from msauto.cli.output import say
from msauto.errors import RefusedError
from msauto.ledger import Ledger
from msauto.model.history import RunDetails, RunSummary
from msauto.planning.undo import servers_of
from msauto.playbook.settings.settings import load_settings
from msauto.report.sanitizing import visible

SETTINGS = "settings"
"""The note of a run that tells where its ``msauto.toml`` was, or would have been."""


def run_called(flags: Flags, name: str, *, to_undo: bool) -> RunDetails:
    """Return a run by its name, or ``last``; raises ``LedgerError`` where there is none.

    To undo the ``last`` run that changed nothing means nothing, and the one before may be days old: that is for a
    person to say, so :class:`RefusedError` names it.
    """
    with Ledger.open(flags.state_dir, readonly=True) as ledger:
        details = ledger.run_details(name)
        _tell_skipped(ledger, name, details.summary)
        if not to_undo or name != "last" or details.summary.status == "running" or servers_of(details):
            return details
        earlier = (each for each in ledger.history() if each.run != details.summary.run and _may_have_changed(each))
        changed = next((each.run for each in earlier if servers_of(ledger.run_details(each.run))), None)
    raise RefusedError(
        f"the last run, {details.summary.run}, changed nothing",
        remedy=f"the last one that did: msauto undo {changed}" if changed else "no run in the ledger changed anything",
    )


def _tell_skipped(ledger: Ledger, name: str, run: RunSummary) -> None:
    """Say that ``last`` is not the newest line of the history, where that attempt wrote nothing."""
    newest = ledger.find("last")
    if name == "last" and newest.run != run.run:
        why = visible(f"{newest.status}: {newest.reason}")
        say(f"Note: the last attempt, {newest.run}, wrote nothing ({why}); the last run is {run.run}")


def _may_have_changed(run: RunSummary) -> bool:
    """Tell what the summary alone can: a run that has not ended has not counted yet."""
    counted = ("changed", "failed", "unverified")
    return run.ended is None or any(run.summary.get(each) for each in counted)


def as_it_was(flags: Flags, details: RunDetails) -> Flags:
    """Return the flags under the settings of a run: protected names, limits and freezes hold wherever one stands.

    They are in the ``msauto.toml`` beside its playbooks, or where that run was told; ``--config`` of today wins. The
    ledger stays the one in which the run was found.
    """
    known = details.notes.get(SETTINGS)
    if flags.config is not None or known is None:
        return flags
    if Path(known).is_file():
        return flags.under(load_settings(known), Path(known))
    if flags.settings.file is not None and Path(known) != flags.settings_file:
        say(
            f"Warning: {visible(known)} is not there, or not any more: {visible(flags.settings.file)} holds\n"
            "  → name the settings that shall: --config FILE"
        )
    return flags
