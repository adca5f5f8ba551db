"""WebVTT and SRT: cues, and chapters.

Formats: WebVTT (https://www.w3.org/TR/webvtt1/: header, ``NOTE`` blocks, cue identifiers, ``-->``) and SubRip
(https://docs.fileformat.com/video/srt/: number, times with a comma, text).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from msauto.timelines.clock import TimelineClock
from msauto.timelines.extra_values import extra_values, with_extra_values
from msauto.timelines.timeline import (
    EditMarker,
    EditSegment,
    EditTimeline,
    TimelineError,
    WrittenTimeline,
    one_line,
)

_TIMES = re.compile(r"(?P<start>[\d:.,]+)\s*-->\s*(?P<end>[\d:.,]+)(?:\s.*)?")
_TAG = re.compile(r"</?[^<>]*>")
_EXTRA = "NOTE msauto "


@dataclass(frozen=True, slots=True)
class _Cue:
    line: int
    name: str
    start: int
    end: int
    text: str
    extra: str


def read_captions(text: str, clock: TimelineClock) -> EditTimeline:
    """Read cues as segments; a cue of one frame, or one that msauto wrote as a marker, is a marker."""
    timeline = EditTimeline()
    for cue in _cues(text, clock):
        duration = cue.end - cue.start
        if duration < 0:
            raise TimelineError("the cue ends before it starts", "correct its times", cue.line)
        if cue.name.startswith("marker ") or (duration <= 1 and not cue.name.startswith("segment ")):
            marker = EditMarker(cue.start, cue.text)
            timeline.markers.append(with_extra_values(marker, cue.extra, _shown, cue.line))
        else:
            segment = EditSegment(cue.start, duration, cue.text)
            timeline.segments.append(with_extra_values(segment, cue.extra, _shown, cue.line))
    return timeline


def _cues(text: str, clock: TimelineClock) -> Iterator[_Cue]:
    extra = ""
    for number, lines in _blocks(text):
        at = next((at for at, line in enumerate(lines[:2]) if "-->" in line), None)
        if at is None:
            extra = lines[0].removeprefix(_EXTRA) if lines[0].startswith(_EXTRA) else ""
            if not lines[0].startswith(("WEBVTT", "NOTE", "STYLE", "REGION")):
                raise TimelineError(f"the block has no times: {lines[0][:60]!r}", "add 00:00:00.000 --> …", number)
            continue
        times = _TIMES.fullmatch(lines[at].strip())
        if times is None:
            raise TimelineError(f"invalid times of a cue: {lines[at][:60]!r}", "write 00:00:00.000 --> …", number + at)
        start, end = (clock.position(times[name], number + at) for name in ("start", "end"))
        words = html.unescape(_TAG.sub("", " ".join(lines[at + 1 :])))
        yield _Cue(number + at, lines[0] if at else "", start, end, one_line(words), extra)
        extra = ""


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the blocks between empty lines, each with the number of its first line."""
    block: list[str] = []
    first = 0
    for number, line in enumerate((*text.splitlines(), ""), 1):
        if line.strip():
            first = first if block else number
            block.append(line)
        elif block:
            yield first, block
            block = []


def write_vtt(timeline: EditTimeline, clock: TimelineClock) -> WrittenTimeline:
    """Write segments and markers as cues; a marker lasts one frame. WebVTT counts from the first frame."""
    title = one_line(timeline.title).replace("-->", "->")
    lines = [f"WEBVTT {title}".rstrip(), ""]
    items: list[EditMarker | EditSegment] = [*timeline.segments, *timeline.markers]
    for number, item in enumerate(sorted(items, key=_start), 1):
        lines += _cue_lines(number, item, clock)
    return WrittenTimeline("\n".join(lines))


def _start(item: EditMarker | EditSegment) -> int:
    return item.frame if isinstance(item, EditMarker) else item.start


def _cue_lines(number: int, item: EditMarker | EditSegment, clock: TimelineClock) -> Iterator[str]:
    shown = _shown(item)
    if extra := extra_values(item, shown, colored=False):
        yield from (f"{_EXTRA}{extra}", "")
    is_marker = isinstance(item, EditMarker)
    yield f"{'marker' if is_marker else 'segment'} {number}"
    end = _start(item) + (item.duration if isinstance(item, EditSegment) else 1)
    yield f"{_time(_start(item), clock)} --> {_time(end, clock)}"
    if shown:
        yield html.escape(shown, quote=False)
    yield ""


def _shown(item: EditMarker | EditSegment) -> str:
    return one_line(item.title or getattr(item, "comment", ""))


def _time(frame: int, clock: TimelineClock) -> str:
    """Return the time of a frame in milliseconds, which name it again at every rate below 500."""
    thousandths = round(frame * 1000 / clock.rate)
    seconds, thousandth = divmod(thousandths, 1000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours:02}:{minute:02}:{second:02}.{thousandth:03}"
