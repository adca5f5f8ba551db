"""Each remedy that the source of msauto names is followed in a test, or it is listed with why none can follow it."""

from __future__ import annotations

import pytest

from tests.remedies import NOT_FOLLOWED, pattern_of, remedies_of_source, remedies_with_a_case
from tests.tables import load

pytestmark = pytest.mark.scale  # a syntax tree of each module

REASONS = {text: row["why"] for row in load(NOT_FOLLOWED) for text in row["remedies"]}


def test_each_remedy_is_followed_in_a_test() -> None:
    """Add a case to ``tests/cases/remedies`` that follows a new remedy to the letter."""
    cases = remedies_with_a_case()
    without_a_case = {}
    for text, places in remedies_of_source().items():
        pattern = pattern_of(text)
        is_followed = any(pattern.fullmatch(remedy) for remedy in cases)
        if not is_followed and text not in REASONS:
            without_a_case[text] = places
    assert without_a_case == {}


def test_what_no_test_follows_is_still_a_remedy_without_a_case() -> None:
    cases = remedies_with_a_case()
    of_source = remedies_of_source()
    for text in REASONS:
        pattern = pattern_of(text)
        assert text in of_source, text
        assert not any(pattern.fullmatch(remedy) for remedy in cases), text
