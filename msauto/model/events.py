"""What applying tells while it goes on: frozen values for a progress display, a log, or a script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from msauto.model.plan import Target
from msauto.model.result import RequestResult, Result, TargetResult


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The run is in the ledger; nothing was sent yet. Counts are of what may be sent."""

    run: str
    targets: int
    requests: int


@dataclass(frozen=True, slots=True)
class TargetStarted:
    """A target's first request is about to be journalled."""

    target: Target


@dataclass(frozen=True, slots=True)
class RequestSending:
    """The request is in the ledger and leaves now; ``tries`` counts from 1."""

    target: Target
    index: int
    tries: int


@dataclass(frozen=True, slots=True)
class RequestSettled:
    """It is known what came of the request, or that it cannot be known."""

    target: Target
    index: int
    result: RequestResult


@dataclass(frozen=True, slots=True)
class DownloadAsked:
    """A file is asked for, ``received`` bytes of it being there; the server may be making it.

    It is given up where nothing comes for ``patience`` seconds.
    """

    target: Target
    index: int
    received: int
    time_limit: float


@dataclass(frozen=True, slots=True)
class DownloadReceived:
    """So many bytes of a file are there, of ``total`` if the server told."""

    target: Target
    index: int
    received: int
    total: int | None


@dataclass(frozen=True, slots=True)
class WaitingForRestore:
    """All is sent, and the high-resolution file is not there yet: ``waited`` of at most ``wait`` seconds."""

    target: Target
    waited: float
    wait: float


@dataclass(frozen=True, slots=True)
class TargetFinished:
    """The target is proved, or has failed, or was not reached."""

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
    """Is told of everything, in order, in the thread that applies. What it raises is ignored: it only looks on."""

    def tell(self, event: Event) -> None:
        """Take note; be quick."""


class SilentObserver:
    """An observer that nobody looks at."""

    def tell(self, event: Event) -> None:
        """Do nothing."""
