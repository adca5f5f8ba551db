"""Dates and times in texts: one grammar, whatever more this version of Python would read.

Python reads more forms with each version, such as 24:00 since 3.14. What msauto reads must not depend on it, so only
this module asks Python.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time
from typing import Final

_HOUR: Final = "(?:[01][0-9]|2[0-3])"
_MINUTE: Final = "[0-5][0-9]"
_DECIMALS: Final = "(?:[.,][0-9]{1,12})?"
_ZONE: Final = f"(?:Z|[+-]{_HOUR}(?::?{_MINUTE})?)?"
_DATE: Final = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CLOCK: Final = re.compile(f"{_HOUR}:{_MINUTE}(?::{_MINUTE}{_DECIMALS})?")
_EXTENDED: Final = re.compile(f"{_DATE.pattern}(?:[T ]{_CLOCK.pattern}{_ZONE})?")
_BASIC: Final = re.compile(f"[0-9]{{8}}(?:T{_HOUR}{_MINUTE}(?:{_MINUTE}{_DECIMALS})?{_ZONE})?")
_DIRECTIVE: Final = re.compile("%([aAbBcdfGHIjmMpSuUVwWxXyYzZ%])")
_YEARS: Final = frozenset("yYcxG")


def parse_datetime(text: str) -> datetime:
    """Return a date and time of ISO 8601, or midnight of a date; raises ``ValueError``.

    >>> parse_datetime("2026-11-20T10:00:00Z")
    datetime.datetime(2026, 11, 20, 10, 0, tzinfo=datetime.timezone.utc)
    """
    if not (_EXTENDED.fullmatch(text) or _BASIC.fullmatch(text)):
        raise ValueError(f"{text[:40]!r} is not a date and time")
    return datetime.fromisoformat(text)  # noqa: TID251


def parse_date(text: str) -> date:
    """Return a date, ``YYYY-MM-DD``; raises ``ValueError``."""
    if not _DATE.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a date")
    return date.fromisoformat(text)  # noqa: TID251


def parse_clock(text: str) -> time:
    """Return a time of day without a zone, ``HH:MM`` or ``HH:MM:SS``; raises ``ValueError``.

    >>> parse_clock("23:30")
    datetime.time(23, 30)
    """
    if not _CLOCK.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a time of day")
    return time.fromisoformat(text)  # noqa: TID251


def parse_formatted(text: str, form: str) -> datetime:
    """Return the time of a text in a format such as ``%d.%m.%Y``; raises ``ValueError``."""
    directives = frozenset(_DIRECTIVE.findall(form))
    if "%" in _DIRECTIVE.sub("", form):
        raise ValueError(
            f"{form[:40]!r} is not a valid time format: write it as '%Y-%m-%d %H:%M:%S'"
        )
    if "d" in directives and not directives & _YEARS:
        raise ValueError(
            f"{form[:40]!r} has a day without a year: add %Y to the format and a year to the text"
        )
    if re.search(r"(?![0-9])\d", text):
        raise ValueError(f"{text[:40]!r} has digits that are not 0 to 9")
    return datetime.strptime(text, form)  # noqa: DTZ007, TID251 - the format decides whether there is a zone
