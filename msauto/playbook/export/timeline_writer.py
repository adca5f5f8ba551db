"""Live assets as timelines for other programs: a pure function of live values, offline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from msauto.interface import fields as registry
from msauto.model.live import Marker, Segment, whole
from msauto.model.snapshot import AssetSnapshot
from msauto.model.timecode import Timecode
from msauto.timelines.clock import TimelineClock
from msauto.timelines.formats import WRITERS
from msauto.timelines.timeline import (
    MARKER_TEXTS,
    SEGMENT_TEXTS,
    EditMarker,
    EditSegment,
    EditTimeline,
    TimelineError,
    WrittenTimeline,
)

_HELD = frozenset({*MARKER_TEXTS, "rating", "track"})


@dataclass(frozen=True, slots=True)
class TimelineForm:
    """The format to write, by its ending, and the time code of the first frame, if it is not 0."""

    ending: str
    origin: Timecode | None = None

    def write(self, snapshot: AssetSnapshot) -> WrittenTimeline:
        """Write an asset; raises :class:`TimelineError` if it has no frame rate."""
        rate = snapshot.asset.rate
        if rate is None:
            raise TimelineError("the server reports no frame rate of it")
        timeline, warnings = timeline_of(snapshot)
        written = WRITERS[self.ending](timeline, TimelineClock(rate, self.origin))
        return replace(written, warnings=(*warnings, *written.warnings))


def timeline_of(snapshot: AssetSnapshot) -> tuple[EditTimeline, tuple[str, ...]]:
    """Return the markers and segments of an asset, and what a timeline cannot hold."""
    asset = snapshot.asset
    timeline = EditTimeline(title=asset.title or snapshot.title)
    warnings = []
    for marker in asset.markers:
        frame = marker.frame + snapshot.origin
        if frame < 0 or (asset.frames is not None and frame >= asset.frames):
            warnings.append(f"marker {marker.uid} is left out: it lies outside the clip, at frame {frame}")
            continue
        timeline.markers.append(_marker(marker, frame))
        warnings += _not_held(marker)
    for segment in asset.segments:
        start = segment.start + snapshot.origin
        if start < 0 or segment.duration <= 0:
            length = f"it starts at frame {start} and is {segment.duration} frames long"
            warnings.append(f"segment {segment.number} is left out: {length}")
            continue
        timeline.segments.append(_segment(segment, start))
    return timeline, tuple(warnings)


def _marker(marker: Marker, frame: int) -> EditMarker:
    texts: dict[str, Any] = {name: marker.fields.get(name, "") for name in MARKER_TEXTS}
    track = registry.track_named(marker.track)
    return EditMarker(
        frame,
        **texts,
        rating=whole(marker.fields.get("rating")) or 0,
        track=track if track in registry.TRACKS else registry.DEFAULT_TRACK,
    )


def _not_held(marker: Marker) -> Iterator[str]:
    if registry.track_named(marker.track) not in registry.TRACKS:
        yield f"track of marker {marker.uid}, which no task can set: {marker.track}"
    others = [name for name, text in marker.fields.items() if text and name not in _HELD]
    if others:
        yield f"marker {marker.uid} has attributes that no timeline holds: {', '.join(sorted(others))}"


def _segment(segment: Segment, start: int) -> EditSegment:
    texts = {name: segment.text(name) or "" for name in SEGMENT_TEXTS}
    number = segment.number if segment.number >= 0 else None
    return EditSegment(start, segment.duration, **texts, number=number)
