"""OpenTimelineIO files, by opentimelineio (extra ``otio``).

Format: https://opentimelineio.readthedocs.io/ (Timeline, Track, Clip, Marker; ``global_start_time`` is the time code of
the first frame). What it has no place for is in the metadata, below ``msauto``.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from msauto.plugins.timelines.timeline import (
    EditMarker,
    EditSegment,
    EditTimeline,
    Item,
    TimelineClock,
    TimelineError,
    WrittenTimeline,
    color_of,
    extra_values,
    parse_rate,
    with_extra_values,
)


def _library() -> Any:
    try:
        import opentimelineio
    except ImportError as error:
        raise TimelineError("OTIO needs opentimelineio", "pip install opentimelineio") from error
    return opentimelineio


def read_otio(text: str, clock: TimelineClock) -> EditTimeline:
    """Read clips of video tracks (else of all) as segments, and markers of clips, tracks and the timeline.

    Without an origin, positions count from the start of the timeline.
    """
    otio = _library()
    try:
        root = otio.adapters.read_from_string(text, "otio_json")
        if not isinstance(root, otio.schema.Timeline):
            raise TimelineError(f"the OTIO file holds {type(root).__name__}, not Timeline", "export a timeline")
        return _read(otio, root, clock)
    except TimelineError:
        raise
    except (otio.exceptions.OTIOError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise TimelineError(f"not a valid OTIO file: {error}", "export the timeline as OTIO again") from error


def _read(otio: Any, root: Any, clock: TimelineClock) -> EditTimeline:
    """Return the items of a timeline of the library: places in it become frames of the clip."""
    timeline = EditTimeline(title=root.name)
    shift = 0
    if clock.origin is not None:
        start = root.global_start_time
        shift = (0 if start is None else _frames(start, clock)) - clock.first

    def position(time: Any, name: str) -> int:
        frame = _frames(time, clock) + shift
        if frame < 0:
            remedy = "set origin= to the time code of the first frame"
            raise TimelineError(f"{name!r} is before the first frame of the clip", remedy)
        return frame

    for item in (root.tracks, *root.find_children(descended_from_type=otio.core.Item)):
        for marker in item.markers:
            place, name = marker.marked_range, marker.name
            if isinstance(item, otio.schema.Clip) and not item.trimmed_range().contains(place.start_time):
                continue  # the timeline does not show this part of the clip
            frame = position(item.transformed_time(place.start_time, root.tracks), name)
            if place.duration.value > 1:
                timeline.segments.append(EditSegment(frame, _frames(place.duration, clock), name or marker.comment))
            else:
                point = EditMarker(frame, name, marker.comment, color=(marker.color or "").casefold())
                timeline.markers.append(_with_metadata(point, marker))
    for clip in (clip for track in root.video_tracks() or root.tracks for clip in track.find_clips()):
        place = clip.transformed_time_range(clip.trimmed_range(), root.tracks)
        segment = EditSegment(position(place.start_time, clip.name), _frames(place.duration, clock), clip.name)
        timeline.segments.append(_with_metadata(segment, clip))
    return timeline


def _frames(time: Any, clock: TimelineClock) -> int:
    exact = Fraction(time.value) / parse_rate(time.rate) * clock.rate
    return int(exact + Fraction(1, 2)) if exact >= 0 else -int(Fraction(1, 2) - exact)


def _with_metadata(item: Item, source: Any) -> Item:
    extra = source.metadata.get("msauto")
    return with_extra_values(item, str(extra) if extra else "", lambda each: each.title, 1)


def write_otio(timeline: EditTimeline, clock: TimelineClock) -> WrittenTimeline:
    """Write segments as clips of video tracks, as many as overlaps need, and markers as those of the timeline."""
    otio = _library()

    def time(frames: int) -> Any:
        return otio.opentime.RationalTime(frames, float(clock.rate))

    def span(start: int, duration: int) -> Any:
        return otio.opentime.TimeRange(time(start), time(duration))

    root = otio.schema.Timeline(timeline.title, global_start_time=time(clock.first) if clock.first else None)
    ends: list[int] = []  # of the last clip of each track
    for segment in sorted(timeline.segments, key=lambda each: each.start):
        at = next((at for at, end in enumerate(ends) if end <= segment.start), len(ends))
        if at == len(ends):
            ends.append(0)
            root.tracks.append(otio.schema.Track(f"V{at + 1}", kind=otio.schema.TrackKind.Video))
        if segment.start > ends[at]:
            root.tracks[at].append(otio.schema.Gap(source_range=span(0, segment.start - ends[at])))
        ends[at] = segment.start + segment.duration
        place = span(segment.start, segment.duration)
        root.tracks[at].append(otio.schema.Clip(segment.title, source_range=place, metadata=_metadata(segment)))
    for marker in timeline.markers:
        root.tracks.markers.append(
            otio.schema.Marker(
                name=marker.title,
                marked_range=span(marker.frame, 1),
                color=color_of(marker.track).upper(),
                comment=marker.comment,
                metadata=_metadata(marker),
            )
        )
    return WrittenTimeline(f"{root.to_json_string()}\n")


def _metadata(item: EditMarker | EditSegment) -> dict[str, str]:
    values = json.loads(extra_values(item, item.title) or "{}")
    values.pop("comment", None)  # it has its own place
    return {"msauto": json.dumps(values)} if values else {}
