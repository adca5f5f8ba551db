"""A client for planning, which does not ask a thousand times at a door that does not open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from msauto.errors import InDoubtError, RejectedError, ServerError, UnreachableError
from msauto.model.plan import Request
from msauto.server.client import AsyncMediaServer
from msauto.server.parsers.answers import RawAnswer
from msauto.server.parsers.listing_stream import StreamedAnswer

T = TypeVar("T")

_IN_A_ROW: Final = 3
_NOT_LET_IN: Final = frozenset({401, 407})
_BUSY: Final = frozenset({429, 502, 503, 504})


class PlanningClient(AsyncMediaServer):
    """Reads only, and gives up on a server as a whole where asking on is of no use; then every read fails at once.

    That is: where it cannot be reached, where it does not let us in (asking on could lock the account), and where
    three reads in a row stay without an answer. Each was tried again before (:mod:`.retry_policy`). The error
    then names no request, for it is the server's: the same for all targets.
    """

    async def read(self, request: Request, parse: Callable[[RawAnswer], T], *, listing: bool = False) -> T:
        """As :meth:`AsyncMediaServer.read`, unless the server was given up."""
        self._check_given_up()
        return await self._judged(super().read(request, parse, listing=listing))

    async def read_listing(self, request: Request, begin: Callable[[str | None], StreamedAnswer[T]]) -> T:
        """As :meth:`AsyncMediaServer.read_listing`, unless the server was given up."""
        self._check_given_up()
        return await self._judged(super().read_listing(request, begin))

    _given_up: ServerError | None = None
    _silent = 0

    def _check_given_up(self) -> None:
        if self._given_up is not None:
            raise self._given_up.with_traceback(None)

    async def _judged(self, reading: Awaitable[T]) -> T:
        try:
            answer = await reading
        except ServerError as error:
            self._judge(error)
            raise
        self._silent = 0
        return answer

    def _judge(self, error: ServerError) -> None:
        status = error.status if isinstance(error, RejectedError) else None
        silent = isinstance(error, InDoubtError) or status in _BUSY
        self._silent = self._silent + 1 if silent else 0
        if isinstance(error, UnreachableError) or status in _NOT_LET_IN or self._silent >= _IN_A_ROW:
            error.request = ""
            self._given_up = self._given_up or error
