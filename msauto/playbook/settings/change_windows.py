"""``--window 23:00-05:30``: the hours of the day in which a run may start a target."""

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
        start = datetime.combine(day, self.start)
        end = datetime.combine(day if self.end > self.start else day + timedelta(days=1), self.end)
        wall_time = self.clock(now).replace(tzinfo=None)
        elapsed = self._instant(start) <= now.astimezone(UTC) < self._instant(end)
        return elapsed and start <= wall_time < end

    def _instant(self, wall: datetime) -> datetime:
        """Return the instant of a wall-clock time: the first one if it is repeated."""
        if self.timezone is None:
            return datetime.fromtimestamp(wall.timestamp(), UTC)  # astimezone() is wrong for a skipped hour
        return wall.replace(tzinfo=ZoneInfo(self.timezone)).astimezone(UTC)


def parse_window(text: str, timezone: str | None = None) -> Window:
    """Read ``HH:MM-HH:MM``; raises ``ValueError`` for anything else, and for a window of equal start and end."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError("write it as HH:MM-HH:MM, such as 23:00-05:30")
    start, end = time.fromisoformat(found[1]), time.fromisoformat(found[2])
    if start == end:
        raise ValueError("start and end are equal")
    return Window(start, end, timezone)
