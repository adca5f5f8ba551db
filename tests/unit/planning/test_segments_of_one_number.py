"""Several live segments of one number: reported, never matched; what may take the wrong one needs `lossy`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msauto.simulator import SimClip, SimDialect, SimSegment, Simulator, empty_state
from tests.stage import Stage
from tests.tables import table

FIRST = {"number": 1, "start": 0, "duration": 5, "title": "A"}
BOTH = "2 live segments have the number 1: 'A' and 'B'"


@pytest.fixture(scope="module")
def server() -> Iterator[Simulator]:
    with Simulator(state=empty_state()) as simulator:
        yield simulator


@pytest.fixture(params=["all", "first", "last"])
def stage(server: Simulator, tmp_path: Path, request: pytest.FixtureRequest) -> Stage:
    server.state = empty_state()
    server.dialect = SimDialect.parse([f"segment_delete={request.param}"])
    clip = server.state.databases["NEWS"].add_clip("Film", "Raw", frames=100)
    clip.segments[:] = [SimSegment(1, 0, 5, ["A"]), SimSegment(1, 10, 6, ["B"]), SimSegment(2, 20, 5, ["C"])]
    return Stage(server, tmp_path)


def film(stage: Stage) -> SimClip:
    return stage.sim.state.clip("Film")


def asset(**args: Any) -> dict[str, Any]:
    return {"name": "A task", "asset": {"title": "Film", **args}}


@table("planning/segments_of_one_number_refused", "args")
def test_what_may_take_the_wrong_one_is_refused(stage: Stage, args: dict[str, Any]) -> None:
    (target,) = stage.plan(asset(**args)).targets
    assert BOTH in str(target.error)
    assert "may take the wrong one" in str(target.error)


@table("planning/segments_of_one_number_lossy", "args", "left")
def test_with_lossy_all_of_the_number_go(stage: Stage, args: dict[str, Any], left: list[Any]) -> None:
    result = stage.apply(asset(lossy=True, **args))
    assert result.ok, [(target.message, target.target.error, target.differences) for target in result.targets]
    assert sorted([s.number, s.start, *s.titles] for s in film(stage).segments) == left
    assert stage.plan(asset(**args)).requests == 0


def test_without_numbers_lossy_is_not_enough(stage: Stage) -> None:
    (target,) = stage.plan(asset(lossy=True, segments=[{"start": 0, "duration": 5, "title": "A"}])).targets
    assert "name number 1 as absent with `lossy: true`" in str(target.error)


def test_others_are_told_and_stay(stage: Stage) -> None:
    result = stage.apply(asset(segments=[{"number": 3, "start": 50, "duration": 5}]))
    assert result.ok
    assert any(BOTH in warning for warning in result.plan.warnings)
    assert len(film(stage).segments) == 4


def test_a_second_one_of_the_number_is_not_as_desired(stage: Stage) -> None:
    stage.dialect = {"segment_update": "overwrite"}
    stage.sim.dialect = SimDialect.parse(["segment_update=duplicate"])
    result = stage.apply(asset(segments=[{"number": 2, "start": 20, "duration": 8}]))
    assert not result.ok
    (difference,) = result.targets[0].differences
    assert difference.live == "twice: start 20 and start 20"
