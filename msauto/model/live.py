"""Live state: what a server reports, as plain values (interface, «What a server holds»).

A value cannot be part of a cycle, so the garbage collector need not track it (``gc=False``, also in other modules).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from msauto.errors import UnreadableError
from msauto.model.fields import ATTRIBUTE_OF_CLIP, NUMBER_OF_CLIP
from msauto.model.timecode import FrameRates, TimecodeError, rate_of
from msauto.primitives.decimals import read_whole, show_cut
from msauto.primitives.iso_times import parse_datetime

_MOST_WARNINGS = 5
_TITLES = ("title", "clip_name", "name")
"""The attributes that hold the title of an entry; the first that is reported counts."""
_NAMES = re.compile(r"(?:[^/\\]|\\[/\\]|\\)+")
"""The names of a folder as it is written, still escaped."""
_ESCAPED = re.compile(r"\\([/\\])")

Folder = tuple[str, ...]
"""A folder as the plain names from the root down; ``()`` is the root of the database."""


@lru_cache(maxsize=1024)  # the clips of a folder follow each other
def parse_folder(text: str) -> Folder:
    r"""Read ``Raw/2026``; ``\/`` is a slash inside a name and ``\\`` a backslash (interface, «Addresses»).

    Outer and doubled slashes are ignored. A backslash before any other character is a backslash.
    """
    return tuple(_ESCAPED.sub(r"\1", name) for name in _NAMES.findall(text))


@lru_cache(maxsize=1024)
def show_folder(folder: Folder) -> str:
    r"""Write a folder as playbooks do: the inverse of :func:`parse_folder`."""
    return "/".join(map(escape_name, folder))


def escape_name(name: str) -> str:
    r"""Apply the backslash rule (interface, «Addresses»): ``/`` becomes ``\/`` and ``\`` becomes ``\\``."""
    return name.replace("\\", "\\\\").replace("/", "\\/")


class Marker(Struct, frozen=True, gc=False):
    """A key frame marker. ``frame`` counts from the first one of the file; ``fields`` its Attr texts by name.

    ``fields`` holds track, title, comment, user, keywords, rating where reported, and any other Attr.
    """

    uid: int
    frame: int
    fields: Mapping[str, str] = {}

    @property
    def track(self) -> str:
        """The marker type; empty if the server reports none."""
        return self.fields.get("track", "")


class Segment(Struct, frozen=True, gc=False):
    """A segment; ``start``, from the first frame of the file, and ``duration`` in frames. ``None`` is not reported."""

    number: int
    start: int
    duration: int
    name: str | None = None
    titles: tuple[str, ...] = ()
    track: str | None = None
    rating: str | None = None
    keywords: str | None = None
    extra: Mapping[str, str] = {}

    @property
    def title(self) -> str:
        """The first title, else the name (interface, «Segment»)."""
        return self.text("title") or ""

    def text(self, name: str) -> str | None:
        """Return an attribute that CREATESEGMENT sets; ``None`` where it is not reported."""
        if name == "title":
            return self.titles[0] if self.titles else self.name or ""
        return self.keywords if name == "keywords" else self.extra.get(name)


class UnreadNumber(Struct, frozen=True, gc=False):
    """A number of an answer that is missing, cannot be read, or is out of range: it counts as not reported."""

    name: str
    text: str

    def __str__(self) -> str:
        if not self.text:
            return f"{self.name} is missing"
        return f"{self.name} is {show_cut(self.text)}, which is not a number that msauto can read"


class UnreadItem(Struct, frozen=True, gc=False):
    """A marker or a segment without its number or its place, because one of them cannot be read: nothing touches it.

    ``key`` is that of no other item, if its own cannot be read. ``shown`` are its attributes that could be read.
    """

    aspect: Literal["marker", "segment"]
    key: str
    number: UnreadNumber
    shown: Mapping[str, int | str]


class Link(Struct, frozen=True, gc=False):
    """A shortcut to an asset in a folder."""

    folder: Folder
    title: str
    link_id: int | None = None


class ClipAttributes:
    """What the attributes of a clip mean; ``None`` is not reported, or cannot be read."""

    __slots__ = ()

    @property
    def attributes(self) -> Mapping[str, str]:
        """The texts of the attributes by name."""
        raise NotImplementedError

    @property
    def frame_rates(self) -> FrameRates:
        """What the inventory declares of rates that a ``frame_time`` leaves open."""
        return ()

    @property
    def unread(self) -> tuple[UnreadNumber, ...]:
        """The numbers that cannot be read, as far as an answer was looked through for them."""
        return ()

    @property
    def rate(self) -> Fraction | None:
        """Frames per second, exact; ``None`` without frames (audio, notes) or without a frame time."""
        text = self.attributes.get("frame_time", "")
        if not text.strip():
            return None
        try:
            return rate_of(text, self.frame_rates)
        except TimecodeError:
            return None

    @property
    def frames(self) -> int | None:
        """The length in frames."""
        return read_whole(self.attributes.get("frames"), least=0)

    @property
    def fps(self) -> int | Fraction | None:
        """Frames per second, as templates have it: a whole number where it is one."""
        rate = self.rate
        if rate is not None and rate.denominator == 1:
            return rate.numerator
        return rate

    @property
    def duration(self) -> float | None:
        """The length in seconds; positions are counted in frames, which are exact."""
        rate = self.rate
        frames = self.frames
        return None if rate is None or frames is None else float(frames / rate)

    @property
    def create_time(self) -> datetime | None:
        """When the clip was created; without a zone, in the server's own time."""
        return read_time(self.attributes.get("create_time", ""))


def why_no_rate(clip: ClipAttributes) -> str:
    """Return why the ``rate`` of a clip is ``None``, for messages: what the server reports in its place."""
    unread = next((number for number in clip.unread if number.name == "frame_time"), None)
    if unread is not None:
        return str(unread)
    text = clip.attributes.get("frame_time", "")
    try:
        return f"the clip reports {rate_of(text, clip.frame_rates) if text.strip() else 'no frame_time'}"
    except TimecodeError as error:
        return f"the clip reports {error}"


class Entry(ClipAttributes, Struct, frozen=True, gc=False):
    """One entry of a listing (StoredTree ``Clip``): its folder, and the attributes that the listing reports.

    A large database has 300,000 entries. A mapping of the attributes of one takes about 2 KB. So the values are
    ``packed`` into bytes, separated by the one character that XML cannot contain, and similar entries share their
    ``names``.
    """

    folder: Folder
    link_id: int | None
    finalized: bool | None
    names: tuple[str, ...]
    packed: bytes
    frame_rates: FrameRates = ()

    def __repr__(self) -> str:
        return f"Entry({show_folder(self.folder)!r}, link_id {self.link_id}, {self.attributes})"

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes by name, unpacked at each access."""
        return dict(zip(self.names, self.packed.decode().split("\0"), strict=False))

    @property
    def title(self) -> str:
        """The title; empty if the listing reports none."""
        for name in _TITLES:
            if name in self.names:
                place = self.names.index(name)
                return self.packed.split(b"\0", place + 1)[place].decode()
        return ""


class Listing(Struct, frozen=True, gc=False):
    """The answer to one listing: entries and sub-folders below ``folder``, at any depth that the server showed."""

    folder: Folder
    entries: Sequence[Entry] = ()
    folders: tuple[Folder, ...] = ()


class MamAsset(Struct, frozen=True, gc=False):
    """One asset of a linear list (``format=mam``). ``length`` is ``HH:MM:SS``, perhaps with a fraction."""

    title: str
    folder: Folder
    length: str
    hires: str
    proxy: str | None = None


class Database(Struct, frozen=True, gc=False):
    """One database of the server's list; ``listing`` is its content, as far as the list describes it."""

    name: str
    listing: Listing | None = None


class Asset(ClipAttributes, Struct, frozen=True, gc=False):
    """One asset in detail (root ``Clip``). ``None`` means that the answer does not contain it.

    ``attributes`` are the Attr texts by name and unknown attributes of the root. ``links`` are known only where the
    server lists them. ``parameters`` are the names of a graphic template's parameters. ``folder_otherwise`` is the
    folder with the name of the database in front, where the answer does not show whether that is a folder too.
    ``unread`` are the numbers that cannot be read, ``unread_items`` the markers and segments that lack one of these.
    """

    title: str | None
    folder: Folder | None = None
    hires: str | None = None
    proxy: str | None = None
    archive: str | None = None
    link_id: int | None = None
    finalized: bool | None = None
    attributes: Mapping[str, str] = {}
    markers: tuple[Marker, ...] = ()
    segments: tuple[Segment, ...] = ()
    links: tuple[Link, ...] | None = None
    parameters: tuple[str, ...] = ()
    folder_otherwise: Folder | None = None
    unread: tuple[UnreadNumber, ...] = ()
    unread_items: tuple[UnreadItem, ...] = ()
    frame_rates: FrameRates = ()

    @property
    def first_frame(self) -> int | None:
        """The IN point, in frames of the file."""
        return read_whole(self.attributes.get("first_frame"))

    @property
    def in_point(self) -> int:
        """The frame from which a server may count; 0 without one. Raises ``UnreadableError`` if it cannot be read."""
        unread = next((number for number in self.unread if number.name == "first_frame"), None)
        if unread is not None:
            raise UnreadableError(
                f"the in point is not known: {unread}", remedy="set first_frame again on the server"
            )
        return self.first_frame or 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the answer shows and cannot be read; of many, the first ones."""
        warnings = [f"{number}: it counts as not reported" for number in self.unread]
        warnings += [
            f"{item.number}: nothing may touch this {item.aspect}" for item in self.unread_items
        ]
        more = len(warnings) - _MOST_WARNINGS
        if more > 0:
            warnings[_MOST_WARNINGS:] = [f"and {more} more numbers that cannot be read"]
        return tuple(warnings)


class RssItem(Struct, frozen=True, gc=False):
    """One item of a channel, RSS ``item`` or Atom ``entry``; texts are plain, ``None`` is absent.

    ``extra`` are its other elements: the text of ``name``; of ``<name>``, which is more than one plain text, the XML.
    """

    guid: str
    title: str | None = None
    description: str | None = None
    link: str | None = None
    pub_date: str | None = None
    extra: Mapping[str, str] = {}

    @property
    def fields(self) -> dict[str, str]:
        """All that the channel shows of it beside the guid, by the names of RSS."""
        own = {
            "title": self.title,
            "description": self.description,
            "link": self.link,
            "pubDate": self.pub_date,
        }
        return {name: text for name, text in own.items() if text is not None} | dict(self.extra)


class RssChannel(Struct, frozen=True, gc=False):
    """A channel and its items, in the order that it shows them."""

    name: str
    items: tuple[RssItem, ...] = ()


Xmp = Mapping[str, tuple[str, ...]]
"""XMP fields by ``ns:name``; each a list of values, one or none for a plain field."""


def read_time(text: str) -> datetime | None:
    """Read a time of an answer, with its zone if it has one; ``None`` for anything else.

    >>> read_time(" 2026-11-20T10:00:00Z ")
    datetime.datetime(2026, 11, 20, 10, 0, tzinfo=datetime.timezone.utc)
    """
    try:
        return parse_datetime(text.strip())
    except ValueError:
        return None


def typed(name: str, text: str | None) -> Any:
    """Return the text of a clip's attribute as what it is: a whole number, a decimal, a time, or the text.

    A number that cannot be read is ``None``.
    """
    attribute = ATTRIBUTE_OF_CLIP.get(name)
    if text is None or attribute is None:
        return text
    if attribute.kind == "time":
        return read_time(text) or text
    if name not in NUMBER_OF_CLIP or not text.strip():
        return text
    number = attribute.read(text)
    if number is None:
        return None
    return number.numerator if number.denominator == 1 else float(number)


class AssetSnapshot(Struct, frozen=True):
    """One asset with everything that an asset task can declare.

    ``title``: the requested title. ``xmp`` and ``links``: ``None`` if not read, or not reported. ``strangers``: entries
    of other clips with the same title, which a search by title takes for links.
    """

    title: str
    asset: Asset
    xmp: Xmp | None = None
    links: tuple[Link, ...] | None = None
    strangers: tuple[Link, ...] = ()


class SkippedEntry(Struct, frozen=True):
    """An entry of a listing that is not exported, and why. ``broken``: the user should check it."""

    database: str
    folder: Folder
    title: str
    why: str
    broken: bool = False


Snapshot = AssetSnapshot | SkippedEntry


class ListedEntry(NamedTuple):
    """The folder and title of an entry: what is needed to find and to order it."""

    folder: Folder
    title: str
