"""WebVTT and SRT: cues, and chapters.

Formats: WebVTT (https://www.w3.org/TR/webvtt1/: header, ``NOTE`` blocks, cue identifiers, ``-->``) and SubRip
(https://docs.fileformat.com/video/srt/: number, times with a comma, text).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import groupby

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
        at = next((at for at, line in enumerate(lines[:2]) if "-->" in line), None)
        if at is None:
            extra = lines[0].removeprefix(_EXTRA) if lines[0].startswith(_EXTRA) else ""
            if not lines[0].startswith(("WEBVTT", "NOTE", "STYLE", "REGION")):
                raise TimelineError(f"the block has no times: {lines[0][:60]!r}", "add 00:00:00.000 --> …", number)
            continue
        times, number = _TIMES.fullmatch(lines[at].strip()), number + at
        if times is None:
            raise TimelineError(f"invalid times of a cue: {lines[at][:60]!r}", "write 00:00:00.000 --> …", number)
        start, end = (clock.position(times[name], number) for name in ("start", "end"))
        if end < start:
            raise TimelineError("the cue ends before it starts", "correct its times", number)
        name = lines[0] if at else ""
        words = one_line(html.unescape(_TAG.sub("", " ".join(lines[at + 1 :]))))
        if name.startswith("marker ") or (end - start <= 1 and not name.startswith("segment ")):
            timeline.markers.append(with_extra_values(EditMarker(start, words), extra, shown_text, number))
        else:
            timeline.segments.append(
                with_extra_values(EditSegment(start, end - start, words), extra, shown_text, number)
            )
        extra = ""
    return timeline


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the blocks between empty lines, each with the number of its first line."""
    for is_block, numbered in groupby(enumerate(text.splitlines(), 1), lambda each: bool(each[1].strip())):
        lines = list(numbered)
        if is_block:
            yield lines[0][0], [line for _, line in lines]


def write_vtt(timeline: EditTimeline, clock: TimelineClock) -> WrittenTimeline:
    """Write segments and markers as cues; a marker lasts one frame. WebVTT counts from the first frame."""
    title = one_line(timeline.title).replace("-->", "->")
    lines = [f"WEBVTT {title}".rstrip(), ""]
    items: list[tuple[int, int, EditMarker | EditSegment]] = [
        *((each.start, each.duration, each) for each in timeline.segments),
        *((each.frame, 1, each) for each in timeline.markers),
    ]
    for number, (start, duration, item) in enumerate(sorted(items, key=lambda each: each[0]), 1):
        shown = shown_text(item)
        if extra := extra_values(item, shown, colored=False):
            lines += [f"{_EXTRA}{extra}", ""]
        lines.append(f"{'marker' if isinstance(item, EditMarker) else 'segment'} {number}")
        lines.append(f"{_time(start, clock)} --> {_time(start + duration, clock)}")
        lines += [html.escape(shown, quote=False), ""] if shown else [""]
    return WrittenTimeline("\n".join(lines))


def _time(frame: int, clock: TimelineClock) -> str:
    """Return the time of a frame in milliseconds, which name it again at every rate below 500."""
    return show_clock(round(frame * 1000 / clock.rate), 3)
