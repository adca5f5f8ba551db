"""What the ledger remembers of one asset, under its title and its former titles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from msauto.diffing.comparison import mapping
from msauto.model.identity import same_text
from msauto.model.plan import Json, Settlement, TargetId
from msauto.model.ports import Memory
from msauto.planning.survey.asset_plan import LocatedAsset


@dataclass(frozen=True, slots=True)
class RecalledMemory:
    """The items by ``aspect:key``, and the settlements of items that are dropped."""

    items: Mapping[str, Json]
    settlements: tuple[Settlement, ...] = ()


def recall(
    memory: Memory, found: LocatedAsset, names: Iterable[str], aliases: Iterable[LocatedAsset] = (), *, forget: bool
) -> RecalledMemory:
    """Return what is remembered of an asset; ``forget`` settles what is pending or in doubt.

    ``aliases`` are other entries of the clip: commands that ran under their names count.
    """
    items: dict[str, Json] = {}
    settlements: list[Settlement] = []
    former = [name for name in names if not same_text(name, found.title)]
    mine = [found.id(name) for name in (*reversed(former), found.title)]
    for target in (*(alias.id(alias.title) for alias in aliases), *mine):
        known, settled = recall_settled(memory, target, forget=forget)
        items |= {item: value for item, value in known.items() if target in mine or item.startswith("command:")}
        settlements += [each for each in settled if target in mine or each.item.startswith("command:")]
    return RecalledMemory({name: value for name, value in items.items() if value is not None}, tuple(settlements))


def recall_settled(memory: Memory, target: TargetId, *, forget: bool) -> tuple[dict[str, Json], list[Settlement]]:
    """Return the items of a target; with ``forget`` as settled: pending ones dropped, sent ones run."""
    items = dict(memory.recall(target))
    settlements = [
        Settlement(target, item, None if item.startswith("pending:") else True)
        for item, value in (items.items() if forget else ())
        if item.startswith("pending:") or mapping(value).get("unverified")
    ]
    return items | {each.item: each.value for each in settlements}, settlements
