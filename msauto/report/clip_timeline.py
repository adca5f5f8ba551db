"""What a clip looks like before and after the changes of a plan: its segments, markers and points, in frames.

The timelines of the terminal, of Markdown and of the HTML page are drawn from it, and pictures are chosen by it. Texts
are safe to show. Frames count from the first one of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

from msauto.interface.fields import DEFAULT_TRACK
from msauto.model.plan import Action, Change, Json, Target
from msauto.report.sanitizing import show

SEGMENTS: Final = "Segments"
POINTS: Final = "In and out"
_POINTS: Final = {"first_frame": "In", "last_frame": "Out", "icon_pos": "Icon"}
"""Fields that are positions of the clip, and how the timeline names them."""


class TimelinePlace(NamedTuple):
    """Where an item is. ``lane``: :data:`SEGMENTS`, :data:`POINTS` or a track; ``duration``: of a segment, else 0."""

    lane: str
    start: int
    duration: int
    title: str


class TimelineItem(NamedTuple):
    """A segment, marker or point before and after the changes; ``action`` is ``None`` where it stays as it is."""

    action: Action | None
    name: str
    before: TimelinePlace | None
    after: TimelinePlace | None


@dataclass(frozen=True, slots=True)
class ClipTimeline:
    """A clip of ``frames`` frames (``None``: not reported), some of whose items change."""

    frames: int | None
    rate: Fraction | None
    items: tuple[TimelineItem, ...]


def clip_timeline(target: Target) -> ClipTimeline | None:
    """Return the clip before and after its changes; ``None`` if no change has a position."""
    items = [item for change in target.changes for item in _items(change, target) if item.before or item.after]
    if not items:
        return None
    return ClipTimeline(target.context.frames if target.context else None, target.rate, (*items, *_unchanged(target)))


def _unchanged(target: Target) -> Iterator[TimelineItem]:
    for segment in target.context.segments if target.context else ():
        place = TimelinePlace(SEGMENTS, segment.start, segment.duration, _shown(segment.title))
        yield TimelineItem(None, str(segment.number), place, place)
    for marker in target.context.markers if target.context else ():
        place = TimelinePlace(show(marker.track), marker.frame, 0, _shown(marker.title))
        yield TimelineItem(None, f"uid {marker.uid}", place, place)


def _items(change: Change, target: Target) -> Iterator[TimelineItem]:
    match change.aspect:
        case "segment":
            yield TimelineItem(change.action, show(change.key), _segment(change.before), _segment(change.after))
        case "segmentation":
            yield from _pieces(change, target)
        case "marker":
            before, after = _preserved(target, change) | _mapping(change.before), _mapping(change.after)
            name = f"uid {before['uid']}" if "uid" in before else change.key
            yield TimelineItem(change.action, show(name), _marker(before), _marker(after and {**before, **after}))
        case "field" if change.key in _POINTS:
            points = (_point(change.key, value) for value in (change.before, change.after))
            yield TimelineItem(change.action, change.key, *points)


def _pieces(change: Change, target: Target) -> Iterator[TimelineItem]:
    """Yield the segments that a segmentation replaces, and those that it makes."""
    for segment in change.before if isinstance(change.before, list) else ():
        place = _segment(segment)
        if place is not None:
            yield TimelineItem("delete", str(_mapping(segment).get("number", "")), place, None)
    made = _mapping(change.after)
    duration, frames = _number(made.get("duration")), target.context.frames if target.context else None
    if not duration or not frames:
        return
    title = made.get("title")
    for number, start in enumerate(range(0, frames, duration), 1):
        place = TimelinePlace(SEGMENTS, start, min(duration, frames - start), _shown(title))
        yield TimelineItem("add", str(number), None, place)


def _segment(value: Json) -> TimelinePlace | None:
    shown = _mapping(value)
    start, duration = _number(shown.get("start")), _number(shown.get("duration"))
    return None if start is None or duration is None else TimelinePlace(SEGMENTS, start, duration, _title(shown))


def _marker(shown: Mapping[str, Json]) -> TimelinePlace | None:
    frame = _number(shown.get("frame"))
    track = show(str(shown.get("track") or DEFAULT_TRACK))
    return None if frame is None else TimelinePlace(track, frame, 0, _title(shown))


def _preserved(target: Target, change: Change) -> dict[str, Json]:
    """Return the texts of a changed marker that no task names: verification expects them to stay."""
    uid = _mapping(change.before).get("uid")
    expects = (expect for request in target.requests for expect in request.expect if expect.aspect == "marker")
    return next((dict(each.preserved) for each in expects if uid and _mapping(each.desired).get("uid") == uid), {})


def _point(name: str, value: Json) -> TimelinePlace | None:
    frame = _number(value)
    return None if frame is None else TimelinePlace(POINTS, frame, 0, _POINTS[name])


def _title(shown: Mapping[str, Json]) -> str:
    return _shown(shown.get("title"))


def _shown(title: Json) -> str:
    return show(str(title)) if title else ""


def _mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _number(value: Json) -> int | None:
    """Return a number of frames; servers report positions of fields as text."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    text = str(value).strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else None
