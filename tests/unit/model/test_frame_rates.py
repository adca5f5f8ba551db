"""Which rate the digits of a ``frame_time`` stand for: one of the known ones, or several or none, and then no rate."""

from __future__ import annotations

from fractions import Fraction

import pytest

from msauto.model.live import Asset, why_no_rate
from msauto.model.timecode import (
    KNOWN_RATES,
    TimecodeError,
    frame_rates,
    parse_rate,
    possible_rates,
    rate_of,
)
from tests.tables import table


def read(frame_time: str, given: object = None) -> Fraction | None:
    rates = () if given is None else frame_rates(given)
    return Asset("A", attributes={"frame_time": frame_time}, frame_rates=rates).rate


@table("model/frame_rates", "frame_time", "rates")
def test_digits_stand_for_known_rates(frame_time: str, rates: list[str]) -> None:
    expected = tuple(map(Fraction, rates))
    assert possible_rates(frame_time) == expected
    assert read(frame_time) == (expected[0] if len(expected) == 1 else None)


def printed(rate: Fraction, digits: int) -> set[str]:
    """Return how servers may print a period: rounded or cut, with a point or a comma."""
    scaled = 10**digits / rate
    texts: set[str] = set()
    for number in (int(scaled), int(scaled + Fraction(1, 2))):
        text = f"{number:0{digits + 1}}"
        texts |= {f"{text[:-digits]}.{text[-digits:]}", f"{text[:-digits]},{text[-digits:]}"}
    return texts


@pytest.mark.parametrize("rate", KNOWN_RATES, ids=str)
def test_a_printed_rate_is_that_rate_or_in_doubt(rate: Fraction) -> None:
    for text in set().union(*(printed(rate, digits) for digits in range(2, 13))):
        possible = possible_rates(text)
        assert rate in possible, text
        if len(possible) == 1:
            assert rate_of(text) == rate, text
        else:
            with pytest.raises(TimecodeError, match="frame_rate"):
                rate_of(text)
        for given in (float(f"{float(rate):.3f}"), f"{rate}", {text: str(rate)}):
            assert read(text, given) == rate, text


@pytest.mark.parametrize(
    ("given", "frame_time", "rate"),
    [
        (25, "0.04", 25),
        ("25", "0.0333", None),
        ("29.97", "0.04", None),
        (30, "0.0333667", "30000/1001"),  # one known rate is that one
        (15, "0.0667", 15),
        (12.5, "0.08", "25/2"),
        ({"0.0333": 29.97}, "0,0333", "30000/1001"),
        ({"0,0333": "30"}, " 0.0333 ", 30),
        ({"0.0333": 29.97}, "0.0417", None),
        ({"25": 25}, "25", 25),
    ],
)
def test_the_inventory_says_what_digits_leave_open(
    given: object, frame_time: str, rate: object
) -> None:
    expected = None if rate is None else Fraction(str(rate))
    assert read(frame_time, given) == expected


@pytest.mark.parametrize("given", ["fast", 0, -25, 1001, True, [25], {"0.04": "x"}, {"x": 25}])
def test_other_rates_of_the_inventory_are_refused(given: object) -> None:
    with pytest.raises(TimecodeError):
        frame_rates(given)


def test_what_is_not_known_is_told() -> None:
    asset = Asset("A", attributes={"frame_time": "0.0333"})
    assert why_no_rate(asset) == (
        "the clip reports frame_time '0.0333', which may be 29.97 fps or 30 fps: set `frame_rate` of the server"
    )
    asset = Asset("A", attributes={"frame_time": "0.08"})
    assert why_no_rate(asset) == (
        "the clip reports frame_time '0.08', which is not one of the known rates: set `frame_rate` of the server"
    )


@pytest.mark.parametrize(
    ("written", "rate"),
    [
        (24, "24"),
        (24.0, "24"),
        ("23.976", "24000/1001"),
        ("23.98", "24000/1001"),
        ("23.97", "24000/1001"),
        (23.976023976023978, "24000/1001"),
        ("29.97 fps", "30000/1001"),
        (29.97002997002997, "30000/1001"),
        ("47.95", "48000/1001"),
        ("59.94", "60000/1001"),
        ("119.88", "120000/1001"),
        ("30.00", "30"),
        ("30000/1001", "30000/1001"),
        ("12.5", "25/2"),
        ("1000", "1000"),
    ],
)
def test_a_written_rate_is_the_known_one_that_it_stands_for(written: object, rate: str) -> None:
    assert parse_rate(written) == Fraction(rate)
