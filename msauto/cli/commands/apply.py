"""``msauto apply``: show the plan, ask, apply, read again and verify."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from msauto.cli.flags import flag, run_planning_flags
from msauto.cli.help import HelpCommand
from msauto.cli.run_flags import recorded, run_flags
from msauto.cli.watch import watch_flags

if TYPE_CHECKING:
    from msauto.cli.plan_and_apply import RunDialog


@click.command("apply", cls=HelpCommand)
@click.argument("playbooks", nargs=-1, type=click.Path(), metavar="[PLAYBOOK...|PLANFILE]")
@flag("forget_pending")
@recorded
@watch_flags
@run_planning_flags()
@run_flags
def command(*, dialog: RunDialog) -> int:
    """Bring the assets to the desired state: show the plan, ask, send the fewest requests, verify the outcome.

    Without a PLAYBOOK: `playbook` of msauto.toml, or playbooks/site.yml.
    A PLANFILE of `msauto plan --out` is planned again, and applied only where that gives the same plan.
    """
    return dialog.load_and_run()
