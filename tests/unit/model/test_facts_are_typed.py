"""Every fact has the type that a playbook expects, and a malformed value of the server stays as it is."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest

from msauto.model.facts import Facts
from msauto.model.live import Asset, Link, Marker, Segment
from msauto.model.plan import Address, Plan, Target
from msauto.model.result import Result, TargetResult
from tests.entries import listed_entry
from tests.tables import table

ASSET = Asset(
    "EP 1",
    folder=("Raw", "a/b"),
    hires="$(video_path)/x.mxf",
    archive="",
    link_id=7,
    finalized=True,
    attributes={
        "bps": "24", "channels": "2", "derived_from": "x", "frame_time": "0.0333666667", "frames": "30000",
        "height": "1080", "width": "1920", "sample_rate": "48000", "orig_name": "a.mov", "orig_type": "mov",
        "first_frame": "0", "last_frame": "29999", "create_time": "2026-11-13T10:00:00", "rec_time": "yesterday",
        "mime_type": "10", "layer": "1", "user_0": "007", "house-number": "H1",
    },
    markers=(Marker(1, 250, {"track": "Icon", "rating": "3"}), Marker(2, 5, {"rating": "high"})),
    segments=(Segment(1, 0, 10, "name", ("one", "two"), rating="2"), Segment(2, 10, 5, "only a name")),
    parameters=("headline",),
)  # fmt: skip
FACTS = Facts(asset=ASSET, xmp={"dc:subject": ("a", "b")}, links=(Link(("Playout",), "EP 1", 9),))


@table("model/facts", "name", "value")
def test_fact(name: str, value: Any) -> None:
    found = FACTS.get(name)
    assert found == value
    assert type(found) is type(value)


def test_a_rate_is_exact() -> None:
    assert FACTS.get("fps") == FACTS.get("rate") == Fraction(30000, 1001)
    assert type(FACTS.get("fps")) is type(FACTS.get("rate")) is Fraction


def test_markers_and_segments_have_the_names_of_playbooks() -> None:
    assert FACTS.get("markers") == [
        {"uid": 1, "frame": 250, "at": 250, "track": "Icon", "rating": 3},
        {"uid": 2, "frame": 5, "at": 5, "rating": None},
    ]
    first, second = FACTS.get("segments")
    assert (first["title"], first["titles"], first["rating"]) == ("one", ["one", "two"], 2)
    assert (second["title"], second["number"], second["start"], second["duration"]) == (
        "only a name",
        2,
        10,
        5,
    )


def test_a_listing_answers_what_it_can() -> None:
    entry = listed_entry(
        ("Raw",),
        "A",
        3,
        True,
        {"frames": "10", "frame_time": "0.0400", "create_time": "2026-11-13"},
    )
    facts = Facts(entry=entry)
    assert [facts.get(name) for name in ("title", "frames", "fps", "duration", "link_id", "finalized")] == [
        "A", 10, 25, 0.4, 3, True,
    ]  # fmt: skip


def test_what_is_not_told_is_no_fact() -> None:
    for name in ("proxy", "comment", "fps"):
        with pytest.raises(AttributeError):
            Facts(asset=Asset("A")).get(name)
    with pytest.raises(AttributeError):
        Facts(asset=Asset("A", attributes={"frames": "10", "frame_time": "nan"})).get("duration")


def test_a_time_with_a_zone_keeps_it() -> None:
    texts = {"create_time": "2026-11-20T10:00:00+01:00", "rec_time": " 2026-11-20T09:00:00Z "}
    facts = Facts(asset=Asset("A", attributes=texts))
    assert (
        facts.get("create_time") == facts.get("rec_time") == datetime(2026, 11, 20, 9, tzinfo=UTC)
    )


@table("model/no_rate", "frame_time", "why")
def test_why_there_is_no_rate(frame_time: str | None, why: str) -> None:
    asset = Asset("A", attributes={} if frame_time is None else {"frame_time": frame_time})
    with pytest.raises(AttributeError, match=f"^{re.escape(why)}$"):
        Facts(asset=asset).get("fps")


# What asyncio, a debugger or a failing test prints of a plan and a result stays short


TARGET = Target("studio-a", "NEWS", "asset", "Film", None, "", (), (), None, Address("Film"))
PLAN = Plan("2026-11-20T10:15:00Z", "0.1.0", targets=(TARGET,) * 3, unchanged=7)


def test_a_plan() -> None:
    assert repr(PLAN) == "<Plan 2026-11-20T10:15:00Z: 3 targets, 7 unchanged>"


def test_a_result() -> None:
    results = (TargetResult(TARGET, "changed"),) * 3
    assert repr(Result("run-1", PLAN, results)) == "<Result run-1: 3 targets>"
    assert (
        repr(Result("run-1", PLAN, results, interrupted=True))
        == "<Result run-1: 3 targets, interrupted>"
    )
