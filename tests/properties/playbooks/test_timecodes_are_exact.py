"""Time codes against a slow counter that knows nothing but how a clock ticks and what drop frame leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from msauto.model.timecode import Timecode, TimecodeError, nominal_rate, rate_of, show_timecode
from tests.examples import examples

RATES = {
    "23.976": Fraction(24000, 1001),
    "24": Fraction(24),
    "25": Fraction(25),
    "29.97": Fraction(30000, 1001),
    "30": Fraction(30),
    "47.95": Fraction(48000, 1001),
    "48": Fraction(48),
    "50": Fraction(50),
    "59.94": Fraction(60000, 1001),
    "60": Fraction(60),
    "100": Fraction(100),
    "119.88": Fraction(120000, 1001),
    "120": Fraction(120),
}
FORMS = [(name, False) for name in RATES] + [("29.97", True), ("59.94", True)]
LEFT_OUT = {"29.97": 2, "59.94": 4}
BEYOND_A_DAY = 30 * 3600

forms = pytest.mark.parametrize(("name", "drop"), FORMS, ids=lambda each: str(each))


def ticks(name: str, *, drop: bool, hour: int = 0) -> Iterator[str]:
    """Count as a clock does, frame by frame, from the beginning of an hour."""
    nominal = nominal_rate(RATES[name])
    width, sign = max(2, len(str(nominal - 1))), ";" if drop else ":"
    while True:
        for minute in range(60):
            for second in range(60):
                left_out = LEFT_OUT[name] if drop and second == 0 and minute % 10 else 0
                for frame in range(left_out, nominal):
                    yield f"{hour:02}:{minute:02}:{second:02}{sign}{frame:0{width}}"
        hour += 1


def frames_before(hour: int, name: str, *, drop: bool) -> int:
    """Frames in so many hours, minute by minute."""
    nominal = nominal_rate(RATES[name])
    dropped = LEFT_OUT[name] if drop else 0
    return sum(60 * nominal - (dropped if minute % 10 else 0) for minute in range(hour * 60))


@forms
def test_every_frame_of_the_first_minutes(name: str, drop: bool) -> None:
    check_walk(name, drop=drop, hour=0, count=(11 if drop else 1) * 60 * nominal_rate(RATES[name]))


@forms
def test_every_frame_around_a_day(name: str, drop: bool) -> None:
    check_walk(name, drop=drop, hour=23, count=200)
    check_walk(name, drop=drop, hour=24, count=200)
    check_walk(name, drop=drop, hour=101, count=200)


@pytest.mark.scale
@forms
def test_every_frame_of_an_hour_beyond_a_day(name: str, drop: bool) -> None:
    check_walk(name, drop=drop, hour=25, count=3600 * nominal_rate(RATES[name]))


def check_walk(name: str, *, drop: bool, hour: int, count: int) -> None:
    rate, first = RATES[name], frames_before(hour, name, drop=drop)
    for number, text in enumerate(islice(ticks(name, drop=drop, hour=hour), count), first):
        if (
            show_timecode(number, rate, drop=drop) != text
            or Timecode.parse(text).to_frames(rate) != number
        ):
            raise AssertionError(
                f"frame {number} at {name} is {text}, not {show_timecode(number, rate, drop=drop)}"
            )


@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from(FORMS), st.integers(0, BEYOND_A_DAY * 120))
@example(("29.97", True), 17_981)
@example(("29.97", True), 17_982)
@example(("59.94", True), 24 * 6 * 35_964)
def test_there_and_back(form: tuple[str, bool], frames: int) -> None:
    rate = RATES[form[0]]
    text = show_timecode(frames, rate, drop=form[1])
    assert Timecode.parse(text).to_frames(rate) == frames
    assert show_timecode(Timecode.parse(text).to_frames(rate), rate, drop=form[1]) == text


@settings(max_examples=examples(150), deadline=None)
@given(
    st.sampled_from(["29.97", "59.94"]),
    st.integers(0, 30 * 60 - 1),
    st.integers(0, 59),
    st.integers(0, 3),
)
def test_what_drop_frame_leaves_out_does_not_exist(
    name: str, minutes: int, second: int, frame: int
) -> None:
    text = f"{minutes // 60:02}:{minutes % 60:02}:{second:02};{frame:02}"
    exists = second != 0 or minutes % 10 == 0 or frame >= LEFT_OUT[name]
    try:
        number = Timecode.parse(text).to_frames(RATES[name])
    except TimecodeError:
        assert not exists
    else:
        assert exists
        assert show_timecode(number, RATES[name], drop=True) == text


@pytest.mark.parametrize("name", sorted(set(RATES) - set(LEFT_OUT)))
def test_no_drop_frame_elsewhere(name: str) -> None:
    with pytest.raises(TimecodeError, match="does not have"):
        Timecode.parse("00:01:00;10").to_frames(RATES[name])
    with pytest.raises(TimecodeError):
        show_timecode(0, RATES[name], drop=True)


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from(sorted(RATES)), st.integers(0, BEYOND_A_DAY), st.integers(0, 10**6 - 1))
def test_seconds_are_rounded_to_the_nearest_frame(name: str, seconds: int, millionths: int) -> None:
    hours, rest = divmod(seconds, 3600)
    text = f"{hours:02}:{rest // 60:02}:{rest % 60:02}.{millionths:06}"
    exact = (seconds + Fraction(millionths, 10**6)) * RATES[name]
    frames = Timecode.parse(text).to_frames(RATES[name])
    assert abs(exact - frames) <= Fraction(1, 2)


@pytest.mark.parametrize("name", RATES)
def test_a_frame_time_of_ten_digits_is_the_exact_rate(name: str) -> None:
    rate = RATES[name]
    digits = (10**10 * rate.denominator + rate.numerator // 2) // rate.numerator
    assert rate_of(f"0.{digits:010}") == rate


@settings(max_examples=examples(150), deadline=None)
@given(
    st.one_of(
        st.text(max_size=14), st.from_regex(r"\A\d{1,3}[:;.]\d{1,3}[:;.]\d{1,3}[:;.]?\d{0,4}\Z")
    )
)
def test_any_text_is_a_time_code_or_an_error(text: str) -> None:
    try:
        code = Timecode.parse(text)
    except TimecodeError:
        return
    for rate in (RATES["25"], RATES["29.97"]):
        try:
            assert code.to_frames(rate) >= 0
        except TimecodeError:
            continue


@pytest.mark.parametrize(
    "text", ["9" * 5000, "9" * 5000 + ":00:00:00", "00:00:00." + "9" * 5000, "١٢", "١٢:٠٠:٠٠:٠٠"]
)
def test_monsters_are_no_time_codes(text: str) -> None:
    with pytest.raises(TimecodeError, match="is not a valid time code") as caught:
        Timecode.parse(text)
    assert len(str(caught.value)) < 300


def test_a_number_of_frames_has_an_end() -> None:
    with pytest.raises(TimecodeError, match="at most"):
        Timecode.parse(10**5000)
