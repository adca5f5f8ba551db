"""``--window``: midnight, time zones, and the nights in which the clocks change."""

from __future__ import annotations

import time as clocks
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from msauto.playbook.change_windows import parse_window

OSLO = "Europe/Oslo"


def is_open(text: str, now: str, timezone: str | None = OSLO) -> bool:
    return parse_window(text, timezone).is_open(datetime.fromisoformat(now))


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-11-20T22:59:59+01:00", False),
        ("2026-11-20T23:00:00+01:00", True),
        ("2026-11-21T00:00:00+01:00", True),
        ("2026-11-21T05:29:59+01:00", True),
        ("2026-11-21T05:30:00+01:00", False),
        ("2026-11-21T05:31:00+01:00", False),  # a start that catches up does not run into the broadcast day
        ("2026-11-21T12:00:00+01:00", False),
        ("2026-11-20T22:00:00+00:00", True),  # the same moment as 23:00 in Oslo
    ],
)
def test_across_midnight(now: str, expected: bool) -> None:
    assert is_open("23:00-05:30", now) is expected


@pytest.mark.parametrize(
    ("now", "expected"), [("08:59", False), ("09:00", True), ("16:59", True), ("17:00", False), ("23:00", False)]
)
def test_within_a_day(now: str, expected: bool) -> None:
    assert is_open("09:00-17:00", f"2026-11-20T{now}+01:00") is expected


def open_minutes(text: str, first: datetime, hours: int = 14, timezone: str | None = OSLO) -> tuple[str, str, int]:
    """Return the first and the last minute (UTC) at which a window is open, and how many there are."""
    window = parse_window(text, timezone)
    minutes = [first + timedelta(minutes=n) for n in range(60 * hours)]
    found = [minute for minute in minutes if window.is_open(minute)]
    return f"{found[0]:%H:%M}", f"{found[-1]:%H:%M}", len(found)


BACK = datetime(2026, 10, 24, 18, tzinfo=UTC)  # on the 25th, 03:00 in Oslo (01:00 UTC) is 02:00 again
FORWARD = datetime(2026, 3, 28, 18, tzinfo=UTC)  # on the 29th, 02:00 in Oslo (01:00 UTC) is 03:00


@pytest.mark.parametrize(
    ("text", "first", "expected"),
    [
        ("23:00-05:30", BACK, ("21:00", "04:29", 450)),  # an hour longer than the clock says
        ("23:00-02:30", BACK, ("21:00", "00:29", 210)),  # it ends when 02:30 comes for the first time
        ("02:30-05:30", BACK, ("00:30", "04:29", 210)),  # not from 02:00 to 02:30 when that comes again
        ("23:00-05:30", FORWARD, ("22:00", "03:29", 330)),  # an hour shorter
        ("23:00-02:30", FORWARD, ("22:00", "00:59", 180)),  # there is no 02:30: it ends when the clocks jump past it
        ("02:30-05:30", FORWARD, ("01:30", "03:29", 120)),  # it begins as late as 03:30
    ],
)
def test_nights_in_which_the_clocks_change(text: str, first: datetime, expected: tuple[str, str, int]) -> None:
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
    "text", ["", "23:00", "23:00-", "23-05", "23:00 - 05:30", "24:00-05:00", "5:30-6:30", "23:00-05:60", "١٠:00-11:00"]
)
def test_what_is_no_window(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_window(text)


def test_a_window_that_never_closes_is_none() -> None:
    with pytest.raises(ValueError, match="start and end are equal"):
        parse_window("05:30-05:30")


def test_how_it_is_shown() -> None:
    assert str(parse_window("23:00-05:30")) == "23:00-05:30"
