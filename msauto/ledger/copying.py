"""Copying a ledger to another place: all of it, in one transaction, or nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from msauto.errors import LedgerError, RefusedError
from msauto.ledger.inspection import TABLES, count_rows
from msauto.ledger.store import Row, Store

_CHUNK = 1000


def copy_tables(source: Store, target: Store) -> dict[str, int]:
    """Copy all rows to an empty ledger, and read both again; return the number of rows of each table.

    No other process writes to either meanwhile. Raises ``RefusedError`` if the target is not empty, and
    ``LedgerError`` if what is read again differs.
    """
    _require_empty(target)
    with source.together(alone=True), target.together(alone=True):
        source.keep_writers_out()
        target.keep_writers_out()
        _require_empty(target)
        for table in TABLES:
            for rows in _chunks(source, table):
                places = ", ".join("?" * len(rows[0]))
                target.write(f"INSERT INTO {table} VALUES ({places})", *rows)  # noqa: S608 - our own names
        target.continue_numbers()
        for table in TABLES:
            if _digest(source, table) != _digest(target, table):
                raise LedgerError(
                    f"the copy of the table {table} in {target.name} differs from {source.name}: nothing was copied",
                    remedy="report it: this is an error in msauto, or the disk is damaged",
                )
        return count_rows(target)


def _require_empty(target: Store) -> None:
    if any(count_rows(target).values()):
        raise RefusedError(
            f"the ledger {target.name} is not empty", remedy="copy to an empty folder, or to an empty database"
        )


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
