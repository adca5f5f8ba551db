"""Events of a run in progress: frozen values for a progress display, a log, or a script."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from msauto.model.plan import Target
from msauto.model.result import RequestResult, Result, TargetResult


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


class RequestSettled(Struct, frozen=True):
    """The request is settled: its outcome is known, or known to be unverified."""

    target: Target
    index: int
    result: RequestResult


class DownloadAsked(Struct, frozen=True):
    """A file is requested, of which ``received`` bytes are saved; the server may be creating it.

    The download fails if nothing is received for ``time_limit`` seconds.
    """

    target: Target
    index: int
    received: int
    time_limit: float


class DownloadReceived(Struct, frozen=True):
    """``received`` bytes of a file are saved; ``total``: its size, if the server reports it."""

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


Event = (
    RunStarted | TargetStarted | RequestSending | RequestSettled | DownloadAsked | DownloadReceived
    | WaitingForRestore | TargetFinished | RunEnded
)  # fmt: skip


class Observer(Protocol):
    """Receives all events in order, in the thread that applies; its errors are ignored."""

    def notify(self, event: Event) -> None:
        """Receive an event; must return quickly."""


class SilentObserver(Struct, frozen=True):
    """An observer that ignores all events."""

    def notify(self, event: Event) -> None:
        """Do nothing."""
