"""Which entries and answers are of one clip, and where the clip lives.

One answer alone does not show which entries of a listing are links of a clip, or whether two answers are of one clip.
Nor does it show which folder is meant if the reported folder begins with the name of the database.
"""

from __future__ import annotations

import unicodedata
from array import array
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec import structs

from msauto.concurrency import in_turns
from msauto.errors import RejectedError, UnreadableError
from msauto.model.identity import (
    Identity,
    compare_clips,
    content_of,
    differing,
    fits,
    identity_of,
    known_identity,
    same_folder,
    same_text,
)
from msauto.model.live import Asset, ClipEntries, Entry, Folder, Link, Listing
from msauto.model.plan import Address
from msauto.model.ports import Reader

_KEYS: Final = 3  # a title, a link id, and what identifies the clip


def links_of(asset: Asset, entries: Iterable[Entry]) -> tuple[Link, ...]:
    """Return the links: entries of the same clip, except its home.

    The interface gives no key that a clip shares with its links. The same title identifies a clip if nothing else
    differs, and so do two equal values of orig_name, create_time and frames.
    """
    same = [entry for entry in entries if _is_same(asset, entry)]
    if sum(not _bears(entry, asset) for entry in same) > MOST_LINKS:
        same = [entry for entry in same if _bears(entry, asset)]
    home = home_entry(asset, same)
    return tuple(Link(entry.folder, entry.title, entry.link_id) for entry in same if entry is not home)


def count_clips(entries: Iterable[Entry]) -> int:
    """Count the clips that entries show: a clip and its links count once.

    An entry without orig_name, create_time or frames counts as a separate clip.
    """
    return len({identity_of(entry) or (entry.folder, entry.title, entry.link_id) for entry in entries})


class LinkIndex:
    """An index of the entries of a listing, to find the links of many assets.

    A table of chains by the hash of each key, in some 50 bytes an entry; an entry found there may
    still have another key, which :func:`links_of` checks. Created by :func:`index_links`.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        self._heads = array("l", [-1]) * (1 << (len(entries) * _KEYS).bit_length())
        self._next = array("l", [-1]) * (len(entries) * _KEYS)
        self._incomplete: dict[int, dict[Identity, list[int]]] = {}
        self._reporting: dict[frozenset[int], array[int]] = {}

    def add(self, number: int, entry: Entry) -> None:
        """Add an entry by its number."""
        for place, key in enumerate(_keys(entry), number * _KEYS):
            head = self._head(key)
            self._next[place] = self._heads[head]
            self._heads[head] = place

    def all_of(self, asset: Asset) -> tuple[Link, ...]:
        """Return the links of an asset as :func:`links_of` does."""
        return links_of(asset, self._near(asset))

    def entries_of(self, asset: Asset, *, in_doubt: bool = False) -> ClipEntries:
        """Return all entries that may show the asset, and those of its title that are certainly other clips.

        ``in_doubt``: also those that report too little to compare two values.
        """
        near = self._near(asset)
        vague = self._vague(asset) if in_doubt else ()
        return ClipEntries(
            same=(*(entry for entry in near if _is_same(asset, entry)), *vague),
            namesakes=tuple(
                entry for entry in near if same_text(entry.title, asset.title or "") and not _is_same(asset, entry)
            ),
        )

    def others(self, asset: Asset, most: int) -> list[Entry]:
        """Return the first entries, ``most`` of them, that are certainly of other clips."""
        return list(islice((entry for entry in self._entries if differing(asset, entry)), most))

    def _near(self, asset: Asset) -> list[Entry]:
        """Return, in order, all entries that share a key with the asset, and possibly others."""
        keys, identity = _keys(asset), known_identity(asset)
        if None not in identity:  # a listing may report less than the answer: one value may be unknown
            keys += [_without(identity, place) for place in range(len(identity))]
        numbers = {number for key in keys for number in self._chain(key)}
        if identity.count(None) == 1:  # or more than the answer
            numbers.update(self._complete(identity.index(None)).get(identity, ()))
        return [self._entries[number] for number in sorted(numbers)]

    def _complete(self, place: int) -> Mapping[Identity, Sequence[int]]:
        """Return the entries whose identity is known, by the rest of it without one value. Made when first needed."""
        if place not in self._incomplete:
            found = self._incomplete.setdefault(place, {})
            for number, entry in enumerate(self._entries):
                identity = known_identity(entry)
                if None not in identity:
                    found.setdefault(_without(identity, place), []).append(number)
        return self._incomplete[place]

    def _vague(self, asset: Asset) -> Iterator[Entry]:
        """Yield the entries that do not count as the same, and that report too little to be surely of other clips."""
        if not self._reporting:
            for number, entry in enumerate(self._entries):
                self._reporting.setdefault(_reported(entry), array("l")).append(number)
        known = _reported(asset)
        numbers = (each for names, some in self._reporting.items() if len(names & known) < 2 for each in some)
        for entry in map(self._entries.__getitem__, numbers):
            if not _is_same(asset, entry) and not differing(asset, entry):
                yield entry

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


def _reported(clip: Asset | Entry) -> frozenset[int]:
    """Return which values of its identity a clip reports."""
    return frozenset(place for place, value in enumerate(known_identity(clip)) if value is not None)


def _without(identity: Identity, place: int) -> Identity:
    return (*identity[:place], None, *identity[place + 1 :])


def _is_same(asset: Asset, entry: Entry) -> bool:
    if differing(asset, entry):
        return False
    if asset.link_id is not None and entry.link_id == asset.link_id:
        return True
    return same_text(entry.title, asset.title or "") or compare_clips(asset, entry).answer == "same"


def home_entry(asset: Asset, same: Sequence[Entry]) -> Entry | None:
    """Return the home of a clip among the entries that show it; ``None`` if that is ambiguous.

    A server may report the folder of the clip for its links as well: then the only entry in that folder is the home.
    """
    there = [entry for entry in same if entry.folder == asset.folder]
    own = [entry for entry in there if asset.link_id is not None and entry.link_id == asset.link_id]
    titled = [entry for entry in there if entry.title == asset.title]
    return next(iter(own or titled), there[0] if len(there) == 1 else None)


# Whether two answers are of one clip ----------------------------------------------------------------------------
#
# Equal values mean nothing on a server where all clips have them. So the listing is read as well: the answers are of
# one clip if another clip has another file, or if the folders show that one entry is a link.

MOST_LINKS: Final = 50
"""More entries of equal values are not links of one clip: on such a server the values identify nothing.

Before a deletion the answer of each of them is read.
"""
_MOST_TRIED: Final = 20


async def are_one_clip(reader: Reader, database: str, one: Asset, other: Asset) -> bool:
    """Return whether two answers, each with its title, are certainly of one clip; reads the listing of the database."""
    if compare_clips(one, other).answer != "same" or content_of(one) != content_of(other):
        return False
    is_known = one.link_id is not None or one.hires or one.archive
    if is_known and one.link_id == other.link_id and same_text(one.title, other.title):
        return True  # one entry, asked for in two ways
    if await _files_tell_clips_apart(reader, database, one):
        return True
    return await _is_link_of(reader, database, one, other) or await _is_link_of(reader, database, other, one)


async def read_entries_of(
    reader: Reader, database: str, asset: Asset, *, listed: Reader | None = None, in_doubt: bool = False
) -> ClipEntries:
    """Return the entries that show a clip; one of another title counts where its own answer is of the same clip.

    ``listed`` has a newer listing of the database than ``reader``, which has the answers. ``in_doubt``, before a
    deletion: also where nothing that is reported distinguishes a link from another clip, and however many entries have
    its values, or report none of them.
    """
    found = await (listed or reader).read_entries(database, asset, in_doubt=in_doubt)
    own = [entry for entry in found.same if _bears(entry, asset)]
    others = [entry for entry in found.same if not _bears(entry, asset)]
    if len(others) > MOST_LINKS and not in_doubt:
        return structs.replace(found, same=tuple(own))
    links = [entry for entry in others if await _shows(reader, database, entry, asset, in_doubt=in_doubt)]
    return structs.replace(found, same=tuple(entry for entry in found.same if entry in own or entry in links))


def _bears(entry: Entry, asset: Asset) -> bool:
    """Return whether an entry has the title of the asset, or is the entry that answered."""
    same_id = asset.link_id is not None and entry.link_id == asset.link_id
    return same_id or same_text(entry.title, asset.title or "")


async def _shows(reader: Reader, database: str, entry: Entry, asset: Asset, *, in_doubt: bool) -> bool:
    """Return whether an entry of another title shows the clip, by the answer to its title.

    Where its title leads nowhere, or to another entry, its own values count, which are those of the clip.
    """
    answer = await reader.read_asset(database, Address(entry.title))
    if answer is None or not fits(entry, answer):
        return True
    if differing(asset, answer):
        return False
    if in_doubt and content_of(asset) == content_of(answer):
        return True  # nothing shows that it is another clip, even if equal values mean nothing on this server
    answer = answer if answer.title is not None else structs.replace(answer, title=entry.title)
    if answer.folder is not None and asset.folder is not None and not same_folder(answer.folder, entry.folder):
        return same_folder(answer.folder, asset.folder)  # a link of some clip that lives there: it may be this one
    return await are_one_clip(reader, database, asset, answer)


async def _files_tell_clips_apart(reader: Reader, database: str, asset: Asset) -> bool:
    """Return whether a different clip has another file, or another original name if no file is reported."""
    for entry in await reader.read_other_clips(database, asset, _MOST_TRIED):
        try:
            answer = await reader.read_asset(database, Address(entry.title))
        except UnreadableError:
            continue
        if answer is None:
            continue
        files = [(asset.hires, answer.hires), (asset.archive, answer.archive)]
        mine, other = next((pair for pair in files if pair[0]), (None, None))
        if mine and other and mine != other:
            return True
        if not differing(asset, answer):
            continue
        if mine and other:
            return False
        if not mine and "orig_name" in differing(asset, answer):
            return True
    return False


async def _is_link_of(reader: Reader, database: str, link: Asset, home: Asset) -> bool:
    """Return whether, judged by folders, one answer is of a link that can only show the clip of the other."""
    if link.folder is None or link.link_id is None or home.link_id is None:
        return False
    entries = (await reader.read_entries(database, link)).same
    its = next((entry for entry in entries if entry.link_id == link.link_id), None)
    if its is None or same_folder(its.folder, link.folder):
        return False
    there = [entry for entry in entries if same_folder(entry.folder, link.folder)]
    return {entry.link_id for entry in there} == {home.link_id}


# In which folder a clip is --------------------------------------------------------------------------------------
#
# An answer has it (interface, «Asset»). Some servers put the database in front. On others a folder may have the name of
# the database: ``NEWS/Raw`` is ``Raw`` there, and ``NEWS/Raw`` here. So the server is asked: without such a folder the
# first name is the database; else the clip is searched for in both.


async def settle_home(
    asset: Asset,
    database: str,
    has: Callable[[Folder], Awaitable[bool]],
    read: Callable[[Folder], Awaitable[Listing | None]],
) -> Asset:
    """Return the asset with its folder; both possible folders stay if that is ambiguous.

    ``has`` returns whether a folder exists, ``read`` lists one.
    """
    otherwise = asset.folder_otherwise
    if otherwise is None or asset.folder is None:
        return asset
    try:
        if not await has((database,)):
            return structs.replace(asset, folder_otherwise=None)
        here, there = _is_listed_in(asset, await read(asset.folder)), _is_listed_in(asset, await read(otherwise))
    except (RejectedError, UnreadableError):
        return asset
    if here is there:
        return asset
    return structs.replace(asset, folder=asset.folder if here else otherwise, folder_otherwise=None)


def _is_listed_in(asset: Asset, listing: Listing | None) -> bool:
    """Return whether a folder lists the clip itself: a link has its own ``link_id`` (interface, «Link»)."""
    entries = [each for each in listing.entries if each.folder == listing.folder] if listing else []
    return any(
        asset.link_id == each.link_id
        if asset.link_id is not None and each.link_id is not None
        else same_text(each.title, asset.title or "")
        for each in entries
    )
