"""Bounded, in-order, concurrent map: the one place that knows about asyncio tasks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from typing import Any, Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_MOMENT: Final = 0.001


def is_over(left: float) -> bool:
    """Tell whether a wait of which ``left`` seconds remain is over: a rest below a millisecond is rounding.

    A pause of 1e-14 s may not move the clock at all, and then the wait never ends.
    """
    return left < _MOMENT


async def concurrent_map(function: Callable[[T], Awaitable[R]], items: Iterable[T], *, limit: int) -> AsyncIterator[R]:
    """Yield ``await function(item)`` for each item, in the order of the items, with at most ``limit`` under way.

    Items are drawn only as places become free, so a generator of 300,000 items is never held whole. The first
    exception is raised where its item stands in the order; whatever is under way then is cancelled and awaited.
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    pending: deque[asyncio.Task[R]] = deque()
    source = iter(items)
    exhausted = False
    try:
        while True:
            while not exhausted and len(pending) < limit:
                try:
                    item = next(source)
                except StopIteration:
                    exhausted = True
                else:
                    pending.append(asyncio.ensure_future(_call(function, item)))
            if not pending:
                return
            yield await asyncio.shield(pending[0])
            pending.popleft()
    finally:
        await _cancel(pending)


async def concurrent_list(function: Callable[[T], Awaitable[R]], items: Iterable[T], *, limit: int) -> list[R]:
    """Gather :func:`concurrent_map` as a list."""
    return [result async for result in concurrent_map(function, items, limit=limit)]


async def in_turns(items: Iterable[T], *, each: int = 500) -> AsyncIterator[T]:
    """Yield the items, and after ``each`` of them let everybody else have a turn: for loops over 300,000 of them."""
    for number, item in enumerate(items, 1):
        yield item
        if number % each == 0:
            await asyncio.sleep(0)


class Place:
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


async def run_each(function: Callable[[T, Place], Awaitable[None]], items: Iterable[T], *, limit: int) -> None:
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
            group.create_task(_occupy(function, item, Place(places)))


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


async def _occupy(function: Callable[[T, Place], Awaitable[None]], item: T, place: Place) -> None:
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
