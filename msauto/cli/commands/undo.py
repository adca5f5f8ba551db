"""``msauto undo``: the plan that takes a run back, shown, agreed to and applied like any other."""

from __future__ import annotations

import click

from msauto.aio import SystemClock
from msauto.cli.flags import Flags, shared_flags
from msauto.cli.runs.applying import ApplyRun
from msauto.cli.runs.attempt import attempted
from msauto.cli.runs.plan_sources import undo
from msauto.cli.runs.run_options import RunOptions, run_flags
from msauto.model.history import RunDetails


@click.command("undo", short_help="Take a run back.")
@click.argument("run", metavar="RUN|last")
@attempted
@shared_flags
@run_flags
def command(*, flags: Flags, asked: RunOptions, run: RunDetails) -> int:
    """Take a run back: plan the earlier values of the ledger, ask, apply, prove.

    A value that is no longer what the run wrote is left alone and told. What cannot be taken back is listed: deleted
    assets, commands, batches, restored and saved files, and links where the server has no way to remove them.
    """
    source, about = undo(flags, run)
    return ApplyRun(flags, about, source, SystemClock(), asked).code()
