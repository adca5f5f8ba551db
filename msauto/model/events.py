"""Events of a run in progress: frozen values for a progress display, a log, or a script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from msauto.model.plan import Target
from msauto.model.result import RequestResult, Result, TargetResult


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The run is recorded in the ledger, and nothing was sent yet; the counts of its targets and requests."""

    run: str
    targets: int
    requests: int


@dataclass(frozen=True, slots=True)
class TargetStarted:
    """The first request of a target is about to be journalled."""

    target: Target


@dataclass(frozen=True, slots=True)
class RequestSending:
    """The request is journalled and is sent now; ``tries`` counts from 1."""

    target: Target
    index: int
    tries: int


@dataclass(frozen=True, slots=True)
class RequestSettled:
    """The request is settled: its outcome is known, or known to be unverified."""

    target: Target
    index: int
    result: RequestResult


@dataclass(frozen=True, slots=True)
class DownloadAsked:
    """A file is requested, of which ``received`` bytes are saved; the server may be creating it.

    The download fails if nothing is received for ``time_limit`` seconds.
    """

    target: Target
    index: int
    received: int
    time_limit: float


@dataclass(frozen=True, slots=True)
class DownloadReceived:
    """``received`` bytes of a file are saved; ``total``: its size, if the server reports it."""

    target: Target
    index: int
    received: int
    total: int | None


@dataclass(frozen=True, slots=True)
class WaitingForRestore:
    """All requests are done, but the high-resolution file is missing: ``waited`` of at most ``wait`` seconds."""

    target: Target
    waited: float
    wait: float


@dataclass(frozen=True, slots=True)
class TargetFinished:
    """The target has its result."""

    result: TargetResult


@dataclass(frozen=True, slots=True)
class RunEnded:
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


class SilentObserver:
    """An observer that ignores all events."""

    def notify(self, event: Event) -> None:
        """Do nothing."""
