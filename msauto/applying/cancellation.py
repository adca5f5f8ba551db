"""A person's wish that a run ends: once, after the requests under way; twice, at once."""

from __future__ import annotations

import asyncio

from msauto.concurrency import run_unless
from msauto.model.ports import Clock


class Cancellation:
    """Handed to :func:`~msauto.applying.executor.apply`; a signal handler of the same event loop calls it."""

    def __init__(self) -> None:
        self._gently = asyncio.Event()
        self.at_once = asyncio.Event()

    def __call__(self) -> None:
        """Ask to stop: the first call begins no new request, the second leaves those under way."""
        if self.requested:
            self.at_once.set()
        self._gently.set()

    @property
    def requested(self) -> bool:
        """Whether anybody has asked."""
        return self._gently.is_set()

    async def sleep(self, clock: Clock, seconds: float) -> bool:
        """Wait, unless asked to stop; tell whether the time is over."""
        if self.requested:
            return False
        return await run_unless(_sleep(clock, seconds), self._gently)


async def _sleep(clock: Clock, seconds: float) -> None:
    await clock.sleep(seconds)
