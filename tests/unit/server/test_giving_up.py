"""A client for planning asks a server that does not answer a few times, and not a thousand."""

from __future__ import annotations

import asyncio

import pytest

from msauto.errors import MsautoError, RejectedError, ServerError, UnreachableError
from msauto.model.server import ServerSpec, Timeouts
from msauto.server.client import AsyncMediaServer
from msauto.simulator import Simulator


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
    with Simulator(faults=["cut_before@EP000", "cut_before@EP001", "cut_before@EP003", "cut_before@EP004"]) as sim:
        errors = errors_of_reads(sim.url, 7)
    assert [error is None or isinstance(error, RejectedError) for error in errors] == [
        False, False, True, False, False, True, True,
    ]  # fmt: skip
