"""How fast a client may send, and how much at once: ``requests_per_second``, and a limit that an overload halves.

The rate is the generic cell rate algorithm (GCRA; ITU-T I.371, annex A): requests at even distances, without a burst
at the beginning of each second. The limit of concurrent requests is additive increase, multiplicative decrease, as in
TCP (RFC 5681, without its slow start). Its only signals are those of the server itself: 429, 503, 504, a time-out.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Final

from msauto.circuit_breaker import OVERLOADED_STATUSES
from msauto.model.ports import Clock
from msauto.model.server import ServerSpec
from msauto.retry_policy import LONGEST_PAUSE

BURST_SECONDS: Final = 0.05
"""Requests that were delayed catch up: in any ``s`` seconds at most ``1 + rate * (s + BURST_SECONDS)`` are sent."""
WINDOW: Final = 20
"""The fewest successes after which the limit grows by one: at its capacity, a server refuses one request in so many."""
_LEAST_SLEEP: Final = 0.001  # a shorter one may not move the clock


class Pacer:
    """Gives the requests of one server their permits, in the order in which they ask.

    ``limit``: how many may be sent at once now, from 1 to ``connections``. Clients of one server that are open at the
    same time share one pacer. A waiting request that is cancelled counts nothing.
    """

    def __init__(self, spec: ServerSpec, clock: Clock) -> None:
        self.limit = spec.connections
        self.halvings = 0
        self._most = spec.connections
        self._successes = 0  # since the limit changed
        self._clock = clock
        self._interval = 1 / spec.requests_per_second if spec.requests_per_second else 0.0
        # No request is sent earlier; clients may follow each other.
        self._next = clock.monotonic() + self._interval
        self._running = 0
        # Held by the first in the queue, which waits for the limit and for the rate.
        self._turn = asyncio.Lock()
        self._ended = asyncio.Event()

    async def permit(self) -> Permit:
        """Wait until a request may be sent. What holds a permit already waits for no other request."""
        held = _held.get()
        if held is not None and held.pacer is self and not held.is_released:
            return await self._lend(held)
        async with self._turn:
            while True:
                now = self._clock.monotonic()
                if self._running >= self.limit:
                    self._ended.clear()
                    await self._ended.wait()
                elif now < self._next:
                    await self._clock.sleep(max(self._next - now, _LEAST_SLEEP))
                else:
                    break
            self._next = max(self._next, now - BURST_SECONDS) + self._interval
            self._running += 1
        return Permit(self)

    async def _lend(self, held: Permit) -> Permit:
        """Return a permit for a read that precedes a write: at the place that the permit of the write holds."""
        while (now := self._clock.monotonic()) < self._next:
            await self._clock.sleep(max(self._next - now, _LEAST_SLEEP))
        self._next = max(self._next, now - BURST_SECONDS) + self._interval
        if self._running < self.limit:
            self._running += 1
            return Permit(self)
        await held.lent.acquire()
        return Permit(self, held)

    def succeeded(self) -> None:
        """Note an answer to a request that was sent since the limit was halved."""
        self._successes += 1
        if self._successes >= max(WINDOW, self.limit):
            self._successes = 0
            self.limit = min(self._most, self.limit + 1)

    def halve(self) -> None:
        """Halve the limit."""
        self._successes = 0
        self.limit = max(1, self.limit // 2)
        self.halvings += 1

    def pause(self, seconds: float) -> None:
        """Give no permits for so long."""
        self._next = max(self._next, self._clock.monotonic() + seconds)

    def end(self) -> None:
        """Let the next request follow one that has ended."""
        self._running -= 1
        self._ended.set()


class Permit:
    """The permission to send one request; it holds a place at the server until it is released.

    Many requests that are under way fail together after one overload. So the limit is halved only by a request that
    got its permit after the last time.
    """

    __slots__ = ("_halvings", "_lender", "is_released", "lent", "pacer")

    def __init__(self, pacer: Pacer, lender: Permit | None = None) -> None:
        self.pacer = pacer
        self._halvings = pacer.halvings
        self.is_released = False
        self._lender = lender
        self.lent = asyncio.Lock()  # held by the read that is sent in place of this one

    def hold(self) -> None:
        """Let the reads of this task use the place, until the permit is released: they precede a write."""
        _held.set(self)

    def answered(self, status: int, retry_after: float | None) -> None:
        """Note the status, when it arrives, and the seconds of ``Retry-After``."""
        if status in OVERLOADED_STATUSES:
            self.overloaded()
            if retry_after is not None and retry_after <= LONGEST_PAUSE:
                self.pacer.pause(retry_after)
        elif self._halvings == self.pacer.halvings:
            self.pacer.succeeded()

    def overloaded(self) -> None:
        """Note that the server has too much to do: also, that no complete answer arrived in time."""
        if self._halvings == self.pacer.halvings:
            self.pacer.halve()

    def release(self) -> None:
        """Let another request be sent. Once: the next calls do nothing."""
        if not self.is_released:
            self.is_released = True
            if self._lender is None:
                self.pacer.end()
            else:
                self._lender.lent.release()


_held: ContextVar[Permit | None] = ContextVar("held", default=None)
"""The permit of the write that a task is about to send."""
