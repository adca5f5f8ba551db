"""Attributes that answers leave out: the length and the rate of a clip without frames."""

from __future__ import annotations

import json

from msauto.simulator import Simulator
from msauto.simulator.state_file import state_from_json, state_to_json
from tests.unit.simulator.asking import Asker


def names(ask: Asker, target: str) -> list[str | None]:
    return [each.get("name") for each in ask.get(target).xml.iter("Attr")]


def test_omitted_attributes_are_in_no_answer(ask: Asker, sim: Simulator) -> None:
    assert {"frames", "frame_time"} <= set(names(ask, "/storage/NEWS@Long%20Film"))
    sim.state.clip("Long Film").omitted = ("frames", "frame_time")
    shown = names(ask, "/storage/NEWS@Long%20Film")
    assert not {"frames", "frame_time"} & set(shown)
    assert "title" in shown
    assert "frames" not in names(ask, "/storage/NEWS/Films")


def test_it_is_kept_in_the_state(sim: Simulator) -> None:
    sim.state.clip("Long Film").omitted = ("frames",)
    again = state_from_json(json.loads(json.dumps(state_to_json(sim.state))))
    assert again.clip("Long Film").omitted == ("frames",)
    assert again.clip("EP001").omitted == ()
