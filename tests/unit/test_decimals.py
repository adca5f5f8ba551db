"""Numbers from outside are read in one way, and what is read is small."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msauto.codec import parse_json
from msauto.primitives.decimals import (
    MOST,
    MOST_LONG,
    read_decimal,
    read_ratio,
    read_whole,
    show_cut,
)
from tests.tables import table

LONG = {
    "ten_thousand_digits": "9" * 10_000,
    "five_million_digits": "7" * 5_000_000,
    "blanks": " " * 1_000_000 + "x",
}


@table("model/decimals", "text", "decimal", "whole")
def test_each_text_is_one_number_or_none(text: str, decimal: str | None, whole: int | None) -> None:
    assert read_decimal(text) == (None if decimal is None else Fraction(decimal))
    assert read_whole(text) == whole


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_a_long_text_is_no_number(text: str) -> None:
    assert read_decimal(text) is None
    assert read_whole(text, MOST_LONG) is None
    assert read_ratio(f"{text}/{text}") is None


def test_an_identifier_has_64_bits() -> None:
    assert read_whole(str(MOST_LONG), MOST_LONG) == MOST_LONG
    assert read_whole(str(MOST_LONG + 1), MOST_LONG) is None
    assert read_whole("-1", MOST_LONG, least=0) is None


@given(st.text(max_size=40))
def test_whatever_the_text_a_number_is_in_range(text: str) -> None:
    decimal, whole = read_decimal(text), read_whole(text)
    assert decimal is None or abs(decimal) <= MOST + 1
    assert whole is None or abs(whole) <= MOST


@pytest.mark.parametrize(
    "text", ["9" * 21, "1e400", "-1e999", "NaN", "-Infinity", "0." + "1" * 100]
)
def test_json_refuses_a_number_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match="out of range"):
        parse_json(f'{{"a": [{text}]}}')


def test_a_value_is_cut_for_a_message() -> None:
    assert show_cut("1e5") == "'1e5'"
    assert show_cut("9" * 81) == f"'{'9' * 80}'…"
