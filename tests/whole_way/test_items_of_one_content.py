"""Whole way: two desired RSS items of the same content, of which one PUT was not done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from msauto.simulator import Simulator, empty_state
from tests.stage import Stage

DOCUMENT = {"guid": "x", "file": "x.xml", "item": {"title": "News", "description": "News"}}
TEXT = {"guid": "01", "file": "n-1.txt", "text": "News"}


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
