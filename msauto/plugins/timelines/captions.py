"""WebVTT and SRT: cues, and chapters.

Formats: WebVTT (https://www.w3.org/TR/webvtt1/: header, ``NOTE`` blocks, cue identifiers, ``-->``) and SubRip
(https://docs.fileformat.com/video/srt/: number, times with a comma, text).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from msauto.plugins.timelines.timeline import (
    EditMarker,
    EditSegment,
    EditTimeline,
    TimelineClock,
    TimelineError,
    WrittenTimeline,
    extra_values,
    one_line,
    show_clock,
    shown_text,
    with_extra_values,
)

_TIMES = re.compile(r"(?P<start>[\d:.,]+)\s*-->\s*(?P<end>[\d:.,]+)(?:\s.*)?")
_TAG = re.compile(r"</?[^<>]*>")
_EXTRA = "NOTE msauto "


def read_captions(text: str, clock: TimelineClock) -> EditTimeline:
    """Read cues as segments; a cue of one frame, or one that msauto wrote as a marker, is a marker."""
    timeline = EditTimeline()
    extra = ""
    for number, lines in _blocks(text):
        name, *below = lines
        if "-->" in name:
            name, below = "", lines
        elif not below or "-->" not in below[0]:
            if not name.startswith(("WEBVTT", "NOTE", "STYLE", "REGION")):
                raise TimelineError(
                    f"the block has no times: {name[:60]!r}", "add 00:00:00.000 --> …", number
                )
            extra = ""
            if name.startswith(_EXTRA):
                extra = name.removeprefix(_EXTRA)
            continue
        _add_cue(timeline, name, below, extra, number + len(lines) - len(below), clock)
        extra = ""
    return timeline


def _add_cue(
    timeline: EditTimeline,
    name: str,
    lines: list[str],
    extra: str,
    number: int,
    clock: TimelineClock,
) -> None:
    """Add a cue of these lines, the first of which has its times and this number."""
    times = _TIMES.fullmatch(lines[0].strip())
    if times is None:
        raise TimelineError(
            f"invalid times of a cue: {lines[0][:60]!r}", "write 00:00:00.000 --> …", number
        )
    start = clock.position(times["start"], number)
    duration = clock.position(times["end"], number) - start
    if duration < 0:
        raise TimelineError("the cue ends before it starts", "correct its times", number)
    marked_up = " ".join(lines[1:])
    words = one_line(html.unescape(_TAG.sub("", marked_up)))
    is_short = duration <= 1 and not name.startswith("segment ")
    if is_short or name.startswith("marker "):
        marker = EditMarker(start, words)
        timeline.markers.append(with_extra_values(marker, extra, shown_text, number))
    else:
        segment = EditSegment(start, duration, words)
        timeline.segments.append(with_extra_values(segment, extra, shown_text, number))


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the blocks between empty lines, each with the number of its first line."""
    block = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []


def write_vtt(timeline: EditTimeline, clock: TimelineClock) -> WrittenTimeline:
    """Write segments and markers as cues; a marker lasts one frame. WebVTT counts from the first frame."""
    title = one_line(timeline.title).replace("-->", "->")
    lines = [f"WEBVTT {title}".rstrip(), ""]
    items: list[EditMarker | EditSegment] = [*timeline.segments, *timeline.markers]
    items.sort(key=_start)
    for number, item in enumerate(items, 1):
        start = _start(item)
        kind, duration = "marker", 1
        if isinstance(item, EditSegment):
            kind, duration = "segment", item.duration
        shown = shown_text(item)
        extra = extra_values(item, shown, colored=False)
        if extra:
            lines += [f"{_EXTRA}{extra}", ""]
        lines.append(f"{kind} {number}")
        lines.append(f"{_time(start, clock)} --> {_time(start + duration, clock)}")
        if shown:
            lines.append(html.escape(shown, quote=False))
        lines.append("")
    return WrittenTimeline("\n".join(lines))


def _start(item: EditMarker | EditSegment) -> int:
    return item.frame if isinstance(item, EditMarker) else item.start


def _time(frame: int, clock: TimelineClock) -> str:
    """Return the time of a frame in milliseconds, which name it again at every rate below 500."""
    return show_clock(round(frame * 1000 / clock.rate), 3)
