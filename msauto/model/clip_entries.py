"""Which entries of a listing show a clip, and where the clip lives.

One answer alone does not show which entries of a listing are links of a clip, or whether two answers are of one clip.
Nor does it show which folder is meant if the reported folder begins with the name of the database.
"""

from __future__ import annotations

from array import array
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Final

from msgspec import structs

from msauto.concurrency import in_turns
from msauto.errors import RejectedError, UnreadableError
from msauto.model.identity import (
    RECORDING,
    ClipEntries,
    compare_clips,
    is_another_clip,
    lives_in,
    reported_values,
    same_text,
)
from msauto.model.live import Asset, Entry, Folder, Listing
from msauto.model.plan import Address
from msauto.model.ports import Reader
from msauto.primitives.normal_form import normal_form

Values = tuple[object, ...]

MOST_LINKS: Final = 50
"""More entries of equal values are not links of one clip: on such a server the values identify nothing.

Before a deletion the answer of each of them is read.
"""
_ENOUGH: Final = 2  # equal values are of one clip
_FILES: Final = frozenset({"hires", "archive"})
_KEYS: Final = 5  # a title, a link id, and each two of three values


def entries_of(asset: Asset, entries: Iterable[Entry], *, in_doubt: bool = False) -> ClipEntries:
    """Return the entries that show an asset, and those of its title that are certainly other clips.

    Besides what is surely the same clip, the entry that answered and its title count, unless they are another clip.
    ``in_doubt``, before a deletion: all that is not surely another clip.
    """
    same: list[Entry] = []
    namesakes: list[Entry] = []
    unnamed = 0
    for entry in entries:
        answer = compare_clips(asset, entry).answer
        is_named = is_named_by(asset, entry)
        if answer != "other" and (is_named or in_doubt or answer == "same"):
            same.append(entry)
            unnamed += not is_named
        elif same_text(entry.title, asset.title):
            namesakes.append(entry)
    if unnamed > MOST_LINKS and not in_doubt:
        same = [entry for entry in same if is_named_by(asset, entry)]
    return ClipEntries(asset, tuple(same), tuple(namesakes))


def is_named_by(asset: Asset, entry: Entry) -> bool:
    """Whether an entry has the ``link_id`` or the title of an answer."""
    return (asset.link_id is not None and entry.link_id == asset.link_id) or same_text(
        entry.title, asset.title
    )


def count_clips(entries: Iterable[Entry]) -> int:
    """Count the clips that entries show: a clip and its links count once.

    An entry without original name, creation time or length counts as a separate clip.
    """
    clips: set[Values] = set()
    for entry in entries:
        values = reported_values(entry)
        if None in values:
            values = (entry.folder, entry.title, entry.link_id)
        clips.add(values)
    return len(clips)


class LinkIndex:
    """An index of the entries of a listing, to find those of many assets.

    A table of chains by the hash of each key, in some 80 bytes an entry; an entry found there may
    still have another key, which :func:`entries_of` checks. Created by :func:`index_links`.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        keys = len(entries) * _KEYS
        nothing = array("l", [-1])
        self._heads = nothing * (1 << keys.bit_length())
        self._next = nothing * keys
        self._reporting: dict[frozenset[object], array[int]] = {}

    def add(self, number: int, entry: Entry) -> None:
        """Add an entry by its number."""
        for place, key in enumerate(_keys(entry), number * _KEYS):
            head = self._head(key)
            self._next[place] = self._heads[head]
            self._heads[head] = place

    def entries_of(self, asset: Asset, *, in_doubt: bool = False) -> ClipEntries:
        """Return what :func:`entries_of` does, by few comparisons."""
        numbers: set[int] = set()
        for key in _keys(asset):
            numbers.update(self._chain(key))
        if in_doubt:
            numbers.update(self._vague(asset))
        return entries_of(
            asset, [self._entries[number] for number in sorted(numbers)], in_doubt=in_doubt
        )

    def _vague(self, asset: Asset) -> Iterator[int]:
        """Yield the entries of which fewer than two values, but for the length, can be compared with an answer's.

        The length alone may differ by some frames in an entry of the clip.
        """
        if not self._reporting:
            for number, entry in enumerate(self._entries):
                self._reporting.setdefault(_reported(entry), array("l")).append(number)
        known = _reported(asset)
        for names, numbers in self._reporting.items():
            comparable = (names & known) - {_LENGTH}
            if len(comparable) < _ENOUGH:
                yield from numbers

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


def _keys(clip: Asset | Entry) -> Iterator[object]:
    """Yield the keys of which two sightings that may be of one clip have one in common: two values are enough."""
    yield "title", normal_form(clip.title or "")
    if clip.link_id is not None:
        yield "link", clip.link_id
    yield from combinations(_known(reported_values(clip)), _ENOUGH)


def _known(values: Values) -> list[tuple[int, object]]:
    """Return the reported ones of values, with their places; a clip that is still recorded has no length yet."""
    return [known for known in enumerate(values) if known[1] not in (None, RECORDING)]


_LENGTH: Final = 2, True
"""What :func:`_reported` returns of the length: its place among the values, and that it has no zone."""


def _reported(clip: Asset | Entry) -> frozenset[object]:
    """Return which values a clip reports; a time with a zone is not compared with one without."""
    return frozenset(
        (place, getattr(value, "tzinfo", None) is None)
        for place, value in _known(reported_values(clip))
    )


# Whether two answers are of one clip ----------------------------------------------------------------------------


def clip_key(asset: Asset) -> Values | None:
    """Return what the answers of one clip have in common; ``None`` where too little is reported.

    Several clips may use the same file, so two names of one clip must show the same markers and segments as well. Their
    positions do not count: some servers count them from the IN point of the entry.
    """
    files = asset.hires or None, asset.archive or None
    values = reported_values(asset)
    if any(files) + len(_known(values)) < _ENOUGH:
        return None
    return (*files, *values, *_content_of(asset))


def _content_of(asset: Asset) -> Values:
    markers = frozenset(
        [(marker.uid, frozenset(marker.fields.items())) for marker in asset.markers]
    )
    segments = [(segment.number, segment.titles, segment.duration) for segment in asset.segments]
    return markers, frozenset(segments)


async def are_one_clip(reader: Reader, database: str, one: Asset, other: Asset) -> bool:
    """Return whether two answers, each with its title, are surely of one clip.

    They are the same clip and show the same content. And because all clips of a server may report equal values, one of
    these is the file, or the folders show it.
    """
    comparison = compare_clips(one, other)
    if comparison.answer != "same" or _content_of(one) != _content_of(other):
        return False
    if not {"hires", "archive"}.isdisjoint(comparison.equal):
        return True
    if (
        one.link_id is not None
        and one.link_id == other.link_id
        and same_text(one.title, other.title)
    ):
        return True  # one entry, asked for in two ways
    return await _is_link_of(reader, database, one, other) or await _is_link_of(
        reader, database, other, one
    )


async def _is_link_of(reader: Reader, database: str, link: Asset, home: Asset) -> bool:
    """Return whether, judged by folders, one answer is of a link that can only show the clip of the other."""
    if None in (link.folder, link.link_id, home.link_id):
        return False
    if link.link_id == home.link_id:
        return False
    entries = await reader.read_entries(database, link)
    own = entries.own
    at_home = entries.at_home
    is_link = own is not None and own.link_id == link.link_id and own not in at_home
    return is_link and {entry.link_id for entry in at_home} == {home.link_id}


async def entries_in_doubt(
    reader: Reader, database: str, asset: Asset, *, listed: Reader | None = None
) -> ClipEntries:
    """Return the entries that may show a clip which loses something: all that are not surely of other clips.

    What counts of an entry of another title is the answer to that; where the title leads nowhere, or to another entry,
    its own values do. ``listed`` has a newer listing of the database than ``reader``, which has the answers.
    """
    entries = await (listed or reader).read_entries(database, asset, in_doubt=True)
    same: list[Entry] = []
    rivals: list[Entry] = []
    for entry in entries.same:
        answer = None
        if not is_named_by(asset, entry):
            answer = await reader.read_asset(database, Address(entry.title))
        if answer is None:
            same.append(entry)
            continue
        uncounted = {"link_id"}
        if compare_clips(entry, answer).different == ("frames",) and not answer.finalized:
            # The length that a listing shows of a clip which is recorded may be late, and shows nothing.
            uncounted.add("frames")
        is_link = lives_in(answer, entry.folder) is False
        leads_elsewhere = is_another_clip(entry, answer, uncounted)
        if leads_elsewhere or _may_show(asset, answer, uncounted, is_link=is_link):
            same.append(entry)
            if leads_elsewhere or not is_link:
                rivals.append(entry)
    return structs.replace(entries, same=tuple(same), rivals=tuple(rivals))


def _may_show(asset: Asset, answer: Asset, uncounted: Collection[str], *, is_link: bool) -> bool:
    """Return whether the answer to another entry may be of the clip of an asset."""
    comparison = compare_clips(asset, answer)
    if set(comparison.different).difference(uncounted):
        return False
    # A marker may be new since the other answer.
    of_one_file = not _FILES.isdisjoint(comparison.equal)
    of_one_home = is_link and answer.folder == asset.folder
    return of_one_file or of_one_home or _content_of(asset) == _content_of(answer)


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
        is_in_folder = is_listed_in(asset, await read(asset.folder))
        is_in_other = is_listed_in(asset, await read(otherwise))
    except (RejectedError, UnreadableError):
        return asset
    if is_in_folder is is_in_other:
        return asset
    folder = asset.folder if is_in_folder else otherwise
    return structs.replace(asset, folder=folder, folder_otherwise=None)


def is_listed_in(asset: Asset, listing: Listing | None) -> bool:
    """Return whether a folder lists the entry that answered: a link has its own ``link_id`` (interface, «Link»)."""
    if listing is None:
        return False
    for entry in listing.entries:
        if entry.folder == listing.folder and has_answered(asset, entry):
            return True
    return False


def has_answered(asset: Asset, entry: Entry) -> bool:
    """Return whether an entry has the ``link_id`` of an answer; where one of them has none, its title."""
    if asset.link_id is None or entry.link_id is None:
        return same_text(entry.title, asset.title)
    return entry.link_id == asset.link_id
