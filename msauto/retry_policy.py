"""Again, and when: how often something is sent or read again, after which pauses, and the longest of them.

What may be tried again is decided where it failed: reads by :mod:`msauto.server.http_client`, writes by
:mod:`msauto.applying.states`.
"""

from __future__ import annotations

import random
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from msauto.concurrency import is_over

LONGEST_PAUSE: Final = 60.0
"""The longest ``Retry-After`` that is waited for, in seconds: with a longer one, a request fails at once."""
READ_RETRIES: Final = 3
"""How often a read is tried again."""
_FIRST_READ_PAUSE: Final = 0.2
_LONGEST_LOOK: Final = 10.0


def pause_before_read(asked: float, attempt: int) -> float:
    """Return the seconds until a read is tried again after failed attempt number ``attempt``, from 0.

    ``asked`` are the seconds that the server asks for.
    """
    backoff: float = _FIRST_READ_PAUSE * 2**attempt * (0.5 + random.random())  # noqa: S311
    return min(LONGEST_PAUSE, max(asked, backoff))


class RetryPolicy(Struct, frozen=True):
    """How often a run sends and reads again; all pauses in seconds.

    ``tries``: how often to send a request that was certainly not done, ``backoff``: the pauses between.
    ``max_retry_after``: the longest ``Retry-After`` to wait for. ``read_pauses``: between reads that look for what was
    written; ``restore_pauses``: for a restored file. ``half_open_pauses``: before each target of a server whose circuit
    breaker is half-open. The last pause repeats, except that of ``read_pauses``.
    """

    tries: int = 3
    backoff: tuple[float, ...] = (0.5, 2.0)
    max_retry_after: float = LONGEST_PAUSE
    read_pauses: tuple[float, ...] = (0.2, 0.8, 2.0, 4.0)
    restore_pauses: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0, 15.0)
    half_open_pauses: tuple[float, ...] = (2.0, 10.0)

    def showing_after(self, seconds: float) -> RetryPolicy:
        """The policy for a server that may show only after so many seconds what was done: reads go on for so long."""
        pauses = list(self.read_pauses)
        while not is_over(left := seconds - sum(pauses)):
            pauses.append(min(_LONGEST_LOOK, left))
        return replace(self, read_pauses=tuple(pauses))

    @property
    def half_open(self) -> RetryPolicy:
        """The policy for a server that may be unreachable: one try, one read."""
        return replace(self, tries=1, read_pauses=())
