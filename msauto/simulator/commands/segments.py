"""CREATESEGMENT, CREATESEGMENTATION and DELETESEGMENT (interface "Asset commands")."""

from __future__ import annotations

from msauto.simulator.commands.call import CommandCall
from msauto.simulator.http.answers import RefusalError
from msauto.simulator.state.state import SimSegment


def create_segment(call: CommandCall) -> None:
    """Add a segment; what happens to a number that exists is the dialect's `segment_update`."""
    title = call.request.param("title")
    segment = SimSegment(
        call.integer("seg_num"),
        call.frames("start_frame") + call.origin,
        call.frames("duration"),
        [title] if title else [],
        keywords=call.request.param("keywords") or "",
    )
    _check(call, segment)
    clip, existing = call.clip, call.clip.segment(segment.number)
    if existing is None or call.dialect.segment_update == "duplicate":
        clip.segments.append(segment)
    elif call.dialect.segment_update == "overwrite":
        clip.segments[clip.segments.index(existing)] = segment
    elif call.dialect.segment_update == "refuse":
        raise RefusalError(409, f"segment {segment.number} exists")


def create_segmentation(call: CommandCall) -> None:
    """Divide the whole asset into segments of one duration; the last one takes what is left."""
    duration, length = call.frames("duration"), call.clip.length
    if duration <= 0:
        raise RefusalError(400, "duration is nought")
    kept = call.clip.segments if call.dialect.segmentation == "add" else []
    first = max((segment.number for segment in kept), default=0) + 1
    starts = range(0, length, duration)
    call.clip.segments = kept + [
        SimSegment(first + index, start, min(duration, length - start), _titles(call, index))
        for index, start in enumerate(starts)
    ]


def delete_segment(call: CommandCall) -> None:
    """Delete every segment with this number."""
    number = call.integer("seg_num")
    kept = [segment for segment in call.clip.segments if segment.number != number]
    if len(kept) == len(call.clip.segments) and call.dialect.absent_item == "refuse":
        raise RefusalError(404, f"no segment {number}")
    call.clip.segments = kept


def _titles(call: CommandCall, index: int) -> list[str]:
    title = call.request.param("title")
    if not title:
        return []
    return [f"{title} {index + 1}" if call.dialect.segmentation_title == "numbered" else title]


def _check(call: CommandCall, segment: SimSegment) -> None:
    end = segment.start + segment.duration
    if segment.duration <= 0:
        raise RefusalError(400, "duration is nought")
    if end > call.clip.length and call.dialect.beyond_end == "refuse":
        raise RefusalError(400, f"the segment ends at {end}, beyond the clip")
    if call.dialect.segment_overlap == "refuse" and any(
        other.number != segment.number and other.start < end and segment.start < other.start + other.duration
        for other in call.clip.segments
    ):
        raise RefusalError(409, "the segment overlaps another one")
