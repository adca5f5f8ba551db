"""WebVTT and SRT: cues, and chapters.

Formats: WebVTT (https://www.w3.org/TR/webvtt1/: header, ``NOTE`` blocks, cue identifiers, ``-->``) and SubRip
(https://docs.fileformat.com/video/srt/: number, times with a comma, text).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import pairwise

from msauto.documents.text_files import lines_of
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
)

_TIMES = re.compile(r"(?P<start>[\d:.,]+)\s*-->\s*(?P<end>[\d:.,]+)(?:\s.*)?")
_TAG = re.compile(r"</?(?:[A-Za-z][^<>]*)?>|<\d[\d:.]*>|\{(?:\\[^{}]*|/?[biu])\}")
"""A tag of style, also in braces, a time inside a cue, and an override of SubStation, such as ``{\\an8}``."""
_LIKE_TIMES = re.compile(r"\s*-?\d.*-->|\s*\d+:\d\d:\d\d\S*\s+\S+\s+\d+:\d\d:\d\d")
_COMMENTS = ("NOTE", "STYLE", "REGION")
_EXTRA = "NOTE msauto "


def read_captions(text: str, clock: TimelineClock) -> EditTimeline:
    """Read cues as segments; a cue of one frame is a marker.

    An empty line ends a block of WebVTT. A cue of SRT may hold one: only the next times, or its number, end it.
    """
    timeline = EditTimeline()
    is_vtt = text.startswith("WEBVTT")
    extra = ""
    for number, lines in _blocks(text, is_vtt=is_vtt):
        has_times = "-->" in "".join(lines[1:2])
        if is_vtt and lines[0].startswith(_COMMENTS) and not has_times:
            extra = lines[0].partition(_EXTRA)[2]
            continue
        _read_block(timeline, number, lines, extra, clock, is_vtt=is_vtt)
        extra = ""
    return timeline


def _read_block(
    timeline: EditTimeline,
    number: int,
    lines: list[str],
    extra: str,
    clock: TimelineClock,
    *,
    is_vtt: bool,
) -> None:
    """Add the cues of a block, each of which begins with its times; a name or a number may be above them."""
    starts = []
    for place, line in enumerate(lines):
        if _LIKE_TIMES.match(line) or (is_vtt and "-->" in line):
            starts.append(place)
    above = lines[: starts[0]] if starts else lines
    is_header = is_vtt and number == 1
    if starts and above and (is_vtt or above[-1].strip().isdecimal()):
        above = above[:-1]
    for place, line in enumerate(above):
        if line.strip() and not is_header:
            timeline.unknown(
                number + place, line, "add its times above it: 00:00:01.000 --> 00:00:02.000"
            )
            break
    for start, end in pairwise([*starts, len(lines)]):
        words = lines[start + 1 : end]
        if end < len(lines) and words and words[-1].strip().isdecimal():
            words.pop()  # the number of the next one
        _add_cue(timeline, lines[start], words, extra, number + start, clock)


def _add_cue(
    timeline: EditTimeline,
    line: str,
    words: list[str],
    extra: str,
    number: int,
    clock: TimelineClock,
) -> None:
    times = _TIMES.fullmatch(line.strip())
    if times is None:
        raise TimelineError(
            f"invalid times of a cue: {line[:60]!r}", "write 00:00:01.000 --> 00:00:02.000", number
        )
    frame, duration = clock.lasting(times["start"], times["end"], number)
    title = one_line(html.unescape(_TAG.sub("", " ".join(words))))
    point = EditMarker(frame, title, line=number)
    timeline.add(point, duration, further=extra)


def _blocks(text: str, *, is_vtt: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield the blocks between empty lines, each with the number of its first line; SRT is one block."""
    block: list[str] = []
    for number, line in lines_of(f"{text}\n"):
        if line or not is_vtt:
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []
    if not is_vtt:
        yield 1, block


def write_vtt(timeline: EditTimeline, clock: TimelineClock) -> WrittenTimeline:
    """Write segments and markers as cues; a marker lasts one frame. WebVTT counts from the first frame."""
    title = one_line(timeline.title).replace("-->", "->")
    lines = [f"WEBVTT {title}".rstrip(), ""]
    for number, item in enumerate(timeline.items(), 1):
        kind = "segment" if isinstance(item, EditSegment) else "marker"
        duration = getattr(item, "duration", 1)
        shown = shown_text(item)
        extra = extra_values(item, shown, colored=False)
        if extra:
            lines += [f"{_EXTRA}{extra}", ""]
        lines.append(f"{kind} {number}")
        lines.append(f"{_time(item.start, clock)} --> {_time(item.start + duration, clock)}")
        if shown:
            lines.append(html.escape(shown, quote=False).replace("{", "&#123;"))
        lines.append("")
    return WrittenTimeline("\n".join(lines))


def _time(frame: int, clock: TimelineClock) -> str:
    """Return the time of a frame in milliseconds, which name it again at every rate below 500."""
    return show_clock(round(frame * 1000 / clock.rate), 3)
