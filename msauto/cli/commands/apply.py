"""``msauto apply``: show the plan, ask, apply, read again and verify."""

from __future__ import annotations

import click

from msauto.cli.flags import Flags, run_planning_flags
from msauto.cli.runs.apply_run import ApplyRun
from msauto.cli.runs.attempt_record import recorded
from msauto.cli.runs.options import RunOptions, forget_pending_flag, run_flags
from msauto.cli.runs.plan_sources import open_source
from msauto.cli.runs.run_watch import watch_flags


@click.command("apply")
@click.argument("playbooks", nargs=-1, type=click.Path(), metavar="PLAYBOOK...|PLANFILE")
@click.option("--resume", "resumed", metavar="RUN", help="Apply only what RUN (or `last`) did not finish.")
@forget_pending_flag
@recorded
@watch_flags
@run_planning_flags
@run_flags
def command(*, flags: Flags, run_options: RunOptions, playbooks: tuple[str, ...]) -> int:
    """Bring the assets to the desired state: show the plan, ask, send the fewest requests, verify the outcome.

    A PLANFILE of `msauto plan --out` is planned again, and applied only where that gives the same plan. --resume plans
    the targets that a run did not finish. Without playbooks, it plans those of the run, and what the run did not reach
    must be as it was planned then.
    """
    if not playbooks and not flags.given.resume:
        raise click.UsageError("Missing argument 'PLAYBOOK...|PLANFILE'.")
    source = open_source(flags, keep_going=run_options.keep_going, as_planned=not playbooks)
    return ApplyRun(flags, playbooks or (f"resume {flags.given.resume}",), source, run_options).run()
