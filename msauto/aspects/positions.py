"""Desired positions to frames of one clip, checked against its length, and to the frames of a request.

A frame counts from the first frame of the file. With the dialect ``position_origin: in`` the server counts from the in
point (``first_frame``): :mod:`msauto.server.reader` translates what is read, :func:`to_wire` what is sent.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from msauto.aspects.plan_builder import PlanContext, refuse
from msauto.errors import PlanningError
from msauto.model.desired import Position, TaskSource
from msauto.model.live import Asset, why_no_rate
from msauto.model.snapshot import Json, Snapshot
from msauto.model.timecode import Timecode, TimecodeError, show_rate, show_timecode
from msauto.primitives.decimals import read_whole


def show_length(asset: Asset) -> str:
    """Describe the length of a clip, in frames and as a time code."""
    frames = asset.frames
    rate = asset.rate
    if frames is None:
        return "the clip reports no length"
    if rate is None:
        return f"the clip is {frames} frames long"
    return f"the clip is {frames} frames long ({show_timecode(frames, rate)} at {show_rate(rate)})"


def to_frames(position: Position, asset: Asset, source: TaskSource) -> int:
    """Return whole frames from the first frame of the file; never negative. Plain frames need no rate."""
    rate = asset.rate
    if rate is None:
        if position.timecode.kind != "frames":
            raise refuse(
                f"{position} needs a frame rate, and {why_no_rate(asset)}",
                source,
                "write the position as a number of frames",
            )
        rate = Fraction(1)
    try:
        frames = position.to_frames(rate)
    except TimecodeError as error:
        raise refuse(f"{error}; {show_length(asset)}", source, "correct the time code") from error
    if frames >= 0:
        return frames
    where = (
        f"{position} lies {-frames} frame{'s' if frames < -1 else ''} before the clip's first frame"
    )
    origin = position.origin
    if origin is None:
        raise refuse(f"{where}; {show_length(asset)}", source, "correct the position")
    frame = position.timecode.to_frames(rate)
    meant = ""
    if asset.frames is not None and frame < asset.frames:
        meant = f" ({show_timecode(frame + origin.to_frames(rate), rate)} for frame {frame})"
    raise refuse(
        f"{where}, which has the position {origin} in this task (`origin`); {show_length(asset)}",
        source,
        f"write the task's positions from {origin} on{meant}, or take `origin` out",
    )


def to_point(position: Position, asset: Asset, source: TaskSource) -> int:
    """Return the frame of a position that must lie within the clip."""
    frame = to_frames(position, asset, source)
    length = asset.frames
    if length is not None and frame >= length:
        shown = f"frame {frame}"
        if position.timecode.kind != "frames":
            shown = f"{position} ({shown})"
        raise beyond(f"{shown} lies beyond the end", asset, source)
    return frame


def beyond(what: str, asset: Asset, source: TaskSource) -> PlanningError:
    """Make the error of what does not fit into the clip; the message names the clip's length in frames."""
    return refuse(
        f"{what}: {show_length(asset)}", source, "correct the position, or look at the clip"
    )


class InAndOut(NamedTuple):
    """From the in point to the out point, both in frames of the file; ``None`` where the server does not report it.

    The out point may be the last frame or the one after it: the interface does not specify which.
    """

    first: int | None
    last: int | None

    @classmethod
    def of(cls, asset: Asset, after: Snapshot | None = None) -> InAndOut:
        """Read both, from the snapshot after the run where it is given; an out point of 0 counts as missing."""
        attributes = asset.attributes
        first = attributes.get("first_frame")
        last = attributes.get("last_frame")
        if after is not None:
            fields = after.get("field", {})
            if "first_frame" in fields:
                first = str(fields["first_frame"])
            if "last_frame" in fields:
                last = str(fields["last_frame"])
        return cls(read_whole(first), read_whole(last) or None)

    @property
    def is_reversed(self) -> bool:
        """Whether the in point lies after the out point."""
        return self.first is not None and self.last is not None and self.first > self.last

    def misses(self, first: int, last: int) -> str | None:
        """Describe which of the frames from first to last are outside."""
        if self.first is not None and first < self.first:
            verb = "lies" if last < self.first else "begins"
            return f"{verb} before the IN point (frame {self.first})"
        if self.last is not None and last > self.last:
            verb = "lies" if first > self.last else "ends"
            return f"{verb} after the OUT point (frame {self.last})"
        return None


def position_at(frames: Json) -> Position:
    """Return the position of a frame of the file."""
    return Position(Timecode.parse(str(frames)))


def to_wire(frame: int, origin: int, source: TaskSource) -> int:
    """Return a frame as the server counts it, whose count begins at ``origin``."""
    if frame < origin:
        raise refuse(
            f"frame {frame} lies before the in point (frame {origin}), from which this server counts",
            source,
            "move the in point first (first_frame), in a run of its own",
        )
    return frame - origin


def check_in_point_stays(context: PlanContext) -> None:
    """Refuse positions of a server that counts from the in point, where that moves in the same run or meanwhile."""
    if not context.server.dialect.counts_from_in:
        return
    context.builder.look("field first_frame")
    for change in context.builder.changes:
        if change.aspect == "field" and change.key == "first_frame":
            raise refuse(
                "first_frame changes, and this server counts the positions of segments and markers from it",
                change.source,
                "change first_frame in a run of its own, before segments and markers",
            )
