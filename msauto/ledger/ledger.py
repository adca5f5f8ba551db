"""The ledger as a whole: opening it, its ports, and queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path

from msauto.errors import LedgerError, RefusedError
from msauto.ledger import history, locks
from msauto.ledger.journal import LedgerJournal
from msauto.ledger.locks import FileLock, LockScope, run_lock
from msauto.ledger.memory import LedgerMemory
from msauto.ledger.store import Store, format_time
from msauto.model.ports import Clock
from msauto.model.run_records import RunDetails, RunSummary

FILE = "ledger.sqlite"


def _now() -> datetime:
    return datetime.now(UTC)


class Ledger:
    """Our own record, in ``state_dir``; ``journal`` and ``memory`` are its ports.

    Open it with :meth:`open`, as a context manager. Errors are ``LedgerError``, with path, cause and remedy.
    """

    def __init__(self, state_dir: Path, *, readonly: bool, now: Callable[[], datetime]) -> None:
        if not readonly:
            locks.require_file_locks()
        self.state_dir = state_dir
        self._run_locks = state_dir / "runs"
        self._now = now
        self._store = Store(state_dir / FILE, readonly=readonly)
        self.journal = LedgerJournal(self._store, self._run_locks, now)
        self.memory = LedgerMemory(self._store, lambda: format_time(now()))

    @classmethod
    def open(cls, state_dir: Path | str, *, readonly: bool = False, now: Callable[[], datetime] = _now) -> Ledger:
        """Open the ledger of a folder; ``now`` returns the time in UTC.

        ``readonly`` creates no file and no folder; a missing ledger is empty.
        """
        return cls(Path(state_dir), readonly=readonly, now=now)

    @property
    def path(self) -> Path:
        """The file."""
        return self._store.path

    @property
    def empty(self) -> bool:
        """No run is recorded: a new ledger, or a folder that is not mounted."""
        return not self._store.read("SELECT 1 FROM run LIMIT 1")

    def history(self) -> list[RunSummary]:
        """Return all runs, newest first."""
        return history.read_history(self._store, self._run_locks)

    def attempts(self) -> list[RunSummary]:
        """Return all attempts to apply, newest first: the runs, the attempts that wrote nothing, and the batches."""
        batches = [summary for summary, _ in self.batches()]
        all_of_them = [*self.history(), *history.read_attempts(self._store), *batches]
        return sorted(all_of_them, key=lambda each: each.started, reverse=True)

    def find(self, name: str) -> RunSummary:
        """Return the attempt of that name, or with the only name that starts so; ``last`` is the newest.

        Raises ``LedgerError`` if none is found, or more than one.
        """
        attempts = self.attempts()
        if name == "last":
            return self._newest(attempts)
        found = [each for each in attempts if each.run == name]
        found = found or [each for each in attempts if each.run.startswith(name)]
        if len(found) == 1:
            return found[0]
        if found and name:
            some = ", ".join(each.run for each in found[:3])
            raise LedgerError(f"{name} matches {len(found)} runs: {some}", remedy="give more characters of the name")
        raise LedgerError(f"run {name} not found in the ledger {self.path}", remedy="see `msauto history` for the runs")

    def run_details(self, run: str) -> RunDetails:
        """Return everything about one run, by its name or the start of it; ``last`` is the newest run.

        Raises ``LedgerError`` if it is not found, and ``RefusedError`` for an attempt that wrote nothing.
        """
        summary = self._newest(self.history()) if run == "last" else self.find(run)
        if not self.is_run(summary.run):
            is_batch = bool(summary.batch) and not summary.job
            why = "is a batch, not a run" if is_batch else f"wrote nothing: {summary.reason or summary.status}"
            raise RefusedError(f"{summary.run} {why}", remedy="see `msauto history` for the runs")
        return history.read_run(self._store, self._run_locks, summary.run)

    def is_run(self, name: str) -> bool:
        """Return whether an attempt is a run, which may have sent requests."""
        return bool(self._store.read("SELECT 1 FROM run WHERE name = ?", (name,)))

    def record(self, attempt: RunSummary) -> None:
        """Record an attempt that wrote nothing."""
        history.write_attempt(self._store, attempt)

    def record_batch(self, summary: RunSummary, record: str, *, ran: bool) -> None:
        """Record a batch, or what has become of it; ``ran``: its jobs were started."""
        history.write_batch(self._store, summary, record, ran=ran)

    def batches(self) -> list[tuple[RunSummary, str]]:
        """Return all batches with their records, newest first."""
        return history.read_batches(self._store, self._run_locks)

    def batch_locks(self, batch: str, run: str) -> tuple[FileLock, FileLock]:
        """Return the lock of a batch, which only one of its runs can hold, and that of this run."""
        return FileLock(self.state_dir / "locks" / f"batch-{batch}.lock"), run_lock(self._run_locks, run)

    def note_end(self, run: str, notes: Mapping[str, str]) -> None:
        """Add notes to a run that has ended."""
        history.write_notes(self._store, run, notes)

    def _newest(self, runs: list[RunSummary]) -> RunSummary:
        if runs:
            return runs[0]
        remedy = "to use another ledger, give its folder with --state-dir"
        raise LedgerError(f"the ledger {self.path} contains no runs", remedy=remedy)

    def prune(self, *, keep_runs: int | None = None, keep_days: int | None = None) -> int:
        """Delete old runs, as :func:`.history.prune`; return their number. What is remembered of assets stays."""
        return history.prune(self._store, self._now(), keep_runs=keep_runs, keep_days=keep_days)

    def hold(
        self, scopes: Iterable[LockScope], clock: Clock, *, lock_timeout: float = 0.0
    ) -> AbstractAsyncContextManager[None]:
        """Hold the locks for the next run, as :func:`.locks.hold`."""
        return locks.hold(self.state_dir / "locks", scopes, clock, run=self.journal.next_run, lock_timeout=lock_timeout)

    def close(self) -> None:
        """Close; closing twice does nothing."""
        self.journal.close()
        self._store.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
