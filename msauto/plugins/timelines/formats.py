"""The formats: by the content of a file, and by its ending where the content does not decide."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from typing import Final

from msauto.plugins.timelines.captions import read_captions, write_vtt
from msauto.plugins.timelines.edl import is_edl, read_edl, write_edl
from msauto.plugins.timelines.otio import read_otio, write_otio
from msauto.plugins.timelines.tables import is_marker_list, is_table, read_csv, read_marker_list, read_xlsx, write_csv
from msauto.plugins.timelines.timeline import (
    EditTimeline,
    TimelineClock,
    TimelineError,
    WrittenTimeline,
    check_lines,
    check_tracks,
    with_track,
)

WRITERS: Final[Mapping[str, Callable[[EditTimeline, TimelineClock], WrittenTimeline]]] = {
    "edl": write_edl,
    "otio": write_otio,
    "csv": write_csv,
    "vtt": write_vtt,
}
"""The formats that can be written, each with its ending."""
_READERS: Final[Mapping[str, Callable[[str, TimelineClock], EditTimeline]]] = {
    "edl": read_edl,
    "otio": read_otio,
    "vtt": read_captions,
    "srt": read_captions,
}
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def read_timeline(
    content: bytes,
    name: str,
    clock: TimelineClock,
    *,
    tracks: Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str = "",
) -> EditTimeline:
    """Read a file of any of the formats; raises :class:`TimelineError`.

    ``tracks``: tracks by color. ``columns``: headers of a cue sheet by column. ``encoding``: of a text without a byte
    order mark, instead of UTF-8.
    """
    own_tracks = check_tracks(tracks or {})
    timeline = _read(content, name.rpartition(".")[2].casefold(), clock, columns or {}, encoding)
    timeline.markers = sorted((with_track(each, own_tracks) for each in timeline.markers), key=lambda each: each.frame)
    timeline.segments.sort(key=lambda segment: segment.start)
    return timeline


def _read(content: bytes, ending: str, clock: TimelineClock, columns: Mapping[str, str], encoding: str) -> EditTimeline:
    if content.startswith(b"PK\x03\x04"):
        return read_xlsx(content, clock, columns)
    text = decode(content, encoding)
    if not text.strip():
        raise TimelineError("the file is empty", "export it again")
    if ending in {"csv", "tsv"} and not is_marker_list(text):
        return read_csv(text, clock, columns)
    if '"OTIO_SCHEMA"' not in text[:10_000] and ending != "otio" and not (columns or is_table(text)):
        check_lines(text)
    if ending in _READERS:
        return _READERS[ending](text, clock)
    if text.startswith("WEBVTT") or " --> " in text[:1000]:
        return read_captions(text, clock)
    if '"OTIO_SCHEMA"' in text[:10_000]:
        return read_otio(text, clock)
    if is_marker_list(text):
        return read_marker_list(text, clock)
    if is_edl(text):
        return read_edl(text, clock)
    if is_table(text) or columns:
        return read_csv(text, clock, columns)
    raise TimelineError(
        "the format is not known",
        "use EDL, OTIO, WebVTT, SRT, XLSX, CSV with a header, or a marker list of Avid",
    )


_ENCODINGS = re.compile(r"(?i)(?:ascii|big5|cp|euc|gb|iso|koi8|latin|mac|shift|utf|windows)[\w-]*")
"""Encodings of texts; others that Python has, such as punycode, take long."""


def decode(content: bytes, encoding: str = "") -> str:
    """Return the text of a file: by its byte order mark, else UTF-16 if every second byte is 0, else UTF-8."""
    marked = next((name for mark, name in _BYTE_ORDER_MARKS if content.startswith(mark)), None)
    wide = "utf-16-le" if content[1:2] == b"\x00" else ""
    try:
        if encoding and not _ENCODINGS.fullmatch(encoding):
            raise LookupError
        return content.decode(marked or encoding or wide or "utf-8")
    except UnicodeDecodeError as error:
        remedy = "save it as UTF-8, or name its encoding: encoding='cp1252'"
        line = content.count(b"\n", 0, error.start) + 1
        raise TimelineError(f"the file is not {marked or encoding or 'UTF-8'}", remedy, line) from error
    except LookupError as error:
        raise TimelineError(f"unknown encoding {encoding!r}", "write encoding='cp1252' or 'mac_roman'") from error
