"""Times of feeds: RFC 822 and its successors with their named zones, RFC 3339, and ISO 8601."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from email.utils import parsedate_to_datetime
from typing import Final

from msauto.primitives.iso_times import parse_datetime

_MAIL: Final = re.compile(
    r"(?:[A-Z]{3,9}(?:, ?| ))?([0-9]{1,2}[ -][A-Z]{3,9}[ -](?:[0-9]{2}){1,2} [0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?)"
    r"(?:[.,][0-9]{1,12})?(?: ?([+-][0-9]{2}:?[0-9]{2}|UTC?|GMT|[ECMP][SD]T|[A-IK-Z])(?: \([^()]*\))?)?",
    re.ASCII,
)
"""A time of RFC 822, 850 or 2822: date and time of day, and its zone."""
_UTC: Final = re.compile(r"[A-Z]|-0000")
"""RFC 2822 reads all military zones as UTC, because RFC 822 gave some of them the wrong sign."""


def parse_feed_time(text: str) -> datetime | None:
    """Read a time, with its zone if it names one; ``None`` if it is not a time.

    >>> parse_feed_time("Fri, 20 Nov 2026 05:00 EST").isoformat(), parse_feed_time("soon")
    ('2026-11-20T05:00:00-05:00', None)
    """
    plain = " ".join(text.upper().split())
    parts = _MAIL.fullmatch(plain)
    try:
        if parts is None:
            time = parse_datetime(plain)
        else:
            zone = (parts[2] or "").replace(":", "")
            if _UTC.fullmatch(zone):
                zone = "+0000"
            time = parsedate_to_datetime(f"{parts[1]} {zone}")
    except ValueError:
        return None
    return time if 1900 <= time.year < 3000 else None


def with_zone(text: str, zone: tzinfo | None) -> str:
    """Return the text of a time with a time zone: ``zone`` where it names none, ``None`` that of this machine.

    Another text stays as it is.
    """
    time = parse_feed_time(text)
    if time is None or time.tzinfo is not None:
        return text
    if zone is None:
        return time.astimezone().isoformat()
    return time.replace(tzinfo=zone).isoformat()


def instant_of(text: str) -> datetime | None:
    """Return a time as it is sent, in whole seconds; ``None`` if it is not a time."""
    time = parse_feed_time(text)
    return time if time is None else time.replace(microsecond=0)
