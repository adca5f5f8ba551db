"""A busy server answers 429 or 503 after it did the work, or while it does: no duplicate stays unnoticed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msauto.applying.states import RetryPolicy
from msauto.simulator import Simulator, empty_state
from tests.stage import Stage

MARKER = {"at": 10, "track": "Cue Point", "title": "Ad"}
LINK = {"folder": "Playout", "title": "Film tonight"}
SEGMENT = {"number": 1, "start": 0, "duration": 10, "title": "Part 1"}
WRITES: list[tuple[str, dict[str, Any]]] = [
    ("CREATEMARKER", {"markers": [MARKER]}),
    ("COPYLINK", {"links": [LINK]}),
    ("CREATESEGMENT", {"segments": [SEGMENT]}),
]


@pytest.fixture
def sim() -> Iterator[Simulator]:
    state = empty_state()
    news = state.databases["NEWS"]
    news.make_folder("Playout")
    news.add_clip("Film", "Raw", frames=500)
    with Simulator(state=state) as running:
        yield running


@pytest.fixture
def stage(sim: Simulator, tmp_path: Path) -> Stage:
    return Stage(sim, tmp_path, policy=RetryPolicy(backoff=(0.01,), read_pauses=(0.05, 0.1, 0.3, 0.5)))


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(("command", "wanted"), WRITES)
def test_what_shows_late_after_a_rejection_is_done_once(
    sim: Simulator, stage: Stage, command: str, wanted: dict[str, Any], status: int
) -> None:
    sim.faults.add(f"lag:0.3:{status}@{command}*1")
    assert stage.apply({"asset": {"title": "Film", **wanted}}).ok
    assert [entry.status for entry in sim.writes()] == [status]


def test_what_was_done_twice_is_told_and_not_verified(sim: Simulator, stage: Stage) -> None:
    sim.faults.add("lag:1.3:503@CREATEMARKER*1")  # later than the second sending
    result = stage.apply({"asset": {"title": "Film", "markers": [MARKER]}})
    assert [marker.uid for marker in sim.state.clip("Film").markers] == [1, 2]
    (target,) = result.targets
    assert (target.outcome, target.requests[0].tries) == ("failed", 2)
    (difference,) = target.differences
    assert (difference.desired, difference.live) == ("once", "twice: uid 1 and uid 2")
