"""When nothing may be changed: ``[[freeze]]`` of the settings, each week or with dates, and outside ``--window``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from msgspec import Struct

from msauto.primitives.iso_times import parse_clock

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class Freeze(Struct, frozen=True):
    """A period of the week in which nothing is changed; an ``end`` before ``start`` is on the next day."""

    days: tuple[Day, ...]
    start: time
    end: time
    timezone: str


class DatedFreeze(Struct, frozen=True):
    """A period in which nothing is changed, from ``since`` to before ``until``, both with a zone.

    ``reason`` is ``None`` for the period of one week of a :class:`Freeze`.
    """

    since: datetime
    until: datetime
    reason: str | None = ""

    def __str__(self) -> str:
        if self.reason is None:
            return f"{self.since:%a %H:%M} to {self.until:%a %H:%M %Z}"
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.since:%Y-%m-%d %H:%M} to {self.until:%Y-%m-%d %H:%M %Z}{why}"


def freeze_at(freezes: Iterable[Freeze | DatedFreeze], now: datetime) -> DatedFreeze | None:
    """Return the active freeze at ``now`` (with a zone) that lasts longest, or ``None``.

    A freeze whose end is before its start ends on the next day; ``days`` are those on which it starts. With equal start
    and end, it lasts a whole day.
    """
    active: list[DatedFreeze] = []
    for freeze in freezes:
        active += (frozen for frozen in _near(freeze, now) if _is_active(frozen, now))
    return max(active, key=lambda frozen: frozen.until.astimezone(UTC), default=None)


def freezes_between(
    freezes: Iterable[Freeze | DatedFreeze], begin: datetime, end: datetime
) -> Iterator[DatedFreeze]:
    """Yield the freezes that are active at some time from ``begin`` to before ``end``, less than a day later."""
    for freeze in freezes:
        near = dict.fromkeys((*_near(freeze, begin), *_near(freeze, end)))
        for frozen in near:
            starts_inside = begin < frozen.since.astimezone(UTC) < end
            if starts_inside or _is_active(frozen, begin):
                yield frozen


def _is_active(frozen: DatedFreeze, now: datetime) -> bool:
    """Return whether a freeze is active by elapsed time or by wall-clock time.

    When daylight saving time begins or ends, an hour is skipped or repeated, and ``from`` or ``to`` may be in it.
    """
    wall_time = now.astimezone(frozen.since.tzinfo).replace(tzinfo=None)
    if frozen.since.replace(tzinfo=None) <= wall_time < frozen.until.replace(tzinfo=None):
        return True
    return frozen.since.astimezone(UTC) <= now.astimezone(UTC) < frozen.until.astimezone(UTC)


def _near(freeze: Freeze | DatedFreeze, now: datetime) -> Iterator[DatedFreeze]:
    if isinstance(freeze, DatedFreeze):
        yield freeze
        return
    zone = ZoneInfo(freeze.timezone)
    today = now.astimezone(zone).date()
    for day in (today - timedelta(days=1), today):
        if DAYS[day.weekday()] in freeze.days:
            last = day if freeze.end > freeze.start else day + timedelta(days=1)
            yield DatedFreeze(
                datetime.combine(day, freeze.start, zone),
                datetime.combine(last, freeze.end, zone),
                None,
            )


# Windows


class Window(Struct, frozen=True):
    """From ``start`` to before ``end``, every day; an ``end`` before ``start`` is on the next day.

    ``timezone`` is an IANA name; ``None`` is the time zone of this machine.
    """

    start: time
    end: time
    timezone: str | None = None

    def __str__(self) -> str:
        return f"{self.start:%H:%M}-{self.end:%H:%M}"

    def clock(self, now: datetime) -> datetime:
        """Return ``now`` as wall-clock time in the time zone of the window."""
        return now.astimezone(None if self.timezone is None else ZoneInfo(self.timezone))

    def is_open(self, now: datetime) -> bool:
        """Return whether ``now`` (with a zone) is inside.

        When daylight saving time begins or ends, an hour is skipped or repeated, and ``start`` or ``end`` may be in it.
        The window is open only if both wall-clock time and elapsed time are inside: it closes early rather than late.
        """
        today = self.clock(now).date()
        return any(self._is_inside(day, now) for day in (today - timedelta(days=1), today))

    def _is_inside(self, day: date, now: datetime) -> bool:
        last_day = day
        if self.end <= self.start:
            last_day += timedelta(days=1)
        start = datetime.combine(day, self.start)
        end = datetime.combine(last_day, self.end)
        wall_time = self.clock(now).replace(tzinfo=None)
        instant = now.astimezone(UTC)
        elapsed = self._instant(start) <= instant < self._instant(end)
        return elapsed and start <= wall_time < end

    def _instant(self, wall: datetime) -> datetime:
        """Return the instant of a wall-clock time: the first one if it is repeated."""
        if self.timezone is None:
            # astimezone() is wrong for a skipped hour.
            return datetime.fromtimestamp(wall.timestamp(), UTC)
        return wall.replace(tzinfo=ZoneInfo(self.timezone)).astimezone(UTC)


def parse_window(text: str, timezone: str | None = None) -> Window:
    """Read ``HH:MM-HH:MM``; raises ``ValueError`` for anything else, and for a window of equal start and end."""
    match = re.fullmatch(r"([0-9]{2}:[0-9]{2})-([0-9]{2}:[0-9]{2})", text)
    if match is None:
        raise ValueError("write it as HH:MM-HH:MM, such as 23:00-05:30")
    start, end = parse_clock(match[1]), parse_clock(match[2])
    if start == end:
        raise ValueError("start and end are equal")
    return Window(start, end, timezone)
