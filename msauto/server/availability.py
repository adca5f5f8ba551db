"""What an error means for the state of the server, and when a read is retried."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final, TypeVar

from msauto.errors import (
    GATEWAY_STATUSES,
    UNAUTHORIZED_STATUSES,
    InDoubtError,
    NotSentError,
    RejectedError,
    ServerError,
)
from msauto.model.ports import Clock
from msauto.server.pacing import LONGEST_PAUSE
from msauto.server.transport import TooSlowError

T = TypeVar("T")

RETRIES: Final = 3
_FIRST_PAUSE: Final = 0.2
BUSY_STATUSES: Final = frozenset({429, 503})
TRANSIENT_STATUSES: Final = BUSY_STATUSES | GATEWAY_STATUSES
UNINFORMATIVE_STATUSES: Final = TRANSIENT_STATUSES | UNAUTHORIZED_STATUSES | {403}
"""Statuses that give no information about the requested object."""


class SystemClock:
    """The real clock."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


async def with_retries(
    read: Callable[[], Awaitable[T]], clock: Clock, *, jitter: Callable[[], float] = random.random
) -> T:
    """Await ``read()``, up to four times after a transient error: no complete answer, 429, 502, 503, 504.

    Writes are not sent again here: see :mod:`msauto.applying`.
    """
    attempt = 0
    while True:
        try:
            return await read()
        except ServerError as error:
            if attempt >= RETRIES or not is_transient(error):
                raise
            pause = pause_after(error, attempt, jitter())
        attempt += 1
        await clock.sleep(pause)


def is_transient(error: ServerError) -> bool:
    """Return whether a read may succeed at the next attempt."""
    if isinstance(error, RejectedError):
        # An attempt before the time of Retry-After is useless, and a longer wait is too long.
        return error.status in TRANSIENT_STATUSES and (error.retry_after or 0.0) <= LONGEST_PAUSE
    return isinstance(error, (NotSentError, InDoubtError)) and not isinstance(error, TooSlowError)


def pause_after(error: ServerError, attempt: int, jitter: float) -> float:
    """Return the seconds to wait after failed attempt number ``attempt``, from 0. ``jitter`` is from 0 to 1."""
    asked = error.retry_after if isinstance(error, RejectedError) and error.retry_after else 0.0
    backoff: float = _FIRST_PAUSE * 2**attempt * (0.5 + jitter)
    return min(LONGEST_PAUSE, max(asked, backoff))
