"""The registry of aspects: one module for each, independent of the others. A new aspect is one line here.

What depends on an aspect is in its module, as :class:`~msauto.aspects.aspect.Aspect`; the stages look it
up here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import structs

from msauto.aspects import (
    asset,
    command,
    field,
    link,
    marker,
    proxy,
    restore,
    rss_item,
    segment,
    segmentation,
    thumbnail,
    title,
    xmp,
    xmp_batch,
)
from msauto.aspects.aspect import EXACTLY, Aspect
from msauto.aspects.merging import Merging
from msauto.aspects.rss_arguments import merge_channels
from msauto.errors import PlanningError
from msauto.model.desired import DesiredAsset, DesiredChannel, DesiredList
from msauto.model.live import Asset, show_folder
from msauto.model.plan import Change, Expectation, Request
from msauto.model.ports import LiveTarget
from msauto.model.result import Difference

_MODULES = (
    asset, title, restore, field, xmp, segmentation, segment, marker, link, rss_item,
    command, thumbnail, proxy, xmp_batch,
)  # fmt: skip
ASPECTS: Final[Mapping[str, Aspect]] = {module.ASPECT.name: module.ASPECT for module in _MODULES}
"""All aspects by name, in the order in which an asset is planned."""


def holds(expect: Expectation, live: LiveTarget) -> bool | None:
    """Return whether an expectation holds; ``None`` where reading cannot show it."""
    aspect = ASPECTS[expect.aspect]
    if aspect.holds is None or expect.secret:
        return None
    if live.asset is None and aspect.needs_asset:
        return False  # what was to be removed may be on the clip under another title
    if aspect.strangers is not None and expect.key == EXACTLY:
        return not aspect.strangers(expect, live)
    return aspect.holds(expect, live)


def twice(expect: Expectation, live: LiveTarget) -> Difference | None:
    """Return that something expected once has a duplicate, naming both; ``None`` if it has none."""
    alike = ASPECTS[expect.aspect].alike(expect, live) if expect.desired is not None else ()
    return Difference(expect.aspect, expect.key, "once", f"twice: {' and '.join(alike)}") if len(alike) > 1 else None


def is_deletion(change: Change) -> bool:
    """Return whether a change counts as a deletion: of an asset, or of a link by its title."""
    if change.action != "delete":
        return False
    aspect = ASPECTS[change.aspect]
    return aspect.is_entry or aspect.deletes_target


def asset_after(asset: Asset, requests: Iterable[Request]) -> Asset:
    """Return an asset as the requests leave it, as the server counts.

    It is computed from their expectations, exactly enough for warnings: a segmentation has no effect.
    """
    for expect in (each for request in requests for each in request.expect):
        asset = ASPECTS[expect.aspect].leaves(asset, expect)
    return asset


def can_show(expect: Expectation) -> bool:
    """Return whether reading the target can show a thing at all: what is run rather than compared is never seen."""
    return ASPECTS[expect.aspect].holds is not None and not expect.secret


def difference(expect: Expectation, live: LiveTarget) -> Difference | None:
    """Return what is not as expected; ``None`` where it is, or where reading cannot show it."""
    if holds(expect, live) is not False:
        return None
    aspect = ASPECTS[expect.aspect]
    if aspect.strangers is not None and expect.key == EXACTLY:
        return Difference(expect.aspect, expect.key, desired=None, live=aspect.strangers(expect, live) or None)
    desired = aspect.show_desired(expect, live) if expect.desired is not None else None
    shown = None if live.asset is None and aspect.needs_asset else aspect.show(expect, live)
    return Difference(expect.aspect, expect.key, desired=desired, live=shown)


# What several tasks declare ------------------------------------------------------------------------------------------


def merge_desired(declared: Sequence[DesiredAsset], asset: Asset, title: str) -> DesiredAsset:
    """Return what all tasks declare for one asset; ``title`` is its current title.

    Raises ``PlanningError`` that names both places of a contradiction.
    """
    merging = Merging(asset, title)
    merged = _merge(declared, merging)
    merging.check()
    return merged


def contradictions(declared: Sequence[DesiredAsset | DesiredChannel], title: str) -> list[PlanningError]:
    """Return what contradicts whatever the server shows: two positions must differ at every frame rate."""
    merging = Merging(None, title)
    assets = [each for each in declared if isinstance(each, DesiredAsset)]
    channels = [each for each in declared if isinstance(each, DesiredChannel)]
    if assets:
        _merge(assets, merging)
    if channels:
        merge_channels(channels, merging)
    return merging.found


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
    found: dict[str, list[Any]] = {}
    for each in declared:
        for name, part in each.items():
            found.setdefault(name, []).append(part)
    merged: dict[str, Any] = {}
    for name in sorted(found, key=_ORDER.__getitem__):
        parts = found[name]
        is_whole = len(parts) == 1 and not (isinstance(parts[0], DesiredList) and len(parts[0].items) > 1)
        merged[name] = parts[0] if is_whole else ASPECTS[name].merge(merging, parts)
    return merged


_ORDER = {name: number for number, name in enumerate(ASPECTS)}
