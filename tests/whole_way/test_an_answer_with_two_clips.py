"""Whole way: a server that answers a title with every clip that has it. Never is one of them taken for the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msauto import MediaServer
from msauto.errors import UnreadableError
from msauto.simulator import Simulator, empty_state
from tests.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    state = empty_state()
    news = state.databases["NEWS"]
    news.add_clip("Film", "Raw", create_time="2026-11-01T10:00:00")
    news.add_clip("Other", "Raw")
    with Simulator(state=state, dialect=["title_twins=both"]) as sim:
        yield Stage(sim, tmp_path)


def twin(stage: Stage) -> Any:
    return stage.sim.state.databases["NEWS"].add_clip("Film", "Old", create_time="2025-01-01T10:00:00")


@pytest.mark.parametrize(
    "wanted", [{"fields": {"comment": "x"}}, {"state": "absent"}, {"state": "absent", "folder": "Raw"}]
)
def test_both_are_named_and_nothing_is_sent(stage: Stage, wanted: dict[str, Any]) -> None:
    twin(stage)
    plan = stage.plan({"asset": {"title": "Film", **wanted}}, {"asset": {"title": "Other", "fields": {"comment": "x"}}})
    (error,) = [target.error for target in plan.targets if target.error]
    assert "2 clips" in error
    assert "folder Raw, link_id 1, create_time 2026-11-01T10:00:00" in error
    assert "folder Old, link_id 3, create_time 2025-01-01T10:00:00" in error
    assert "`id:`" in error


def test_a_key_field_leads_to_one_of_them(stage: Stage) -> None:
    clip = twin(stage)
    result = stage.apply({"asset": {"id": f"link_id:{clip.home.link_id}", "fields": {"comment": "x"}}})
    assert result.ok
    assert clip.home.fields == {"comment": "x"}


def test_the_client_raises_as_well(stage: Stage) -> None:
    twin(stage)
    with MediaServer(stage.sim.url) as server, pytest.raises(UnreadableError, match="2 clips"):
        server.asset("NEWS", "Film")


def test_a_twin_that_appears_while_a_run_writes_leaves_it_unverified(stage: Stage) -> None:
    stage.sim.faults.add("after:rename:Other:Film@POST")
    result = stage.apply({"asset": {"title": "Film", "fields": {"comment": "x"}}})
    (target,) = result.targets
    assert target.outcome == "unverified"
    assert "2 clips" in target.message
