"""``msauto plan``: read, compare, print; writes nothing anywhere except ``--out``."""

from __future__ import annotations

import click

from msauto.cli.flags import Flags, planning_flags
from msauto.cli.runs.apply_run import ApplyRun
from msauto.cli.runs.attempt_record import Attempt
from msauto.cli.runs.options import (
    RunOptions,
    allowed_times,
    forget_pending_flag,
    keep_going_flag,
    plan_flags,
    window_flag,
    with_output,
)
from msauto.cli.runs.plan_sources import resolved_source
from msauto.playbook.resolve import resolve

_out_flag, _detailed_exitcode_flag = plan_flags()


@click.command("plan")
@click.argument("playbooks", nargs=-1, required=True, type=click.Path(), metavar="PLAYBOOK...")
@_out_flag
@_detailed_exitcode_flag
@keep_going_flag
@forget_pending_flag
@window_flag
@planning_flags
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
    flags = with_output(flags, out)
    options = RunOptions(
        flags.settings.limits,
        allowed_times(flags, window),
        Attempt(None, playbooks),
        check=True,
        keep_going=keep_going,
        out=out,
        detailed_exitcode=detailed_exitcode,
    )
    try:
        source = resolved_source(resolve(flags.options), forget_pending=forget_pending, targets=flags.targets)
        return ApplyRun(flags, playbooks, source, options).run()
    except KeyboardInterrupt:
        raise KeyboardInterrupt("planning only reads; nothing was sent") from None
