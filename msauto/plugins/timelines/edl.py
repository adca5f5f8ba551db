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
from dataclasses import replace
from itertools import accumulate

from msgspec import Struct

from msauto.documents.text_files import lines_of
from msauto.plugins.timelines.tables import add_row
from msauto.plugins.timelines.timeline import (
    COLORS,
    LONGEST_TEXT,
    EditMarker,
    EditSegment,
    EditTimeline,
    TimelineClock,
    TimelineError,
    WrittenTimeline,
    color_of,
    extra_values,
    one_line,
    shortened,
    shown_text,
)

_TC = r"\d{1,4}[:;]\d{2}[:;]\d{2}[:;]\d{2,3}"
_TIMES = re.compile(rf"(?<!\S){_TC}\s+{_TC}\s+(?P<start>{_TC})\s+(?P<end>{_TC})(?!\S)")
_NUMBER = re.compile(r"\d{1,6}")
_TRACK_AND_EDIT = re.compile(
    r"\s(?P<track>\S+)\s+(?:(?P<edit>C|D|W\d*|K\S*)(?:\s+[BO])?(?:\s+\(F\))?(?:\s+\d{1,4})?|\d{1,4})$"
)
"""``K B`` is the background of a key. Avid leaves out the ``D`` of some dissolves, not their frames."""
_LIKE_EVENT = re.compile(r"\d{1,6}\s.*\d{1,4}(?:[:;.,]\d{2}){3}\s+\d{1,4}(?:[:;.,]\d{2}){3}")
_LIKE_LOCATOR = re.compile(rf"\*?\s*LOC:|\*\s*{_TC}(?!\S)")
"""The line of a locator; without ``LOC:``, of a bookmark of Nucoda."""
_LOCATOR = re.compile(r"(?:LOC:\s*)?(\d\S*)(?:\s+(\S+))?(?:\s+(.*))?")
_CLIP_NAME = re.compile(r"(?i)\*?\s*(?P<which>FROM|TO) CLIP NAME:\s*(?P<name>.*)")
_RESOLVE_MARKER = re.compile(r"(.*?)\|C:(?:ResolveColor)?(\S*)\s*(?:\|M:(.*?))?(?:\|D:(\d{1,9}))?")
"""``note |C:color |M:name |D:frames``; the frames may be left out."""
_EXTRA = re.compile(r"\*\s*MSAUTO:\s?(?P<json>.*)")
_KNOWN = re.compile(
    r"[*>=]|[A-Z][A-Z0-9 _./-]*:|(?:M2|REM|AUD|TRK|GPI|DUR|SPLIT|BLEND|FREEZE FRAME|EFFECTS? NAME IS)\b"
    r"|(?:FROM|TO|KEY) CLIP\b"
)
"""What begins lines without markers and segments; a comment may lack its asterisk."""
_MARKER_ROW = re.compile(
    rf"\*\s+\d+\s+(?P<color>[A-Za-z]+)\s(?P<user>.*?)(?<!\S)(?P<start>{_TC})(?:\s+(?P<end>{_TC}))?"
    rf"(?:\s+(?P<duration>{_TC}))?\s+(?P<edit_track>\S+)(?:\s+(?P<title>.*))?"
)
"""A row of the table of markers that Avid writes at the end; the name of a marker is that of its user."""
_NO_NAME = re.compile(r"AX|\d*")
_EXTRA_PART = re.compile(r".{0,159}\S|.+")
"""A line of further values; a space at its end would be lost."""
_HEADER = re.compile(r"(?:^|[\r\n])(?:TITLE:|FCM:|\*[ \t]*LOC:)")
_AS_CMX3600 = (
    "begin it with * if it is a comment; CMX3600 has a number, reel, track and edit, "
    "and four time codes such as 01:00:00:00"
)


def is_edl(text: str) -> bool:
    """Return whether a text looks like an EDL."""
    return bool(_HEADER.search(text) or _TIMES.search(text))


# Reading -------------------------------------------------------------------------------------------------------


def _event(line: str, number: int = 0) -> _Event | None:
    """Read ``number reel track edit [frames] source source start end``; a reel may contain spaces."""
    times = _TIMES.search(line)
    if times is None:
        return None
    tail = _TRACK_AND_EDIT.search(line[: times.start()].rstrip())
    if tail is None:
        return None
    event_number, *reel = line[: tail.start()].split(None, 1)
    if not _NUMBER.fullmatch(event_number):
        return None
    return _Event(
        line=number,
        reel="".join(reel).rstrip(),
        track=tail["track"],
        edit=tail["edit"] or "D",
        start=times["start"],
        end=times["end"],
    )


class _Locator(Struct):
    """The marker of a locator, and its further values."""

    marker: EditMarker
    extra: str = ""


class _Event(Struct, kw_only=True):
    """The line of an event, and the lines below it."""

    line: int
    reel: str
    track: str
    edit: str
    start: str
    end: str
    extra: str = ""
    names: dict[str, str] = {}
    notes: dict[int, str] = {}
    markers: list[tuple[EditMarker, int]] = []

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

    def add_line(self, number: int, line: str) -> None:
        """Add a line that is below the event; those above a marker of Resolve are its comment."""
        name = _CLIP_NAME.fullmatch(line)
        marked = _RESOLVE_MARKER.fullmatch(line)
        if name:
            self.names[name["which"].upper()] = name["name"].strip()
        elif marked:
            note, color, title, frames = marked.groups(default="")
            comment = "\n".join(filter(None, (*self.notes.values(), note.rstrip())))
            marker = EditMarker(0, title.rstrip(), comment, color=color, line=number)
            self.markers.append((marker, int(frames or 1)))
            self.notes = {}
        else:
            self.notes[number] = line


def read_edl(text: str, clock: TimelineClock) -> EditTimeline:
    """Read events as segments, and locators and the markers of Resolve as markers."""
    timeline = EditTimeline()
    if _is_drop(text):
        clock = clock.of_drop_colons()
    entries = _entries(text, timeline, clock)
    has_video = any(isinstance(entry, _Event) and entry.is_video for entry in entries)
    for entry in entries:
        if isinstance(entry, _Locator):
            timeline.add(entry.marker, 0, further=entry.extra)
            continue
        for number, line in entry.notes.items():
            _check_known(timeline, number, line)
        for marker, frames in entry.markers:
            start = clock.position(entry.start, entry.line)
            timeline.add(replace(marker, start=start), frames)
        is_shown = entry.reel not in ("BL", "BLACK") and entry.is_video == has_video
        if is_shown and not entry.markers:
            start_frame, duration = clock.lasting(entry.start, entry.end, entry.line)
            if duration:  # the outgoing side of a transition has none
                point = EditMarker(start_frame, entry.title(), line=entry.line)
                timeline.add(point, duration, further=entry.extra)
    return timeline


def _check_known(timeline: EditTimeline, number: int, line: str) -> None:
    if line and not _KNOWN.match(line):
        timeline.unknown(number, line, _AS_CMX3600)


def _is_drop(text: str) -> bool:
    """Return whether colons mean drop frame: if the first ``FCM`` above all events has it; others are of sources."""
    above = re.split(r"(?:^|[\r\n])[ \t]*\d", text, maxsplit=1)[0]
    modes = re.findall(r"(?:^|[\r\n])[ \t]*FCM:[ \t]*(\S+)", above)
    return modes[:1] == ["DROP"]


def _entries(text: str, timeline: EditTimeline, clock: TimelineClock) -> list[_Locator | _Event]:
    """Return events and locators in their order, and add the rows of a table of markers."""
    last: _Event | None = None
    has_table = False
    is_comment = False
    entries: list[_Locator | _Event] = []
    for number, raw in lines_of(text):
        line = raw.strip()
        has_table = has_table or "Marker Name" in line
        continues_comment = is_comment and raw[:1].isspace()
        is_comment = line.startswith("*") or continues_comment
        event = _event(line, number)
        if event is not None:
            last = event
            entries.append(event)
        elif _LIKE_EVENT.match(line):
            raise TimelineError(f"invalid event: {line[:60]!r}", _AS_CMX3600, number)
        elif _LIKE_LOCATOR.match(line):
            entries.append(_locator(line, number, clock))
        elif (match := _EXTRA.fullmatch(line)) and entries:
            entries[-1].extra += match["json"]
        elif row := _MARKER_ROW.fullmatch(line):
            cells = {name: cell.strip() for name, cell in row.groupdict(default="").items()}
            add_row(timeline, cells, number, clock)
        elif has_table and re.match(r"\*\s+\d", line):
            timeline.unknown(number, line, _AS_CMX3600)
        elif last is not None:
            last.add_line(number, line)
        elif not continues_comment:
            _check_known(timeline, number, line)
    return entries


def _locator(line: str, number: int, clock: TimelineClock) -> _Locator:
    """Read a locator; what should be its color may be the first word of its text."""
    match = _LOCATOR.fullmatch(line.lstrip("* "))
    if match is None:
        remedy = "write * LOC: 01:00:00:00 RED text"
        raise TimelineError(f"the locator has no time code: {line!r}", remedy, number)
    at, color, text = match.groups(default="")
    if color.casefold() not in COLORS:
        text = f"{color} {text}".strip()
        color = ""
    return _Locator(EditMarker(clock.position(at, number), text, color=color, line=number))


# Writing -------------------------------------------------------------------------------------------------------


def write_edl(timeline: EditTimeline, clock: TimelineClock) -> WrittenTimeline:
    """Write segments as events and markers as locators below the event that they are in, else above all events."""
    segments = sorted(timeline.segments, key=lambda segment: segment.start)
    above: list[str] = []
    below: list[list[str]] = [[] for _ in segments]
    # The first segment that ends after a marker is where the latest end so far first lies behind the marker.
    ends = list(accumulate((segment.start + segment.duration for segment in segments), max))
    for marker in sorted(timeline.markers, key=lambda marker: marker.start):
        place = bisect_right(ends, marker.start)
        locators = above
        if place < len(segments) and segments[place].start <= marker.start:
            locators = below[place]
        locators += _locator_lines(marker, clock)
    frame_code = "DROP" if clock.drop else "NON-DROP"
    lines = [f"TITLE: {shortened(one_line(timeline.title))}"]
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
    line = f"* LOC: {clock.show(marker.start)} {color:7} {text}".rstrip()
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
    return shortened(shown_text(item))


def _warnings(timeline: EditTimeline) -> Iterator[str]:
    texts = [*map(shown_text, timeline.markers), *map(shown_text, timeline.segments)]
    if cut := sum(len(text) > LONGEST_TEXT for text in texts):
        yield f"{cut} of its texts are longer than {LONGEST_TEXT} characters: other programs see the beginning"
    if any(marker.title and marker.comment for marker in timeline.markers):
        yield "a locator has one text: other programs see the title of a marker, not its comment"
