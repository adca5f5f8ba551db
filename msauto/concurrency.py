"""Bounded concurrency (ordered map, slots), cancellation of asyncio tasks, signals that stop, and the real clock.

Commands without an event loop import this module too, so asyncio is imported only where a coroutine runs.
"""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
R = TypeVar("R")

MOST_FORKS: Final = 512
"""The most targets that a run reads or writes at the same time."""
HANG_UP: Final[signal.Signals | None] = getattr(signal, "SIGHUP", None)
"""The end of the terminal. It may come twice, from the kernel and from the shell, so it never means *at once*."""
MAX_WAITING: Final = 1000
"""How many results of :func:`concurrent_map` may wait for an older one: some 10 MB of planned targets."""


def is_over(seconds: float) -> bool:
    """Return whether a wait with ``seconds`` left is over; less than a millisecond may not move the clock at all."""
    return seconds < 0.001


def stop_signals() -> list[signal.Signals]:
    """Return the signals that ask a run to stop: Ctrl-C, SIGTERM and, without ``nohup``, the end of the terminal.

    Windows has no SIGHUP.
    """
    numbers = [signal.SIGINT, signal.SIGTERM]
    if HANG_UP is not None and signal.getsignal(HANG_UP) is not signal.SIG_IGN:
        numbers.append(HANG_UP)
    return numbers


class SystemClock:
    """The real clock; the time of day is in UTC."""

    now = staticmethod(partial(datetime.now, UTC))
    monotonic = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        import asyncio

        await asyncio.sleep(seconds)


async def concurrent_map(
    function: Callable[[T], Awaitable[R]], items: Iterable[T], *, limit: int
) -> AsyncGenerator[R, None]:
    """Yield ``await function(item)`` for each item, in the order of the items, with at most ``limit`` running.

    A slow item does not delay the others, until ``MAX_WAITING`` results wait for it. Items are taken as calls finish,
    so a generator of 300,000 items is never stored. The first exception is raised in the order of the items, and no
    items are taken after it; the running calls are cancelled and awaited.
    """
    import asyncio

    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    calls = map(function, items)
    started: deque[asyncio.Future[R]] = deque()  # whose results are not yet yielded, oldest first
    running, exhausted, finished = 0, False, asyncio.Event()

    def end(task: asyncio.Future[R]) -> None:
        nonlocal running, exhausted
        running -= 1
        exhausted |= task.cancelled() or task.exception() is not None
        finished.set()

    in_a_row = 0
    try:
        while True:
            while not exhausted and running < limit and len(started) < limit + MAX_WAITING:
                call = next(calls, None)
                if call is None:
                    exhausted = True
                else:
                    task = asyncio.ensure_future(call)
                    running += 1
                    task.add_done_callback(end)
                    started.append(task)
            if not started:
                return
            if started[0].done() and in_a_row < limit:
                in_a_row += 1
                yield started.popleft().result()
                continue
            in_a_row = 0
            if started[0].done():  # let other tasks run between the results that were waiting
                await asyncio.sleep(0)
            else:
                finished.clear()
                await finished.wait()
    finally:
        if started:
            await _cancel(started)


async def concurrent_list(
    function: Callable[[T], Awaitable[R]], items: Iterable[T], *, limit: int
) -> list[R]:
    """Return the results of :func:`concurrent_map` as a list."""
    return [result async for result in concurrent_map(function, items, limit=limit)]


async def in_turns(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield the items, and let other tasks run after 500 of them: for loops over 300,000 items."""
    import asyncio

    for number, item in enumerate(items, 1):
        yield item
        if number % 500 == 0:
            await asyncio.sleep(0)


class ConcurrencySlot:
    """One of a limited number of slots; a task that waits for long may leave its slot and enter again."""

    def __init__(self, slots: asyncio.Semaphore) -> None:
        self.slots = slots
        self.is_held = True

    def leave(self) -> None:
        """Give the slot to another task."""
        if self.is_held:
            self.is_held = False
            self.slots.release()

    async def enter(self) -> None:
        """Wait for a slot again."""
        if not self.is_held:
            await self.slots.acquire()
            self.is_held = True


async def run_unless(work: Coroutine[Any, Any, None], cancelled: asyncio.Event) -> bool:
    """Run ``work`` until it ends, or cancel it when ``cancelled`` is set; return whether it was not cancelled."""
    import asyncio

    task = asyncio.ensure_future(work)
    waiting = asyncio.ensure_future(cancelled.wait())
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await _cancel((task, waiting))
    if task.cancelled():
        return False
    task.result()
    return True


async def finish(work: Coroutine[Any, Any, T], interrupted: Callable[[], None]) -> tuple[T, bool]:
    """Await work that should be finished even if cancelled once; return whether it was cancelled.

    The first cancellation calls ``interrupted``, and the work continues; the second one cancels it.
    """
    import asyncio

    task = asyncio.ensure_future(work)
    was_cancelled = False
    while True:
        try:
            return await asyncio.shield(task), was_cancelled
        except asyncio.CancelledError:
            if was_cancelled:
                await _cancel((task,))
                raise
            was_cancelled = True
            interrupted()


async def _cancel(tasks: Iterable[asyncio.Future[Any]]) -> None:
    import asyncio

    pending = list(tasks)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
