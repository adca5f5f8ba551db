"""Access to the tables of the ledger: transactions, and a thread that makes them durable.

:class:`~msauto.ledger.sqlite_store.SqliteStore` is the local ledger,
:class:`~msauto.ledger.postgres_store.PostgresStore` the shared one. The statements are the same for both: values are
``?``, and a text is compared by its code points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from msauto.errors import LedgerError

Value = str | int | None
Row = tuple[Any, ...]
VERSION = 3
"""Of the tables in ``tables.sql``."""


class ForeignError(Exception):
    """Where the ledger should be is a database that this msauto cannot use."""


def table_statements() -> list[str]:
    """Return the statements that make the tables, and complete those of an earlier version."""
    lines = Path(__file__).with_name("tables.sql").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("--"))
    return [each for each in map(str.strip, text.split(";")) if each]


class Properties(Struct, frozen=True):
    """What a ledger is stored in. ``settings`` decide whether a commit is durable; ``warnings``: it may not be."""

    kind: str
    version: int
    bytes: int
    settings: dict[str, str]
    warnings: tuple[str, ...] = ()


class Store(ABC):
    """The tables, for one thread; errors are ``LedgerError``. Opened for reading without a ledger, it is empty.

    So is a table that a ledger of an earlier msauto, opened for reading, lacks. ``exists``: there is a ledger.

    A thread of its own commits in :meth:`commit`; only one thread uses the connection at a time. ``name`` is the file,
    or the URL without a password.
    """

    exists: bool
    damaged_remedy: str
    """What to do if the tables contain what msauto does not write."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._depth = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="msauto ledger")  # starts with the first commit
        self._committing: Future[None] | None = None

    @abstractmethod
    def close(self) -> None:
        """Close; closing twice does nothing."""

    @abstractmethod
    def read(self, query: str, values: Iterable[Value] = ()) -> list[Row]:
        """Return the rows of a SELECT, which sees the writes before it."""

    @abstractmethod
    def count(self, statement: str, values: Row) -> int:
        """Execute a statement, and return the number of rows that it changed. It may take minutes."""

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
    def _write(self, statement: str, rows: tuple[Row, ...], missing: str | None) -> None:
        """Execute a statement within a transaction, at the latest when it ends."""

    @abstractmethod
    def _begin(self, *, alone: bool) -> None: ...

    @abstractmethod
    def _make_durable(self) -> None:
        """Commit; after an error nothing of the transaction remains."""

    @abstractmethod
    def _roll_back(self) -> None: ...

    def write(self, statement: str, *rows: Row, missing: str | None = None) -> None:
        """Execute a statement for each row of values, durable on return or when ``together`` ends.

        ``missing`` is the error if it does not change exactly one row for each; a commit with it does not succeed.
        """
        with self.together():
            self._write(statement, rows, missing)

    @contextmanager
    def together(self, *, alone: bool = False) -> Iterator[None]:
        """Make all writes inside in one transaction. May be nested; the outermost counts.

        With ``alone``, no other process writes with ``alone`` meanwhile: what is read inside stays true.
        """
        if self._depth:
            yield
            return
        with self._written(alone=alone):
            yield
        self._make_durable()

    def commit(self, calls: Sequence[Callable[[], object]]) -> Future[None]:
        """Make the calls in one transaction, which a thread commits; the future ends once they are durable.

        Reads and writes meanwhile wait for it.
        """
        with self._written():
            for call in calls:
                call()
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
