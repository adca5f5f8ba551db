"""``msauto apply``: show the plan, ask, apply, read again and verify."""

from __future__ import annotations

from dataclasses import replace

import click

from msauto.cli.flags import Flags, run_planning_flags
from msauto.cli.runs.apply_run import ApplyRun
from msauto.cli.runs.attempt_record import recorded
from msauto.cli.runs.options import RunOptions, forget_pending_flag, run_flags
from msauto.cli.runs.past_runs import rest_of, resume_source
from msauto.cli.runs.plan_sources import open_source
from msauto.cli.runs.run_watch import watch_flags
from msauto.model.run_records import RunDetails


@click.command("apply")
@click.argument("playbooks", nargs=-1, type=click.Path(), metavar="PLAYBOOK...|PLANFILE")
@click.option("--resume", "resumed", metavar="RUN", help="Apply only what RUN (or `last`) did not finish.")
@forget_pending_flag
@recorded
@watch_flags
@run_planning_flags
@run_flags
def command(
    *,
    flags: Flags,
    run_options: RunOptions,
    playbooks: tuple[str, ...],
    resumed: RunDetails | None,
    forget_pending: bool,
) -> int:
    """Bring the assets to the desired state: show the plan, ask, send the fewest requests, verify the outcome.

    A PLANFILE of `msauto plan --out` is applied as it was shown, unless something has changed since. With --resume,
    the playbooks are planned again for the targets that a run did not finish. Without playbooks, those that it did not
    reach are applied as they were shown.
    """
    flags = replace(flags, forget_pending=forget_pending)
    if resumed is not None and not playbooks:
        if flags.targets:
            raise click.UsageError("--resume takes the targets of a run: remove --target")
        name, source = (f"resume {resumed.summary.run}",), resume_source(flags, resumed)
        return ApplyRun(flags, name, source, run_options).run()
    if not playbooks:
        raise click.UsageError("Missing argument 'PLAYBOOK...|PLANFILE'.")
    source = open_source(flags, playbooks)
    if resumed is not None:
        source = rest_of(resumed, source)
    return ApplyRun(flags, playbooks, source, run_options).run()
