"""What a ledger is (its kind, settings and size, how fast it commits, who holds its locks), and copying it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from statistics import median

from msgspec import Struct

from msauto.errors import LedgerError, RefusedError
from msauto.ledger.store import Properties, Row, Store

TABLES: Mapping[str, tuple[str, ...]] = {
    "run": ("id",),
    "target": ("run", "position"),
    "request": ("run", "target", "position"),
    "memory": ("server", "database", "kind", "name", "link_id", "create_time", "item"),
    "note": ("run", "name"),
    "learned": ("run", "target", "item"),
    "attempt": ("name",),
    "attempt_note": ("attempt", "name"),
    "batch": ("name",),
}
"""The tables that hold the record, each after those that it refers to, with their keys: the first columns."""

_TRIES = 5
_TOUCH = """
    INSERT INTO holder VALUES ('check', 0, '', 0, '', '', ?)
    ON CONFLICT (lock, session) DO UPDATE SET since = excluded.since"""


class HeldLock(Struct, frozen=True):
    """A lock that a process holds now; ``holder`` is a text such as ``run R, process 7 on ada@oslo, since T``."""

    lock: str
    holder: str


class LedgerFacts(Properties, frozen=True, kw_only=True):
    """What ``msauto state check`` shows.

    ``commit_seconds`` is the median of some commits, ``bytes`` the size of the tables, ``rows`` those of each table.
    ``died`` are the runs that did.
    """

    ledger: str
    rows: dict[str, int]
    commit_seconds: float
    locks: tuple[HeldLock, ...] = ()
    died: tuple[str, ...] = ()


def count_rows(store: Store) -> dict[str, int]:
    """Return the number of rows of each table."""
    found = {}
    for table in TABLES:
        ((found[table],),) = store.read(f"SELECT count(*) FROM {table}")  # noqa: S608 - our own names
    return found


def commit_seconds(store: Store, monotonic: Callable[[], float]) -> float:
    """Return how long a commit takes, by some that leave nothing."""
    times = []
    for number in range(_TRIES):
        began = monotonic()
        store.write(_TOUCH, (str(number),))
        times.append(monotonic() - began)
    store.write("DELETE FROM holder WHERE lock = 'check'", ())
    return median(times)


# Copying: all of it, in one transaction, or nothing -------------------------------------------------------------------

_CHUNK = 1000


def copy_tables(source: Store, target: Store) -> dict[str, int]:
    """Copy all rows to an empty ledger, and read both again; return the number of rows of each table.

    Raises ``RefusedError`` if the target is not empty, and ``LedgerError`` if what is read again differs.
    """
    with source.together(alone=True), target.together(alone=True):
        if any(count_rows(target).values()):
            remedy = "copy to an empty folder, or to an empty database"
            raise RefusedError(f"the ledger {target.name} is not empty", remedy=remedy)
        for table in TABLES:
            for rows in _chunks(source, table):
                places = ", ".join("?" * len(rows[0]))
                target.write(f"INSERT INTO {table} VALUES ({places})", *rows)  # noqa: S608 - our own names
        target.continue_numbers()
        for table in TABLES:
            if _digest(source, table) != _digest(target, table):
                raise LedgerError(
                    f"the copy of the table {table} in {target.name} differs from {source.name}: nothing was copied",
                    remedy="copy again while no msauto runs; if it fails again, a disk is damaged",
                )
        return count_rows(target)


def _chunks(store: Store, table: str) -> Iterator[list[Row]]:
    """Yield the rows of a table, some at a time, in the order of its key."""
    keys = TABLES[table]
    columns = ", ".join(keys)
    first = f"SELECT * FROM {table} ORDER BY {columns} LIMIT {_CHUNK}"  # noqa: S608 - our own names
    after = f"({', '.join('?' * len(keys))})"
    following = f"SELECT * FROM {table} WHERE ({columns}) > {after} ORDER BY {columns} LIMIT {_CHUNK}"  # noqa: S608
    rows = store.read(first)
    while rows:
        yield rows
        rows = store.read(following, rows[-1][: len(keys)])


def _digest(store: Store, table: str) -> tuple[int, int]:
    """Return the number of rows of a table, and a sum over every value of each row."""
    count = total = 0
    for rows in _chunks(store, table):
        count += len(rows)
        for row in rows:
            total += int.from_bytes(hashlib.sha256(json.dumps(row).encode()).digest())
    return count, total
