"""Bounded, in-order, concurrent map: the one place that knows about asyncio tasks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

MOST_WAITING: Final = 1000
"""Results of :func:`concurrent_map` that may wait for an older one. A planned target or an asset takes some 10 kB, so
they hold 10 MB; at 400 assets a second, one that takes 2.5 s idles nobody."""
_MOMENT: Final = 0.001


def is_over(left: float) -> bool:
    """Tell whether a wait of which ``left`` seconds remain is over: a rest below a millisecond is rounding.

    A pause of 1e-14 s may not move the clock at all, and then the wait never ends.
    """
    return left < _MOMENT


class _LookAhead(Generic[R]):
    """What was drawn and is not yet yielded, oldest first; keeps ``limit`` under way as long as items come."""

    def __init__(self, calls: Iterator[Coroutine[Any, Any, R]], limit: int) -> None:
        self.drawn: deque[asyncio.Task[R]] = deque()
        self._calls = calls
        self._limit = limit
        self._under_way = 0
        self._all_drawn = False
        self._news = asyncio.Event()

    def draw(self) -> None:
        """Draw items for the free places; none where too many results wait, or where one has failed."""
        room = self._limit + MOST_WAITING
        while not self._all_drawn and self._under_way < self._limit and len(self.drawn) < room:
            try:
                call = next(self._calls)
            except StopIteration:
                self._all_drawn = True
            else:
                task = asyncio.ensure_future(call)
                self._under_way += 1
                task.add_done_callback(self._over)
                self.drawn.append(task)

    async def wait(self) -> None:
        """Return once the oldest may be finished; others have a turn in any case."""
        if self.drawn[0].done():
            await asyncio.sleep(0)
            return
        self._news.clear()
        await self._news.wait()

    def _over(self, task: asyncio.Task[R]) -> None:
        self._under_way -= 1
        self._all_drawn |= task.cancelled() or task.exception() is not None
        self._news.set()


async def concurrent_map(function: Callable[[T], Awaitable[R]], items: Iterable[T], *, limit: int) -> AsyncIterator[R]:
    """Yield ``await function(item)`` for each item, in the order of the items, with at most ``limit`` under way.

    A slow item holds up none of the others: they go on until ``MOST_WAITING`` results wait for it. Items are drawn as
    places become free, so a generator of 300,000 items is never held whole. The first exception is raised where its
    item stands in the order, and no items are drawn after it; what is under way then is cancelled and awaited.
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    ahead = _LookAhead((_call(function, item) for item in items), limit)
    in_a_row = 0
    try:
        while True:
            ahead.draw()
            if not ahead.drawn:
                return
            if ahead.drawn[0].done() and in_a_row < limit:
                in_a_row += 1
                yield ahead.drawn.popleft().result()
            else:  # results that waited come in a row: others have their turn between them
                in_a_row = 0
                await ahead.wait()
    finally:
        await _cancel(ahead.drawn)


async def concurrent_list(function: Callable[[T], Awaitable[R]], items: Iterable[T], *, limit: int) -> list[R]:
    """Gather :func:`concurrent_map` as a list."""
    return [result async for result in concurrent_map(function, items, limit=limit)]


async def in_turns(items: Iterable[T], *, each: int = 500) -> AsyncIterator[T]:
    """Yield the items, and after ``each`` of them let everybody else have a turn: for loops over 300,000 of them."""
    for number, item in enumerate(items, 1):
        yield item
        if number % each == 0:
            await asyncio.sleep(0)


class ConcurrencySlot:
    """One of a limited number of places; whoever waits for long may leave it and come back."""

    __slots__ = ("_held", "_places")

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places = places
        self._held = True

    def leave(self) -> None:
        """Give the place to somebody else."""
        if self._held:
            self._held = False
            self._places.release()

    async def enter(self) -> None:
        """Wait for a place again."""
        if not self._held:
            await self._places.acquire()
            self._held = True


async def run_each(
    function: Callable[[T, ConcurrencySlot], Awaitable[None]], items: Iterable[T], *, limit: int
) -> None:
    """Run ``function(item, place)`` for each item, begun in order, at most ``limit`` of them in a place at once.

    Items are drawn only as places become free; a slow one holds up no other. The first exception cancels the rest.
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    places = asyncio.Semaphore(limit)
    source = iter(items)
    async with asyncio.TaskGroup() as group:
        while True:
            await places.acquire()
            try:
                item = next(source)
            except StopIteration:
                places.release()
                return
            group.create_task(_occupy(function, item, ConcurrencySlot(places)))


async def run_unless(work: Coroutine[Any, Any, None], alarm: asyncio.Event) -> bool:
    """Run ``work`` until it ends or ``alarm`` is set, which cancels it; tell whether it ended by itself."""
    task = asyncio.ensure_future(work)
    bell = asyncio.ensure_future(alarm.wait())
    try:
        await asyncio.wait({task, bell}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await _cancel((task, bell))
    if task.cancelled():
        return False
    task.result()
    return True


async def finish(work: Coroutine[Any, Any, T], interrupted: Callable[[], None]) -> tuple[T, bool]:
    """Await what must be done to its end, and tell whether somebody cancelled it meanwhile.

    The first time that is told to ``interrupted``, and it goes on; the second time it ends, and so does the caller.
    """
    task = asyncio.ensure_future(work)
    asked = False
    while True:
        try:
            return await asyncio.shield(task), asked
        except asyncio.CancelledError:
            if asked:
                await _cancel((task,))
                raise
            asked = True
            interrupted()


async def _occupy(function: Callable[[T, ConcurrencySlot], Awaitable[None]], item: T, place: ConcurrencySlot) -> None:
    try:
        await function(item, place)
    finally:
        place.leave()


async def _call(function: Callable[[T], Awaitable[R]], item: T) -> R:
    return await function(item)


async def _cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    left = list(tasks)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
