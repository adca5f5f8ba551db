"""Requests get their permits in order, at the rate, and not before the time that the server asks to wait."""

from __future__ import annotations

import asyncio

import httpx2
import pytest

from msauto.errors import RejectedError
from msauto.model.server import ServerSpec
from msauto.server.client import AsyncMediaServer
from msauto.server.pacing import Pacer
from tests.unit.applying.virtual_time import VirtualClock, run_in_virtual_time

BEYOND_ALL_TIME = f"Mon, 01 Jan {9**30} 00:00:00 GMT"
LIMITED = ServerSpec("studio", "http://studio", connections=1, requests_per_second=2)


def test_even_distances_without_a_burst_at_the_beginning() -> None:
    async def main() -> list[float]:
        clock, times = VirtualClock(), []
        pacer = Pacer(LIMITED, clock)
        for _ in range(4):
            permit = await pacer.permit()
            times.append(clock.monotonic())
            permit.release()
        return times

    assert run_in_virtual_time(main()) == pytest.approx([0.5, 1.0, 1.5, 2.0], abs=0.002)


def test_first_come_first_served_and_the_cancelled_count_nothing() -> None:
    async def main() -> list[tuple[int, float]]:
        clock, order = VirtualClock(), []
        pacer = Pacer(LIMITED, clock)

        async def send(number: int) -> None:
            permit = await pacer.permit()
            order.append((number, clock.monotonic()))
            await asyncio.sleep(0.7)
            permit.release()

        tasks = [asyncio.ensure_future(send(number)) for number in range(6)]
        await asyncio.sleep(0.1)
        tasks[0].cancel()  # the first in the queue, which waits for the rate
        tasks[3].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return order

    order = run_in_virtual_time(main())
    assert [number for number, _ in order] == [1, 2, 4, 5]
    assert [at for _, at in order] == pytest.approx([0.5, 1.2, 1.9, 2.6], abs=0.005)


def test_a_time_out_halves_the_limit_and_other_errors_do_not() -> None:
    errors: list[Exception] = [httpx2.ConnectError("refused"), httpx2.ReadTimeout("slow")]

    def answer(request: httpx2.Request) -> httpx2.Response:
        raise errors[0]

    async def main() -> list[int]:
        limits = []
        spec = ServerSpec("studio", "http://studio", connections=8)
        async with AsyncMediaServer(spec, transport=httpx2.MockTransport(answer), clock=VirtualClock()) as client:
            while errors:
                await asyncio.gather(client.channels(), return_exceptions=True)
                limits.append(client.pacer.limit)
                errors.pop(0)
        return limits

    assert run_in_virtual_time(main()) == [8, 1]


@pytest.mark.parametrize(
    ("asked", "waited"), [("7", 7), ("60", 60), ("61", 0), ("x", 0), ("", 0), (BEYOND_ALL_TIME, 0)]
)
def test_nothing_is_sent_before_the_time_of_retry_after(asked: str, waited: float) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(429, headers={"Retry-After": asked})

    async def main() -> float:
        spec, clock = ServerSpec("studio", "http://studio"), VirtualClock()
        async with AsyncMediaServer(spec, transport=httpx2.MockTransport(answer), clock=clock) as client:
            with pytest.raises(RejectedError):
                await client.set_field("NEWS", "Film", "comment", "Ready")
            (await client.permit()).release()
        return clock.monotonic()

    assert run_in_virtual_time(main()) == pytest.approx(waited, abs=0.002)
