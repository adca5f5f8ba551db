"""``[[freeze]]`` of the settings: the hours of the week in which nothing may be changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from msauto.playbook.schema.settings import DAYS
from msauto.playbook.settings.settings import Freeze


@dataclass(frozen=True, slots=True)
class ActiveFreeze:
    """A freeze that holds now: since when, and until when, in its own time zone."""

    since: datetime
    until: datetime

    def __str__(self) -> str:
        return f"{self.since:%a %H:%M} to {self.until:%a %H:%M %Z}"


def freeze_at(freezes: Iterable[Freeze], now: datetime) -> ActiveFreeze | None:
    """Return the freeze that holds at ``now`` (with a zone), the one that lasts longest; ``None``: nothing is frozen.

    A freeze that ends before it begins ends on the next day, and its ``days`` are those on which it begins; one that
    ends when it begins lasts a whole day.
    """
    holding = [frozen for freeze in freezes for frozen in _around(freeze, now) if _holds(frozen, now)]
    return max(holding, key=lambda frozen: frozen.until.astimezone(UTC), default=None)


def _holds(frozen: ActiveFreeze, now: datetime) -> bool:
    """Tell whether it holds by the time that passes, or by the clock on the wall: a change of the clocks frees nothing.

    In such a night an hour comes twice, or never: ``from`` and ``to`` may lie in it.
    """
    on_the_wall = now.astimezone(frozen.since.tzinfo).replace(tzinfo=None)
    if frozen.since.replace(tzinfo=None) <= on_the_wall < frozen.until.replace(tzinfo=None):
        return True
    return frozen.since.astimezone(UTC) <= now.astimezone(UTC) < frozen.until.astimezone(UTC)


def _around(freeze: Freeze, now: datetime) -> Iterator[ActiveFreeze]:
    today = now.astimezone(ZoneInfo(freeze.timezone)).date()
    for day in (today - timedelta(days=1), today):
        if DAYS[day.weekday()] in freeze.days:
            yield _beginning_on(freeze, day)


def _beginning_on(freeze: Freeze, day: date) -> ActiveFreeze:
    zone = ZoneInfo(freeze.timezone)
    last = day if freeze.end > freeze.start else day + timedelta(days=1)
    return ActiveFreeze(datetime.combine(day, freeze.start, zone), datetime.combine(last, freeze.end, zone))
