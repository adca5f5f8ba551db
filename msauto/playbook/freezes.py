"""``[[freeze]]`` of the settings: the hours of the week in which nothing may be changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from msauto.playbook.settings import DAYS, Freeze


@dataclass(frozen=True, slots=True)
class Frozen:
    """A freeze that holds now: since when, and until when, in its own time zone."""

    since: datetime
    until: datetime

    def __str__(self) -> str:
        return f"a freeze of msauto.toml holds from {self.since:%a %H:%M} to {self.until:%a %H:%M %Z}"


def freeze_at(freezes: Iterable[Freeze], now: datetime) -> Frozen | None:
    """Return the freeze that holds at ``now`` (with a zone), the one that lasts longest; ``None``: nothing is frozen.

    A freeze that ends before it begins ends on the next day, and its ``days`` are those on which it begins; one that
    ends when it begins lasts a whole day.
    """
    moment = now.astimezone(UTC)
    holding = [
        frozen
        for freeze in freezes
        for frozen in _around(freeze, now)
        # Times of one zone would be compared by the clock on the wall, which a change of the clocks makes wrong.
        if frozen.since.astimezone(UTC) <= moment < frozen.until.astimezone(UTC)
    ]
    return max(holding, key=lambda frozen: frozen.until.astimezone(UTC), default=None)


def _around(freeze: Freeze, now: datetime) -> Iterator[Frozen]:
    today = now.astimezone(ZoneInfo(freeze.timezone)).date()
    for day in (today - timedelta(days=1), today):
        if DAYS[day.weekday()] in freeze.days:
            yield _beginning_on(freeze, day)


def _beginning_on(freeze: Freeze, day: date) -> Frozen:
    zone = ZoneInfo(freeze.timezone)
    last = day if freeze.end > freeze.start else day + timedelta(days=1)
    return Frozen(datetime.combine(day, freeze.start, zone), datetime.combine(last, freeze.end, zone))
