"""Read what comparing a target takes, and keep digests of it: the same before, between and after its requests."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import UNSET, json, structs

from msauto.aspects import ASPECTS, snapshot_of
from msauto.aspects.comparison import entries_called
from msauto.aspects.list_aspect import ListAspect
from msauto.errors import UnsupportedError
from msauto.model.clip_entries import are_one_clip
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.identity import plain
from msauto.model.live import Asset, Entry, Folder, Listing, Xmp
from msauto.model.plan import Address, Target
from msauto.model.ports import LiveTarget, Reader
from msauto.model.snapshot import Effect, Json, Part, Seen, Snapshot, Thing, canonical, digest, named_in, part_digest
from msauto.secrets.redaction import Secrets

_LONGEST = 60  # characters of a value that are shown
FACT: Final = "fact"
"""The part of a snapshot that holds what templates asked."""

ReadFolder = Callable[[str, Folder], Awaitable[Listing | None]]


async def read_rest(
    reader: Reader, read_folder: ReadFolder, database: str, address: Address, asset: Asset, things: Iterable[Thing]
) -> LiveTarget:
    """Read what comparing these things takes beside the asset; raises ``ServerError``.

    A fact that a template asked has the aspect ``fact``; the key ``""`` of a list means all of it.
    """
    wanted: dict[str, set[str]] = {}
    for aspect, key in things:
        wanted.setdefault(aspect, set()).add(key)
    facts = wanted.pop(FACT, set())
    needed = [ASPECTS[aspect].needs(keys) for aspect, keys in wanted.items()]
    names = frozenset[str]().union(*(each.xmp for each in needed))
    places = dict.fromkeys(place for each in needed for place in each.places)
    every_link = "links" in facts or any(each.links for each in needed)  # that needs a listing of the whole database
    xmp = None
    if names or "xmp" in facts:
        xmp = await read_xmp_fields(reader, database, address, names, every="xmp" in facts)
    return LiveTarget(
        asset=asset,
        xmp=xmp,
        places=await read_places(read_folder, database, places),
        links=await reader.read_links(database, asset) if every_link else None,
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


async def read_places(
    read: ReadFolder, database: str, places: Collection[Folder]
) -> dict[Folder, Sequence[Entry] | None]:
    """Return the entries of each folder and title; ``None`` where the folder is missing."""
    listings = {folder: await read(database, folder) for folder in dict.fromkeys(place[:-1] for place in places)}
    listed = ((place, listings[place[:-1]]) for place in places)
    return {
        place: None if found is None else entries_called(found.entries, place[:-1], place[-1])
        for place, found in listed
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
    found: Part = {name: _fact(live, name) for name in facts}
    return {**snapshot_of(live), **({FACT: found} if facts else {})}


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
    effects = [effect for request in target.effects for effect in request]
    touched = {effect.aspect for effect in effects}
    named = {effect.thing for effect in effects}
    others: dict[str, Any] = {}
    digests: dict[str, str] = {}
    for aspect, part in snapshot.items():
        if aspect in touched:
            for key, value in part.items():
                if (aspect, key) not in named and value not in ("", [], None):
                    others[f"{aspect} {key}"] = value
                    digests[f"{aspect} {key}"] = digest(value, ASPECTS[aspect].place(value))
        elif aspect in _NOTED:
            others[aspect] = part
            digests[aspect] = part_digest(part)
    known = {name: digest(value) for name, value in values.items()}
    return structs.replace(
        target,
        looked=Seen.of(known, _secret(values, secrets)),
        others=Seen.of(digests, _secret(others, secrets)),
        fingerprint=_fingerprint(known, effects),
    )


_NOTED: Final = frozenset(n for n, each in ASPECTS.items() if isinstance(each, ListAspect) or each.missing is UNSET)
"""The aspects of which a change is noted where the target does not touch them: those that others edit."""


def _secret(values: Mapping[str, Any], secrets: Secrets) -> list[str]:
    """Return the names of the values that hold a secret."""
    if not secrets:
        return []
    return [name for name, value in values.items() if secrets.occurs_in(_ENCODER.encode(value).decode())]


_ENCODER: Final = json.Encoder(enc_hook=str)


def _fingerprint(looked: Mapping[str, str], effects: Iterable[Effect]) -> str:
    text = canonical([looked, [(each.aspect, each.key, each.before) for each in effects]])
    return f"sha256:{hashlib.sha256(text).hexdigest()}"
