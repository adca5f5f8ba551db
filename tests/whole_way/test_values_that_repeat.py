"""A template that reads what it sets: a plan warns where the next run would change the value again, and only there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msauto.simulator import SimMarker, SimSegment, Simulator, empty_state
from tests.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    state = empty_state()
    clip = state.databases["NEWS"].add_clip("Film", "Raw", frames=500)
    clip.home.fields.update(comment="raw", user_0="one", user_1="two")
    clip.xmp["dc:subject"] = ["news"]
    clip.markers.append(SimMarker(1, 10, {"track": "General", "title": "Goal"}))
    clip.segments.append(SimSegment(1, 0, 100, ["Part"]))
    with Simulator(state=state) as sim:
        yield Stage(sim, tmp_path)


def film(**args: Any) -> dict[str, Any]:
    return {"name": "Write it", "asset": {"title": "Film", **args}}


@pytest.mark.parametrize(
    ("task", "what"),
    [
        (film(fields={"comment": "{{ asset.comment }}x"}), "the field comment"),
        (film(fields={"icon_pos": "{{ asset.icon_pos | int(0) + 1 }}"}), "the field icon_pos"),
        (film(xmp={"dc:subject": "{{ asset.xmp['dc:subject'] + ['x'] }}"}), "the XMP field dc:subject"),
        (film(markers=[{"uid": 1, "at": "{{ asset.markers[0].frame + 5 }}"}]), "a marker"),
        (film(segments=[{"number": 1, "start": 0, "duration": "{{ asset.segments[0].duration + 1 }}"}]), "a segment"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_grows_on_every_run_is_a_warning(stage: Stage, task: dict[str, Any], what: str) -> None:
    plan = stage.plan(task)
    (warning,) = plan.warnings
    assert warning.startswith(f"studio: Film: {what} (")
    assert "playbook.yml:" in warning
    assert warning.endswith("reads what it sets: every run changes it again")
    assert stage.apply(task).ok
    assert stage.plan(task).requests > 0


def test_values_that_swap_are_warnings(stage: Stage) -> None:
    plan = stage.plan(film(fields={"user_0": "{{ asset.user_1 }}", "user_1": "{{ asset.user_0 }}"}))
    assert [warning.partition(" (")[0] for warning in plan.warnings] == [
        "studio: Film: the field user_0",
        "studio: Film: the field user_1",
    ]


@pytest.mark.parametrize(
    "task",
    [
        film(fields={"comment": "{{ asset.comment | upper }}"}),
        film(fields={"comment": "{{ asset.comment | default('x') }}", "user_0": "{{ asset.comment }}"}),
        {**film(fields={"comment": "Ready"}), "when": "asset.comment == 'raw'"},
        film(fields={"user_2": "{{ asset.comment }}x"}),
        film(xmp={"dc:subject": "{{ (asset.xmp['dc:subject'] + ['x']) | unique }}"}),
        film(markers=[{"at": "{{ asset.markers[0].frame }}", "title": "Goal!"}]),
        film(segments=[{"number": 2, "start": "{{ asset.segments[0].duration }}", "duration": 5}]),
    ],
)
def test_what_settles_is_none(stage: Stage, task: dict[str, Any]) -> None:
    assert stage.plan(task).warnings == ()
    assert stage.apply(task).ok
    assert stage.plan(task).requests == 0
