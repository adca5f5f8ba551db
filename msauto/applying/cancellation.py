"""Cancellation of a run by the user: the first request finishes what was started, the second stops at once."""

from __future__ import annotations

import asyncio

from msauto.concurrency import run_unless
from msauto.model.ports import Clock


class Cancellation:
    """Passed to :func:`~msauto.applying.executor.apply`; a signal handler of the same event loop calls it."""

    def __init__(self) -> None:
        self._requested = asyncio.Event()
        self.at_once = asyncio.Event()

    def __call__(self) -> None:
        """Cancel: the first call starts no new request, the second abandons those in progress."""
        if self.requested:
            self.at_once.set()
        self._requested.set()

    @property
    def requested(self) -> bool:
        """Whether the run was cancelled."""
        return self._requested.is_set()

    async def sleep(self, clock: Clock, seconds: float) -> bool:
        """Sleep until the time is over or the run is cancelled; return whether the time is over."""
        return not self.requested and await run_unless(clock.sleep(seconds), self._requested)
