"""Live markers and segments as timelines of other programs: ``msauto export --format``."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, structs

from msauto.errors import MsautoError
from msauto.model import fields as registry
from msauto.model import live
from msauto.model.timecode import Timecode
from msauto.plugins.timelines import timeline as timelines
from msauto.plugins.timelines.formats import WRITERS
from msauto.plugins.timelines.timeline import TimelineError, parse_origin
from msauto.primitives.decimals import read_whole

_HELD = frozenset({*timelines.MARKER_TEXTS, "rating", "track"})


class TimelineForm(Struct, frozen=True):
    """The format to write, by its ending, and the time code of the first frame, if it is not 0."""

    ending: str
    origin: Timecode | None = None

    @classmethod
    def of(cls, ending: str, origin: str | None) -> TimelineForm:
        """Return the format, with an origin such as ``10:00:00:00``; raises :class:`MsautoError`."""
        if origin is None:
            return cls(ending)
        if ending == "vtt":
            raise MsautoError(
                "the times of WebVTT count from the first frame", remedy="leave out --origin"
            )
        try:
            return cls(ending, parse_origin(origin))
        except TimelineError as error:
            raise MsautoError(str(error), remedy="write --origin 10:00:00:00") from error

    def write(self, snapshot: live.AssetSnapshot) -> timelines.WrittenTimeline:
        """Write an asset that has a frame rate; raises :class:`MsautoError` for what the format cannot hold."""
        rate = snapshot.asset.rate
        assert rate is not None
        timeline, warnings = timeline_of(snapshot)
        try:
            written = WRITERS[self.ending](timeline, timelines.TimelineClock(rate, self.origin))
        except TimelineError as error:
            raise MsautoError(str(error), remedy=error.remedy) from error
        return structs.replace(written, warnings=(*warnings, *written.warnings))


def timeline_of(snapshot: live.AssetSnapshot) -> tuple[timelines.EditTimeline, tuple[str, ...]]:
    """Return the markers and segments of an asset, and what a timeline cannot hold."""
    asset = snapshot.asset
    timeline = timelines.EditTimeline(title=asset.title or snapshot.title)
    warnings = []
    for marker in asset.markers:
        frame = marker.frame
        is_behind = asset.frames is not None and frame >= asset.frames
        if frame < 0 or is_behind:
            warnings.append(
                f"marker {marker.uid} is left out: it lies outside the clip, at frame {frame}"
            )
        else:
            timeline.markers.append(_edit_marker(marker, warnings))
    for segment in asset.segments:
        start = segment.start
        if start < 0 or segment.duration <= 0:
            length = f"it starts at frame {start} and is {segment.duration} frames long"
            warnings.append(f"segment {segment.number} is left out: {length}")
            continue
        title, keywords = (segment.text(name) or "" for name in timelines.SEGMENT_TEXTS)
        number = segment.number if segment.number >= 0 else None
        edit_segment = timelines.EditSegment(start, segment.duration, title, keywords, number)
        timeline.segments.append(edit_segment)
    return timeline, tuple(warnings)


def _edit_marker(marker: live.Marker, warnings: list[str]) -> timelines.EditMarker:
    track = registry.track_named(marker.track)
    if track not in registry.TRACKS:
        track = registry.DEFAULT_TRACK
        warnings.append(f"track of marker {marker.uid}, which no task can set: {marker.track}")
    filled = {name for name, text in marker.fields.items() if text}
    others = filled - _HELD
    if others:
        names = ", ".join(sorted(others))
        warnings.append(f"marker {marker.uid} has attributes that no timeline holds: {names}")
    texts: dict[str, Any] = {name: marker.fields.get(name, "") for name in timelines.MARKER_TEXTS}
    rating = read_whole(marker.fields.get("rating")) or 0
    return timelines.EditMarker(marker.frame, **texts, rating=rating, track=track)
