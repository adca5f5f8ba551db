"""What came of a batch: one value, which the ledger keeps; and the status of its jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, structs

from msauto import codec
from msauto.errors import LedgerError
from msauto.exit_codes import INCOMPLETE, INTERRUPTED, LOCKED, OK, REFUSED
from msauto.ledger.ledger import Ledger, LedgerPlace
from msauto.model.plan import SkippedTarget
from msauto.model.result import COUNT_OF, RunSummary, format_time, parse_time
from msauto.playbook.change_windows import freeze_at
from msauto.plugins.batch.batch_file import BatchFile, Job
from msauto.plugins.batch.causes import Causes
from msauto.plugins.batch.schedule import due_starts
from msauto.report.layout import Style, aligned, paint
from msauto.report.losses import Loss
from msauto.report.result_view import NOT_DONE
from msauto.report.sanitizing import display_width, parts_of_width, visible
from msauto.report.texts import local_time, plural

EndOutcome = Literal["ok", "failed", "refused", "locked", "interrupted"]
JobOutcome = Literal[EndOutcome, "skipped", "not attempted"]
MessageKind = Literal["heartbeat", "notice", "metrics", "report", "program"]
BatchOutcome = Literal["running", "ok", "failed", "refused", "locked", "missed", "interrupted"]
FORMAT: Final = "msauto-batch"
DIFFERING: Final = "differing"
"""In the summary of a plan: how many targets differ."""
_OUTCOMES: Final[dict[int, EndOutcome]] = {
    OK: "ok",
    REFUSED: "refused",
    LOCKED: "locked",
    INTERRUPTED: "interrupted",
}

_DAY, _TIME = (
    "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
    "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]",
)
_MOMENT = f"^{_DAY}T{_TIME}"
Moment = Annotated[str, Meta(description="a time, ISO 8601 in UTC", pattern=_MOMENT)]
WhenRun = Annotated[Moment | None, Meta(description="null if it was not run")]


class DifferingTarget(Struct, frozen=True, kw_only=True):
    """A target that differs from the playbooks, or that others have changed since the last run.

    Attributes:
        server: its name in the inventory
        database: its media database; empty for an RSS channel
        kind: asset, rss_channel or database
        name: its title or name
        changes: what differs: aspect and key
        nights: how many nights in a row it differs
        reported: whether it differs long enough to be reported
        seen: whether this run found it; otherwise it is known from an earlier one
        by: the users that the server names in what differs
        night: the start of the last of these nights: a rerun is the same night
    """

    server: str
    database: str
    kind: str
    name: str
    changes: tuple[str, ...]
    nights: Annotated[int, Meta(ge=1)] = 1
    reported: bool = True
    seen: bool = True
    by: tuple[str, ...] = ()
    night: str = ""

    @property
    def id(self) -> tuple[str, str, str, str]:
        """What identifies it from one night to the next."""
        return (self.server, self.database, self.kind, self.name)


DifferingTargets = tuple[DifferingTarget, ...]


class JobResult(Struct, frozen=True, kw_only=True):
    """What came of one job.

    Attributes:
        job: its name
        outcome: how it ended
        code: its exit code; null if it was not run
        reason: why it is not ok, or was not run
        remedy: what to do, where no cause has it
        attempts: how often it was planned
        runs: the runs in the history that sent requests
        summary: the counts of the plan, and of the outcomes
        causes: why targets are not done, worst first
        changed: how many targets were changed, by server
        outside: what others have changed since the last run, and it changes
        warnings: what its plan warned of
        skipped: targets that it did not treat: not those where `when` is false as in the last run
        drift: with do: plan, what was last seen to differ
        would_change: with --check, what it would change, each with its action
        losses: what it deleted or removed; refused, what it would
        last_success: the end of its last run that was ok
    """

    job: str
    outcome: JobOutcome = "not attempted"
    code: int | None = None
    reason: str = ""
    remedy: str = ""
    attempts: Annotated[int, Meta(ge=0)] = 0
    started: WhenRun = None
    ended: WhenRun = None
    runs: tuple[str, ...] = ()
    summary: dict[str, int] = {}
    causes: Causes = ()
    changed: dict[str, int] = {}
    outside: DifferingTargets = ()
    warnings: tuple[str, ...] = ()
    skipped: tuple[SkippedTarget, ...] = ()
    drift: DifferingTargets = ()
    would_change: DifferingTargets = ()
    losses: tuple[Loss, ...] = ()
    last_success: Moment | None = None

    @property
    def done(self) -> bool:
        """Whether nothing is left to do: it was ok, or an optional plan is missing."""
        return self.code == 0

    @property
    def reported_drift(self) -> DifferingTargets:
        """The targets that this run found to differ, long enough to be reported."""
        return tuple(target for target in self.drift if target.reported and target.seen)

    @property
    def written(self) -> tuple[int, int]:
        """How many targets were written, and how many were to be."""
        changed = self.summary.get("changed", 0)
        missing = sum(self.summary.get(COUNT_OF[outcome], 0) for outcome in NOT_DONE)
        return changed, changed + missing


class SentMessage(Struct, frozen=True, kw_only=True):
    """A message to another system; ``error`` never contains a secret.

    Attributes:
        kind: what was delivered
        to: where, without secrets
        events: why: the events of a notice
        error: why it was not delivered; empty: it was
    """

    kind: MessageKind
    to: str = ""
    events: tuple[str, ...] = ()
    error: str = ""


SentMessages = tuple[SentMessage, ...]


class BatchResult(Struct, frozen=True, kw_only=True):
    """A batch: its jobs in their order. Times are ISO 8601 in UTC.

    Attributes:
        run: its id in the history
        batch: the name of the batch
        file: the batch file
        outcome: how it ended
        code: its exit code; null while it runs
        reason: why no job was run
        remedy: what to do about that
        window: the window of the batch; empty without one
        scheduled: the start of the schedule; null: by hand
        started: when it started
        ended: null while it runs
        missed: starts of the schedule that were not run
        handled: starts until then are run, missed or refused
        jobs: its jobs
        earlier: the last results of jobs that this batch did not include
        deliveries: messages to other systems
        recovered: it is ok, and the batch before it was not
        drift_changed: other targets differ than the night before
        check: only planned (--check)
        msauto: the version of msauto
        user: who started it
        host: on which machine
        state_dir: the folder of the ledger, if one was given
        traceparent: W3C trace context of what started it
    """

    format: Literal["msauto-batch"] = FORMAT
    version: Literal[1] = 1
    run: str
    batch: str
    file: str
    outcome: BatchOutcome = "running"
    code: int | None = None
    reason: str = ""
    remedy: str = ""
    window: str = ""
    scheduled: Moment | None = None
    started: Moment
    ended: Moment | None = None
    missed: tuple[Moment, ...] = ()
    handled: Moment | None = None
    jobs: tuple[JobResult, ...] = ()
    earlier: tuple[JobResult, ...] = ()
    deliveries: SentMessages = ()
    recovered: bool = False
    drift_changed: bool = False
    check: bool = False
    msauto: str = ""
    user: str = ""
    host: str = ""
    state_dir: str = ""
    traceparent: str = ""

    def last_of(self, job: str) -> JobResult | None:
        """Return the last result of a job, also of one that this batch did not include."""
        for result in (*self.jobs, *self.earlier):
            if result.job == job:
                return result
        return None

    @property
    def heading(self) -> str:
        """The outcome in one line."""
        return f"{self.batch}: {self.outcome}: {self.sentence}"

    @property
    def sentence(self) -> str:
        """What came of the jobs, or why none was run."""
        if not self.jobs:
            return self.reason
        not_ok = changed = wanted = 0
        for job in self.jobs:
            job_changed, job_wanted = job.written
            changed += job_changed
            wanted += job_wanted
            not_ok += not job.done
        sentence = f"{plural(len(self.jobs), 'job')} ok"
        if not_ok:
            sentence = f"{not_ok} of {plural(len(self.jobs), 'job')} not ok"
        if wanted > changed:
            sentence += f"; {changed} of {plural(wanted, 'target')} written"
        elif changed:
            sentence += f", {plural(changed, 'target')} changed"
        if self.reason:
            sentence += f" ({self.reason})"
        return sentence


def outcome_of(code: int) -> EndOutcome:
    """Return how a job or batch with this exit code ended."""
    return _OUTCOMES.get(code, "failed")


def code_of(jobs: Iterable[JobResult]) -> int:
    """Return the exit code of a batch: of one job its own, of several the one in which all failures agree, else 3.

    A job that was skipped because of another has no code, and does not count.
    """
    codes = {job.code or OK for job in jobs} - {OK}
    if INTERRUPTED in codes:
        return INTERRUPTED
    if len(codes) > 1:
        return INCOMPLETE
    return codes.pop() if codes else OK


def batch_result_schema() -> dict[str, Any]:
    """Return the JSON Schema of the summary (``msauto schema batch-result``)."""
    _, parts = codec.describe_types(BatchResult)
    return codec.schema_document("msauto batch result", parts.pop("BatchResult"), parts)


def record_result(ledger: Ledger, result: BatchResult, folder: str, repository: str = "") -> None:
    """Record a batch as far as it got; ``folder`` is the working directory, ``repository`` that of its file."""
    outcomes = Counter(job.outcome.replace(" ", "_") for job in result.jobs)
    reason = f"{result.outcome}: {result.sentence}" if result.ended else ""
    summary = RunSummary(
        run=result.run,
        started=result.started,
        ended=result.ended,
        status=result.outcome,
        playbooks=(result.file,),
        summary=dict(outcomes),
        code=result.code,
        reason=reason,
        user=result.user,
        host=result.host,
        folder=folder,
        batch=result.batch,
        repository=repository,
    )
    ledger.record_batch(summary, codec.dump(result), ran=bool(result.jobs))


BatchId = tuple[str, str]
"""The name of a batch, and its repository."""


def id_of(summary: RunSummary) -> BatchId:
    """Return to which batch a run belongs."""
    return summary.batch, summary.repository


def past_results(ledger: Ledger, batch: BatchId | None = None) -> Iterator[BatchResult]:
    """Yield the results of a batch, or of all, newest first; one whose process died is interrupted."""
    for summary, record in ledger.batches():
        if batch is not None and id_of(summary) != batch:
            continue
        try:
            result = codec.load(BatchResult, record)
        except ValueError as error:
            raise LedgerError(
                f"the ledger {ledger.name} has a batch that this msauto cannot read: {error}",
                remedy="use the msauto that wrote it, or choose another --state-dir",
            ) from None
        if summary.status == "died":
            result = _died(result, summary.reason)
        yield result


def _died(result: BatchResult, why: str) -> BatchResult:
    """Return the result of a batch whose process died: so did the job that it ran."""
    jobs = list(result.jobs)
    for job in _waiting(result)[:1]:
        died = structs.replace(job, outcome="interrupted", reason=why, remedy="run it again")
        jobs[jobs.index(job)] = died
    return structs.replace(result, outcome="interrupted", reason=why, jobs=tuple(jobs))


def results_since(ledger: Ledger, result: BatchResult, age: timedelta) -> list[BatchResult]:
    """Return a batch and those of it that started at most so long before, newest first; empty if it is not recorded."""
    since = format_time(parse_time(result.started) - age)
    results = []
    for summary, _ in ledger.batches():
        if summary.run == result.run:
            for night in past_results(ledger, id_of(summary)):
                if since < night.started <= result.started:
                    results.append(night)
    return results


def read_result(place: LedgerPlace, summary: RunSummary) -> BatchResult:
    """Return the result of a batch of the ledger."""
    with Ledger.open(place, readonly=True) as ledger:
        results = past_results(ledger, id_of(summary))
        return next(result for result in results if result.run == summary.run)


def last_job(place: LedgerPlace, attempt: RunSummary) -> JobResult | None:
    """Return what came of the job to which an attempt belongs, in the batch that made the attempt."""
    with Ledger.open(place, readonly=True) as ledger:
        for batch in past_results(ledger):
            is_during = batch.started <= attempt.started <= (batch.ended or attempt.started)
            if is_during and batch.batch == attempt.batch:
                return batch.last_of(attempt.job)
    return None


def last_result(ledger: Ledger, batch: BatchId) -> BatchResult | None:
    """Return the newest result, with the jobs of the one before as ``earlier`` if it ran none.

    That is the one that runs, whatever starts it has locked out.
    """
    results = list(past_results(ledger, batch))
    if not results:
        return None
    moments = [result.handled for result in results if result.handled is not None]
    newest = structs.replace(results[0], handled=next(iter(moments), None))  # clocks may go back
    if newest.jobs:
        return newest
    for result in results:
        if result.jobs:
            if newest.outcome == "locked" and result.outcome == "running":
                return structs.replace(result, handled=newest.handled)
            return structs.replace(newest, earlier=(*result.jobs, *result.earlier))
    return newest


def outcome_text(outcome: str, code: int | None) -> str:
    """Return how a job ended, with its exit code."""
    return f"{outcome} ({code})" if code else outcome


class JobStatus(Struct, frozen=True, kw_only=True):
    """The keys of ``msauto batch status --format json``. Times are ISO 8601 in UTC.

    ``outcome`` is the last one; in a batch that runs, ``running`` or ``waiting`` of a job that has not ended.
    ``frozen`` is the freeze at the next start, ``missed`` the newest start, if no job was run; ``late``: there is no
    recent success, or its time is in the future.
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
    missed: str | None = None
    causes: Causes = ()


def status_of(
    last: BatchResult | None, batch: BatchFile | None, now: datetime, max_age: timedelta
) -> Iterator[JobStatus]:
    """Yield the status of each job of a batch file; without it, of each job in the last result."""
    jobs: dict[str, Job | None] = {}
    name, start, next_start = "", None, None
    if last is not None:
        name = last.batch
        jobs = dict.fromkeys(result.job for result in (*last.jobs, *last.earlier))
    if batch is not None:
        name = batch.name
        jobs = {job.name: job for job in batch.jobs}
        start = batch.schedule.next_start(now)
        next_start = format_time(start)
    missed = _missed(last, batch, now)
    waiting = _waiting(last)
    for job_name, job in jobs.items():
        result = (last and last.last_of(job_name)) or JobResult(job=job_name)
        outcome: str = result.outcome
        if result in waiting:
            outcome = "running" if result is waiting[0] else "waiting"
        freeze = job and start and freeze_at(job.settings().freezes, start)
        success = result.last_success
        is_recent = success is not None and now - max_age <= parse_time(success) <= now
        yield JobStatus(
            batch=name,
            job=job_name,
            outcome=outcome,
            code=result.code,
            reason=result.reason,
            causes=result.causes,
            last_success=success,
            late=not is_recent,
            next_start=next_start,
            frozen=str(freeze) if freeze else None,
            missed=missed,
        )


def _missed(last: BatchResult | None, batch: BatchFile | None, now: datetime) -> str | None:
    """Return the newest start of the schedule, if it was missed: none was made, or it was outside of the window."""
    if last is None:
        return None
    if batch is not None and last.handled is not None:
        due = due_starts(batch.schedule, batch.window, parse_time(last.handled), now)
        if due.missed and due.now is None:
            return format_time(due.missed[-1])
    if last.outcome == "missed":
        return max(last.missed, default=last.started)
    return None


def _waiting(last: BatchResult | None) -> list[JobResult]:
    """Return the jobs of a batch that runs which have not ended; the first of them runs."""
    waiting: list[JobResult] = []
    if last is not None and last.outcome == "running":
        for result in last.jobs:
            if result.attempts == 0 and result.outcome == "not attempted":
                waiting.append(result)
    return waiting


def show_status(
    statuses: Sequence[JobStatus], now: datetime, width: int | None, *, colour: bool
) -> Iterator[str]:
    """Yield the lines of each status: batch, job, last outcome and why; below it last success, next start and freeze.

    ``width``: the columns of the terminal, at which the reason is cut; ``None``: nothing is cut.
    """
    heads = aligned(
        [
            [status.batch, status.job, outcome_text(status.outcome, status.code)]
            for status in statuses
        ]
    )
    for status, head in zip(statuses, heads, strict=True):
        first = visible(f"{head}  {_why(status)}".rstrip())
        if width is not None and display_width(first) > width:
            first = f"{next(parts_of_width(first, width - 1))}…"
        style: Style = ""
        if status.code:
            style = "red"
        elif status.late:
            style = "yellow"
        yield paint(first, style, colour=colour)
        start = "next start unknown"
        if status.next_start:
            start = f"next {local_time(status.next_start)}"
        yield f"  {_last_ok(status, now)}, {start}"
        if status.missed:
            yield paint(f"  missed: {local_time(status.missed)}", "yellow", colour=colour)
        if status.frozen:
            yield f"  frozen: {visible(status.frozen)}"


def _why(status: JobStatus) -> str:
    causes = ", ".join(
        f"{cause.count} {cause.kind or cause.outcome} on {cause.server}" for cause in status.causes
    )
    if causes and status.outcome == "refused":  # what was refused is not what the causes kept back
        return f"{status.reason}; {causes}"
    return causes or status.reason


def _last_ok(status: JobStatus, now: datetime) -> str:
    if not status.last_success:
        return "never ok"
    text = f"last ok {local_time(status.last_success)}"
    if status.late:
        is_future = parse_time(status.last_success) > now
        text += " (in the future)" if is_future else " (too long ago)"
    return text
