"""``msauto plan``: read, compare, print; writes nothing anywhere except ``--out``."""

from __future__ import annotations

import click

from msauto.aio import SystemClock, make_plan
from msauto.cli.flags import Flags, shared_flags
from msauto.cli.interrupts import run_async
from msauto.cli.runs.options import (
    allowed_times,
    forget_pending_flag,
    keep_going_flag,
    plan_flags,
    window_flag,
    with_output,
)
from msauto.cli.runs.plan_output import finish_plan, with_state_refusal
from msauto.ledger import Ledger
from msauto.playbook.resolve import resolve

_out_flag, _detailed_exitcode_flag = plan_flags()


@click.command("plan")
@click.argument("playbooks", nargs=-1, required=True, type=click.Path(), metavar="PLAYBOOK...")
@_out_flag
@_detailed_exitcode_flag
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
    del playbooks  # part of the flags
    flags = with_output(flags, out)
    clock = SystemClock()
    try:
        resolved = resolve(flags.options)
        with Ledger.open(flags.state_dir, readonly=True) as ledger:
            plan = run_async(
                make_plan(
                    resolved,
                    memory=ledger.memory,
                    clock=clock,
                    forks=flags.forks,
                    limits=flags.settings.limits,
                    forget_pending=forget_pending,
                )
            )
            plan = with_state_refusal(plan, flags, ledger)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("planning only reads; nothing was sent") from None
    plan = allowed_times(flags, window).check(plan, clock.now())
    return finish_plan(plan, flags, out=out, detailed_exitcode=detailed_exitcode, keep_going=keep_going)
