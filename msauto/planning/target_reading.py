"""Read a target again, before and after it is applied: exactly the values that the plan was made from.

The fingerprint covers what was compared: a target is stale if any of that has changed, and not otherwise.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any, Final

from msgspec import structs

from msauto.aspects import ASPECTS, difference
from msauto.errors import UnsupportedError
from msauto.model.clip_entries import are_one_clip
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.identity import describe_clip, is_another_clip, plain
from msauto.model.live import Asset, Entry, Folder, Listing, Xmp, parse_folder
from msauto.model.plan import Address, Expectation, Json, Target
from msauto.model.ports import LiveTarget, Reader
from msauto.secrets.redaction import Secrets

_LONGEST = 60  # characters of a value that are shown


async def read_live(target: Target, reader: Reader) -> LiveTarget:
    """Read what was compared of a target and nothing else; raises ``ServerError``."""
    if target.kind == "rss_channel":
        return LiveTarget(channel=await reader.read_channel(target.name))
    if target.kind != "asset":
        return LiveTarget()
    asset = await reader.read_asset(target.database, target.address)
    if asset is None:
        return LiveTarget()
    names = frozenset(name.removeprefix("xmp:") for name in target.looked if name.startswith("xmp:"))
    keys = [name.removeprefix("link:") for name in target.looked if name.startswith("link:")]
    keys += [change.key for change in target.changes if ASPECTS[change.aspect].is_entry]
    folders = dict.fromkeys(parse_folder(key)[:-1] for key in keys)
    every = "fact:xmp" in target.looked
    every_link = not {"links", "fact:links"}.isdisjoint(target.looked)  # that needs a listing of the whole database
    return LiveTarget(
        asset=asset,
        xmp=await read_xmp_fields(reader, target.database, target.address, names, every=every)
        if names or every
        else None,
        folders=await read_folders(reader.read_folder, target.database, folders),
        links=await reader.read_links(target.database, asset) if every_link else None,
    )


async def read_xmp_fields(
    reader: Reader, database: str, address: Address, names: frozenset[str], *, every: bool = False
) -> Xmp | None:
    """Return XMP fields, all or those named; ``None`` where the server does not report them (an old version)."""
    try:
        fields = await reader.read_xmp(database, address, frozenset()) if every else None
        return fields if fields or (every and not names) else await reader.read_xmp(database, address, names)
    except UnsupportedError:
        return None


async def read_folders(
    read: Callable[[str, Folder], Awaitable[Listing | None]], database: str, folders: Iterable[Folder]
) -> dict[Folder, Sequence[Entry] | None]:
    """Return the entries of each folder; ``None`` for a missing folder."""
    listings = {folder: await read(database, folder) for folder in folders}
    return {folder: None if listing is None else listing.entries for folder, listing in listings.items()}


# What has changed since planning ---------------------------------------------------------------------------------


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


async def _is_same_clip(target: Target, reader: Reader, there: Asset, live: Asset | None) -> bool:
    """Whether the asset with the new title is the clip itself, through a link."""
    if live is None:
        return False
    there = structs.replace(there, title=there.title or target.address_after.name)
    return await are_one_clip(reader, target.database, there, structs.replace(live, title=live.title or target.name))


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
        before = Expectation(aspect=change.aspect, key=change.key, desired=change.before)
        found = difference(before, live)
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


# The fingerprint ----------------------------------------------------------------------------------------------------


def fingerprint(looked: Iterable[str], live: LiveTarget, secrets: Secrets | None = None) -> str:
    """Return ``sha256:…`` over the canonical JSON of what ``looked`` names, as ``live`` shows it.

    If a secret is among that, it is not shown: a hash of so little would let a reader of the plan try one guess after
    the other.

    Names: ``fact:frames`` for a fact that a template touched, ``field:comment``, ``xmp:dc:title``, ``segments``,
    ``markers``, ``link:Folder/Title``, ``links``, ``items`` and the like for what an aspect compared.
    """
    text = _canonical_text(looked, live)
    found = f"sha256:{hashlib.sha256(text).hexdigest()}"
    return f"{_PRIVATE}{found}" if secrets and secrets.occurs_in(text.decode("utf-8", "surrogatepass")) else found


_PRIVATE: Final = "private:"


def _canonical_text(looked: Iterable[str], live: LiveTarget) -> bytes:
    there = live.asset is not None or live.channel is not None
    values = {
        name: look(live.asset, live, key) if there and (look := _LOOKS.get(kind)) else None
        for name in sorted(looked)
        for kind, _, key in [name.partition(":")]
    }
    return plain(_ENCODER.encode(values)).encode("utf-8", "surrogatepass")


def is_fresh(target: Target, live: LiveTarget) -> bool:
    """Return whether the state that planning compared is unchanged; a clip that was recorded again is another clip."""
    if target.kind == "asset" and (live.asset is None or is_another_clip(target.clip, live.asset)):
        return False
    return fingerprint(target.looked, live) == target.fingerprint.removeprefix(_PRIVATE)


def _canonical(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Fraction):
        return str(value)
    return dict(value) if isinstance(value, Mapping) else list(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=_canonical)


def _fact(asset: Asset | None, live: LiveTarget, name: str) -> Any:
    try:
        return Facts(asset=asset, xmp=live.xmp, links=live.links).get(name)
    except (AttributeError, Need, NoAssetError):
        return None


_LOOKS = {kind: look for aspect in ASPECTS.values() for kind, look in aspect.looks.items()} | {"fact": _fact}
