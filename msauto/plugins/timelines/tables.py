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
_WRITTEN = ("Start", "Duration", "Title", "Comment", "Color", "Track", "User", "Keywords", "Rating", "Number")

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


def read_rows(rows: Iterable[Row], clock: TimelineClock, columns: Mapping[str, str]) -> EditTimeline:
    """Read rows, the first of which is the header: a row with a duration is a segment, any other one a marker."""
    filled = [(line, row) for line, row in rows if any(cell.strip() for cell in row)]
    timeline = EditTimeline()
    if not filled:
        raise TimelineError("the table is empty", "add a header with a column Start")
    places = _places(filled[0], columns)
    for line, row in filled[1:]:
        if len(row) > len(filled[0][1]) and any(row[len(filled[0][1]) :]):
            raise TimelineError("the row has more cells than the header", "quote cells that hold the separator", line)
        cells = {name: as_written(row[at]) if at < len(row) else "" for name, at in places.items()}
        _add_row(timeline, dict.fromkeys(COLUMNS, "") | cells, line, clock)
    return timeline


def _places(header: Row, columns: Mapping[str, str]) -> dict[str, int]:
    """Return where each column is; raises :class:`TimelineError` without one for the start."""
    named = [cell.strip().casefold() for cell in header[1]]
    own = {str(column): str(name).strip().casefold() for column, name in columns.items()}
    for column, name in own.items():
        if column not in COLUMNS:
            raise TimelineError(f"columns: unknown column {column!r}", unknown=(column, COLUMNS))
        if name not in named:
            raise TimelineError(f"the header has no column {columns[column]!r}", line=header[0], unknown=(name, named))
    places = {}
    for column, names in COLUMNS.items():
        header_name = next((name for name in ([own[column]] if column in own else names) if name in named), None)
        if header_name is not None:
            places[column] = named.index(header_name)
    if "start" not in places:
        shown = ", ".join(header[1][:12])
        raise TimelineError(
            f"the header has no column for the start: {shown}",
            "name it Start, or set columns={'start': 'its name'}",
            header[0],
        )
    return places


def _add_row(timeline: EditTimeline, row: Mapping[str, str], line: int, clock: TimelineClock) -> None:
    if not row["start"].strip():
        raise TimelineError("the row has no position", "add a time code, or delete the row", line)
    start, duration = clock.position(row["start"], line), 0
    if row["duration"].strip():
        duration = clock.duration(row["duration"], line)
    elif row["end"].strip():
        duration = clock.position(row["end"], line) - start
        if duration < 0:
            raise TimelineError("the row ends before it starts", "correct its time codes", line)
    numbers: dict[str, int | None] = {"rating": None, "number": None}
    for column in numbers:
        if text := row[column].strip():
            if not re.fullmatch(r"-?\d{1,9}", text, re.ASCII):
                raise TimelineError(f"{column} {text[:40]!r} is not a whole number", "write digits", line)
            numbers[column] = int(text)
    track = row["track"].strip()
    marker = EditMarker(
        start,
        **{name: row[name] for name in MARKER_TEXTS},
        rating=numbers["rating"] or 0,
        track="" if _EDIT_TRACK.fullmatch(track) else track,
        color=row["color"].strip(),
        line=line,
    )
    timeline.add(marker, duration, numbers["number"])


# Cue sheets as XLSX ---------------------------------------------------------------------------------------------


def read_xlsx(content: bytes, clock: TimelineClock, columns: Mapping[str, str]) -> EditTimeline:
    """Read the first sheet as a table; raises :class:`TimelineError`, also if the extra is missing."""
    return read_rows(enumerate(read_sheet(content), 1), clock, columns)


# Writing -------------------------------------------------------------------------------------------------------


def write_csv(timeline: EditTimeline, clock: TimelineClock) -> WrittenTimeline:
    """Write a row for each segment and marker. It begins with a byte order mark: spreadsheets look for one."""
    rows: list[tuple[int, tuple[str, ...]]] = []
    for segment in timeline.segments:
        times = (clock.show(segment.start), clock.show_duration(segment.duration))
        number = "" if segment.number is None else str(segment.number)
        rows.append((segment.start, (*times, segment.title, "", "", "", "", segment.keywords, "", number)))
    for marker in timeline.markers:
        texts = (marker.title, marker.comment, color_of(marker.track), marker.track, marker.user, marker.keywords)
        rows.append((marker.frame, (clock.show(marker.frame), "", *texts, str(marker.rating or ""), "")))
    rows.sort(key=lambda row: row[0])
    lines = [csv_line(cells) for _, cells in rows]
    return WrittenTimeline("".join(("\ufeff", csv_line(_WRITTEN), *lines)))


_MARKER = re.compile(r"[^\t]*\t\d{1,2}[:;]\d{2}[:;]\d{2}[:;]\d{2,3}\t")


def is_marker_list(text: str) -> bool:
    """Return whether a text looks like a marker list of Avid."""
    return any(map(_MARKER.match, text.splitlines()[:20]))


def read_marker_list(text: str, clock: TimelineClock) -> EditTimeline:
    """Read markers; one of more than one frame becomes a segment."""
    lines: list[tuple[int, list[str]]] = []  # each with those that its comment continues on
    for number, line in enumerate(text.splitlines(), 1):
        if _MARKER.match(line):
            lines.append((number, [line]))
        elif line.strip() and lines:
            lines[-1][1].append(line.strip(" "))
        elif line.strip():
            raise TimelineError(
                f"the line is not a marker of Avid: {line[:60]!r}",
                "export the markers as text again: user, time code, track, color, comment",
                number,
            )
    timeline = EditTimeline()
    for number, parts in lines:
        user, at, _, color, comment, length = [*" ".join(parts).split("\t", 6), "", "", ""][:6]
        frames = clock.duration(length, number) if length.strip() else 1
        marker = EditMarker(clock.position(at, number), comment.strip(), user=user.strip(), color=color.strip())
        timeline.add(marker, frames if frames > 1 else 0)
    return timeline
