"""A clock that shows noon, and whose pauses take no time."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime


class Noon:
    seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        await asyncio.sleep(0)
