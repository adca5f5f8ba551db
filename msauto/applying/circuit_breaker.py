"""Whether a server is still worth asking: what became of its targets says so.

A server that dies on the way would make each of its thousands of targets wait out all its own tries. So once a target
has ended because its server could not be reached, the server is *in doubt*: its next targets are begun one at a time,
after a pause, and tried once. Where three in a row end so, each begun after the one before had, the server is *given
up*: what is left of its targets is not attempted, and ``apply --resume`` goes on with it. Any answer ends the doubt,
and the next doubt counts anew.
A server that does not let us in any more (401, 407) is given up at once: asking on could lock the account. Every other
kind of failure is its target's alone (contract: a failed target never stops the others).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final, Literal

from msauto.concurrency import ConcurrencySlot
from msauto.errors import InDoubtError, RejectedError, UnreachableError, UnreadableError

Contact = Literal["answered", "silent", "locked out"]

_IN_A_ROW: Final = 3
_NOT_LET_IN: Final = frozenset({401, 407})
_NO_ANSWER: Final = frozenset({502, 504})
"""A gateway's word that it had none; 503 is the server's own."""


def contact_of(error: BaseException, *, read: bool) -> Contact | None:
    """Return what an error says of the way to the server; ``None``: nothing.

    A lost *write* says nothing, for it may be the one that the server chokes on; the reads that follow it do.
    """
    status = error.status if isinstance(error, RejectedError) else None
    if status in _NOT_LET_IN:
        return "locked out"
    if isinstance(error, UnreachableError):
        return "silent"
    if isinstance(error, InDoubtError) or status in _NO_ANSWER:
        return "silent" if read else None
    return "answered" if isinstance(error, (RejectedError, UnreadableError)) else None


@dataclass(frozen=True, slots=True)
class BreakerState:
    """What is known of a server: how many targets in a row have ended for it could not be reached, and why.

    ``doubts`` counts the doubts that an answer has ended.
    """

    missed: int = 0
    doubts: int = 0
    locked_out: bool = False
    why: str = ""

    @property
    def in_doubt(self) -> bool:
        """A target could not reach it, and nothing has since."""
        return self.missed > 0

    @property
    def given_up(self) -> bool:
        """It is of no use to begin another target."""
        return self.locked_out or self.missed >= _IN_A_ROW

    def answered(self) -> BreakerState:
        """Return what is known after an answer, whatever it says."""
        return self if self.locked_out or not self.in_doubt else BreakerState(doubts=self.doubts + 1)

    def not_let_in(self, why: str) -> BreakerState:
        """Return what is known after the server would not let us in."""
        return replace(self, locked_out=True, why=why)

    def missed_before(self, begun: BreakerState) -> int:
        """Return how many had missed it in the present doubt when a target began that found ``begun``.

        None, where an answer has come since: the target was under way before this doubt, like those begun later.
        """
        return min(self.missed, begun.missed) if begun.doubts == self.doubts else 0

    def missed_by(self, begun: BreakerState, why: str) -> BreakerState:
        """Return what is known after a target could not reach it that found ``begun`` when it began.

        Targets that were under way together count as one: they all speak of the same moment.
        """
        return replace(self, missed=max(self.missed, self.missed_before(begun) + 1), why=self.why or why)

    def words(self, server: str, run: str) -> str:
        """Return why a target of a server that was given up is not attempted, and what to do."""
        again = f"msauto apply --resume {run}"
        if self.locked_out:
            return f"the server {server} does not let us in any more ({self.why}); check its `auth`, then: {again}"
        return f"the server {server} cannot be reached any more ({self.why}); once it can: {again}"


class CircuitBreaker:
    """How one server stands while a run goes on, and the door that its targets pass one by one while it is in doubt."""

    def __init__(self) -> None:
        self.reach = BreakerState()
        self._scouting = False
        self._news = asyncio.Event()

    def learn(self, reach: BreakerState) -> None:
        """Take what is known by now; who waits at the door looks again."""
        if reach != self.reach:
            self.reach = reach
            self._tell()

    @asynccontextmanager
    async def door(self, place: ConcurrencySlot, pause: Callable[[int], Awaitable[object]]) -> AsyncIterator[None]:
        """Pass at once; while the server is in doubt one at a time, after a ``pause`` told how many were missed.

        Who waits leaves its place to targets of other servers. Getting one back takes time as well, in which the
        server may have gone once more: then he waits again.
        """
        scout = False
        try:
            while self._closed() and not scout:
                place.leave()
                while self._closed() and self._scouting:
                    await self._news.wait()
                if self._closed():
                    scout = self._scouting = True
                    await pause(self.reach.missed)
                await place.enter()
            yield
        finally:
            if scout:
                self._scouting = False
                self._tell()

    def _closed(self) -> bool:
        return self.reach.in_doubt and not self.reach.given_up

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
