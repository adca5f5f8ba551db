"""The ledger as a whole: what the wiring opens, and hands out as ports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from msauto.errors import LedgerError
from msauto.ledger import locks
from msauto.ledger.history import read_history, read_run
from msauto.ledger.journal import LedgerJournal, show_time
from msauto.ledger.locks import Scope
from msauto.ledger.memory import LedgerMemory
from msauto.ledger.pruning import prune
from msauto.ledger.store import Store
from msauto.model.history import RunDetails, RunSummary
from msauto.model.ports import Clock

FILE = "ledger.sqlite"


def _now() -> datetime:
    return datetime.now(UTC)


class Ledger:
    """Our own record, in ``state_dir``: ``journal`` and ``memory`` are the ports, the rest answers questions.

    Use :meth:`open`, and close it; it is a context manager. Errors are ``LedgerError``, with path, cause and remedy.
    """

    def __init__(self, state_dir: Path, *, readonly: bool, now: Callable[[], datetime]) -> None:
        self.state_dir = state_dir
        self._lives = state_dir / "runs"
        self._now = now
        self._store = Store(state_dir / FILE, readonly=readonly)
        self.journal = LedgerJournal(self._store, self._lives, now)
        self.memory = LedgerMemory(self._store, lambda: show_time(now()))

    @classmethod
    def open(cls, state_dir: Path | str, *, readonly: bool = False, now: Callable[[], datetime] = _now) -> Ledger:
        """Open the ledger of a folder; ``now`` gives the time in UTC.

        ``readonly`` makes no file and no folder: where there is no ledger yet, it remembers nothing.
        """
        return cls(Path(state_dir), readonly=readonly, now=now)

    @property
    def path(self) -> Path:
        """The file."""
        return self._store.path

    @property
    def empty(self) -> bool:
        """No run was ever recorded: a new ledger, or a folder that somebody forgot to mount."""
        return not self._store.read("SELECT 1 FROM run LIMIT 1")

    def history(self) -> list[RunSummary]:
        """Return all runs, newest first."""
        return read_history(self._store, self._lives)

    def run_details(self, run: str) -> RunDetails:
        """Return everything about one run, by its name, or ``last``; raises ``LedgerError`` if there is none."""
        if run == "last":
            runs = self.history()
            if not runs:
                remedy = "if another ledger is meant, name its folder with --state-dir"
                raise LedgerError(f"the ledger {self.path} holds no run yet", remedy=remedy)
            run = runs[0].run
        return read_run(self._store, self._lives, run)

    def prune(self, *, keep_runs: int | None = None, keep_days: int | None = None) -> int:
        """Forget old runs, and return how many: those that no given rule keeps.

        Kept are the newest, those of the last days, the very last one, and all that go on or died and are not settled.
        What is remembered of assets is no part of a run, and stays. Raises ``LedgerError``.
        """
        return prune(self._store, self._now(), keep_runs=keep_runs, keep_days=keep_days)

    def hold(
        self, scopes: Iterable[Scope], clock: Clock, *, lock_timeout: float = 0.0
    ) -> AbstractAsyncContextManager[None]:
        """Hold servers and databases for the next run; ``LockedError`` names who holds one of them."""
        return locks.hold(self.state_dir / "locks", scopes, clock, run=self.journal.next_run, lock_timeout=lock_timeout)

    def close(self) -> None:
        """Close; closing twice does nothing."""
        self.journal.close()
        self._store.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
