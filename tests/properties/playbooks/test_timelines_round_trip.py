"""Whatever a timeline holds: written in any format and read again, it is the same."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msauto.documents.text_files import TextFileError
from msauto.model.fields import TRACKS
from msauto.model.timecode import Timecode
from msauto.plugins.timelines.formats import WRITERS, read_timeline
from msauto.plugins.timelines.timeline import EditMarker, EditSegment, EditTimeline, TimelineClock
from tests.examples import examples
from tests.tables import CASES

TEXTS = st.one_of(
    st.just(""),
    st.sampled_from(
        [
            "=1+1",
            "'@",
            "two\nlines",
            " padded ",
            "a --> b",
            "<b>&amp;",
            "|C:x |M:y |D:9",
            "* LOC: 1",
            "{}",
            "V1",
        ]
    ),
    st.text(
        st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"])
        | st.sampled_from("\n\t\" ,;'="),
        max_size=12,
    ),
    st.builds(
        lambda text, times: text * times,
        st.text("ab  ", min_size=1, max_size=3),
        st.integers(50, 150),
    ),
)
MARKERS = st.builds(
    EditMarker,
    st.integers(0, 10**7),
    TEXTS,
    TEXTS,
    TEXTS,
    TEXTS,
    st.integers(-9, 9),
    st.sampled_from(TRACKS),
)
SEGMENTS = st.builds(
    EditSegment,
    st.integers(0, 10**7),
    st.integers(1, 10**6),
    TEXTS,
    TEXTS,
    st.none() | st.integers(0, 99),
).filter(lambda segment: segment.duration > 1 or segment.number is not None)
"""What lasts one frame and has no number is a marker."""
CLOCKS = st.builds(
    TimelineClock,
    st.sampled_from(
        [
            Fraction(25),
            Fraction(24),
            Fraction(30000, 1001),
            Fraction(60000, 1001),
            Fraction(24000, 1001),
        ]
    ),
    st.sampled_from([None, "10:00:00:00"]).map(lambda text: text and Timecode.parse(text)),
)


@pytest.mark.parametrize("ending", WRITERS)
@settings(max_examples=examples(300), deadline=None)
@given(
    markers=st.lists(MARKERS, max_size=4),
    segments=st.lists(SEGMENTS, max_size=3),
    title=TEXTS,
    clock=CLOCKS,
)
def test_a_timeline_that_is_written_and_read_is_the_same(
    ending: str,
    markers: list[EditMarker],
    segments: list[EditSegment],
    title: str,
    clock: TimelineClock,
) -> None:
    clock = TimelineClock(clock.rate) if ending == "vtt" else clock
    written = WRITERS[ending](EditTimeline(markers, segments, title), clock)
    found = read_timeline(written.text.encode(), f"x.{ending}", clock)
    assert _items(found) == _items(EditTimeline(markers, segments))


PIECES = st.sampled_from(
    [
        *(
            "TITLE:",
            "FCM: DROP FRAME",
            "\n",
            "\n\n",
            "* LOC: ",
            "* MSAUTO: ",
            "{}",
            '"',
            "01:00:00:00",
            "00;01;00;00",
        ),
        *(
            " ",
            "\t",
            ",",
            "|C:x |M:y |D:3",
            "WEBVTT",
            " --> ",
            "00:00.500",
            "Start",
            "End",
            "Duration",
            "Rating",
            "\x00",
        ),
        *("001  AX V C ", "NOTE msauto ", '{"number":1}', '{"OTIO_SCHEMA":"Timeline.1"}', "9" * 30),
    ]
)


@settings(max_examples=examples(1000), deadline=None)
@given(
    ending=st.sampled_from(["edl", "otio", "csv", "vtt", "srt", "xlsx", "txt"]),
    content=st.binary(max_size=20)
    | st.lists(PIECES, max_size=12).map(lambda pieces: "".join(pieces).encode()),
)
def test_any_file_is_read_or_refused_with_a_reason(ending: str, content: bytes) -> None:
    refusal = _refusal(content, f"x.{ending}")
    assert refusal is None or (str(refusal) and refusal.remedy)


NESTED = (CASES / "timelines" / "nested.otio").read_text(encoding="utf-8")
VALUE = re.compile(r'(?<=: )(?:"[^"]*"|[-0-9.]+|null|true|\[\]|\{\})')
WORDS = VALUE.findall(NESTED)
OTHERS = ["null", "true", "-1", "1e400", "NaN", "1e-400", "9" * 30, "[]", "{}", "[[]]"]
OTHERS += ['"x"', '"\\ud800"', '"Clip.1"', '"Stack.1"']


@settings(max_examples=examples(2000), deadline=None)
@given(place=st.integers(0, len(WORDS) - 1), other=st.sampled_from(OTHERS) | st.sampled_from(WORDS))
def test_any_value_in_an_otio_file_is_read_or_refused_with_a_reason(place: int, other: str) -> None:
    number = itertools.count()
    text = VALUE.sub(lambda match: other if next(number) == place else match[0], NESTED)
    refusal = _refusal(text.encode(), "x.otio")
    assert refusal is None or (str(refusal) and refusal.remedy)


def _refusal(content: bytes, name: str) -> TextFileError | None:
    try:
        read_timeline(content, name, TimelineClock(Fraction(30000, 1001)))
    except TextFileError as error:
        return error
    return None


def _items(timeline: EditTimeline) -> list[str]:
    markers = [repr(each.as_item()) for each in timeline.markers]
    return sorted(markers + [repr(each.as_item()) for each in timeline.segments])
