"""Small real ports: a memory and a disk in dicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msauto.model.identity import is_remembered
from msauto.model.plan import TargetId
from msauto.model.ports import Remembered
from msauto.model.snapshot import Json


@dataclass
class DictMemory:
    """The ledger's memory, in a dict."""

    items: dict[TargetId, dict[str, Json]] = field(default_factory=dict)
    always: dict[str, Json] = field(
        default_factory=dict
    )  # of every target: what a case says the ledger holds

    def recall(self, target: TargetId) -> Mapping[str, Json]:
        items = dict(self.always)
        for record in self.records(target):
            if record.answer == "same":
                items |= record.items
        return items

    def records(self, target: TargetId, titles: Iterable[str] = ()) -> list[Remembered]:
        records = [Remembered(target, self.always)] if self.always else []
        for kept, items in self.items.items():
            if (kept.server, kept.database, kept.kind) != (
                target.server,
                target.database,
                target.kind,
            ):
                continue
            names = [name for name in (target.name, *titles) if name == kept.name]
            name = names[0] if names else target.name
            answer = is_remembered(kept.clip, kept.name, target.clip, name)
            if target.kind != "asset":
                answer = "same" if names else "other"
            if answer == "same" or (answer == "unknown" and kept.name == target.name):
                records.append(Remembered(kept, items, "R", answer=answer))
        return records

    def keep_clip(self, kept: TargetId, now: TargetId, run: str, seen: Mapping[str, str]) -> None:
        self.items[now] = self.items.pop(kept, {})

    def forget_clip(self, kept: TargetId) -> None:
        self.items.pop(kept, None)

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

    def clips_of(self, server: str, database: str, title: str) -> list[Remembered]:
        named = (server, database, "asset", title)
        return [
            Remembered(each, items)
            for each, items in self.items.items()
            if (each.server, each.database, each.kind, each.name) == named
        ]

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
