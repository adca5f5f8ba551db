"""Channels as others fill them: dates of feeds, guids of agencies, elements of other namespaces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msauto.plugins.simulator.embedded import SimDialect, Simulator
from msauto.plugins.simulator.embedded.rss import put_item
from tests.stage import Stage

OSLO = {"timezone": "Europe/Oslo"}


@pytest.fixture(autouse=True)
def _channel(sim: Simulator) -> None:
    sim.dialect = SimDialect()
    sim.state.channels.pop("weather", None)
    sim.state.add_channel("weather")


def rss(*items: dict[str, Any]) -> dict[str, Any]:
    return {"rss": {"channel": "weather", "items": list(items)}}


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("2026-11-20T19:59:32.672Z", "Fri, 20 Nov 2026 19:59:32 +0000"),
        ("2026-11-20 21:00:00", "Fri, 20 Nov 2026 21:00:00 +0100"),
        ("Fri, 20 Nov 2026 21:00:00", "Fri, 20 Nov 2026 21:00:00 +0100"),
        ("Fri, 20 Nov 2026 21:00 EST", "Fri, 20 Nov 2026 21:00:00 -0500"),
        ("20 Nov 26 21:00:00 UT", "Fri, 20 Nov 2026 21:00:00 +0000"),
    ],
)
def test_a_date_is_sent_as_an_instant_and_recognised(
    sim: Simulator, tmp_path: Path, written: str, shown: str
) -> None:
    stage = Stage(sim, tmp_path, block=OSLO)
    task = rss({"guid": "d-1", "item": {"title": "T", "pubDate": written}})
    assert stage.apply(task).ok
    assert sim.state.channels["weather"].items[-1].pub_date == shown
    assert stage.plan(task).requests == 0


def test_a_shown_date_without_a_zone_is_that_of_the_server(sim: Simulator, tmp_path: Path) -> None:
    body = b"<item><guid>d-1</guid><title>T</title><pubDate>2026-11-20 21:00:00</pubDate></item>"
    put_item(sim.state.channels["weather"], "d-1.xml", body, SimDialect())
    date = "2026-11-20T20:00:00Z"
    task = rss({"guid": "d-1", "item": {"title": "T", "pubDate": date}})
    assert Stage(sim, tmp_path, block=OSLO).plan(task).requests == 0
    assert Stage(sim, tmp_path, block={"timezone": "UTC"}).plan(task).requests > 0


@pytest.mark.parametrize("guid", ["https://example.com/news/1", "tag:example.com,2026:2", "a  b/c"])
def test_a_text_that_nothing_could_recognise_is_not_sent(
    sim: Simulator, tmp_path: Path, guid: str
) -> None:
    stage = Stage(sim, tmp_path)
    (target,) = stage.plan(rss({"guid": guid, "text": "Storm warning"})).targets
    assert "which holds no guid" in str(target.error)
    assert "write `item:` in place of `text:`" in str(target.error)
    document = rss({"guid": guid, "item": {"title": "Storm warning"}})
    assert stage.apply(document).ok
    assert stage.plan(document).requests == 0


def test_what_shows_as_its_file_is_told_until_the_dialect_says_so(
    sim: Simulator, tmp_path: Path
) -> None:
    sim.dialect = SimDialect().with_values({"rss_guid": "file"})
    stage = Stage(sim, tmp_path)
    task = rss({"guid": "n-1", "text": "Storm"})
    (target,) = stage.apply(task).targets
    assert (target.outcome, "`rss_guid: file`" in str(target.differences)) == ("unverified", True)
    (planned,) = stage.plan(task).targets
    assert "may be the file of the live item n-1.txt" in str(planned.error)
    stage.dialect = {"rss_guid": "file"}
    assert stage.plan(task).requests == 0


def test_a_change_of_a_known_file_is_one_put(sim: Simulator, tmp_path: Path) -> None:
    stage = Stage(sim, tmp_path)
    for text in ("one", "two", "three"):
        sim.clear_log()
        assert stage.apply(rss({"guid": "n-1", "text": text})).ok
        assert [entry.method for entry in stage.sent()] == ["PUT"]


def test_a_change_of_an_item_by_its_file_is_one_put(sim: Simulator, tmp_path: Path) -> None:
    sim.dialect = SimDialect().with_values({"rss_guid": "file"})
    put_item(sim.state.channels["weather"], "n-1.txt", b"theirs", sim.dialect)
    stage = Stage(sim, tmp_path)
    for text in ("one", "two"):
        sim.clear_log()
        assert stage.apply(rss({"file": "n-1.txt", "text": text})).ok
        assert [entry.method for entry in stage.sent()] == ["PUT"]
    assert stage.apply(rss({"file": "n-1.txt", "state": "absent"})).ok
