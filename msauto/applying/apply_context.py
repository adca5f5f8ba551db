"""What the targets of a run share, and what the targets of one server share."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from msauto.applying.cancellation import Cancellation
from msauto.applying.circuit_breaker import CircuitBreaker
from msauto.applying.group_commit import GroupCommit
from msauto.applying.states import RetryPolicy
from msauto.applying.verification import SharedReads
from msauto.model import events
from msauto.model.ports import Clock, Journal, Memory, Reader, Sender


@dataclass(frozen=True, slots=True)
class ServerConnection:
    """The ports of one server, its circuit breaker, and the readings that its targets share."""

    reader: Reader
    sender: Sender
    shared: SharedReads = field(default_factory=SharedReads, compare=False, repr=False)
    breaker: CircuitBreaker = field(default_factory=CircuitBreaker, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ApplyContext:
    """The name of the run, its ports, and what all of its targets share.

    ``read_since``: when the reading began that the plan was made from; ``None``: it is not compared again.
    """

    run: str
    journal: Journal
    memory: Memory
    clock: Clock
    observer: events.Observer
    commits: GroupCommit
    cancellation: Cancellation
    policy: RetryPolicy
    read_since: datetime | None = None

    def notify(self, event: events.Event) -> None:
        """Notify the observer; its errors are ignored."""
        with suppress(Exception):
            self.observer.notify(event)
