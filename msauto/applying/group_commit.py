"""Group commit: what several targets have to tell the ledger at the same moment becomes durable together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial

from msauto.errors import LedgerError, MsautoError
from msauto.model.ports import Journal

Call = Callable[[], object]


class GroupCommit:
    """Collects calls to the journal and the memory, and makes them in one transaction each turn of the event loop.

    ``write`` returns once its call is durable: nothing is sent before. ``note`` does not wait, for a lost note is no
    lie: the ledger then holds "sending", which the next run settles by reading. Calls are made in their order, one
    transaction after another; while the disk is waited for, the event loop goes on and the next calls are collected.
    After the first failure nothing more is written and every ``write`` raises: a run without a ledger sends nothing.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._calls: list[Call] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._committing: Future[None] | None = None
        self._committed_for: list[asyncio.Future[None]] = []
        self.broken: MsautoError | None = None

    async def write(self, *calls: Call) -> None:
        """Make the calls, and return when they are durable; raise ``LedgerError`` where they cannot be."""
        if self.broken is not None:
            raise self.broken
        self.note(*calls)
        done = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        await done

    def note(self, *calls: Call) -> None:
        """Make the calls with the next commit."""
        if self.broken is not None:
            return
        if not self._calls and not self._waiting and self._committing is None:
            asyncio.get_running_loop().call_soon(self._begin)
        self._calls.extend(calls)

    def flush(self) -> None:
        """Commit what was collected, now: return once it is durable, or cannot be."""
        while self._committing is not None or self._calls or self._waiting:
            self._begin()
            if self._committing is not None:
                wait((self._committing,))
                self._end(self._committing)

    def _begin(self) -> None:
        """Begin the next commit, unless one is under way: its end begins the next."""
        if self._committing is not None:
            return
        calls, self._calls = self._calls, []
        self._committed_for, self._waiting = self._waiting, []
        if self.broken is None and calls:
            self._commit(calls)
        if self._committing is None:
            self._tell()

    def _commit(self, calls: list[Call]) -> None:
        try:
            self._committing = self._journal.commit(calls)
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing may be sent any more
            self.broken = _broken(error)
            return
        loop, committing = asyncio.get_running_loop(), self._committing
        if committing.done():
            self._end(committing)
        else:
            committing.add_done_callback(lambda _: _call_in(loop, partial(self._end, committing)))

    def _end(self, committing: Future[None]) -> None:
        """Tell those who wait for a commit what came of it, once, and begin the next."""
        if committing is not self._committing:
            return  # flush has been here
        self._committing = None
        error = committing.exception()
        if isinstance(error, Exception):
            self.broken = _broken(error)
        self._tell()
        if self._calls or self._waiting:
            self._begin()

    def _tell(self) -> None:
        waiting, self._committed_for = self._committed_for, []
        for future in waiting:
            if future.done():
                continue
            if self.broken is None:
                future.set_result(None)
            else:
                future.set_exception(self.broken)


def _call_in(loop: asyncio.AbstractEventLoop, call: Call) -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(call)


def _broken(error: Exception) -> MsautoError:
    return error if isinstance(error, MsautoError) else LedgerError(f"the ledger cannot be written: {error}")
