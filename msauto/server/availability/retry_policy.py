"""Reads are tried again, three times, with backoff and jitter. Writes are not: see :mod:`msauto.applying`."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final, TypeVar

from msauto.errors import InDoubtError, NotSentError, RejectedError, ServerError
from msauto.model.ports import Clock
from msauto.server.transport import TooSlowError

T = TypeVar("T")

RETRIES: Final = 3
_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 60.0
_PASSING: Final = frozenset({429, 502, 503, 504})


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
    """Await ``read()``, again after an error that may pass: no or half an answer, 429, 502, 503, 504."""
    for attempt in range(RETRIES):
        try:
            return await read()
        except ServerError as error:
            if not may_pass(error):
                raise
            pause = pause_after(error, attempt, jitter())
        await clock.sleep(pause)
    return await read()


def may_pass(error: ServerError) -> bool:
    """Tell whether a read may be answered if it is asked once more."""
    if isinstance(error, RejectedError):
        # To ask earlier than the server wants to be asked is no use, and nobody waits for hours.
        return error.status in _PASSING and (error.retry_after or 0.0) <= _LONGEST_PAUSE
    return isinstance(error, (NotSentError, InDoubtError)) and not isinstance(error, TooSlowError)


def pause_after(error: ServerError, attempt: int, jitter: float) -> float:
    """Return the seconds to wait after a failed attempt, counted from 0; ``jitter`` is from 0 to 1."""
    asked = error.retry_after if isinstance(error, RejectedError) and error.retry_after else 0.0
    backoff: float = _FIRST_PAUSE * 2**attempt * (0.5 + jitter)
    return min(_LONGEST_PAUSE, max(asked, backoff))
