"""What was last written of a target, if the server does not report it (field notes, the rules for the unknown)."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

from msgspec import structs

from msauto.ledger.store import Row, Store, Value
from msauto.model.codec import dump
from msauto.model.plan import Json, TargetId
from msauto.model.ports import NamedMemory
from msauto.model.server import ServerSpec

_RECALL = """
    SELECT item, value FROM memory
    WHERE server = ? AND database = ? AND kind = ? AND name = ? AND link_id = ? AND create_time = ?"""
_RECALL_SERVER = """
    SELECT database, kind, name, link_id, create_time, item, value FROM memory WHERE server = ?"""
_RECALL_ALL = """
    SELECT kind, name, link_id, create_time, item, value FROM memory WHERE server = ? AND database = ? LIMIT ?"""
_FEW = 32  # targets of a database that are read one by one
_ROWS_FOR_EACH = 50  # rows that are worth reading for each target that was read
_FORGET = """
    DELETE FROM memory
    WHERE server = ? AND database = ? AND kind = ? AND name = ? AND link_id = ? AND create_time = ? AND item = ?"""
_FORGET_ASSETS = "DELETE FROM memory WHERE server = ? AND database = ? AND kind = 'asset' AND substr(item, 1, ?) = ?"
_PENDING = """
    SELECT DISTINCT database, name FROM memory
    WHERE server = ? AND kind = 'asset' AND substr(item, 1, 8) = 'pending:'"""
_KEEP = """
    INSERT INTO memory VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (server, database, kind, name, link_id, create_time, item)
    DO UPDATE SET value = excluded.value, written = excluded.written"""


_ByClip = dict[tuple[str, str], list[Row]]
"""Rows of ``item`` and ``value``, by the link_id and the creation time of a clip."""


class LedgerMemory:
    """Implements the port ``Memory``. Titles are compared as in planning: after Unicode NFC."""

    def __init__(self, store: Store, now: Callable[[], str]) -> None:
        self._store = store
        self._now = now

    def recall(self, target: TargetId) -> Mapping[str, Json]:
        """Return the items remembered of a target."""
        return self.items(self._store.read(_RECALL, _key(target)))

    def items(self, rows: list[Row]) -> Mapping[str, Json]:
        """Return the items in rows of ``item`` and ``value``."""
        if not rows:
            return {}
        with self._store.decoding():
            return {str(item): json.loads(str(value)) for item, value in rows}

    def of_server(self, server: str) -> dict[TargetId, Mapping[str, Json]]:
        """Return the items of all targets of a server."""
        found: dict[TargetId, dict[str, Json]] = defaultdict(dict)
        with self._store.decoding():
            for database, kind, name, link_id, create_time, item, value in self._store.read(_RECALL_SERVER, (server,)):
                target = TargetId(server, database, kind, name, int(link_id) if link_id else None, create_time or None)
                found[target][item] = json.loads(value)
        return dict(found)

    def forget_assets(self, server: str, database: str, prefix: str) -> None:
        """Forget the items of all assets of a database that start with ``prefix``."""
        with self._store.together():
            self._store.write(_FORGET_ASSETS, (server, database, len(prefix), prefix))

    def pending(self, server: str) -> frozenset[tuple[str, str]]:
        """Return database and title of the assets that have a ``pending:…`` item."""
        return frozenset((str(database), str(name)) for database, name in self._store.read(_PENDING, (server,)))

    def remember(self, target: TargetId, items: Mapping[str, Json]) -> None:
        """Remember items; a value of ``None`` forgets the item."""
        key, now = _key(target), self._now()
        gone = [(*key, item) for item, value in items.items() if value is None]
        kept = [(*key, item, dump(value), now) for item, value in items.items() if value is not None]
        with self._store.together():
            self._store.write(_FORGET, *gone)
            self._store.write(_KEEP, *kept)


class MemoryByUrl:
    """A memory that identifies servers by URL, so that a host renamed in the inventory is the same server."""

    def __init__(self, memory: NamedMemory, specs: Iterable[ServerSpec]) -> None:
        self._memory = memory
        self._urls = {spec.name: spec.url for spec in specs}

    def recall(self, target: TargetId) -> Mapping[str, Json]:
        """Return the items remembered of a target."""
        return self._memory.recall(self._by_url(target))

    def remember(self, target: TargetId, items: Mapping[str, Json]) -> None:
        """Remember items; a value of ``None`` forgets the item."""
        self._memory.remember(self._by_url(target), items)

    def of_server(self, server: str) -> dict[TargetId, Mapping[str, Json]]:
        """Return the items of all targets of a server."""
        found = self._memory.of_server(self._urls.get(server, server))
        return {structs.replace(target, server=server): items for target, items in found.items()}

    def forget_assets(self, server: str, database: str, prefix: str) -> None:
        """Forget the items of all assets of a database that start with ``prefix``."""
        self._memory.forget_assets(self._urls.get(server, server), database, prefix)

    def pending(self, server: str) -> frozenset[tuple[str, str]]:
        """Return database and title of the assets that have a ``pending:…`` item."""
        return self._memory.pending(self._urls.get(server, server))

    def _by_url(self, target: TargetId) -> TargetId:
        return structs.replace(target, server=self._urls.get(target.server, target.server))


def _key(target: TargetId) -> tuple[Value, ...]:
    name = unicodedata.normalize("NFC", target.name)
    link_id = "" if target.link_id is None else str(target.link_id)
    return (target.server, target.database, target.kind, name, link_id, target.create_time or "")


class PlanMemory:
    """The memory of a shared ledger while one plan is made: many targets of a database are read at once.

    A few targets are read one by one. Once they are many for the size of the memory of their database, all of it is
    read. What another process writes after that is not seen: a run holds the locks of its databases.
    """

    def __init__(self, memory: LedgerMemory, store: Store) -> None:
        self._memory = memory
        self._store = store
        self._recalled: Counter[tuple[str, str]] = Counter()
        self._known: dict[tuple[str, str], dict[tuple[str, str], _ByClip]] = {}

    def recall(self, target: TargetId) -> Mapping[str, Json]:
        """Return the items remembered of a target."""
        by_clip = self._known_of(target)
        if by_clip is None:
            return self._memory.recall(target)
        *_, link_id, create_time = _key(target)
        return self._memory.items(by_clip.get((str(link_id), str(create_time)), []))

    def _known_of(self, target: TargetId) -> _ByClip | None:
        """Return the rows of all clips of a name; ``None`` if its database is not read whole."""
        database = (target.server, target.database)
        if database not in self._known:
            self._recalled[database] += 1
            count = self._recalled[database]
            if count < _FEW or count & (count - 1) or not self._read_all(database, count * _ROWS_FOR_EACH):
                return None
        return self._known[database].get((target.kind, unicodedata.normalize("NFC", target.name)), {})

    def _read_all(self, database: tuple[str, str], most: int) -> bool:
        """Read all that is remembered of a database; return whether it is not more than ``most`` rows."""
        rows = self._store.read(_RECALL_ALL, (*database, most + 1))
        if len(rows) > most:
            return False
        known = self._known[database] = defaultdict(lambda: defaultdict(list))
        for kind, name, link_id, create_time, item, value in rows:
            known[kind, name][link_id, create_time].append((item, value))
        return True

    def remember(self, target: TargetId, items: Mapping[str, Json]) -> None:
        """Remember items; a value of ``None`` forgets the item."""
        self._forget((target.server, target.database))
        self._memory.remember(target, items)

    def forget_assets(self, server: str, database: str, prefix: str) -> None:
        """Forget the items of all assets of a database that start with ``prefix``."""
        self._forget((server, database))
        self._memory.forget_assets(server, database, prefix)

    def pending(self, server: str) -> frozenset[tuple[str, str]]:
        """Return database and title of the assets that have a ``pending:…`` item."""
        return self._memory.pending(server)

    def of_server(self, server: str) -> dict[TargetId, Mapping[str, Json]]:
        """Return the items of all targets of a server."""
        return self._memory.of_server(server)

    def _forget(self, database: tuple[str, str]) -> None:
        self._known.pop(database, None)
        self._recalled.pop(database, None)
