"""Numbers from outside: of answers, files, templates, options and settings. Here is the one way to read them.

A decimal has at most nine digits before its point or comma and twelve behind it, all of them ASCII. A text with an
exponent, a separator of groups, ``nan`` or ``inf`` is not a decimal. So a number that was read is small, and what
calculates with it needs no bounds of its own.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

MOST: Final = 10**9 - 1
"""The largest number: nine digits."""
MOST_LONG: Final = 2**64 - 1
"""The largest identifier (a uid, a number, a link_id) and size of a file: 64 bits."""

_DECIMAL = re.compile(r"([+-]?)([0-9]{1,9})(?:[.,]([0-9]{0,12}))?")
_BASED = re.compile(r"[+-]?[0-9A-Za-z]{1,18}")
_WHOLE = re.compile(r"([+-]?[0-9]{1,20})(?:[.,]0{0,12})?")
_LONGEST_SHOWN: Final = 80

is_plain_whole: Final = re.compile("[0-9]{1,9}").fullmatch
"""Match what nearly all numbers of answers are: whole, and small enough for each of them."""


def read_decimal(text: str) -> Fraction | None:
    """Read a decimal, exactly; ``None`` for anything else.

    >>> read_decimal("0,04"), read_decimal("1e-9")
    (Fraction(1, 25), None)
    """
    match = _DECIMAL.fullmatch(text.strip())
    if match is None:
        return None
    sign, whole, behind = match.groups(default="")
    number = Fraction(int(whole + behind), 10 ** len(behind))
    return -number if sign == "-" else number


def read_whole(text: str | None, most: int = MOST, *, least: int | None = None) -> int | None:
    """Read a whole number of at most ``most``, and at least ``least`` or ``-most``; ``None`` for anything else.

    >>> read_whole(" 0007.0 "), read_whole("10000000000"), read_whole("10000000000", MOST_LONG)
    (7, None, 10000000000)
    """
    if text is None:
        return None
    match = _WHOLE.fullmatch(text.strip())
    if match is None:
        return None
    number = int(match[1])
    lowest = -most if least is None else least
    return number if lowest <= number <= most else None


def read_based(text: str, base: int) -> int | None:
    """Read a whole number of another base than ten; ``None`` for anything else.

    >>> read_based("0x1F", 16), read_based("1_0", 16)
    (31, None)
    """
    if not _BASED.fullmatch(text.strip()):
        return None
    try:
        number = int(text, base)
    except ValueError:
        return None
    return number if is_bounded(number) else None


def is_bounded(number: float) -> bool:
    """Return whether a number is finite, and small enough to calculate with.

    >>> is_bounded(2**64), is_bounded(float("nan"))
    (False, False)
    """
    return -MOST_LONG <= number <= MOST_LONG


def read_ratio(text: str) -> Fraction | None:
    """Read a decimal, or two with a slash between them; ``None`` for anything else.

    >>> read_ratio("30000/1001"), read_ratio("1/0")
    (Fraction(30000, 1001), None)
    """
    above, slash, below = text.partition("/")
    number = read_decimal(above)
    if number is None or not slash:
        return number
    divisor = read_decimal(below)
    return number / divisor if divisor else None


def show_cut(text: str) -> str:
    """Return a text as a message shows it: in quotes, and cut to 80 characters."""
    return repr(text) if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]!r}…"
