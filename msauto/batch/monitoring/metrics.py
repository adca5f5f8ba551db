"""The metrics of a batch as a text file for the node exporter of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from msauto.batch.batch_result import BatchResult, JobResult
from msauto.batch.batch_run import moment_of, seconds_between
from msauto.errors import MsautoError

_Sample = tuple[str, str, dict[str, str], float]


def metrics_text(result: BatchResult) -> str:
    """Return the metrics; all times are in seconds. Jobs that this run did not include keep their last result."""
    try:
        from prometheus_client import CollectorRegistry, Gauge, generate_latest
    except ImportError:
        remedy = "pip install 'msauto[metrics]'"
        raise MsautoError(f"the package prometheus-client is not installed: {remedy}", remedy=remedy) from None
    registry = CollectorRegistry()
    gauges: dict[str, Gauge] = {}
    for name, text, labels, value in _samples(result):
        if name not in gauges:
            gauges[name] = Gauge(name, text, tuple(labels), registry=registry)
        gauges[name].labels(**labels).set(value)
    return generate_latest(registry).decode()


def _samples(result: BatchResult) -> Iterator[_Sample]:
    labels, ended = {"batch": result.batch}, _seconds(result.ended)
    yield "msauto_batch_exit_code", "Exit code of the last run", labels, float(result.code or 0)
    yield "msauto_batch_last_run_timestamp_seconds", "End of the last run", labels, ended
    yield (
        "msauto_batch_duration_seconds",
        "Duration of the last run",
        labels,
        seconds_between(result.started, result.ended),
    )
    yield "msauto_batch_missed_starts", "Starts that the last run found to be missed", labels, float(len(result.missed))
    for job in (*result.jobs, *result.earlier):
        for name, text, value in _of_job(job):
            yield name, text, labels | {"batch_job": job.job}, value  # Prometheus itself sets the label `job`


def _of_job(job: JobResult) -> Iterator[tuple[str, str, float]]:
    last = _seconds(job.last_success)
    yield "msauto_job_ok", "1 if the last result of the job is ok, else 0", float(job.done)
    yield "msauto_job_last_success_timestamp_seconds", "End of the last run that was ok; 0 without one", last
    yield (
        "msauto_job_duration_seconds",
        "Duration of the last run of the job, with its retries",
        seconds_between(job.started, job.ended),
    )
    yield "msauto_job_attempts", "Attempts of the last run of the job", float(job.attempts)
    yield "msauto_job_changed_targets", "Targets that the last run changed", float(job.summary.get("changed", 0))
    yield "msauto_job_drifting_targets", "Targets that differ from the playbooks", float(len(job.reported_drift))


def _seconds(moment: str | None) -> float:
    return moment_of(moment).timestamp() if moment is not None else 0.0
