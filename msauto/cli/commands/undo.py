"""``msauto undo``: the plan that undoes a run, shown and applied like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from msauto.cli.flags import TASKS, WORK, run_planning_flags
from msauto.cli.help import HelpCommand
from msauto.cli.run_flags import recorded, run_flags
from msauto.cli.watch import watch_flags

if TYPE_CHECKING:
    from msauto.cli.plan_and_apply import RunDialog


@click.command("undo", cls=HelpCommand)
@click.argument("undo", metavar="RUN|last")
@recorded
@watch_flags
@run_planning_flags(uses=set(WORK) - set(TASKS))
@run_flags
def command(*, dialog: RunDialog) -> int:
    """Undo a run: plan the earlier values from the ledger, ask, apply, verify.

    A value that has changed since the run is left alone and reported. What cannot be undone is listed: deleted
    assets, commands, batches, restored and saved files, and links on servers that cannot remove them.
    """
    chosen = dialog.flags.inputs.given
    if chosen.tags or chosen.skip_tags:
        raise click.UsageError(
            "a run is undone for all tasks: choose targets with --target TITLE, servers with --limit"
        )
    return dialog.load_and_run()
