"""Unicode normal forms in linear time."""

from __future__ import annotations

import unicodedata
from typing import Final, Literal

_MOST_MARKS: Final = 30
"""The marks on a character after which Unicode's stream-safe texts (UAX 15) have a joiner."""
_JOINER: Final = "\u034f"


def normal_form(text: str, form: Literal["NFC", "NFD", "NFKC"] = "NFC") -> str:
    """Return a text in a normal form. More than 30 marks in a row are divided, as in Unicode's stream-safe texts.

    Python's own function orders all marks in a row, in time that grows with the square of their number.
    """
    if text.isascii() or unicodedata.is_normalized(form, text):
        return text
    parts = []
    start = 0
    marks = 0
    for place, sign in enumerate(text):
        marks = marks + 1 if unicodedata.combining(sign) else 0
        if marks > _MOST_MARKS:
            parts.append(unicodedata.normalize(form, text[start:place]))
            parts.append(_JOINER)
            start = place
            marks = 1
    parts.append(unicodedata.normalize(form, text[start:]))
    return "".join(parts)


def unindented(text: str) -> str:
    r"""Return a text without the layout of an XML document: white space at both ends, each with a line break.

    >>> unindented("\n   Evening News\n  ")
    'Evening News'
    >>> unindented("one\ntwo\n")
    'one\ntwo\n'
    """
    inner = text.strip(_BLANKS)
    start = len(text) - len(text.lstrip(_BLANKS))
    has_layout = "\n" in text[:start] and (not inner or "\n" in text[start + len(inner) :])
    return inner if has_layout else text


_BLANKS: Final = " \t\n\r"
