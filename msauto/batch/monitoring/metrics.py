"""The metrics of a batch as a text file for the node exporter of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from msauto.batch.batch_result import BatchResult, JobResult
from msauto.batch.batch_run import moment_of
from msauto.errors import MsautoError

_JOB = ("batch", "batch_job")  # Prometheus itself sets the label `job`


def metrics_text(result: BatchResult) -> str:
    """Return the metrics; all times are in seconds. Jobs that this run did not include keep their last result."""
    try:
        from prometheus_client import CollectorRegistry, Gauge, generate_latest
    except ImportError:
        remedy = "pip install 'msauto[metrics]'"
        raise MsautoError(f"the package prometheus-client is not installed: {remedy}", remedy=remedy) from None
    registry = CollectorRegistry()
    batch = {
        "msauto_batch_exit_code": ("Exit code of the last run", float(result.code or 0)),
        "msauto_batch_last_run_timestamp_seconds": ("End of the last run", _seconds(result.ended)),
        "msauto_batch_duration_seconds": (
            "Duration of the last run",
            _seconds(result.ended) - _seconds(result.started),
        ),
        "msauto_batch_missed_starts": ("Starts of the schedule that were missed", float(len(result.missed))),
    }
    for name, (text, value) in batch.items():
        Gauge(name, text, ("batch",), registry=registry).labels(result.batch).set(value)
    gauges: dict[str, Gauge] = {}
    for job in (*result.jobs, *result.earlier):
        for name, text, value in _of_job(job):
            if name not in gauges:
                gauges[name] = Gauge(name, text, _JOB, registry=registry)
            gauges[name].labels(result.batch, job.job).set(value)
    return generate_latest(registry).decode()


def _of_job(job: JobResult) -> Iterator[tuple[str, str, float]]:
    yield "msauto_job_ok", "1 if the last result of the job is ok, else 0", float(job.done)
    if job.code is not None:
        yield "msauto_job_exit_code", "Exit code of the last run of the job", float(job.code)
    last = _seconds(job.last_success)
    yield "msauto_job_last_success_timestamp_seconds", "End of the last run that was ok; 0: there was none", last
    if job.started is not None:
        duration = _seconds(job.ended) - _seconds(job.started)
        yield "msauto_job_duration_seconds", "Duration of the last run of the job, with its retries", duration
    yield "msauto_job_attempts", "Attempts of the last run of the job", float(job.attempts)
    yield "msauto_job_changed_targets", "Targets that the last run changed", float(job.summary.get("changed", 0))
    yield "msauto_job_drifting_targets", "Targets that differ from the playbooks", float(len(job.reported_drift))


def _seconds(moment: str | None) -> float:
    return moment_of(moment).timestamp() if moment is not None else 0.0
