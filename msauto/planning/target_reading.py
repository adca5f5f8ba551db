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
from msauto.model.snapshot import (
    ASSET,
    Json,
    Seen,
    Snapshot,
    Thing,
    canonical,
    digest,
    named_in,
    part_digest,
)
from msauto.secrets.redaction import Secrets

_LONGEST = 60  # characters of a value that are shown
FACT: Final = "fact"
"""The part of a snapshot that holds what templates asked."""

ReadFolder = Callable[[str, Folder], Awaitable[Listing | None]]


async def read_needed(
    reader: Reader,
    read_folder: ReadFolder,
    database: str,
    address: Address,
    known: LiveTarget,
    needed: Sequence[Reads],
) -> LiveTarget:
    """Read what comparing takes beside what is known of an asset; raises ``ServerError``.

    XMP fields stay unknown where the server does not report them (an old version). All links take a listing of the
    whole database.
    """
    names: set[str] = set()
    places: dict[Folder, None] = {}
    every = needs_links = False
    for reads in needed:
        names |= reads.xmp
        places |= dict.fromkeys(reads.places)
        every = every or reads.every_xmp
        needs_links = needs_links or reads.links
    if not (names or places or every or needs_links):
        return known
    xmp = known.xmp
    links = known.links
    if xmp is None:
        with suppress(UnsupportedError):
            fields = await reader.read_xmp(database, address, frozenset()) if every else None
            if names and not fields:
                fields = await reader.read_xmp(database, address, frozenset(names))
            xmp = fields
    listed = await read_places(read_folder, database, places)
    if links is None and known.asset is not None and needs_links:
        links = await reader.read_links(database, known.asset)
    return LiveTarget(asset=known.asset, xmp=xmp, places=listed, links=links)


async def read_places(
    read: ReadFolder, database: str, places: Collection[Folder]
) -> dict[Folder, Sequence[Entry] | None]:
    """Return the entries of each folder and title; ``None`` where the folder is missing."""
    listings: dict[Folder, Listing | None] = {}
    listed: dict[Folder, Sequence[Entry] | None] = {}
    for place in places:
        folder = place[:-1]
        if folder not in listings:
            listings[folder] = await read(database, folder)
        listing = listings[folder]
        listed[place] = (
            None if listing is None else entries_called(listing.entries, folder, place[-1])
        )
    return listed


async def why_title_is_taken(target: Target, reader: Reader, live: Asset) -> str | None:
    """Return that another clip has the title that a rename gives; the clip itself may have it through a link."""
    after = target.address_after
    if plain(after.name) == plain(target.address.name):
        return None
    answer = await reader.read_asset(target.database, after)
    if answer is None:
        return None
    is_same = await are_one_clip(reader, target.database, answer, live)
    return None if is_same else f"another asset now has the title {after.name!r}"


def shorten(value: Json) -> str:
    """Return a value as it is shown in a message."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


# What planning saw ----------------------------------------------------------------------------------------------------


def snapshot_with_facts(live: LiveTarget, names: Iterable[str], aspects: Iterable[str]) -> Snapshot:
    """Return what a reading shows of the clip itself, of aspects, and of names: facts, things and whole aspects."""
    facts: dict[str, Json] = {}
    needed = {ASSET[0], *aspects}
    for name in names:
        aspect, _, key = name.partition(" ")
        if aspect == FACT:
            facts[key] = _fact(live, key)
        else:
            needed.add(aspect)
    snapshot = snapshot_of(live, needed)
    return {**snapshot, FACT: facts} if facts else snapshot


def _fact(live: LiveTarget, name: str) -> Any:
    try:
        value = Facts(asset=live.asset, xmp=live.xmp, links=live.links).get(name)
    except (AttributeError, Need, NoAssetError):
        return None
    return dict(value) if isinstance(value, Mapping) else value


def with_digests(
    target: Target, live: LiveTarget, depends_on: Iterable[str], secrets: Secrets
) -> Target:
    """Return a target with digests of what planning looked at, and of what no request touches.

    The fingerprint is of what the plan looks at and changes. There is one digest of an aspect that no request touches,
    unless the tasks exclude others of it: then what others have there already is not new.
    """
    names = sorted(depends_on)
    changed: dict[str, set[str]] = {}
    known_before: list[tuple[Thing, Json]] = []
    for request in target.requests:
        for effect in request.effects:
            changed.setdefault(effect.aspect, set()).add(effect.key)
            known_before.append((effect.thing, effect.before))
    snapshot = snapshot_with_facts(live, names, {*changed, *_NOTED})
    values = {name: named_in(snapshot, name) for name in names}
    for excluded, _ in target.unwanted:
        if snapshot.get(excluded):
            changed.setdefault(excluded, set())
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
    private: list[str] = []
    private_others: list[str] = []
    if secrets.texts:
        private = _secret(values, secrets)
        private_others = _secret(others, secrets)
    return structs.replace(
        target,
        depends_on=Seen.of(known, private),
        others=Seen.of(digests, private_others),
        fingerprint=f"sha256:{hashlib.sha256(before).hexdigest()}",
    )


_NOTED: Final = frozenset(
    name
    for name, aspect in ASPECTS.items()
    if isinstance(aspect, ListAspect) or aspect.missing is UNSET
)
"""The aspects of which a change is noted where the target does not touch them: those that others edit."""


def _secret(values: Mapping[str, Any], secrets: Secrets) -> list[str]:
    """Return the names of the values that hold a secret."""
    return [
        name for name, value in values.items() if secrets.occurs_in(_ENCODER.encode(value).decode())
    ]


_ENCODER: Final = json.Encoder(enc_hook=str)
