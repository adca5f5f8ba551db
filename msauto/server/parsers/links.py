"""Which entries of a listing are shortcuts to an asset (field notes: an entry of the same clip in another folder)."""

from __future__ import annotations

import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from msauto.concurrency import in_turns
from msauto.model.identity import (
    Identity,
    differing,
    identity_of,
    known_identity,
    may_be_same_clip,
    same_text,
)
from msauto.model.live import Asset, ClipEntries, Entry, Link

_KEYS: Final = 3  # a title, a link id, and what identifies the clip


def links_of(asset: Asset, entries: Iterable[Entry]) -> tuple[Link, ...]:
    """Return the shortcuts: entries of the same clip, less the one that is its home.

    The interface gives no key of a clip that its links share. The same title is one where nothing else differs, and so
    are equal orig_name, create_time and frames together.
    """
    return _links(asset, [entry for entry in entries if _is_same(asset, entry)])


def _links(asset: Asset, same: Sequence[Entry]) -> tuple[Link, ...]:
    home = home_entry(asset, same)
    return tuple(Link(entry.folder, entry.title, entry.link_id) for entry in same if entry is not home)


def count_clips(entries: Iterable[Entry]) -> int:
    """Count the clips that entries show: those of one clip, its home and its shortcuts, count once.

    Where a listing tells less than orig_name, create_time and frames of an entry, it counts as a clip of its own.
    """
    return len({identity_of(entry) or (entry.folder, entry.title, entry.link_id) for entry in entries})


class LinkIndex:
    """The entries of a listing by what makes them shortcuts: for many assets, where :func:`links_of` looks at all.

    A table of chains by the hash of each key, in some 50 bytes an entry; whether an entry that is found so really has
    the key is for :func:`links_of` to say. Made by :func:`index_links`.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        self._heads = array("l", [-1]) * (1 << (len(entries) * _KEYS).bit_length())
        self._next = array("l", [-1]) * (len(entries) * _KEYS)

    def add(self, number: int, entry: Entry) -> None:
        """Add an entry by its number."""
        for place, key in enumerate(_keys(entry), number * _KEYS):
            head = self._head(key)
            self._next[place] = self._heads[head]
            self._heads[head] = place

    def all_of(self, asset: Asset) -> tuple[Link, ...]:
        """Return the shortcuts to an asset as :func:`links_of` does."""
        return links_of(asset, self._near(asset))

    def entries_of(self, asset: Asset) -> ClipEntries:
        """Return all entries that show the asset, and those that bear its title and are surely other clips.

        Where a server does not report all that tells clips apart, an entry that may well show the asset counts as one.
        """
        near = self._near(asset)
        return ClipEntries(
            same=tuple(entry for entry in near if _is_same(asset, entry) or may_be_same_clip(asset, entry)),
            namesakes=tuple(entry for entry in near if _is_namesake(asset, entry)),
        )

    def others(self, asset: Asset, most: int) -> list[Entry]:
        """Return the first entries, ``most`` of them, that surely are of other clips."""
        return list(islice((entry for entry in self._entries if differing(asset, entry)), most))

    def of(self, asset: Asset) -> tuple[tuple[Link, ...], tuple[Link, ...]]:
        """Return the shortcuts to an asset as :func:`links_of` does, and the entries of other clips of its title."""
        found = self.entries_of(asset)
        namesakes = tuple(Link(entry.folder, entry.title, entry.link_id) for entry in found.namesakes)
        return links_of(asset, found.same), namesakes

    def _near(self, asset: Asset) -> list[Entry]:
        """Return, in order, all entries that share a key with the asset, and maybe some more."""
        keys = [*_keys(asset), *_with_one_unknown(known_identity(asset))]
        numbers = {number for key in keys for number in self._chain(key)}
        return [self._entries[number] for number in sorted(numbers)]

    def _chain(self, key: object) -> Iterator[int]:
        place = self._heads[self._head(key)]
        while place >= 0:
            yield place // _KEYS
            place = self._next[place]

    def _head(self, key: object) -> int:
        return hash(key) & (len(self._heads) - 1)


async def index_links(entries: Sequence[Entry]) -> LinkIndex:
    """Index the entries of a listing."""
    index = LinkIndex(entries)
    async for number, entry in in_turns(enumerate(entries)):
        index.add(number, entry)
    return index


def _keys(clip: Asset | Entry) -> list[object]:
    keys: list[object] = [("title", unicodedata.normalize("NFC", clip.title or ""))]
    keys += [] if clip.link_id is None else [("link", clip.link_id)]
    identity = known_identity(clip)
    return keys if identity.count(None) > 1 else [*keys, identity]


def _with_one_unknown(identity: Identity) -> list[Identity]:
    """Return what a listing may report of a clip whose answer reports it all."""
    if None in identity:
        return []
    return [(*identity[:place], None, *identity[place + 1 :]) for place in range(len(identity))]


def _is_same(asset: Asset, entry: Entry) -> bool:
    if differing(asset, entry):
        return False
    if asset.link_id is not None and entry.link_id == asset.link_id:
        return True
    if same_text(entry.title, asset.title or ""):
        return True
    identity: Identity | None = identity_of(asset)
    return identity is not None and identity == identity_of(entry)


def _is_namesake(asset: Asset, entry: Entry) -> bool:
    return same_text(entry.title, asset.title or "") and not _is_same(asset, entry)


def home_entry(asset: Asset, same: Sequence[Entry]) -> Entry | None:
    """Return the entry where a clip lives, of those that show it; ``None`` where that cannot be told.

    A server may report the clip's folder for its links as well: then the only entry in that folder is the home.
    """
    for fits in (_is_own, _is_in_folder):
        home = next((entry for entry in same if fits(asset, entry)), None)
        if home is not None:
            return home
    there = [entry for entry in same if entry.folder == asset.folder]
    return there[0] if len(there) == 1 else None


def _is_own(asset: Asset, entry: Entry) -> bool:
    return asset.link_id is not None and entry.link_id == asset.link_id and entry.folder == asset.folder


def _is_in_folder(asset: Asset, entry: Entry) -> bool:
    return entry.folder == asset.folder and entry.title == asset.title
