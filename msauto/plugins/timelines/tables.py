"""Tables: cue sheets (CSV, TSV, XLSX) with named columns, also of Premiere and Frame.io, and marker lists of Avid.

Formats: Premiere, "Export > Markers", UTF-16 with tabs: ``Marker Name, Description, In, Out, Duration, Marker Type``
(read by PremiereMarkerTools, ``import_premiere``; the duration is that of Out less In). Frame.io, "Export comments as
CSV": ``Comment, Commenter, Timecode`` and ``Duration`` in frames (repository logik-portal/python, frame_io).

Avid Media Composer writes a line for each marker, with tabs between user, time code, track, color, comment and length
in frames (repository adamhawkey/EDL_tools, Marker_tools/README.md). A line break in a comment continues it below.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any, Final

from msauto.documents.csv_cells import as_written, csv_line
from msauto.documents.text_files import (
    Row,
    check_header,
    header_delimiter,
    lines_of,
    table_rows,
)
from msauto.model.timecode import show_timecode
from msauto.plugins.timelines.sheets import read_sheet
from msauto.plugins.timelines.timeline import (
    MARKER_TEXTS,
    EditMarker,
    EditSegment,
    EditTimeline,
    TimelineClock,
    TimelineError,
    WrittenTimeline,
    color_of,
)
from msauto.primitives.decimals import read_whole

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "start": ("start", "in", "timecode in", "tc in", "timecode", "tc", "at", "position", "time", "start time",
              "start tc", "start timecode",
              "timecode source", "frame"),
    "end": ("end", "out", "timecode out", "tc out", "end time", "end tc", "end timecode"),
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
_MOST_TITLES: Final = 20
"""The lines above a header."""
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


# Reading -------------------------------------------------------------------------------------------------------


def separator_of(text: str, starts: Sequence[str] = COLUMNS["start"]) -> str:
    """Return what separates the names of a header in the first lines; empty if none of them names a start."""
    for _, line in islice(lines_of(text), _MOST_TITLES):
        if ":" in line:  # as in SubStation
            continue
        separator = header_delimiter(line)
        for cell in line.split(separator):
            if cell.strip(' "').casefold() in starts:
                return separator
    return ""


def read_csv(text: str, clock: TimelineClock, columns: Mapping[str, str]) -> EditTimeline:
    """Read a text with a header; ``columns``: headers by column, instead of those of :data:`COLUMNS`."""
    separator = separator_of(text, _names_of(columns)["start"])
    rows, _ = table_rows(text, separator)
    return read_rows(rows, clock, columns)


def _names_of(columns: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the names that each column may have in the header."""
    names = dict(COLUMNS)
    for column, name in columns.items():
        if column not in COLUMNS:
            raise TimelineError(f"columns: unknown column {column!r}", unknown=(column, COLUMNS))
        names[column] = (str(name).strip().casefold(),)
    return names


def read_rows(
    rows: Iterable[Row], clock: TimelineClock, columns: Mapping[str, str]
) -> EditTimeline:
    """Read rows: one with a duration is a segment, any other one a marker. Titles may be above the header."""
    filled = [(line, row) for line, row in rows if any(map(str.strip, row))]
    if not filled:
        raise TimelineError("the table is empty", "add a header with a column Start")
    starts = _names_of(columns)["start"]
    place_of_header = 0
    for place, (_, row) in enumerate(filled[:_MOST_TITLES]):
        if any(cell.strip().casefold() in starts for cell in row):
            place_of_header = place
            break
    header = filled[place_of_header]
    width = len(header[1])
    places = _places(header, columns)
    timeline = EditTimeline()
    for line, row in filled[place_of_header + 1 :]:
        if any(row[width:]):
            raise TimelineError(
                "the row has more cells than the header",
                "quote cells that hold the separator",
                line,
            )
        cells = {
            column: as_written(row[place]) for column, place in places.items() if place < len(row)
        }
        add_row(timeline, cells, line, clock)
    return timeline


def _places(header: Row, columns: Mapping[str, str]) -> dict[str, int]:
    """Return where each column is; raises :class:`TimelineError` without one for the start."""
    line, cells = header
    named = [cell.strip().casefold() for cell in cells]
    places = {}
    for column, names in _names_of(columns).items():
        known = sorted((cell for cell in named if cell in names), key=names.index)
        check_header(line, known)
        if known:
            places[column] = named.index(known[0])
        elif column in columns:
            raise TimelineError(
                f"the header has no column {columns[column]!r}",
                line=line,
                unknown=(names[0], named),
            )
    if "start" not in places:
        shown = ", ".join(cells[:12])
        raise TimelineError(
            f"the header has no column for the start: {shown}",
            "add a header with Start, or set columns={'start': 'its name'}",
            line,
        )
    return places


def add_row(
    timeline: EditTimeline, cells: Mapping[str, str], line: int, clock: TimelineClock
) -> None:
    """Add a row; its cells have the names of columns."""
    row = {**dict.fromkeys(COLUMNS, ""), **cells}
    if not row["start"].strip():
        raise TimelineError("the row has no position", "add a time code, or delete the row", line)
    start, duration = clock.lasting(row["start"], row["end"], line)
    if row["duration"].strip():
        duration = clock.duration(row["duration"], line)
    texts = {name: row[name] for name in MARKER_TEXTS}
    color = row["color"].strip()
    track = row["track"].strip()
    if _EDIT_TRACK.fullmatch(track):
        track = ""
    rating = _number(row, "rating", line) or 0
    marker = EditMarker(start, **texts, rating=rating, track=track, color=color, line=line)
    timeline.add(marker, duration, _number(row, "number", line))


def _number(row: Mapping[str, str], column: str, line: int) -> int | None:
    text = row[column].strip()
    number = read_whole(text)
    if text and number is None:
        raise TimelineError(f"{column} {text[:40]!r} is not a whole number", "write digits", line)
    return number


# Cue sheets as XLSX ---------------------------------------------------------------------------------------------


def read_xlsx(content: bytes, clock: TimelineClock, columns: Mapping[str, str]) -> EditTimeline:
    """Read the first sheet as a table; raises :class:`TimelineError`, also if the extra is missing."""
    return read_rows(enumerate(read_sheet(content), 1), clock, columns)


# Writing -------------------------------------------------------------------------------------------------------


def write_csv(timeline: EditTimeline, clock: TimelineClock) -> WrittenTimeline:
    """Write a row for each segment and marker. It begins with a byte order mark: spreadsheets look for one."""
    lines = [csv_line(_WRITTEN)]
    for item in timeline.items():
        values: dict[str, Any] = asdict(item) | {"start": clock.show(item.start)}
        if isinstance(item, EditSegment):
            frames = item.duration
            values["duration"] = show_timecode(frames, clock.rate, drop=clock.drop)
        else:
            values["color"] = color_of(item.track)
            values["rating"] = item.rating or ""
        cells = [values.get(name.casefold()) for name in _WRITTEN]
        lines.append(csv_line("" if cell is None else str(cell) for cell in cells))
    return WrittenTimeline("".join(("\ufeff", *lines)))


_AVID_CELLS = ("user", "start", "edit track", "color", "title", "duration")
_MARKER = re.compile(r"[^\t]*\t\d{1,2}[:;]\d{2}[:;]\d{2}[:;]\d{2,3}\t")


def is_marker_list(text: str) -> bool:
    """Return whether a text looks like a marker list of Avid."""
    return any(_MARKER.match(line) for _, line in islice(lines_of(text), _MOST_TITLES))


def read_marker_list(text: str, clock: TimelineClock) -> EditTimeline:
    """Read markers; one of more than one frame becomes a segment."""
    timeline = EditTimeline()
    for number, marker_lines in _marker_lines(text):
        cells = map(str.strip, " ".join(marker_lines).split("\t", 6))
        add_row(timeline, dict(zip(_AVID_CELLS, cells, strict=False)), number, clock)
    return timeline


def _marker_lines(text: str) -> list[tuple[int, list[str]]]:
    """Return the number of the line of each marker, and this line with those that its comment continues on."""
    markers = []
    for number, line in lines_of(text):
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
