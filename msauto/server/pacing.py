"""How fast a client may send, and how much at once: ``requests_per_second``, and a limit that adapts to the server.

The rate is the generic cell rate algorithm (GCRA; ITU-T I.371, annex A): requests at even distances, without a burst
at the beginning of each second.

The limit of concurrent requests is additive increase, multiplicative decrease (AIMD; D.-M. Chiu, R. Jain, «Analysis of
the Increase and Decrease Algorithms for Congestion Avoidance», 1989), with the latency as the signal (R. Jain, «A
Delay-Based Approach for Congestion Avoidance», 1989), and slow start as in TCP (RFC 5681). It was chosen, because

- several clients that know nothing of each other get equal parts of a server, as the slices of a run on Dask;
- each decrease empties the queue of the server, so the latency without a queue is measured again and again. Vegas and
  Gradient2 hold a queue, and need additional probes or an average that drifts with the load;
- an error (429, 503, a time-out) is the same signal as a high latency.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from math import inf
from typing import Final

from msauto.model.plan import Request
from msauto.model.ports import Clock
from msauto.model.server import ServerSpec

BURST_SECONDS: Final = 0.05
"""Requests that were delayed catch up: in any ``s`` seconds at most ``1 + rate * (s + BURST_SECONDS)`` are sent."""
_LEAST_SLEEP: Final = 0.001  # a shorter one may not move the clock
_BEGIN: Final = 4  # the limit begins at this part of the maximum, and at this number, to have a latency to compare with
_ROUND: Final = 16  # the fewest answers that are judged together, except at the beginning
_FIRST_ROUND: Final = 8
_OUTLIER: Final = 4  # a latency counts at most so many times the usual one
GROWTH: Final = 1.5
SLACK: Final = 0.05
"""A mean latency above ``GROWTH`` times the usual one, and ``SLACK`` seconds, shows a queue at the server.

Less than the slack harms nothing, and the machine of msauto itself may add as much.
"""
_CONGESTED: Final = frozenset({429, 503, 504})


class RequestRate:
    """Even distances between requests. It begins as if a request had just been sent: clients may follow each other."""

    def __init__(self, per_second: float, now: float) -> None:
        self._interval = 1 / per_second
        self._due = now + self._interval + BURST_SECONDS  # when the next request would be sent at even distances

    def wait(self, now: float) -> float:
        """Return the seconds until a request may be sent; not above 0: now."""
        return self._due - BURST_SECONDS - now

    def take(self, now: float) -> None:
        """Count a request."""
        self._due = max(self._due, now) + self._interval

    def give_back(self) -> None:
        """Count a request less, because it was not sent."""
        self._due -= self._interval


@dataclass(slots=True)
class _Latency:
    """The latency of one kind of request: the sum of this round, and the means to compare it with.

    A cycle begins with a decrease of the limit, which empties the queue: its first round has the usual latency. The
    cycle before counts as well, so a server that has become slower for good costs two decreases.
    """

    count: int = 0
    total: float = 0.0
    this_cycle: float = inf
    last_cycle: float = inf

    def add(self, seconds: float) -> int:
        """Add an answer, and return the number of this round; a single one that takes very long hardly counts."""
        self.total += min(seconds, _OUTLIER * min(self.this_cycle, self.last_cycle))
        self.count += 1
        return self.count

    def end_round(self) -> bool:
        """Return whether the mean of the round shows a queue."""
        mean = self.total / self.count
        self.count, self.total = 0, 0.0
        if self.this_cycle == inf:
            self.this_cycle = mean
        return mean > GROWTH * min(self.this_cycle, self.last_cycle) + SLACK

    def end_cycle(self) -> None:
        """Forget the cycle before this one."""
        self.count, self.total = 0, 0.0
        if self.this_cycle < inf:
            self.last_cycle, self.this_cycle = self.this_cycle, inf


class AdaptiveLimit:
    """The limit of concurrent requests, between 1 and ``most``. Requests are compared with those of their kind.

    It begins with a quarter of ``most``, and at least 4. A round ends when as many requests of a kind as the limit were
    answered. If their mean latency shows a queue, the limit is halved. Else it grows, if it was reached: twofold until
    the first decrease, then by one. Answers to requests from before a decrease are ignored.
    """

    def __init__(self, most: int) -> None:
        self.value = max(min(most, _BEGIN), most // _BEGIN)
        self._most = most
        self._doubling = True
        self._latencies: dict[str, _Latency] = {}
        self._decreased = -inf  # when
        self._highest = 0  # concurrent requests of this round

    def answered(self, kind: str, sent: float, now: float, running: int) -> None:
        """Note an answer to a request of the time ``sent``; ``running`` counts the concurrent requests, with it."""
        if sent < self._decreased:
            return
        if running > self._highest:
            self._highest = running
        latency = self._latencies.get(kind)
        if latency is None:
            latency = self._latencies[kind] = _Latency()
        if latency.add(now - sent) < max(self.value, _FIRST_ROUND if self._doubling else _ROUND):
            return
        if latency.end_round():
            self._decrease(now)
        elif self._highest >= self.value:
            self.value = min(self._most, 2 * self.value if self._doubling else self.value + 1)
        self._highest = 0

    def congested(self, sent: float, now: float, running: int) -> None:
        """Note that the server had too much to do for a request of the time ``sent``."""
        if sent >= self._decreased:
            self._highest = max(self._highest, running)
            self._decrease(now)

    def _decrease(self, now: float) -> None:
        self.value = max(1, min(self.value, self._highest) // 2)
        self._decreased, self._doubling, self._highest = now, False, 0
        for latency in self._latencies.values():
            latency.end_cycle()


class Pacer:
    """Gives the requests of one server their permits, in the order in which they ask.

    Clients of one server that are open at the same time share one. A waiting request that is cancelled counts nothing.
    """

    def __init__(self, spec: ServerSpec, clock: Clock) -> None:
        self._clock = clock
        rate = spec.requests_per_second
        self._rate = None if rate is None else RequestRate(rate, clock.monotonic())
        self._most = spec.connections
        self._adaptive = AdaptiveLimit(spec.connections) if spec.adaptive else None
        self._running = 0
        self._turn = asyncio.Lock()  # held by the first in the queue, which waits for the limit and for the rate
        self._ended = asyncio.Event()

    @property
    def limit(self) -> int:
        """How many requests may be sent at once now."""
        return self._most if self._adaptive is None else self._adaptive.value

    async def permit(self) -> Permit:
        """Wait until a request may be sent."""
        async with self._turn:
            while True:
                if self._running >= self.limit:
                    self._ended.clear()
                    await self._ended.wait()
                elif self._rate is not None and (wait := self._rate.wait(self._clock.monotonic())) > 0:
                    await self._clock.sleep(max(wait, _LEAST_SLEEP))
                else:
                    break
            if self._rate is not None:
                self._rate.take(self._clock.monotonic())
            self._running += 1
        return Permit(self)

    def answered(self, kind: str | None, sent: float, status: int) -> None:
        """Note the answer to a request; without a kind its latency is not compared."""
        if self._adaptive is None:
            return
        if status in _CONGESTED:
            self.timed_out(sent)
        elif kind is not None and status < 300:
            self._adaptive.answered(kind, sent, self._clock.monotonic(), self._running)

    def timed_out(self, sent: float) -> None:
        """Note that a request had no answer in time."""
        if self._adaptive is not None:
            self._adaptive.congested(sent, self._clock.monotonic(), self._running)

    def now(self) -> float:
        """Return monotonic seconds."""
        return self._clock.monotonic()

    def end(self, *, sent: bool) -> None:
        """Let the next request follow one that has ended, or that was not sent after all."""
        self._running -= 1
        if self._rate is not None and not sent:
            self._rate.give_back()
        self._ended.set()


class Permit:
    """The permission to send one request; it holds a place at the server until it is released."""

    __slots__ = ("_kind", "_pacer", "_released", "_sent")

    def __init__(self, pacer: Pacer) -> None:
        self._pacer = pacer
        self._kind: str | None = None
        self._sent: float | None = None
        self._released = False

    def sending(self, kind: str | None) -> None:
        """Note that the request is sent now; ``kind`` as :func:`kind_of` returns it, ``None`` without one."""
        self._kind = kind
        self._sent = self._pacer.now()

    def answered(self, status: int) -> None:
        """Note the status, when it arrives."""
        if self._sent is not None:
            self._pacer.answered(self._kind, self._sent, status)

    def timed_out(self) -> None:
        """Note that no complete answer arrived in time."""
        if self._sent is not None:
            self._pacer.timed_out(self._sent)

    def release(self) -> None:
        """Let another request be sent; a permit that was not used counts nothing. Once: the next calls do nothing."""
        if not self._released:
            self._released = True
            self._pacer.end(sent=self._sent is not None)


def kind_of(request: Request) -> str:
    """Return what a request asks for, without the name of what it concerns: ``GET storage GETUSERFIELDS``."""
    path, _, query = request.path.partition("?")
    if request.method != "GET":
        return f"{request.method} {query.partition('&')[0]}"
    parts = path.split("/")
    return " ".join(("GET", parts[1], *parts[3:]))
