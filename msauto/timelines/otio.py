"""OpenTimelineIO files, by opentimelineio (extra ``otio``).

Format: https://opentimelineio.readthedocs.io/ (Timeline, Track, Clip, Marker; ``global_start_time`` is the time code of
the first frame). What it has no place for is in the metadata, below ``msauto``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from msauto.timelines.clock import TimelineClock, parse_rate
from msauto.timelines.colors import color_of
from msauto.timelines.extra_values import extra_values, with_extra_values
from msauto.timelines.timeline import (
    EditMarker,
    EditSegment,
    EditTimeline,
    TimelineError,
    WrittenTimeline,
)


def _library() -> Any:
    try:
        import opentimelineio
    except ImportError as error:
        raise TimelineError("OTIO needs opentimelineio", "pip install 'msauto[otio]'") from error
    return opentimelineio


# Reading -------------------------------------------------------------------------------------------------------


def read_otio(text: str, clock: TimelineClock) -> EditTimeline:
    """Read clips of video tracks (else of all) as segments, and markers of clips, tracks and the timeline.

    Without an origin, positions count from the start of the timeline.
    """
    otio = _library()
    try:
        root = otio.adapters.read_from_string(text, "otio_json")
        if not isinstance(root, otio.schema.Timeline):
            raise TimelineError(f"the OTIO file holds {type(root).__name__}, not Timeline", "export a timeline")
        return _OtioReader(otio, root, clock).read()
    except TimelineError:
        raise
    except (otio.exceptions.OTIOError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise TimelineError(f"not a valid OTIO file: {error}", "export the timeline as OTIO again") from error


class _OtioReader:
    """Reads one timeline: places in it become frames of the clip."""

    def __init__(self, otio: Any, root: Any, clock: TimelineClock) -> None:
        self._otio = otio
        self._root = root
        self._clock = clock
        self._shift = 0
        if clock.origin is not None:
            start = root.global_start_time
            self._shift = (0 if start is None else self._frames(start)) - clock.first

    def read(self) -> EditTimeline:
        """Return the markers and segments."""
        timeline = EditTimeline(title=self._root.name)
        for item in (self._root.tracks, *self._root.find_children(descended_from_type=self._otio.core.Item)):
            for marker in item.markers:
                if self._is_shown(item, marker):
                    self._add_marker(timeline, item, marker)
        for track in self._root.video_tracks() or self._root.tracks:
            timeline.segments += map(self._segment, track.find_clips())
        return timeline

    def _is_shown(self, item: Any, marker: Any) -> bool:
        """Return whether a marker of a clip is in the part of it that the timeline shows."""
        is_clip = isinstance(item, self._otio.schema.Clip)
        return not is_clip or item.trimmed_range().contains(marker.marked_range.start_time)

    def _add_marker(self, timeline: EditTimeline, item: Any, marker: Any) -> None:
        place = marker.marked_range
        frame = self._position(item.transformed_time(place.start_time, self._root.tracks), marker.name)
        if place.duration.value > 1:
            frames = self._frames(place.duration)
            timeline.segments.append(EditSegment(frame, frames, marker.name or marker.comment))
            return
        found = EditMarker(frame, marker.name, marker.comment, color=(marker.color or "").casefold())
        timeline.markers.append(with_extra_values(found, _extra(marker), lambda each: each.title, 1))

    def _segment(self, clip: Any) -> EditSegment:
        place = clip.transformed_time_range(clip.trimmed_range(), self._root.tracks)
        segment = EditSegment(self._position(place.start_time, clip.name), self._frames(place.duration), clip.name)
        return with_extra_values(segment, _extra(clip), lambda each: each.title, 1)

    def _position(self, time: Any, name: str) -> int:
        frame = self._frames(time) + self._shift
        if frame < 0:
            raise TimelineError(
                f"{name!r} is before the first frame of the clip", "set origin= to the time code of the first frame"
            )
        return frame

    def _frames(self, time: Any) -> int:
        exact = Fraction(time.value) / parse_rate(time.rate) * self._clock.rate
        return int(exact + Fraction(1, 2)) if exact >= 0 else -int(Fraction(1, 2) - exact)


def _extra(item: Any) -> str:
    found = item.metadata.get("msauto")
    return str(found) if found else ""


# Writing -------------------------------------------------------------------------------------------------------


def write_otio(timeline: EditTimeline, clock: TimelineClock) -> WrittenTimeline:
    """Write segments as clips of video tracks, as many as overlaps need, and markers as those of the timeline."""
    otio = _library()
    writer = _OtioWriter(otio, clock)
    start = writer.time(clock.first) if clock.first else None
    root = otio.schema.Timeline(timeline.title, global_start_time=start)
    for number, segments in enumerate(_lanes(timeline), 1):
        track = otio.schema.Track(f"V{number}", kind=otio.schema.TrackKind.Video)
        track.extend(writer.children(segments))
        root.tracks.append(track)
    root.tracks.markers.extend(map(writer.marker, timeline.markers))
    return WrittenTimeline(f"{root.to_json_string()}\n")


def _lanes(timeline: EditTimeline) -> list[list[EditSegment]]:
    """Return segments in as few lanes as hold them without overlaps."""
    lanes: list[list[EditSegment]] = []
    for segment in sorted(timeline.segments, key=lambda each: each.start):
        for lane in lanes:
            if lane[-1].start + lane[-1].duration <= segment.start:
                lane.append(segment)
                break
        else:
            lanes.append([segment])
    return lanes


class _OtioWriter:
    """Makes objects of the library at one rate."""

    def __init__(self, otio: Any, clock: TimelineClock) -> None:
        self._otio = otio
        self._rate = float(clock.rate)

    def time(self, frames: int) -> Any:
        """Return a time of the library."""
        return self._otio.opentime.RationalTime(frames, self._rate)

    def marker(self, marker: EditMarker) -> Any:
        """Return a marker of one frame."""
        return self._otio.schema.Marker(
            name=marker.title,
            marked_range=self._range(marker.frame, 1),
            color=color_of(marker.track).upper(),
            comment=marker.comment,
            metadata=_metadata(marker),
        )

    def children(self, segments: list[EditSegment]) -> Iterator[Any]:
        """Yield the clips of a track, with gaps between them."""
        end = 0
        for segment in segments:
            if segment.start > end:
                yield self._otio.schema.Gap(source_range=self._range(0, segment.start - end))
            end = segment.start + segment.duration
            place = self._range(segment.start, segment.duration)
            yield self._otio.schema.Clip(segment.title, source_range=place, metadata=_metadata(segment))

    def _range(self, start: int, duration: int) -> Any:
        return self._otio.opentime.TimeRange(self.time(start), self.time(duration))


def _metadata(item: EditMarker | EditSegment) -> dict[str, str]:
    extra = extra_values(item, item.title)
    values = json.loads(extra or "{}")
    values.pop("comment", None)  # it has its own place
    return {"msauto": json.dumps(values)} if values else {}
