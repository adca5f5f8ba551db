"""Unicode normal forms: as Python has them for texts of people, and bounded for stacks of accents."""

from __future__ import annotations

import unicodedata
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msauto.primitives.normal_form import normal_form

FORMS: Any = ("NFC", "NFD", "NFKC")
MARKS = "\u0301\u0327\u0323"


@pytest.mark.parametrize("form", FORMS)
@given(text=st.text(alphabet=st.sampled_from(f"ae漢ﬁ{MARKS}\u1e69가"), max_size=25))
def test_a_text_of_people_has_the_normal_form_of_unicode(form: Any, text: str) -> None:
    assert normal_form(text, form) == unicodedata.normalize(form, text)


@pytest.mark.parametrize("form", FORMS)
def test_no_more_than_30_marks_are_put_in_order_at_once(form: Any) -> None:
    text = "a" + MARKS * 1000 + "b" + "é" * 100
    ordered: list[str] = []

    def note(_form: str, part: str) -> str:
        ordered.append(part)
        return part

    with patch("unicodedata.normalize", note):
        assert normal_form(text, form).replace("\u034f", "") == text
    assert max(sum(map(bool, map(unicodedata.combining, part))) for part in ordered) <= 30


def test_equal_stacks_of_marks_stay_equal() -> None:
    text = "e" + "\u0327\u0301" * 5000
    assert normal_form(normal_form(text)) == normal_form(text)
