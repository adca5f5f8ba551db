"""Tables: cue sheets (CSV, TSV, XLSX) with named columns, also of Premiere and Frame.io, and marker lists of Avid.

Formats: Premiere, "Export > Markers", UTF-16 with tabs: ``Marker Name, Description, In, Out, Duration, Marker Type``
(read by PremiereMarkerTools, ``import_premiere``; the duration is that of Out less In). Frame.io, "Export comments as
CSV": ``Comment, Commenter, Timecode`` and ``Duration`` in frames (repository logik-portal/python, frame_io).

Avid Media Composer writes a line for each marker, with tabs between user, time code, track, color, comment and length
in frames (repository adamhawkey/EDL_tools, Marker_tools/README.md). A line break in a comment continues it below.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msauto.documents.csv_cells import as_written, csv_line
from msauto.documents.text_files import check_table_size, header_delimiter
from msauto.plugins.timelines.sheets import read_sheet
from msauto.plugins.timelines.timeline import (
    MARKER_TEXTS,
    EditMarker,
    EditTimeline,
    TimelineClock,
    TimelineError,
    WrittenTimeline,
    color_of,
)

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "start": ("start", "in", "timecode in", "tc in", "timecode", "tc", "at", "position", "time", "start time",
              "timecode source", "frame"),
    "end": ("end", "out", "timecode out", "tc out", "end time"),
    "duration": ("duration", "length"),
    "title": ("title", "name", "marker name", "label", "clip name", "chapter", "cue"),
    "comment": ("comment", "comments", "description", "note", "notes", "text"),
    "color": ("color", "colour", "marker color", "marker type", "type"),
    "track": ("track",),
    "user": ("user", "commenter", "user name", "author"),
    "keywords": ("keywords", "tags"),
    "rating": ("rating",),
    "number": ("number",),
}  # fmt: skip
"""The columns of a cue sheet, each with the names that it may have; of several, the first one counts."""
_EDIT_TRACK = re.compile(r"(?i)(?:V|A|TC|D)\d*")
_WRITTEN = (
    "Start",
    "Duration",
    "Title",
    "Comment",
    "Color",
    "Track",
    "User",
    "Keywords",
    "Rating",
    "Number",
)

Row = tuple[int, Sequence[str]]
"""A row and its number, from 1."""


# Reading -------------------------------------------------------------------------------------------------------


def is_table(text: str) -> bool:
    """Return whether a text begins with a header that names where markers start."""
    try:
        header = next(csv.reader(io.StringIO(text), delimiter=header_delimiter(text)), [])
    except csv.Error:
        return False
    return any(cell.strip().casefold() in COLUMNS["start"] for cell in header)


def read_csv(text: str, clock: TimelineClock, columns: Mapping[str, str]) -> EditTimeline:
    """Read a text with a header; ``columns``: headers by column, in addition to :data:`COLUMNS`."""
    between = header_delimiter(text)
    check_table_size(text, between)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=between, strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise TimelineError(f"invalid CSV: {error}", "check its quotes", reader.line_num) from error
    return read_rows(rows, clock, columns)


def read_rows(
    rows: Iterable[Row], clock: TimelineClock, columns: Mapping[str, str]
) -> EditTimeline:
    """Read rows, the first of which is the header: a row with a duration is a segment, any other one a marker."""
    filled = [(line, row) for line, row in rows if any(map(str.strip, row))]
    if not filled:
        raise TimelineError("the table is empty", "add a header with a column Start")
    header, *below = filled
    width = len(header[1])
    places = _places(header, columns)
    timeline = EditTimeline()
    for line, row in below:
        if any(row[width:]):
            remedy = "quote cells that hold the separator"
            raise TimelineError("the row has more cells than the header", remedy, line)
        cells = dict.fromkeys(COLUMNS, "")
        for column, place in places.items():
            if place < len(row):
                cells[column] = as_written(row[place])
        _add_row(timeline, cells, line, clock)
    return timeline


def _places(header: Row, columns: Mapping[str, str]) -> dict[str, int]:
    """Return where each column is; raises :class:`TimelineError` without one for the start."""
    line, cells = header
    named = [cell.strip().casefold() for cell in cells]
    own = {str(column): str(name).strip().casefold() for column, name in columns.items()}
    for column, name in own.items():
        if column not in COLUMNS:
            raise TimelineError(f"columns: unknown column {column!r}", unknown=(column, COLUMNS))
        if name not in named:
            why = f"the header has no column {columns[column]!r}"
            raise TimelineError(why, line=line, unknown=(name, named))
    places = {}
    for column, usual_names in COLUMNS.items():
        names = (own[column],) if column in own else usual_names
        for name in names:
            if name in named:
                places[column] = named.index(name)
                break
    if "start" not in places:
        shown = ", ".join(cells[:12])
        raise TimelineError(
            f"the header has no column for the start: {shown}",
            "name it Start, or set columns={'start': 'its name'}",
            line,
        )
    return places


def _add_row(
    timeline: EditTimeline, row: Mapping[str, str], line: int, clock: TimelineClock
) -> None:
    if not row["start"].strip():
        raise TimelineError("the row has no position", "add a time code, or delete the row", line)
    start = clock.position(row["start"], line)
    duration = 0
    if row["duration"].strip():
        duration = clock.duration(row["duration"], line)
    elif row["end"].strip():
        duration = clock.position(row["end"], line) - start
        if duration < 0:
            raise TimelineError("the row ends before it starts", "correct its time codes", line)
    rating = _number(row, "rating", line)
    number = _number(row, "number", line)
    texts = {name: row[name] for name in MARKER_TEXTS}
    color = row["color"].strip()
    track = row["track"].strip()
    if _EDIT_TRACK.fullmatch(track):
        track = ""
    marker = EditMarker(start, **texts, rating=rating or 0, track=track, color=color, line=line)
    timeline.add(marker, duration, number)


def _number(row: Mapping[str, str], column: str, line: int) -> int | None:
    text = row[column].strip()
    if not text:
        return None
    if not re.fullmatch(r"-?\d{1,9}", text, re.ASCII):
        raise TimelineError(f"{column} {text[:40]!r} is not a whole number", "write digits", line)
    return int(text)


# Cue sheets as XLSX ---------------------------------------------------------------------------------------------


def read_xlsx(content: bytes, clock: TimelineClock, columns: Mapping[str, str]) -> EditTimeline:
    """Read the first sheet as a table; raises :class:`TimelineError`, also if the extra is missing."""
    return read_rows(enumerate(read_sheet(content), 1), clock, columns)


# Writing -------------------------------------------------------------------------------------------------------


def write_csv(timeline: EditTimeline, clock: TimelineClock) -> WrittenTimeline:
    """Write a row for each segment and marker. It begins with a byte order mark: spreadsheets look for one."""
    rows = []
    for segment in timeline.segments:
        start = clock.show(segment.start)
        duration = clock.show_duration(segment.duration)
        number = "" if segment.number is None else str(segment.number)
        cells = (start, duration, segment.title, "", "", "", "", segment.keywords, "", number)
        rows.append((segment.start, cells))
    for marker in timeline.markers:
        cells = (
            clock.show(marker.frame),
            "",
            marker.title,
            marker.comment,
            color_of(marker.track),
            marker.track,
            marker.user,
            marker.keywords,
            str(marker.rating or ""),
            "",
        )
        rows.append((marker.frame, cells))
    rows.sort(key=lambda row: row[0])
    lines = [csv_line(cells) for _, cells in rows]
    return WrittenTimeline("".join(("\ufeff", csv_line(_WRITTEN), *lines)))


_MARKER = re.compile(r"[^\t]*\t\d{1,2}[:;]\d{2}[:;]\d{2}[:;]\d{2,3}\t")


def is_marker_list(text: str) -> bool:
    """Return whether a text looks like a marker list of Avid."""
    return any(map(_MARKER.match, text.splitlines()[:20]))


def read_marker_list(text: str, clock: TimelineClock) -> EditTimeline:
    """Read markers; one of more than one frame becomes a segment."""
    timeline = EditTimeline()
    for number, marker_lines in _marker_lines(text):
        cells = " ".join(marker_lines).split("\t", 6)
        user, at, _, color, comment, length = [*cells, "", "", ""][:6]
        duration = 0
        if length.strip():
            duration = clock.duration(length, number)
        frame = clock.position(at, number)
        marker = EditMarker(frame, comment.strip(), user=user.strip(), color=color.strip())
        timeline.add_lasting(marker, duration)
    return timeline


def _marker_lines(text: str) -> list[tuple[int, list[str]]]:
    """Return the number of the line of each marker, and this line with those that its comment continues on."""
    markers = []
    for number, line in enumerate(text.splitlines(), 1):
        if _MARKER.match(line):
            markers.append((number, [line]))
        elif line.strip() and markers:
            _, marker_lines = markers[-1]
            marker_lines.append(line.strip(" "))
        elif line.strip():
            raise TimelineError(
                f"the line is not a marker of Avid: {line[:60]!r}",
                "export the markers as text again: user, time code, track, color, comment",
                number,
            )
    return markers
