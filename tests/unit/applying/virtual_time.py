"""An event loop in which only waiting takes time: hours pass at once, and a wait that cannot end is an error."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

from tests.unit.applying.applying_world import START, Clock

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Waits for nothing: the time that it was to wait is over."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise AssertionError("everybody waits, and nobody will ever wake them")
        self.passed += 0.0 if ready else max(0.0, timeout or 0.0)
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._chosen = _Selector()
        super().__init__(self._chosen)

    def time(self) -> float:
        return self._chosen.passed


class VirtualClock(Clock):
    """The time of :func:`run_in_virtual_time`: who sleeps side by side sleeps at the same time."""

    def __init__(self) -> None:
        """Hold nothing: the loop has the time."""

    @property
    def seconds(self) -> float:  # type: ignore[override]  # to be read alone
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run_in_virtual_time(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; a wait that cannot end is an ``AssertionError``."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(work)
