"""The summary of a batch: one value, which the terminal, notices, report files and the page show, each in its form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import reduce
from typing import Any, Final, NamedTuple, get_args
from urllib.parse import quote

from msgspec import structs

from msauto import codec
from msauto.api.forms import page_writer
from msauto.ledger.ledger import Ledger, LedgerPlace
from msauto.model.plan import Action
from msauto.model.result import OUTCOMES, TargetResult, key_of, seconds_between, user_at
from msauto.plugins.batch.batch_result import DIFFERING, BatchResult, DifferingTarget, JobResult, outcome_text
from msauto.plugins.batch.causes import Cause, results_so_far
from msauto.report.json import dump
from msauto.report.layout import PLAIN, Line, aligned, paint, render_lines, words
from msauto.report.page_parts import PageHead, run_part
from msauto.report.sanitizing import display_width, name_ranges, pad, show, show_range, visible, without_command
from msauto.report.templates import template
from msauto.report.texts import count_outcomes, count_outside, local_time, plural, show_seconds

_DRIFTING: Final = 10
"""How many lines of a job show what differs, or what it would change; the JSON holds all targets."""
_WIDEST: Final = 40
"""The widest column before the details of a job, below which they go on."""
_MOST_TARGETS: Final = 5000
"""How many targets the page of a batch holds: a job that has more is shown by ``msauto report``."""


class JobSummary(NamedTuple):
    """A job with its outcome, its duration, and why it is not ok or its counts; visible.

    ``causes``: why targets are not done, each as lines: the server and the reason, the names, what to do. ``changed``:
    how many targets were changed on each server, where some are not done.
    """

    result: JobResult
    outcome: str
    took: str
    details: str
    causes: Sequence[tuple[str, ...]]
    changed: str


def summarize_job(job: JobResult) -> JobSummary:
    """Return the summary of a job."""
    causes = [tuple(_cause_lines(cause)) for cause in job.causes]
    changed = ", ".join(f"{number} on {show(server)}" for server, number in job.changed.items())
    return JobSummary(
        job,
        outcome_text(job.outcome, job.code),
        _took(job),
        visible(_details_of(job)),
        causes,
        f"changed: {changed}" if changed and causes else "",
    )


def _cause_lines(cause: Cause) -> Iterator[str]:
    yield f"{show(cause.server)}: {visible(cause.text)}"
    if cause.named:
        yield cause.named
    if cause.remedy:
        yield visible(f"→ {cause.remedy}")


class BatchSummary(NamedTuple):
    """What every form shows of a batch; visible, with times in that of this machine.

    ``differing``: what differs from the playbooks, and what would change. ``notes``: what the jobs do not hold, such as
    missed starts, what was not delivered, and what to do next.
    """

    heading: str
    jobs: tuple[JobSummary, ...]
    differing: tuple[str, ...]
    notes: tuple[str, ...]


def summarize(result: BatchResult) -> BatchSummary:
    """Return the summary of a batch."""
    jobs = map(summarize_job, result.jobs)
    differing = (visible(f"{job.job}: {line}") for job in result.jobs for line in _differing(job))
    notes = map(visible, _notes(result))
    return BatchSummary(visible(result.heading), tuple(jobs), tuple(differing), tuple(notes))


def _took(of: JobResult | BatchResult) -> str:
    """Return how long something took; empty if it did not run, or did not end."""
    return show_seconds(seconds_between(of.started, of.ended)) if of.started and of.ended else ""


def _details_of(job: JobResult) -> str:
    if job.outcome == "not attempted" and not job.reason:
        return ""
    planned = ", ".join(f"{job.summary[each]} to {each}" for each in get_args(Action) if job.summary.get(each))
    reason = "" if job.causes else job.reason  # the causes follow
    written, wanted = job.written
    text = reason or count_outcomes(job.summary) or planned or "nothing to do"
    if wanted > written:
        counted = f"{written} of {plural(wanted, 'target')} written"
        text = f"{reason}; {counted}" if reason else counted
    found = sum(each.seen for each in job.drift)
    if (found or DIFFERING in job.summary) and not reason:
        text = f"{plural(found, 'target')} differ{'s' if found == 1 else ''}"
    text += f"; {count_outside(outside)}" if (outside := sum(len(each.changes) for each in job.outside)) else ""
    attempts = f"; {job.attempts} attempts" if job.attempts > 1 else ""
    warned = f"; {plural(len(job.warnings), 'warning')}: {job.warnings[0]}" if job.warnings else ""
    return f"{text}{attempts}{warned}"


def _differing(job: JobResult) -> Iterator[str]:
    """Yield what others changed, what differs, and what would change: equal ones of a server in one line."""
    alike: dict[tuple[str, ...], list[DifferingTarget]] = {}
    for each in job.outside if not (job.drift or job.would_change) else ():
        by = f" by {', '.join(each.by)}" if each.by else ""
        alike.setdefault((each.server, each.database, f" changed outside{by}", *each.changes), []).append(each)
    for each in job.reported_drift:
        alike.setdefault((each.server, each.database, f" ({_since(each)})", *each.changes), []).append(each)
    for each in job.would_change:
        alike.setdefault((each.server, each.database, "", *each.changes), []).append(each)
    shown = list(alike.items())
    for (server, database, since, *changes), those in shown[:_DRIFTING]:
        names = ", ".join(map(show_range, name_ranges(each.name for each in those)))
        verb = "" if not since.startswith(" (") else " differs" if len(those) == 1 else " differ"
        yield f"{'/'.join(filter(None, (server, database)))}: {names}{verb}{since}: {', '.join(changes)}"
    if left := sum(len(those) for _, those in shown[_DRIFTING:]):
        yield f"{plural(left, 'more target')}; see its plan above, or --format json"


def _since(target: DifferingTarget) -> str:
    """Return since when a target differs, and by whom."""
    new = "new" if target.nights == 1 else f"for {target.nights} nights"
    return ", by ".join(filter(None, (new, ", ".join(target.by))))


def _notes(result: BatchResult) -> Iterator[str]:
    yield from (f"missed: {local_time(start)}" for start in result.missed)
    for sent in result.deliveries:
        if sent.error:
            yield f"{sent.kind} {sent.to}: not delivered: {sent.error}"
    left = [each for each in result.jobs if not each.done]
    runs = [f"msauto history {run}" for each in result.jobs if each.outside or not each.done for run in each.runs]
    if runs:
        yield f"→ for details: {', '.join(runs)}"
    if left and not result.check:  # a check is not recorded
        yield f"→ to run these jobs again: msauto batch run {result.file} --failed"


# Forms ----------------------------------------------------------------------------------------------------------------


def render_text(result: BatchResult, _: LedgerPlace | None = None, *, colour: bool = False) -> str:
    """Return the summary for a terminal or a mail."""
    summary = summarize(result)
    heading = paint(without_command(summary.heading), "red" if result.code else "green", colour=colour)
    lines = [*_job_lines(summary.jobs), *map(words, summary.differing)]
    lines += [structs.replace(words(each), wrapped=False) for each in summary.notes]  # commands are copied whole
    return "".join((f"{heading}\n", *render_lines(lines, PLAIN)))


def render_job(job: JobResult) -> str:
    """Return what came of one job, for a terminal."""
    lines = (*_job_lines([summarize_job(job)]), *(words(visible(line)) for line in _differing(job)))
    return "".join(render_lines(lines, PLAIN))


def _job_lines(jobs: Sequence[JobSummary]) -> Iterator[Line]:
    """Yield the lines of each job: its outcome, then why targets are not done, then what was changed."""
    rows = aligned([[f"  {visible(job.result.job)}", job.outcome, job.took] for job in jobs])
    width = max(map(display_width, rows), default=0)
    for row, job in zip(rows, jobs, strict=True):
        yield words(f"{pad(row, width)}  {job.details}", hang=min(width + 2, _WIDEST))
        for head, *more in job.causes:
            yield words(f"    {head}", hang=8)
            yield from (words(f"        {each}", hang=10) for each in more)
        if job.changed:
            yield words(f"    {job.changed}", hang=8)


def _render_html(result: BatchResult, place: LedgerPlace | None) -> str:
    """Return a page like that of a run, with the targets of all jobs, as long as there are not too many."""
    render_page = page_writer()
    parts, left, unread = [], _MOST_TARGETS, []
    ran = [job for job in result.jobs if job.runs]
    with Ledger.open(place, readonly=True) if ran and place is not None else nullcontext() as ledger:
        for job in ran:
            size = sum(job.summary.get(key_of(outcome), 0) for outcome in OUTCOMES if outcome != "unchanged")
            if ledger is not None and size <= left and all(map(ledger.is_run, job.runs)):
                runs = [ledger.run_details(run).result for run in job.runs]
                targets: tuple[TargetResult, ...] = reduce(results_so_far, (each.targets for each in runs), ())
                plan = structs.replace(runs[-1].plan, targets=tuple(each.target for each in targets))
                parts.append(run_part(structs.replace(runs[-1], plan=plan, targets=targets), visible(job.job)))
                left -= size
            else:
                commands = ", ".join(f"msauto report {run}" for run in job.runs)
                unread.append(visible(f"{job.job}: its changes are not on this page: {commands}"))
    summary = summarize(result)
    ended = f"took {_took(result)}" if result.ended else ""
    facts = (user_at(result.user, result.host), local_time(result.started), ended, f"msauto {result.msauto}")
    return "".join(
        render_page(
            PageHead(result.batch, result.outcome, result.sentence, facts),
            parts,
            more_data=[each for job in result.jobs for each in _drift_data(job)],
            name="plugins/batch/summary.html.j2",
            summary=summary._replace(notes=(*unread, *summary.notes)),
            local_time=lambda time: local_time(time) if time else "",
        )
    )


def _drift_data(job: JobResult) -> Iterator[dict[str, Any]]:
    """Yield the data of the targets that differ."""
    for number, each in enumerate(job.reported_drift):
        lines = [["difference", visible(change)] for change in each.changes]
        yield {
            "id": f"{quote(job.job, errors='backslashreplace')}~{number}",
            "job": visible(job.job),
            "server": show(each.server),
            "database": show(each.database),
            "name": show(each.name),
            "status": "differs",
            "result": [*lines, ["advice", visible(f"it differs ({_since(each)})")]],
        }


def render_json(result: BatchResult, _: LedgerPlace | None = None) -> str:
    """Return the summary as ``msauto-batch`` version 1."""
    return dump(codec.to_json(result))


BatchForm = Callable[[BatchResult, LedgerPlace | None], str]
"""Writes a summary; a page takes the changes of the runs from a ledger."""
SUMMARY_FORMS: Final[Mapping[str, tuple[str, BatchForm]]] = {
    "text": ("txt", render_text),
    "json": ("json", render_json),
    "markdown": ("md", lambda result, _: template("plugins/batch/summary.md.j2").render(summary=summarize(result))),
    "html": ("html", _render_html),
}
"""The ending of a report file, and the form."""
