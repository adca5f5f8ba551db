"""What a simulated server holds, as one mapping of things to values, and what differs between two of these.

A thing stays the same one through every rename, move and change. Two markers of one uid are two things. So are one that
was deleted and a new one under its uid. A segment or an item that a write puts over another one stays that thing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msauto.plugins.simulator.embedded import (
    Item,
    ServerState,
    SimClip,
    SimDialect,
    SimMarker,
    SimSegment,
)
from msauto.plugins.simulator.embedded.rss import shown_guid

CHANNEL = 0


class Thing(NamedTuple):
    """One thing of a clip, which is known by the link_id of its home, or of the channel.

    ``what``: asset, title, folder, field, xmp, marker, segment, link, calls or item. ``which``: for fields the entry
    and the name, for XMP the name, for links the link_id, for markers, segments and items a number of our own.
    """

    clip: int
    what: str
    which: Any


class Asset(NamedTuple):
    """What a clip is."""

    file: str
    frames: int
    created: str
    finalized: str


def is_another(one: Asset | None, other: Asset | None) -> bool:
    """Whether two assets are not one clip: a length that differs by less than a second shows nothing."""
    if one is None or other is None:
        return one != other
    is_near = abs(one.frames - other.frames) < 25
    return not is_near or one._replace(frames=0) != other._replace(frames=0)


class Mark(NamedTuple):
    """A marker."""

    uid: int
    pos: int
    fields: tuple[tuple[str, str], ...]

    @property
    def at(self) -> tuple[str, int]:
        return dict(self.fields).get("track", "General"), self.pos


class Part(NamedTuple):
    """A segment; ``more``: what CREATESEGMENT cannot write."""

    number: int
    start: int
    duration: int
    title: str
    keywords: str
    more: tuple[str, ...]


class News(NamedTuple):
    """An item of the channel; ``guid`` as the channel shows it."""

    file: str
    guid: str
    title: str
    description: str
    link: str
    date: str


class Effect(NamedTuple):
    """A thing that became another: one of ``before`` and ``after`` can be missing."""

    thing: Thing
    before: Any
    after: Any


Picture = Mapping[Thing, Any]


def of(picture: Picture, clip: int, what: str) -> dict[Any, Any]:
    """The things of one kind that a clip or the channel has."""
    return {
        thing.which: value
        for thing, value in picture.items()
        if (thing.clip, thing.what) == (clip, what)
    }


def entries(picture: Picture, clip: int) -> dict[int, tuple[str, str]]:
    """The folder and the title of each entry of a clip, its home first."""
    home = {clip: (picture[Thing(clip, "folder", "")], picture[Thing(clip, "title", "")])}
    return home | of(picture, clip, "link")


def clips(picture: Picture) -> list[int]:
    return [thing.clip for thing in picture if thing.what == "asset"]


def effects(before: Picture, after: Picture) -> Iterator[Effect]:
    """Yield what became of the one on the way to the other."""
    for thing in before.keys() | after.keys():
        if before.get(thing) != after.get(thing):
            yield Effect(thing, before.get(thing), after.get(thing))


@dataclass
class Camera:
    """Takes pictures of a server, and knows each thing again: it keeps what it has seen."""

    server: SimDialect
    _seen: dict[int, tuple[object, int]] = field(default_factory=dict)
    _last: dict[tuple[int, Any], int] = field(default_factory=dict)

    def take(self, state: ServerState) -> Picture:
        things: dict[Thing, Any] = {}
        places: dict[tuple[int, Any], int] = {}
        for clip in state.databases["NEWS"].clips():
            number = clip.home.link_id
            things |= {Thing(number, *key): value for key, value in _plain(clip).items()}
            things |= {
                Thing(number, "marker", self._number(marker)): _mark(marker)
                for marker in clip.markers
            }
            numbers = self._numbers(number, [(part, part.number) for part in clip.segments], places)
            things |= {
                Thing(number, "segment", which): _part(part)
                for which, part in zip(numbers, clip.segments, strict=True)
            }
        items = state.channels["ticker"].items
        numbers = self._numbers(CHANNEL, [(item, item.file) for item in items], places)
        things |= {
            Thing(CHANNEL, "item", which): _news(item, self.server)
            for which, item in zip(numbers, items, strict=True)
        }
        self._last = places
        return things

    def _numbers(
        self, clip: int, things: Sequence[tuple[object, Any]], places: dict[tuple[int, Any], int]
    ) -> list[int]:
        """Return the numbers of segments or items; a new one in the place of another that is gone has its number."""
        here = {self._seen[id(thing)][1] for thing, _ in things if id(thing) in self._seen}
        numbers = []
        for thing, key in things:
            earlier = self._last.get((clip, key))
            numbers.append(self._number(thing, None if earlier in here else earlier))
            places[clip, key] = numbers[-1]
        return numbers

    def _number(self, thing: object, earlier: int | None = None) -> int:
        if id(thing) not in self._seen:
            self._seen[id(thing)] = thing, len(self._seen) + 1 if earlier is None else earlier
        return self._seen[id(thing)][1]


def _plain(clip: SimClip) -> dict[tuple[str, Any], Any]:
    home, *links = clip.entries
    finalized = clip.shown.get("finalized", str(clip.finalized).lower())
    values: dict[tuple[str, Any], Any] = {
        ("asset", ""): Asset(clip.file, clip.frames, clip.create_time, finalized),
        ("title", ""): home.title,
        ("folder", ""): "/".join(home.folder),
    }
    for link in links:
        values["link", link.link_id] = "/".join(link.folder), link.title
    for entry in clip.entries:
        for name, text in entry.fields.items():
            if text:
                values["field", (entry.link_id, name)] = text
    for name, texts in clip.xmp.items():
        if texts:
            values["xmp", name] = tuple(texts)
    if clip.partner:
        values["calls", ""] = len(clip.partner)
    return values


def _mark(marker: SimMarker) -> Mark:
    shown = {"track": "General", "rating": "0"} | marker.fields
    return Mark(
        marker.uid, marker.pos, tuple(sorted((name, text) for name, text in shown.items() if text))
    )


def _part(part: SimSegment) -> Part:
    more = (
        *part.titles[1:],
        *([part.track] if part.track else []),
        *([str(part.rating)] if part.rating else []),
    )
    return Part(
        part.number, part.start, part.duration, (part.titles or [""])[0], part.keywords, more
    )


def _news(item: Item, server: SimDialect) -> News:
    return News(
        item.file, shown_guid(item, server), item.title, item.description, item.link, item.pub_date
    )
