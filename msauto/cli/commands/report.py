"""``msauto report``: a past run again, in any form. Reads only the ledger."""

from __future__ import annotations

from itertools import chain

import click
from msgspec import structs

from msauto.api.forms import FORMS, report_form
from msauto.batch.batch_result import SUMMARY_FORMS, past_results
from msauto.cli.flags import SUMMARY_OPTION, Flags, layout_of, shared_flags_of
from msauto.cli.help import HelpCommand
from msauto.cli.output import print_result
from msauto.ledger.ledger import Ledger
from msauto.model.plan import InputHash, PlannedServer
from msauto.model.result import Result, RunDetails, seconds_between
from msauto.secrets.redaction import HIDDEN


@click.command("report", cls=HelpCommand)
@click.argument("run")
@shared_flags_of(*FORMS, uses=["state_dir", "verbose"], more=(SUMMARY_OPTION,))
def command(*, flags: Flags, run: str) -> None:
    """Show a past run again, in any form: by its name in `msauto history`, the start of it, or `last`."""
    with Ledger.open(flags.inputs.ledger, readonly=True) as ledger:
        found = ledger.find(run)
        if found.batch and not found.job:
            result = next(each for each in past_results(ledger, found.batch) if each.run == found.run)
            print_result(SUMMARY_FORMS[flags.format][1](result, ""))
            return
        details = ledger.run_details(found.run)
    form, layout, past = report_form(flags.format), layout_of(flags), _result_of(details)
    plan = form.plan(past.plan, layout) if flags.format in {"text", "markdown"} else ()  # other results contain it
    print_result(chain(plan, form.result(past, layout)))


def _result_of(details: RunDetails) -> Result:
    """Return the result of a past run; what it did not reach is not attempted."""
    summary = details.summary
    plan = structs.replace(
        details.plan,
        servers=tuple(PlannedServer(name, 0) for name in dict.fromkeys(each.target.server for each in details.targets)),
        settings=InputHash(summary.settings, HIDDEN) if summary.settings else None,
    )
    return Result(
        summary.run,
        plan,
        tuple(each.result for each in details.targets),
        interrupted=summary.status in {"interrupted", "died"},
        seconds=None if summary.ended is None else seconds_between(summary.started, summary.ended),
        server_seconds={server: seconds_between(*span) for server, span in _spans(details).items()},
    )


def _spans(details: RunDetails) -> dict[str, tuple[str, str]]:
    """Return the first and the last time that the ledger knows of each server."""
    times: dict[str, list[str]] = {}
    for each in details.targets:
        known = [each.begun, *(request.settled for request in each.requests)]
        times.setdefault(each.target.server, []).extend(filter(None, known))
    return {server: (min(known), max(known)) for server, known in times.items() if known}
