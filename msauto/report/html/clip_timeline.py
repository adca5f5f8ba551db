"""The timeline of a clip as data: its segments and markers before and after the changes of a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msauto.interface.fields import DEFAULT_TRACK
from msauto.model.plan import Change, Json, Target
from msauto.report.sanitizing import show

_SEGMENTS: Final = "Segments"
_POINTS: Final = {"first_frame": "In", "last_frame": "Out", "icon_pos": "Icon"}
"""Fields that are positions of the clip, and how the timeline names them."""
_POINTS_LANE: Final = "In and out"

Place = tuple[str, int, int, str]
"""Lane, first frame, duration in frames (0 for a point) and title."""
Item = list[Any]
"""Action (empty: it stays), name, and the places before and after; one that stays has one place."""


def clip_timeline(target: Target) -> dict[str, Any] | None:
    """Return the length, the rate and the items of a clip; ``None`` if no change has a position."""
    items = [item for change in target.changes for item in _items(change, target) if any(item[2:])]
    if not items:
        return None
    items += _unchanged(target)
    ends = (place[1] + (place[2] or 1) for item in items for place in item[2:] if place)
    frames = target.context.frames if target.context else None
    rate = [target.rate.numerator, target.rate.denominator] if target.rate else None
    return {"frames": frames or max(ends), "rate": rate, "items": items}


def _unchanged(target: Target) -> Iterator[Item]:
    if target.context is None:
        return
    for segment in target.context.segments:
        yield ["", str(segment.number), (_SEGMENTS, segment.start, segment.duration, _shown(segment.title))]
    for marker in target.context.markers:
        yield ["", f"uid {marker.uid}", (show(marker.track), marker.frame, 0, _shown(marker.title))]


def _items(change: Change, target: Target) -> Iterator[Item]:
    match change.aspect:
        case "segment":
            yield [change.action, show(change.key), _segment(change.before), _segment(change.after)]
        case "segmentation":
            yield from _pieces(change, target)
        case "marker":
            before, after = _preserved(target, change) | _mapping(change.before), _mapping(change.after)
            name = f"uid {before['uid']}" if "uid" in before else change.key
            yield [change.action, show(name), _marker(before), _marker(after and {**before, **after})]
        case "field" if change.key in _POINTS:
            yield [change.action, change.key, *(_point(change.key, value) for value in (change.before, change.after))]


def _pieces(change: Change, target: Target) -> Iterator[Item]:
    """Yield the segments that a segmentation replaces, and those that it makes."""
    for segment in change.before if isinstance(change.before, list) else ():
        place = _segment(segment)
        if place is not None:
            yield ["delete", str(_mapping(segment).get("number", "")), place, None]
    made = _mapping(change.after)
    duration, frames = _number(made.get("duration")), target.context.frames if target.context else None
    if not duration or not frames:
        return
    title = made.get("title")
    for number, start in enumerate(range(0, frames, duration), 1):
        yield ["add", str(number), None, (_SEGMENTS, start, min(duration, frames - start), _shown(title))]


def _segment(value: Json) -> Place | None:
    shown = _mapping(value)
    start, duration = _number(shown.get("start")), _number(shown.get("duration"))
    return None if start is None or duration is None else (_SEGMENTS, start, duration, _title(shown))


def _marker(shown: Mapping[str, Json]) -> Place | None:
    frame = _number(shown.get("frame"))
    return None if frame is None else (show(str(shown.get("track") or DEFAULT_TRACK)), frame, 0, _title(shown))


def _preserved(target: Target, change: Change) -> dict[str, Json]:
    """Return the texts of a changed marker that no task names: verification expects them to stay."""
    uid = _mapping(change.before).get("uid")
    expects = (expect for request in target.requests for expect in request.expect if expect.aspect == "marker")
    return next((dict(each.preserved) for each in expects if uid and _mapping(each.desired).get("uid") == uid), {})


def _point(name: str, value: Json) -> Place | None:
    frame = _number(value)
    return None if frame is None else (_POINTS_LANE, frame, 0, _POINTS[name])


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
