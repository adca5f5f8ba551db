"""Events of a command in progress: frozen values for a progress display, a log, or a script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from msauto.model.plan import Kind, Refusal, Summary, Target
from msauto.model.result import RequestResult, Result, TargetResult

PlannedState = Literal["changed", "unchanged", "kept", "skipped", "error"]


class PlanningStarted(Struct, frozen=True):
    """Nothing was read yet."""

    servers: tuple[str, ...]


class TargetsFound(Struct, frozen=True):
    """How many targets of a server will be planned, or are planned already."""

    server: str
    targets: int


class TargetPlanned(Struct, frozen=True):
    """A target is read and compared; ``changes`` and ``requests`` are counts, ``error`` is why it cannot be planned.

    ``reason``: why it is skipped.
    """

    server: str
    database: str
    kind: Kind
    name: str
    state: PlannedState
    changes: int = 0
    requests: int = 0
    error: str = ""
    reason: str = ""


class PlanningEnded(Struct, frozen=True):
    """The plan is complete."""

    summary: Summary
    refusals: tuple[Refusal, ...]


class RunStarted(Struct, frozen=True):
    """The run is recorded in the ledger, and nothing was sent yet; the counts of its targets and requests."""

    run: str
    targets: int
    requests: int


class TargetStarted(Struct, frozen=True):
    """The first request of a target is about to be journalled."""

    target: Target


class RequestSending(Struct, frozen=True):
    """The request is journalled and is sent now; ``tries`` counts from 1."""

    target: Target
    index: int
    tries: int


class RequestInDoubt(Struct, frozen=True):
    """The answer to a request is lost; ``reason`` is why. Reading the target settles it."""

    target: Target
    index: int
    reason: str


class RequestSettled(Struct, frozen=True):
    """The request is settled: its outcome is known, or known to be unverified."""

    target: Target
    index: int
    result: RequestResult


class DownloadAsked(Struct, frozen=True):
    """A file is requested; the server may be creating it.

    The download fails if nothing is received for ``time_limit`` seconds.
    """

    target: Target
    index: int
    time_limit: float


class DownloadReceived(Struct, frozen=True):
    """``received`` bytes of a file have arrived; ``total``: its size, if the server reports it."""

    target: Target
    index: int
    received: int
    total: int | None


class WaitingForRestore(Struct, frozen=True):
    """All requests are done, but the high-resolution file is missing: ``waited`` of at most ``wait`` seconds."""

    target: Target
    waited: float
    wait: float


class TargetFinished(Struct, frozen=True):
    """The target has its result."""

    result: TargetResult


class RunEnded(Struct, frozen=True):
    """The last event of a run."""

    result: Result


class CommandEnded(Struct, frozen=True):
    """The last event of a command: its exit code, and why it is not 0."""

    code: int
    reason: str


Event = (
    PlanningStarted | TargetsFound | TargetPlanned | PlanningEnded
    | RunStarted | TargetStarted | RequestSending | RequestInDoubt | RequestSettled | DownloadAsked | DownloadReceived
    | WaitingForRestore | TargetFinished | RunEnded | CommandEnded
)  # fmt: skip

Notify = Callable[[Event], object]
"""Receives all events in order, in the thread that plans and applies; it returns quickly."""


def ignore(event: Event) -> None:
    """Receive an event, and do nothing."""


def guarded(notify: Notify | None) -> Notify:
    """Return what passes events on, if there is anything to pass them to; its errors are ignored."""
    if notify is None or notify is ignore:
        return ignore

    def pass_on(event: Event) -> None:
        try:
            notify(event)
        except Exception:  # noqa: BLE001 - whatever the error, the run goes on
            return

    return pass_on
