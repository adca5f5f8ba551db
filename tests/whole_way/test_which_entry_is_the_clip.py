"""Which entry is the clip, and which its link: what deletes goes by what the server shows, or by what a task names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msauto.simulator import Fault, SimDialect, SimMarker, Simulator, empty_state
from tests.stage import Stage, changes, errors


@pytest.fixture
def sim() -> Iterator[Simulator]:
    state = empty_state()
    for folder in ("Raw", "Playout", "Films"):
        state.databases["NEWS"].make_folder(folder)
    with Simulator(state=state) as simulator:
        yield simulator


@pytest.fixture
def stage(sim: Simulator, tmp_path: Path) -> Stage:
    return Stage(sim, tmp_path, {"link_delete": "by_title"})


def task(**asset: Any) -> dict[str, Any]:
    return {"name": "A task", "asset": asset}


def news(stage: Stage) -> Any:
    return stage.sim.state.databases["NEWS"]


def titles(stage: Stage) -> set[str]:
    return {entry.title for entry in news(stage).root.walk()}


def own_folders(stage: Stage) -> None:
    stage.sim.dialect = SimDialect().with_values({"link_folder": "own"})


def test_a_clip_is_not_removed_as_a_link_of_its_link(stage: Stage) -> None:
    clip = news(stage).add_clip("Film", "Raw")
    news(stage).add_entry(clip, "Playout", "Film tonight")
    absent = {"folder": "Raw", "title": "Film", "state": "absent"}
    plan = stage.plan(task(title="Film tonight", folder="Raw", links=[absent]))
    assert "does not show which of the two is the clip" in errors(plan)[0]


def test_exactly_removes_nothing_that_may_be_the_clip(stage: Stage) -> None:
    clip = news(stage).add_clip("Film", "Raw")
    news(stage).add_entry(clip, "Playout", "Film tonight")
    own_folders(stage)
    plan = stage.plan(task(title="Film tonight", folder="Playout", links=[], exactly=["links"]))
    assert "does not show which of the two is the clip" in errors(plan)[0]


def test_the_former_title_of_a_clip_is_no_link_to_remove(stage: Stage) -> None:
    news(stage).add_clip("Film", "Raw")
    absent = {"folder": "Raw", "title": "Film", "state": "absent"}
    plan = stage.plan(task(title="Feature", was=["Film"], folder="Raw", links=[absent]))
    assert errors(plan)
    assert "delete link Raw/Film" not in changes(plan)


@pytest.mark.parametrize(("own", "folder"), [(False, "Raw"), (True, "Raw"), (True, "Playout")])
def test_a_link_of_the_same_file_counts_whatever_markers_it_shows(stage: Stage, own: bool, folder: str) -> None:
    """An event logger makes a marker between the two reads."""
    clip = news(stage).add_clip("Film", "Raw")
    news(stage).add_entry(clip, folder, "Film tonight")
    if own:
        own_folders(stage)

    def logged(_: Any) -> None:
        clip.markers.append(SimMarker(clip.new_uid(), len(clip.markers), {"title": "Goal"}))

    stage.sim.faults.add(Fault("GET", "before", None, 0, logged))
    stage.apply(task(title="Film", state="absent"))
    assert titles(stage) == {"Film", "Film tonight"}


def test_a_task_for_another_clip_of_the_title_of_a_link_stops_no_deletion(stage: Stage) -> None:
    clip = news(stage).add_clip("Film", "Raw")
    news(stage).add_entry(clip, "Playout", "Promo")
    news(stage).add_clip("Promo", "Films", frames=99, create_time="2026-12-01T10:00:00")
    plan = stage.plan(
        task(title="Film", folder="Raw", state="absent", with_links=True),
        task(title="Promo", fields={"comment": "x"}),
    )
    assert errors(plan) == []


def test_a_link_without_a_title_cannot_be_removed(stage: Stage) -> None:
    clip = news(stage).add_clip("Film", "Raw")
    news(stage).add_entry(clip, "", "")
    plan = stage.plan(task(title="Film", links=[], exactly=["links"]))
    assert "has no title, so no request can remove it" in errors(plan)[0]
