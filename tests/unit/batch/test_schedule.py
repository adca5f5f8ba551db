"""When a batch starts: gaps, folds, windows over midnight, and nights in which the machine was down."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from msauto.playbook.change_windows import DAYS, Window, parse_window
from msauto.plugins.batch.schedule import Schedule, clock_changes, due_starts
from tests.tables import one_fast_in, table

ZONES = (
    "Europe/Oslo", "Europe/London", "Europe/Chisinau", "America/New_York", "America/Havana", "America/Santiago",
    "America/Nuuk", "America/Asuncion", "Africa/Cairo", "Africa/Casablanca", "Asia/Beirut", "Asia/Gaza",
    "Australia/Lord_Howe", "Pacific/Chatham", "Pacific/Apia", "Antarctica/Troll",
)  # fmt: skip
OSLO = Schedule(time(2, 30), "Europe/Oslo")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def change_days(zone: ZoneInfo, years: range) -> Iterator[date]:
    """The days on which the offset of a zone changes, and those beside them."""
    day = date(years.start, 1, 1)
    while day.year < years.stop:
        before, after = (
            datetime.combine(day + timedelta(days=n), time(), zone).utcoffset() for n in (0, 1)
        )
        if before != after:
            yield from (day + timedelta(days=n) for n in (-1, 0, 1))
        day += timedelta(days=1)


def first_minute_at(day: date, of_day: time, zone: ZoneInfo) -> datetime:
    """The first minute whose wall clock shows the time or, where it is skipped, a later one: by trying all."""
    wall = datetime.combine(day, of_day)
    minute = datetime.combine(day, of_day, UTC) - timedelta(hours=15)
    while minute.astimezone(zone).replace(tzinfo=None) < wall:
        minute += timedelta(minutes=1)
    return minute


@pytest.mark.parametrize("name", one_fast_in(5, ZONES))
def test_next_start_on_days_on_which_clocks_change(name: str) -> None:
    zone = ZoneInfo(name)
    chosen = random.Random(name)
    days = [*change_days(zone, range(2011, 2012)), *change_days(zone, range(2026, 2028))]
    assert days
    for day in days:
        for of_day in (
            time(0, 0),
            time(2, 30),
            time(chosen.randrange(24), chosen.randrange(60)),
            time(23, 59),
        ):
            start = first_minute_at(day, of_day, zone)
            schedule = Schedule(of_day, name)
            assert schedule.start_on(day) == start, (day, of_day)
            assert schedule.next_start(start - timedelta(minutes=1)) == start
            assert schedule.next_start(start) > start


def test_a_day_that_is_skipped_as_a_whole_gives_no_start_twice() -> None:
    starts = islice(
        Schedule(time(0), "Pacific/Apia").starts_after(at("2011-12-29T00:00:01-10:00")), 2
    )
    assert [f"{start.astimezone(ZoneInfo('Pacific/Apia')):%m-%d %H:%M}" for start in starts] == [
        "12-31 00:00",
        "01-01 00:00",
    ]


@table("batch/next_starts", "now", "start")
def test_next_start(now: str, start: str) -> None:
    assert OSLO.next_start(at(now)) == at(start)


def test_days_of_the_week_are_those_of_the_zone() -> None:
    schedule = Schedule(time(0, 30), "Asia/Tokyo", ("mon",))
    assert schedule.next_start(at("2026-11-22T15:29:00+00:00")) == at(
        "2026-11-23T00:30:00+09:00"
    )  # a Monday there


def test_nights_in_which_the_clocks_change() -> None:
    found = [*clock_changes(OSLO, date(2026, 10, 1), date(2027, 9, 30))]
    assert [(str(each.day), each.kind, f"{each.start:%H:%M}") for each in found] == [
        ("2026-10-25", "repeated", "00:30"),
        ("2027-03-28", "skipped", "01:00"),
    ]
    weekdays = Schedule(time(2, 30), "Europe/Oslo", DAYS[:5])
    assert not [*clock_changes(weekdays, date(2026, 10, 1), date(2027, 9, 30))]
    assert not [
        *clock_changes(Schedule(time(3, 10), "Europe/Oslo"), date(2026, 10, 1), date(2027, 9, 30))
    ]


# What is due ------------------------------------------------------------------------------------------------------

NIGHTLY = Schedule(time(3, 10), "Europe/Oslo")
NIGHT = parse_window("23:00-05:30", "Europe/Oslo")
HANDLED = at("2026-11-20T03:10:00+01:00")


@pytest.mark.parametrize(
    ("now", "window", "runs", "missed"),
    [
        ("2026-11-21T03:10:00+01:00", NIGHT, "21", []),
        ("2026-11-21T05:29:59+01:00", NIGHT, "21", []),  # late, and inside
        ("2026-11-21T05:30:00+01:00", NIGHT, "", ["21"]),
        (
            "2026-11-21T23:30:00+01:00",
            NIGHT,
            "",
            ["21"],
        ),  # inside the next window, which is not its own
        ("2026-11-24T04:00:00+01:00", NIGHT, "24", ["21", "22", "23"]),  # no backlog
        ("2026-11-24T12:00:00+01:00", NIGHT, "", ["21", "22", "23", "24"]),
        ("2026-11-21T02:00:00+01:00", NIGHT, "", []),  # nothing is due
        ("2026-11-24T12:00:00+01:00", None, "24", ["21", "22", "23"]),
        ("2026-11-22T02:00:00+01:00", parse_window("03:00-02:30", "Europe/Oslo"), "21", []),
        ("2026-11-22T03:05:00+01:00", parse_window("03:00-02:30", "Europe/Oslo"), "", ["21"]),
    ],
)
def test_what_is_due(now: str, window: Window | None, runs: str, missed: list[str]) -> None:
    due = due_starts(NIGHTLY, window, HANDLED, at(now))
    assert f"{due.now:%d}" == runs if due.now else not runs
    assert [f"{each:%d}" for each in due.missed] == missed


@pytest.mark.parametrize(
    "zone", ["Europe/Oslo", "America/New_York", "Australia/Lord_Howe", "Asia/Beirut"]
)
@pytest.mark.parametrize("window", ["23:00-05:30", "02:00-02:45", "00:00-04:00"])
def test_in_a_year_of_random_down_time_each_night_is_run_or_missed_exactly_once(
    zone: str, window: str
) -> None:
    chosen = random.Random(zone + window)
    schedule, hours = Schedule(time(2, 30), zone), parse_window(window, zone)
    first = datetime(2026, 6, 1, 12, tzinfo=UTC)
    now, handled, last = first, first, first + timedelta(days=365)
    ran: list[datetime] = []
    missed: list[datetime] = []
    while now < last:
        now += timedelta(
            minutes=chosen.choice((1, 7, 60, 300, 1500, 6000))
        )  # down, then started by the scheduler
        due = due_starts(schedule, hours, handled, now)
        assert not due.now or hours.is_open(now)
        ran += [due.now] if due.now else []
        missed += due.missed
        handled = max([handled, *due.missed, *([due.now] if due.now else [])])
    nights = [*schedule.starts_between(first, now)]
    assert sorted([*ran, *missed]) == nights
    assert len(nights) in range(364, 372)
    assert ran
    assert missed
