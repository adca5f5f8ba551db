"""The summary of a batch, in each of its forms. Every function is pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final, get_args
from zoneinfo import ZoneInfo

from msauto.batch.batch_result import BatchResult, DifferingTarget, JobResult
from msauto.model.codec import to_json
from msauto.model.plan import Action
from msauto.model.result import parse_time, seconds_between
from msauto.report.ci_forms import TestCase, render_xml, suite_of
from msauto.report.json import dump
from msauto.report.layout import template
from msauto.report.lines import GREEN, RED, aligned, paint
from msauto.report.sanitizing import visible
from msauto.report.texts import count_outcomes, plural, show_seconds

_DRIFTING: Final = 10
"""How many drifting targets of a job are listed; the JSON holds all."""


def heading_of(result: BatchResult) -> str:
    """Return the outcome of the batch in one line."""
    if not result.jobs:
        return f"{result.batch}: {result.outcome}: {result.reason}"
    left = sum(not each.done for each in result.jobs)
    shown = f"{left} of {plural(len(result.jobs), 'job')} not ok" if left else f"{plural(len(result.jobs), 'job')} ok"
    changed = sum(each.summary.get("changed", 0) for each in result.jobs)
    more = f", {plural(changed, 'target')} changed" if changed else ""
    why = f" ({result.reason})" if result.reason else ""
    return f"{result.batch}: {result.outcome}: {shown}{more}{why}"


def render_text(result: BatchResult, zone: str, *, colour: bool = False) -> str:
    """Return the summary for a terminal or a mail; times in a time zone."""
    heading = paint(visible(heading_of(result)), RED if result.code else GREEN, colour=colour)
    rows = [[f"  {job}", *cells] for job, *cells in _rows(result)]
    return "".join(f"{line}\n" for line in (heading, *aligned(rows), *_notes(result, zone)))


def _render(name: str, result: BatchResult, zone: str) -> str:
    heading = visible(heading_of(result))
    return template(name).render(heading=heading, rows=_rows(result), more=_notes(result, zone))


def _rows(result: BatchResult) -> Iterator[tuple[str, str, str, str]]:
    """Yield each job with its outcome, its duration, and why it is not ok or its counts."""
    for each in result.jobs:
        took = show_seconds(seconds_between(each.started, each.ended)) if each.started and each.ended else ""
        yield each.job, outcome_text(each.outcome, each.code), took, visible(_details_of(each))


def outcome_text(outcome: str, code: int | None) -> str:
    """Return how a job ended, with its exit code."""
    return f"{outcome} ({code})" if code else outcome


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


def _notes(result: BatchResult, zone: str) -> Iterator[str]:
    """Yield what the rows do not hold: what differs, missed starts, what was not delivered, what to do next."""
    for job in result.jobs:
        drift = job.reported_drift
        yield from (f"{job.job}: {visible(_drift_sentence(each))}" for each in drift[:_DRIFTING])
        if len(drift) > _DRIFTING:
            yield f"{job.job}: {len(drift) - _DRIFTING} more differ"
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


def _drift_sentence(target: DifferingTarget) -> str:
    """Return which target differs, in what, since when, and by whom."""
    new = "new" if target.nights == 1 else f"for {target.nights} nights"
    by = f", by {', '.join(target.by)}" if target.by else ""
    place = "/".join(filter(None, (target.server, target.database)))
    return f"{place}: {target.name} differs ({new}{by}): {', '.join(target.changes)}"


def local_time(text: str, zone: str) -> str:
    """Return a time of a result in a time zone, to the minute."""
    return f"{parse_time(text).astimezone(ZoneInfo(zone)):%a %Y-%m-%d %H:%M %Z}"


def render_json(result: BatchResult, _zone: str = "") -> str:
    """Return the summary as ``msauto-batch`` version 1."""
    return dump(to_json(result))


def _render_junit(result: BatchResult, _zone: str) -> str:
    jobs = result.jobs or (JobResult(job=result.batch, code=result.code, reason=result.reason),)
    return render_xml(suite_of(result.batch, [_test_case(each, result) for each in jobs], time=result.started))


def _test_case(job: JobResult, result: BatchResult) -> TestCase:
    seconds = seconds_between(job.started, job.ended)
    if job.code or job.outcome == "not attempted":
        return TestCase(job.job, "failure", job.outcome, job.reason or result.reason, seconds=seconds)
    if job.outcome == "skipped":
        return TestCase(job.job, "skipped", message=job.reason or result.reason, seconds=seconds)
    return TestCase(job.job, details=_details_of(job), seconds=seconds)


SUMMARY_FORMS: Final[Mapping[str, tuple[str, Callable[[BatchResult, str], str]]]] = {
    "text": ("txt", render_text),
    "json": ("json", render_json),
    "markdown": ("md", partial(_render, "batch/summary.md.j2")),
    "html": ("html", partial(_render, "batch/summary.html.j2")),
    "junit": ("xml", _render_junit),
}
"""The ending of a report file, and the function that writes the summary; its last argument is a time zone."""
