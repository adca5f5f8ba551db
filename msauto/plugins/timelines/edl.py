"""CMX3600 edit decision lists: events, locators (``* LOC:``), and the marker lists of Resolve.

Formats: events and ``* LOC:`` as Avid writes them (repository adamhawkey/EDL_tools, Marker_tools/README.md). DaVinci
Resolve, "Timeline markers to EDL", writes ``note |C:ResolveColorBlue |M:name |D:frames`` below an event of one frame
(repository 2072/TimeCode-MagiKs).

What no EDL can hold is written a second time as JSON in ``* MSAUTO:`` comments, which other programs ignore.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from msgspec import Struct, field

from msauto.plugins.timelines.timeline import (
    COLORS,
    EditMarker,
    EditSegment,
    EditTimeline,
    TimelineClock,
    TimelineError,
    WrittenTimeline,
    color_of,
    extra_values,
    one_line,
    shown_text,
    with_extra_values,
)

_TC = r"\d{1,4}[:;]\d{2}[:;]\d{2}[:;]\d{2,3}"
_TIMES = re.compile(rf"(?<!\S){_TC}\s+{_TC}\s+(?P<start>{_TC})\s+(?P<end>{_TC})(?!\S)")
_NUMBER = re.compile(r"\d{1,6}")
_EDIT = re.compile(r"C|D|W\d*|K\S*")
_FRAMES = re.compile(r"\d{1,4}")
_LIKE_TC = r"\d{1,4}[:;.,]\d{2}[:;.,]\d{2}[:;.,]\d{2}"
_LIKE_EVENT = re.compile(rf"\d{{3,6}}\s.*{_LIKE_TC}\s+{_LIKE_TC}")
_LOCATOR = re.compile(r"\*\s*LOC:\s*(?P<at>\S+)(?:\s+(?P<color>\S+))?(?:\s+(?P<text>.*))?")
_CLIP_NAME = re.compile(r"\*\s*(?P<which>FROM|TO) CLIP NAME:\s*(?P<name>.*)")
_EXTRA = re.compile(r"\*\s*MSAUTO:\s?(?P<json>.*)")
_NO_NAME = re.compile(r"AX|BL|\d*")
_LONGEST_TEXT = 200
"""Characters of a text in a written line. CMX3600 has lines of 80; exports of Avid have longer locators."""
_EXTRA_PART = re.compile(r".{0,159}\S|.+")
"""A line of further values; a space at its end would be lost."""


def is_edl(text: str) -> bool:
    """Return whether a text looks like an EDL."""
    return any(
        re.match(r"TITLE:|FCM:|\*\s*LOC:", line) or _event(line.strip())
        for line in text.splitlines()
    )


# Reading -------------------------------------------------------------------------------------------------------


def _event(line: str, number: int = 0, *, drop: bool = False) -> _EditLine | None:
    """Read ``number reel track edit [frames] source source start end``; a reel may contain spaces."""
    times = _TIMES.search(line)
    if times is None or not line[0].isdigit():
        return None
    parts = line[: times.start()].rsplit(None, 3)
    has_frames = len(parts) == 4 and _FRAMES.fullmatch(parts[3]) and _EDIT.fullmatch(parts[2])
    if not has_frames:
        parts = line[: times.start()].rsplit(None, 2)
    if len(parts) < 3:
        return None
    before, track, edit = parts[:3]
    event_number, *reel = before.split(None, 1)
    if not _NUMBER.fullmatch(event_number) or not _EDIT.fullmatch(edit):
        return None
    return _EditLine(
        line=number,
        drop=drop,
        reel="".join(reel),
        track=track,
        edit=edit,
        start=times["start"],
        end=times["end"],
    )


class _ResolveMarker(Struct, frozen=True):
    """A marker of Resolve below an event."""

    note: str
    color: str
    name: str
    duration: str


def _resolve_marker(line: str) -> _ResolveMarker | None:
    note, _, rest = line.partition("|C:")
    color, _, rest = rest.partition("|M:")
    name, _, duration = rest.rpartition("|D:")
    color = color.rstrip()
    is_length = duration.isdecimal() and len(duration) < 10
    is_color = len(color.split()) <= 1 and not color[:1].isspace()
    if is_length and is_color:
        return _ResolveMarker(note.rstrip(), color, name.rstrip(), duration)
    return None


class _EdlLine(Struct, kw_only=True):
    """An event, or a locator. ``drop``: its time codes are drop frame."""

    line: int
    drop: bool
    extra: str = ""

    def frame(self, timecode: str, clock: TimelineClock) -> int:
        return clock.position(timecode, self.line, drop=self.drop)


class _Locator(_EdlLine, kw_only=True):
    """The line of a locator."""

    match: re.Match[str]


class _EditLine(_EdlLine, kw_only=True):
    """The line of an event, and the lines below it."""

    reel: str
    track: str
    edit: str
    start: str
    end: str
    names: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    marker: _ResolveMarker | None = None

    @property
    def is_video(self) -> bool:
        return "V" in self.track or self.track == "B"

    def title(self) -> str:
        """The clip that the event shows; of a transition, the one that it leads to."""
        which = "FROM" if self.edit == "C" else "TO"
        named = self.names.get(which) or self.names.get("FROM")
        if named:
            return named
        return "" if _NO_NAME.fullmatch(self.reel) else self.reel


def read_edl(text: str, clock: TimelineClock) -> EditTimeline:
    """Read events as segments, and locators and the markers of Resolve as markers."""
    timeline = EditTimeline()
    entries = _entries(text, timeline)
    if not entries and not is_edl(text):
        raise TimelineError("no event and no locator found", "export it as a CMX3600 EDL")
    has_video = any(isinstance(entry, _EditLine) and entry.is_video for entry in entries)
    for entry in entries:
        if isinstance(entry, _Locator):
            timeline.markers.append(_located(entry, clock))
        elif entry.marker is not None:
            _add_marker(timeline, entry, entry.marker, clock)
        elif entry.reel != "BL" and entry.is_video == has_video:
            _add_segment(timeline, entry, clock)
    return timeline


def _located(entry: _Locator, clock: TimelineClock) -> EditMarker:
    """Return the marker of a locator; what should be its color may be the first word of its text."""
    color = entry.match["color"] or ""
    words = entry.match["text"] or ""
    if color.casefold() not in COLORS:
        words = f"{color} {words}".strip()
        color = ""
    marker = EditMarker(entry.frame(entry.match["at"], clock), words, color=color)
    return with_extra_values(marker, entry.extra, _text, entry.line)


def _add_marker(
    timeline: EditTimeline, entry: _EditLine, marker: _ResolveMarker, clock: TimelineClock
) -> None:
    """Add a marker of Resolve, or a segment if it lasts more than a frame."""
    start = entry.frame(entry.start, clock)
    notes = "\n".join(filter(None, (*entry.notes, marker.note)))
    color = marker.color.removeprefix("ResolveColor")
    timeline.add_lasting(EditMarker(start, marker.name, notes, color=color), int(marker.duration))


def _add_segment(timeline: EditTimeline, entry: _EditLine, clock: TimelineClock) -> None:
    start = entry.frame(entry.start, clock)
    duration = entry.frame(entry.end, clock) - start
    if duration < 0:
        remedy = "correct the record time codes"
        raise TimelineError("the event ends before it starts", remedy, entry.line)
    if duration:  # the outgoing side of a transition has none
        segment = EditSegment(start, duration, entry.title())
        timeline.segments.append(with_extra_values(segment, entry.extra, _text, entry.line))


def _entries(text: str, timeline: EditTimeline) -> list[_Locator | _EditLine]:
    """Return events and locators in their order; set the title of the timeline."""
    drop = False
    last: _EditLine | None = None
    entries: list[_Locator | _EditLine] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if line.startswith("FCM:"):
            drop = line.removeprefix("FCM:").strip().upper().startswith("DROP")
        elif line.startswith("TITLE:"):
            timeline.title = line.removeprefix("TITLE:").strip()
        elif event := _event(line, number, drop=drop):
            last = event
            entries.append(event)
        elif _LIKE_EVENT.match(line):
            raise TimelineError(
                f"invalid event: {line[:60]!r}", "export the EDL again as CMX3600", number
            )
        elif re.match(r"\*\s*LOC:", line):
            match = _LOCATOR.fullmatch(line)
            if match is None:
                remedy = "write * LOC: 01:00:00:00 RED text"
                raise TimelineError(f"the locator has no time code: {line!r}", remedy, number)
            entries.append(_Locator(line=number, drop=drop, match=match))
        elif (match := _EXTRA.fullmatch(line)) and entries:
            entries[-1].extra += match["json"]
        elif last is not None:
            _add_line(last, line)
    return entries


def _add_line(entry: _EditLine, line: str) -> None:
    """Add a line that belongs to the event above it."""
    if match := _CLIP_NAME.fullmatch(line):
        entry.names[match["which"]] = match["name"].strip()
    elif marker := _resolve_marker(line):
        entry.marker = marker
    elif line and entry.marker is None and not line.startswith(("*", "M2", ">")):
        entry.notes.append(line)


# Writing -------------------------------------------------------------------------------------------------------


def write_edl(timeline: EditTimeline, clock: TimelineClock) -> WrittenTimeline:
    """Write segments as events and markers as locators below the event that they are in, else above all events."""
    segments = sorted(timeline.segments, key=lambda segment: segment.start)
    above: list[str] = []
    below: list[list[str]] = [[] for _ in segments]
    # The first segment that ends after a marker is where the latest end so far first lies behind the marker.
    ends = list(accumulate((segment.start + segment.duration for segment in segments), max))
    for marker in sorted(timeline.markers, key=lambda marker: marker.frame):
        place = bisect_right(ends, marker.frame)
        locators = above
        if place < len(segments) and segments[place].start <= marker.frame:
            locators = below[place]
        locators += _locator_lines(marker, clock)
    frame_code = "DROP" if clock.drop else "NON-DROP"
    lines = [f"TITLE: {_shortened(timeline.title)}"]
    lines.append(f"FCM: {frame_code} FRAME")
    if above:
        lines += ["", *above]
    for number, (segment, locators) in enumerate(zip(segments, below, strict=True), 1):
        lines.append("")
        lines += _event_lines(number, segment, clock)
        lines += locators
    text = "\n".join(lines)
    return WrittenTimeline(f"{text}\n", tuple(_warnings(timeline)))


def _locator_lines(marker: EditMarker, clock: TimelineClock) -> list[str]:
    text = _text(marker)
    color = color_of(marker.track).upper()
    line = f"* LOC: {clock.show(marker.frame)} {color:7} {text}".rstrip()
    return [line, *_extra_lines(extra_values(marker, text))]


def _event_lines(number: int, segment: EditSegment, clock: TimelineClock) -> list[str]:
    times = f"{clock.show(segment.start)} {clock.show(segment.start + segment.duration)}"
    lines = [f"{number:03}  AX       V     C        {times} {times}"]
    text = _text(segment)
    if text:
        lines.append(f"* FROM CLIP NAME: {text}")
    return [*lines, *_extra_lines(extra_values(segment, text))]


def _extra_lines(values: str) -> list[str]:
    return [f"* MSAUTO: {part}" for part in _EXTRA_PART.findall(values)]


def _text(item: EditMarker | EditSegment) -> str:
    return _shortened(shown_text(item))


def _shortened(text: str) -> str:
    flat = one_line(text)
    if len(flat) <= _LONGEST_TEXT:
        return flat
    return f"{flat[: _LONGEST_TEXT - 3].rstrip()}..."


def _warnings(timeline: EditTimeline) -> Iterator[str]:
    texts = [*map(shown_text, timeline.markers), *map(shown_text, timeline.segments)]
    if cut := sum(len(text) > _LONGEST_TEXT for text in texts):
        yield f"{cut} of its texts are longer than {_LONGEST_TEXT} characters: other programs see the beginning"
    if any(marker.title and marker.comment for marker in timeline.markers):
        yield "a locator has one text: other programs see the title of a marker, not its comment"
