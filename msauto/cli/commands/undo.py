"""``msauto undo``: the plan that undoes a run, shown and applied like any other."""

from __future__ import annotations

import click

from msauto.cli.flags import Flags, run_planning_flags
from msauto.cli.runs.apply_run import ApplyRun
from msauto.cli.runs.attempt_record import recorded
from msauto.cli.runs.options import RunOptions, run_flags
from msauto.cli.runs.plan_sources import open_source
from msauto.cli.runs.run_watch import watch_flags


@click.command("undo")
@click.argument("run", metavar="RUN|last")
@recorded
@watch_flags
@run_planning_flags
@run_flags
def command(*, flags: Flags, run_options: RunOptions) -> int:
    """Undo a run: plan the earlier values from the ledger, ask, apply, verify.

    A value that has changed since the run is left alone and reported. What cannot be undone is listed: deleted
    assets, commands, batches, restored and saved files, and links on servers that cannot remove them.
    """
    return ApplyRun(flags, (f"undo {flags.given.undo}",), open_source(flags), run_options).run()
