"""Access to the tables of the ledger: what the local and the shared one have in common.

:class:`~msauto.ledger.sqlite_store.SqliteStore` is the local ledger; a plugin brings the shared one. The statements are
the same for both: values are ``?``, and a text is compared by its code points.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from msauto.errors import LedgerError
from msauto.model.result import COUNTED_BY_SERVER

Value = str | int | None
Row = tuple[Any, ...]
VERSION = 8
"""Of the tables in ``tables.sql``."""
_OLDEST = 6
"""The oldest version whose ledgers are read, and get what they lack when they are opened."""
_SINCE = {"request": 7, "entered": 8, "clip": 8, "clip_title": 8}
"""The versions that brought a table or an index; the others are as old as the ledger."""


class ForeignError(Exception):
    """Where the ledger should be is a database that this msauto cannot use."""


def check_version(version: int) -> None:
    """Raise :class:`ForeignError` for the tables of another msauto."""
    if not _OLDEST <= version <= VERSION:
        age = "a newer" if version > VERSION else "an older"
        raise ForeignError(
            f"it was written by {age} msauto (ledger version {version}, not {VERSION})"
        )


def upgrade(version: int, *, to_read: bool = False) -> list[str]:
    """Return the statements that make what a ledger of this version lacks; 0: a new ledger.

    ``to_read``: only for this connection.
    """
    lines = Path(__file__).with_name("tables.sql").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("--"))
    statements = []
    for statement in filter(None, map(str.strip, text.split(";"))):
        _, _, name, *_ = statement.split()
        if _SINCE.get(name, 1) > version:
            if to_read:  # a table of a connection cannot refer to one of the ledger
                statement = re.sub(r",\s+FOREIGN KEY .*", "", statement)
                statement = statement.replace("CREATE TABLE", "CREATE TEMP TABLE")
            statements.append(statement)
    if version < _SINCE["request"] and not to_read:
        statements.append(_NOTE_OF_OLDER_RUNS)
    if version < _SINCE["clip"]:
        statements.append(_CLIPS_OF_OLDER_LEDGERS)
    return statements


_NOTE_OF_OLDER_RUNS = (
    f"INSERT INTO note SELECT id, '{COUNTED_BY_SERVER}', 'as the server counts' FROM run"  # noqa: S608
)
_CLIPS_OF_OLDER_LEDGERS = """
    INSERT INTO clip SELECT DISTINCT server, database, name, link_id, create_time, name, '', '', '{}'
    FROM memory WHERE kind = 'asset'"""


ENTER = "INSERT INTO entered (name) VALUES (?) ON CONFLICT (name) DO NOTHING"
"""Gives a run, an attempt or a batch its place in the order of the ledger."""


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
        delete = f"DELETE FROM {table} WHERE {same}"  # noqa: S608 - our own names
        return cls(f"{insert} ON CONFLICT ({key}) DO UPDATE SET {changed}", delete)


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
    warnings: tuple[str, ...] = ()
    """What others on the network could do."""
    damaged_remedy: str
    """What to do if the tables contain what msauto does not write."""

    def __init__(self, name: str, *, readonly: bool) -> None:
        self.name = name
        self._readonly = readonly
        self._depth = 0
        self.rollbacks = 0
        # Starts with the first commit.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="msauto ledger")
        # The commit of that thread, which uses the connection until it has ended. Its caller gets its errors, so others
        # only wait for it: ``exception()``.
        self._committing = Future[None]()
        self._committing.set_result(None)
        # What the transaction writes by its keys.
        self._put: dict[Upsert, dict[Row, Row | None]] = defaultdict(dict)

    def close(self) -> None:
        """Close; closing twice does nothing."""
        self._committing.exception()
        self._thread.shutdown()
        self._disconnect()

    def read(self, query: str, values: Row = ()) -> list[Row]:
        """Return the rows of a SELECT, which sees the writes before it."""
        if not self.exists:
            return []
        self._committing.exception()
        if self._put:
            self._write_put()
        return self._execute(query, values)

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
    def _disconnect(self) -> None: ...

    @abstractmethod
    def _execute(self, statement: str, values: Row) -> list[Row]:
        """Execute a statement at once, and return the rows that it finds."""

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
            self.rollbacks += 1
            self._roll_back()
            raise

    def write(self, statement: str, *rows: Row) -> None:
        """Execute a statement for each row of values, durable on return or when ``together`` ends."""
        if self._depth:
            if self._put:
                self._write_put()
            self._write(statement, rows)
        else:
            with self.together():
                self._write(statement, rows)

    def put(self, table: Upsert, *rows: tuple[Row, Row | None]) -> None:
        """Write rows, each with its key and its values, ``None`` to delete it; durable as with :meth:`write`.

        Of all that a transaction puts under one key, only the last is written.
        """
        if self._depth:
            self._put[table].update(rows)
        else:
            with self.together():
                self._put[table].update(rows)

    def _write_put(self) -> None:
        """Write what was put so far: before anything that depends on it."""
        for table, rows in self._put.items():
            deleted = []
            written = []
            for key, values in rows.items():
                if values is None:
                    deleted.append(key)
                else:
                    written.append(key + values)
            if deleted:
                self._write(table.delete, deleted)
            if written:
                self._write(table.write, written)
        self._put.clear()

    @contextmanager
    def together(self, *, alone: bool = False, later: bool = False) -> Iterator[None]:
        """Make all writes inside in one transaction, durable when it ends. May be nested; the outermost counts.

        With ``alone``, no other process writes with ``alone`` meanwhile: what is read inside stays true. With
        ``later``, a thread commits after the end.
        """
        if self._depth:
            yield
            return
        if self._readonly:
            raise LedgerError(
                f"the ledger {self.name} is open for reading", remedy="this is an error in msauto"
            )
        self._committing.exception()
        self._begin(alone=alone)
        self._depth += 1
        try:
            yield
            self._write_put()
            if later:
                self._committing = self._thread.submit(self._make_durable)
        except BaseException:
            self._put.clear()
            self.rollbacks += 1
            self._roll_back()
            raise
        finally:
            self._depth -= 1
        if not later:
            self._make_durable()

    def commit(self, calls: Sequence[Callable[[], object]]) -> Future[None]:
        """Make the calls in one transaction, which a thread commits; the future ends once they are durable.

        Reads and writes meanwhile wait for it.
        """
        assert not self._depth, "a commit is a transaction of its own"
        with self.together(later=True):
            for call in calls:
                call()
        return self._committing

    @contextmanager
    def decoding(self) -> Iterator[None]:
        """Turn errors of decoding into *damaged*: the tables are intact, but hold what msauto does not write."""
        try:
            yield
        except (
            ValueError,
            TypeError,
            KeyError,
            AttributeError,
            ArithmeticError,
            RecursionError,
        ) as error:
            raise LedgerError(
                f"the ledger {self.name} is damaged: it contains data that msauto does not write ({error})",
                remedy=self.damaged_remedy,
            ) from error
