"""Marker lists that Avid Media Composer exports as text.

Format: a line for each marker with tabs between user, time code, track, color, comment and length in frames (repository
adamhawkey/EDL_tools, Marker_tools/README.md). A line break in a comment continues it on the next line.
"""

from __future__ import annotations

import re

from msauto.timelines.clock import TimelineClock
from msauto.timelines.timeline import EditMarker, EditTimeline, TimelineError

_MARKER = re.compile(r"[^\t]*\t\d{1,2}[:;]\d{2}[:;]\d{2}[:;]\d{2,3}\t")


def is_marker_list(text: str) -> bool:
    """Return whether a text looks like a marker list of Avid."""
    return any(map(_MARKER.match, text.splitlines()[:20]))


def read_marker_list(text: str, clock: TimelineClock) -> EditTimeline:
    """Read markers; one of more than one frame becomes a segment."""
    timeline = EditTimeline()
    for number, line in _whole_lines(text):
        user, at, _, color, *rest = [*line.split("\t"), "", ""]
        comment, length = rest[0], rest[1] if len(rest) > 1 else ""
        frame = clock.position(at, number)
        frames = clock.duration(length, number) if length.strip() else 1
        marker = EditMarker(frame, comment.strip(), user=user.strip(), color=color.strip())
        timeline.add(marker, frames if frames > 1 else 0)
    return timeline


def _whole_lines(text: str) -> list[tuple[int, str]]:
    """Return the lines with their numbers, those that a comment continues on joined."""
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if _MARKER.match(line):
            lines.append((number, line))
        elif line.strip() and lines:
            first, begun = lines.pop()
            lines.append((first, f"{begun} {line.strip(' ')}"))
        elif line.strip():
            raise TimelineError(
                f"the line is not a marker of Avid: {line[:60]!r}",
                "export the markers as text again: user, time code, track, color, comment",
                number,
            )
    return lines
