"""The summary of a batch, in each of its forms. Every function is pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, get_args
from zoneinfo import ZoneInfo

from msauto.batch.batch_result import BatchResult, DifferingTarget, JobResult
from msauto.batch.batch_run import moment_of, seconds_between
from msauto.model.codec import to_json
from msauto.model.plan import Action
from msauto.report.json import dump
from msauto.report.junit import TestCase, render_xml, suite_of
from msauto.report.sanitizing import visible
from msauto.report.sentences import count_outcomes, plural
from msauto.report.templates import template
from msauto.report.terminal.lines import GREEN, RED, paint
from msauto.report.terminal.tables import aligned
from msauto.report.value_texts import show_seconds

_DRIFTING: Final = 10
"""How many drifting targets of a job the text lists."""


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
    lines = [paint(visible(heading_of(result)), RED if result.code else GREEN, colour=colour)]
    rows = [
        [f"  {each.job}", outcome_text(each.outcome, each.code), _duration(each), visible(details_of(each))]
        for each in result.jobs
    ]
    lines += aligned(rows)
    for each in result.jobs:
        lines += [f"  {each.job}: {line}" for line in _drift_lines(each)]
    lines += [f"missed: {local_time(start, zone)}" for start in result.missed]
    lines += [
        visible(f"{each.kind} {each.to}: not delivered: {each.error}") for each in result.deliveries if each.error
    ]
    lines += list(_next_steps(result))
    return "".join(f"{line}\n" for line in lines)


def details_of(job: JobResult) -> str:
    """Return why a job is not ok, or its counts."""
    attempts = f"; {job.attempts} attempts" if job.attempts > 1 else ""
    warned = f"; {plural(len(job.warnings), 'warning')}: {job.warnings[0]}" if job.warnings else ""
    if job.reason:
        return f"{job.reason}{attempts}{warned}"
    if job.outcome == "not attempted":
        return ""
    if job.drift:
        return f"{plural(len(job.drift), 'target')} differ{'s' if len(job.drift) == 1 else ''}{attempts}{warned}"
    planned = ", ".join(f"{job.summary[each]} to {each}" for each in get_args(Action) if job.summary.get(each))
    return (count_outcomes(job.summary) or planned or "nothing to do") + attempts + warned


def outcome_text(outcome: str, code: int | None) -> str:
    """Return how a job ended, with its exit code."""
    return f"{outcome} ({code})" if code else outcome


def _duration(job: JobResult) -> str:
    if job.started is None or job.ended is None:
        return ""
    return show_seconds(seconds_between(job.started, job.ended))


def _drift_lines(job: JobResult) -> Iterator[str]:
    for each in job.reported_drift[:_DRIFTING]:
        yield visible(drift_sentence(each))
    if len(job.reported_drift) > _DRIFTING:
        yield f"{len(job.reported_drift) - _DRIFTING} more differ"


def drift_sentence(target: DifferingTarget) -> str:
    """Return which target differs, in what, since when, and by whom."""
    new = "new" if target.nights == 1 else f"for {target.nights} nights"
    by = f", by {', '.join(target.by)}" if target.by else ""
    place = "/".join(filter(None, (target.server, target.database)))
    return f"{place}: {target.name} differs ({new}{by}): {', '.join(target.changes)}"


def _next_steps(result: BatchResult) -> Iterator[str]:
    runs = [run for each in result.jobs if not each.done for run in each.runs]
    if runs:
        yield f"→ for details: {', '.join(f'msauto history {run}' for run in runs)}"
    if any(not each.done for each in result.jobs) and not result.check:  # a check is not recorded
        yield f"→ to run these jobs again: msauto batch run {visible(result.file)} --failed"


def local_time(text: str, zone: str) -> str:
    """Return a time of a result in a time zone, to the minute."""
    return f"{moment_of(text).astimezone(ZoneInfo(zone)):%a %Y-%m-%d %H:%M %Z}"


# Other forms ------------------------------------------------------------------------------------------------------


def render_json(result: BatchResult, zone: str) -> str:
    """Return the summary as ``msauto-batch`` version 1."""
    del zone
    return dump(to_json(result))


def _render_markdown(result: BatchResult, zone: str) -> str:
    return _render("batch/summary.md.j2", result, zone)


def _render_html(result: BatchResult, zone: str) -> str:
    return _render("batch/summary.html.j2", result, zone)


def _render(name: str, result: BatchResult, zone: str) -> str:
    heading = visible(heading_of(result))
    return template(name).render(heading=heading, rows=_cells(result), more=_more(result, zone))


def _cells(result: BatchResult) -> Iterator[tuple[str, str, str, str]]:
    for each in result.jobs:
        yield each.job, outcome_text(each.outcome, each.code), _duration(each), visible(details_of(each))


def _more(result: BatchResult, zone: str) -> Iterator[str]:
    """Yield what the table does not hold."""
    for each in result.jobs:
        yield from (f"{each.job}: {visible(drift_sentence(target))}" for target in each.reported_drift)
    yield from (f"missed: {local_time(start, zone)}" for start in result.missed)
    yield from _next_steps(result)


def _is_failure(job: JobResult) -> bool:
    return bool(job.code) or job.outcome == "not attempted"


def _render_junit(result: BatchResult, zone: str) -> str:
    del zone
    jobs = result.jobs or (JobResult(job=result.batch, code=result.code, reason=result.reason),)
    return render_xml(suite_of(result.batch, [_test_case(each, result) for each in jobs], time=result.started))


def _test_case(job: JobResult, result: BatchResult) -> TestCase:
    seconds = seconds_between(job.started, job.ended)
    if _is_failure(job):
        return TestCase(job.job, "failure", job.outcome, job.reason or result.reason, seconds=seconds)
    if job.outcome == "skipped":
        return TestCase(job.job, "skipped", message=job.reason or result.reason, seconds=seconds)
    return TestCase(job.job, details=details_of(job), seconds=seconds)


SUMMARY_FORMS: Final[Mapping[str, tuple[str, Callable[[BatchResult, str], str]]]] = {
    "text": ("txt", render_text),
    "json": ("json", render_json),
    "markdown": ("md", _render_markdown),
    "html": ("html", _render_html),
    "junit": ("xml", _render_junit),
}
"""The ending of a report file, and the function that writes the summary; its last argument is a time zone."""
