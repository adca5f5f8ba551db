"""A client for planning, which stops asking a server that cannot answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msauto.errors import UNAUTHORIZED_STATUSES, InDoubtError, RejectedError, ServerError, UnreachableError
from msauto.model.plan import Request
from msauto.server.availability import TRANSIENT_STATUSES
from msauto.server.client import AsyncMediaServer

_FAILURES_TO_OPEN: Final = 3


class PlanningClient(AsyncMediaServer):
    """A client with a circuit breaker, which opens for the server as a whole; then every read fails at once.

    It opens if the server cannot be reached, if it rejects our credentials (asking again could lock the account), or
    if three reads in a row have no answer. Each of these was tried several times (:mod:`.availability`). The error then
    names no request, because it is the same for all targets.
    """

    opened_by: ServerError | None = None
    """The error that opened the circuit breaker."""
    _failures = 0

    @property
    def unreachable(self) -> bool:
        """Whether the server as a whole does not answer; rejected credentials are an answer."""
        return self.opened_by is not None and getattr(self.opened_by, "status", None) not in UNAUTHORIZED_STATUSES

    @contextmanager
    def _context(self, request: Request, setting: str) -> Iterator[None]:
        if self.opened_by is not None:
            raise self.opened_by.with_traceback(None)
        try:
            with super()._context(request, setting):
                yield
        except ServerError as error:
            status = error.status if isinstance(error, RejectedError) else None
            unanswered = isinstance(error, InDoubtError) or status in TRANSIENT_STATUSES
            self._failures = self._failures + 1 if unanswered else 0
            failed = isinstance(error, UnreachableError) or status in UNAUTHORIZED_STATUSES
            if failed or self._failures >= _FAILURES_TO_OPEN:
                error.request = ""
                self._open(error)
            raise
        self._failures = 0

    def _open(self, error: ServerError) -> None:
        self.opened_by = self.opened_by or error
