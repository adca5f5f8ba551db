"""Whole way: two clips whose titles differ in Unicode normalization alone, on servers that find them exactly or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from msauto.simulator import SimClip, Simulator, empty_state
from tests.stage import Stage

COMPOSED, DECOMPOSED = normalize("NFC", "Été"), normalize("NFD", "Été")


@pytest.fixture(params=["exact", "normalized"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    with Simulator(state=empty_state(), dialect=[f"title_case={request.param}"]) as sim:
        yield Stage(sim, tmp_path)


def add(stage: Stage, title: str, frames: int) -> SimClip:
    return stage.sim.state.databases["NEWS"].add_clip(title, "Raw", frames=frames)


def asset(title: str, **desired: Any) -> dict[str, Any]:
    return {"asset": {"title": title, **desired}}


def test_each_name_means_its_own_clip(stage: Stage) -> None:
    one, other = add(stage, COMPOSED, 100), add(stage, DECOMPOSED, 200)
    tasks = asset(COMPOSED, fields={"comment": "x"}), asset(DECOMPOSED, fields={"comment": "y"})
    result = stage.apply(*tasks)
    assert one.home.fields == {"comment": "x"}
    if stage.sim.dialect.title_case == "exact":
        assert (result.ok, other.home.fields) == (True, {"comment": "y"})
        assert stage.plan(*tasks).targets == ()
    else:  # the server answers both names with the first clip: the other one cannot be addressed
        assert other.home.fields == {}
        (error,) = [target.error for target in result.plan.targets if target.error]
        assert ascii(DECOMPOSED) in error


def test_one_clip_is_one_target(stage: Stage) -> None:
    clip = add(stage, DECOMPOSED, 100)
    result = stage.apply(asset(COMPOSED, fields={"comment": "x"}), asset(DECOMPOSED, fields={"user_1": "y"}))
    assert (result.ok, len(result.targets)) == (True, 1)
    assert clip.home.fields == {"comment": "x", "user_1": "y"}


def test_a_selection_of_both_is_two_targets(stage: Stage) -> None:
    clips = add(stage, COMPOSED, 100), add(stage, DECOMPOSED, 200)
    result = stage.apply({"asset": {"select": {"folder": "Raw"}, "fields": {"comment": "x"}}})
    written = [clip.home.fields for clip in clips]
    exact = stage.sim.dialect.title_case == "exact"
    assert written == [{"comment": "x"}, {"comment": "x"} if exact else {}]
    assert len(result.targets) == 2 if exact else 1


def test_the_other_form_is_not_deleted(stage: Stage) -> None:
    add(stage, COMPOSED, 100)
    add(stage, DECOMPOSED, 200)
    absent = asset(DECOMPOSED, state="absent")
    result = stage.apply(absent)
    left = [clip.title for clip in stage.sim.state.databases["NEWS"].clips()]
    if stage.sim.dialect.title_case == "exact":
        assert (result.ok, left) == (True, [COMPOSED])
        again = stage.plan(absent)
        assert (again.targets, again.warnings) == ((), ())
    else:
        assert left == [COMPOSED, DECOMPOSED]
