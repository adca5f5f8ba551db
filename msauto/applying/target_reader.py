"""Reads one target again: to settle a request, to check a guard, and to verify the whole."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from typing import TypeVar

from msauto.applying.apply_context import ServerConnection
from msauto.applying.circuit_breaker import TargetContact
from msauto.errors import UnreachableError
from msauto.model.plan import Target
from msauto.model.ports import LiveTarget
from msauto.verification import read_back
from msauto.verification.read_back import Verdict

T = TypeVar("T")


class TargetReader:
    """Reads the live state of one target; every answer, and every error, is reported to the circuit breaker."""

    def __init__(self, server: ServerConnection, target: Target, contact: TargetContact) -> None:
        self._server = server
        self._target = target
        self._contact = contact

    async def read(self, part: Target, sent: int) -> LiveTarget:
        """Read what the requests of ``part`` change; ``sent``: how many requests of the target may have been done."""
        if self._contact.unauthorized:  # asking again could lock the account
            raise UnreachableError("not asked again, because the server rejects our credentials")
        addresses = read_back.addresses(self._target, sent)
        return await self._ask(read_back.read_again(self._server.reader.fresh(), self._server.folders, part, addresses))

    async def verdict(self, index: int, *, in_doubt: bool) -> Verdict:
        """Return how much of the request ``index`` is done."""
        part = read_back.only(self._target, index, index + 1)
        if not read_back.can_see(part):
            if in_doubt:
                await self.ping()
            return "hidden"
        return read_back.verdict_of(self._target.requests[index], await self.read(part, index + 1))

    async def missing_before(self, index: int) -> tuple[str, ...]:
        """Return the keys of what the requests before ``index`` should have done, and reading does not show."""
        part = read_back.only(self._target, 0, index)
        return read_back.not_seen(part, await self.read(part, index))

    async def ping(self) -> None:
        """Find out whether the server can be reached, by a read that it answers at once."""
        reader, target = self._server.reader.fresh(), self._target
        with suppress(Exception):
            if target.kind == "rss_channel":
                await self._ask(reader.read_channel(target.address.name))
            else:
                await self._ask(reader.has_database(target.database))

    async def _ask(self, reading: Awaitable[T]) -> T:
        try:
            found = await reading
        except Exception as error:
            self._contact.failed(error, read=True)
            raise
        self._contact.answered()
        return found
