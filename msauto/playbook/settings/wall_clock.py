"""The instant of a wall-clock time, also in nights in which the clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo


def instant_of(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant (in UTC) of a wall-clock time in a zone.

    A repeated time is the earlier one. A skipped time is the first moment after the gap.
    """
    before, after = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if before.astimezone(zone).replace(tzinfo=None) == wall:
        return before
    early, late = after, before  # a skipped time: the offset changes between these two
    while late - early > timedelta(seconds=1):
        middle = (early + (late - early) / 2).replace(microsecond=0)
        if middle.astimezone(zone).utcoffset() == early.astimezone(zone).utcoffset():
            early = middle
        else:
            late = middle
    return late


def clock_change(wall: datetime, zone: ZoneInfo) -> str:
    """Return ``skipped`` or ``repeated`` if the wall-clock time is so in a zone, else an empty text."""
    first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return "" if first == second else "repeated" if first < second else "skipped"
