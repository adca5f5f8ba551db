"""Whether a saved plan is stale: each target is read again before anything is sent (the contract, «Limits»)."""

from __future__ import annotations

from msgspec import structs

from msauto.aspects import ASPECTS, difference
from msauto.model.clip_entries import are_one_clip
from msauto.model.identity import describe_clip, is_another_clip, plain
from msauto.model.live import Asset, show_folder
from msauto.model.plan import Change, Expectation, Json, Target
from msauto.model.ports import LiveTarget, Memory, Reader
from msauto.planning.fingerprint import is_fresh
from msauto.planning.limits import loses
from msauto.planning.survey.deletion import with_places
from msauto.planning.target_reading import read_live

_LONGEST = 60  # characters of a value that are shown


async def why_stale(target: Target, reader: Reader, memory: Memory) -> str | None:
    """Return why the target must not be applied as planned, ``None`` if it may. Raises ``ServerError``.

    It is stale where something that was compared has changed, where the clip is another one, where its new title is
    taken, and where another run has written a value since.
    """
    if why := await what_changed(target, reader):
        return f"it has changed since the plan was made: {why}"
    remembered = memory.recall(target.id)
    expects = [expect for request in target.requests for expect in request.expect]
    once = (each for each in expects if ASPECTS[each.aspect].runs_once and each.desired == "once")
    if any(remembered.get(f"{each.aspect}:{each.key}") for each in once):
        return "another run has sent a command or a batch that runs once"
    unseen = {(expect.aspect, expect.key) for expect in expects if not expect.visible}
    changes = [change for change in target.changes if change.basis != "none" or (change.aspect, change.key) in unseen]
    if any(_was_written(change, remembered.get(f"{change.aspect}:{change.key}")) for change in changes):
        return "another run has written it since the plan was made"
    return None


async def what_changed(target: Target, reader: Reader) -> str | None:
    """Return how live state differs from what was planned; ``None`` if it does not. Raises ``ServerError``."""
    live = await read_live(target, reader)
    if target.kind == "asset" and live.asset is None:
        return "it no longer exists"
    if not is_fresh(target, live):
        return _describe_change(target, live)
    after = target.address_after
    if after != target.address and plain(after.name) != plain(target.address.name):
        there = await reader.read_asset(target.database, after) if target.kind == "asset" else None
        if there is not None and not await _is_same_clip(target, reader, there, live.asset):
            return f"another asset now has the title {after.name!r}"
    return None


async def with_current_places(target: Target, reader: Reader) -> Target:
    """Return a target that loses something with the entries that show it now. Raises ``ServerError``."""
    if target.kind != "asset" or not loses(target.changes):
        return target
    asset = await reader.read_asset(target.database, target.address)
    if asset is None:
        return target
    target = await with_places(target, asset, reader)
    return structs.replace(target, folder=show_folder(asset.folder) if asset.folder else target.folder)


async def _is_same_clip(target: Target, reader: Reader, there: Asset, live: Asset | None) -> bool:
    """Whether the asset with the new title is the clip itself, through a link."""
    if live is None:
        return False
    there = structs.replace(there, title=there.title or target.address_after.name)
    return await are_one_clip(reader, target.database, there, structs.replace(live, title=live.title or target.name))


def _was_written(change: Change, remembered: Json) -> bool:
    """Whether the ledger now holds another value; an unknown value means nothing."""
    if change.basis == "live" or not ASPECTS[change.aspect].is_value or remembered is None:
        return False
    if change.basis == "none":
        return True  # nothing was known when the plan was made
    if isinstance(remembered, list):
        return remembered != change.before
    return str(remembered) != str(change.before)  # positions are numbers in a plan and texts in the ledger


# What has changed: shown with the refusal ----------------------------------------------------------------------


def _describe_change(target: Target, live: LiveTarget) -> str:
    """Describe what differs from what was compared, as exactly as the plan knows."""
    if live.asset is not None and is_another_clip(target.clip, live.asset):
        return f"it is another clip now: {describe_clip(live.asset)}"
    values: list[str] = []
    known: set[str] = set()
    for change in target.changes:
        if not ASPECTS[change.aspect].is_value or change.basis != "live" or change.secret:
            continue
        known.add(f"{change.aspect}:{change.key}")
        found = difference(Expectation(change.aspect, change.key, change.before), live)
        if found is not None:
            values.append(f"{change.aspect} {change.key} was {shorten(change.before)}, is {shorten(found.live)}")
    if values:
        return "; ".join(values)
    rest = [name for name in target.looked if name not in known]
    return f"one of {', '.join(rest)}"


def shorten(value: Json) -> str:
    """Return a value as it is shown in a message."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
