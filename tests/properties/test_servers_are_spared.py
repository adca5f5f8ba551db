"""A server of any capacity is neither starved nor pushed over, and never gets more requests than its rate allows.

Time is virtual: the server is a model that takes so many requests at once, and whose latency grows with what is more.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from msauto.model.server import ServerSpec
from msauto.server.pacing import BURST_SECONDS, GROWTH, SLACK, Pacer
from tests.examples import examples
from tests.unit.applying.virtual_time import VirtualClock, run_in_virtual_time

Overload = Literal["queues", "shares", "refuses"]
ANSWERS = 500  # in each half of a phase, at least; the first half is for adapting


@dataclass(frozen=True)
class Capacity:
    """What a server can do from now on: requests at once, and the seconds of each."""

    at_once: int
    seconds: float


@dataclass
class Server:
    """Beyond its capacity, the server lets requests wait, does all of them more slowly, or answers 503."""

    overload: Overload
    capacity: Capacity
    noise: float = 0.0
    running: int = 0
    arrivals: list[float] = field(default_factory=list)
    done: int = 0
    refused: int = 0
    highest: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(1))
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: list[object] = field(default_factory=list)
    served: int = 0

    async def answer(self) -> int:
        self.running += 1
        self.highest = max(self.highest, self.running)
        self.arrivals.append(asyncio.get_running_loop().time())
        try:
            return await self._work()
        finally:
            self.running -= 1
            self.notify()

    async def _work(self) -> int:
        at_once = self.capacity.at_once
        seconds = self.capacity.seconds * self.chance.uniform(1 - self.noise, 1 + self.noise)
        if self.overload == "refuses" and self.running > at_once:
            self.refused += 1
            return 503
        if self.overload == "shares":
            seconds *= max(1.0, self.running / at_once)
        if self.overload == "queues":
            await self._turn()
        await asyncio.sleep(seconds)
        self.served -= self.overload == "queues"
        self.done += 1
        return 200

    async def _turn(self) -> None:
        me = object()
        self.waiting.append(me)
        while self.waiting[0] is not me or self.served >= self.capacity.at_once:
            await self.changed.wait()
        self.waiting.pop(0)
        self.served += 1
        self.notify()

    def notify(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def begin(self, capacity: Capacity) -> None:
        """Change the capacity, and count again."""
        self.capacity = capacity
        self.notify()
        self.forget()

    def forget(self) -> None:
        self.done = self.refused = self.highest = 0


@dataclass(frozen=True)
class Phase:
    """What was seen in the second half of a phase."""

    seconds: float
    done: int
    refused: int
    highest: int


async def observe(server: Server, phases: Sequence[Capacity], spec: ServerSpec, workers: int) -> list[Phase]:
    """Send as much as the pacers of so many workers permit, through all phases."""
    clock, stopped = VirtualClock(), asyncio.Event()

    async def send(pacer: Pacer) -> None:
        while not stopped.is_set():
            permit = await pacer.permit()
            permit.sending("GET storage")
            status = await server.answer()
            permit.answered(status)
            permit.release()
            await asyncio.sleep(0 if status == 200 else 0.2)

    found = []
    part = spec.share(workers)
    pacers = [Pacer(part, clock) for _ in range(workers)]
    async with asyncio.TaskGroup() as group:
        for pacer in pacers:
            for _ in range(part.connections):
                group.create_task(send(pacer))
        for phase in phases:
            half = phase.seconds * max(100, ANSWERS / phase.at_once)
            server.begin(phase)
            await asyncio.sleep(half)
            server.forget()
            await asyncio.sleep(half)
            found.append(Phase(half, server.done, server.refused, server.highest))
        stopped.set()
    return found


def highest_of_a_cycle(capacity: Capacity) -> float:
    """Return the requests at once at which the limit is halved, if the usual latency was measured at half of them.

    It grows by one, until the latency ``highest * seconds / at_once`` exceeds ``GROWTH * usual + SLACK``. Half a step
    more: the mean of a round begins with the latency before the step.
    """
    step = 1.5
    measured = (SLACK + step * capacity.seconds / capacity.at_once) / (2 - GROWTH)
    usual = max(capacity.seconds, measured)
    return capacity.at_once * (GROWTH * usual + SLACK) / capacity.seconds + step


CAPACITY = st.builds(Capacity, st.integers(1, 24), st.sampled_from([0.02, 0.1, 0.4, 2.0]))
LEAST = 0.6  # of what is possible
MOST_REFUSED = 0.2  # of all requests


@settings(max_examples=examples(50), deadline=None)
@given(
    st.sampled_from(["queues", "shares"]),
    st.lists(CAPACITY, min_size=1, max_size=2),
    st.sampled_from([(1, 1), (4, 1), (16, 1), (32, 1), (16, 4), (32, 2)]),
    st.floats(0, 0.5),
)
def test_a_slow_server_is_used_and_not_pushed_over(
    overload: Overload, phases: list[Capacity], shares: tuple[int, int], noise: float
) -> None:
    connections, workers = shares
    spec = ServerSpec("studio", "http://studio", connections=connections)
    server = Server(overload, phases[0], noise)
    for phase, seen in zip(phases, run_in_virtual_time(observe(server, phases, spec, workers)), strict=True):
        possible = min(phase.at_once, connections) * seen.seconds / phase.seconds
        assert seen.done >= LEAST * possible, (phase, seen)
        bound = highest_of_a_cycle(phase) * (1 + noise) / (1 - noise) + 1
        assert seen.highest <= (min(connections, bound) if workers == 1 else connections), (phase, seen)


@settings(max_examples=examples(50), deadline=None)
@given(
    st.lists(CAPACITY, min_size=1, max_size=2),
    st.sampled_from([4, 16, 32]),
    st.sampled_from([1, 2, 4]),
)
def test_a_server_that_refuses_is_asked_less_by_all_workers(
    phases: list[Capacity], connections: int, workers: int
) -> None:
    spec = ServerSpec("studio", "http://studio", connections=connections)
    server = Server("refuses", phases[0])
    for phase, seen in zip(phases, run_in_virtual_time(observe(server, phases, spec, workers)), strict=True):
        assert seen.highest <= connections
        if phase.at_once < workers:  # each worker sends at least one at a time
            continue
        assert seen.highest <= phase.at_once + workers, (phase, seen)
        assert seen.refused <= MOST_REFUSED * (seen.done + seen.refused), (phase, seen)
        assert seen.done >= LEAST * min(phase.at_once, connections) * seen.seconds / phase.seconds, (phase, seen)


@settings(max_examples=examples(200), deadline=None)
@given(
    st.sampled_from([0.1, 0.5, 7, 40, 200, 3000, 10_000]),
    st.sampled_from([1, 16, 64]),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([0.001, 0.2]),
    st.lists(st.tuples(st.floats(0, 40), st.booleans()), min_size=2, max_size=20),
)
def test_the_rate_is_never_exceeded(
    rate: float, connections: int, workers: int, seconds: float, pauses: list[tuple[float, bool]]
) -> None:
    workers = min(workers, connections)
    spec = ServerSpec("studio", "http://studio", connections=connections, requests_per_second=rate, adaptive=False)
    server = Server("shares", Capacity(connections, seconds))

    async def send(pacer: Pacer) -> None:
        permit = await pacer.permit()
        permit.sending("GET storage")
        try:
            await server.answer()
        finally:
            permit.release()

    async def main() -> None:
        pacers = [Pacer(spec.share(workers), VirtualClock()) for _ in range(workers)]
        async with asyncio.TaskGroup() as group:
            for requests, cancelled in pauses:
                tasks = [group.create_task(send(pacer)) for pacer in pacers for _ in range(10)]
                await asyncio.sleep(requests / rate / 2)
                if cancelled:
                    tasks[2].cancel()
                    tasks[-1].cancel()
                await asyncio.sleep(requests / rate / 2)

    run_in_virtual_time(main())
    within_rate(server.arrivals, rate, workers)


def within_rate(arrivals: list[float], rate: float, workers: int) -> None:
    """Each window of ``s`` seconds has at most ``workers + rate * (s + BURST_SECONDS)`` requests."""
    earliest = float("inf")
    for number, at in enumerate(arrivals):
        earliest = min(earliest, number - rate * at)
        assert number - rate * at - earliest + 1 <= workers + rate * BURST_SECONDS + 1e-6
