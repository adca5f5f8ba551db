"""The ledger as a whole: what the wiring opens, and hands out as ports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from msauto.errors import LedgerError, RefusedError
from msauto.ledger import locks
from msauto.ledger.attempts import read_attempts, write_attempt
from msauto.ledger.history import note_end, read_history, read_run
from msauto.ledger.journal import LedgerJournal, show_time
from msauto.ledger.locks import LockScope
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

    def attempts(self) -> list[RunSummary]:
        """Return all attempts to apply, newest first: the runs, and those that wrote nothing."""
        both = [*self.history(), *read_attempts(self._store)]
        return sorted(both, key=lambda each: each.started, reverse=True)

    def find(self, name: str) -> RunSummary:
        """Return the attempt of that name, of which the beginning is enough where it is the only one.

        ``last`` is the newest. Raises ``LedgerError`` where there is none, or more than one.
        """
        every = self.attempts()
        if name == "last":
            return self._newest(every)
        found = [each for each in every if each.run == name] or [each for each in every if each.run.startswith(name)]
        if len(found) == 1:
            return found[0]
        if found and name:
            some = ", ".join(each.run for each in found[:3])
            raise LedgerError(f"{name} may be any of {len(found)} runs: {some}", remedy="write more of the name")
        raise LedgerError(f"the ledger {self.path} knows no run {name}", remedy="see `msauto history` for the runs")

    def run_details(self, run: str) -> RunDetails:
        """Return everything about one run, by its name or the beginning of it, or ``last``.

        ``last`` is the last that became a run. Raises ``LedgerError`` if there is none, and ``RefusedError`` for an
        attempt that wrote nothing.
        """
        summary = self._newest(self.history()) if run == "last" else self.find(run)
        if not self.is_run(summary.run):
            raise RefusedError(
                f"{summary.run} wrote nothing: {summary.reason or summary.status}",
                remedy="see `msauto history` for the runs",
            )
        return read_run(self._store, self._lives, summary.run)

    def is_run(self, name: str) -> bool:
        """Tell whether an attempt of that name became a run: something may have been sent."""
        return bool(self._store.read("SELECT 1 FROM run WHERE name = ?", (name,)))

    def record(self, attempt: RunSummary) -> None:
        """Record an attempt that became no run."""
        write_attempt(self._store, attempt)

    def note_end(self, run: str, notes: Mapping[str, str]) -> None:
        """Add notes to a run that has ended."""
        note_end(self._store, run, notes)

    def _newest(self, runs: list[RunSummary]) -> RunSummary:
        if runs:
            return runs[0]
        remedy = "if another ledger is meant, name its folder with --state-dir"
        raise LedgerError(f"the ledger {self.path} holds no run yet", remedy=remedy)

    def prune(self, *, keep_runs: int | None = None, keep_days: int | None = None) -> int:
        """Forget old runs, and return how many: those that no given rule keeps.

        Kept are the newest, those of the last days, the very last one, and all that go on or died and are not settled.
        What is remembered of assets is no part of a run, and stays. Raises ``LedgerError``.
        """
        return prune(self._store, self._now(), keep_runs=keep_runs, keep_days=keep_days)

    def hold(
        self, scopes: Iterable[LockScope], clock: Clock, *, lock_timeout: float = 0.0
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
