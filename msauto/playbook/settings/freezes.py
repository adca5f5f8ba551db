"""``[[freeze]]`` of the settings: the periods in which nothing may be changed, each week or with dates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from msauto.playbook.settings.allowed_values import DAYS
from msauto.playbook.settings.settings import DatedFreeze, Freeze


@dataclass(frozen=True, slots=True)
class ActiveFreeze:
    """A freeze that is active now, from ``since`` to ``until`` in its own time zone; one with dates has a reason."""

    since: datetime
    until: datetime
    reason: str | None = None

    def __str__(self) -> str:
        if self.reason is None:
            return f"{self.since:%a %H:%M} to {self.until:%a %H:%M %Z}"
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.since:%Y-%m-%d %H:%M} to {self.until:%Y-%m-%d %H:%M %Z}{why}"


def freeze_at(freezes: Iterable[Freeze | DatedFreeze], now: datetime) -> ActiveFreeze | None:
    """Return the active freeze at ``now`` (with a zone) that lasts longest, or ``None``.

    A freeze whose end is before its start ends on the next day; ``days`` are those on which it starts. With equal start
    and end, it lasts a whole day.
    """
    active = [frozen for freeze in freezes for frozen in _near(freeze, now) if _is_active(frozen, now)]
    return max(active, key=lambda frozen: frozen.until.astimezone(UTC), default=None)


def freezes_between(freezes: Iterable[Freeze | DatedFreeze], begin: datetime, end: datetime) -> Iterator[ActiveFreeze]:
    """Yield the freezes that are active at some time from ``begin`` to before ``end``, less than a day later."""
    for freeze in freezes:
        near = dict.fromkeys((*_near(freeze, begin), *_near(freeze, end)))
        for frozen in near:
            starts_inside = begin < frozen.since.astimezone(UTC) < end
            if starts_inside or _is_active(frozen, begin):
                yield frozen


def _is_active(frozen: ActiveFreeze, now: datetime) -> bool:
    """Return whether a freeze is active by elapsed time or by wall-clock time.

    When daylight saving time begins or ends, an hour is skipped or repeated, and ``from`` or ``to`` may be in it.
    """
    wall_time = now.astimezone(frozen.since.tzinfo).replace(tzinfo=None)
    if frozen.since.replace(tzinfo=None) <= wall_time < frozen.until.replace(tzinfo=None):
        return True
    return frozen.since.astimezone(UTC) <= now.astimezone(UTC) < frozen.until.astimezone(UTC)


def _near(freeze: Freeze | DatedFreeze, now: datetime) -> Iterator[ActiveFreeze]:
    if isinstance(freeze, DatedFreeze):
        yield ActiveFreeze(freeze.since, freeze.until, freeze.reason)
        return
    zone = ZoneInfo(freeze.timezone)
    today = now.astimezone(zone).date()
    for day in (today - timedelta(days=1), today):
        if DAYS[day.weekday()] in freeze.days:
            last = day if freeze.end > freeze.start else day + timedelta(days=1)
            yield ActiveFreeze(datetime.combine(day, freeze.start, zone), datetime.combine(last, freeze.end, zone))
