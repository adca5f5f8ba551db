"""The summary of a batch: one value, which the terminal, notices, report files and the page show, each in its form."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, NamedTuple, get_args
from urllib.parse import quote

from msgspec import structs

from msauto import codec
from msauto.api.forms import page_writer
from msauto.errors import LedgerError
from msauto.ledger.ledger import Ledger, LedgerPlace
from msauto.model.plan import Action, SkippedTarget
from msauto.model.result import COUNT_OF, seconds_between, user_at
from msauto.plugins.batch.batch_result import (
    DIFFERING,
    BatchResult,
    DifferingTarget,
    JobResult,
    outcome_text,
    results_since,
)
from msauto.plugins.batch.causes import Cause, TargetResults, results_so_far
from msauto.report.json import dump
from msauto.report.layout import PLAIN, Layout, Line, Style, aligned, listing, render_lines, words
from msauto.report.losses import Loss, loss_lines
from msauto.report.page_parts import PageHead, PagePart, run_part
from msauto.report.plan_view import (
    PlacedName,
    bounded_names,
    named_targets,
    names_of_servers,
    placed_name,
    skipped_groups,
)
from msauto.report.result_view import NOT_DONE
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
"""How many titles that a refused job would delete are named."""
_WEEK: Final = timedelta(days=7)
_MOST_OF_WEEK: Final = 20
"""How many names, or ranges of names, a line of the week has."""
_WORDS: Final = (
    *NOT_DONE,
    "refused",
    "gone",
    "skipped",
    "removed",
    "changed outside",
    "changed",
)
_MISSED: Final = 3
"""How many missed starts have a line each."""
_MOST_WARNINGS: Final = 10
"""How many warnings of a job are shown."""
_WIDEST: Final = 40
"""The widest column before the details of a job, below which they go on."""
_MOST_TARGETS: Final = 5000
"""How many targets the page of a batch holds: a job that has more is shown by ``msauto report``."""


class Point(NamedTuple):
    """What a summary reports of targets, in lines; visible. ``status`` is what came of them."""

    status: str
    lines: Sequence[str]
    targets: int = 1


class JobSummary(NamedTuple):
    """A job with its outcome, its duration, and why it is not ok or its counts; visible.

    ``causes``: why targets are not done: the server and the reason, the names, what to do. ``changed``: how many
    targets were changed on each server, where some are not done. ``advice``: what to do, and why. ``named``: what was
    deleted, or would be if it were not refused, and what was skipped, by reason. ``differing``: what differs, would
    change or was changed outside.
    """

    result: JobResult
    outcome: str
    took: str
    details: str
    causes: Sequence[Point]
    changed: str
    advice: Sequence[str]
    named: Sequence[Point]
    differing: Sequence[Point]


def summarize_job(job: JobResult) -> JobSummary:
    """Return the summary of a job."""
    alike = defaultdict[tuple[str, str], list[Cause]](list)
    for cause in job.causes:
        alike[cause.text, cause.named].append(cause)
    causes = []
    for group in alike.values():
        count = sum(cause.count for cause in group)
        causes.append(Point(group[0].outcome, [*_cause_lines(group)], count))
    changed = ""
    if job.changed and causes:
        counts = []
        for server, number in job.changed.items():
            counts.append(f"{number} on {show(server)}")
        changed = f"changed: {', '.join(counts)}"
    losses = loss_lines(job.losses)
    status = "removed"
    if job.outcome == "refused":
        losses = loss_lines(job.losses, _MOST_LOSING)
        status = "refused"
    named = [Point(status, [*losses])] if job.losses else []
    for skipped in skipped_groups(job.skipped, whole=True):
        status = "gone" if skipped.targets[0].reason == "gone" else "skipped"
        named.append(Point(status, [f"skipped: {skipped.line}"]))
    status = "differs" if job.drift or job.would_change else "changed outside"
    differing = [Point(status, [visible(line)]) for line in _differing(job)]
    return JobSummary(
        job,
        outcome_text(job.outcome, job.code),
        _took(job),
        visible(_details_of(job)),
        causes,
        changed,
        [*_advice_on(job)],
        named,
        differing,
    )


def _advice_on(job: JobResult) -> Iterator[str]:
    """Yield what to do about a job, its warnings after the first line of them, and why targets are not begun."""
    for line in job.remedy.splitlines():
        yield visible(f"→ {line}")
    for number, warning in enumerate(job.warnings[:_MOST_WARNINGS]):
        first, *more = warning.splitlines()
        if number:
            yield visible(f"warning: {first}")
        for line in more:
            sign = "" if line.startswith(" ") else "→ "
            yield visible(f"{sign}{line.strip()}")
    left = len(job.warnings) - _MOST_WARNINGS
    if left > 0:
        yield f"and {plural(left, 'more warning')}"
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

    ``notes``: what the jobs do not hold, such as missed starts, what was not delivered, and what to do next.
    ``week``: of the seven days before, a line for each job and each word.
    """

    heading: str
    jobs: tuple[JobSummary, ...]
    notes: tuple[str, ...]
    week: Sequence[WeekLine]

    @property
    def differing(self) -> Iterator[str]:
        """What differs from the playbooks, would change or was changed outside, each with its job."""
        for job in self.jobs:
            for point in job.differing:
                yield f"{visible(job.result.job)}: {' '.join(point.lines)}"


def summarize(result: BatchResult, place: LedgerPlace | None = None) -> BatchSummary:
    """Return the summary of a batch; the week is that of the ledger."""
    jobs = tuple(map(summarize_job, result.jobs))
    notes = tuple(map(visible, _notes(result)))
    return BatchSummary(visible(result.heading), jobs, notes, week_of(result, place))


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
    if reason:
        return reason
    planned = []
    for action in get_args(Action):
        if job.summary.get(action):
            planned.append(f"{job.summary[action]} to {action}")
    return count_outcomes(job.summary) or ", ".join(planned) or "nothing to do"


def _differing(job: JobResult) -> Iterator[str]:
    """Yield what differs, would change, or was changed by others: equal ones in one line."""
    targets, verb = job.outside, ""
    note_of: Callable[[DifferingTarget], str] = _by_others
    if job.would_change:
        targets, note_of = job.would_change, _no_note
    elif job.drift:
        targets, note_of, verb = job.reported_drift, _since, " differ"
    alike = defaultdict[tuple[str, str], list[PlacedName]](list)
    for target in targets:
        alike[note_of(target), ", ".join(target.changes)].append(placed_name(target))
    rows = []
    for (note, changes), placed_names in alike.items():
        for names in named_targets(placed_names):
            rows.append((names, note, changes))
    for names, note, changes in rows[:_DRIFTING]:
        place = "/".join(filter(None, (names_of_servers(names.servers), names.database)))
        shown = names._replace(place="").listed()
        if verb:
            shown += f"{verb}s" if names.names == 1 else verb
        yield f"{place}: {shown}{note}: {changes}"
    more = sum(names.size for names, _, _ in rows[_DRIFTING:])
    if more:
        yield f"{plural(more, 'more target')}; see its plan above, or --format json"


def _no_note(_: DifferingTarget) -> str:
    return ""


def _by_others(target: DifferingTarget) -> str:
    """Return that others changed a target, and who."""
    by = f" by {', '.join(target.by)}" if target.by else ""
    return f" changed outside{by}"


def _since(target: DifferingTarget) -> str:
    """Return since when a target differs, and by whom."""
    since = "new" if target.nights == 1 else f"for {target.nights} nights"
    if target.by:
        since += f", by {', '.join(target.by)}"
    return f" ({since})"


def _notes(result: BatchResult) -> Iterator[str]:
    if result.remedy:
        yield f"→ {result.remedy}"
    starts = list(map(local_time, result.missed))
    if len(starts) > _MISSED:
        starts = [f"{len(starts)} starts from {starts[0]} to {starts[-1]}"]
    for start in starts:
        yield f"missed: {start}"
    for sent in result.deliveries:
        if sent.error:
            yield f"{sent.kind} {sent.to}: not delivered: {sent.error}"
    yield from _next_commands(result)


def _next_commands(result: BatchResult) -> Iterator[str]:
    """Yield the commands that show details, and that run again what is not done."""
    state = f" --state-dir {shlex.quote(result.state_dir)}" if result.state_dir else ""
    details = []
    for job in result.jobs:
        if job.outside or not job.done:
            details += [f"msauto history {run}{state}" for run in job.runs]
    if details:
        yield f"→ for details: {', '.join(details)}"
    is_done = not result.code and all(job.done for job in result.jobs)
    if is_done or result.check:  # a check is not recorded
        return
    command = f"msauto batch run {shlex.quote(result.file)}"
    may_be_unrecorded = result.reason and result.outcome == "failed"
    if not may_be_unrecorded:
        command += " --failed"
    if result.window:
        command += " --now"
    yield f"→ to run these jobs again: {command}{state}"


# The week -------------------------------------------------------------------------------------------------------------


class WeekLine(NamedTuple):
    """What became of targets of a job in a week: the word, and their names; visible."""

    job: str
    word: str
    names: str


def week_of(
    result: BatchResult, place: LedgerPlace | None, *, tonight: bool = False
) -> Sequence[WeekLine]:
    """Return what became of targets in the seven days before a batch; ``tonight``: until its end.

    A ledger that cannot be read is reported where it is used: a summary is written without it.
    """
    lines: list[WeekLine] = []
    if place is None:
        return lines
    with suppress(LedgerError), Ledger.open(place, readonly=True) as ledger:
        jobs: dict[str, list[JobResult]] = {}
        for night in results_since(ledger, result, _WEEK):
            if tonight or night.run != result.run:
                for job in night.jobs:
                    jobs.setdefault(job.job, []).append(job)
        for name, results in jobs.items():
            of_job = list(_lines_of_job(visible(name), results, ledger))
            of_job.sort(key=lambda line: _WORDS.index(line.word))
            lines += of_job
    return lines


def _lines_of_job(job: str, results: Sequence[JobResult], ledger: Ledger) -> Iterator[WeekLine]:
    """Yield what became of the targets of a job."""
    refused = [result for result in results if result.outcome == "refused"]
    others = [result for result in results if result.outcome != "refused"]
    reasons = [visible(result.reason) for result in refused if not result.losses]
    for reason in dict.fromkeys(reasons):
        yield WeekLine(job, "refused", reason)
    names_of: dict[str, dict[PlacedName, None]] = {}
    unnamed = Counter[str]()
    for result in results:
        for word, name in _names_of(result, ledger):
            names_of.setdefault(word, {})[name] = None
        unnamed |= _unnamed(result)  # the same targets may fail each night
    for word, names in names_of.items():
        shown = bounded_names(named_targets(names), _MOST_OF_WEEK, unnamed[word])
        yield WeekLine(job, word, shown)
    for word, nights in (("refused", refused), ("removed", others)):
        for line in loss_lines(_united_losses(nights), _MOST_OF_WEEK):
            yield WeekLine(job, word, line)


def _unnamed(result: JobResult) -> Counter[str]:
    """Return of how many targets the result has no name, by what became of them."""
    unnamed = Counter[str]()
    for cause in result.causes:
        unnamed[cause.outcome] += cause.count - len(cause.names)
    return unnamed


def _united_losses(results: Iterable[JobResult]) -> list[Loss]:
    """Return the losses of several nights, each title once."""
    titles_of: dict[tuple[str, str], dict[str, None]] = {}
    for result in results:
        for loss in result.losses:
            titles = titles_of.setdefault((loss.what, loss.about), {})
            titles |= dict.fromkeys(loss.names)
    return [Loss(what, tuple(titles), about) for (what, about), titles in titles_of.items()]


def _names_of(result: JobResult, ledger: Ledger) -> Iterator[tuple[str, PlacedName]]:
    """Yield what became of targets, with their names."""
    for run in result.runs:
        for server, database, name in ledger.names_changed(run):
            yield "changed", (server, database, name)
    for target in result.outside:
        yield "changed outside", placed_name(target)
    for skipped in result.skipped:
        yield "gone" if skipped.reason == "gone" else "skipped", placed_name(skipped)
    for cause in result.causes:
        for name in cause.names:
            yield cause.outcome, (cause.server, "", name)


# Forms ----------------------------------------------------------------------------------------------------------------


def render_text(
    result: BatchResult, place: LedgerPlace | None = None, *, layout: Layout = PLAIN
) -> str:
    """Return the summary for a terminal or a mail."""
    summary = summarize(result, place)
    style: Style = "red" if result.code else "green"
    lines = [words(summary.heading, style)]
    lines += [*_job_lines(summary.jobs), *map(words, summary.differing)]
    if summary.week:
        lines.append(words("The 7 days before:"))
    for line in summary.week:
        lines.append(listing(f"  {line.job} {line.word}: {line.names}", hang=4))
    # Commands are copied whole.
    lines += [structs.replace(words(note), wrapped=False) for note in summary.notes]
    return "".join(render_lines(lines, layout))


def render_job(job: JobResult) -> str:
    """Return what came of one job, for a terminal."""
    summary = summarize_job(job)
    lines = [*_job_lines([summary])]
    lines += [words(" ".join(point.lines)) for point in summary.differing]
    return "".join(render_lines(lines, PLAIN))


def _job_lines(jobs: Sequence[JobSummary]) -> Iterator[Line]:
    """Yield the lines of each job: its outcome, then why targets are not done, then what was changed."""
    heads = aligned([[f"  {visible(job.result.job)}", job.outcome, job.took] for job in jobs])
    width = max(map(display_width, heads), default=0)
    hang = min(width + 2, _WIDEST)
    for head, job in zip(heads, jobs, strict=True):
        yield words(f"{pad(head, width)}  {job.details}", hang=hang)
        for cause in job.causes:
            reason, *more = cause.lines
            yield words(f"    {reason}", hang=8)
            for line in more:
                yield words(f"        {line}", hang=10)
        for line in filter(None, [job.changed, *job.advice]):
            yield words(f"    {line}", hang=8)
        for point in job.named:
            for line in point.lines:
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
    more_data: list[dict[str, Any]] = []
    summary = summarize(result, place)
    for shown in summary.jobs:
        more_data += _more_data(shown, is_listed=shown.result.job in parts)
    ended = f"took {_took(result)}" if result.ended else ""
    started_by = user_at(result.user, result.host)
    facts = (started_by, local_time(result.started), ended, f"msauto {result.msauto}")
    pieces = render_page(
        PageHead(result.batch, result.outcome, result.sentence, facts),
        [*parts.values()],
        more_data=more_data,
        name="plugins/batch/summary.html.j2",
        summary=summary._replace(notes=(*unread, *summary.notes)),
        words=("interrupted", *_WORDS, "locked", "differs"),
        listed={row["job"] for row in more_data} | {part.job for part in parts.values()},
        local_time=lambda time: local_time(time) if time else "",
    )
    return "".join(pieces)


def _parts(jobs: Iterable[JobResult], ledger: Ledger) -> dict[str, PagePart]:
    """Return the targets of those jobs for which the page has room, by the names of the jobs."""
    parts = {}
    room = _MOST_TARGETS
    for job in jobs:
        size = sum(job.summary.get(name, 0) for name in COUNT_OF.values())
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


def _more_data(job: JobSummary, *, is_listed: bool) -> Iterator[dict[str, Any]]:
    """Yield the data of targets that no run has: what differs, what is skipped, and what a job without a list lacks."""
    result = job.result
    rows = []
    for target in result.reported_drift:
        lines = [*map(visible, target.changes), visible(f"it differs{_since(target)}")]
        rows.append(_row("differs", lines, target))
    for group in skipped_groups(result.skipped, whole=True):
        rows += [_row("skipped", [group.reason], target) for target in group.targets]
    if not is_listed:
        changed, wanted = result.written
        left = wanted - changed
        for point in job.causes:
            rows.append({**_row(point.status, point.lines), "count": point.targets})
            left -= point.targets
        if left > 0:
            status = "not attempted" if result.outcome == "failed" else result.outcome
            rows.append({**_row(status, [plural(left, "target"), job.details]), "count": left})
    for number, row in enumerate(rows):
        link = f"{quote(result.job, errors='backslashreplace')}~{number}"
        yield {**row, "id": link, "job": visible(result.job)}


def _row(
    status: str, lines: Sequence[str], target: DifferingTarget | SkippedTarget | None = None
) -> dict[str, Any]:
    """Return the data of a row, which has the first of the lines as its name if it is not one target."""
    data = {"status": status, "result": [["note", line] for line in lines]}
    if target is None:
        return {**data, "name": lines[0], "server": ""}
    for key in ("kind", "server", "database", "name"):
        data[key] = show(getattr(target, key))
    return data


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
        lambda result, place: template("plugins/batch/summary.md.j2").render(
            summary=summarize(result, place)
        ),
    ),
    "html": ("html", _render_html),
}
"""The ending of a report file, and the form."""
