"""Lines of timelines that are too long, and those that are long in honest files."""

from __future__ import annotations

import re

import pytest

from msauto.documents.text_files import TextFileError
from msauto.model.timecode import parse_rate
from msauto.plugins.timelines import edl
from msauto.plugins.timelines.formats import read_timeline
from msauto.plugins.timelines.tables import read_marker_list
from msauto.plugins.timelines.timeline import (
    EditMarker,
    EditSegment,
    EditTimeline,
    TimelineClock,
)

CLOCK = TimelineClock(parse_rate(25), None)
TIMES = "01:00:00:00 01:00:01:00"
EVENT = f"001  AX V C {TIMES} {TIMES}\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.edl", EVENT + "001 " + "A V C " * 2000),
        ("a.edl", EVENT + "|C: |M: |D:" * 1000),
        ("a.vtt", "WEBVTT\n" + "<" * 10_001),
        ("a.srt", "1\n" + "0" * 10_001 + " --> 1"),
        ("a.txt", "Anna\t01:00:00:00\tV1\tred\tx\t1\n" + "y" * 10_001),
    ],
)
def test_a_line_above_10000_characters_is_an_error_of_the_file(name: str, text: str) -> None:
    with pytest.raises(
        TextFileError, match=r"the line has 1\d,\d+ characters, more than 10,000"
    ) as caught:
        read_timeline(text.encode(), name, CLOCK)
    assert caught.value.line == 2
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.edl", EVENT + "x\n" * 250_000, "more than 250,000 lines"),
        ("a.srt", "1\n" * 250_001, "more than 250,000 lines"),
        ("a.vtt", "WEBVTT\n" + "x" * 2**24, "more than 16,777,216 characters"),
        ("a.csv", "Start\n" + "1\n" * 750_000, "more than 3,000,000 values"),
        ("a.csv", "Start\n" + "1\r" * 750_000, "more than 3,000,000 values"),
        ("a.csv", "Start\n" + "," * 3_000_000, "more than 3,000,000 values"),
        ("a.otio", '{"OTIO_SCHEMA": [' + "{}," * 1_500_000, "more than 3,000,000 values"),
    ],
)
def test_a_file_that_takes_too_much_memory_is_not_read(name: str, text: str, why: str) -> None:
    with pytest.raises(TextFileError, match=why) as caught:
        read_timeline(text.encode(), name, CLOCK)
    assert caught.value.remedy


def test_a_cell_of_a_table_may_be_longer() -> None:
    timeline = read_timeline(f"Start,Title\n1,{'x' * 20_000}\n".encode(), "a.csv", CLOCK)
    assert len(timeline.markers[0].title) == 20_000


@pytest.mark.parametrize(
    "line", ["001 " + "A V C " * 1600, "1 " * 4900, "00:00:00:00 " * 800, "* LOC: " + " " * 9000]
)
def test_lines_that_are_nearly_events_are_read_without_searching_again(line: str) -> None:
    """The three loops inside one another of a regular expression would take hours."""
    assert edl._event(line.strip()) is None


@pytest.mark.parametrize(
    ("line", "reel", "edit"),
    [
        (EVENT, "AX", "C"),
        (f"12 My long reel  2  V  D 025 {TIMES} {TIMES} note", "My long reel  2", "D"),
        (f"12 A B W001 {TIMES} {TIMES}", "A", "W001"),
    ],
)
def test_a_reel_may_have_spaces(line: str, reel: str, edit: str) -> None:
    event = edl._event(line.strip())
    assert event is not None
    assert (event.reel, event.edit) == (reel, edit)


def test_a_comment_of_many_lines_is_joined() -> None:
    text = "Anna\t01:00:00:00\tV1\tred\ta\n" + "b\n" * 3000
    assert read_marker_list(text, CLOCK).markers[0].title == " ".join(["a", *["b"] * 3000])


def test_a_locator_is_below_the_first_segment_that_it_is_in() -> None:
    segments = [EditSegment(0, 100, "A"), EditSegment(10, 20, "B"), EditSegment(120, 10, "C")]
    markers = [EditMarker(frame, f"m{frame}") for frame in (5, 15, 99, 100, 125, 130)]
    written = edl.write_edl(EditTimeline(markers=markers, segments=segments), CLOCK).text
    blocks = written.split("FROM CLIP NAME")
    assert [re.findall(r"m\d+", block) for block in blocks] == [
        ["m100", "m130"],
        ["m5", "m15", "m99"],
        [],
        ["m125"],
    ]
