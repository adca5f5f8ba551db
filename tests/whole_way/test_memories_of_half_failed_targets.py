"""Whole way: if one value of a target fails verification every night, the others are not written every night."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msauto.applying.states import RetryPolicy
from msauto.simulator import Simulator, empty_state
from tests.stage import Stage, lines

SWALLOWED = "swallow@POST .*command=CREATEMARKER"
CUE = {"at": 100, "track": "Cue Point", "title": "Ad break"}
PART = {"number": 1, "start": 0, "duration": 100, "title": "Part 1", "keywords": "a b"}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    state = empty_state()
    state.add_clip("Film", "Raw", frames=500)
    with Simulator(state=state, dialect=["link_fields=hidden", "segment_keywords=hidden"]) as sim:
        yield Stage(
            sim,
            tmp_path,
            policy=RetryPolicy(tries=1, backoff=(), read_pauses=(), restore_pauses=(), half_open_pauses=()),
        )


def film(**desired: Any) -> dict[str, Any]:
    return {"name": "Film", "asset": {"title": "Film", **desired}}


def commands(stage: Stage) -> list[str]:
    """Return the commands that were sent since this was last asked."""
    sent = [line.partition("command=")[2].partition("&")[0] for line in lines(stage.sent())]
    stage.sim.clear_log()
    return sent


def test_what_was_taken_and_is_not_reported_is_written_once(stage: Stage) -> None:
    task = film(fields={"user_0": "Kanal 5"}, segments=[PART], markers=[CUE])
    stage.sim.faults.add(SWALLOWED)
    nights = []
    for _ in range(3):
        (result,) = stage.apply(task).targets
        assert result.outcome == "failed"
        assert [each.aspect for each in result.differences] == ["marker"]
        nights.append(sorted(commands(stage)))
    assert nights == [["CREATEMARKER", "CREATESEGMENT", "SETFIELD"], ["CREATEMARKER"], ["CREATEMARKER"]]
    stage.sim.faults.clear()
    assert stage.apply(task).ok
    assert stage.plan(task).requests == 0


def test_what_was_not_seen_is_written_again(stage: Stage) -> None:
    """A segment of which nothing is seen has no keywords either."""
    task = film(fields={"user_0": "Kanal 5"}, segments=[PART])
    stage.sim.faults.add("swallow@POST .*command=CREATESEGMENT*1")
    assert not stage.apply(task).ok
    assert sorted(commands(stage)) == ["CREATESEGMENT", "SETFIELD"]
    assert stage.apply(task).ok
    assert commands(stage) == ["CREATESEGMENT"]
    assert stage.plan(task).requests == 0


def test_what_was_lost_is_written_again(stage: Stage) -> None:
    """The field got no answer, so its outcome is unknown: the failure of the rest does not verify it."""
    task = film(fields={"user_0": "Kanal 5"}, markers=[CUE])
    stage.sim.faults.add(SWALLOWED)
    stage.sim.faults.add("cut_after@POST .*name=user_0*1")
    assert not stage.apply(task).ok
    commands(stage)
    stage.apply(task)
    assert "SETFIELD" in commands(stage)


def test_what_a_rename_takes_along_is_not_forgotten(stage: Stage) -> None:
    stage.apply(film(fields={"user_1": "kept"}))
    commands(stage)
    task = film(title="Final film", was=["Film"], fields={"user_0": "Kanal 5", "user_1": "kept"}, markers=[CUE])
    stage.sim.faults.add(SWALLOWED)
    assert not stage.apply(task).ok
    assert sorted(commands(stage)) == ["CREATEMARKER", "SETFIELD", "SETFIELD"]
    del task["asset"]["was"]
    assert not stage.apply(task).ok
    assert commands(stage) == ["CREATEMARKER"]


def test_a_rename_that_was_not_done_is_no_proof_of_the_rest(stage: Stage) -> None:
    """It is unknown whether title and fields are of one clip, so the fields are written once more."""
    task = film(title="Final film", was=["Film"], fields={"user_0": "Kanal 5"})
    stage.sim.faults.add("swallow@POST .*name=clip_name*1")
    assert not stage.apply(task).ok
    commands(stage)
    assert stage.apply(task).ok
    assert sorted(commands(stage)) == ["SETFIELD", "SETFIELD"]
    assert stage.plan(task).requests == 0


def test_what_a_deleted_segment_had_comes_back_in_the_next_run(stage: Stage) -> None:
    """Between its deletion and its creation only the ledger has what no playbook declares."""
    assert stage.apply(film(segments=[PART])).ok
    stage.sim.faults.add("status:400@POST .*command=CREATESEGMENT*1")
    task = film(segments=[{"number": 1, "start": 0, "duration": 50}])
    assert not stage.apply(task).ok
    assert stage.sim.state.clip("Film").segments == []
    assert stage.apply(task).ok
    (segment,) = stage.sim.state.clip("Film").segments
    assert (segment.duration, segment.titles, segment.keywords) == (50, ["Part 1"], "a b")
    assert stage.plan(task).requests == 0
