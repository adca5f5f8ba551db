"""``msauto batch status``: what is known of each job, and whether it was ok lately enough."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec import Struct

from msauto.batch.batch_file import BatchFile
from msauto.batch.batch_result import BatchResult, JobResult
from msauto.batch.batch_run import moment_of, time_text
from msauto.batch.batch_summary import local_time, outcome_text
from msauto.playbook.change_windows import freeze_at


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


def status_of_file(
    batch: BatchFile, last: BatchResult | None, now: datetime, max_age: timedelta
) -> Iterator[JobStatus]:
    """Yield the status of each job of a batch file."""
    start = batch.schedule.next_start(now)
    for job in batch.jobs:
        result = last.last_of(job.name) if last is not None else None
        frozen = freeze_at(job.settings().freezes, start)
        shown = str(frozen) if frozen is not None else None
        yield _status(batch.name, result or JobResult(job=job.name), now, max_age, time_text(start), shown)


def status_of_result(last: BatchResult, now: datetime, max_age: timedelta) -> Iterator[JobStatus]:
    """Yield the status of each job of a batch whose file is not known."""
    for result in (*last.jobs, *last.earlier):
        yield _status(last.batch, result, now, max_age)


def _status(
    batch: str,
    result: JobResult,
    now: datetime,
    max_age: timedelta,
    next_start: str | None = None,
    frozen: str | None = None,
) -> JobStatus:
    success = result.last_success
    return JobStatus(
        batch=batch,
        job=result.job,
        outcome=result.outcome,
        code=result.code,
        reason=result.reason,
        last_success=success,
        late=success is None or not now - max_age <= moment_of(success) <= now,
        next_start=next_start,
        frozen=frozen,
    )


def status_row(status: JobStatus, zone: str, now: datetime) -> tuple[str, ...]:
    """Return a status as cells of a table: batch, job, last outcome, last success, next start, freeze."""
    success = local_time(status.last_success, zone) if status.last_success else "never"
    late = ""
    if status.late and status.last_success:
        late = " (in the future)" if moment_of(status.last_success) > now else " (too long ago)"
    start = local_time(status.next_start, zone) if status.next_start else "unknown"
    return (
        status.batch,
        status.job,
        outcome_text(status.outcome, status.code),
        success + late,
        start,
        status.frozen or "no",
    )
