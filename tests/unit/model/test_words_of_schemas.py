"""The JSON Schema of a value takes the words for its fields from the docstring of its class."""

from __future__ import annotations

import pytest
from msgspec import Struct

from msauto.codec import describe_types


class Shown(Struct):
    """What is shown.

    Not of an attribute: this.

    Attributes:
        title: the title, which may be
            longer than a line
        inner: one more
    """

    title: str
    inner: Shown | None = None
    without: int = 0


class Renamed(Struct):
    """What has an attribute less than its docstring.

    Attributes:
        former: what it was
    """

    title: str = ""


def test_a_field_has_the_words_of_the_docstring() -> None:
    _, parts = describe_types(Shown)
    described = {
        name: field.get("description") for name, field in parts["Shown"]["properties"].items()
    }
    assert described == {
        "title": "the title, which may be longer than a line",
        "inner": "one more",
        "without": None,
    }
    assert "description" not in parts["Shown"]


def test_words_for_what_is_no_field_are_an_error() -> None:
    with pytest.raises(KeyError, match="former"):
        describe_types(Renamed)
