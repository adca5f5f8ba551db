"""What came of a batch: one value, which the ledger keeps; the status of its jobs; and the summary in every form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from datetime import datetime, timedelta
from itertools import chain
from typing import Annotated, Any, Final, Literal, get_args
from urllib.parse import quote

from msgspec import Meta, Struct, structs

from msauto import codec
from msauto.batch.batch_file import BatchFile
from msauto.errors import LedgerError
from msauto.exit_codes import INCOMPLETE, INTERRUPTED, LOCKED, OK, REFUSED
from msauto.ledger.ledger import Ledger, LedgerPlace
from msauto.model.plan import Action
from msauto.model.result import OUTCOMES, RunSummary, format_time, key_of, parse_time, seconds_between, user_at
from msauto.playbook.change_windows import freeze_at
from msauto.report.ci_forms import TestCase, render_xml, suite_of
from msauto.report.json import dump
from msauto.report.layout import GREEN, RED, aligned, paint, template
from msauto.report.sanitizing import show, visible
from msauto.report.texts import count_outcomes, local_time, plural, show_seconds

EndOutcome = Literal["ok", "failed", "refused", "locked", "interrupted"]
JobOutcome = Literal[EndOutcome, "skipped", "not attempted"]
MessageKind = Literal["heartbeat", "notice", "metrics", "report", "program"]
BatchOutcome = Literal["running", "ok", "failed", "refused", "locked", "missed", "interrupted"]
FORMAT: Final = "msauto-batch"
_OUTCOMES: Final[dict[int, EndOutcome]] = {OK: "ok", REFUSED: "refused", LOCKED: "locked", INTERRUPTED: "interrupted"}
_DRIFTING: Final = 10
"""How many targets of a job are listed that differ, or that it would change; the JSON holds all."""
_MOST_TARGETS: Final = 5000
"""How many targets the page of a batch holds: a job that has more is shown by ``msauto report``."""

Moment = Annotated[str, Meta(description="a time, ISO 8601 in UTC")]


class DifferingTarget(Struct, frozen=True, kw_only=True):
    """A target that differs from the playbooks, found by a job with ``do: plan``."""

    server: Annotated[str, Meta(description="its name in the inventory")]
    database: Annotated[str, Meta(description="its media database; empty for an RSS channel")]
    kind: Annotated[str, Meta(description="asset, rss_channel or database")]
    name: Annotated[str, Meta(description="its title or name")]
    changes: Annotated[tuple[str, ...], Meta(description="what differs: aspect and key")]
    nights: Annotated[int, Meta(ge=1, description="how many runs in a row found it to differ")] = 1
    reported: Annotated[bool, Meta(description="whether it differs long enough to be reported")] = True
    by: Annotated[tuple[str, ...], Meta(description="the users that the server names in what differs")] = ()

    @property
    def id(self) -> tuple[str, str, str, str]:
        """What identifies it from one night to the next."""
        return (self.server, self.database, self.kind, self.name)


class JobResult(Struct, frozen=True, kw_only=True):
    """What came of one job."""

    job: Annotated[str, Meta(description="its name")]
    outcome: Annotated[JobOutcome, Meta(description="how it ended")] = "not attempted"
    code: Annotated[int | None, Meta(description="its exit code; null if it was not run")] = None
    reason: Annotated[str, Meta(description="why it is not ok, or was not run")] = ""
    attempts: Annotated[int, Meta(ge=0, description="how often it was planned")] = 0
    started: Annotated[Moment | None, Meta(description="null if it was not run")] = None
    ended: Annotated[Moment | None, Meta(description="null if it was not run")] = None
    runs: Annotated[tuple[str, ...], Meta(description="the runs in the history that sent requests")] = ()
    summary: Annotated[dict[str, int], Meta(description="the counts of the plan, and of the outcomes")] = {}
    warnings: Annotated[tuple[str, ...], Meta(description="what its plan warned of")] = ()
    drift: Annotated[tuple[DifferingTarget, ...], Meta(description="with do: plan, what was last seen to differ")] = ()
    would_change: Annotated[
        tuple[DifferingTarget, ...], Meta(description="with --check, what it would change, each with its action")
    ] = ()
    last_success: Annotated[Moment | None, Meta(description="the end of its last run that was ok")] = None

    @property
    def done(self) -> bool:
        """Whether nothing is left to do: it was ok, or an optional plan is missing."""
        return self.code == 0

    @property
    def reported_drift(self) -> tuple[DifferingTarget, ...]:
        """The targets that this run found to differ, long enough to be reported."""
        return tuple(each for each in self.drift if each.reported) if self.done else ()


class SentMessage(Struct, frozen=True, kw_only=True):
    """A message to another system; ``error`` never contains a secret."""

    kind: Annotated[MessageKind, Meta(description="what was delivered")]
    to: Annotated[str, Meta(description="where, without secrets")] = ""
    events: Annotated[tuple[str, ...], Meta(description="why: the events of a notice")] = ()
    error: Annotated[str, Meta(description="why it was not delivered; empty: it was")] = ""


class BatchResult(Struct, frozen=True, kw_only=True):
    """A batch: its jobs in their order. Times are ISO 8601 in UTC."""

    format: Literal["msauto-batch"] = FORMAT
    version: Literal[1] = 1
    run: Annotated[str, Meta(description="its id in the history")]
    batch: Annotated[str, Meta(description="the name of the batch")]
    file: Annotated[str, Meta(description="the batch file")]
    outcome: Annotated[BatchOutcome, Meta(description="how it ended")] = "running"
    code: Annotated[int | None, Meta(description="its exit code; null while it runs")] = None
    reason: Annotated[str, Meta(description="why no job was run")] = ""
    scheduled: Annotated[Moment | None, Meta(description="the start of the schedule; null: by hand")] = None
    started: Annotated[Moment, Meta(description="when it started")]
    ended: Annotated[Moment | None, Meta(description="null while it runs")] = None
    missed: Annotated[tuple[Moment, ...], Meta(description="starts of the schedule that were not run")] = ()
    handled: Annotated[Moment | None, Meta(description="starts until then are run, missed or refused")] = None
    jobs: Annotated[tuple[JobResult, ...], Meta(description="its jobs")] = ()
    earlier: Annotated[
        tuple[JobResult, ...], Meta(description="the last results of jobs that this batch did not include")
    ] = ()
    deliveries: Annotated[tuple[SentMessage, ...], Meta(description="messages to other systems")] = ()
    recovered: Annotated[bool, Meta(description="it is ok, and the batch before it was not")] = False
    drift_changed: Annotated[bool, Meta(description="other targets differ than the night before")] = False
    check: Annotated[bool, Meta(description="only planned (--check)")] = False
    msauto: Annotated[str, Meta(description="the version of msauto")] = ""
    user: Annotated[str, Meta(description="who started it")] = ""
    host: Annotated[str, Meta(description="on which machine")] = ""
    traceparent: Annotated[str, Meta(description="W3C trace context of what started it")] = ""

    def last_of(self, job: str) -> JobResult | None:
        """Return the last result of a job, also of one that this batch did not include."""
        return next((each for each in (*self.jobs, *self.earlier) if each.job == job), None)


def outcome_of(code: int) -> EndOutcome:
    """Return how a job or batch with this exit code ended."""
    return _OUTCOMES.get(code, "failed")


def code_of(jobs: Iterable[JobResult]) -> int:
    """Return the exit code of a batch: of one job its own, of several the one in which all failures agree, else 3.

    A job that was skipped because of another has no code, and does not count.
    """
    codes = {each.code for each in jobs if each.code}
    if INTERRUPTED in codes:
        return INTERRUPTED
    return codes.pop() if len(codes) == 1 else INCOMPLETE if codes else 0


def batch_result_schema() -> dict[str, Any]:
    """Return the JSON Schema of the summary (``msauto schema batch-result``)."""
    _, parts = codec.describe_types(BatchResult)
    document = parts.pop("BatchResult")
    for part in (document, *parts.values()):
        part.pop("title", None)
        part.pop("description", None)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "msauto batch result"}
    return {**head, **document, "$defs": dict(sorted(parts.items()))}


def record_result(ledger: Ledger, result: BatchResult, folder: str, repository: str = "") -> None:
    """Record a batch as far as it got; ``folder`` is the working directory, ``repository`` that of its file."""
    summary = RunSummary(
        run=result.run,
        started=result.started,
        ended=result.ended,
        status=result.outcome,
        playbooks=(result.file,),
        summary=dict(Counter(each.outcome.replace(" ", "_") for each in result.jobs)),
        code=result.code,
        reason=heading_of(result).partition(": ")[2] if result.ended else "",
        user=result.user,
        host=result.host,
        folder=folder,
        batch=result.batch,
        repository=repository,
    )
    ledger.record_batch(summary, codec.dump(result), ran=bool(result.jobs))


def past_results(ledger: Ledger, batch: str | None = None) -> Iterator[BatchResult]:
    """Yield the results of a batch, or of all, newest first; one whose process died is interrupted."""
    for summary, record in ledger.batches():
        if batch is None or summary.batch == batch:
            try:
                result = codec.load(BatchResult, record)
            except ValueError as error:
                raise LedgerError(
                    f"the ledger {ledger.name} has a batch that this msauto cannot read: {error}",
                    remedy="use the msauto that wrote it, or choose another --state-dir",
                ) from None
            died = summary.status == "died"
            yield structs.replace(result, outcome="interrupted", reason="its process died") if died else result


def read_result(place: LedgerPlace, summary: RunSummary) -> BatchResult:
    """Return the result of a batch of the ledger."""
    with Ledger.open(place, readonly=True) as ledger:
        return next(each for each in past_results(ledger, summary.batch) if each.run == summary.run)


def last_result(ledger: Ledger, batch: str) -> BatchResult | None:
    """Return the newest result, with the jobs of the one before as ``earlier`` if it ran none."""
    results = list(past_results(ledger, batch))
    if not results:
        return None
    handled = max((each.handled for each in results if each.handled is not None), default=None)
    newest = structs.replace(results[0], handled=handled)
    ran = next((each for each in results if each.jobs), newest)
    return newest if ran.run == newest.run else structs.replace(newest, earlier=(*ran.jobs, *ran.earlier))


class JobStatus(Struct, frozen=True, kw_only=True):
    """The keys of ``msauto batch status --format json``. Times are ISO 8601 in UTC.

    ``frozen`` is the freeze at the next start; ``late``: there is no recent success, or its time is in the future.
    """

    batch: str
    job: str
    outcome: str
    code: int | None
    reason: str
    last_success: str | None
    late: bool
    next_start: str | None = None
    frozen: str | None = None


def status_of(
    last: BatchResult | None, batch: BatchFile | None, now: datetime, max_age: timedelta
) -> Iterator[JobStatus]:
    """Yield the status of each job of a batch file; without it, of each job in the last result."""
    results = {each.job: each for each in (*last.jobs, *last.earlier)} if last is not None else {}
    jobs = dict.fromkeys(results) if batch is None else {job.name: job for job in batch.jobs}
    start = None if batch is None else batch.schedule.next_start(now)
    for name, job in jobs.items():
        result = results.get(name) or JobResult(job=name)
        frozen = freeze_at(job.settings().freezes, start) if job is not None and start is not None else None
        success = result.last_success
        yield JobStatus(
            batch=batch.name if batch is not None else last.batch if last is not None else "",
            job=name,
            outcome=result.outcome,
            code=result.code,
            reason=result.reason,
            last_success=success,
            late=success is None or not now - max_age <= parse_time(success) <= now,
            next_start=None if start is None else format_time(start),
            frozen=None if frozen is None else str(frozen),
        )


def status_row(status: JobStatus, zone: str, now: datetime) -> tuple[str, ...]:
    """Return a status as cells of a table: batch, job, last outcome, last success, next start, freeze."""
    outcome, success = outcome_text(status.outcome, status.code), "never"
    if status.last_success:
        success = local_time(status.last_success, zone)
        if status.late:
            success += " (in the future)" if parse_time(status.last_success) > now else " (too long ago)"
    start = local_time(status.next_start, zone) if status.next_start else "unknown"
    return status.batch, status.job, outcome, success, start, status.frozen or "no"


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


def render_text(result: BatchResult, zone: str, _: LedgerPlace | None = None, *, colour: bool = False) -> str:
    """Return the summary for a terminal or a mail; times in a time zone."""
    heading = paint(visible(heading_of(result)), RED if result.code else GREEN, colour=colour)
    rows = [[f"  {job}", *cells] for job, *cells in _rows(result)]
    return "".join(f"{line}\n" for line in (heading, *aligned(rows), *_drift_notes(result), *_notes(result, zone)))


def _render_markdown(result: BatchResult, zone: str, _: LedgerPlace | None) -> str:
    heading = visible(heading_of(result))
    more = chain(_drift_notes(result), _notes(result, zone))
    return template("batch/summary.md.j2").render(heading=heading, rows=_rows(result), more=more)


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
                unread.append(f"{job.job}: its changes are not on this page: msauto report {run}")
    who = user_at(result.user, result.host)
    ended = [f"took {_took(result.started, result.ended)}"] if result.ended else []
    head = f"{result.batch}: {result.outcome}: "
    return "".join(
        render_page(
            parts,
            heading_of(result).removeprefix(head),
            result.outcome,
            subject=result.batch,
            facts=(who, local_time(result.started, zone), *ended, f"msauto {result.msauto}"),
            more_data=[each for job in result.jobs for each in _drift_data(job)],
            name="batch/summary.html.j2",
            jobs=[(each, _took(each.started, each.ended), visible(_details_of(each))) for each in result.jobs],
            local_time=lambda time: local_time(time, zone) if time else "",
            notes=[*map(visible, unread), *_notes(result, zone)],
            drift=list(_drift_notes(result)),
        )
    )


def _drift_data(job: JobResult) -> Iterator[dict[str, Any]]:
    """Yield the data of the targets that differ."""
    for number, each in enumerate(job.reported_drift):
        names = {"id": f"{quote(job.job)}~{number}", "job": visible(job.job)}
        place = {"server": show(each.server), "database": show(each.database), "name": show(each.name)}
        lines = [["difference", visible(change)] for change in each.changes]
        lines.append(["advice", visible(f"it differs ({_since(each)})")])
        yield {**names, **place, "status": "differs", "result": lines}


def _rows(result: BatchResult) -> Iterator[tuple[str, str, str, str]]:
    """Yield each job with its outcome, its duration, and why it is not ok or its counts."""
    for each in result.jobs:
        took = _took(each.started, each.ended)
        yield each.job, outcome_text(each.outcome, each.code), took, visible(_details_of(each))


def _took(started: str | None, ended: str | None) -> str:
    """Return how long something took; empty if it did not run, or did not end."""
    return show_seconds(seconds_between(started, ended)) if started and ended else ""


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


def _drift_notes(result: BatchResult) -> Iterator[str]:
    """Yield what differs, and what would change, of each job."""
    for job in result.jobs:
        drift, planned = job.reported_drift, job.would_change
        found = (f"{_called(each)} differs ({_since(each)}): {', '.join(each.changes)}" for each in drift[:_DRIFTING])
        yield from (f"{job.job}: {visible(each)}" for each in found)
        if len(drift) > _DRIFTING:
            yield f"{job.job}: {len(drift) - _DRIFTING} more differ"
        sentences = (f"{_called(each)}: {', '.join(each.changes)}" for each in planned[:_DRIFTING])
        yield from (f"{job.job}: {visible(each)}" for each in sentences)
        if len(planned) > _DRIFTING:
            yield f"{job.job}: {plural(len(planned) - _DRIFTING, 'more target')}; see its plan above, or --format json"


def _notes(result: BatchResult, zone: str) -> Iterator[str]:
    """Yield what the rows do not hold: missed starts, what was not delivered, what to do next."""
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


def _since(target: DifferingTarget) -> str:
    """Return since when a target differs, and by whom."""
    new = "new" if target.nights == 1 else f"for {target.nights} nights"
    return ", by ".join(filter(None, (new, ", ".join(target.by))))


def _called(target: DifferingTarget) -> str:
    return f"{'/'.join(filter(None, (target.server, target.database)))}: {target.name}"


def render_json(result: BatchResult, _zone: str = "", _: LedgerPlace | None = None) -> str:
    """Return the summary as ``msauto-batch`` version 1."""
    return dump(codec.to_json(result))


def _render_junit(result: BatchResult, _zone: str, _: LedgerPlace | None) -> str:
    jobs = result.jobs or (JobResult(job=result.batch, code=result.code, reason=result.reason),)
    return render_xml(suite_of(result.batch, [_test_case(each, result) for each in jobs], time=result.started))


def _test_case(job: JobResult, result: BatchResult) -> TestCase:
    seconds = seconds_between(job.started, job.ended)
    if job.code or job.outcome == "not attempted":
        return TestCase(job.job, "failure", job.outcome, job.reason or result.reason, seconds=seconds)
    if job.outcome == "skipped":
        return TestCase(job.job, "skipped", message=job.reason or result.reason, seconds=seconds)
    return TestCase(job.job, details=_details_of(job), seconds=seconds)


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
