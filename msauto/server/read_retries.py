"""Which reads are tried again; how often, and after which pause: :mod:`msauto.retry_policy`.

Writes are not sent again here: see :mod:`msauto.applying`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from msauto.circuit_breaker import contact_of
from msauto.errors import ServerError
from msauto.model.ports import Clock
from msauto.retry_policy import LONGEST_PAUSE, READ_RETRIES, pause_before_read
from msauto.server.transport import TooSlowError

T = TypeVar("T")


async def read_with_retries(attempt: Callable[[], Awaitable[T]], clock: Clock) -> T:
    """Await ``attempt()``, again after a transient error, up to four times in all."""
    for number in range(READ_RETRIES):
        try:
            return await attempt()
        except ServerError as error:
            pause = pause_before_retry(error, number)
            if pause is None:
                raise
        await clock.sleep(pause)
    return await attempt()


def pause_before_retry(error: ServerError, attempt: int) -> float | None:
    """Return the seconds until a read is tried again after failed attempt number ``attempt``, from 0; ``None``: never.

    It is tried again if no complete answer came, or a busy server's or a gateway's (:func:`contact_of`).
    """
    asked = getattr(error, "retry_after", None) or 0.0
    transient = contact_of(error) in {"unreachable", "silent", "busy"} and not isinstance(
        error, TooSlowError
    )
    # An attempt before the time of Retry-After is useless, and a longer wait is too long.
    if not transient or asked > LONGEST_PAUSE:
        return None
    return pause_before_read(asked, attempt)
