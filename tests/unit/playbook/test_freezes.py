"""Freezes and windows: days, midnight, time zones, and the change of the clocks."""

from __future__ import annotations

import time as clocks
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from msauto.playbook.change_windows import (
    DAYS,
    DatedFreeze,
    Freeze,
    freeze_at,
    freezes_between,
    parse_window,
)
from tests.tables import table

EVENING = Freeze(("fri",), time(18), time(23, 30), "Europe/Oslo")
NIGHT = Freeze(("fri",), time(22), time(2), "Europe/Oslo")
ALL_DAY = Freeze(("sun",), time(0), time(0), "UTC")
FREEZES = {"evening": EVENING, "night": NIGHT, "all_day": ALL_DAY}


@table("playbook/freezes", "freeze", "now", "holds")
def test_when_a_freeze_holds(freeze: str, now: str, holds: bool) -> None:
    assert (
        freeze_at([FREEZES[freeze]], datetime.fromisoformat(now).replace(tzinfo=UTC)) is not None
    ) is holds


def test_the_hour_that_comes_twice_is_frozen_twice() -> None:
    # On 25 October 2026 at 03:00 the clocks of Oslo go back to 02:00: the night has five hours, not four.
    freeze = Freeze(("sat",), time(23), time(3), "Europe/Oslo")
    frozen = [
        freeze_at([freeze], datetime(2026, 10, 24 + h // 24, h % 24, 30, tzinfo=UTC))
        for h in range(20, 29)
    ]
    assert [each is not None for each in frozen] == [
        False,
        True,
        True,
        True,
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("start", "end", "now"),
    [
        (
            time(2, 30),
            time(3, 30),
            "2026-03-29T01:15",
        ),  # 03:15 in Oslo, where there was no 02:30 that night
        (time(22), time(2, 30), "2026-10-25T01:15"),  # 02:15 for the second time
        (time(2, 30), time(2, 45), "2026-10-25T00:35"),
        (time(2, 30), time(2, 45), "2026-10-25T01:35"),
    ],
)
def test_what_the_clock_on_the_wall_shows_is_frozen(start: time, end: time, now: str) -> None:
    freeze = Freeze(DAYS, start, end, "Europe/Oslo")
    assert freeze_at([freeze], datetime.fromisoformat(now).replace(tzinfo=UTC))


def test_of_several_the_longest_is_told() -> None:
    found = freeze_at([EVENING, NIGHT], datetime(2026, 11, 20, 21, 30, tzinfo=UTC))
    assert str(found) == "Fri 22:00 to Sat 02:00 CET"


def test_without_days_every_day_is_meant() -> None:
    daily = Freeze(DAYS, time(1), time(2), "UTC")
    assert all(
        freeze_at([daily], datetime(2026, 11, day, 1, 30, tzinfo=UTC)) for day in range(16, 23)
    )
    assert freeze_at([], datetime(2026, 11, 20, tzinfo=UTC)) is None


CHRISTMAS = DatedFreeze(
    datetime(2026, 12, 24, 12, tzinfo=ZoneInfo("Europe/Oslo")),
    datetime(2026, 12, 27, tzinfo=ZoneInfo("Europe/Oslo")),
    "Christmas",
)


@pytest.mark.parametrize(
    ("now", "holds"),
    [
        ("24T10:59", False),
        ("24T11:00", True),
        ("25T03:00", True),
        ("26T22:59", True),
        ("26T23:00", False),
    ],
)
def test_a_freeze_with_dates(now: str, holds: bool) -> None:
    found = freeze_at([CHRISTMAS], datetime.fromisoformat(f"2026-12-{now}").replace(tzinfo=UTC))
    assert str(found) == (
        "2026-12-24 12:00 to 2026-12-27 00:00 CET (Christmas)" if holds else "None"
    )


def test_freezes_of_a_night() -> None:
    begin = datetime(2026, 11, 20, 22, tzinfo=UTC)  # Friday, 23:00 in Oslo
    all_of_them: list[Freeze | DatedFreeze] = [EVENING, NIGHT, ALL_DAY, CHRISTMAS]
    assert [
        str(each) for each in freezes_between(all_of_them, begin, begin + timedelta(hours=6))
    ] == [
        "Fri 18:00 to Fri 23:30 CET",
        "Fri 22:00 to Sat 02:00 CET",
    ]
    saturday = begin + timedelta(days=1)
    assert [
        str(each) for each in freezes_between([ALL_DAY], saturday, saturday + timedelta(hours=6))
    ] == ["Sun 00:00 to Mon 00:00 UTC"]


# ``--window``: midnight, time zones, and the nights in which the clocks change


OSLO = "Europe/Oslo"


def is_open(text: str, now: str, timezone: str | None = OSLO) -> bool:
    return parse_window(text, timezone).is_open(datetime.fromisoformat(now))


@table("playbook/window_across_midnight", "now", "expected")
def test_across_midnight(now: str, expected: bool) -> None:
    assert is_open("23:00-05:30", now) is expected


@pytest.mark.parametrize(
    ("now", "expected"),
    [("08:59", False), ("09:00", True), ("16:59", True), ("17:00", False), ("23:00", False)],
)
def test_within_a_day(now: str, expected: bool) -> None:
    assert is_open("09:00-17:00", f"2026-11-20T{now}+01:00") is expected


def open_minutes(
    text: str, first: datetime, hours: int = 14, timezone: str | None = OSLO
) -> tuple[str, str, int]:
    """Return the first and the last minute (UTC) at which a window is open, and how many there are."""
    window = parse_window(text, timezone)
    minutes = [first + timedelta(minutes=n) for n in range(60 * hours)]
    found = [minute for minute in minutes if window.is_open(minute)]
    return f"{found[0]:%H:%M}", f"{found[-1]:%H:%M}", len(found)


BACK = datetime(
    2026, 10, 24, 18, tzinfo=UTC
)  # on the 25th, 03:00 in Oslo (01:00 UTC) is 02:00 again
FORWARD = datetime(2026, 3, 28, 18, tzinfo=UTC)  # on the 29th, 02:00 in Oslo (01:00 UTC) is 03:00


@pytest.mark.parametrize(
    ("text", "first", "expected"),
    [
        ("23:00-05:30", BACK, ("21:00", "04:29", 450)),  # an hour longer than the clock says
        (
            "23:00-02:30",
            BACK,
            ("21:00", "00:29", 210),
        ),  # it ends when 02:30 comes for the first time
        (
            "02:30-05:30",
            BACK,
            ("00:30", "04:29", 210),
        ),  # not from 02:00 to 02:30 when that comes again
        ("23:00-05:30", FORWARD, ("22:00", "03:29", 330)),  # an hour shorter
        (
            "23:00-02:30",
            FORWARD,
            ("22:00", "00:59", 180),
        ),  # there is no 02:30: it ends when the clocks jump past it
        ("02:30-05:30", FORWARD, ("01:30", "03:29", 120)),  # it begins as late as 03:30
    ],
)
def test_nights_in_which_the_clocks_change(
    text: str, first: datetime, expected: tuple[str, str, int]
) -> None:
    assert open_minutes(text, first) == expected


@pytest.fixture
def here_is_oslo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", OSLO)
    clocks.tzset()
    yield
    monkeypatch.undo()
    clocks.tzset()


@pytest.mark.usefixtures("here_is_oslo")
@pytest.mark.parametrize("first", [BACK, FORWARD])
@pytest.mark.parametrize("text", ["23:00-05:30", "23:00-02:30", "02:30-05:30"])
def test_without_a_zone_it_is_that_of_this_machine(text: str, first: datetime) -> None:
    assert open_minutes(text, first, timezone=None) == open_minutes(text, first, timezone=OSLO)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "23:00",
        "23:00-",
        "23-05",
        "23:00 - 05:30",
        "24:00-05:00",
        "5:30-6:30",
        "23:00-05:60",
        "١٠:00-11:00",
    ],
)
def test_what_is_no_window(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_window(text)


def test_a_window_that_never_closes_is_none() -> None:
    with pytest.raises(ValueError, match="start and end are equal"):
        parse_window("05:30-05:30")


def test_how_it_is_shown() -> None:
    assert str(parse_window("23:00-05:30")) == "23:00-05:30"
