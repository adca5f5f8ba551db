"""The summary of a batch: one value, which the terminal, notices, report files and the page show, each in its form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from typing import Any, Final, NamedTuple, get_args
from urllib.parse import quote

from msauto import codec
from msauto.batch.batch_result import BatchResult, DifferingTarget, JobResult, outcome_text
from msauto.ledger.ledger import Ledger, LedgerPlace
from msauto.model.plan import Action
from msauto.model.result import OUTCOMES, key_of, seconds_between, user_at
from msauto.report.ci_forms import TestCase, render_xml, suite_of
from msauto.report.json import dump
from msauto.report.layout import aligned, paint, template
from msauto.report.sanitizing import show, visible
from msauto.report.texts import count_outcomes, local_time, plural, show_seconds

_DRIFTING: Final = 10
"""How many targets of a job are listed that differ, or that it would change; the JSON holds all."""
_MOST_TARGETS: Final = 5000
"""How many targets the page of a batch holds: a job that has more is shown by ``msauto report``."""


class JobSummary(NamedTuple):
    """A job with its outcome, its duration, and why it is not ok or its counts; visible."""

    result: JobResult
    outcome: str
    took: str
    details: str


class BatchSummary(NamedTuple):
    """What every form shows of a batch; visible, with times in a time zone.

    ``differing``: what differs from the playbooks, and what would change. ``notes``: what the jobs do not hold, such as
    missed starts, what was not delivered, and what to do next.
    """

    heading: str
    jobs: tuple[JobSummary, ...]
    differing: tuple[str, ...]
    notes: tuple[str, ...]


def summarize(result: BatchResult, zone: str) -> BatchSummary:
    """Return the summary of a batch."""
    jobs = (
        JobSummary(each, outcome_text(each.outcome, each.code), _took(each), visible(_details_of(each)))
        for each in result.jobs
    )
    differing = (f"{job.job}: {visible(line)}" for job in result.jobs for line in _differing(job))
    return BatchSummary(visible(result.heading), tuple(jobs), tuple(differing), tuple(_notes(result, zone)))


def _took(of: JobResult | BatchResult) -> str:
    """Return how long something took; empty if it did not run, or did not end."""
    return show_seconds(seconds_between(of.started, of.ended)) if of.started and of.ended else ""


def _details_of(job: JobResult) -> str:
    if job.outcome == "not attempted" and not job.reason:
        return ""
    planned = ", ".join(f"{job.summary[each]} to {each}" for each in get_args(Action) if job.summary.get(each))
    text = job.reason or count_outcomes(job.summary) or planned or "nothing to do"
    if job.drift and not job.reason:
        text = f"{plural(len(job.drift), 'target')} differ{'s' if len(job.drift) == 1 else ''}"
    attempts = f"; {job.attempts} attempts" if job.attempts > 1 else ""
    warned = f"; {plural(len(job.warnings), 'warning')}: {job.warnings[0]}" if job.warnings else ""
    return f"{text}{attempts}{warned}"


def _differing(job: JobResult) -> Iterator[str]:
    drift, planned = job.reported_drift, job.would_change
    for each in drift[:_DRIFTING]:
        yield f"{_called(each)} differs ({_since(each)}): {', '.join(each.changes)}"
    if len(drift) > _DRIFTING:
        yield f"{len(drift) - _DRIFTING} more differ"
    for each in planned[:_DRIFTING]:
        yield f"{_called(each)}: {', '.join(each.changes)}"
    if len(planned) > _DRIFTING:
        yield f"{plural(len(planned) - _DRIFTING, 'more target')}; see its plan above, or --format json"


def _since(target: DifferingTarget) -> str:
    """Return since when a target differs, and by whom."""
    new = "new" if target.nights == 1 else f"for {target.nights} nights"
    return ", by ".join(filter(None, (new, ", ".join(target.by))))


def _called(target: DifferingTarget) -> str:
    return f"{'/'.join(filter(None, (target.server, target.database)))}: {target.name}"


def _notes(result: BatchResult, zone: str) -> Iterator[str]:
    yield from (f"missed: {local_time(start, zone)}" for start in result.missed)
    for sent in result.deliveries:
        if sent.error:
            yield visible(f"{sent.kind} {sent.to}: not delivered: {sent.error}")
    left = [each for each in result.jobs if not each.done]
    runs = [f"msauto history {run}" for each in left for run in each.runs]
    if runs:
        yield f"→ for details: {', '.join(runs)}"
    if left and not result.check:  # a check is not recorded
        yield f"→ to run these jobs again: msauto batch run {visible(result.file)} --failed"


# Forms ----------------------------------------------------------------------------------------------------------------


def render_text(result: BatchResult, zone: str, _: LedgerPlace | None = None, *, colour: bool = False) -> str:
    """Return the summary for a terminal or a mail; times in a time zone."""
    summary = summarize(result, zone)
    heading = paint(summary.heading, "red" if result.code else "green", colour=colour)
    rows = [[f"  {job.job}", *cells] for job, *cells in summary.jobs]
    return "".join(f"{line}\n" for line in (heading, *aligned(rows), *summary.differing, *summary.notes))


def _render_markdown(result: BatchResult, zone: str, _: LedgerPlace | None) -> str:
    return template("batch/summary.md.j2").render(summary=summarize(result, zone))


def _render_html(result: BatchResult, zone: str, place: LedgerPlace | None) -> str:
    """Return a page like that of a run, with the targets of all jobs, as long as there are not too many."""
    from msauto.report.html import render_page, run_part

    parts, left, unread = [], _MOST_TARGETS, []
    ran = [(job, run) for job in result.jobs for run in job.runs]
    with Ledger.open(place, readonly=True) if ran and place is not None else nullcontext() as ledger:
        for job, run in ran:
            size = sum(job.summary.get(key_of(outcome), 0) for outcome in OUTCOMES if outcome != "unchanged")
            if ledger is not None and size <= left and ledger.is_run(run):
                parts.append(run_part(ledger.run_details(run).result, visible(job.job)))
                left -= size
            else:
                unread.append(visible(f"{job.job}: its changes are not on this page: msauto report {run}"))
    summary = summarize(result, zone)
    started = local_time(result.started, zone)
    ended = f"took {_took(result)}" if result.ended else ""
    return "".join(
        render_page(
            parts,
            result.heading.removeprefix(f"{result.batch}: {result.outcome}: "),
            result.outcome,
            subject=result.batch,
            facts=(user_at(result.user, result.host), started, ended, f"msauto {result.msauto}"),
            more_data=[each for job in result.jobs for each in _drift_data(job)],
            name="batch/summary.html.j2",
            summary=summary._replace(notes=(*unread, *summary.notes)),
            local_time=lambda time: local_time(time, zone) if time else "",
        )
    )


def _drift_data(job: JobResult) -> Iterator[dict[str, Any]]:
    """Yield the data of the targets that differ."""
    for number, each in enumerate(job.reported_drift):
        lines = [["difference", visible(change)] for change in each.changes]
        yield {
            "id": f"{quote(job.job)}~{number}",
            "job": visible(job.job),
            "server": show(each.server),
            "database": show(each.database),
            "name": show(each.name),
            "status": "differs",
            "result": [*lines, ["advice", visible(f"it differs ({_since(each)})")]],
        }


def render_json(result: BatchResult, _zone: str = "", _: LedgerPlace | None = None) -> str:
    """Return the summary as ``msauto-batch`` version 1."""
    return dump(codec.to_json(result))


def _render_junit(result: BatchResult, _zone: str, _: LedgerPlace | None) -> str:
    cases = []
    for job in result.jobs or (JobResult(job=result.batch, code=result.code, reason=result.reason),):
        seconds, reason = seconds_between(job.started, job.ended), job.reason or result.reason
        if job.code or job.outcome == "not attempted":
            cases.append(TestCase(job.job, "failure", job.outcome, reason, seconds=seconds))
        elif job.outcome == "skipped":
            cases.append(TestCase(job.job, "skipped", message=reason, seconds=seconds))
        else:
            cases.append(TestCase(job.job, details=_details_of(job), seconds=seconds))
    return render_xml(suite_of(result.batch, cases, time=result.started))


BatchForm = Callable[[BatchResult, str, LedgerPlace | None], str]
"""Writes a summary, with times in a time zone; a page takes the changes of the runs from a ledger."""
SUMMARY_FORMS: Final[Mapping[str, tuple[str, BatchForm]]] = {
    "text": ("txt", render_text),
    "json": ("json", render_json),
    "markdown": ("md", _render_markdown),
    "html": ("html", _render_html),
    "junit": ("xml", _render_junit),
}
"""The ending of a report file, and the form."""
