"""``msauto plan``: reads, compares, prints; writes nothing anywhere (but ``--out``)."""

from __future__ import annotations

from dataclasses import replace

import click

from msauto.aio import SystemClock
from msauto.cli.flags import Flags, for_stdout, forget_pending_flag, keep_going_flag, plan_options, shared_flags
from msauto.cli.runs.allowed_times import times_of, window_flag, with_times
from msauto.cli.runs.planning import give_plan, plan_now

_out, _detailed_exitcode = plan_options()


@click.command("plan", short_help="Show what would change; writes nothing.")
@click.argument("playbooks", nargs=-1, required=True, type=click.Path(), metavar="PLAYBOOK...")
@_out
@_detailed_exitcode
@keep_going_flag
@forget_pending_flag
@window_flag
@shared_flags
def command(
    *,
    flags: Flags,
    playbooks: tuple[str, ...],
    out: str | None,
    detailed_exitcode: bool,
    keep_going: bool,
    forget_pending: bool,
    window: str | None,
) -> int:
    """Show what would change: reads the servers and writes nothing."""
    del playbooks  # they came with the flags
    flags = for_stdout(flags, out)
    try:
        plan = plan_now(replace(flags, forget_pending=forget_pending))
    except KeyboardInterrupt:
        raise KeyboardInterrupt("planning only reads; nothing was sent") from None
    plan = with_times(plan, times_of(flags, window), SystemClock().now())
    return give_plan(plan, flags, out=out, detailed_exitcode=detailed_exitcode, keep_going=keep_going)
