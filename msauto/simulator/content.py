"""Content for tests, as people write it in YAML: with the names and positions of playbooks."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from msgspec import Struct, ValidationError, convert

from msauto.simulator.dialect import SimDialect
from msauto.simulator.rss import put_item
from msauto.simulator.seed import empty_state
from msauto.simulator.state import ServerState, SimClip, SimDatabase, SimMarker, SimSegment
from msauto.simulator.wire import parse_frames

_Position = int | str


class GivenMarker(Struct, forbid_unknown_fields=True):
    """A marker: its position, and what a playbook may declare."""

    at: _Position
    uid: int | None = None
    track: str = "General"
    title: str = ""
    comment: str = ""
    user: str = ""
    keywords: str = ""
    rating: int | None = None


class GivenSegment(Struct, forbid_unknown_fields=True):
    """A segment; ``track`` and ``rating`` are what the interface cannot write."""

    number: int
    start: _Position
    duration: _Position
    title: str = ""
    keywords: str = ""
    track: str = ""
    rating: int = 0


class GivenLink(Struct, forbid_unknown_fields=True):
    """A further entry of a clip; without a title it has that of the clip."""

    folder: str
    title: str | None = None


class GivenClip(Struct, forbid_unknown_fields=True):
    """A clip. ``fps`` is a number or a text such as ``30000/1001``."""

    title: str
    folder: str = ""
    frames: int = 250
    fps: int | str = 25
    create_time: str = "2026-11-13T10:00:00"
    finalized: bool = True
    mime_type: int = 3
    fields: dict[str, str] = {}
    xmp: dict[str, str | list[str]] = {}
    segments: list[GivenSegment] = []
    markers: list[GivenMarker] = []
    links: list[GivenLink] = []


class GivenItem(Struct, forbid_unknown_fields=True):
    """An RSS item: a text in a file."""

    file: str
    text: str


class GivenContent(Struct, forbid_unknown_fields=True):
    """The whole content: clips by database, and items by channel."""

    databases: dict[str, list[GivenClip]] = {}
    channels: dict[str, list[GivenItem]] = {}


def state_from_content(data: Any) -> ServerState:
    """Return the state of a server with this content, as YAML gives it; ValueError names what is wrong, and where."""
    try:
        content = convert(data or {}, GivenContent)
    except ValidationError as error:
        raise ValueError(f"not the content of a media server: {error}") from error
    state = empty_state()
    for name, clips in content.databases.items():
        for clip in clips:
            _add_clip(state.add_database(name), clip)
    for name, items in content.channels.items():
        for item in items:
            put_item(state.add_channel(name), item.file, item.text.encode(), SimDialect(rss_body="text"))
    return state


def _add_clip(database: SimDatabase, given: GivenClip) -> SimClip:
    rate = Fraction(given.fps)
    clip = database.add_clip(
        given.title,
        given.folder,
        rate=rate,
        frames=given.frames,
        create_time=given.create_time,
        finalized=given.finalized,
        mime_type=given.mime_type,
        xmp={name: [values] if isinstance(values, str) else values for name, values in given.xmp.items()},
    )
    clip.home.fields = dict(given.fields)
    for each in given.segments:
        start, duration = parse_frames(str(each.start), rate), parse_frames(str(each.duration), rate)
        titles = [each.title] if each.title else []
        clip.segments.append(
            SimSegment(each.number, start, duration, titles, "", each.track, each.rating, each.keywords)
        )
    for marker in given.markers:
        texts = {name: getattr(marker, name) for name in ("track", "title", "comment", "user", "keywords")}
        rating = {} if marker.rating is None else {"rating": str(marker.rating)}
        uid = clip.new_uid() if marker.uid is None else marker.uid
        at = parse_frames(str(marker.at), rate)
        clip.markers.append(SimMarker(uid, at, {name: text for name, text in texts.items() if text} | rating))
    for link in given.links:
        database.add_entry(clip, link.folder, link.title or given.title)
    return clip
