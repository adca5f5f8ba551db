"""Group commit: what several targets have to tell the ledger at the same moment becomes durable together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msauto.errors import LedgerError, MsautoError
from msauto.model.ports import Journal

Call = Callable[[], object]


class Gate:
    """Collects calls to the journal and the memory, and makes them in one transaction each turn of the event loop.

    ``write`` returns once its call is durable: nothing is sent before. ``note`` does not wait, for a lost note is no
    lie: the ledger then holds "sending", which the next run settles by reading. Calls are made in their order. After
    the first failure nothing more is written and every ``write`` raises: a run without a ledger sends nothing.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._calls: list[Call] = []
        self._waiting: list[asyncio.Future[None]] = []
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
        if not self._calls and not self._waiting:
            asyncio.get_running_loop().call_soon(self.flush)
        self._calls.extend(calls)

    def flush(self) -> None:
        """Commit what was collected, now."""
        calls, self._calls = self._calls, []
        waiting, self._waiting = self._waiting, []
        if calls and self.broken is None:
            self.broken = self._commit(calls)
        for future in waiting:
            if future.done():
                continue
            if self.broken is None:
                future.set_result(None)
            else:
                future.set_exception(self.broken)

    def _commit(self, calls: list[Call]) -> MsautoError | None:
        try:
            with self._journal.together():
                for call in calls:
                    call()
        except MsautoError as error:
            return error
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing may be sent any more
            return LedgerError(f"the ledger cannot be written: {error}")
        return None
