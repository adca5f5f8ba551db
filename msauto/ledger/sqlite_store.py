"""The local ledger: one connection to SQLite, and its errors with their cause and remedy."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

from msauto.errors import LedgerError
from msauto.ledger import tables
from msauto.ledger.store import Properties, Row, Store, Value

P = ParamSpec("P")
T = TypeVar("T")

_DAMAGED_REMEDY = (
    "move the file away, and those with -wal and -shm after its name. Then restore a backup, if there is one; "
    "without it, the next run starts a new ledger, and writes again what the server does not report"
)


class SqliteStore(Store):
    """The tables in a file. Opened for reading, it creates no file; a missing one is empty."""

    damaged_remedy = _DAMAGED_REMEDY

    def __init__(self, path: Path, *, readonly: bool) -> None:
        super().__init__(str(path))
        self.path = path
        self._readonly = readonly
        connect = tables.connect_to_read if readonly else tables.connect_to_write
        self._connection: sqlite3.Connection | None = self._translated(connect, path)
        self._file = None if readonly else self._translated(self.identity)

    def close(self) -> None:
        """Close; closing twice does nothing."""
        self._wait()
        self._thread.shutdown()
        connection, self._connection = self._connection, None
        if connection is not None:
            tables.close(connection, readonly=self._readonly)

    def read(self, query: str, values: Iterable[Value] = ()) -> list[Row]:
        """Return the rows of a SELECT, which sees the writes before it."""
        connection = self._connection
        if connection is None:
            return []
        self._wait()
        return self._translated(lambda: connection.execute(query, tuple(values)).fetchall())

    def has(self, table: str) -> bool:
        """Return whether a table exists: a ledger of an earlier msauto, opened for reading, may lack it."""
        return bool(self.read("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)))

    def count(self, statement: str, *rows: Row) -> int:
        """Write as :meth:`write`, and return the number of rows that it changed."""
        with self.together():
            return self._execute(statement, rows)

    def check(self) -> None:
        """Do nothing: a file does not go away by itself, and every transaction looks for it."""

    def keep_writers_out(self) -> None:
        """Do nothing: only one process writes at a time."""

    def continue_numbers(self) -> None:
        """Do nothing: the next number follows the highest one."""

    def properties(self) -> Properties:
        """Return what this ledger is stored in."""
        numbers = {name: self.read(f"PRAGMA {name}")[0][0] for name in ("user_version", "page_count", "page_size")}
        settings = {"journal_mode": str(self.read("PRAGMA journal_mode")[0][0]).upper()}
        settings["synchronous"] = ("OFF", "NORMAL", "FULL", "EXTRA")[self.read("PRAGMA synchronous")[0][0]]
        size = numbers["page_count"] * numbers["page_size"]
        return Properties(f"local (SQLite {sqlite3.sqlite_version})", numbers["user_version"], size, settings)

    def _write(self, statement: str, rows: tuple[Row, ...], missing: str | None) -> None:
        if self._execute(statement, rows) != len(rows) and missing is not None:
            raise LedgerError(missing)

    def _execute(self, statement: str, rows: tuple[Row, ...]) -> int:
        connection = self._writable()
        if len(rows) == 1:  # a quarter faster than executemany
            return self._translated(connection.execute, statement, rows[0]).rowcount
        return self._translated(connection.executemany, statement, rows).rowcount if rows else 0

    def _begin(self, *, alone: bool) -> None:  # noqa: ARG002 - only one process writes at a time
        connection = self._writable()
        self._check_file()
        self._translated(connection.execute, "BEGIN IMMEDIATE")

    def _make_durable(self) -> None:
        try:
            self._translated(self._writable().execute, "COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):  # SQLite rolls back automatically on some errors, such as a full disk
                self._connection.execute("ROLLBACK")

    def identity(self) -> tuple[int, int]:
        """Return the device and the number of the file."""
        found = self.path.stat()
        return found.st_dev, found.st_ino

    def _check_file(self) -> None:
        """Raise if the file was removed: what is written now would be lost with it."""
        try:
            unchanged = self.identity() == self._file
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
