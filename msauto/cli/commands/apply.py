"""``msauto apply``: shows the plan, asks, applies, reads again and proves it."""

from __future__ import annotations

from dataclasses import replace

import click

from msauto.aio import SystemClock
from msauto.cli.flags import Flags, forget_pending_flag, shared_flags
from msauto.cli.runs.applying import ApplyRun
from msauto.cli.runs.attempt import attempted
from msauto.cli.runs.plan_sources import PlanSource, open_source, resume
from msauto.cli.runs.run_options import RunOptions, run_flags
from msauto.model.history import RunDetails


@click.command("apply", short_help="Make the assets what the playbooks say.")
@click.argument("playbooks", nargs=-1, type=click.Path(), metavar="PLAYBOOK...|PLANFILE")
@click.option("--resume", "resumed", metavar="RUN", help="Go on with the targets that RUN did not reach (or `last`).")
@forget_pending_flag
@attempted
@shared_flags
@run_flags
def command(
    *, flags: Flags, asked: RunOptions, playbooks: tuple[str, ...], resumed: RunDetails | None, forget_pending: bool
) -> int:
    """Make the assets what the playbooks say: show the plan, ask, send the fewest requests, prove the outcome.

    With a PLANFILE of `msauto plan --out`, what was shown is applied, unless something has changed since. With
    --resume, the rest of a run that was stopped or died is applied in the same way.
    """
    flags = replace(flags, forget_pending=forget_pending)
    source, about = _source(flags, playbooks, resumed)
    return ApplyRun(flags, about, source, SystemClock(), asked).code()


def _source(flags: Flags, playbooks: tuple[str, ...], resumed: RunDetails | None) -> tuple[PlanSource, tuple[str, ...]]:
    """Return what is to be applied, and how the history calls it."""
    if resumed is not None and playbooks:
        raise click.UsageError("--resume goes on with what a run planned: give no playbooks with it")
    if resumed is not None:
        return resume(flags, resumed)
    if not playbooks:
        raise click.UsageError("Missing argument 'PLAYBOOK...|PLANFILE'.")
    return open_source(flags, playbooks), playbooks
