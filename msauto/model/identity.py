"""Equality of names, whether two sightings are of one clip (other, same or unknown), and where a clip lives.

The interface has no key that a clip and its links share: a link is an entry of the same clip with its own ``link_id``.
So two sightings are compared by what belongs to the clip and not to an entry: its files, its original name, its
creation time and its length. A table has what each caller does with *unknown* (identity, «One clip is one target»).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, NamedTuple

from msgspec import Meta, Struct

from msauto.model.live import Asset, Entry, Folder, Link, read_time
from msauto.primitives.normal_form import normal_form, unindented

Answer = Literal["other", "same", "unknown"]

LinkId = Annotated[
    int | None, Meta(description="the server's number of the entry, if it reports one")
]
CreateTime = Annotated[
    str | None,
    Meta(
        description="when the clip was created, as the server reports it: a new recording is another clip"
    ),
]


class ClipIdentity(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """What a clip is, whatever its title: the values that its answer showed when it was planned.

    Attributes:
        frames: its length; null while it is being recorded
        orig_name: the name of the original file
        hires: the high-resolution file
        archive: the archive copy
    """

    link_id: LinkId = None
    create_time: CreateTime = None
    frames: int | None = None
    orig_name: str | None = None
    hires: str | None = None
    archive: str | None = None

    @classmethod
    def of(cls, clip: Asset | Entry) -> ClipIdentity:
        """Return the identity of the clip that an answer or an entry shows.

        The proxy does not belong to it: on many servers its path is that of the title.
        """
        created = clip.attributes.get("create_time")
        frames = None if clip.finalized is False else clip.frames
        orig_name = clip.attributes.get("orig_name")
        if isinstance(clip, Entry):
            return cls(clip.link_id, created, frames, orig_name)
        return cls(
            clip.link_id, created, frames, orig_name, clip.hires or None, clip.archive or None
        )

    @property
    def is_known(self) -> bool:
        """Whether it distinguishes the clip from others: a length or an original name alone does not."""
        return self.link_id is not None or bool(self.create_time or self.hires or self.archive)


Sighting = Asset | Entry | ClipIdentity


class ClipComparison(NamedTuple):
    """The names of the values that two sightings of a clip both report, ``link_id`` apart: that is of the entry.

    ``is_near``: all else is equal, and the lengths differ by less than a second: a restored file may be some frames
    shorter, and others may have moved the IN or OUT point.
    """

    equal: tuple[str, ...]
    different: tuple[str, ...]
    is_near: bool = False

    @property
    def answer(self) -> Answer:
        """Whether they are of one clip: of another if a value differs, of the same if two values are equal."""
        if self.different:
            return "other"
        if self.is_near:
            return "unknown"
        both_files = "hires" in self.equal and "archive" in self.equal  # which count as one value
        return "same" if len(self.equal) - both_files > 1 else "unknown"

    @property
    def evidence(self) -> str:
        """What the two show, for a message: ``the same length; not reported by both: file``."""
        known = {*self.equal, *self.different}
        if self.is_near:
            known.add("frames")
        known.add("hires" if "archive" in known else "archive")  # either of them is a file
        unknown = [name for name in _CALLED if name not in known]
        shown: list[str] = []
        for what, names in (
            ("the same", self.equal),
            ("another", self.different),
            ("nearly the same", ["frames"] if self.is_near else ()),
            ("not reported by both:", unknown),
        ):
            if names:
                shown.append(f"{what} {', '.join([_CALLED[name] for name in names])}")
        return "; ".join(shown)


_CALLED: Final = {
    "hires": "file",
    "archive": "archive copy",
    "orig_name": "original name",
    "create_time": "creation time",
    "frames": "length",
}


def compare_clips(one: Sighting, other: Sighting) -> ClipComparison:
    """Compare two sightings of a clip: answers, entries of a listing, or what a plan kept.

    A clip that was archived and purged reports its archive copy only, so files are compared with those of their kind.
    """
    equal: list[str] = []
    different: list[str] = []
    for name, mine, its in zip(_CALLED, _values(one), _values(other), strict=True):
        if mine is None or its is None:
            continue
        # Equal texts, which are the rule, are equal times.
        if mine != its and name == "create_time":
            mine = _time(mine)
            its = _time(its)
            if not _are_comparable(mine, its):
                continue
        if mine == its:
            equal.append(name)
        else:
            different.append(name)
    if equal and different == ["frames"] and _are_near(one, other):
        return ClipComparison(tuple(equal), (), is_near=True)
    return ClipComparison(tuple(equal), tuple(different))


_LOWEST_RATE: Final = 24
"""Frames that are less than a second at any rate, where none is known."""


def _are_near(one: Sighting, other: Sighting) -> bool:
    """Whether two lengths, which both are known, differ by less than a second."""
    rate: Fraction | int | None = None
    lengths: list[int] = []
    for sighting in (one, other):
        lengths.append(sighting.frames or 0)
        if not isinstance(sighting, ClipIdentity):
            rate = rate or sighting.rate
    return abs(lengths[0] - lengths[1]) < (rate or _LOWEST_RATE)


def _values(sighting: Sighting) -> tuple[Any, ...]:
    """Return the values in the order of their names, ``None`` for what is not reported."""
    shown = sighting if isinstance(sighting, ClipIdentity) else ClipIdentity.of(sighting)
    return (
        shown.hires,
        shown.archive,
        _text(shown.orig_name),
        _text(shown.create_time),
        shown.frames,
    )


def is_another_clip(planned: Sighting, now: Sighting, altered: Collection[str] = ()) -> bool:
    """Whether a title that led to one sighting leads to another clip now: *unknown* goes by the title.

    ``altered`` are the values that the requests of the run may change. Another ``link_id`` is another entry: with
    ``link_id`` among them, that is surely to be of the same clip. Of one entry, a length that may still grow, or that
    a listing shows late, does not count.
    """
    comparison = compare_clips(planned, now)
    different = set(comparison.different).difference(altered)
    if "files" in altered:
        different -= {"hires", "archive"}
    if planned.link_id is None or now.link_id is None:
        return bool(different)
    if planned.link_id != now.link_id:
        answer = ClipComparison(comparison.equal, tuple(different)).answer
        return "link_id" not in altered or answer != "same"
    # A listing lags, and a server may not report whether the length is final.
    is_final = isinstance(now, ClipIdentity) or now.finalized is not None
    if "create_time" in comparison.equal and (isinstance(planned, Entry) or not is_final):
        different.discard("frames")
    return bool(different)


def is_remembered(kept: Sighting, kept_title: str, now: Sighting, title: str) -> Answer:
    """Whether what is remembered of a sighting is of another one: *unknown* goes by the title of the same entry."""
    answer = compare_clips(kept, now).answer
    is_one_title = same_text(kept_title, title)
    is_another_entry = is_known_otherwise(kept.link_id, now.link_id)
    if answer == "unknown" and is_one_title and not is_another_entry:
        return "same"
    return answer


def is_known_otherwise(one: int | None, other: int | None) -> bool:
    """Whether both numbers of an entry are reported, and differ."""
    return one is not None and other is not None and one != other


def identifying_values(clip: ClipIdentity) -> dict[str, object]:
    """Return the values of a clip by their names, equal for equal ones; ``None``: it is not reported."""
    values = dict(zip(_CALLED, _values(clip), strict=True))
    values["create_time"] = _time(values["create_time"])
    values["link_id"] = clip.link_id
    return values


RECORDING: Final = "recording"
"""In place of the length of a clip that is still recorded."""


def reported_values(clip: Asset | Entry) -> tuple[object, ...]:
    """Return what a listing reports of a clip, to find entries that may be of it; ``None`` for what is not reported."""
    shown = clip.attributes
    length = RECORDING if clip.finalized is False else clip.frames
    return _text(shown.get("orig_name")), _time(_text(shown.get("create_time"))), length


class ClipEntries(Struct, frozen=True, gc=False):
    """The entries of a database for the clip of an answer: ``same`` show it, ``namesakes`` are others of its title.

    ``rivals`` are those of ``same`` under another title whose own answers call them the clip: each may be its home.
    """

    asset: Asset
    same: tuple[Entry, ...] = ()
    namesakes: tuple[Entry, ...] = ()
    rivals: tuple[Entry, ...] = ()

    @property
    def at_home(self) -> tuple[Entry, ...]:
        """The entries in the folder that the answer reports as that of the clip."""
        folder = self.asset.folder
        if folder is None:
            return ()
        return tuple([entry for entry in self.same if same_folder(entry.folder, folder)])

    @property
    def own(self) -> Entry | None:
        """The entry that answered: that of its ``link_id``, else of its title; of several, the one at home."""
        link_id = self.asset.link_id
        by_id: list[Entry] = []
        if link_id is not None:
            by_id = [entry for entry in self.same if entry.link_id == link_id]
        candidates = self._called(by_id or self.same) or by_id
        at_home = self.at_home
        for entry in candidates:
            if entry in at_home:
                return entry
        return candidates[0] if len(candidates) == 1 else None

    def _called(self, entries: Collection[Entry]) -> list[Entry]:
        """Return those of the entries that have the title of the answer."""
        return [entry for entry in entries if same_text(entry.title, self.asset.title)]

    @property
    def home(self) -> Entry | None:
        """The entry of the clip itself; ``None`` if that is ambiguous.

        A server may report the folder of the clip for its links as well: then the only entry in that folder is the
        home.
        """
        at_home = self.at_home
        own = self.own
        if own in at_home:
            return own
        candidates = self._called(at_home) or at_home
        return candidates[0] if len(candidates) == 1 else None

    @property
    def links(self) -> tuple[Link, ...]:
        """All entries but the home."""
        home = self.home
        others = [entry for entry in self.same if entry is not home]
        return tuple([Link(entry.folder, entry.title, entry.link_id) for entry in others])

    @property
    def places(self) -> tuple[Folder, ...]:
        """Folder and title of all entries but the one that the answer is known by: its own one, if that is at home."""
        own = self.own
        known = [entry for entry in self._called(self.at_home) if entry is own]
        return tuple([(*entry.folder, entry.title) for entry in self.same if entry not in known])


def plain(text: str) -> str:
    r"""Return the form in which texts are compared: Unicode NFC, line ends as ``\n``, no layout around it."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "" < text[:1] <= " ":
        text = unindented(text)
    return text if text.isascii() else normal_form(text)


def same_text(one: str | None, other: str | None) -> bool:
    """Whether two texts are equal; ``None`` equals the empty text."""
    return one == other or plain(one or "") == plain(other or "")


def matches(glob: str, names: Iterable[str]) -> bool:
    """Return whether a glob matches a title or folder: as it is written, or by its signs.

    Its brackets count as they are written, too. So a title or folder with glob signs is not missed.

    >>> matches("News [final]/*", ["News [final]/Tonight"]), matches("What? [a]", ["What? [a]"])
    (True, True)
    """
    form = plain(glob)
    stripped = form.strip("/")
    patterns = (form, stripped, stripped.replace("[", "[[]"))
    for name in map(plain, names):
        if name == form:
            return True
        for pattern in patterns:
            if fnmatchcase(name, pattern):
                return True
    return False


def same_folder(one: Folder, other: Folder) -> bool:
    """Whether two folders are equal."""
    return len(one) == len(other) and all(map(same_text, one, other))


def lives_in(asset: Asset, folder: Folder) -> bool | None:
    """Whether the clip of an answer lives in a folder; ``None`` where the server reports no folder, or one of two."""
    homes = [home for home in (asset.folder, asset.folder_otherwise) if home is not None]
    if homes and not any(same_folder(home, folder) for home in homes):
        return False
    return True if len(homes) == 1 else None


def _are_comparable(one: object, other: object) -> bool:
    """Whether two times show if they are equal: not if one of them has no zone, and some zone makes them equal.

    Zones are from 12 hours behind UTC to 14 hours ahead of it, in quarters of an hour.
    """
    if not isinstance(one, datetime) or not isinstance(other, datetime):
        return True
    if bool(one.tzinfo) == bool(other.tzinfo):
        return True
    zoned, bare = (one, other) if one.tzinfo else (other, one)
    offset = bare.replace(tzinfo=UTC) - zoned
    is_a_zone = timedelta(hours=-12) <= offset <= timedelta(hours=14)
    return not is_a_zone or bool(offset % timedelta(minutes=15))


@lru_cache(maxsize=1024)  # a clip is compared several times in a row
def _text(value: str | None) -> str | None:
    return plain((value or "").strip()) or None


@lru_cache(maxsize=1024)
def _time(text: str | None) -> object:
    return text and (read_time(text) or text)
