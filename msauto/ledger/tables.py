"""The tables of the ledger, and a connection whose commits survive ``kill -9`` and power loss.

Write-ahead logging with ``synchronous=EXTRA``: a commit is on the disk when it returns. Closing returns the ledger to a
rollback journal, so that reading it later creates no other files.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import suppress
from pathlib import Path

VERSION = 3
APPLICATION = 0x6D736175  # "msau": the mark of our files
BUSY = 10.0  # seconds to wait for another msauto that is writing

TABLES = Path(__file__).with_name("tables.sql")


class ForeignError(Exception):
    """The file is a database that this msauto cannot use."""


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
        _prepare(connection)
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
    try:
        if _is_ledger(connection):
            return connection
    except BaseException:
        connection.close()
        raise
    connection.close()
    return None


def close(connection: sqlite3.Connection, *, readonly: bool) -> None:
    """Close; the last writer merges the write-ahead log into the ledger."""
    with suppress(sqlite3.Error):
        if not readonly:
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    connection.close()


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
    version = _number(connection, "PRAGMA user_version")
    application = _number(connection, "PRAGMA application_id")
    if application == APPLICATION:
        if version > VERSION:
            raise ForeignError(f"it was written by a newer msauto (ledger version {version}, not {VERSION})")
        return True
    if tables:
        raise ForeignError("it is a database of another program")
    return False


def _prepare(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.OperationalError):  # another msauto has it open: its mode is as safe
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
    for setting in ("synchronous = EXTRA", "fullfsync = ON", "checkpoint_fullfsync = ON", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}")


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA foreign_keys = OFF")  # to replace a table; it has no effect within a transaction
    connection.execute("BEGIN IMMEDIATE")
    try:
        is_ledger = _is_ledger(connection)
        if is_ledger and _number(connection, "PRAGMA user_version") < 3:
            _drop_check(connection)
        for statement in statements():
            connection.execute(statement)
        if not is_ledger or _number(connection, "PRAGMA user_version") < VERSION:
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # SQLite rolls back automatically on some errors, such as a full disk
            connection.execute("ROLLBACK")
        raise
    connection.execute("PRAGMA foreign_keys = ON")


def _drop_check(connection: sqlite3.Connection) -> None:
    """Replace the table of targets by one that takes every outcome: SQLite cannot drop a constraint."""
    target = next(each for each in statements() if "EXISTS target (" in each)
    connection.execute(target.replace("EXISTS target (", "EXISTS new_target ("))
    connection.execute("INSERT INTO new_target SELECT * FROM target")
    connection.execute("DROP TABLE target")
    connection.execute("ALTER TABLE new_target RENAME TO target")


def statements() -> list[str]:
    """Return the statements that make the tables, and complete those of an earlier version."""
    lines = TABLES.read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("--"))
    return [each for each in map(str.strip, text.split(";")) if each]


def _number(connection: sqlite3.Connection, query: str) -> int:
    return int(connection.execute(query).fetchone()[0])
