"""Bounded, in-order, concurrent map: the one place that knows about asyncio tasks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


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


async def _call(function: Callable[[T], Awaitable[R]], item: T) -> R:
    return await function(item)


async def _cancel(tasks: Iterable[asyncio.Task[R]]) -> None:
    left = list(tasks)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
