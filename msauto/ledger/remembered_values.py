"""What was last written of a target, if the server does not report it (field notes, the rules for the unknown)."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

from msauto.ledger.store import Row, Store
from msauto.model.codec import dump
from msauto.model.plan import Json, TargetId
from msauto.model.server import ServerSpec

_RECALL = """
    SELECT item, value FROM memory
    WHERE server = ? AND database = ? AND kind = ? AND name = ? AND link_id = ? AND create_time = ?"""
_RECALL_SERVER = """
    SELECT database, kind, name, link_id, create_time, item, value FROM memory WHERE server = ?"""
_RECALL_DATABASE = """
    SELECT kind, name, link_id, create_time, item, value FROM memory WHERE server = ? AND database = ? LIMIT ?"""
_FEW = 32  # targets of a database that are read one by one
_MOST = 100_000  # rows of a database that are read at once
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

_Key = tuple[str, ...]
"""Server, database, kind, name, link_id and creation time of a target, as the ledger writes them."""


class LedgerMemory:
    """Implements the port ``Memory``. Titles are compared as in planning: after Unicode NFC.

    Servers are identified by their URLs once :meth:`by_url` has named them, so that a host renamed in the inventory is
    the same server.
    """

    def __init__(self, store: Store, now: Callable[[], str], urls: Mapping[str, str] | None = None) -> None:
        self._store = store
        self._now = now
        self._urls = urls or {}

    def by_url(self, specs: Iterable[ServerSpec]) -> LedgerMemory:
        """Return this memory for the servers of an inventory."""
        return type(self)(self._store, self._now, {spec.name: spec.url for spec in specs})

    def recall(self, target: TargetId) -> Mapping[str, Json]:
        """Return the items remembered of a target."""
        rows = self._rows(self._key(target))
        if not rows:
            return {}
        with self._store.decoding():
            return {str(item): json.loads(str(value)) for item, value in rows}

    def _rows(self, key: _Key) -> list[Row]:
        return self._store.read(_RECALL, key)

    def of_server(self, server: str) -> dict[TargetId, Mapping[str, Json]]:
        """Return the items of all targets of a server."""
        found: dict[TargetId, dict[str, Json]] = defaultdict(dict)
        rows = self._store.read(_RECALL_SERVER, (self._urls.get(server, server),))
        with self._store.decoding():
            for database, kind, name, link_id, create_time, item, value in rows:
                target = TargetId(server, database, kind, name, int(link_id) if link_id else None, create_time or None)
                found[target][item] = json.loads(value)
        return dict(found)

    def forget_assets(self, server: str, database: str, prefix: str) -> None:
        """Forget the items of all assets of a database that start with ``prefix``."""
        self._store.write(_FORGET_ASSETS, (self._urls.get(server, server), database, len(prefix), prefix))

    def pending(self, server: str) -> frozenset[tuple[str, str]]:
        """Return database and title of the assets that have a ``pending:…`` item."""
        rows = self._store.read(_PENDING, (self._urls.get(server, server),))
        return frozenset((str(database), str(name)) for database, name in rows)

    def remember(self, target: TargetId, items: Mapping[str, Json]) -> None:
        """Remember items; a value of ``None`` forgets the item."""
        key, now = self._key(target), self._now()
        gone = [(*key, item) for item, value in items.items() if value is None]
        kept = [(*key, item, dump(value), now) for item, value in items.items() if value is not None]
        with self._store.together():
            self._store.write(_FORGET, *gone)
            self._store.write(_KEEP, *kept)

    def _key(self, target: TargetId) -> _Key:
        name = unicodedata.normalize("NFC", target.name)
        link_id = "" if target.link_id is None else str(target.link_id)
        server = self._urls.get(target.server, target.server)
        return (server, target.database, target.kind, name, link_id, target.create_time or "")


class PlanMemory(LedgerMemory):
    """The memory of a shared ledger while one plan is made, so that not each target costs a round trip.

    A few targets of a database are read one by one, then all of them at once, unless it has too many. What is written
    after that is not seen: a run holds the locks of its databases.
    """

    def __init__(self, store: Store, now: Callable[[], str], urls: Mapping[str, str] | None = None) -> None:
        super().__init__(store, now, urls)
        self._recalled: Counter[_Key] = Counter()
        self._known: dict[_Key, dict[_Key, list[Row]]] = {}

    def _rows(self, key: _Key) -> list[Row]:
        database, target = key[:2], key[2:]
        if database not in self._known:
            self._recalled[database] += 1
            if self._recalled[database] != _FEW:
                return super()._rows(key)
            rows = self._store.read(_RECALL_DATABASE, (*database, _MOST + 1))
            if len(rows) > _MOST:
                return super()._rows(key)
            known = self._known[database] = defaultdict(list)
            for *clip, item, value in rows:
                known[tuple(clip)].append((item, value))
        return self._known[database].get(target, [])
