"""The formats: by the content of a file, and by its ending where the content does not decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msauto.documents.text_files import check_lines, check_text_size, decode
from msauto.plugins.timelines.captions import read_captions, write_vtt
from msauto.plugins.timelines.edl import is_edl, read_edl, write_edl
from msauto.plugins.timelines.otio import read_otio, write_otio
from msauto.plugins.timelines.tables import (
    is_marker_list,
    read_csv,
    read_marker_list,
    read_xlsx,
    separator_of,
    write_csv,
)
from msauto.plugins.timelines.timeline import (
    EditTimeline,
    TimelineClock,
    TimelineError,
    WrittenTimeline,
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
    "vtt": read_captions,
    "srt": read_captions,
}


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
    if timeline.problems and not timeline.items():
        raise timeline.problems[0]
    timeline.markers = [with_track(marker, own_tracks) for marker in timeline.markers]
    timeline.markers.sort(key=lambda marker: marker.start)
    timeline.segments.sort(key=lambda segment: segment.start)
    return timeline


def _read(
    content: bytes, ending: str, clock: TimelineClock, columns: Mapping[str, str], encoding: str
) -> EditTimeline:
    if content.startswith(b"PK\x03\x04"):
        return read_xlsx(content, clock, columns)
    text = decode(content, encoding)
    if not text.strip():
        raise TimelineError("the file is empty", "export it again")
    if ending == "otio" or '"OTIO_SCHEMA"' in text[:10_000]:
        return read_otio(text, clock)
    check_text_size(text)
    is_sheet = ending in {"csv", "tsv"} or columns or separator_of(text)
    if not is_sheet:
        check_lines(text)
    reader = _READERS.get(ending)
    if reader is None and is_marker_list(text):
        reader = read_marker_list
    if reader is None and is_sheet:
        return read_csv(text, clock, columns)
    if reader is None:
        reader = _reader_of(text)
    return reader(text, clock)


def _reader_of(text: str) -> Callable[[str, TimelineClock], EditTimeline]:
    """Return the reader of a text that is not a table; raises :class:`TimelineError`."""
    if text.lstrip().startswith("<"):
        raise TimelineError(
            "the file is XML", "export the timeline as OTIO or EDL, or captions as WebVTT or SRT"
        )
    if text.startswith("WEBVTT") or " --> " in text[:1000]:
        return read_captions
    if is_edl(text):
        return read_edl
    raise TimelineError(
        "the format is not known",
        "use EDL, OTIO, WebVTT, SRT, XLSX, CSV with a header, or a marker list of Avid",
    )
