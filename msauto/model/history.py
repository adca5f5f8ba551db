"""What the ledger tells of runs, as values: for ``msauto history``, for undo, resume and recovery."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from msauto.model.plan import Json, Target
from msauto.model.result import Difference, Outcome, RequestOutcome

RunStatus = Literal["running", "ok", "failed", "interrupted", "died", "error", "refused", "locked"]
"""``died``: the run's process is gone and never closed it. ``failed``: something is not done, proved or as wanted.

Nothing was written: ``error`` (bad input, a target that cannot be planned), ``refused`` (a person must decide),
``locked`` (by another run).
"""

RequestState = Literal["planned", "sending"] | RequestOutcome
"""``planned``: never sent. ``sending``: it may have been sent, and nobody has settled it."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run, or an attempt that wrote nothing. Times are ISO 8601 in UTC; ``ended`` is ``None``: it goes on or died.

    ``summary`` counts: what the plan held (assets, add, change, delete, run, unchanged, errors, requests, reads), how
    many of its requests were sent so far, or tried to (sent), and, once ended, what came of its targets (changed,
    failed, unverified, skipped, not_attempted). Of an attempt that wrote nothing it counts what was planned, if anything
    was. ``code`` is the exit code, ``reason`` why it was not 0; ``folder`` is where msauto was started.
    """

    run: str
    started: str
    ended: str | None
    status: RunStatus
    playbooks: tuple[str, ...]
    summary: dict[str, int]
    code: int | None = None
    reason: str = ""
    user: str = ""
    host: str = ""
    folder: str = ""

    def to_json(self) -> dict[str, Json]:
        """Return the form of the contract (``msauto history --format json``)."""
        return {
            "run": self.run,
            "started": self.started,
            "ended": self.ended,
            "status": self.status,
            "playbooks": list(self.playbooks),
            "summary": dict(self.summary),
            "code": self.code,
            "reason": self.reason,
            "user": self.user,
            "host": self.host,
            "folder": self.folder,
        }


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """What the ledger knows of one request; it runs beside ``target.requests``. Times are ISO 8601 in UTC."""

    state: RequestState
    tries: int = 0
    status: int | None = None
    message: str = ""
    sent: str | None = None
    settled: str | None = None


@dataclass(frozen=True, slots=True)
class TargetRecord:
    """One target of a run: as planned, and what came of it (``outcome`` ``None``: the run died before that).

    ``learned`` is what its proof showed of what the server named by itself: ``marker:<key>`` to the new uid.
    """

    target: Target
    requests: tuple[RequestRecord, ...] = ()
    begun: str | None = None
    outcome: Outcome | None = None
    message: str = ""
    differences: tuple[Difference, ...] = ()
    learned: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunDetails:
    """Everything about one run. ``pid`` and ``host`` are of the process that did it.

    ``notes`` is what was recorded besides the plan: ``override_freeze`` holds the reason that a person gave.
    """

    summary: RunSummary
    pid: int
    host: str
    msauto: str
    targets: tuple[TargetRecord, ...] = field(default=())
    notes: Mapping[str, str] = field(default_factory=dict)
