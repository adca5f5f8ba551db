"""The registry of aspects: one module for each, independent of the others. A new aspect is one line here.

What depends on an aspect is in its module, as a subclass of :class:`~msauto.aspects.aspect.Aspect`; the stages look it
up here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import structs

from msauto.aspects.aspect import Aspect, Operation
from msauto.aspects.asset import AssetDeletion
from msauto.aspects.command import AssetCommands
from msauto.aspects.downloads import Proxies, Thumbnails
from msauto.aspects.field import LinkFields
from msauto.aspects.link import Links
from msauto.aspects.list_aspect import ListAspect
from msauto.aspects.marker import Markers
from msauto.aspects.merging import Merging
from msauto.aspects.plan_builder import LEFT
from msauto.aspects.restore import Restore
from msauto.aspects.rss_item import RssItems
from msauto.aspects.segment import Segments
from msauto.aspects.segmentation import Segmentation
from msauto.aspects.title import Title
from msauto.aspects.xmp import XmpFields
from msauto.aspects.xmp_batch import XmpBatches
from msauto.errors import PlanningError
from msauto.model.desired import (
    DesiredAsset,
    DesiredChannel,
    DesiredList,
    DesiredOperation,
    DesiredXmpBatch,
)
from msauto.model.live import Asset, show_folder
from msauto.model.plan import Change, Target
from msauto.model.ports import LiveTarget
from msauto.model.snapshot import Snapshot

DELETION: Final = AssetDeletion()
CHANNEL_ITEMS: Final = RssItems()
_ALL: Final[tuple[Aspect, ...]] = (
    DELETION, Title(), Restore(), LinkFields(), XmpFields(), Segmentation(), Segments(), Markers(), Links(),
    CHANNEL_ITEMS, AssetCommands(), Thumbnails(), Proxies(), XmpBatches(),
)  # fmt: skip
ASPECTS: Final[Mapping[str, Aspect]] = {aspect.name: aspect for aspect in _ALL}
"""All aspects by name, in the order in which an asset is planned."""


NUMBERED: Final = frozenset(
    aspect.name for aspect in _ALL if isinstance(aspect, ListAspect) and aspect.numbered
)
"""The lists whose items may get other numbers from the server."""
SHOWN_WHOLE: Final = [
    aspect.name
    for aspect in _ALL
    if aspect.per_entry or (isinstance(aspect, ListAspect) and aspect.positions)
]
"""The aspects of which the answer for a clip shows all that others edit."""
CHECKED_FOR_SERVER: Final = [
    aspect for aspect in _ALL if type(aspect).check_for is not Aspect.check_for
]
"""The aspects whose arguments may be wrong for one server alone."""
_READ: Final[Collection[str]] = [
    aspect.name for aspect in _ALL if type(aspect).things is not Aspect.things
]
"""The aspects of which reading shows anything."""


def snapshot_of(live: LiveTarget, names: Collection[str] = _READ) -> Snapshot:
    """Return what a reading shows of a target: all aspects that were read, or those named."""
    parts = live.parts
    snapshot = {}
    for name in _READ:
        if name not in names:
            continue
        if name not in parts:
            parts[name] = ASPECTS[name].things(live)
        part = parts[name]
        if part is not None:
            snapshot[name] = part
    return snapshot


def operation(desired: DesiredOperation | DesiredXmpBatch) -> Operation:
    """Return the aspect that runs a desired operation."""
    aspect = ASPECTS[desired.aspect]
    assert isinstance(aspect, Operation)
    return aspect


def is_of_entry(item: str) -> bool:
    """Return whether an item of the ledger is of one entry of a clip: each has its own values."""
    name, _, _ = item.removeprefix(LEFT).partition(":")
    return name in ASPECTS and ASPECTS[name].per_entry


def is_deletion(change: Change) -> bool:
    """Return whether a change counts as a deletion: of an asset, or of a link by its title."""
    return change.action == "delete" and bool(ASPECTS[change.aspect].deletes)


def deletions_of(target: Target) -> list[Change]:
    """Return the changes of a target that count as deletions."""
    return [
        change
        for change in target.changes
        if change.action == "delete" and ASPECTS[change.aspect].deletes
    ]


# What several tasks declare ------------------------------------------------------------------------------------------


def merge_desired(declared: Sequence[DesiredAsset], asset: Asset, title: str) -> DesiredAsset:
    """Return what all tasks declare for one asset; ``title`` is its current title.

    Raises ``PlanningError`` that names both places of a contradiction.
    """
    first = declared[0]
    if len(declared) == 1 and not _has_items_to_unite(first.parts.values()):
        parts = {name: first.parts[name] for name in sorted(first.parts, key=_ORDER.__getitem__)}
        return structs.replace(first, parts=parts)
    merging = Merging(asset, title)
    merged = _merge(declared, merging)
    merging.check()
    return merged


def _has_items_to_unite(parts: Iterable[Any]) -> bool:
    """Return whether a part is a list of which two items may be one."""
    for part in parts:
        if isinstance(part, DesiredList) and len(part.items) > 1:
            return True
    return False


def contradictions(
    declared: Sequence[DesiredAsset | DesiredChannel], title: str
) -> list[PlanningError]:
    """Return what contradicts whatever the server shows: two positions must differ at every frame rate."""
    merging = Merging(None, title)
    assets: list[DesiredAsset] = []
    channels: list[DesiredChannel] = []
    for desired in declared:
        if isinstance(desired, DesiredAsset):
            assets.append(desired)
        else:
            channels.append(desired)
    if assets:
        _merge(assets, merging)
    if channels:
        CHANNEL_ITEMS.merge(merging, channels)
    return merging.errors


def _merge(declared: Sequence[DesiredAsset], merging: Merging) -> DesiredAsset:
    """Merge what several tasks declare of one asset, or the items of one task."""
    absent = [desired for desired in declared if not desired.present]
    present = [desired for desired in declared if desired.present]
    if absent and present:
        merging.removed("the asset", absent[0].source, present[0].source)
        return declared[0]
    for desired in reversed(declared):
        if desired.title:
            merging.title = desired.title.value
    merged = structs.replace(declared[0], parts=_merge_parts(declared, merging))
    if len(declared) == 1:
        return merged
    folders = []
    required_live: dict[str, Any] = {}
    notes: list[str] = []
    for desired in declared:
        required_live.update(desired.required_live)
        notes += desired.notes
        if desired.folder is not None:
            folders.append(desired.folder)
    return structs.replace(
        merged,
        missing=min((desired.missing for desired in declared), key=("error", "skip").index),
        unfinalized=min(
            (desired.unfinalized for desired in declared), key=("error", "skip", "allow").index
        ),
        lossy=any(desired.lossy for desired in declared),
        folder=merging.one("the folder", folders, lambda folder: repr(show_folder(folder))),
        required_live=required_live,
        notes=tuple(notes),
        with_links=any(desired.with_links for desired in declared),
    )


def _merge_parts(declared: Sequence[DesiredAsset], merging: Merging) -> dict[str, Any]:
    """Merge what tasks declare of each aspect; the items of one list may also be one item."""
    by_aspect: dict[str, list[Any]] = {}
    for desired in declared:
        for name, part in desired.parts.items():
            by_aspect.setdefault(name, []).append(part)
    merged: dict[str, Any] = {}
    for name in sorted(by_aspect, key=_ORDER.__getitem__):
        parts = by_aspect[name]
        if len(parts) == 1 and not _has_items_to_unite(parts):
            merged[name] = parts[0]
        else:
            merged[name] = ASPECTS[name].merge(merging, parts)
    return merged


_ORDER = {name: number for number, name in enumerate(ASPECTS)}
