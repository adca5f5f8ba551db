"""What the targets of a run share, and what the targets of one server share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime

from msgspec import Struct, field

from msauto.applying.verification import SharedReads
from msauto.concurrency import run_unless
from msauto.errors import LedgerError, MsautoError
from msauto.model.events import Notify
from msauto.model.ports import Clock, Journal, Memory, Reader, Sender
from msauto.retry_policy import RetryPolicy
from msauto.secrets.redaction import Secrets


class ServerConnection(Struct, frozen=True):
    """The ports of one server, and the readings that its targets share.

    ``slots`` bound the targets that are applied at a time, of this server or of all, without those that wait for a
    restore. ``shows_after``: the seconds after which the server shows at last what was done, by its dialect.
    """

    reader: Reader
    sender: Sender
    slots: asyncio.Semaphore
    shows_after: float = 0.0
    shared: SharedReads = field(default_factory=SharedReads)


class ApplyContext(Struct, frozen=True):
    """The name of the run, its ports, and what all of its targets share.

    ``read_since``: when the reading began that the plan was made from; ``None``: it is not compared again. ``secrets``
    must not be in a message.
    """

    run: str
    journal: Journal
    memory: Memory
    clock: Clock
    notify: Notify
    commits: GroupCommit
    cancellation: Cancellation
    policy: RetryPolicy
    read_since: datetime | None = None
    secrets: Secrets = field(default_factory=Secrets)


# Group commit -------------------------------------------------------------------------------------------------------


Call = Callable[[], object]


class GroupCommit(Struct):
    """Collects calls to the journal and the memory, and makes them in one transaction per turn of the event loop.

    The future of :meth:`write` ends once its calls are durable. :meth:`note` has none: if its calls are lost, the
    ledger still records "sending", which the next run settles by reading. Calls keep their order. While a transaction
    is committed by a thread, the event loop continues and the next calls are collected. After the first ``failure``
    nothing more is written, and every ``write`` fails: without a ledger nothing is sent.
    """

    journal: Journal
    failure: MsautoError | None = None
    _calls: list[Call] = []
    """Of the next commit, and the writes that wait for it."""
    _waiting: list[asyncio.Future[None]] = []
    _committing: Future[None] | None = None
    """The commit in progress, and the writes that wait for it."""
    _committing_for: list[asyncio.Future[None]] = []

    def write(self, call: Call, *calls: Call) -> asyncio.Future[None]:
        """Make the calls; the future ends when they are durable, with ``LedgerError`` if they cannot be."""
        durable = asyncio.get_running_loop().create_future()
        if self.failure is None:
            self.note(call, *calls)
            self._waiting.append(durable)
        else:
            durable.set_exception(self.failure)
        return durable

    def note(self, *calls: Call) -> None:
        """Make the calls with the next commit."""
        if self.failure is not None:
            return
        if not self._calls and self._committing is None:
            asyncio.get_running_loop().call_soon(self._begin)
        self._calls.extend(calls)

    def flush(self) -> None:
        """Commit the collected calls, and return once they are durable or the commit has failed."""
        self._begin()
        while self._committing is not None:
            self._end(self._committing)

    def _begin(self) -> None:
        """Begin to commit what was collected; while a commit is in progress, its end does that."""
        if self._committing is not None or not self._calls:
            return
        calls, self._calls = self._calls, []
        try:
            committing = self._committing = self.journal.commit(calls)
        except BaseException as error:
            self._fail(error)  # after any error nothing may be sent
            if not isinstance(error, Exception):
                raise
            return
        self._committing_for, self._waiting = self._waiting, []
        loop = asyncio.get_running_loop()

        def end(_: Future[None]) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._end, committing)

        committing.add_done_callback(end)

    def _end(self, committing: Future[None]) -> None:
        """Wait for the end of a commit, resolve its writes, and begin the next; once for each commit."""
        if committing is not self._committing:
            return  # flush has ended it
        error = committing.exception()
        self._committing = None
        if error is not None:
            self._fail(error)
            return
        for durable in self._committing_for:
            if not durable.done():
                durable.set_result(None)
        self._begin()

    def _fail(self, error: BaseException) -> None:
        """Let all writes raise: those of the commit that failed, those of the next, and those to come."""
        if not isinstance(error, MsautoError):
            reason = str(error) or type(error).__name__
            error = LedgerError(f"the ledger cannot be written: {reason}")
        self.failure = error
        for durable in (*self._committing_for, *self._waiting):
            if not durable.done():
                durable.set_exception(error)
        self._calls, self._waiting, self._committing_for = [], [], []


# Cancellation -------------------------------------------------------------------------------------------------------


class Cancellation(Struct):
    """Passed to :func:`~msauto.applying.executor.apply`; a signal handler of the same event loop calls it."""

    requested: bool = False
    at_once: asyncio.Event = field(default_factory=asyncio.Event)
    _stopped: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self) -> None:
        """Cancel: the first call starts no new request, the second abandons those in progress."""
        if self.requested:
            self.at_once.set()
        self.requested = True
        self._stopped.set()

    async def sleep(self, clock: Clock, seconds: float) -> bool:
        """Sleep until the time is over or the run is cancelled; return whether the time is over."""
        return not self.requested and await run_unless(clock.sleep(seconds), self._stopped)
