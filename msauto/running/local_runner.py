"""Runs work in this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import TypeVar

from msauto.concurrency import concurrent_map
from msauto.model.ports import Work

T = TypeVar("T")
R = TypeVar("R")


class LocalRunner:
    """Implements ``Runner``: the work is opened once, and gets the items one by one."""

    async def map(self, work: Work[T, R], items: Iterable[T], *, limit: int) -> AsyncGenerator[R, None]:
        """Yield the result of each item in the order of the items (:class:`~msauto.model.ports.Runner`)."""
        async with work.open(work.server) as call, aclosing(concurrent_map(call, items, limit=limit)) as results:
            async for result in results:
                yield result
