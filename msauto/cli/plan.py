"""``msauto plan``: reads, compares, prints; writes nothing anywhere (but ``--out``)."""

from __future__ import annotations

from dataclasses import replace

import click

from msauto.cli.flags import Flags, forget_owed_flag, shared_flags
from msauto.cli.planning import keep_plan, plan_now, refuse_secrets, show_plan, tell_errors


@click.command("plan")
@click.argument("playbooks", nargs=-1, required=True, type=click.Path(), metavar="PLAYBOOK...")
@click.option("--out", type=click.Path(dir_okay=False), metavar="FILE", help="Keep the plan, for msauto apply FILE.")
@click.option("--detailed-exitcode", is_flag=True, help="Exit with 2 where there are changes.")
@forget_owed_flag
@shared_flags
def command(
    *, flags: Flags, playbooks: tuple[str, ...], out: str | None, detailed_exitcode: bool, forget_owed: bool
) -> int:
    """Show what would change: reads the servers and writes nothing."""
    del playbooks  # they came with the flags
    try:
        plan = plan_now(replace(flags, forget_owed=forget_owed))
    except KeyboardInterrupt:
        raise KeyboardInterrupt("planning only reads; nothing was sent") from None
    if out is not None:
        refuse_secrets(plan, out)
        keep_plan(plan, out)
    show_plan(plan, flags)
    return tell_errors(plan, flags) or (2 if detailed_exitcode and plan.requests else 0)
