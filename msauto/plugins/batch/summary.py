"""The summary of a batch: one value, which the terminal, notices, report files and the page show, each in its form."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, get_args
from urllib.parse import quote

from msgspec import structs

from msauto import codec
from msauto.api.forms import page_writer
from msauto.ledger.ledger import Ledger, LedgerPlace
from msauto.model.plan import Action
from msauto.model.result import OUTCOMES, key_of, seconds_between, user_at
from msauto.plugins.batch.batch_result import (
    DIFFERING,
    BatchResult,
    DifferingTarget,
    JobResult,
    outcome_text,
)
from msauto.plugins.batch.causes import Cause, TargetResults, results_so_far
from msauto.report.json import dump
from msauto.report.layout import PLAIN, Layout, Line, Style, aligned, listing, render_lines, words
from msauto.report.losses import loss_lines
from msauto.report.page_parts import PageHead, PagePart, run_part
from msauto.report.plan_view import named_targets, names_of_servers, skipped_groups
from msauto.report.sanitizing import (
    display_width,
    pad,
    show,
    visible,
)
from msauto.report.templates import template
from msauto.report.texts import count_outcomes, count_outside, local_time, plural, show_seconds

_DRIFTING: Final = 10
"""How many lines of a job show what differs, or what it would change; the JSON holds all targets."""
_MOST_LOSING: Final = 20
_MOST_LOST: Final = 100
"""How many titles that a refused job would delete are named, and how many that a job has deleted."""
_WIDEST: Final = 40
"""The widest column before the details of a job, below which they go on."""
_MOST_TARGETS: Final = 5000
"""How many targets the page of a batch holds: a job that has more is shown by ``msauto report``."""


class JobSummary(NamedTuple):
    """A job with its outcome, its duration, and why it is not ok or its counts; visible.

    ``causes``: why targets are not done, each as lines: the server and the reason, the names, what to do. ``changed``:
    how many targets were changed on each server, where some are not done. ``lines``: what it would delete if it were
    not refused, and what was skipped, by reason.
    """

    result: JobResult
    outcome: str
    took: str
    details: str
    causes: Sequence[tuple[str, ...]]
    changed: str
    lines: Sequence[str]


def summarize_job(job: JobResult) -> JobSummary:
    """Return the summary of a job."""
    alike = defaultdict[tuple[str, str], list[Cause]](list)
    for cause in job.causes:
        alike[cause.text, cause.named].append(cause)
    causes = [tuple(_cause_lines(causes)) for causes in alike.values()]
    changed = ""
    if job.changed and causes:
        counts = []
        for server, number in job.changed.items():
            counts.append(f"{number} on {show(server)}")
        changed = f"changed: {', '.join(counts)}"
    outcome = outcome_text(job.outcome, job.code)
    details = visible(_details_of(job))
    lines = [*_advice_on(job)]
    most = _MOST_LOSING if job.outcome == "refused" else _MOST_LOST
    lines += loss_lines(job.losses, most)
    for group in skipped_groups(job.skipped, whole=True):
        lines.append(f"skipped: {group.line}")
    return JobSummary(job, outcome, _took(job), details, causes, changed, lines)


def _advice_on(job: JobResult) -> Iterator[str]:
    """Yield what to do about a job, what its first warning lists, and why targets are not begun."""
    for line in job.remedy.splitlines():
        yield visible(f"→ {line}")
    for warning in job.warnings[:1]:
        for line in warning.splitlines()[1:]:
            sign = "" if line.startswith(" ") else "→ "
            yield visible(f"{sign}{line.strip()}")
    written, wanted = job.written
    waiting = wanted - written - sum(cause.count for cause in job.causes)
    if job.causes and waiting > 0 and job.outcome == "failed":
        yield f"{plural(waiting, 'target')} not attempted: one in error stops a job without `keep_going: true`"


def _cause_lines(alike: Sequence[Cause]) -> Iterator[str]:
    """Yield the lines of a cause, which several servers may have."""
    cause = alike[0]
    servers = ", ".join([show(each.server) for each in alike])
    yield f"{servers}: {visible(cause.text)}"
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
    differing: list[str] = []
    for job in result.jobs:
        differing += [visible(f"{job.job}: {line}") for line in _differing(job)]
    jobs = tuple(map(summarize_job, result.jobs))
    notes = tuple(map(visible, _notes(result)))
    return BatchSummary(visible(result.heading), jobs, tuple(differing), notes)


def _took(of: JobResult | BatchResult) -> str:
    """Return how long something took; empty if it did not run, or did not end."""
    if not (of.started and of.ended):
        return ""
    return show_seconds(seconds_between(of.started, of.ended))


def _details_of(job: JobResult) -> str:
    if job.outcome == "not attempted" and not job.reason:
        return ""
    details = [_came_of(job)]
    outside = sum(len(target.changes) for target in job.outside)
    if outside:
        details.append(count_outside(outside))
    if job.attempts > 1:
        details.append(f"{job.attempts} attempts")
    if job.warnings:
        details.append(f"{plural(len(job.warnings), 'warning')}: {job.warnings[0].splitlines()[0]}")
    return "; ".join(details)


def _came_of(job: JobResult) -> str:
    """Return why a job is not ok, or what it wrote, would write or found to differ."""
    reason = job.reason
    if job.causes and not job.remedy:
        reason = ""  # the causes follow
    found = sum(target.seen for target in job.drift)
    if not reason and (found or DIFFERING in job.summary):
        verb = "differs" if found == 1 else "differ"
        return f"{plural(found, 'target')} {verb}"
    written, wanted = job.written
    if wanted > written:
        counted = f"{written} of {plural(wanted, 'target')} written"
        return f"{reason}; {counted}" if reason else counted
    planned = []
    for action in get_args(Action):
        if job.summary.get(action):
            planned.append(f"{job.summary[action]} to {action}")
    return reason or count_outcomes(job.summary) or ", ".join(planned) or "nothing to do"


def _differing(job: JobResult) -> Iterator[str]:
    """Yield what differs, would change, or was changed by others: equal ones in one line."""
    note_of: Callable[[DifferingTarget], str] = _since
    targets = job.reported_drift
    if job.would_change:
        targets, note_of = job.would_change, lambda _: ""
    elif not job.drift:
        targets, note_of = job.outside, _changed_by
    alike = defaultdict[tuple[str, str], list[DifferingTarget]](list)
    for target in targets:
        alike[note_of(target), ", ".join(target.changes)].append(target)
    groups = []
    for (note, changes), differing in alike.items():
        groups += [(named, note, changes) for named in named_targets(differing)]
    for named, note, changes in groups[:_DRIFTING]:
        place = "/".join(filter(None, (names_of_servers(named.servers), named.database)))
        names = named.listed()
        if note_of is _since:
            names += " differs" if named.names == 1 else " differ"
        yield f"{place}: {names}{note}: {changes}"
    more = sum(named.size for named, _, _ in groups[_DRIFTING:])
    if more:
        yield f"{plural(more, 'more target')}; see its plan above, or --format json"


def _since(target: DifferingTarget) -> str:
    """Return since when a target differs, and by whom."""
    since = "new" if target.nights == 1 else f"for {target.nights} nights"
    if target.by:
        since += f", by {', '.join(target.by)}"
    return f" ({since})"


def _changed_by(target: DifferingTarget) -> str:
    by = f" by {', '.join(target.by)}" if target.by else ""
    return f" changed outside{by}"


def _notes(result: BatchResult) -> Iterator[str]:
    if result.remedy:
        yield f"→ {result.remedy}"
    for start in result.missed:
        yield f"missed: {local_time(start)}"
    for sent in result.deliveries:
        if sent.error:
            yield f"{sent.kind} {sent.to}: not delivered: {sent.error}"
    state = f" --state-dir {shlex.quote(result.state_dir)}" if result.state_dir else ""
    commands: list[str] = []
    for job in result.jobs:
        if job.outside or not job.done:
            commands += [f"msauto history {run}{state}" for run in job.runs]
    if commands:
        yield f"→ for details: {', '.join(commands)}"
    is_done = not result.code and all(job.done for job in result.jobs)
    if not is_done and not result.check:  # a check is not recorded
        now = " --now" if result.window else ""
        command = f"msauto batch run {shlex.quote(result.file)} --failed{now}{state}"
        yield f"→ to run these jobs again: {command}"


# Forms ----------------------------------------------------------------------------------------------------------------


def render_text(
    result: BatchResult, _: LedgerPlace | None = None, *, layout: Layout = PLAIN
) -> str:
    """Return the summary for a terminal or a mail."""
    summary = summarize(result)
    style: Style = "red" if result.code else "green"
    lines = [words(summary.heading, style)]
    lines += [*_job_lines(summary.jobs), *map(words, summary.differing)]
    # Commands are copied whole.
    lines += [structs.replace(words(note), wrapped=False) for note in summary.notes]
    return "".join(render_lines(lines, layout))


def render_job(job: JobResult) -> str:
    """Return what came of one job, for a terminal."""
    lines = [*_job_lines([summarize_job(job)])]
    lines += [words(visible(line)) for line in _differing(job)]
    return "".join(render_lines(lines, PLAIN))


def _job_lines(jobs: Sequence[JobSummary]) -> Iterator[Line]:
    """Yield the lines of each job: its outcome, then why targets are not done, then what was changed."""
    heads = aligned([[f"  {visible(job.result.job)}", job.outcome, job.took] for job in jobs])
    width = max(map(display_width, heads), default=0)
    hang = min(width + 2, _WIDEST)
    for head, job in zip(heads, jobs, strict=True):
        yield words(f"{pad(head, width)}  {job.details}", hang=hang)
        for reason, *more in job.causes:
            yield words(f"    {reason}", hang=8)
            for line in more:
                yield words(f"        {line}", hang=10)
        for line in (job.changed, *job.lines):
            if line:
                yield listing(f"    {line}", hang=8)


def _render_html(result: BatchResult, place: LedgerPlace | None) -> str:
    """Return a page like that of a run, with the targets of all jobs, as long as there are not too many."""
    render_page = page_writer()
    ran = [job for job in result.jobs if job.runs]
    parts: dict[str, PagePart] = {}
    if ran and place is not None:
        with Ledger.open(place, readonly=True) as ledger:
            parts = _parts(ran, ledger)
    unread = []
    for job in ran:
        if job.job not in parts:
            commands = ", ".join(f"msauto report {run}" for run in job.runs)
            unread.append(visible(f"{job.job}: its changes are not on this page: {commands}"))
    more_data = [*chain.from_iterable(map(_drift_data, result.jobs))]
    summary = summarize(result)
    ended = f"took {_took(result)}" if result.ended else ""
    started_by = user_at(result.user, result.host)
    facts = (started_by, local_time(result.started), ended, f"msauto {result.msauto}")
    pieces = render_page(
        PageHead(result.batch, result.outcome, result.sentence, facts),
        [*parts.values()],
        more_data=more_data,
        name="plugins/batch/summary.html.j2",
        summary=summary._replace(notes=(*unread, *summary.notes)),
        local_time=lambda time: local_time(time) if time else "",
    )
    return "".join(pieces)


def _parts(jobs: Iterable[JobResult], ledger: Ledger) -> dict[str, PagePart]:
    """Return the targets of those jobs for which the page has room, by the names of the jobs."""
    parts = {}
    room = _MOST_TARGETS
    for job in jobs:
        size = sum(job.summary.get(key_of(outcome), 0) for outcome in OUTCOMES)
        size -= job.summary.get("unchanged", 0)
        if size > room or not all(map(ledger.is_run, job.runs)):
            continue
        room -= size
        runs = [ledger.run_details(run).result for run in job.runs]
        targets: TargetResults = ()
        for run in runs:
            targets = results_so_far(targets, run.targets)
        newest = runs[-1]
        plan = structs.replace(newest.plan, targets=tuple(result.target for result in targets))
        whole = structs.replace(newest, plan=plan, targets=targets)
        parts[job.job] = run_part(whole, visible(job.job))
    return parts


def _drift_data(job: JobResult) -> Iterator[dict[str, Any]]:
    """Yield the data of the targets that differ."""
    for number, target in enumerate(job.reported_drift):
        lines = [["difference", visible(change)] for change in target.changes]
        lines.append(["advice", visible(f"it differs{_since(target)}")])
        yield {
            "id": f"{quote(job.job, errors='backslashreplace')}~{number}",
            "job": visible(job.job),
            "server": show(target.server),
            "database": show(target.database),
            "name": show(target.name),
            "status": "differs",
            "result": lines,
        }


def render_json(result: BatchResult, _: LedgerPlace | None = None) -> str:
    """Return the summary as ``msauto-batch`` version 1."""
    return dump(codec.to_json(result))


BatchForm = Callable[[BatchResult, LedgerPlace | None], str]
"""Writes a summary; a page takes the changes of the runs from a ledger."""
SUMMARY_FORMS: Final[Mapping[str, tuple[str, BatchForm]]] = {
    "text": ("txt", render_text),
    "json": ("json", render_json),
    "markdown": (
        "md",
        lambda result, _: template("plugins/batch/summary.md.j2").render(summary=summarize(result)),
    ),
    "html": ("html", _render_html),
}
"""The ending of a report file, and the form."""
