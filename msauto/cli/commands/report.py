"""``msauto report``: a past run again, in any form. Reads only the ledger."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import click
from msgspec import structs

from msauto import sockets
from msauto.api.forms import form_names, report_form
from msauto.cli.flags import Flags, layout_of, shared_flags_of, summary_flag
from msauto.cli.help import HelpCommand
from msauto.cli.output import print_result
from msauto.file_access import find_repository
from msauto.ledger.ledger import Ledger


@click.command("report", cls=HelpCommand)
@click.argument("run")
@shared_flags_of(
    *form_names(), uses=["state_dir", "verbose"], more=(summary_flag,), socket="report_forms"
)
def command(*, flags: Flags, run: str) -> None:
    """Show a past run again, in any form: by its name in `msauto history`, the start of it, or `last`."""
    with Ledger.open(flags.inputs.ledger, readonly=True) as ledger:
        found = ledger.find(run, find_repository(Path()))
        details = None if found.is_batch else ledger.run_details(found.run)
    if details is None:
        past_batches = sockets.find("records", "batch")
        print_result(past_batches.render_report(flags.inputs.ledger, found, flags.format))
        return
    form = report_form(flags.format)
    past = details.result
    # It was applied.
    layout = structs.replace(layout_of(flags), by=details.summary.who, keep_going=True)
    shown = form.result(past, layout)
    if flags.format in {"text", "markdown"}:  # other results contain the plan
        shown = chain(form.plan(past.plan, layout), shown)
    print_result(shown)
