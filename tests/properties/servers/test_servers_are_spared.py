"""A server never gets more requests than its limits allow, and gets fewer when it reports that it has too much to do.

Time is virtual.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from msauto.model.server import ServerSpec
from msauto.retry_policy import LONGEST_PAUSE
from msauto.server.pacing import BURST_SECONDS, WINDOW, Pacer
from tests.examples import examples
from tests.unit.applying.virtual_time import VirtualClock, run_in_virtual_time


@dataclass(frozen=True)
class Reply:
    """How the server answers: after so many seconds, with a status, or ``None`` where the client waits no longer."""

    seconds: float = 0.1
    status: int | None = 200
    retry_after: float | None = None


@dataclass
class Server:
    """Answers with its replies, then with 200. It checks that nothing arrives too early, and not too much at once."""

    connections: int
    replies: deque[Reply]
    running: int = 0
    paused_until: float = 0.0
    arrivals: list[float] = field(default_factory=list)

    async def serve(self, pacer: Pacer) -> None:
        permit = await pacer.permit()
        now = asyncio.get_running_loop().time
        self.arrivals.append(now())
        self.running += 1
        assert self.running <= self.connections
        assert now() >= self.paused_until
        reply = self.replies.popleft() if self.replies else Reply()
        try:
            await asyncio.sleep(reply.seconds)
            if reply.status is None:
                permit.overloaded()
            else:
                permit.answered(reply.status, reply.retry_after)
                if reply.status in {429, 503} and (reply.retry_after or 0) <= LONGEST_PAUSE:
                    self.paused_until = max(self.paused_until, now() + (reply.retry_after or 0))
        finally:
            self.running -= 1
            permit.release()


REPLIES = st.builds(
    Reply,
    st.sampled_from([0.001, 0.02, 0.4, 30.0]),
    st.sampled_from([200, 200, 200, 404, 429, 500, 503, 504, None]),
    st.none() | st.sampled_from([0.0, 0.5, 7.0, 60.0, 3600.0]),
)
BURSTS = st.lists(
    st.tuples(st.integers(1, 12), st.floats(0, 40), st.booleans()), min_size=1, max_size=20
)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.sampled_from([None, 0.1, 0.5, 7, 40, 200, 3000, 10_000]),
    st.sampled_from([1, 2, 5, 24]),
    st.lists(REPLIES, max_size=60),
    BURSTS,
)
def test_limits_hold_whatever_the_server_answers(
    rate: float | None,
    connections: int,
    replies: list[Reply],
    bursts: list[tuple[int, float, bool]],
) -> None:
    async def main() -> None:
        pacer = Pacer(spec, VirtualClock())
        sent: list[asyncio.Task[None]] = []
        for count, pause, cancelled in bursts:
            some = [asyncio.ensure_future(server.serve(pacer)) for _ in range(count)]
            await asyncio.sleep(pause / (rate or 40))
            if cancelled:
                some[0].cancel()
                some[-1].cancel()
            sent += some
        for each in sent:  # nobody waits for ever, and no assertion has failed
            with suppress(asyncio.CancelledError):
                await each
        server.replies.clear()  # the overload is over
        await asyncio.gather(
            *(server.serve(pacer) for _ in range(max(WINDOW, connections) * connections))
        )
        assert pacer.limit == connections, "it recovers"

    spec = ServerSpec("studio", "http://studio", connections=connections, requests_per_second=rate)
    server = Server(connections, deque(replies))
    run_in_virtual_time(main())
    if rate is not None:
        within_rate(server.arrivals, rate)


def within_rate(arrivals: Iterable[float], rate: float) -> None:
    """Each window of ``s`` seconds has at most ``1 + rate * (s + BURST_SECONDS)`` requests."""
    earliest = float("inf")
    for number, at in enumerate(arrivals):
        earliest = min(earliest, number - rate * at)
        assert number - rate * at - earliest <= rate * BURST_SECONDS + 1e-6


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(1, 64), st.data())
def test_failures_at_the_same_time_halve_the_limit_once(
    connections: int, data: st.DataObject
) -> None:
    answers = data.draw(
        st.lists(st.sampled_from([200, 429, 503, 504, None]), min_size=1, max_size=connections)
    )

    async def main() -> tuple[int, int]:
        pacer = Pacer(
            ServerSpec("studio", "http://studio", connections=connections), VirtualClock()
        )
        permits = [await pacer.permit() for _ in answers]
        for permit, status in zip(permits, answers, strict=True):
            permit.overloaded() if status is None else permit.answered(status, None)
            permit.release()
        first = pacer.limit
        late = await pacer.permit()
        late.answered(503, None)
        return first, pacer.limit

    halved = max(1, connections // 2) if set(answers) != {200} else connections
    assert run_in_virtual_time(main()) == (halved, max(1, halved // 2))


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(1, 32), st.sampled_from([1, 4, 16, 32]), st.sampled_from([429, 503]))
def test_a_server_that_refuses_is_used_and_not_pushed_over(
    capacity: int, connections: int, status: int
) -> None:
    """It takes so many requests at once, and refuses one more. The limit begins above, and then goes up and down."""
    running = 0
    seen: list[int] = []
    answered = {200: 0, status: 0}

    async def send(pacer: Pacer) -> None:
        nonlocal running
        for _ in range(3 * WINDOW):
            permit = await pacer.permit()
            running += 1
            seen.append(running)
            found = 200 if running <= capacity else status
            await asyncio.sleep(0.1 if found == 200 else 0.001)
            running -= 1
            permit.answered(found, None)
            permit.release()
            answered[found] += 1

    async def main() -> int:
        pacer = Pacer(
            ServerSpec("studio", "http://studio", connections=connections), VirtualClock()
        )
        await asyncio.gather(*(send(pacer) for _ in range(connections)))
        return pacer.limit

    assert run_in_virtual_time(main()) >= min(connections, (capacity + 1) // 2)
    assert max(seen[2 * connections :]) <= min(connections, capacity + 1)
    assert answered[status] <= 2 * connections + answered[200] / WINDOW
