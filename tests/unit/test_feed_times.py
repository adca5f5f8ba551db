"""Times of feeds: which texts are one, and when that is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from msauto.primitives.feed_times import instant_of, parse_feed_time, with_zone

AT_NINE = datetime(2026, 11, 20, 21, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "Fri, 20 Nov 2026 21:00:00 +0000",
        "Fri, 20 Nov 2026 21:00:00 GMT",
        "Fri, 20 Nov 2026 21:00:00 UT",
        "Fri, 20 Nov 2026 21:00:00 Z",
        "Fri, 20 Nov 2026 21:00:00 A",
        "Fri, 20 Nov 2026 21:00:00 -0000",
        "20 Nov 26 16:00 EST",
        "fri, 20 nov 2026 14:00:00 mst",
        "Friday, 20-Nov-26 21:00:00 UTC",
        "Fri, 20 Nov 2026 22:00:00 +01:00 (CET)",
        "Fri, 20 Nov 2026 22:00:00.672 +0100",
        "Fri,  20 November 2026\n 21:00:00 GMT",
        "2026-11-20T21:00:00Z",
        "2026-11-20t21:00:00.672z",
        "2026-11-20T21:00:00,999999+00:00",
        "2026-11-20 22:00+01",
        "20261120T220000+0100",
    ],
)
def test_a_time_is_an_instant_in_whole_seconds(text: str) -> None:
    assert instant_of(text) == AT_NINE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gestern",
        "20.11.2026 21:00",
        "31 Feb 2026 10:00:00 GMT",
        "20 Foo 2026 10:00:00 GMT",
        "20 Ebm 2026 10:00:00 GMT",
        "Fri, 20 Nov 2026 25:00:00 GMT",
        "Fri, 20 Nov 2026 10:00:60 GMT",
        "Fri, 20 Nov 2026 21:00:00 CET",
        "Fri, 20 Nov 2026 21:00:00 J",
        "Fri, 20 Nov 2026 21:00:00 +2500",
        "Fri, 20 Nov 2026",
        "0001-01-01T00:00:00Z",
        "2026-11-20T10:00:00Z and more",
        "2026-11-20T24:00",
        "2026-11-20T10",
        "2026-11-20T10:00:60",
        "٢٠ Nov 2026 10:00:00 GMT",
    ],
)
def test_what_is_no_time(text: str) -> None:
    assert parse_feed_time(text) is None
    assert with_zone(text, UTC) == text


@pytest.mark.parametrize("text", ["2026-11-20 21:00:00", "Fri, 20 Nov 2026 21:00:00"])
def test_without_a_zone_it_is_that_of_the_server(text: str) -> None:
    oslo = ZoneInfo("Europe/Oslo")
    assert with_zone(text, oslo) == "2026-11-20T21:00:00+01:00"
    assert with_zone("2026-07-20 21:00:00", oslo) == "2026-07-20T21:00:00+02:00"
    here = datetime(2026, 11, 20, 21).astimezone()
    assert instant_of(with_zone(text, None)) == here


def test_a_named_zone_stays() -> None:
    assert parse_feed_time("20 Nov 2026 05:00 EST") == datetime(
        2026, 11, 20, 5, tzinfo=timezone(timedelta(hours=-5))
    )
    assert with_zone("20 Nov 2026 05:00 EST", UTC) == "20 Nov 2026 05:00 EST"
