"""When a batch starts: pure functions of a schedule and the clock.

Instants are in UTC: Python compares and subtracts two times of one zone by their wall clocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

from msgspec import Struct

from msauto.playbook.change_windows import DAYS, Day, Window


class Schedule(Struct, frozen=True):
    """At a time of day in a zone, on these days; a scheduler delays each start by up to ``spread`` at random."""

    at: time
    timezone: str
    days: tuple[Day, ...] = DAYS
    spread: timedelta = timedelta()

    @property
    def zone(self) -> ZoneInfo:
        """The time zone."""
        return ZoneInfo(self.timezone)

    def start_on(self, day: date) -> datetime:
        """Return the start on a day.

        In a night in which the clocks change: a skipped time is the first moment after it, a repeated one the earlier.
        """
        return instant_of(datetime.combine(day, self.at), self.zone)

    def starts_after(self, moment: datetime) -> Iterator[datetime]:
        """Yield the starts later than ``moment`` (in UTC), without end."""
        # The day before may start on this one, after a gap.
        day = moment.astimezone(self.zone).date() - timedelta(days=1)
        while True:
            start = self.start_on(day)
            if DAYS[day.weekday()] in self.days and start > moment:
                yield start
                moment = start  # the start of a day that is skipped as a whole may be that of the next day
            day += timedelta(days=1)

    def last_start(self, moment: datetime) -> datetime:
        """Return the start of the night to which a moment (in UTC) belongs: the last one that is not later."""
        *_, last = self.starts_between(moment - timedelta(days=9), moment)
        return last

    def next_start(self, moment: datetime) -> datetime:
        """Return the first start later than ``moment`` (in UTC)."""
        return next(self.starts_after(moment))

    def starts_between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Yield the starts later than ``after`` and not later than ``until`` (both in UTC)."""
        return takewhile(lambda start: start <= until, self.starts_after(after))


def time_between(begin: time, end: time) -> timedelta:
    """Return the time from one time of day to the next occurrence of another; 0 if they are equal."""
    day = date(2000, 1, 1)
    return (datetime.combine(day, end) - datetime.combine(day, begin)) % timedelta(days=1)


class DueStarts(Struct, frozen=True):
    """What is due: the start to run now, if any, and the starts that are too late to run."""

    now: datetime | None = None
    missed: tuple[datetime, ...] = ()


def due_starts(
    schedule: Schedule, window: Window | None, handled: datetime | None, now: datetime
) -> DueStarts:
    """Return which of the starts later than ``handled`` and not later than ``now`` is to run, and which are missed.

    ``handled`` is the instant until which all starts were run, missed or refused; ``None``: the batch never ran, and
    the starts before it was set up are not missed. A late start is run inside its window, or at any time without a
    window. At most one is run: there is no backlog.
    """
    if handled is None:
        return DueStarts(due_starts(schedule, window, now - timedelta(days=1), now).now)
    starts = list(schedule.starts_between(handled, now))
    if not starts:
        return DueStarts()
    *earlier, last = starts
    if window is not None:
        closing = open_until(window, last)
        is_open = closing is not None and now < closing and window.is_open(now)
        if not is_open:
            return DueStarts(None, tuple(starts))
    return DueStarts(last, tuple(earlier))


def closing_of(window: Window, start: datetime) -> datetime:
    """Return the instant at which the window closes after ``start``, which is inside."""
    wall = window.clock(start).replace(tzinfo=None)
    day = wall.date()
    if window.end <= wall.time():
        day += timedelta(days=1)
    return instant_of(datetime.combine(day, window.end), ZoneInfo(window.timezone or "UTC"))


def open_until(window: Window | None, now: datetime) -> datetime | None:
    """Return when an open window closes; ``None`` without a window, and while it is closed."""
    if window is None or not window.is_open(now):
        return None
    return closing_of(window, now)


def outside_of(window: Window, now: datetime) -> str:
    """Return the message that a time is outside of a window."""
    return f"it is {window.clock(now):%a %H:%M %Z}, outside the window {window} ({window.timezone})"


class ClockChange(Struct, frozen=True):
    """A night in which the clocks change at the time of the start: ``skipped`` or ``repeated``."""

    day: date
    kind: str
    start: datetime


def clock_changes(schedule: Schedule, first: date, last: date) -> Iterator[ClockChange]:
    """Yield the nights from ``first`` to ``last`` in which the time of the start is skipped or repeated."""
    for number in range((last - first).days + 1):
        day = first + timedelta(days=number)
        if DAYS[day.weekday()] in schedule.days:
            wall = datetime.combine(day, schedule.at, schedule.zone)
            before, after = _both_readings(wall)
            if before != after:
                kind = "repeated" if before < after else "skipped"
                yield ClockChange(day, kind, schedule.start_on(day))


def instant_of(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant (in UTC) of a wall-clock time in a zone.

    A repeated time is the earlier one. A skipped time is the first moment after the gap.
    """
    before, after = _both_readings(wall.replace(tzinfo=zone))
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


def _both_readings(wall: datetime) -> tuple[datetime, datetime]:
    """Return the instants (in UTC) of a wall-clock time by the offset before, and after, a change of the clocks."""
    return wall.replace(fold=0).astimezone(UTC), wall.replace(fold=1).astimezone(UTC)
