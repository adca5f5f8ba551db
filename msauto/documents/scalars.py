"""What plain scalars of YAML 1.2 mean (the core schema), and numbers that keep their notation."""

from __future__ import annotations

import re
from typing import Any, Final

from msauto.primitives.decimals import MOST_LONG, read_based, read_decimal, read_whole

_NAMED: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
BOOLEAN_WORDS = {
    "yes": "true",
    "on": "true",
    "y": "true",
    "no": "false",
    "off": "false",
    "n": "false",
}
"""The words for true and false in YAML 1.1, which are texts in YAML 1.2."""
JOINED: Final = re.compile(r"(\w+)(?: *|:)([{\[])")
"""A scalar that was meant as a key, which no colon and space follow: ``asset {title: …}``, ``asset:{title: …}``."""

_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_BEFORE_POINT = re.compile(r"^([-+]?)\.")
_BASES = {"0o": 8, "0x": 16}
_MAY_BE_OTHER = frozenset("~nNtTfF+-.0123456789")
"""The first characters of plain scalars that may not be texts."""


class WrittenInt(int):
    """A whole number with another notation (``012``, ``0x1F``): ``text`` is as written."""

    text: str


class WrittenFloat(float):
    """A number with a decimal point: ``text`` is as written, because ``3.10`` is not ``3.1`` as a text."""

    text: str


def resolve_scalar(text: str) -> Any:
    """Resolve a plain scalar by the core schema of YAML 1.2. Raises ``ValueError`` for a number out of range.

    >>> resolve_scalar("10:00:00:00"), resolve_scalar("no"), int(resolve_scalar("012")), int(resolve_scalar("0o14"))
    ('10:00:00:00', 'no', 12, 12)
    """
    if text and text[0] not in _MAY_BE_OTHER:
        return text
    if text in _NAMED:
        return _NAMED[text]
    if _INT.fullmatch(text):
        base = _BASES.get(text[:2])
        whole = read_whole(text, MOST_LONG) if base is None else read_based(text, base)
        if whole is None:
            raise ValueError(text)
        written = WrittenInt(whole)
        written.text = text
        if str(whole) == text:
            return whole
        return written
    if _FLOAT.fullmatch(text):
        decimal = read_decimal(_BEFORE_POINT.sub(r"\g<1>0.", text))
        if decimal is None:
            raise ValueError(text)
        number = WrittenFloat(decimal)
        number.text = text
        return number
    return text
