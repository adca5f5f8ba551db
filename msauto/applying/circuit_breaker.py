"""The circuit breaker of one server while a plan is applied.

Without it, each of a thousand targets of a dead server would use up all its tries. The breaker is:

- *closed*: targets start freely.
- *half-open*: a target ended because the server could not be reached. Targets start one at a time, each after a pause,
  and have one try. Any answer closes the breaker.
- *open*: three such targets in a row ended, each started after the previous one ended; or the server rejected our
  credentials (401, 407), when asking again could lock the account. The remaining targets are not attempted;
  ``apply --resume`` continues with them.

Every other failure concerns its target alone (contract: a failed target never stops the others).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final, Literal

from msauto.concurrency import ConcurrencySlot
from msauto.errors import (
    GATEWAY_STATUSES,
    UNAUTHORIZED_STATUSES,
    InDoubtError,
    RejectedError,
    UnreachableError,
    UnreadableError,
    one_line,
)

Contact = Literal["answered", "unreachable", "unauthorized"]

_FAILURES_TO_OPEN: Final = 3


def contact_of(error: BaseException, *, read: bool) -> Contact | None:
    """Return what an error shows about the server; ``None``: nothing.

    A lost *write* shows nothing, because the request itself may be the cause; the reads after it show more.
    """
    status = error.status if isinstance(error, RejectedError) else None
    if status in UNAUTHORIZED_STATUSES:
        return "unauthorized"
    if isinstance(error, UnreachableError):
        return "unreachable"
    if isinstance(error, InDoubtError) or status in GATEWAY_STATUSES:
        return "unreachable" if read else None
    return "answered" if isinstance(error, (RejectedError, UnreadableError)) else None


@dataclass(frozen=True, slots=True)
class BreakerState:
    """The state of a circuit breaker, as a value.

    ``failures``: the targets in a row that ended because the server could not be reached. ``closings``: how often an
    answer has closed the breaker. ``reason``: the error that opened it.
    """

    failures: int = 0
    closings: int = 0
    unauthorized: bool = False
    reason: str = ""

    @property
    def open(self) -> bool:
        """No further target may start."""
        return self.unauthorized or self.failures >= _FAILURES_TO_OPEN

    @property
    def half_open(self) -> bool:
        """Targets may start one at a time."""
        return self.failures > 0 and not self.open

    def answered(self) -> BreakerState:
        """Return the state after any answer."""
        return self if self.unauthorized or not self.failures else BreakerState(closings=self.closings + 1)

    def rejected(self, reason: str) -> BreakerState:
        """Return the state after the server rejected our credentials."""
        return replace(self, unauthorized=True, reason=reason)

    def then(self, found: BreakerState) -> BreakerState:
        """Return the state after a slice, which found another one; it may have begun before the last rejection."""
        return self if self.unauthorized else found

    def failures_since_closed(self, start: BreakerState) -> int:
        """Return the failures at the start of a target; 0 if the breaker has closed since."""
        return min(self.failures, start.failures) if start.closings == self.closings else 0

    def failed(self, start: BreakerState, reason: str) -> BreakerState:
        """Return the state after a target that started in the state ``start`` could not reach the server.

        Targets that ran at the same time count as one failure.
        """
        failures = max(self.failures, self.failures_since_closed(start) + 1)
        return replace(self, failures=failures, reason=self.reason or reason)

    def message(self, server: str, run: str) -> str:
        """Return why a target is not attempted while the breaker is open, and what to do."""
        again = f"msauto apply --resume {run}"
        if self.unauthorized:
            rejected = f"the server {server} no longer accepts our credentials ({self.reason})"
            return f"{rejected}; check its `auth`, then: {again}"
        return f"the server {server} can no longer be reached ({self.reason}); once it can: {again}"


class CircuitBreaker:
    """The circuit breaker of one server, and the order in which its targets start while it is half-open.

    ``on_change`` is called whenever another target may start.
    """

    def __init__(self) -> None:
        self.state = BreakerState()
        self.on_change: Callable[[], None] = lambda: None
        self._probing = False
        self._changed = asyncio.Event()

    @property
    def probing(self) -> bool:
        """Another target would have to wait for the one that probes the server."""
        return self._probing and self.state.half_open

    def update(self, state: BreakerState) -> None:
        """Set the state, and wake the waiting targets, so that they check it."""
        if state != self.state:
            self.state = state
            self._notify()

    @asynccontextmanager
    async def admission(self, slot: ConcurrencySlot, pause: Callable[[int], Awaitable[object]]) -> AsyncIterator[None]:
        """Enter at once, or while half-open one at a time, after ``pause(failures)``.

        A waiting target leaves its slot to targets of other servers. Getting the slot back takes time, in which the
        breaker may have become half-open again: then the target waits again.
        """
        probe = False
        try:
            while self.state.half_open and not probe:
                slot.leave()
                while self.probing:
                    await self._changed.wait()
                if self.state.half_open:
                    probe = self._probing = True
                    await pause(self.state.failures)
                await slot.enter()
            yield
        finally:
            if probe:
                self._probing = False
                self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
        self.on_change()


class TargetContact:
    """What one target learns about its server, and reports to the circuit breaker."""

    def __init__(self, breaker: CircuitBreaker) -> None:
        self.breaker = breaker
        self.unauthorized = False  # of this target only
        self._start = breaker.state
        self._unreachable = ""  # why the server could not be reached at the last attempt

    @property
    def half_open(self) -> bool:
        """Whether the target may try only once."""
        state = self.breaker.state
        return state.unauthorized or state.failures_since_closed(self._start) > 0

    def answered(self) -> None:
        """Report an answer."""
        self._unreachable = ""
        self.breaker.update(self.breaker.state.answered())

    def failed(self, error: Exception, *, read: bool) -> None:
        """Report what an error of a read or a write shows about the server."""
        contact = contact_of(error, read=read)
        if contact == "answered":
            self.answered()
        elif contact == "unauthorized":
            self._unreachable, self.unauthorized = "", True
            self.breaker.update(self.breaker.state.rejected(one_line(error)))
        elif contact == "unreachable":
            self._unreachable = one_line(error)

    def end(self, *, failed: bool) -> None:
        """Report the end of the target: a failure counts if the server could not be reached at the last attempt."""
        if failed and self._unreachable:
            self.breaker.update(self.breaker.state.failed(self._start, self._unreachable))
