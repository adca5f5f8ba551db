"""A memory in a dict."""

from __future__ import annotations

from collections.abc import Mapping

from msauto.model.identity import ClipIdentity
from msauto.model.plan import TargetId
from msauto.model.snapshot import Json


class DictMemory:
    def __init__(self) -> None:
        self.items: dict[TargetId, dict[str, Json]] = {}

    def recall(self, target: TargetId) -> Mapping[str, Json]:
        return dict(self.items.get(target, {}))

    def forget_assets(self, server: str, database: str, prefix: str) -> None:
        for target, items in self.items.items():
            if (target.server, target.database, target.kind) == (server, database, "asset"):
                self.items[target] = {name: value for name, value in items.items() if not name.startswith(prefix)}

    def pending(self, server: str) -> frozenset[tuple[str, str]]:
        return frozenset()

    def clips_of(self, server: str, database: str, title: str) -> list[ClipIdentity]:
        named = (server, database, "asset", title)
        known = [each for each in self.items if (each.server, each.database, each.kind, each.name) == named]
        return [ClipIdentity(each.link_id, each.create_time) for each in known]

    def remember(self, target: TargetId, items: Mapping[str, Json]) -> None:
        kept = {**self.items.get(target, {}), **items}
        self.items[target] = {name: value for name, value in kept.items() if value is not None}
