"""What the ledger knows of batches: the record of each from its start on, the last results, the status of each job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec import Struct, structs

from msauto.batch.batch_file import BatchFile
from msauto.batch.batch_result import BatchResult, JobResult
from msauto.batch.batch_summary import heading_of, local_time, outcome_text
from msauto.errors import LedgerError
from msauto.ledger import Ledger
from msauto.model.codec import dump, load
from msauto.model.result import RunSummary, format_time, parse_time
from msauto.playbook.change_windows import freeze_at


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
    ledger.record_batch(summary, dump(result), ran=bool(result.jobs))


def past_results(ledger: Ledger, batch: str | None = None) -> Iterator[BatchResult]:
    """Yield the results of a batch, or of all, newest first; one whose process died is interrupted."""
    for summary, record in ledger.batches():
        if batch is None or summary.batch == batch:
            try:
                result = load(BatchResult, record)
            except ValueError as error:
                raise LedgerError(
                    f"the ledger {ledger.name} has a batch that this msauto cannot read: {error}",
                    remedy="use the msauto that wrote it, or choose another --state-dir",
                ) from None
            died = summary.status == "died"
            yield structs.replace(result, outcome="interrupted", reason="its process died") if died else result


def last_result(ledger: Ledger, batch: str) -> BatchResult | None:
    """Return the newest result, with the jobs of the one before as ``earlier`` if it ran none."""
    results = list(past_results(ledger, batch))
    if not results:
        return None
    handled = max((each.handled for each in results if each.handled is not None), default=None)
    newest = structs.replace(results[0], handled=handled)
    ran = next((each for each in results if each.jobs), newest)
    return newest if ran.run == newest.run else structs.replace(newest, earlier=(*ran.jobs, *ran.earlier))


# Status ---------------------------------------------------------------------------------------------------------------


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
    success = local_time(status.last_success, zone) if status.last_success else "never"
    late = ""
    if status.late and status.last_success:
        late = " (in the future)" if parse_time(status.last_success) > now else " (too long ago)"
    start = local_time(status.next_start, zone) if status.next_start else "unknown"
    return (
        status.batch,
        status.job,
        outcome_text(status.outcome, status.code),
        success + late,
        start,
        status.frozen or "no",
    )
