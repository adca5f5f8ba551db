"""Positions as the commands take them, checked against figures worked out elsewhere."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msauto.simulator.wire import format_frames, format_length, frame_time, parse_frames

NTSC = Fraction(30000, 1001)


@pytest.mark.parametrize(
    ("text", "rate", "frames"),
    [
        ("0", Fraction(25), 0),
        ("45000", Fraction(25), 45000),
        ("00:12:30:00", Fraction(25), 18750),
        ("26:00:00:01", Fraction(25), 2340001),
        ("00:00:01.5", Fraction(25), 38),
        ("00:00:02.04", Fraction(25), 51),
        ("00:00:01", Fraction(50), 50),
        ("00:01:00;02", NTSC, 1800),
        ("00:10:00;00", NTSC, 17982),
        ("01:00:00;00", NTSC, 107892),
        ("01:00:00:00", NTSC, 108000),
        ("01:00:00;00", Fraction(60000, 1001), 215784),
        ("00:00:01:23", Fraction(24000, 1001), 47),
    ],
)
def test_positions_in_frames(text: str, rate: Fraction, frames: int) -> None:
    assert parse_frames(text, rate) == frames


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("00:01:00;00", NTSC),
        ("00:01:00;03", Fraction(60000, 1001)),
        ("00:00:00:25", Fraction(25)),
        ("00:00:00;01", Fraction(25)),
        ("00:60:00:00", Fraction(25)),
        ("-1", Fraction(25)),
        ("1.5", Fraction(25)),
        ("", Fraction(25)),
        ("٣", Fraction(25)),
    ],
)
def test_what_is_no_position(text: str, rate: Fraction) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_frames(text, rate)


@given(st.integers(0, 10**8), st.sampled_from([24, 25, 30, 50, 60, NTSC]))
def test_a_formatted_position_comes_back(frames: int, rate: Fraction) -> None:
    assert parse_frames(format_frames(frames, Fraction(rate)), Fraction(rate)) == frames


def test_lengths_and_frame_times() -> None:
    assert format_length(45000, Fraction(25)) == "00:30:00"
    assert format_length(1, Fraction(25)) == "00:00:00.040"
    assert format_length(2340000, Fraction(25)) == "26:00:00"
    assert frame_time(Fraction(25)) == "0.0400000000"
    assert frame_time(NTSC) == "0.0333666667"
    assert frame_time(Fraction(60000, 1001)) == "0.0166833333"
