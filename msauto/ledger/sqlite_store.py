"""The local ledger: a file of SQLite whose commits survive ``kill -9`` and power loss.

Write-ahead logging with ``synchronous=EXTRA``: a commit is on the disk when it returns. Closing returns the ledger to a
rollback journal, so that reading it later creates no other files.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from itertools import chain
from pathlib import Path

from msauto.errors import LedgerError
from msauto.ledger.own_files import require_known_home, require_own_files
from msauto.ledger.store import (
    VERSION,
    ForeignError,
    Properties,
    Row,
    Store,
    check_version,
    upgrade,
)

APPLICATION = 0x6D736175  # "msau": the mark of our files
BUSY = 10.0  # seconds to wait for another msauto that is writing
_KINDS = {str, int, type(None)}
_LOG_PAGES = 250
"""After so many pages the write-ahead log is merged into the ledger, and written from its beginning again: a commit
that makes no file longer takes half the time."""
_ENDINGS = ("", "-wal", "-shm", "-journal")  # of the ledger, and of what SQLite puts beside it

_DAMAGED_REMEDY = (
    "move the file away, and those with -wal and -shm after its name. Then restore a backup, if there is one; "
    "without it, the next run starts a new ledger, and writes again what the server does not report"
)


class SqliteStore(Store):
    """The tables in a file. Opened for reading, it creates no file; a missing one is empty."""

    damaged_remedy = _DAMAGED_REMEDY

    def __init__(self, path: Path, *, readonly: bool) -> None:
        super().__init__(str(path), readonly=readonly)
        self.path = path
        connect = connect_to_read if readonly else connect_to_write
        try:
            connection = connect(path)
            if not readonly:
                self._opened = path.stat()
        except (sqlite3.Error, ForeignError, OSError) as error:
            raise self._lost(error) from error
        self.exists = connection is not None
        if connection is not None:
            self._connection = connection

    def _disconnect(self) -> None:
        if not self.exists:
            return
        with suppress(sqlite3.Error):
            if not self._readonly:  # the last writer merges the write-ahead log into the ledger
                self._connection.execute("PRAGMA busy_timeout = 0")
                self._connection.execute("PRAGMA journal_mode = DELETE").fetchone()
        self._connection.close()

    def check(self) -> None:
        """Do nothing: a file does not go away by itself, and every transaction looks for it."""

    def continue_numbers(self) -> None:
        """Do nothing: the next number follows the highest one."""

    def properties(self) -> Properties:
        """Return what this ledger is stored in."""
        numbers = {
            name: self.read(f"PRAGMA {name}")[0][0]
            for name in ("user_version", "page_count", "page_size")
        }
        settings = {"journal_mode": str(self.read("PRAGMA journal_mode")[0][0]).upper()}
        settings["synchronous"] = ("OFF", "NORMAL", "FULL", "EXTRA")[
            self.read("PRAGMA synchronous")[0][0]
        ]
        size = numbers["page_count"] * numbers["page_size"]
        return Properties(
            f"local (SQLite {sqlite3.sqlite_version})", numbers["user_version"], size, settings
        )

    def _execute(self, statement: str, values: Row) -> list[Row]:
        try:
            rows = self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._lost(error) from error
        kinds = set(map(type, chain.from_iterable(rows)))
        if not kinds <= _KINDS:  # SQLite keeps a value of any type in a column
            with self.decoding():
                raise TypeError("a value that is neither a text nor a number")
        return rows

    def _count(self, statement: str, values: Row) -> int:
        self._execute(statement, values)
        ((changed,),) = self._execute("SELECT changes()", ())
        return int(changed)

    def _write(self, statement: str, rows: Sequence[Row]) -> None:
        try:
            if len(rows) == 1:  # a quarter faster than executemany
                self._connection.execute(statement, rows[0])
            else:
                self._connection.executemany(statement, rows)
        except sqlite3.Error as error:
            raise self._lost(error) from error

    def _begin(self, *, alone: bool) -> None:  # noqa: ARG002 - only one process writes at a time
        try:
            is_there = os.path.samestat(self.path.stat(), self._opened)
        except OSError:
            is_there = False
        if not is_there:  # what is written now would be lost with the file
            raise LedgerError(
                f"the ledger {self.path} was removed or replaced while it was in use",
                remedy="do not remove or restore files there while msauto runs; restore a backup if there is one",
            )
        self._write("BEGIN IMMEDIATE", [()])

    def _commit(self) -> None:
        self._write("COMMIT", [()])

    def _roll_back(self) -> None:
        # SQLite rolls back automatically on some errors, such as a full disk.
        with suppress(sqlite3.Error):
            self._connection.execute("ROLLBACK")

    def identity(self) -> tuple[int, int]:
        """Return the device and the number of the file."""
        status = self.path.stat()
        return status.st_dev, status.st_ino

    def _lost(self, error: Exception) -> LedgerError:
        cause, remedy = _cause(error)
        return LedgerError(f"the ledger {self.path} {cause}", remedy=remedy)


# Opening --------------------------------------------------------------------------------------------------------------


def _check_place(path: Path) -> None:
    """Raise ``OSError`` or ``LedgerError`` if a ledger cannot be there, or not safely."""
    folder = path.parent
    require_known_home(folder)
    if "\0" in str(folder):
        raise OSError(errno.EINVAL, "not a valid folder name")
    for parent in (folder, *folder.parents):
        if parent.is_dir():
            break
        if parent.is_symlink():
            raise NotADirectoryError(
                errno.ENOTDIR, f"{parent} is a link to a folder that does not exist"
            )
        if parent.exists():
            raise NotADirectoryError(errno.ENOTDIR, f"{parent} is not a folder")
    require_own_files(folder, *(f"{path.name}{ending}" for ending in _ENDINGS))


def connect_to_write(path: Path) -> sqlite3.Connection:
    """Open the ledger, and create it if needed; raises ``sqlite3.Error``, ``OSError``, :class:`ForeignError`."""
    _check_place(path)
    _make_private(path)
    # The store lets one thread at a time use it: a thread commits while the others wait.
    connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY, check_same_thread=False)
    try:
        _version_of(connection)
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(f"database disk image is malformed: {verdict}")
        with suppress(sqlite3.OperationalError):  # another msauto has it open: its mode is as safe
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
        for setting in (
            "synchronous = EXTRA",
            "fullfsync = ON",
            "checkpoint_fullfsync = ON",
            "foreign_keys = ON",
            f"wal_autocheckpoint = {_LOG_PAGES}",
        ):
            connection.execute(f"PRAGMA {setting}")
        connection.execute("BEGIN IMMEDIATE")
        version = _version_of(connection) or 0  # another msauto may have made the tables meanwhile
        if version != VERSION:
            for statement in upgrade(version):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")  # raises if the file is read-only
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_read(path: Path) -> sqlite3.Connection | None:
    """Open the ledger for reading; ``None`` if it does not exist, or is empty.

    Raises ``OSError`` if it cannot exist, because that is not an empty ledger.
    """
    _check_place(path)
    try:
        path.stat()
    except FileNotFoundError:
        return None
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=BUSY
    )
    with ExitStack() as unless_used:
        unless_used.callback(connection.close)
        version = _version_of(connection)
        if version is None:
            return None
        if version != VERSION:
            for statement in upgrade(version, to_read=True):
                connection.execute(statement)
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


_VERSION = """
    SELECT (SELECT count(*) FROM sqlite_master), application_id, user_version
    FROM pragma_application_id, pragma_user_version"""


def _version_of(connection: sqlite3.Connection) -> int | None:
    """Return the version of the ledger; ``None`` if the file is empty."""
    # One statement: another msauto may create the tables now.
    tables, application, version = connection.execute(_VERSION).fetchone()
    if application == APPLICATION:
        check_version(version)
        return int(version)
    if tables:
        raise ForeignError("it is a database of another program")
    return None


# Errors ---------------------------------------------------------------------------------------------------------------

_LOCKED = ("is locked by another program", "wait until it is finished, or close it, and try again")
_CAUSES = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_READONLY: (
        "is read-only",
        "give this user write permission for it, and for its folder",
    ),
    sqlite3.SQLITE_PERM: (
        "may not be opened by this user",
        "give this user write permission for it, and its folder",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "cannot be opened",
        "check that its folder exists and that this user may write there",
    ),
    sqlite3.SQLITE_FULL: (
        "cannot grow: the disk is full",
        "free some space, or choose another --state-dir",
    ),
    sqlite3.SQLITE_CORRUPT: ("is damaged", _DAMAGED_REMEDY),
    sqlite3.SQLITE_NOTADB: (
        "is not a ledger: the file is of another kind, or damaged",
        _DAMAGED_REMEDY,
    ),
}
_SIGNS_OF_DAMAGE = (
    "malformed",
    "no such table",
    "no such column",
    "has no column",
    "Could not decode",
)
"""In messages whose code is that of any error."""


def _cause(error: Exception) -> tuple[str, str]:
    """Return why the ledger cannot be used, and what to do."""
    if isinstance(error, ForeignError):
        return (
            f"cannot be used: {error}",
            "use the msauto that wrote it, or choose another --state-dir",
        )
    if isinstance(error, sqlite3.ProgrammingError):  # it is closed, for example
        return f"cannot be used: {error}", "this is an error in msauto"
    if isinstance(error, NotADirectoryError):
        remedy = "name a folder: --state-dir, or state_dir of msauto.toml; it is created if it does not exist"
        return f"cannot be used: {error.strerror}", remedy
    if isinstance(error, OSError):
        remedy = "check that this user may write there, or choose another: --state-dir, or state_dir of msauto.toml"
        return f"cannot be used: {error.strerror or error}", remedy
    code = getattr(error, "sqlite_errorcode", None)
    if any(sign in str(error) for sign in _SIGNS_OF_DAMAGE):
        code = sqlite3.SQLITE_CORRUPT
    remedy = "check that the disk works and has space, or choose another --state-dir"
    return _CAUSES.get((code or 0) & 0xFF, (f"cannot be used: {error}", remedy))
