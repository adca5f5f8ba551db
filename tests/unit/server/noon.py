"""A clock that is stopped at noon."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime


class Noon:
    def now(self) -> datetime:
        return datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
