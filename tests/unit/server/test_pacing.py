"""Requests get their permits in order, at the rate, and one that is cancelled or not sent counts nothing."""

from __future__ import annotations

import asyncio
from fractions import Fraction

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msauto.interface import requests
from msauto.model.server import ServerSpec
from msauto.server.client import AsyncMediaServer
from msauto.server.pacing import BURST_SECONDS, AdaptiveLimit, Pacer, RequestRate, kind_of
from tests.unit.applying.virtual_time import VirtualClock, run_in_virtual_time

LIMITED = ServerSpec("studio", "http://studio", connections=1, requests_per_second=2, adaptive=False)


def test_even_distances_without_a_burst_at_the_beginning() -> None:
    async def main() -> list[float]:
        clock, times = VirtualClock(), []
        pacer = Pacer(LIMITED, clock)
        for _ in range(4):
            permit = await pacer.permit()
            times.append(clock.monotonic())
            permit.sending(None)
            permit.release()
        return times

    assert run_in_virtual_time(main()) == pytest.approx([0.5, 1.0, 1.5, 2.0], abs=0.002)


def test_a_late_request_catches_up_only_within_the_burst() -> None:
    rate = RequestRate(100, 0.0)
    sent = 0
    while rate.wait(10.0) <= 0:
        rate.take(10.0)
        sent += 1
    assert sent == 1 + 100 * BURST_SECONDS


def test_first_come_first_served_and_the_cancelled_count_nothing() -> None:
    async def main() -> list[tuple[int, float]]:
        clock, order = VirtualClock(), []
        pacer = Pacer(LIMITED, clock)

        async def send(number: int) -> None:
            permit = await pacer.permit()
            order.append((number, clock.monotonic()))
            permit.sending(None)
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


def test_a_permit_that_was_not_used_goes_to_the_next() -> None:
    async def main() -> float:
        clock = VirtualClock()
        pacer = Pacer(LIMITED, clock)
        unused = await pacer.permit()
        waiting = asyncio.ensure_future(pacer.permit())
        await asyncio.sleep(0.1)
        assert not waiting.done()
        unused.release()
        unused.release()
        (await waiting).release()
        return clock.monotonic()

    assert run_in_virtual_time(main()) == pytest.approx(0.6, abs=0.002)


@pytest.mark.parametrize("status", [429, 503, 504])
def test_a_server_with_too_much_to_do_halves_the_limit_once(status: int) -> None:
    async def main() -> tuple[int, int]:
        pacer = Pacer(ServerSpec("studio", "http://studio", connections=32), VirtualClock())
        before = pacer.limit
        permits = [await pacer.permit() for _ in range(before)]
        for permit in permits:
            permit.sending("GET storage")
        await asyncio.sleep(1)
        for permit in permits:
            permit.answered(status)
            permit.release()
        return before, pacer.limit

    assert run_in_virtual_time(main()) == (8, 4)


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

    assert run_in_virtual_time(main()) == [4, 1]


def test_the_limit_doubles_until_the_maximum_while_nothing_waits() -> None:
    limit, seen, now = AdaptiveLimit(16), [], 0.0
    for _ in range(40):
        seen.append(limit.value)
        limit.answered("GET storage", now, now + 0.2, limit.value)
        now += 0.2
    assert sorted(set(seen)) == [4, 8, 16]


def test_one_answer_that_takes_very_long_is_no_queue() -> None:
    limit, now = AdaptiveLimit(16), 0.0
    for number in range(200):
        limit.answered("GET storage", now, now + (60 if number % 50 == 49 else 0.2), limit.value)
        now += 0.2
    assert limit.value == 16


def test_only_requests_of_one_kind_are_compared() -> None:
    limit, now = AdaptiveLimit(16), 0.0
    for number in range(400):
        kind, seconds = (("GET storage", 0.1), ("POST command=SETFIELD", 2.0))[number // 100 % 2]
        limit.answered(kind, now, now + seconds, limit.value)
        now += 2
    assert limit.value == 16


def test_kinds_name_no_asset() -> None:
    first, second = "/storage/NEWS@Film", "/storage/FILMS@Key:7"
    for build in (requests.get_asset, requests.get_user_fields, requests.restore, requests.delete_asset):
        assert kind_of(build(first)) == kind_of(build(second))
    assert len({kind_of(build(first)) for build in (requests.get_asset, requests.get_user_fields)}) == 2
    assert kind_of(requests.get_thumbnail(first, pos=1)) == kind_of(requests.get_thumbnail(second))
    assert kind_of(requests.set_field(first, "comment", "a")) != kind_of(requests.restore(first))


@given(st.integers(1, 1024), st.integers(1, 64), st.none() | st.floats(0.1, 10_000))
def test_shares_never_exceed_the_whole(connections: int, parts: int, rate: float | None) -> None:
    whole = ServerSpec("studio", "http://studio", connections=connections, requests_per_second=rate)
    if parts > connections:
        with pytest.raises(ValueError, match="cannot be divided"):
            whole.share(parts)
        return
    part = whole.share(parts)
    assert part.connections >= 1
    assert part.connections * parts <= connections
    if rate is not None:
        assert part.requests_per_second is not None
        assert Fraction(part.requests_per_second) * parts <= Fraction(rate) * (1 + Fraction(1, 2**52))
