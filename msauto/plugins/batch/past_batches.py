"""Shows batches of the ledger: for ``msauto history`` and ``msauto report``."""

from __future__ import annotations

from msauto import codec
from msauto.errors import MsautoError
from msauto.ledger.ledger import LedgerPlace
from msauto.model.result import RunSummary
from msauto.plugins.batch.batch_result import last_job, read_result
from msauto.plugins.batch.summary import SUMMARY_FORMS, render_job, render_text
from msauto.report.json import dump
from msauto.report.layout import PLAIN, Layout
from msauto.report.sanitizing import visible


def render_history(
    place: LedgerPlace, summary: RunSummary, form: str, layout: Layout = PLAIN
) -> str:
    """Return the summary of a batch, and what was delivered to other systems."""
    result = read_result(place, summary)
    if form == "json":
        return dump({**codec.to_json(result), "status": summary.status})
    shown = render_text(result, place, layout=layout)
    for message in result.deliveries:
        shown += visible(f"{message.kind} {message.to}: {message.error or 'delivered'}") + "\n"
    return shown


def render_attempt(place: LedgerPlace, summary: RunSummary) -> str:
    """Return what came of a job that wrote nothing; empty if the batch did not record it."""
    job = last_job(place, summary)
    if job is None:
        return ""
    return render_job(job)


def render_report(place: LedgerPlace, summary: RunSummary, form: str) -> str:
    """Return the summary of a batch in a form of reports; raises ``MsautoError`` for a form that batches lack."""
    if form not in SUMMARY_FORMS:
        raise MsautoError(f"a batch has no form {form}", remedy=f"use {', '.join(SUMMARY_FORMS)}")
    _, render = SUMMARY_FORMS[form]
    return render(read_result(place, summary), place)
