"""What a simulated server holds, as a frozen value, and what differs between two of these.

A clip is known by the link_id of its home, which stays through every rename and move.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from msauto.simulator import ServerState, SimClip

Place = tuple[str, str]
"""The folder and the title of an entry."""


@dataclass(frozen=True)
class Mark:
    """A marker."""

    uid: int
    pos: int
    fields: tuple[tuple[str, str], ...]

    @property
    def at(self) -> tuple[str, int]:
        return dict(self.fields).get("track", "General"), self.pos


@dataclass(frozen=True)
class Part:
    """A segment; ``more``: what CREATESEGMENT cannot write."""

    number: int
    start: int
    duration: int
    title: str
    keywords: str
    more: tuple[str, ...]


@dataclass(frozen=True)
class Clip:
    """A clip with everything that users can write on it."""

    number: int
    title: str
    folder: str
    frames: int
    created: str
    fields: tuple[tuple[int, str, str], ...]
    marks: tuple[Mark, ...]
    parts: tuple[Part, ...]
    links: tuple[tuple[int, Place], ...]
    xmp: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def entries(self) -> dict[int, Place]:
        return {self.number: (self.folder, self.title), **dict(self.links)}


@dataclass(frozen=True)
class News:
    """An item of the channel."""

    file: str
    guid: str
    title: str
    description: str


@dataclass(frozen=True)
class Picture:
    """The content of a server."""

    clips: dict[int, Clip]
    items: tuple[News, ...]

    def of_entry(self, link_id: int | None) -> Clip | None:
        return next((clip for clip in self.clips.values() if link_id in clip.entries), None)


@dataclass(frozen=True)
class Effect:
    """One thing that became another: one of ``before`` and ``after`` can be missing.

    ``clip`` is 0 for items of the channel. ``what`` is asset, title, folder, frames, field, marker, segment, link, xmp
    or item.
    """

    clip: int
    what: str
    key: object
    before: object
    after: object


def picture(state: ServerState) -> Picture:
    clips = {clip.home.link_id: _clip(clip) for clip in state.databases["NEWS"].clips()}
    items = tuple(News(item.file, item.guid, item.title, item.description) for item in state.channels["ticker"].items)
    return Picture(clips, items)


def _clip(clip: SimClip) -> Clip:
    home = clip.home
    places = [(entry.link_id, ("/".join(entry.folder), entry.title)) for entry in clip.entries]
    return Clip(
        home.link_id,
        home.title,
        "/".join(home.folder),
        clip.frames,
        clip.create_time,
        tuple(
            (each.link_id, name, text) for each in clip.entries for name, text in sorted(each.fields.items()) if text
        ),
        tuple(Mark(mark.uid, mark.pos, _filled(mark.fields)) for mark in clip.markers),
        tuple(
            Part(part.number, part.start, part.duration, (part.titles or [""])[0], part.keywords, _more(part))
            for part in clip.segments
        ),
        tuple(places[1:]),
        tuple((name, tuple(values)) for name, values in sorted(clip.xmp.items()) if values),
    )


def _filled(fields: dict[str, str]) -> tuple[tuple[str, str], ...]:
    shown = {"track": "General", "rating": "0"} | fields
    return tuple(sorted((name, text) for name, text in shown.items() if text))


def _more(part: object) -> tuple[str, ...]:
    """The track, the rating and the further titles."""
    titles, track, rating = (getattr(part, name) for name in ("titles", "track", "rating"))
    return (*titles[1:], *([track] if track else []), *([str(rating)] if rating else []))


def effects(before: Picture, after: Picture) -> Iterator[Effect]:
    """Yield what became of the one on the way to the other."""
    if before == after:
        return
    for number in before.clips.keys() | after.clips.keys():
        old, new = before.clips.get(number), after.clips.get(number)
        if old is None or new is None:
            yield Effect(number, "asset", (old or new).title if old or new else "", old, new)  # type: ignore[union-attr]
        elif old != new:
            yield from _of_clip(old, new)
    for file in sorted({item.file for item in (*before.items, *after.items)}):
        was, now = (tuple(item for item in each.items if item.file == file) for each in (before, after))
        if was != now:
            yield Effect(0, "item", file, was or None, now or None)


def _of_clip(old: Clip, new: Clip) -> Iterator[Effect]:
    for name in ("title", "folder", "frames", "created"):
        if getattr(old, name) != getattr(new, name):
            yield Effect(old.number, name, "", getattr(old, name), getattr(new, name))
    was, now = _things(old), _things(new)
    for key in was.keys() | now.keys():
        if was.get(key) != now.get(key):
            yield Effect(old.number, *key, was.get(key), now.get(key))


def _things(clip: Clip) -> dict[tuple[str, object], object]:
    """Return what is written on a clip, each under its kind and key; all segments of a number are one thing."""
    things: dict[tuple[str, object], object] = {("field", (entry, name)): text for entry, name, text in clip.fields}
    things |= {("marker", mark.uid): mark for mark in clip.marks}
    for part in clip.parts:
        things["segment", part.number] = tuple(each for each in clip.parts if each.number == part.number)
    things |= {("link", link_id): place for link_id, place in clip.links}
    return things | {("xmp", name): values for name, values in clip.xmp}
