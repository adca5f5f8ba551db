"""What the ledger knows of runs: for ``msauto history``, undo, resume and recovery."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from msauto.model.plan import Json, Target
from msauto.model.result import Difference, Outcome, RequestOutcome

RunStatus = Literal["running", "ok", "failed", "interrupted", "died", "error", "refused", "locked", "missed"]
"""``died``: the process ended without closing the run. ``failed``: something is not done, verified or as desired.

Nothing was written: ``error`` (bad input, a target that cannot be planned), ``refused`` (you must decide),
``locked`` (by another run), ``missed`` (a batch that was started outside its window).
"""

RequestState = Literal["planned", "sending"] | RequestOutcome
"""``planned``: never sent. ``sending``: it may have been sent, and is not settled."""


class RunSummary(Struct, frozen=True):
    """One run, an attempt that wrote nothing, or a batch.

    Times are ISO 8601 in UTC; ``ended`` is ``None``: it runs or died.

    Its fields are the keys of ``msauto history --format json``. ``summary`` counts what the plan held (the fields of
    :class:`~msauto.model.plan.Summary`), and how many of its requests were sent, or tried (``sent``). After the end it
    also counts the outcomes of the targets (changed, failed, unverified, interrupted, skipped, not_attempted). For an
    attempt that wrote nothing it counts what was planned. ``code`` is the exit code, ``reason`` why it was not 0.
    ``folder`` is the working directory of the command. ``repository`` is the folder of the ``msauto.toml`` or
    ``.git`` above the playbooks, ``settings`` the path of the settings file that was used. ``batch``, ``job`` and
    ``attempt`` (from 1) are those of a run in a batch; a batch itself has no job.
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
    batch: str = ""
    job: str = ""
    attempt: int | None = None
    repository: str = ""
    settings: str = ""


class RequestRecord(Struct, frozen=True):
    """What the ledger knows of one request; parallel to ``target.requests``. Times are ISO 8601 in UTC."""

    state: RequestState
    tries: int = 0
    status: int | None = None
    message: str = ""
    sent: str | None = None
    settled: str | None = None


class TargetRecord(Struct, frozen=True):
    """One target of a run: as planned, and what came of it (``outcome`` ``None``: the run died before that).

    ``learned`` is how the run left list items, as verification read them: ``marker:<key>``, ``segment:<number>``.
    """

    target: Target
    requests: tuple[RequestRecord, ...] = ()
    begun: str | None = None
    outcome: Outcome | None = None
    message: str = ""
    differences: tuple[Difference, ...] = ()
    learned: Mapping[str, Json] = field(default_factory=dict)


class RunDetails(Struct, frozen=True):
    """Everything about one run. ``pid`` and ``host`` are those of its process.

    ``notes`` is what was recorded besides the plan: ``override_freeze`` holds the reason that the user gave.
    """

    summary: RunSummary
    pid: int
    host: str
    msauto: str
    targets: tuple[TargetRecord, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
