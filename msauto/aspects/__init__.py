"""The registry of aspects: one module for each, independent of the others. A new aspect is one line here.

What depends on an aspect is in its module, as a subclass of :class:`~msauto.aspects.aspect.Aspect`; the stages look it
up here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from msauto.aspects.restore import Restore
from msauto.aspects.rss_item import RssItems
from msauto.aspects.segment import Segments
from msauto.aspects.segmentation import Segmentation
from msauto.aspects.title import Title
from msauto.aspects.xmp import XmpFields
from msauto.aspects.xmp_batch import XmpBatches
from msauto.errors import PlanningError
from msauto.model.desired import DesiredAsset, DesiredChannel, DesiredList, DesiredOperation, DesiredXmpBatch
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
ASPECTS: Final[Mapping[str, Aspect]] = {each.name: each for each in _ALL}
"""All aspects by name, in the order in which an asset is planned."""


NUMBERED: Final = frozenset(each.name for each in _ALL if isinstance(each, ListAspect) and each.numbered)
"""The lists whose items may get other numbers from the server."""
CHECKED: Final = [each for each in _ALL if type(each).check is not Aspect.check]
"""The aspects that check the arguments of a task."""
_READ: Final = [name for name, each in ASPECTS.items() if type(each).things is not Aspect.things]
"""The aspects of which reading shows anything."""


def snapshot_of(live: LiveTarget, names: Iterable[str] = _READ) -> Snapshot:
    """Return what a reading shows of a target: all aspects that were read, or those named."""
    parts = live.parts
    snapshot = {}
    for name in names:
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


def is_deletion(change: Change) -> bool:
    """Return whether a change counts as a deletion: of an asset, or of a link by its title."""
    return change.action == "delete" and bool(ASPECTS[change.aspect].deletes)


def deletions_of(target: Target) -> list[Change]:
    """Return the changes of a target that count as deletions."""
    found = []
    for change in target.changes:
        if change.action == "delete" and ASPECTS[change.aspect].deletes:
            found.append(change)
    return found


# What several tasks declare ------------------------------------------------------------------------------------------


def merge_desired(declared: Sequence[DesiredAsset], asset: Asset, title: str) -> DesiredAsset:
    """Return what all tasks declare for one asset; ``title`` is its current title.

    Raises ``PlanningError`` that names both places of a contradiction.
    """
    if len(declared) == 1 and not _has_items_to_unite(declared[0]):
        parts = declared[0].parts
        return structs.replace(declared[0], parts={name: parts[name] for name in sorted(parts, key=_ORDER.__getitem__)})
    merging = Merging(asset, title)
    merged = _merge(declared, merging)
    merging.check()
    return merged


def _has_items_to_unite(desired: DesiredAsset) -> bool:
    """Return whether a task declares a list of which two items may be one."""
    for part in desired.parts.values():
        if isinstance(part, DesiredList) and len(part.items) > 1:
            return True
    return False


def contradictions(declared: Sequence[DesiredAsset | DesiredChannel], title: str) -> list[PlanningError]:
    """Return what contradicts whatever the server shows: two positions must differ at every frame rate."""
    merging = Merging(None, title)
    assets = [each for each in declared if isinstance(each, DesiredAsset)]
    channels = [each for each in declared if isinstance(each, DesiredChannel)]
    if assets:
        _merge(assets, merging)
    if channels:
        CHANNEL_ITEMS.merge(merging, channels)
    return merging.errors


def _merge(declared: Sequence[DesiredAsset], merging: Merging) -> DesiredAsset:
    absent = [each for each in declared if not each.present]
    if 0 < len(absent) < len(declared):
        present = next(each for each in declared if each.present)
        merging.removed("the asset", absent[0].source, present.source)
        return declared[0]
    merging.title = next((each.title.value for each in declared if each.title), merging.title)
    merged = structs.replace(declared[0], parts=_merge_parts([each.parts for each in declared], merging))
    if len(declared) == 1:
        return merged
    folders = [each.folder for each in declared if each.folder is not None]
    return structs.replace(
        merged,
        missing=min((each.missing for each in declared), key=("error", "skip").index),
        unfinalized=min((each.unfinalized for each in declared), key=("error", "skip", "allow").index),
        lossy=any(each.lossy for each in declared),
        folder=merging.one("the folder", folders, lambda folder: repr(show_folder(folder))),
        still={name: value for each in declared for name, value in each.still.items()},
        notes=tuple(note for each in declared for note in each.notes),
        with_links=any(each.with_links for each in declared),
    )


def _merge_parts(declared: Sequence[Mapping[str, Any]], merging: Merging) -> dict[str, Any]:
    """Merge what tasks declare of each aspect; the items of one list may also be one item."""
    by_aspect: dict[str, list[Any]] = {}
    for each in declared:
        for name, part in each.items():
            by_aspect.setdefault(name, []).append(part)
    merged: dict[str, Any] = {}
    for name in sorted(by_aspect, key=_ORDER.__getitem__):
        parts = by_aspect[name]
        is_whole = len(parts) == 1 and not (isinstance(parts[0], DesiredList) and len(parts[0].items) > 1)
        merged[name] = parts[0] if is_whole else ASPECTS[name].merge(merging, parts)
    return merged


_ORDER = {name: number for number, name in enumerate(ASPECTS)}
