"""A clock that does not wait, and remembers how long it was asked to."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime


class NoWait:
    def __init__(self) -> None:
        self.pauses: list[float] = []

    def now(self) -> datetime:
        return datetime(2026, 11, 20, 12, 0, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)
