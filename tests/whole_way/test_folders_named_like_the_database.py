"""Whole way: a folder that is named like its database is a folder, for guards, protection and selections."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from msauto.simulator import Simulator, empty_state
from tests.stage import BOLD, Stage, outcomes


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    state = empty_state()
    state.add_clip("Film", "NEWS/Raw", frames=500)
    state.add_clip("Other", "Raw", frames=400)
    with Simulator(state=state) as sim:
        yield Stage(sim, tmp_path)


def film(**desired: Any) -> dict[str, Any]:
    return {"name": "Film", "asset": {"title": "Film", **desired}}


def guarded(stage: Stage, folder: str) -> str | None:
    targets = stage.plan(film(folder=folder, fields={"comment": "x"})).targets
    return targets[0].error


def test_a_guard_holds_the_folder_apart_from_the_one_without_the_name(stage: Stage) -> None:
    assert guarded(stage, "NEWS/Raw") is None
    error = guarded(stage, "Raw")
    assert error is not None
    assert "must be in Raw, but it is in NEWS/Raw" in error


def test_the_guard_holds_where_a_link_stands_in_the_other_folder(stage: Stage) -> None:
    news = stage.sim.state.databases["NEWS"]
    news.add_entry(news.clip("Film"), "Raw", "Film")
    assert guarded(stage, "NEWS/Raw") is None
    assert "it is in NEWS/Raw" in str(guarded(stage, "Raw"))


def test_what_is_elsewhere_asks_nothing_more(stage: Stage) -> None:
    stage.sim.clear_log()
    stage.plan({"name": "Other", "asset": {"title": "Other", "folder": "Raw", "fields": {"comment": "x"}}})
    assert stage.reads() == ["/storage/NEWS@Other"]


@pytest.mark.parametrize("glob", ["Raw/*", "NEWS/Raw/*", "NEWS/*", "Raw", "NEWS/NEWS/Raw/*"])
def test_protection_holds_whichever_way_the_folder_is_read(stage: Stage, glob: str) -> None:
    limits = structs.replace(BOLD, protected=(glob,))
    (refusal,) = stage.plan(film(state="absent"), limits=limits).refusals
    assert (refusal.code, refusal.limit) == ("protected", glob)


def test_another_folder_is_not_protected(stage: Stage) -> None:
    limits = structs.replace(BOLD, protected=("Master/*",))
    assert stage.plan(film(state="absent"), limits=limits).refusals == ()


def test_a_selected_clip_is_at_home_there(stage: Stage) -> None:
    task = {"name": "All", "asset": {"select": {"folder": "NEWS/Raw", "expect": {"min": 1}}, "state": "absent"}}
    (target,) = stage.plan(task).targets
    assert (target.error, target.folder) == (None, "NEWS/Raw")


def test_a_clip_there_is_deleted_after_its_handler(stage: Stage) -> None:
    export = {"name": "Export", "command": {"name": "PARTNER_EXPORT_VERSION"}}
    play = {"tasks": [{**film(state="absent"), "notify": "Export"}], "handlers": [export]}
    result = stage.apply(play)
    assert outcomes(result) == ["studio Film: changed"], result.targets[0].message
    handler, deletion = stage.writes()
    assert (handler.partition("&")[0], deletion) == (
        "POST /storage/NEWS@Film?command=PARTNER_EXPORT_VERSION",
        "DELETE /storage/NEWS@Film",
    )
    assert stage.plan(play).targets == ()
