"""Which entries of a listing are shortcuts to an asset (field notes: an entry of the same clip in another folder)."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msauto.flow import in_turns
from msauto.model.live import Asset, Entry, Link

_IDENTITY = ("orig_name", "create_time", "frames")
_KEYS: Final = 3  # a title, a link id, and what identifies the clip


def links_of(asset: Asset, entries: Iterable[Entry]) -> tuple[Link, ...]:
    """Return the shortcuts: entries of the same clip, less the one that is its home.

    The interface gives no key of a clip that its links share. The same title is one, and so are equal and not empty
    orig_name, create_time and frames together.
    """
    same = [entry for entry in entries if _is_same(asset, entry)]
    home = _home(asset, same)
    return tuple(Link(entry.folder, entry.title, entry.link_id) for entry in same if entry is not home)


def count_clips(entries: Iterable[Entry]) -> int:
    """Count the clips that entries show: those of one clip, its home and its shortcuts, count once.

    Where a listing tells less than orig_name, create_time and frames of an entry, it counts as a clip of its own.
    """
    return len({_identity(entry) or (entry.folder, entry.title, entry.link_id) for entry in entries})


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

    def of(self, asset: Asset) -> tuple[tuple[Link, ...], tuple[Link, ...]]:
        """Return the shortcuts to an asset as :func:`links_of` does, and those of them that are surely other clips.

        Others differ in both length and creation time: of the same title, and not in the same folder.
        """
        entries = self._near(asset)
        links = links_of(asset, entries)
        strange = {(each.folder, each.title, each.link_id) for each in entries if _is_other(asset, each)}
        others = tuple(link for link in links if (link.folder, link.title, link.link_id) in strange)
        return tuple(link for link in links if link not in others), others

    def _near(self, asset: Asset) -> list[Entry]:
        """Return, in order, all entries that share a key with the asset, and maybe some more."""
        numbers = {number for key in _keys(asset) for number in self._chain(key)}
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
    keys: list[object] = [("title", clip.title)]
    keys += [] if clip.link_id is None else [("link", clip.link_id)]
    identity = _identity(clip)
    return keys if identity is None else [*keys, identity]


def _is_other(asset: Asset, entry: Entry) -> bool:
    return all(
        name in entry.attributes and name in asset.attributes and entry.attributes[name] != asset.attributes[name]
        for name in ("frames", "create_time")
    )


def _is_same(asset: Asset, entry: Entry) -> bool:
    if asset.link_id is not None and entry.link_id == asset.link_id:
        return True
    if entry.title == asset.title:
        return True
    identity = _identity(asset)
    return identity is not None and identity == _identity(entry)


def _home(asset: Asset, same: list[Entry]) -> Entry | None:
    for fits in (_is_own, _is_in_folder):
        home = next((entry for entry in same if fits(asset, entry)), None)
        if home is not None:
            return home
    return None


def _is_own(asset: Asset, entry: Entry) -> bool:
    return asset.link_id is not None and entry.link_id == asset.link_id and entry.folder == asset.folder


def _is_in_folder(asset: Asset, entry: Entry) -> bool:
    return entry.folder == asset.folder and entry.title == asset.title


def _identity(clip: Asset | Entry) -> tuple[str, ...] | None:
    values = tuple(clip.attributes.get(name, "").strip() for name in _IDENTITY)
    return values if all(values) else None
