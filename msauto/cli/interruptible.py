"""Running a coroutine so that Ctrl-C ends it for certain.

``asyncio.Runner`` answers the second Ctrl-C by raising ``KeyboardInterrupt`` inside the event loop. That may hit
between taking a callback from the loop's queue and calling it: the task behind it is then never woken, and the loop,
being closed, waits for it for ever (seen with three signals in a burst). Here a signal only asks the loop to cancel.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import TypeVar

from msauto.cli.signals import may_handle

T = TypeVar("T")


class _InterruptHandler:
    """Turns SIGINT into the cancelling of one task."""

    def __init__(self) -> None:
        self.came = False
        self._task: asyncio.Task[object] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def guard(self, work: Awaitable[T]) -> T:
        """Await ``work`` as the task that signals cancel."""
        self._task, self._loop = asyncio.current_task(), asyncio.get_running_loop()
        if self.came:  # before there was anything to cancel
            raise asyncio.CancelledError
        return await work

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        """Cancel once: a second signal in a burst must not cut short the closing of what is open."""
        first, self.came = not self.came, True
        if first and self._loop is not None and self._task is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._task.cancel)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Answer SIGINT, unless somebody else does already; once it came, further ones are swallowed for good.

        (``main`` gives back the handler that it found.)
        """
        before = signal.getsignal(signal.SIGINT)
        if before is not signal.default_int_handler or not may_handle():
            yield
            return
        signal.signal(signal.SIGINT, self)
        try:
            yield
        finally:
            if not self.came:
                signal.signal(signal.SIGINT, before)


def run_async(work: Awaitable[T], runner: asyncio.Runner | None = None) -> T:
    """Run ``work`` to its end, in a loop of its own or that of ``runner``; Ctrl-C cancels it.

    Raises ``KeyboardInterrupt`` once all that was under way is closed, also where the signal came too late to cancel.
    """
    interrupts = _InterruptHandler()
    with interrupts.installed():
        try:
            with nullcontext(runner) if runner is not None else asyncio.Runner() as loop:
                result = loop.run(interrupts.guard(work))
        except asyncio.CancelledError:
            if not interrupts.came:
                raise
    if interrupts.came:
        raise KeyboardInterrupt
    return result
