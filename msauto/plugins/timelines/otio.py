"""OpenTimelineIO files: JSON of published schemas, read and written without the library of that name.

Schemas: https://opentimelineio.readthedocs.io/en/latest/tutorials/otio-serialized-schema.html (``global_start_time`` is
the time code of the first frame). What they have no place for is in the metadata, below ``msauto``. Times of a file are
added as exact seconds, whatever their rates are: a sound track counts samples.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from msauto.documents.text_files import check_json_size
from msauto.model.timecode import exact_rate
from msauto.plugins.timelines.timeline import (
    EditMarker,
    EditSegment,
    EditTimeline,
    TimelineClock,
    TimelineError,
    WrittenTimeline,
    color_of,
    extra_values,
)

JsonObject = dict[str, Any]

# Reading -------------------------------------------------------------------------------------------------------

_KINDS: Final[Mapping[str, str]] = {
    "Clip.1": "clip",
    "Clip.2": "clip",
    "Filler.1": "gap",  # the former name
    "Gap.1": "gap",
    "Sequence.1": "track",  # the former name
    "Stack.1": "stack",
    "Track.1": "track",
    "Transition.1": "transition",
}
_MARKED_RANGES: Final[Mapping[str, str]] = {
    "Marker.1": "range",
    "Marker.2": "marked_range",
    "Marker.3": "marked_range",
}
_AGAIN: Final = "export the timeline as OTIO again"
_MOST_ITEMS: Final = 100_000
_MOST_LEVELS: Final = 32
_MOST_RATES: Final = 16  # sums have a common denominator: it stays small
_LEAST_RATE, _MOST_RATE = Fraction(1, 1000), 10**9
_MOST_VALUE: Final = 10**15
_MOST_SECONDS: Final = 10**9


def read_otio(text: str, clock: TimelineClock) -> EditTimeline:
    """Read clips of video tracks (else of all) as segments, and markers of clips, tracks and the timeline.

    Without an origin, positions count from the start of the timeline. Disabled items count, and effects change no time.
    """
    check_json_size(text)
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise TimelineError(f"not a valid OTIO file: {error.msg}", _AGAIN, error.lineno) from error
    except (ValueError, RecursionError) as error:  # thousands of digits, or of brackets
        raise TimelineError(
            "not a valid OTIO file: a number or the nesting is too large", _AGAIN
        ) from error
    root = _Object(content if isinstance(content, dict) else {}, "")
    if root.schema != "Timeline.1":
        raise TimelineError(
            f"the OTIO file holds {root.schema or 'no schema'}, not Timeline.1", "export a timeline"
        )
    return _Reading(clock).read(root)


class _Object(Struct, frozen=True):
    """An object of the file, and its place there, such as ``tracks.children[0]``; each value has the right type."""

    values: Mapping[str, Any]
    place: str

    @property
    def schema(self) -> str:
        """The name and version of its schema; empty if the file names none."""
        return self.text("OTIO_SCHEMA")[:60]

    def text(self, key: str) -> str:
        """Return a text; empty if the file has none."""
        value = str(self._value(key, str, "a text") or "")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise self.error(key, "holds half of a character") from error
        return value

    def number(self, key: str) -> int | float:
        """Return a number that is finite and bounded."""
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(key, "is not a number")
        if not abs(value) <= _MOST_VALUE:  # NaN is not, either
            raise self.error(key, f"is not a number of at most {_MOST_VALUE}")
        return value

    def child(self, key: str) -> _Object | None:
        """Return an object of this one; ``None`` if the file has none."""
        value = self._value(key, dict, "an object")
        return None if value is None else _Object(value, self.place_of(key))

    def children(self, key: str) -> Iterator[_Object]:
        """Return the objects of a list."""
        for number, value in enumerate(self._value(key, list, "a list") or ()):
            name = f"{key}[{number}]"
            if not isinstance(value, dict):
                raise self.error(name, "is not an object")
            yield _Object(value, self.place_of(name))

    def place_of(self, key: str) -> str:
        """Return the place of a value."""
        return f"{self.place}.{key}".strip(".")

    def error(self, key: str, what: str) -> TimelineError:
        """Return the error that a value is not as the schema has it."""
        return TimelineError(f"not a valid OTIO file: {self.place_of(key)} {what}", _AGAIN)

    def _value(self, key: str, kind: type, name: str) -> Any:
        value = self.values.get(key)
        if value is None or isinstance(value, kind):
            return value
        raise self.error(key, f"is not {name}")


class _Range(Struct, frozen=True):
    """A start and a duration, in seconds."""

    start: Fraction
    duration: Fraction

    @property
    def end(self) -> Fraction:
        """Where it ends: the first moment after it."""
        return self.start + self.duration

    def __contains__(self, time: Fraction) -> bool:
        return self.start <= time < self.end


class _OtioItem(Struct, frozen=True):
    """What a track or a stack holds. ``shown``: its part that the timeline shows; ``None`` if the file has no range."""

    source: _Object
    kind: str
    shown: _Range | None
    children: list[_OtioItem]


_START: Final = Fraction(0)


class _Reading(Struct):
    """The reading of one file: its places become frames of the clip."""

    clock: TimelineClock
    shift: int = 0  # from frames of the file to those of the clip
    timeline: EditTimeline = field(default_factory=EditTimeline)
    items: int = 0
    rates: dict[int | float, Fraction] = {}

    def read(self, root: _Object) -> EditTimeline:
        tracks = root.child("tracks")
        if tracks is None or tracks.schema != "Stack.1":
            raise root.error("tracks", "is not a Stack.1")
        first = self._frames(self._time(root, "global_start_time"), root)
        if self.clock.origin is not None:
            self.shift = first - self.clock.first
        stack = self._item(tracks, 0)
        self._read_markers(stack, _START)
        has_video = any(map(_is_video, stack.children))
        for child in stack.children:
            self._read_item(child, _START, shows_clips=_is_video(child) or not has_video)
        return self.timeline

    # The tree of the items, each with its part that is shown

    def _item(self, source: _Object, level: int) -> _OtioItem:
        self.items += 1
        if level > _MOST_LEVELS or self.items > _MOST_ITEMS:
            raise source.error(
                "children", f"has more than {_MOST_LEVELS} levels, or the file {_MOST_ITEMS} items"
            )
        kind = _KINDS.get(source.schema)
        if kind is None:
            raise source.error(
                "OTIO_SCHEMA", f"is {source.schema!r}, not one of {', '.join(_KINDS)}"
            )
        children = []
        if kind in {"stack", "track"}:
            children = [self._item(child, level + 1) for child in source.children("children")]
        shown = self._range(source, "source_range") or self._available(source, kind, children)
        return _OtioItem(source, kind, shown, children)

    def _available(self, source: _Object, kind: str, children: list[_OtioItem]) -> _Range | None:
        """Return all of an item, which has no range of its own."""
        match kind:
            case "clip":
                media = _active_media(source)
                return None if media is None else self._range(media, "available_range")
            case "transition":
                before = self._time(source, "in_offset")
                return _Range(-before, before + self._time(source, "out_offset"))
            case "stack":
                return _whole_stack(children)
            case "track":
                return _whole_track(children)
        return None

    def _range(self, source: _Object, key: str) -> _Range | None:
        found = source.child(key)
        if found is None:
            return None
        duration = self._time(found, "duration")
        if duration < 0:
            raise found.error("duration", "is negative")
        return _Range(self._time(found, "start_time"), duration)

    def _time(self, source: _Object, key: str) -> Fraction:
        """Return a time in seconds; 0 if the file has none."""
        time = source.child(key)
        if time is None:
            return _START
        value = time.number("value")
        return Fraction(value) / self._rate(time) if value else _START

    def _rate(self, time: _Object) -> Fraction:
        """Return the units a second that a time counts."""
        written = time.number("rate")
        if written not in self.rates:
            if not _LEAST_RATE <= written <= _MOST_RATE:
                raise time.error("rate", "is not a rate")
            if len(self.rates) == _MOST_RATES:
                raise time.error(
                    "rate", f"is one more than the {_MOST_RATES} rates that a file may have"
                )
            self.rates[written] = exact_rate(written) or Fraction(written)
        return self.rates[written]

    # What is read of each item

    def _read_item(self, item: _OtioItem, start: Fraction | None, *, shows_clips: bool) -> None:
        """Read an item that the timeline shows from ``start`` on; ``None``: an item before it has no range."""
        if item.kind == "transition":
            return
        zero = None if start is None or item.shown is None else start - item.shown.start
        self._read_markers(item, zero)
        if item.kind == "clip" and shows_clips:
            self._read_clip(item.source, _placed(item.source, item.shown), zero)
        for child in item.children:
            self._read_item(child, zero, shows_clips=shows_clips)
            follows = item.kind == "track" and child.kind != "transition"
            if follows and zero is not None:
                zero = None if child.shown is None else zero + child.shown.duration

    def _read_clip(self, source: _Object, shown: _Range, zero: Fraction | None) -> None:
        point = EditMarker(self._position(shown.start, zero, source), source.text("name"))
        end = self._position(shown.end, zero, source)
        self._add(point, end - point.start, source)

    def _add(self, point: EditMarker, duration: int, source: _Object) -> None:
        metadata = source.child("metadata")
        further = "" if metadata is None else metadata.text("msauto")
        self.timeline.add(point, duration, further=further)

    def _read_markers(self, item: _OtioItem, zero: Fraction | None) -> None:
        """Read the markers of an item, whose times count from ``zero``."""
        for marker in item.source.children("markers"):
            key = _MARKED_RANGES.get(marker.schema)
            if key is None:
                raise marker.error(
                    "OTIO_SCHEMA", f"is {marker.schema!r}, not one of {', '.join(_MARKED_RANGES)}"
                )
            marked = self._range(marker, key)
            if marked is None:
                raise marker.error(key, "is missing")
            if item.kind == "clip" and marked.start not in _placed(item.source, item.shown):
                continue  # the timeline does not show this part of the clip
            frame = self._position(marked.start, zero, marker)
            duration = self._position(marked.end, zero, marker) - frame
            written = (marker.child(key) or marker).child("duration")
            if written is None or written.number("value") <= 1:
                duration = 1  # one frame of the file, which may be two of the clip
            point = EditMarker(
                frame, marker.text("name"), marker.text("comment"), color=_color(marker)
            )
            self._add(point, duration, marker)

    def _position(self, time: Fraction, zero: Fraction | None, source: _Object) -> int:
        frame = self._frames(_placed(source, zero) + time, source) + self.shift
        if frame < 0:
            remedy = "set origin= to the time code of the first frame"
            name = source.text("name")
            raise TimelineError(f"{name[:60]!r} is before the first frame of the clip", remedy)
        return frame

    def _frames(self, seconds: Fraction, source: _Object) -> int:
        if abs(seconds) > _MOST_SECONDS:
            raise source.error("", f"is more than {_MOST_SECONDS} seconds away")
        return self.clock.frames(seconds)


Known = TypeVar("Known", Fraction, _Range)


def _placed(source: _Object, value: Known | None) -> Known:
    """Return where an item is, or raise that the file does not show it."""
    if value is None:
        why = "has no place: it, or an item before it, has neither a source_range nor an available_range"
        raise source.error("", why)
    return value


def _is_video(item: _OtioItem) -> bool:
    return item.kind == "track" and item.source.text("kind") == "Video"


def _active_media(clip: _Object) -> _Object | None:
    """Return the media of a clip, in either version of its schema."""
    if clip.schema == "Clip.1":
        return clip.child("media_reference")
    references = clip.child("media_references")
    return None if references is None else references.child(clip.text("active_media_reference_key"))


def _whole_stack(children: Iterable[_OtioItem]) -> _Range | None:
    """Return the range of a stack: its longest child."""
    longest = _START
    for child in children:
        if child.shown is None:
            return None
        longest = max(longest, child.shown.duration)
    return _Range(_START, longest)


def _whole_track(children: list[_OtioItem]) -> _Range | None:
    """Return the range of a track: one child after another, and transitions where they begin and end it."""
    duration = _START
    for child in children:
        if child.shown is None:
            return None
        if child.kind != "transition":
            duration += child.shown.duration
    if children and children[0].kind == "transition" and children[0].shown is not None:
        duration -= children[0].shown.start
    if children and children[-1].kind == "transition" and children[-1].shown is not None:
        duration += children[-1].shown.end
    return _Range(_START, duration)


def _color(marker: _Object) -> str:
    """Return the color of a marker: a name, or since version 3 an object that has one."""
    color = marker.child("color") if marker.schema == "Marker.3" else None
    name = marker.text("color") if color is None else color.text("name")
    return name.casefold()


# Writing -------------------------------------------------------------------------------------------------------


def write_otio(timeline: EditTimeline, clock: TimelineClock) -> WrittenTimeline:
    """Write segments as clips of video tracks, as many as overlaps need, and markers as those of the timeline."""
    rate = float(clock.rate)
    tracks: list[list[Any]] = []
    ends: list[int] = []  # of the last clip of each track
    for segment in sorted(timeline.segments, key=lambda segment: segment.start):
        at = next((at for at, end in enumerate(ends) if end <= segment.start), len(ends))
        if at == len(ends):
            ends.append(0)
            tracks.append([])
        if segment.start > ends[at]:
            tracks[at].append(
                _item_json("Gap.1", "", {}, _range_json(0, segment.start - ends[at], rate))
            )
        ends[at] = segment.start + segment.duration
        place = _range_json(segment.start, segment.duration, rate)
        tracks[at].append(
            _item_json("Clip.2", segment.title, _metadata(segment), place) | _no_media()
        )
    stack = _item_json("Stack.1", "tracks", {}, None)
    stack["markers"] = [_marker_json(marker, rate) for marker in timeline.markers]
    stack["children"] = []
    for number, children in enumerate(tracks, 1):
        track = _item_json("Track.1", f"V{number}", {}, None)
        stack["children"].append(track | {"children": children, "kind": "Video"})
    root = {
        **_named("Timeline.1", timeline.title, {}),
        "global_start_time": _time_json(clock.first, rate) if clock.first else None,
        "tracks": stack,
    }
    return WrittenTimeline(f"{json.dumps(root, indent=4, ensure_ascii=False)}\n")


def _named(schema: str, name: str, metadata: Mapping[str, str]) -> JsonObject:
    return {"OTIO_SCHEMA": schema, "metadata": metadata, "name": name}


def _item_json(
    schema: str, name: str, metadata: Mapping[str, str], place: JsonObject | None
) -> JsonObject:
    return {
        **_named(schema, name, metadata),
        "source_range": place,
        "effects": [],
        "markers": [],
        "enabled": True,
        "color": None,
    }


def _no_media() -> JsonObject:
    missing = _named("MissingReference.1", "", {}) | {
        "available_range": None,
        "available_image_bounds": None,
    }
    return {
        "media_references": {"DEFAULT_MEDIA": missing},
        "active_media_reference_key": "DEFAULT_MEDIA",
    }


def _marker_json(marker: EditMarker, rate: float) -> JsonObject:
    return {
        **_named("Marker.2", marker.title, _metadata(marker)),
        "color": color_of(marker.track).upper(),
        "marked_range": _range_json(marker.start, 1, rate),
        "comment": marker.comment,
    }


def _range_json(start: int, duration: int, rate: float) -> JsonObject:
    times = {"duration": _time_json(duration, rate), "start_time": _time_json(start, rate)}
    return {"OTIO_SCHEMA": "TimeRange.1", **times}


def _time_json(frames: int, rate: float) -> JsonObject:
    return {"OTIO_SCHEMA": "RationalTime.1", "rate": rate, "value": float(frames)}


def _metadata(item: EditMarker | EditSegment) -> dict[str, str]:
    values = json.loads(extra_values(item, item.title) or "{}")
    values.pop("comment", None)  # it has its own place
    return {"msauto": json.dumps(values)} if values else {}
