"""The commands for segments and markers (interface "Asset commands")."""

from __future__ import annotations

from msauto.simulator.commands.call import CommandCall
from msauto.simulator.http.answers import RefusalError
from msauto.simulator.state.state import SimMarker, SimSegment

TRACKS = (
    "General",
    "Secondary Event",
    "Cue Point",
    "Goto Cue",
    "Game Time",
    "Icon",
    "Picture",
    "Profanity Start",
    "Profanity End",
)
_MARKER_DEFAULTS = {"user": "", "title": "", "comment": "", "track": "General", "keywords": "", "rating": "0"}


def create_segment(call: CommandCall) -> None:
    """CREATESEGMENT: add a segment; `segment_update` of the dialect decides for a number that exists."""
    title = call.request.param("title")
    segment = SimSegment(
        call.integer("seg_num"),
        call.frames("start_frame") + call.origin,
        call.frames("duration"),
        [title] if title else [],
        keywords=call.request.param("keywords") or "",
    )
    _check_segment(call, segment)
    clip, existing = call.clip, call.clip.segment(segment.number)
    if existing is None or call.dialect.segment_update == "duplicate":
        clip.segments.append(segment)
    elif call.dialect.segment_update == "overwrite":
        clip.segments[clip.segments.index(existing)] = segment
    elif call.dialect.segment_update == "refuse":
        raise RefusalError(409, f"segment {segment.number} exists")


def _check_segment(call: CommandCall, segment: SimSegment) -> None:
    end = segment.start + segment.duration
    if segment.duration <= 0:
        raise RefusalError(400, "duration is 0")
    if end > call.clip.length and call.dialect.beyond_end == "refuse":
        raise RefusalError(400, f"the segment ends at {end}, beyond the clip")
    if call.dialect.segment_overlap == "refuse" and any(
        other.number != segment.number and other.start < end and segment.start < other.start + other.duration
        for other in call.clip.segments
    ):
        raise RefusalError(409, "the segment overlaps another segment")


def create_segmentation(call: CommandCall) -> None:
    """CREATESEGMENTATION: divide the whole asset into segments of one duration; the last one can be shorter."""
    duration, length = call.frames("duration"), call.clip.length
    if duration <= 0:
        raise RefusalError(400, "duration is 0")
    kept = call.clip.segments if call.dialect.segmentation == "add" else []
    first = max((segment.number for segment in kept), default=0) + 1
    call.clip.segments = kept + [
        SimSegment(first + index, start, min(duration, length - start), _titles(call, index))
        for index, start in enumerate(range(0, length, duration))
    ]


def _titles(call: CommandCall, index: int) -> list[str]:
    title = call.request.param("title")
    if not title:
        return []
    return [f"{title} {index + 1}" if call.dialect.segmentation_title == "numbered" else title]


def delete_segment(call: CommandCall) -> None:
    """DELETESEGMENT: delete every segment with this number."""
    number = call.integer("seg_num")
    if call.clip.segment(number) is None and call.dialect.absent_item == "refuse":
        raise RefusalError(404, f"segment {number} not found")
    call.clip.segments = [segment for segment in call.clip.segments if segment.number != number]


def create_marker(call: CommandCall) -> None:
    """CREATEMARKER: add a marker, or change the one with this uid; -1 gives a new uid."""
    uid, marker = call.integer("uid"), call.clip.marker(call.integer("uid"))
    sent = {name: value for name, value in call.request.params if name not in ("command", "uid", "frame")}
    if sent.get("track", "General") not in TRACKS:
        raise RefusalError(400, f"unknown track {sent['track']}")
    if marker is not None:
        if call.request.param("frame") is not None:
            marker.pos = _marker_position(call)
        marker.fields = (marker.fields if call.dialect.marker_update == "keep" else _MARKER_DEFAULTS) | sent
    elif uid == -1 or call.dialect.unknown_uid == "create":
        number = call.clip.new_uid() if uid == -1 else uid
        call.clip.markers.append(SimMarker(number, _marker_position(call), _MARKER_DEFAULTS | sent))
    elif call.dialect.unknown_uid == "refuse":
        raise RefusalError(404, f"marker {uid} not found")


def _marker_position(call: CommandCall) -> int:
    position = call.integer("frame") + call.origin
    beyond = position >= call.clip.length and call.dialect.beyond_end == "refuse"
    if position < 0 or beyond:
        raise RefusalError(400, f"frame {position} is outside the clip")
    return position


def delete_marker(call: CommandCall) -> None:
    """DELETEMARKER: delete the marker with this uid."""
    uid = call.integer("uid")
    if call.clip.marker(uid) is None and call.dialect.absent_item == "refuse":
        raise RefusalError(404, f"marker {uid} not found")
    call.clip.markers = [marker for marker in call.clip.markers if marker.uid != uid]
