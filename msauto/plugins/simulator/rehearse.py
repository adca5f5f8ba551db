"""``msauto rehearse``: plan against the real servers, and apply that in full to embedded copies of what was read."""

from __future__ import annotations

from typing import Any

import click

from msauto.cli.flags import Flags, flag, layout_of, option, run_planning_flags
from msauto.cli.help import HelpCommand
from msauto.cli.interrupts import importing, run_async
from msauto.cli.output import print_result
from msauto.cli.watch import RunWatch, watch_flags
from msauto.exit_codes import INCOMPLETE, OK


@click.command("rehearse", cls=HelpCommand)
@click.argument("playbooks", nargs=-1, type=click.Path(), metavar="[PLAYBOOK]...")
@option(
    "--fault KIND[@REGEX]",
    "A fault of msauto simulate while it applies; without REGEX: at the first write (repeatable).",
    "faults",
    multiple=True,
)
@flag("keep_going")
@flag("forget_pending")
@flag("allow_delete")
@flag("allow_remove")
@flag("allow_requests")
@watch_flags
@run_planning_flags("text", "json")
def command(
    *,
    flags: Flags,
    playbooks: tuple[str, ...],
    faults: tuple[str, ...],
    watch: RunWatch,
    **own: Any,
) -> int:
    """Rehearse playbooks: plan on the real servers, and apply, plan again and undo on embedded copies.

    The copies hold what the plan looked at, and answer by the dialect. Nothing is written to the real servers, to
    the ledger, or to the files that downloads name.
    """
    del playbooks
    with importing():
        from msauto.api.forms import report_form
        from msauto.api.loading import load
        from msauto.api.run import RunOptions
        from msauto.plugins.simulator.rehearsal import Rehearsal, rehearse
        from msauto.report.text import render_outcomes
        from msauto.secrets.redacted_plans import redact_plan

    options = RunOptions.of(own)

    async def work() -> Rehearsal:
        async with watch.ticking():
            return await rehearse(
                load(flags.inputs, keep_going=options.keep_going), options, faults, watch.notify
            )

    done = run_async(work())
    if flags.format == "json":
        print_result(done.to_json())
    else:
        form = report_form("text")
        layout = layout_of(flags, keep_going=options.keep_going)
        print_result(form.plan(redact_plan(done.plan.unredacted), layout))
        # Its last sentence names a run of the history.
        shown = form.result if done.result.ok else render_outcomes
        print_result(shown(done.result.applied, layout))
        print_result(done.to_text(layout))
    return OK if done.ok else INCOMPLETE
