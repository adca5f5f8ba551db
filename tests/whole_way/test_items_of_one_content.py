"""Whole way: RSS items that do not show as they were put: two of one content, under another guid, not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from msauto.report.text import render_result
from msauto.simulator import SimDialect, Simulator, empty_state
from msauto.simulator.rss import put_item
from tests.stage import Stage

DOCUMENT = {"guid": "x", "file": "x.xml", "item": {"title": "News", "description": "News"}}
TEXT = {"guid": "n-1", "text": "News"}


@pytest.fixture
def sim() -> Iterator[Simulator]:
    state = empty_state()
    state.add_channel("ticker")
    with Simulator(state) as simulator:
        yield simulator


@pytest.mark.parametrize("lost", ["x.xml", "n-1.txt"])
def test_one_live_item_is_not_taken_for_both(sim: Simulator, tmp_path: Path, lost: str) -> None:
    stage = Stage(sim, tmp_path)
    sim.faults.add(f"swallow@PUT .*{lost}*1")
    ticker = {"name": "The ticker", "rss": {"channel": "ticker", "items": [DOCUMENT, TEXT]}}
    (target,) = stage.apply(ticker).targets
    assert len(sim.state.channels["ticker"].items) == 1
    assert target.outcome != "changed"
    (again,) = stage.apply(ticker).targets
    assert again.outcome == "changed"
    assert len(sim.state.channels["ticker"].items) == 2


@pytest.mark.parametrize(("guids", "shown"), [("file", "x.xml"), ("stem", "x")])
def test_an_item_under_another_guid_names_the_key_to_set(
    sim: Simulator, tmp_path: Path, guids: str, shown: str
) -> None:
    sim.dialect = SimDialect(rss_guid=guids)
    stage = Stage(sim, tmp_path)
    item = {"guid": "n-1", "file": "x.xml", "item": {"title": "News"}}
    ticker = {"name": "The ticker", "rss": {"channel": "ticker", "items": [item]}}
    result = stage.apply(ticker)
    (target,) = result.targets
    assert (target.outcome, len(target.differences), target.notes) == ("unverified", 1, ())
    text = " ".join("".join(render_result(result)).split())
    assert "set the dialect key that is named, then run again" in text
    assert f"rss_item n-1: it shows as {shown}: set `rss_guid: {guids}` in the server's dialect" in text
    stage.dialect = {"rss_guid": guids}
    assert stage.plan(ticker).requests == 0


def test_a_text_that_the_server_keeps_is_told_as_a_text(sim: Simulator, tmp_path: Path) -> None:
    stage = Stage(sim, tmp_path)
    item = {"guid": "n-1", "text": "Storm\nat sea"}
    ticker = {"name": "The ticker", "rss": {"channel": "ticker", "items": [item]}}
    assert stage.apply(ticker).ok
    sim.faults.add("swallow@PUT .*")
    item["text"] = "Calm"
    result = stage.apply(ticker)
    text = " ".join("".join(render_result(result)).split())
    assert 'rss_item n-1 text: desired "Calm", live "Storm at sea"' in text.replace("\\n", " ").replace("⏎", " ")


def test_an_item_whose_file_was_taken_is_named_as_lost(sim: Simulator, tmp_path: Path) -> None:
    stage = Stage(sim, tmp_path)
    document = b"<item><guid>theirs</guid><title>Sponsor</title></item>"
    put_item(sim.state.channels["ticker"], "x.xml", document, sim.dialect)
    result = stage.apply({"name": "The ticker", "rss": {"channel": "ticker", "items": [DOCUMENT]}})
    (target,) = result.targets
    assert target.outcome == "failed"
    text = " ".join("".join(render_result(result)).split())
    assert "rss_item theirs: is gone, and no task names it" in text
