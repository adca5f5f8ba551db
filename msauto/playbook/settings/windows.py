"""``--window 23:00-05:30``: the hours of the day in which a run may begin a target."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

_FORM = re.compile(r"(\d\d:\d\d)-(\d\d:\d\d)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Window:
    """From ``start`` to before ``end``, every day; an ``end`` before ``start`` is on the next day.

    ``timezone`` is an IANA name; ``None`` is the time zone of this machine.
    """

    start: time
    end: time
    timezone: str | None = None

    def __str__(self) -> str:
        return f"{self.start:%H:%M}-{self.end:%H:%M}"

    def clock(self, now: datetime) -> datetime:
        """Return ``now`` as the clock on the wall shows it there."""
        return now.astimezone(None if self.timezone is None else ZoneInfo(self.timezone))

    def is_open(self, now: datetime) -> bool:
        """Tell whether ``now`` (with a zone) is inside.

        In a night in which the clocks change, an hour comes twice, or never; ``start`` or ``end`` may lie in it. The
        window is open only where the clock on the wall and the time that has passed both say so: it closes early rather
        than late.
        """
        today = self.clock(now).date()
        return any(self._holds(day, now) for day in (today - timedelta(days=1), today))

    def _holds(self, day: date, now: datetime) -> bool:
        start = datetime.combine(day, self.start)
        end = datetime.combine(day if self.end > self.start else day + timedelta(days=1), self.end)
        on_the_wall = self.clock(now).replace(tzinfo=None)
        passed = self._passes(start) <= now.astimezone(UTC) < self._passes(end)
        return passed and start <= on_the_wall < end

    def _passes(self, wall: datetime) -> datetime:
        """Return when the clock on the wall shows this, for the first time where that comes twice."""
        if self.timezone is None:
            return datetime.fromtimestamp(wall.timestamp(), UTC)  # astimezone() is wrong for an hour that never comes
        return wall.replace(tzinfo=ZoneInfo(self.timezone)).astimezone(UTC)


def parse_window(text: str, timezone: str | None = None) -> Window:
    """Read ``HH:MM-HH:MM``; raises ``ValueError`` for anything else, and for a window that never closes."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError("write it as 23:00-05:30")
    start, end = time.fromisoformat(found[1]), time.fromisoformat(found[2])
    if start == end:
        raise ValueError("it ends when it begins")
    return Window(start, end, timezone)
