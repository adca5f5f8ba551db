"""One connection to the ledger: transactions, and errors of SQLite with their cause and remedy."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from msauto.errors import LedgerError
from msauto.ledger import tables

P = ParamSpec("P")
T = TypeVar("T")
Value = str | int | None
Row = tuple[Any, ...]


class Store:
    """The tables, for one thread; errors are ``LedgerError``. Opened for reading without a file, it is empty.

    A thread of its own commits in :meth:`commit`; only one thread uses the connection at a time.
    """

    def __init__(self, path: Path, *, readonly: bool) -> None:
        self.path = path
        self._readonly = readonly
        self._depth = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="msauto ledger")  # starts with the first commit
        self._committing: Future[None] | None = None
        connect = tables.connect_to_read if readonly else tables.connect_to_write
        self._connection: sqlite3.Connection | None = self._translated(connect, path)
        self._file = None if readonly else self._translated(self._identity)

    def close(self) -> None:
        """Close; closing twice does nothing."""
        self._wait()
        self._thread.shutdown()
        connection, self._connection = self._connection, None
        if connection is not None:
            tables.close(connection, readonly=self._readonly)

    def read(self, query: str, values: Iterable[Value] = ()) -> list[Row]:
        """Return the rows of a SELECT."""
        connection = self._connection
        if connection is None:
            return []
        self._wait()
        return self._translated(lambda: connection.execute(query, tuple(values)).fetchall())

    def has(self, table: str) -> bool:
        """Return whether a table exists: a ledger of an earlier msauto, opened for reading, may lack it."""
        return bool(self.read("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)))

    def write(self, statement: str, *rows: Row) -> int:
        """Execute a statement for each row of values, durable on return or when ``together`` ends; count the rows."""
        connection = self._writable()
        if not self._depth:
            with self.together():
                return self.write(statement, *rows)
        if len(rows) == 1:  # a quarter faster than executemany
            return self._translated(connection.execute, statement, rows[0]).rowcount
        return self._translated(connection.executemany, statement, rows).rowcount if rows else 0

    def together(self) -> AbstractContextManager[None]:
        """Make all writes inside in one transaction. May be nested; the outermost counts."""
        return nullcontext() if self._depth else self._transaction()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        connection = self._writable()
        with self._written(connection):
            yield
        self._make_durable(connection)

    def commit(self, calls: Sequence[Callable[[], object]]) -> Future[None]:
        """Make the calls in one transaction, which a thread commits; the future ends once they are durable.

        Reads and writes meanwhile wait for it.
        """
        connection = self._writable()
        with self._written(connection):
            for call in calls:
                call()
            committing = self._committing = self._thread.submit(self._make_durable, connection)
        return committing

    @contextmanager
    def _written(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Begin a transaction; leave it open, or roll it back on an error."""
        self._wait()
        self._check_file()
        self._translated(connection.execute, "BEGIN IMMEDIATE")
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
            self._translated(connection.execute, "COMMIT")
        except BaseException:
            _roll_back(connection)
            raise

    def _wait(self) -> None:
        """Wait for the commit in progress, which frees the connection; its future carries its errors."""
        if self._committing is not None:
            wait((self._committing,))
            self._committing = None

    @contextmanager
    def decoding(self) -> Iterator[None]:
        """Turn errors of decoding into «damaged»: the file is intact, but holds what msauto does not write."""
        try:
            yield
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise LedgerError(
                f"the ledger {self.path} is damaged: it contains data that msauto does not write ({error})",
                remedy=_DAMAGED_REMEDY,
            ) from error

    def _identity(self) -> tuple[int, int]:
        found = self.path.stat()
        return found.st_dev, found.st_ino

    def _check_file(self) -> None:
        """Raise if the file was removed: what is written now would be lost with it."""
        try:
            unchanged = self._identity() == self._file
        except OSError:
            unchanged = False
        if not unchanged:
            raise LedgerError(
                f"the ledger {self.path} was removed or replaced while it was in use",
                remedy="do not remove or restore files there while msauto runs; restore a backup if there is one",
            )

    def _writable(self) -> sqlite3.Connection:
        if self._connection is None or self._readonly:
            raise LedgerError(f"the ledger {self.path} is open for reading", remedy="this is an error in msauto")
        return self._connection

    def _translated(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return work(*args, **kwargs)
        except (sqlite3.Error, tables.ForeignError, OSError) as error:
            cause, remedy = _cause(error)
            raise LedgerError(f"the ledger {self.path} {cause}", remedy=remedy) from error


def _roll_back(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):  # SQLite rolls back automatically on some errors, such as a full disk
        connection.execute("ROLLBACK")


def format_time(time: datetime) -> str:
    """Return a time as the ledger writes it, e.g. ``2026-11-20T10:15:00.123Z``."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_DAMAGED_REMEDY = (
    "move the file away, and those with -wal and -shm after its name. Then restore a backup, if there is one; "
    "without it, the next run starts a new ledger, and writes again what the server does not report"
)
_LOCKED = ("is locked by another program", "wait until it is finished, or close it, and try again")
_CAUSES = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_READONLY: ("is read-only", "give this user write permission for it, and for its folder"),
    sqlite3.SQLITE_PERM: ("may not be opened by this user", "give this user write permission for it, and its folder"),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "check that its folder exists and that this user may write there"),
    sqlite3.SQLITE_FULL: ("cannot grow: the disk is full", "free some space, or choose another --state-dir"),
    sqlite3.SQLITE_CORRUPT: ("is damaged", _DAMAGED_REMEDY),
    sqlite3.SQLITE_NOTADB: ("is not a ledger: the file is of another kind, or damaged", _DAMAGED_REMEDY),
}


def _cause(error: Exception) -> tuple[str, str]:
    """Return why the ledger cannot be used, and what to do."""
    if isinstance(error, tables.ForeignError):
        return f"cannot be used: {error}", "use the msauto that wrote it, or choose another --state-dir"
    if isinstance(error, NotADirectoryError):
        remedy = "name a folder: --state-dir, or state_dir of msauto.toml; it is created if it does not exist"
        return f"cannot be used: {error.strerror}", remedy
    if isinstance(error, OSError):
        remedy = "check that this user may write there, or choose another: --state-dir, or state_dir of msauto.toml"
        return f"cannot be used: {error.strerror or error}", remedy
    code = getattr(error, "sqlite_errorcode", None)
    if code is None and "malformed" in str(error):
        code = sqlite3.SQLITE_CORRUPT
    remedy = "check that the disk works and has space, or choose another --state-dir"
    return _CAUSES.get((code or 0) & 0xFF, (f"cannot be used: {error}", remedy))
