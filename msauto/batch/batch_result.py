"""What came of a batch: one value, which the ledger keeps, and from which every form of the summary is drawn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from msauto.exit_codes import INCOMPLETE, INTERRUPTED, LOCKED, OK, REFUSED
from msauto.model.codec import describe_types

JobOutcome = Literal["ok", "failed", "refused", "locked", "interrupted", "skipped", "not attempted"]
BatchOutcome = Literal["running", "ok", "failed", "refused", "locked", "missed", "interrupted"]
FORMAT: Final = "msauto-batch"
_OUTCOMES: Final[dict[int, Literal["ok", "refused", "locked", "interrupted"]]] = {
    OK: "ok",
    REFUSED: "refused",
    LOCKED: "locked",
    INTERRUPTED: "interrupted",
}

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
    drift: Annotated[tuple[DifferingTarget, ...], Meta(description="with do: plan, what differs")] = ()
    last_success: Annotated[Moment | None, Meta(description="the end of its last run that was ok")] = None

    @property
    def done(self) -> bool:
        """Whether nothing is left to do: it was ok, or an optional plan is missing."""
        return self.code == 0

    @property
    def reported_drift(self) -> tuple[DifferingTarget, ...]:
        """The targets that differ long enough to be reported."""
        return tuple(each for each in self.drift if each.reported)


class SentMessage(Struct, frozen=True, kw_only=True):
    """A message to another system; ``error`` never contains a secret."""

    kind: Annotated[
        Literal["heartbeat", "notice", "metrics", "report", "program"], Meta(description="what was delivered")
    ]
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


def outcome_of(code: int) -> Literal["ok", "failed", "refused", "locked", "interrupted"]:
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
    _, parts = describe_types(BatchResult)
    document = parts.pop("BatchResult")
    for part in (document, *parts.values()):
        part.pop("title", None)
        part.pop("description", None)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "msauto batch result"}
    return {**head, **document, "$defs": dict(sorted(parts.items()))}
