"""Access to the tables of the ledger: transactions, a thread that makes them durable, and the local ledger.

:class:`SqliteStore` is the local ledger, :class:`~msauto.ledger.postgres_store.PostgresStore` the shared one. The
statements are the same for both: values are ``?``, and a text is compared by its code points.

The local ledger is a file of SQLite whose commits survive ``kill -9`` and power loss: write-ahead logging with
``synchronous=EXTRA``, so a commit is on the disk when it returns. Closing returns the ledger to a rollback journal, so
that reading it later creates no other files.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

from msgspec import Struct

from msauto.errors import LedgerError

P = ParamSpec("P")
T = TypeVar("T")
Value = str | int | None
Row = tuple[Any, ...]
VERSION = 6
"""Of the tables in ``tables.sql``."""


class ForeignError(Exception):
    """Where the ledger should be is a database that this msauto cannot use."""


def check_version(found: int) -> None:
    """Raise :class:`ForeignError` for the tables of another msauto."""
    if found != VERSION:
        age = "a newer" if found > VERSION else "an older"
        raise ForeignError(f"it was written by {age} msauto (ledger version {found}, not {VERSION})")


def table_statements() -> list[str]:
    """Return the statements that make the tables."""
    lines = Path(__file__).with_name("tables.sql").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("--"))
    return [each for each in map(str.strip, text.split(";")) if each]


class Upsert(NamedTuple):
    """The statements that write a row of a table, whether or not there is one with its key, and that delete it."""

    write: str
    delete: str

    @classmethod
    def of(cls, table: str, key: str, values: str) -> Upsert:
        """Return the statements of a table with these columns, such as ``run, name``."""
        keys, others = key.split(", "), values.split(", ")
        places = ", ".join("?" * (len(keys) + len(others)))
        changed = ", ".join(f"{name} = excluded.{name}" for name in others)
        insert = f"INSERT INTO {table} ({key}, {values}) VALUES ({places})"  # noqa: S608 - our own names
        same = " AND ".join(f"{name} = ?" for name in keys)
        return cls(f"{insert} ON CONFLICT ({key}) DO UPDATE SET {changed}", f"DELETE FROM {table} WHERE {same}")  # noqa: S608


class Properties(Struct, frozen=True):
    """What a ledger is stored in. ``settings`` decide whether a commit is durable; ``warnings``: it may not be."""

    kind: str
    version: int
    bytes: int
    settings: dict[str, str]
    warnings: tuple[str, ...] = ()


class Store(ABC):
    """The tables, for one thread; errors are ``LedgerError``. Opened for reading without a ledger, it is empty.

    ``exists``: there is a ledger. ``name`` is the file, or the URL without a password. A thread of its own commits in
    :meth:`commit`; only one thread uses the connection at a time.
    """

    exists: bool
    damaged_remedy: str
    """What to do if the tables contain what msauto does not write."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._depth = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="msauto ledger")  # starts with the first commit
        self._committing: Future[None] | None = None
        self._put: dict[Upsert, dict[Row, Row | None]] = defaultdict(dict)  # what the transaction writes by its keys

    @abstractmethod
    def close(self) -> None:
        """Close; closing twice does nothing."""

    def read(self, query: str, values: Iterable[Value] = ()) -> list[Row]:
        """Return the rows of a SELECT, which sees the writes before it."""
        if not self.exists:
            return []
        self._wait()
        self._write_put()
        return self._read(query, tuple(values))

    def count(self, statement: str, values: Row) -> int:
        """Execute a statement, and return the number of rows that it changed. It may take minutes."""
        with self.together():
            self._write_put()
            return self._count(statement, values)

    @abstractmethod
    def check(self) -> None:
        """Raise if the ledger is lost, and with it the locks. Mostly takes no time: call it before each request."""

    @abstractmethod
    def identity(self) -> object:
        """Return a value that two stores of one ledger have in common, and no others."""

    @abstractmethod
    def continue_numbers(self) -> None:
        """Let the next run get a number after those that were written with theirs."""

    @abstractmethod
    def properties(self) -> Properties:
        """Return what this ledger is stored in."""

    @abstractmethod
    def _read(self, query: str, values: Row) -> list[Row]: ...

    @abstractmethod
    def _count(self, statement: str, values: Row) -> int: ...

    @abstractmethod
    def _write(self, statement: str, rows: Sequence[Row]) -> None:
        """Execute a statement within a transaction, at the latest when it ends."""

    @abstractmethod
    def _begin(self, *, alone: bool) -> None: ...

    @abstractmethod
    def _commit(self) -> None: ...

    @abstractmethod
    def _roll_back(self) -> None: ...

    def _make_durable(self) -> None:
        """Commit; after an error nothing of the transaction remains."""
        try:
            self._commit()
        except BaseException:
            self._roll_back()
            raise

    def write(self, statement: str, *rows: Row) -> None:
        """Execute a statement for each row of values, durable on return or when ``together`` ends."""
        with self.together():
            self._write_put()
            self._write(statement, rows)

    def put(self, table: Upsert, key: Row, values: Row | None) -> None:
        """Write the row with a key, or delete it if ``values`` is ``None``; durable as with :meth:`write`.

        Of all that a transaction puts under one key, only the last is written.
        """
        with self.together():
            self._put[table][key] = values

    def _write_put(self) -> None:
        """Write what was put so far: before anything that depends on it."""
        while self._put:
            table, rows = self._put.popitem()
            self._write(table.delete, [key for key, values in rows.items() if values is None])
            self._write(table.write, [key + values for key, values in rows.items() if values is not None])

    def together(self, *, alone: bool = False) -> AbstractContextManager[None]:
        """Make all writes inside in one transaction. May be nested; the outermost counts.

        With ``alone``, no other process writes with ``alone`` meanwhile: what is read inside stays true.
        """
        return nullcontext() if self._depth else self._transaction(alone=alone)

    @contextmanager
    def _transaction(self, *, alone: bool) -> Iterator[None]:
        with self._written(alone=alone):
            yield
            self._write_put()
        self._make_durable()

    def commit(self, calls: Sequence[Callable[[], object]]) -> Future[None]:
        """Make the calls in one transaction, which a thread commits; the future ends once they are durable.

        Reads and writes meanwhile wait for it.
        """
        with self._written():
            for call in calls:
                call()
            self._write_put()
            committing = self._committing = self._thread.submit(self._make_durable)
        return committing

    @contextmanager
    def _written(self, *, alone: bool = False) -> Iterator[None]:
        """Begin a transaction; leave it open, or roll it back on an error."""
        self._wait()
        self._begin(alone=alone)
        self._depth += 1
        try:
            yield
        except BaseException:
            self._put.clear()
            self._roll_back()
            raise
        finally:
            self._depth -= 1

    def _wait(self) -> None:
        """Wait for the commit in progress, which frees the connection; its future carries its errors."""
        if self._committing is not None:
            wait((self._committing,))
            self._committing = None

    @contextmanager
    def decoding(self) -> Iterator[None]:
        """Turn errors of decoding into «damaged»: the tables are intact, but hold what msauto does not write."""
        try:
            yield
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise LedgerError(
                f"the ledger {self.name} is damaged: it contains data that msauto does not write ({error})",
                remedy=self.damaged_remedy,
            ) from error


# The local ledger ----------------------------------------------------------------------------------------------------

APPLICATION = 0x6D736175  # "msau": the mark of our files
BUSY = 10.0  # seconds to wait for another msauto that is writing

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
        connect = connect_to_read if readonly else connect_to_write
        self._connection: sqlite3.Connection | None = self._translated(connect, path)
        self.exists = self._connection is not None
        self._file = None if readonly else self._translated(self.identity)

    def close(self) -> None:
        """Close; closing twice does nothing."""
        self._wait()
        self._thread.shutdown()
        connection, self._connection = self._connection, None
        if connection is None:
            return
        with suppress(sqlite3.Error):
            if not self._readonly:  # the last writer merges the write-ahead log into the ledger
                connection.execute("PRAGMA busy_timeout = 0")
                connection.execute("PRAGMA journal_mode = DELETE").fetchone()
        connection.close()

    def check(self) -> None:
        """Do nothing: a file does not go away by itself, and every transaction looks for it."""

    def continue_numbers(self) -> None:
        """Do nothing: the next number follows the highest one."""

    def properties(self) -> Properties:
        """Return what this ledger is stored in."""
        numbers = {name: self.read(f"PRAGMA {name}")[0][0] for name in ("user_version", "page_count", "page_size")}
        settings = {"journal_mode": str(self.read("PRAGMA journal_mode")[0][0]).upper()}
        settings["synchronous"] = ("OFF", "NORMAL", "FULL", "EXTRA")[self.read("PRAGMA synchronous")[0][0]]
        size = numbers["page_count"] * numbers["page_size"]
        return Properties(f"local (SQLite {sqlite3.sqlite_version})", numbers["user_version"], size, settings)

    def _read(self, query: str, values: Row) -> list[Row]:
        connection = self._connection
        return [] if connection is None else self._translated(lambda: connection.execute(query, values).fetchall())

    def _count(self, statement: str, values: Row) -> int:
        return self._translated(self._writable().execute, statement, values).rowcount

    def _write(self, statement: str, rows: Sequence[Row]) -> None:
        connection = self._writable()
        if len(rows) == 1:  # a quarter faster than executemany
            self._translated(connection.execute, statement, rows[0])
        elif rows:
            self._translated(connection.executemany, statement, rows)

    def _begin(self, *, alone: bool) -> None:  # noqa: ARG002 - only one process writes at a time
        connection = self._writable()
        self._check_file()
        self._translated(connection.execute, "BEGIN IMMEDIATE")

    def _commit(self) -> None:
        self._translated(self._writable().execute, "COMMIT")

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
        except (sqlite3.Error, ForeignError, OSError) as error:
            cause, remedy = _cause(error)
            raise LedgerError(f"the ledger {self.path} {cause}", remedy=remedy) from error


# Opening --------------------------------------------------------------------------------------------------------------


def _check_folder(folder: Path) -> None:
    """Raise ``OSError`` if the folder, or one of its parents, is something else."""
    if "\0" in str(folder):
        raise OSError(errno.EINVAL, "not a valid folder name")
    for each in (folder, *folder.parents):
        if each.is_dir():
            return
        if each.is_symlink():
            raise NotADirectoryError(errno.ENOTDIR, f"{each} is a link to a folder that does not exist")
        if each.exists():
            raise NotADirectoryError(errno.ENOTDIR, f"{each} is not a folder")


def connect_to_write(path: Path) -> sqlite3.Connection:
    """Open the ledger, and create it if needed; raises ``sqlite3.Error``, ``OSError``, :class:`ForeignError`."""
    _check_folder(path.parent)
    _make_private(path)
    # The store lets one thread at a time use it: a thread commits while the others wait.
    connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY, check_same_thread=False)
    try:
        _is_ledger(connection)
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError(f"database disk image is malformed: {found}")
        with suppress(sqlite3.OperationalError):  # another msauto has it open: its mode is as safe
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
        for setting in ("synchronous = EXTRA", "fullfsync = ON", "checkpoint_fullfsync = ON", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {setting}")
        _create(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_read(path: Path) -> sqlite3.Connection | None:
    """Open the ledger for reading; ``None`` if it does not exist, or is empty.

    Raises ``OSError`` if it cannot exist, because that is not an empty ledger.
    """
    _check_folder(path.parent)
    try:
        path.stat()
    except FileNotFoundError:
        return None
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=BUSY)
    with ExitStack() as unless_used:
        unless_used.callback(connection.close)
        if not _is_ledger(connection):
            return None
        unless_used.pop_all()
    return connection


def _make_private(path: Path) -> None:
    """Create folder and file for their owner alone, durably: the ledger contains data of the playbooks."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists():
        return
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _is_ledger(connection: sqlite3.Connection) -> bool:
    """Return whether the file is a ledger; ``False`` if it is empty."""
    tables = _number(connection, "SELECT count(*) FROM sqlite_master")  # first: another msauto may create them now
    if _number(connection, "PRAGMA application_id") == APPLICATION:
        check_version(_number(connection, "PRAGMA user_version"))
        return True
    if tables:
        raise ForeignError("it is a database of another program")
    return False


def _create(connection: sqlite3.Connection) -> None:
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        if not _is_ledger(connection):
            for statement in table_statements():
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")


def _number(connection: sqlite3.Connection, query: str) -> int:
    return int(connection.execute(query).fetchone()[0])


# Errors ---------------------------------------------------------------------------------------------------------------

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
    if isinstance(error, ForeignError):
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
