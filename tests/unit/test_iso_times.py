"""Dates, times, rates and URLs are read in the same way by each version of Python."""

from __future__ import annotations

from datetime import UTC, datetime, time

import pytest

from msauto.model.server import UrlError, parse_server_url, server_key
from msauto.model.timecode import TimecodeError, parse_rate
from msauto.primitives.iso_times import parse_clock, parse_date, parse_datetime, parse_formatted

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)
MIDNIGHT = TEN.replace(hour=0, tzinfo=None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-20T10:00:00Z", TEN),
        ("2026-11-20 10:00Z", TEN),
        ("2026-11-20T10:00:00.000+00:00", TEN),
        (
            "2026-11-20T11:00:00,123456789+0100",
            TEN.replace(microsecond=123456),
        ),
        ("20261120T100000Z", TEN),
        ("2026-11-20T10:00", TEN.replace(tzinfo=None)),
        ("2026-11-20", MIDNIGHT),
    ],
)
def test_dates_and_times_that_are_read(text: str, expected: datetime) -> None:
    assert parse_datetime(text) == expected


NO_TIMES = [
    *(
        "2026-11-20T24:00",
        "2026-11-20T24:00:00Z",
        "20261120T240000",
        "2026-W47-5",
        "2026W475",
        "2026-324",
        "2026-11",
    ),
    *(
        "2026-11-20T10",
        "2026-11-20x10:00",
        "2026-11-20T10:00z",
        "2026-11-20T10:00+01:00:30",
        "2026-11-20T10:00 Z",
    ),
    *(
        "2026-11-20T1000",
        "20261120T10:00",
        "2026-1120",
        "٢٠٢٦-11-20",
        "2026-11-20T10:00:60",
        "2026-02-30",
        "",
        "T10:00",
    ),
    *(" 2026-11-20", "2026-11-20\n", "2026-11-20T10:00+24:00"),
]


@pytest.mark.parametrize("text", NO_TIMES)
def test_what_is_no_date_and_time(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_datetime(text)


@pytest.mark.parametrize(
    "text", ["24:00", "24:00:00", "T10:00", "10", "1000", "10:00Z", "10:00+01:00", "10:60", "١٠:00"]
)
def test_what_is_no_time_of_day(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time of day"):
        parse_clock(text)


def test_times_of_day_and_dates() -> None:
    assert [parse_clock(text) for text in ("00:00", "23:59:59", "18:00:00.5")] == [
        time(0, 0),
        time(23, 59, 59),
        time(18, 0, 0, 500_000),
    ]
    assert parse_date("2026-11-20") == TEN.date()
    for text in ("20261120", "2026-W47-5", "2026-11-20T10:00"):
        with pytest.raises(ValueError, match="is not a date"):
            parse_date(text)


@pytest.mark.parametrize(
    ("text", "form", "why"),
    [
        ("2026-11-20", "%F", "not a valid time format"),
        ("10:00:00", "%T", "not a valid time format"),
        ("2026 1", "%Y %e", "not a valid time format"),
        ("2026", "%:Y", "not a valid time format"),
        ("20.11.", "%d.%m.", "a day without a year"),
        ("٢٠٢٦", "%Y", "digits that are not 0 to 9"),
        ("x", "%Y", "does not match"),
    ],
)
def test_formats_that_only_some_versions_read(text: str, form: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_formatted(text, form)
    assert parse_formatted("20. Nov 2026 100%", "%d. %b %Y 100%%") == MIDNIGHT


@pytest.mark.parametrize("text", ["1_0", "1e1", "2.5e1", "٢٥", "1/0", "nan", "25/1/1"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(TimecodeError, match="is not a frame rate"):
        parse_rate(text)


@pytest.mark.parametrize(
    "url",
    [
        "http://a[::1]/",
        "http://[::1]b/",
        "http://[v1.a]/",
        "http://[abc]/",
        "http://[1.2.3.4]",
        "http://a:1_0",
    ],
)
def test_urls_that_only_some_versions_read(url: str) -> None:
    with pytest.raises(UrlError, match="cannot be read as a URL"):
        parse_server_url(url)


def test_the_same_server_in_another_notation() -> None:
    assert (
        server_key("http://[::ffff:0.0.0.0]")
        == server_key("http://[::ffff:0:0]")
        == server_key("http://localhost")
    )
    assert parse_server_url("http://user:a]b@[::1]:80").host == "::1"
