"""Editorial warnings about values that a run sets: they are valid, but probably mistakes.

Only what the run adds or changes, and its effect on the rest, is checked. What is on the server already and does not
change is not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from msgspec import structs

from msauto.diffing.comparison import mapping, texts, track_of
from msauto.diffing.plan_builder import PlanContext, refuse
from msauto.diffing.positions import in_point
from msauto.interface.fields import DEFAULT_TRACK
from msauto.model.desired import ABSENT, Absent, DesiredAsset, Position, TaskSource
from msauto.model.live import Asset, Marker, Segment, Xmp, parse_folder, whole
from msauto.model.plan import Change, Expectation, Json, Request
from msauto.model.timecode import TimecodeError

_START, _END = "Profanity Start", "Profanity End"


def check_editorial(context: PlanContext, desired: DesiredAsset) -> None:
    """Warn of what the changes of an asset make of it; refuse an in point after the out point where tasks name both.

    Raises ``PlanningError``.
    """
    if not context.builder.changes:
        return
    has_profanity = _touches_profanity(context)
    is_needed = has_profanity or bool(_moved(context))
    after = asset_after(context.asset, context.builder.requests()) if is_needed else context.asset
    _check_in_and_out(context, desired, after)
    warnings = [
        *_outside(context, desired, after),
        *(_unpaired(context, after) if has_profanity else ()),
        *_blank_ends(context),
    ]
    context.builder.warnings += [f"{context.title}: {warning}" for warning in dict.fromkeys(warnings)]


# In and out ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Span:
    """From the in point to the out point, both in frames of the file; ``None`` where the server does not report it.

    The out point may be the last frame or the one after it: the interface does not specify which.
    """

    first: int | None
    last: int | None

    @classmethod
    def of(cls, asset: Asset) -> _Span:
        """Read both; an out point of 0 counts as missing."""
        return cls(asset.first_frame, whole(asset.attributes.get("last_frame")) or None)

    @property
    def is_reversed(self) -> bool:
        return self.first is not None and self.last is not None and self.first > self.last

    def misses(self, first: int, last: int) -> str | None:
        """Describe which of the frames from first to last are outside."""
        if self.first is not None and first < self.first:
            return f"{'lies' if last < self.first else 'begins'} before the IN point (frame {self.first})"
        if self.last is not None and last > self.last:
            return f"{'lies' if first > self.last else 'ends'} after the OUT point (frame {self.last})"
        return None


def _moved(context: PlanContext) -> list[Change]:
    names = {"first_frame", "last_frame"}
    return [change for change in context.builder.changes if change.aspect == "field" and change.key in names]


def _check_in_and_out(context: PlanContext, desired: DesiredAsset, after: Asset) -> None:
    moved, span = _moved(context), _Span.of(after)
    if not moved or not span.is_reversed:
        return
    message = f"the IN point (first_frame, frame {span.first}) lies after the OUT point (last_frame, frame {span.last})"
    if {"first_frame", "last_frame"} <= desired.fields.keys() and not desired.still:  # undo brings back what there was
        raise refuse(message, moved[0].source, "let first_frame be at most last_frame")
    context.builder.warnings.append(f"{context.title}: {message} ({moved[0].source.place})")


def _outside(context: PlanContext, desired: DesiredAsset, after: Asset) -> Iterator[str]:
    """Yield the named markers and segments outside the in and out points, where the run sets them or these points."""
    span, moved = _Span.of(after), bool(_moved(context))
    if span.is_reversed:
        return
    set_here = {change.source.place for change in context.builder.changes if change.aspect in {"marker", "segment"}}
    for what, first, last, source in (*_markers(context, desired), *_segments(context, desired)):
        where = span.misses(first, last) if moved or source.place in set_here else None
        if where is not None:
            yield f"{what} {where} ({source.place})"


Item = tuple[str, int, int, TaskSource]
"""What it is, its first and its last frame, and where a task names it."""


def _markers(context: PlanContext, desired: DesiredAsset) -> Iterator[Item]:
    for sourced in desired.markers:
        value = sourced.value
        frame = _frames(context, value.at) if value.present else None
        if frame is not None:
            track = DEFAULT_TRACK if value.track is ABSENT else value.track
            name = f"marker {track}@{frame}" if value.uid is ABSENT else f"marker uid {value.uid} (frame {frame})"
            yield name, frame, frame, sourced.source


def _segments(context: PlanContext, desired: DesiredAsset) -> Iterator[Item]:
    for sourced in desired.segments:
        value = sourced.value
        start, length = _frames(context, value.start), _frames(context, value.duration)
        if value.present and start is not None and length:
            name = "segment" if value.number is ABSENT else f"segment {value.number}"
            yield f"{name} (frames {start} to {start + length - 1})", start, start + length - 1, sourced.source


def _frames(context: PlanContext, position: Position | Absent) -> int | None:
    """Return the frame of a position; ``None`` where none is named, or it is invalid, which its own aspect reports."""
    if position is ABSENT:
        return None
    try:
        return position.to_frames(context.asset.rate or Fraction(1))
    except TimecodeError:
        return None


# Profanity -----------------------------------------------------------------------------------------------------


def _unpaired(context: PlanContext, after: Asset) -> Iterator[str]:
    """Yield the starts without an end, and ends without a start, that the run makes."""
    touched = [change for change in context.builder.changes if change.aspect == "marker"]
    before = {(marker.uid, track_of(marker)) for marker in _alone(context.asset.markers)}
    live = {marker.uid: marker for marker in context.asset.markers}
    origin = in_point(context.asset, context.server.dialect)
    source = touched[0].source
    for marker in _alone(after.markers):
        if (marker.uid, track_of(marker)) in before and live[marker.uid].frame == marker.frame:
            continue
        other = _END if track_of(marker) == _START else _START
        yield f"{track_of(marker)} at frame {marker.frame + origin} has no {other} ({source.place})"


def _touches_profanity(context: PlanContext) -> bool:
    touched = (change for change in context.builder.changes if change.aspect == "marker")
    sides = (mapping(side) for change in touched for side in (change.before, change.after))
    return any(str(side.get("track")) in {_START, _END} for side in sides)


def _alone(markers: Iterable[Marker]) -> Iterator[Marker]:
    """Yield the starts that no end follows before the next start, and the ends that follow no start."""
    begun: Marker | None = None
    marked = [marker for marker in markers if track_of(marker) in {_START, _END}]
    for marker in sorted(marked, key=lambda marker: (marker.frame, track_of(marker) == _START)):
        if track_of(marker) == _END and begun is not None:
            begun = None
        elif track_of(marker) == _END:
            yield marker
        else:
            if begun is not None:
                yield begun
            begun = marker
    if begun is not None:
        yield begun


# Titles --------------------------------------------------------------------------------------------------------


def _blank_ends(context: PlanContext) -> Iterator[str]:
    """Yield the titles that get a blank at an end."""
    for change in context.builder.changes:
        if change.aspect not in _TITLED or change.action == "delete":
            continue
        if change.aspect == "link":
            title, had = parse_folder(change.key)[-1], parse_folder(change.key)[-1] if change.before is not None else ""
        elif change.aspect == "title":
            title, had = str(change.after), str(change.before)
        else:
            title, had = (str(mapping(side).get("title", "")) for side in (change.after, change.before))
        if title != title.strip() and title != had:
            what = "the title" if change.aspect == "title" else f"the title of {change.aspect} {change.key!r}"
            yield f"{what} has blanks at an end: {title!r} ({change.source.place})"


_TITLED = frozenset({"title", "segment", "segmentation", "marker", "link"})


# The asset after the run ---------------------------------------------------------------------------------------
#
# Computed from the expectations of the requests. Exact enough for warnings: a new marker gets any free uid, and a
# segmentation has no effect.


def asset_after(asset: Asset, requests: Iterable[Request]) -> Asset:
    """Return the asset with its fields, markers and segments as the requests leave them, as the server counts."""
    attributes = dict(asset.attributes)
    markers = {marker.uid: marker for marker in asset.markers}
    segments = {segment.number: segment for segment in asset.segments}
    for expect in _expected(requests):
        key, after = expect.key, mapping(expect.desired)
        if expect.aspect == "field":
            attributes[key] = str(expect.desired)
        elif expect.aspect == "marker" and expect.desired is None:
            markers.pop(_number(key.removeprefix("uid ")), None)
        elif expect.aspect == "marker":
            uid = _number(after["uid"]) if "uid" in after else max(markers, default=0) + 1
            had = markers[uid].fields if uid in markers else {}
            named = {name: str(value) for name, value in after.items() if name not in {"uid", "frame"}}
            markers[uid] = Marker(uid, _number(after["frame"]), {**had, **named})
        elif expect.aspect == "segment":
            segments.pop(_number(key), None)
            if expect.desired is not None:
                place = _number(key), _number(after["start"]), _number(after["duration"])
                segments[place[0]] = Segment(*place, titles=(str(after.get("title", "")),))
    return structs.replace(
        asset, attributes=attributes, markers=tuple(markers.values()), segments=tuple(segments.values())
    )


def xmp_after(xmp: Xmp | None, requests: Iterable[Request]) -> Xmp:
    """Return the XMP fields as the requests leave them."""
    written = {expect.key: texts(expect.desired) for expect in _expected(requests) if expect.aspect == "xmp"}
    return {**(xmp or {}), **written}


def _expected(requests: Iterable[Request]) -> Iterable[Expectation]:
    return (expect for request in requests for expect in request.expect)


def _number(value: Json) -> int:
    return int(str(value))
