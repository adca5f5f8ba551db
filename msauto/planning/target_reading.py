"""Read what comparing a target takes, and keep digests of it: the same before, between and after its requests."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import UNSET, json, structs

from msauto.aspects import ASPECTS, snapshot_of
from msauto.aspects.aspect import Reads
from msauto.aspects.comparison import entries_called
from msauto.aspects.list_aspect import ListAspect
from msauto.errors import UnsupportedError
from msauto.model.clip_entries import are_one_clip
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.identity import plain
from msauto.model.live import Asset, Entry, Folder, Listing
from msauto.model.plan import Address, Target
from msauto.model.ports import LiveTarget, Reader
from msauto.model.snapshot import Json, Part, Seen, Snapshot, Thing, canonical, digest, named_in, part_digest
from msauto.secrets.redaction import Secrets

_LONGEST = 60  # characters of a value that are shown
FACT: Final = "fact"
"""The part of a snapshot that holds what templates asked."""

ReadFolder = Callable[[str, Folder], Awaitable[Listing | None]]


async def read_needed(
    reader: Reader, read_folder: ReadFolder, database: str, address: Address, known: LiveTarget, needed: Sequence[Reads]
) -> LiveTarget:
    """Read what comparing takes beside what is known of an asset; raises ``ServerError``.

    XMP fields stay unknown where the server does not report them (an old version). All links take a listing of the
    whole database.
    """
    names: set[str] = set()
    places: dict[Folder, None] = {}
    every = needs_links = False
    for each in needed:
        names |= each.xmp
        places |= dict.fromkeys(each.places)
        every = every or each.every_xmp
        needs_links = needs_links or each.links
    if not (names or places or every or needs_links):
        return known
    xmp, links = known.xmp, known.links
    if xmp is None and (names or every):
        with suppress(UnsupportedError):
            fields = await reader.read_xmp(database, address, frozenset()) if every else None
            by_name = not fields and (names or not every)
            xmp = await reader.read_xmp(database, address, frozenset(names)) if by_name else fields
    listed = await read_places(read_folder, database, places)
    if links is None and known.asset is not None and needs_links:
        links = await reader.read_links(database, known.asset)
    return LiveTarget(asset=known.asset, xmp=xmp, places=listed, links=links)


async def read_places(
    read: ReadFolder, database: str, places: Collection[Folder]
) -> dict[Folder, Sequence[Entry] | None]:
    """Return the entries of each folder and title; ``None`` where the folder is missing."""
    listings = {folder: await read(database, folder) for folder in dict.fromkeys(place[:-1] for place in places)}
    listed = ((place, listings[place[:-1]]) for place in places)
    return {
        place: None if listing is None else entries_called(listing.entries, place[:-1], place[-1])
        for place, listing in listed
    }


async def why_title_is_taken(target: Target, reader: Reader, live: Asset) -> str | None:
    """Return that another clip has the title that a rename gives; the clip itself may have it through a link."""
    after = target.address_after
    if plain(after.name) == plain(target.address.name):
        return None
    there = await reader.read_asset(target.database, after)
    if there is None:
        return None
    is_same = await are_one_clip(reader, target.database, there, live)
    return None if is_same else f"another asset now has the title {after.name!r}"


def shorten(value: Json) -> str:
    """Return a value as it is shown in a message."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


# What planning saw ----------------------------------------------------------------------------------------------------


def snapshot_with_facts(live: LiveTarget, names: Iterable[str]) -> Snapshot:
    """Return what a reading shows of a target, and the facts among the names that planning looked at."""
    facts = {name.partition(" ")[2] for name in names if name.startswith(f"{FACT} ")}
    shown: Part = {name: _fact(live, name) for name in facts}
    return {**snapshot_of(live), **({FACT: shown} if facts else {})}


def _fact(live: LiveTarget, name: str) -> Any:
    try:
        value = Facts(asset=live.asset, xmp=live.xmp, links=live.links).get(name)
    except (AttributeError, Need, NoAssetError):
        return None
    return dict(value) if isinstance(value, Mapping) else value


def seen(target: Target, live: LiveTarget, looked: Iterable[str], secrets: Secrets) -> Target:
    """Return a target with digests of what planning looked at, and of what no request touches.

    The fingerprint is of what the plan looks at and changes. Of an aspect that no request touches, there is one digest.
    """
    names = sorted(looked)
    snapshot = snapshot_with_facts(live, names)
    values = {name: named_in(snapshot, name) for name in names}
    changed: dict[str, set[str]] = {}
    known_before: list[tuple[Thing, Json]] = []
    for request in target.requests:
        for effect in request.effects:
            changed.setdefault(effect.aspect, set()).add(effect.key)
            known_before.append(((effect.aspect, effect.key), effect.before))
    others: dict[str, Any] = {}
    digests: dict[str, str] = {}
    for aspect, part in snapshot.items():
        if aspect in changed:
            for key, value in part.items():
                if key not in changed[aspect] and value not in ("", [], None):
                    others[f"{aspect} {key}"] = value
                    digests[f"{aspect} {key}"] = digest(value, ASPECTS[aspect].place(value))
        elif aspect in _NOTED:
            others[aspect] = part
            digests[aspect] = part_digest(part)
    known = {name: digest(value) for name, value in values.items()}
    before = canonical([known, known_before])
    return structs.replace(
        target,
        looked=Seen.of(known, _secret(values, secrets)),
        others=Seen.of(digests, _secret(others, secrets)),
        fingerprint=f"sha256:{hashlib.sha256(before).hexdigest()}",
    )


_NOTED: Final = frozenset(n for n, each in ASPECTS.items() if isinstance(each, ListAspect) or each.missing is UNSET)
"""The aspects of which a change is noted where the target does not touch them: those that others edit."""


def _secret(values: Mapping[str, Any], secrets: Secrets) -> list[str]:
    """Return the names of the values that hold a secret."""
    if not secrets:
        return []
    return [name for name, value in values.items() if secrets.occurs_in(_ENCODER.encode(value).decode())]


_ENCODER: Final = json.Encoder(enc_hook=str)
