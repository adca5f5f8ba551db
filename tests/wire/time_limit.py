"""Time that passes only where a test lets it: no time limit is over because the machine is slow."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

from tests.wire.raw_server import Exchange, Handler, hang

T = TypeVar("T")


class NoWait:
    """A clock that does not wait, and remembers how long it was asked to."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def now(self) -> datetime:
        return datetime(2026, 11, 20, 12, 0, tzinfo=UTC)

    def monotonic(self) -> float:
        return sum(self.pauses)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)


class PatientLoop(asyncio.SelectorEventLoop):
    """Its sockets are real, and its time passes by :func:`pass_time` alone."""

    passed = 0.0

    def time(self) -> float:
        return self.passed


async def pass_time(seconds: float) -> None:
    """Let time pass, in small steps, so that each time limit is over when it should be."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, PatientLoop)
    for _ in range(200):
        loop.passed += seconds / 200
        await asyncio.sleep(0)


def silence(seconds: float) -> Handler:
    """No answer, for so long."""

    async def handler(exchange: Exchange) -> bool:
        await pass_time(seconds)
        return await hang(exchange)

    return handler


def run_patiently(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end in a :class:`PatientLoop`."""
    with asyncio.Runner(loop_factory=PatientLoop) as runner:
        return runner.run(work)
