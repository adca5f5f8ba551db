"""One connection to the ledger: transactions, and SQLite's complaints in words that help."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from msauto.errors import LedgerError
from msauto.ledger import schema

T = TypeVar("T")
Value = str | int | None
Row = Sequence[Value]


class Store:
    """The tables. Not for several threads; errors are ``LedgerError``. Without a file it is empty and stays so.

    A thread of its own waits for the disk in :meth:`commit`; the connection is used by one thread at a time.
    """

    def __init__(self, path: Path, *, readonly: bool) -> None:
        self.path = path
        self._readonly = readonly
        self._depth = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="msauto ledger")  # begins with the first commit
        self._committing: Future[None] | None = None
        self._connection = self._translated(self._connect)
        self._file = None if readonly else self._translated(self._identity)

    def _connect(self) -> sqlite3.Connection | None:
        if not self._readonly:
            return schema.connect_to_write(self.path)
        if not schema.is_there(self.path):
            return None
        return schema.connect_to_read(self.path)

    def close(self) -> None:
        """Close; closing twice does nothing."""
        self._wait()
        self._thread.shutdown()
        connection, self._connection = self._connection, None
        if connection is not None:
            schema.close(connection, readonly=self._readonly)

    def read(self, question: str, values: Iterable[Value] = ()) -> list[Row]:
        """Return the rows of a SELECT."""
        connection = self._connection
        if connection is None:
            return []
        self._wait()
        return self._translated(lambda: connection.execute(question, tuple(values)).fetchall())

    def has(self, table: str) -> bool:
        """Tell whether a table is there: a ledger of an earlier msauto that is open for reading alone may lack it."""
        return bool(self.read("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)))

    def write(self, statement: str, *rows: Row) -> int:
        """Carry out a statement for each row of values, durable on return or when ``together`` ends; count rows."""
        connection = self._writable()
        with self.together():
            return self._translated(lambda: connection.executemany(statement, rows).rowcount)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Make all writes inside durable as one: all or none. May be nested; the outermost counts."""
        connection = self._writable()
        if self._depth:
            yield
            return
        with self._written(connection):
            yield
        self._make_durable(connection)

    def commit(self, calls: Sequence[Callable[[], object]]) -> Future[None]:
        """Make the calls as :meth:`together` does; the future is fulfilled once they are durable.

        A thread waits for the disk. Whoever reads or writes meanwhile waits until it is done.
        """
        connection = self._writable()
        with self._written(connection):
            for call in calls:
                call()
            committing = self._committing = self._thread.submit(self._make_durable, connection)
        return committing

    @contextmanager
    def _written(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Begin a transaction; leave it open, or take it back where what is inside fails."""
        self._wait()
        self._check_still_there()
        self._translated(lambda: connection.execute("BEGIN IMMEDIATE"))
        self._depth += 1
        try:
            yield
        except BaseException:
            _roll_back(connection)
            raise
        finally:
            self._depth -= 1

    def _make_durable(self, connection: sqlite3.Connection) -> None:
        try:
            self._translated(lambda: connection.execute("COMMIT"))
        except BaseException:
            _roll_back(connection)
            raise

    def _wait(self) -> None:
        """Wait for the commit under way: the connection is free then. What it raises is its future's."""
        if self._committing is not None:
            wait((self._committing,))
            self._committing = None

    @contextmanager
    def understood(self) -> Iterator[None]:
        """Turn into «damaged» what is inside and not as we write it: the file is whole, and somebody wrote there."""
        try:
            yield
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise LedgerError(
                f"the ledger {self.path} is damaged: it holds what msauto does not write ({error})",
                remedy=_BROKEN_REMEDY,
            ) from error

    def _identity(self) -> tuple[int, int]:
        found = self.path.stat()
        return found.st_dev, found.st_ino

    def _check_still_there(self) -> None:
        """Raise where somebody took the file away: what we write would be lost with it, and nobody could tell."""
        try:
            there = self._identity() == self._file
        except OSError:
            there = False
        if not there:
            raise LedgerError(
                f"the ledger {self.path} was taken away, or replaced, while it was in use",
                remedy="let nothing remove or restore files there while msauto runs; put a copy back if there is one",
            )

    def _writable(self) -> sqlite3.Connection:
        if self._connection is None or self._readonly:
            raise LedgerError(f"the ledger {self.path} is open for reading alone", remedy="this is a mistake in msauto")
        return self._connection

    def _translated(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except (sqlite3.Error, schema.ForeignError, OSError) as error:
            raise explain(error, self.path) from error


def _roll_back(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):  # SQLite may have rolled back by itself, on a full disk for one
        connection.execute("ROLLBACK")


def explain(error: Exception, path: Path) -> LedgerError:
    """Return a complaint about the ledger with its path, its cause, and what to do."""
    cause, remedy = _cause(error)
    return LedgerError(f"the ledger {path} {cause}", remedy=remedy)


_BROKEN_REMEDY = (
    "move the file away, and those with -wal and -shm behind their names, and bring back a copy if there is one; "
    "without it the next run begins a new ledger, and writes once more what the server does not report"
)
_CAUSES = {
    sqlite3.SQLITE_BUSY: ("is locked by another program", "wait until it is done, or close it, and try again"),
    sqlite3.SQLITE_LOCKED: ("is locked by another program", "wait until it is done, or close it, and try again"),
    sqlite3.SQLITE_READONLY: ("is read-only", "give this user the right to write it, and its folder"),
    sqlite3.SQLITE_PERM: ("may not be opened by this user", "give this user the right to write it, and its folder"),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "see that its folder exists and that this user may write there"),
    sqlite3.SQLITE_FULL: ("cannot grow: the disk is full", "make room on the disk, or choose another --state-dir"),
    sqlite3.SQLITE_CORRUPT: ("is damaged", _BROKEN_REMEDY),
    sqlite3.SQLITE_NOTADB: ("is no ledger: the file holds something else, or is damaged", _BROKEN_REMEDY),
}


def _cause(error: Exception) -> tuple[str, str]:
    if isinstance(error, schema.ForeignError):
        return f"cannot be used: {error}", "use the msauto that wrote it, or choose another --state-dir"
    if isinstance(error, NotADirectoryError):
        return (
            f"cannot be used: {error.strerror}",
            "name a folder: --state-dir, or state_dir of msauto.toml; it is made if it is not there",
        )
    if isinstance(error, OSError):
        return (
            f"cannot be used: {error.strerror or error}",
            "see that this user may write there, or choose another: --state-dir, or state_dir of msauto.toml",
        )
    code = getattr(error, "sqlite_errorcode", None)
    if code is None and "malformed" in str(error):
        code = sqlite3.SQLITE_CORRUPT
    known = _CAUSES.get((code or 0) & 0xFF)
    if known is not None:
        return known
    return f"cannot be used: {error}", "see that the disk is sound and has room, or choose another --state-dir"
