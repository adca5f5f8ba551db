"""Small real ports: a memory and a disk in dicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from msauto.model.identity import ClipIdentity
from msauto.model.plan import TargetId
from msauto.model.snapshot import Json


@dataclass
class DictMemory:
    """The ledger's memory, in a dict."""

    items: dict[TargetId, dict[str, Json]] = field(default_factory=dict)
    always: dict[str, Json] = field(
        default_factory=dict
    )  # of every target: what a case says the ledger holds

    def recall(self, target: TargetId) -> Mapping[str, Json]:
        return {**self.always, **self.items.get(target, {})}

    def forget_assets(self, server: str, database: str, prefix: str) -> None:
        for target, items in self.items.items():
            if (target.server, target.database, target.kind) == (server, database, "asset"):
                self.items[target] = {
                    name: value for name, value in items.items() if not name.startswith(prefix)
                }

    def pending(self, server: str) -> frozenset[tuple[str, str]]:
        pending = {
            target
            for target, items in self.items.items()
            if any(name.startswith("pending:") for name in items)
        }
        return frozenset(
            (target.database, target.name) for target in pending if target.server == server
        )

    def clips_of(self, server: str, database: str, title: str) -> list[ClipIdentity]:
        named = (server, database, "asset", title)
        known = [
            each
            for each in self.items
            if (each.server, each.database, each.kind, each.name) == named
        ]
        return [ClipIdentity(each.link_id, each.create_time) for each in known]

    def remember(self, target: TargetId, items: Mapping[str, Json]) -> None:
        kept = self.items.setdefault(target, {})
        for name, value in items.items():
            kept.pop(name, None)
            self.always.pop(name, None)
            if value is not None:
                kept[name] = value


@dataclass
class DictDisk:
    """Files of this machine: the SHA-256 of each."""

    files: dict[str, str] = field(default_factory=dict)

    async def sha256(self, path: str) -> str | None:
        return self.files.get(path)
