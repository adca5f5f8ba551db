"""Timelines of other programs are read as they are meant, and an error names the line and the reason."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from msauto.documents.text_files import TextFileError
from msauto.errors import nearest
from msauto.model.timecode import parse_rate
from msauto.plugins.timelines.formats import WRITERS, read_timeline
from msauto.plugins.timelines.timeline import (
    EditMarker,
    EditSegment,
    EditTimeline,
    TimelineClock,
    TimelineError,
    joined,
    parse_origin,
)
from tests.tables import CASES, load, table

FOLDER = CASES / "timelines"


def clock(rate: object = 25, origin: str = "") -> TimelineClock:
    return TimelineClock(parse_rate(rate), parse_origin(origin) if origin else None)


def read(
    name: str, text: str | bytes, rate: object = 25, origin: str = "", **options: Any
) -> dict[str, Any]:
    content = text if isinstance(text, bytes) else text.encode()
    return items(read_timeline(content, name, clock(rate, origin), **options))


def items(timeline: EditTimeline) -> dict[str, Any]:
    markers = [each.as_item() for each in timeline.markers]
    return {"markers": markers, "segments": [each.as_item() for each in timeline.segments]}


TEN = "10:00:00:00"


@table("timelines/expected", "name", "options", "markers", "segments")
def test_exports_of_other_programs(
    name: str,
    options: dict[str, Any],
    markers: list[dict[str, Any]],
    segments: list[dict[str, Any]],
) -> None:
    found = read(name, (FOLDER / name).read_bytes(), **options)
    assert found == {"markers": markers, "segments": segments}
    if name != "cue_sheet.csv":  # which needs columns
        unnamed = read("export.txt", (FOLDER / name).read_bytes(), **options)
        assert unnamed == found, "the content decides where the ending does not"


@table("timelines/texts", "name", "text", "options", "markers", "segments")
def test_kinds_of_files_that_others_bring(
    name: str,
    text: str,
    options: dict[str, Any] | None,
    markers: list[dict[str, Any]] | None,
    segments: list[dict[str, Any]] | None,
) -> None:
    found = read(name, text, **(options or {}))
    assert found == {"markers": markers or [], "segments": segments or []}


EVENT = "001  AX V C 00:00:00:00 00:00:02:00 00:00:00:00 00:00:02:00\n"


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("a.edl", f"TITLE: x\n{EVENT}2 B V C 1 2 3 4\nnobody knows this\n", [3, 4]),
        ("a.edl", f"TITLE: x\nabove\n{EVENT}", [2]),
        ("a.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\nFirst\n\nSecond\n\nThird\n", [6, 8]),
        ("a.srt", "above\n1\n00:00:01,000 --> 00:00:02,000\nx\n", [1]),
    ],
)
def test_what_is_not_understood_is_named_line_by_line(
    name: str, text: str, lines: list[int]
) -> None:
    timeline = read_timeline(text.encode(), name, clock())
    assert len(timeline.segments) == 1
    assert [problem.line for problem in timeline.problems] == lines
    with pytest.raises(TimelineError, match="not understood") as caught:
        timeline.check_understood()
    assert caught.value.line == lines[0]
    assert caught.value.remedy
    assert all(str(line) in str(caught.value) for line in lines[1:])


def test_lines_that_are_not_understood_are_bounded() -> None:
    with pytest.raises(TimelineError, match="not understood"):
        read("a.edl", f"TITLE: x\n{EVENT}" + "nobody knows this\n" * 200_000)


# Rates and time codes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", ["29.97", "59.94"])
def test_drop_frame_is_that_of_another_library(rate: str) -> None:
    at = clock(rate)
    lines = (FOLDER / "drop_frames.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split() for line in lines if line.startswith(rate)]
    assert len(rows) > 100
    for _, number, text in rows:
        frame = int(number)
        assert at.position(text, 1) == frame
        assert at.of_drop_colons().position(text.replace(";", ":"), 1) == frame
        assert at.show(frame) == text


@pytest.mark.parametrize(
    ("value", "rate"), [(25, "25"), ("29.97", "30000/1001"), (23.976, "24000/1001"), ("30000/1001", "30000/1001"),
                        ("23.98 fps", "24000/1001"), ("12.5", "25/2"), (30, "30"), (59.94, "60000/1001")]
)  # fmt: skip
def test_rates(value: object, rate: str) -> None:
    assert str(parse_rate(value)) == rate


@pytest.mark.parametrize(
    ("text", "frame"), [("01;00;00;00", 107892), ("1:00:00;00", 107892), ("01:00:00:00", 108000), ("00:00:10", 300),
                        ("00:10.5", 315), ("00:00:01,000", 30), ("77", 77)]
)  # fmt: skip
def test_forms_of_time_codes(text: str, frame: int) -> None:
    assert clock("29.97").position(text, 1) == frame


def otio_nested(levels: int) -> bytes:
    child: dict[str, Any] = {"OTIO_SCHEMA": "Clip.2"}
    for _ in range(levels):
        child = {"OTIO_SCHEMA": "Stack.1", "children": [child]}
    return json.dumps({"OTIO_SCHEMA": "Timeline.1", "tracks": child}).encode()


def otio_with(items: int) -> bytes:
    gaps = [{"OTIO_SCHEMA": "Gap.1"}] * items
    return json.dumps(
        {"OTIO_SCHEMA": "Timeline.1", "tracks": {"OTIO_SCHEMA": "Stack.1", "children": gaps}}
    ).encode()


@table("timelines/errors", "name", "text", "options", "message", "remedy", "line")
def test_what_cannot_be_read_has_its_reason_and_its_line(
    name: str,
    text: str,
    options: dict[str, Any] | None,
    message: str,
    remedy: str,
    line: int | None,
) -> None:
    check(name, text, options or {}, message, remedy, line)


@pytest.mark.parametrize(
    ("name", "content", "options", "message", "remedy", "line"),
    [
        ("a.otio", otio_nested(33), {}, "more than 32 levels", "again", None),
        ("a.otio", otio_nested(300), {}, "more than 32 levels", "again", None),
        ("a.otio", b'{"a":' * 100_000, {}, "nesting is too large", "again", None),
        (
            "a.otio",
            b'{"a":' + b"9" * 5000 + b"}",
            {},
            "a number or the nesting is too large",
            "again",
            None,
        ),
        ("a.otio", otio_with(100_000), {}, "100000 items", "again", None),
        ("a.xlsx", b"PK\x03\x04", {}, "not a valid XLSX", "CSV", None),
        ("a.edl", "TITLE: é".encode("latin-1"), {}, "not UTF-8", "encoding='cp1252'", 1),
        (
            "a.edl",
            "TITLE: é".encode("latin-1"),
            {"encoding": "x"},
            "unknown encoding 'x'",
            "cp1252",
            None,
        ),
    ],
)
def test_bytes_that_cannot_be_read(
    name: str, content: bytes, options: dict[str, Any], message: str, remedy: str, line: int | None
) -> None:
    check(name, content, options, message, remedy, line)


def check(
    name: str,
    text: str | bytes,
    options: dict[str, Any],
    message: str,
    remedy: str,
    line: int | None,
) -> None:
    with pytest.raises(TextFileError) as caught:
        read(name, text, **options)
    assert message in str(caught.value)
    assert remedy in (caught.value.remedy or nearest(*caught.value.unknown))
    assert caught.value.line == line


def test_encodings() -> None:
    edl = "TITLE: x\n* LOC: 00:00:01:00 RED Été\n"
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"):
        assert read("a.edl", edl.encode(encoding))["markers"][0]["title"] == "Été"
    assert (
        read("a.edl", edl.encode("mac_roman"), encoding="mac_roman")["markers"][0]["title"] == "Été"
    )


# Spreadsheets --------------------------------------------------------------------------------------------------------

PARTS = load(CASES / "timelines" / "spreadsheet.yml")


def xlsx(*rows: str) -> bytes:
    lines = "".join(f"<row>{row}</row>" for row in rows)
    sheet = (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        f"<sheetData>{lines}</sheetData></worksheet>"
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in {**PARTS, "xl/worksheets/sheet1.xml": sheet}.items():
            archive.writestr(name, text)
    return out.getvalue()


FAR = '<c r="A1"><v>1</v></c><c r="{}"><v>1</v></c>'


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (lambda: FAR.format("XFD1048576"), "needs more than 1024 MiB"),
        (lambda: FAR.format("B600000"), "more than 1000000 cells"),
        pytest.param(
            lambda: f'<c t="inlineStr"><is><t>{"x" * (65 << 20)}</t></is></c>',
            "more than 64 MiB of text",
            marks=pytest.mark.scale,
        ),
    ],
    ids=["far cell", "far row", "long text"],
)
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds the memory of a process")
def test_xlsx_that_asks_for_too_much_is_an_error(cells: Callable[[], str], message: str) -> None:
    with pytest.raises(TimelineError, match=message) as caught:
        read("a.xlsx", xlsx(cells()))
    assert "CSV" in caught.value.remedy


def test_a_cue_sheet_as_xlsx() -> None:
    def text(words: str) -> str:
        return f'<c t="inlineStr"><is><t>{words}</t></is></c>'

    content = xlsx(
        text("Start") + text("Duration") + text("Title"),
        text("00:00:10:05") + text("") + text("as text"),
        f'<c s="1"><v>{15 / 86400}</v></c><c s="2"><v>{2 / 86400}</v></c>' + text("as times"),
        "<c><v>500</v></c><c/>" + text("as frames"),
    )
    assert read("cues.xlsx", content) == {
        "markers": [{"at": 255, "title": "as text"}, {"at": 500, "title": "as frames"}],
        "segments": [{"start": 375, "duration": 50, "title": "as times"}],
    }


# Writing -------------------------------------------------------------------------------------------------------------


def test_texts_that_an_edl_cannot_hold_are_shortened_for_others_and_whole_for_msauto() -> None:
    marker = EditMarker(25, "long " * 100, "two\nlines", "Anna", rating=-2, track="Profanity End")
    timeline = EditTimeline([marker], [EditSegment(0, 50, "a\nb", "k", 7)], "News")
    written = WRITERS["edl"](timeline, clock())
    assert max(map(len, written.text.splitlines())) < 240
    assert "* FROM CLIP NAME: a b\n" in written.text
    assert "...\n" in written.text
    assert len(written.warnings) == 2
    found = read("a.edl", written.text)
    assert found["markers"][0] == marker.as_item()
    assert found["segments"][0] == timeline.segments[0].as_item()
    edited = read("a.edl", written.text.replace("NAME: a b", "NAME: Opener"))
    assert edited["segments"][0] == {
        "number": 7,
        "start": 0,
        "duration": 50,
        "title": "Opener",
        "keywords": "k",
    }


def test_formulas_are_quoted() -> None:
    texts = [
        "=1+1",
        "+x",
        "-1",
        "@x",
        "\tx",
        "\rx",
        " =1",
        "＝1",
        "a;=1",
        "'=1",
        "'quoted'",
        "plain",
    ]
    timeline = EditTimeline([EditMarker(at, text) for at, text in enumerate(texts)])
    written = WRITERS["csv"](timeline, clock()).text
    assert all(
        cell in written
        for cell in ('"\'=1+1"', '"-1"', '"\' =1"', '"\'＝1"', '"a;\'=1"', "\"'quoted'\"")
    )
    assert [each["title"] for each in read("a.csv", written)["markers"]] == texts


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(TimelineError) as caught:
        read("a.xlsx", b"PK\x03\x04")
    assert caught.value.remedy == "pip install python-calamine"


def test_notes_on_one_frame_are_one_marker() -> None:
    first = EditMarker(5, "A", "too dark", "Anna", rating=1)
    second = EditMarker(5, "B", "yes", "Anna", track="General", rating=3)
    other = EditMarker(5, "C", track="Icon")
    assert joined([first, second, other]) == [
        EditMarker(5, "A / B", "too dark\nyes", "Anna", rating=3),
        other,
    ]


def test_overlapping_segments_and_a_start_time_in_otio() -> None:
    timeline = EditTimeline(
        [EditMarker(5, "m", track="Cue Point")], [EditSegment(0, 50), EditSegment(25, 50, "b")]
    )
    written = WRITERS["otio"](timeline, clock(25, TEN)).text
    expected = items(timeline)
    assert read("a.otio", written, origin=TEN) == expected
    assert read("a.otio", written) == expected, (
        "without an origin, the start of the timeline counts"
    )
    shifted = read("a.otio", written, origin="09:59:59:00")
    assert shifted["markers"][0]["at"] == 30
    assert read("a.otio", written, rate=50)["segments"][1]["start"] == 50


def test_otio_is_written_as_its_library_did() -> None:
    markers = [EditMarker(5, "Straße", 'say "hi"\n', "Anna", rating=2, track="Cue Point")]
    segments = [EditSegment(0, 50), EditSegment(25, 50, "b", "k", 7), EditSegment(100, 1, "c")]
    written = WRITERS["otio"](
        EditTimeline(markers, segments, "News"), clock("29.97", "01:00:00;00")
    ).text
    assert written == (FOLDER / "written.otio").read_text(encoding="utf-8")


def test_events_at_one_place_are_one_segment() -> None:
    key, below = EditSegment(0, 100, "REEL1", "k"), EditSegment(0, 100, "REEL2", "k")
    numbered = EditSegment(0, 100, "REEL2", number=7)
    assert joined([key, below, numbered]) == [EditSegment(0, 100, "REEL1 / REEL2", "k"), numbered]
