"""What a ledger is: its kind, settings and size, how fast it commits, and who holds its locks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median

from msgspec import Struct, field

from msauto.ledger.store import Store

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


class LedgerFacts(Struct, frozen=True):
    """What ``msauto state check`` shows. ``settings`` are those that decide whether a commit is durable.

    ``commit_seconds`` is the median of some commits, ``bytes`` the size of the tables, ``rows`` those of each table.
    """

    ledger: str
    kind: str
    version: int
    settings: Mapping[str, str]
    bytes: int
    rows: Mapping[str, int]
    commit_seconds: float
    locks: tuple[HeldLock, ...] = ()
    died: tuple[str, ...] = ()
    warnings: tuple[str, ...] = field(default_factory=tuple)


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
