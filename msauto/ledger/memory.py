"""What was last written of a target, where the server does not report it (field notes, the rules for the unknown)."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping

from msauto.ledger.store import Store, Value
from msauto.model.plan import Json, TargetId

_RECALL = """
    SELECT item, value FROM memory
    WHERE server = ? AND database = ? AND kind = ? AND name = ? AND link_id = ? AND create_time = ?"""
_FORGET = """
    DELETE FROM memory
    WHERE server = ? AND database = ? AND kind = ? AND name = ? AND link_id = ? AND create_time = ? AND item = ?"""
_FORGET_ASSETS = "DELETE FROM memory WHERE server = ? AND database = ? AND kind = 'asset' AND substr(item, 1, ?) = ?"
_PENDING = "SELECT DISTINCT database, name FROM memory WHERE server = ? AND kind = 'asset' AND item GLOB 'pending:*'"
_KEEP = "INSERT OR REPLACE INTO memory VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


class LedgerMemory:
    """Implements the port ``Memory``. Titles are compared as in planning: after Unicode NFC."""

    def __init__(self, store: Store, now: Callable[[], str]) -> None:
        self._store = store
        self._now = now

    def recall(self, target: TargetId) -> Mapping[str, Json]:
        """Return the items that we remember of a target; empty if none."""
        rows = self._store.read(_RECALL, _key(target))
        with self._store.understood():
            return {str(item): json.loads(str(value)) for item, value in rows}

    def forget_assets(self, server: str, database: str, prefix: str) -> None:
        """Forget the items of all assets of a database whose names begin so."""
        with self._store.together():
            self._store.write(_FORGET_ASSETS, (server, database, len(prefix), prefix))

    def pending(self, server: str) -> frozenset[tuple[str, str]]:
        """Return database and title of the assets of which an ``pending:…`` item is remembered."""
        return frozenset((str(database), str(name)) for database, name in self._store.read(_PENDING, (server,)))

    def remember(self, target: TargetId, items: Mapping[str, Json]) -> None:
        """Keep items; a value of ``None`` forgets the item."""
        key, now = _key(target), self._now()
        gone = [(*key, item) for item, value in items.items() if value is None]
        kept = [(*key, item, _text(value), now) for item, value in items.items() if value is not None]
        with self._store.together():
            self._store.write(_FORGET, *gone)
            self._store.write(_KEEP, *kept)


def _key(target: TargetId) -> tuple[Value, ...]:
    name = unicodedata.normalize("NFC", target.name)
    link_id = "" if target.link_id is None else str(target.link_id)
    return (target.server, target.database, target.kind, name, link_id, target.create_time or "")


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
