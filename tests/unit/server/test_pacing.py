"""A server is spared: requests at its rate, in their order, and few where it does not answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest

from msauto.errors import LedgerError, MsautoError, RejectedError, ServerError, UnreachableError
from msauto.model.plan import Request
from msauto.model.server import ServerSpec, Timeouts
from msauto.plugins.simulator.embedded import Simulator
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
        async with AsyncMediaServer(
            spec, transport=httpx2.MockTransport(answer), clock=VirtualClock()
        ) as client:
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
        async with AsyncMediaServer(
            spec, transport=httpx2.MockTransport(answer), clock=clock
        ) as client:
            with pytest.raises(RejectedError):
                await client.set_field("NEWS", "Film", "comment", "Ready")
            (await client.permit()).release()
        return clock.monotonic()

    assert run_in_virtual_time(main()) == pytest.approx(waited, abs=0.002)


# A client for planning asks a server that does not answer a few times, and not a thousand


class Hurried:
    """A clock whose pauses take no time."""

    def __init__(self) -> None:
        self.slept = 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept += seconds

    def monotonic(self) -> float:
        return 0.0

    def now(self):  # type: ignore[no-untyped-def]
        from datetime import UTC, datetime

        return datetime.now(UTC)


def errors_of_reads(url: str, count: int, *, read: float = 5.0) -> list[MsautoError | None]:
    async def ask() -> list[MsautoError | None]:
        spec = ServerSpec("studio-a", url, timeouts=Timeouts(read=read))
        async with AsyncMediaServer(spec, read_only=True, gives_up=True, clock=Hurried()) as client:
            found: list[MsautoError | None] = []
            for number in range(count):
                try:
                    await client.asset("NEWS", f"EP00{number}")
                    found.append(None)
                except MsautoError as error:
                    found.append(error)
            return found

    return asyncio.run(ask())


def test_a_refused_connection_is_told_once_for_all() -> None:
    errors = errors_of_reads("http://127.0.0.1:1", 50)
    assert all(isinstance(error, UnreachableError) for error in errors)
    assert len({str(error) for error in errors}) == 1
    assert str(errors[0]).startswith("server studio-a at http://127.0.0.1:1: no connection")


def test_who_is_not_let_in_does_not_ask_again() -> None:
    with Simulator(faults=["status:401@GET"]) as sim:
        errors = errors_of_reads(sim.url, 50)
        assert len(sim.log) == 1
    assert all(isinstance(error, RejectedError) and error.status == 401 for error in errors)
    assert len({str(error) for error in errors}) == 1


@pytest.mark.parametrize("fault", ["cut_before", "status:503", "truncate"])
def test_three_reads_without_an_answer_are_enough(fault: str) -> None:
    with Simulator(faults=[f"{fault}@GET"]) as sim:
        errors = errors_of_reads(sim.url, 50)
        assert len(sim.log) == 3 * 4  # each with its repetitions
    assert all(isinstance(error, ServerError) for error in errors)
    assert len({str(error) for error in errors[2:]}) == 1


def test_an_answer_in_between_is_a_sign_of_life() -> None:
    with Simulator(
        faults=["cut_before@EP000", "cut_before@EP001", "cut_before@EP003", "cut_before@EP004"]
    ) as sim:
        errors = errors_of_reads(sim.url, 7)
    assert [error is None or isinstance(error, RejectedError) for error in errors] == [
        False, False, True, False, False, True, True,
    ]  # fmt: skip


# Every request to a real server counts: reads, further attempts, writes, and the start of a download


@dataclass
class LoggedClock:
    """Time passes by sleeping alone; ``seen`` holds the requests in the log of the server after each sleep."""

    simulator: Simulator
    seconds: float = 0.0
    seen: list[tuple[float, int]] = field(default_factory=list)

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        self.seconds += seconds
        self.seen.append((self.seconds, len(self.simulator.log)))


def test_the_log_of_the_server_never_runs_ahead_of_the_rate(tmp_path: Path) -> None:
    async def main(simulator: Simulator) -> LoggedClock:
        clock = LoggedClock(simulator)
        spec = ServerSpec("studio", simulator.url, requests_per_second=2)
        async with AsyncMediaServer(spec, clock=clock) as server:
            await asyncio.gather(
                server.list("NEWS"),
                server.set_field("NEWS", "Long Film", "comment", "Ready"),
                server.asset("NEWS", "Long Film"),
                server.thumbnail("NEWS", "Long Film"),
                server.download_proxy("NEWS", "Long Film", "WP1", tmp_path / "film.mp4"),
                server.xmp("NEWS", "Long Film"),
            )
        return clock

    with Simulator(faults=["status:503@GET .*GETICON*1"]) as simulator:
        clock = asyncio.run(main(simulator))
        requests = len(simulator.log)
    assert requests == 7  # one of them again, after 503
    assert all(count <= 2 * seconds for seconds, count in clock.seen)
    assert clock.seconds >= requests / 2


# A write is admitted at the last moment before it is sent: a ledger may be lost while it waits for a connection


def test_a_write_that_is_not_admitted_is_not_sent() -> None:
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.method)
        return httpx2.Response(200, text="ok")

    lost = False

    def admit() -> None:
        if lost:
            raise LedgerError("the session is lost")

    async def write() -> None:
        nonlocal lost
        async with AsyncMediaServer(
            "http://x", transport=httpx2.MockTransport(answer), admit=admit
        ) as server:
            await server.send(Request("POST", "/storage/NEWS@Film?command=COPY"))
            lost = True
            await server.send(Request("GET", "/storage/NEWS@Film"))
            for _ in range(40):  # more than there are connections
                with pytest.raises(LedgerError, match="the session is lost"):
                    await server.send(Request("POST", "/storage/NEWS@Film?command=COPY"))
            lost = False
            await server.send(Request("POST", "/storage/NEWS@Film?command=COPY"))

    asyncio.run(write())
    assert asked == ["POST", "GET", "POST"]


def test_what_is_read_before_a_write_takes_the_place_that_the_write_holds() -> None:
    async def main() -> list[str]:
        clock, order = VirtualClock(), list[str]()
        pacer = Pacer(ServerSpec("studio", "http://studio", connections=1), clock)

        async def read(name: str) -> None:
            permit = await pacer.permit()
            order.append(name)
            await asyncio.sleep(1)
            permit.release()

        async def write() -> None:
            permit = await pacer.permit()
            permit.hold()
            await asyncio.gather(
                read("check 1"), read("check 2")
            )  # one after the other: there is one connection
            order.append("write")
            permit.release()
            await read("verify")

        async def others() -> None:
            await asyncio.sleep(0.1)
            await read("another")

        await asyncio.gather(write(), others())
        return order

    assert run_in_virtual_time(main()) == ["check 1", "check 2", "write", "another", "verify"]
