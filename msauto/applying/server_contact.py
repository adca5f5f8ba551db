"""What targets learn about their server while a plan is applied: they share its circuit breaker."""

from __future__ import annotations

import asyncio

from msauto.errors import one_line
from msauto.model.circuit_breaker import UNAUTHORIZED_STATUSES, Asked, BreakerState, contact_of
from msauto.model.plan import Request
from msauto.model.result import RequestResult


class CircuitBreaker:
    """The circuit breaker of one server in a run."""

    def __init__(self) -> None:
        self.state = BreakerState()
        self._changed = asyncio.Event()

    def update(self, state: BreakerState) -> None:
        """Set the state, and wake what waits for a change."""
        if state is not self.state:
            self.state = state
            self.wake()

    async def changed(self) -> None:
        """Wait until another target may start."""
        await self._changed.wait()

    def wake(self) -> None:
        """Let what waits check whether another target may start."""
        self._changed.set()
        self._changed = asyncio.Event()


class TargetContact:
    """What one target learns about its server, and reports to the circuit breaker; made when the target may start."""

    def __init__(self, breaker: CircuitBreaker) -> None:
        self.breaker = breaker
        self.shut_out = False  # to ask again could lock the account; of this target only
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

    def failed(self, error: Exception, asked: Asked) -> None:
        """Report what an error shows about the server."""
        contact = contact_of(error, asked)
        if contact == "unauthorized":
            self._unreachable, self.shut_out = "", getattr(error, "status", None) in UNAUTHORIZED_STATUSES
            self.breaker.update(self.breaker.state.rejected(one_line(error)))
        elif contact in {"unreachable", "silent"}:
            self._unreachable = one_line(error)
        elif contact is not None:
            self.answered()

    def settled(self, request: Request, result: RequestResult, name: str) -> None:
        """Report what came of a request of the target ``name``."""
        self.breaker.update(self.breaker.state.settled(request, result, name))

    def end(self, *, failed: bool) -> None:
        """Report the end of the target: a failure counts if the server could not be reached at the last attempt."""
        if failed and self._unreachable:
            self.breaker.update(self.breaker.state.failed(self._start, self._unreachable))
