"""Whether a saved plan still fits: each target is read again before anything is sent (the contract, «Limits»)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from msauto.aspects import ASPECTS
from msauto.diffing.comparison import plain
from msauto.model.live import Asset, show_folder
from msauto.model.plan import Change, Expectation, Json, Target
from msauto.model.ports import Memory, Reader
from msauto.planning.fingerprint import is_fresh
from msauto.planning.limits import removes
from msauto.planning.reading import read_live
from msauto.planning.saved_plans.drift import describe_drift
from msauto.planning.survey.deletion import places_of
from msauto.server.clip_identity import are_one_clip, read_entries_of


async def why_stale(target: Target, reader: Reader, memory: Memory) -> str | None:
    """Return why the target must not be applied as planned, ``None`` where it may. Raises ``ServerError``.

    It is stale where something that was compared has changed, where the clip is another, where the title that it is
    to get is taken by now, and where the ledger has learned of another value since.
    """
    live = await read_live(target, reader)
    if target.kind == "asset" and live.asset is None:
        return "it is no longer there"
    if not is_fresh(target, live):
        return describe_drift(target, live)
    after = target.address_after
    if after != target.address and plain(after.name) != plain(target.address.name):
        there = await reader.read_asset(target.database, after) if target.kind == "asset" else None
        if there is not None and not await _are_one(target, reader, there, live.asset):
            return f"there is another asset called {after.name!r} by now"
    remembered = memory.recall(target.id)
    if any(_has_run(expect, remembered) for request in target.requests for expect in request.expect):
        return "another run has run what is to be run once"
    unseen = {(expect.aspect, expect.key) for each in target.requests for expect in each.expect if not expect.visible}
    changes = [change for change in target.changes if change.basis != "none" or (change.aspect, change.key) in unseen]
    if any(_was_written(change, remembered.get(f"{change.aspect}:{change.key}")) for change in changes):
        return "another run has written it since the plan was made"
    return None


async def placed_anew(target: Target, reader: Reader) -> Target:
    """Return a target with the entries that show it by now, where something of it goes. Raises ``ServerError``."""
    if target.kind != "asset" or not removes(target.changes):
        return target
    asset = await reader.read_asset(target.database, target.address)
    if asset is None:
        return target
    asset = asset if asset.title is not None else structs.replace(asset, title=target.name)
    entries = await read_entries_of(reader, target.database, asset)
    folder = show_folder(asset.folder) if asset.folder else target.folder
    places = places_of(asset, target.name, entries)
    return structs.replace(target, folder=folder, places=tuple(map(show_folder, places)))


async def _are_one(target: Target, reader: Reader, there: Asset, live: Asset | None) -> bool:
    """Tell whether what has the new title is the clip itself, by a link of it."""
    if live is None:
        return False
    there = structs.replace(there, title=there.title or target.address_after.name)
    return await are_one_clip(reader, target.database, there, structs.replace(live, title=live.title or target.name))


def _has_run(expect: Expectation, remembered: Mapping[str, Json]) -> bool:
    """Tell whether the ledger knows by now that a command or a batch has run, or may have."""
    once = ASPECTS[expect.aspect].runs_once and expect.desired == "once"
    return once and bool(remembered.get(f"{expect.aspect}:{expect.key}"))


def _was_written(change: Change, remembered: Json) -> bool:
    """Tell whether the ledger knows another value than it did; one that it does not know says nothing."""
    if change.basis == "live" or not ASPECTS[change.aspect].is_value or remembered is None:
        return False
    if change.basis == "none":
        return True  # nothing was known when the plan was made
    if isinstance(remembered, list):
        return remembered != change.before
    return str(remembered) != str(change.before)  # positions are shown as numbers and remembered as texts
