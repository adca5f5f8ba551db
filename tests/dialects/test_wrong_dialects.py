"""A dialect that does not fit the server, as docs/reference/dialect.md describes it: reported, refused, or unseen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msauto.aspects import ASPECTS, snapshot_of
from msauto.model.live import Asset, Marker
from msauto.model.plan import Limits
from msauto.model.ports import LiveTarget
from msauto.model.snapshot import compare, predict
from msauto.plugins.simulator.embedded import SimDialect, Simulator
from msauto.report.text import render_result
from tests.dialects.story import FILM, LINK, STORY, TICKER, put_story
from tests.stage import Stage

pytestmark = pytest.mark.scale

FILM_ONLY = STORY[0]
RSS_ONLY = {"name": "The ticker", "rss": TICKER}


def make_stage(sim: Simulator, folder: Path, server: dict[str, str], ours: dict[str, str]) -> Stage:
    put_story(sim, SimDialect().with_values(server))
    return Stage(sim, folder, ours)


def link(folder: str, title: str) -> dict[str, Any]:
    return {"asset": {"title": "Loose", "links": [{"folder": folder, "title": title}]}}


@pytest.mark.parametrize(
    ("server", "ours", "task"),
    [
        ({"segment_update": "refuse"}, {"segment_update": "overwrite"}, FILM_ONLY),
        ({"segment_update": "duplicate"}, {"segment_update": "overwrite"}, FILM_ONLY),
        ({"segment_update": "ignore"}, {"segment_update": "overwrite"}, FILM_ONLY),
        ({"folder_missing": "refuse"}, {"folder_missing": "create"}, link("No/Such", "x")),
        ({"rss_update": "refuse", "rss_guid": "file"}, {"rss_guid": "file"}, RSS_ONLY),
        ({"rss_update": "duplicate", "rss_guid": "file"}, {"rss_guid": "file"}, RSS_ONLY),
        ({"rss_body": "item"}, {}, RSS_ONLY),
        ({"rss_body": "text"}, {}, RSS_ONLY),
    ],
)  # fmt: skip
def test_it_is_told(
    server: dict[str, str],
    ours: dict[str, str],
    task: dict[str, Any],
    sim: Simulator,
    tmp_path: Path,
) -> None:
    result = make_stage(sim, tmp_path, server, ours).apply(task)
    assert result.plan.errors == 0
    assert not result.ok
    assert all(target.message for target in result.targets if target.outcome != "changed")


@pytest.mark.parametrize(
    ("server", "ours"),
    [
        ({"not_found": "404_empty"}, {"not_found": "text"}),
        ({"not_found": "200_text"}, {"not_found": "status"}),
        ({"not_found": "500_text"}, {"not_found": "status"}),
    ],
)
def test_not_there_is_never_taken_for_absent(
    server: dict[str, str], ours: dict[str, str], sim: Simulator, tmp_path: Path
) -> None:
    stage = make_stage(sim, tmp_path, server, ours)
    plan = stage.plan({"asset": {"title": "Nobody", "state": "absent"}})
    assert (plan.errors, plan.requests) == (1, 0)
    assert not stage.sent()


def test_the_colon_of_a_title_is_not_found(sim: Simulator, tmp_path: Path) -> None:
    stage = make_stage(sim, tmp_path, {"title_address": "ns"}, {})
    sim.state.add_clip("One: two", "Raw")
    assert stage.plan({"asset": {"title": "One: two", "fields": {"comment": "x"}}}).errors == 1


def test_unsent_fields_that_a_server_clears_are_told_one_by_one(
    sim: Simulator, tmp_path: Path
) -> None:
    stage = make_stage(sim, tmp_path, {"marker_update": "clear"}, {"marker_update": "changed"})
    marker = sim.state.clip(FILM).marker(3)
    assert marker is not None
    marker.fields |= {"user": "anna", "rating": "0"}
    result = stage.apply({"asset": {"title": FILM, "markers": [{"uid": 3, "title": "New"}]}})
    (target,) = result.targets
    assert target.outcome == "failed"
    (told,) = target.differences
    assert isinstance(told.desired, dict)
    assert isinstance(told.live, dict)
    unlike = {name: value for name, value in told.desired.items() if told.live.get(name) != value}
    assert unlike == {"comment": "kept too", "user": "anna"}
    text = " ".join("".join(render_result(result)).split())
    assert 'marker uid 3 comment: desired "kept too", live ""' in text
    assert 'marker uid 3 user: desired "anna", live ""' in text


@pytest.mark.parametrize("ours", ["changed", "full"])
def test_a_server_that_stamps_what_it_changes_is_no_wrong_dialect(
    sim: Simulator, tmp_path: Path, ours: str
) -> None:
    stage = make_stage(sim, tmp_path, {"marker_update": "keep"}, {"marker_update": ours})
    plan = stage.plan({"asset": {"title": FILM, "markers": [{"uid": 3, "title": "New"}]}})
    target = plan.targets[0]

    def is_predicted(marker: Marker) -> bool:
        found = compare(
            predict(target.effects, 1),
            (),
            snapshot_of(LiveTarget(Asset(FILM, markers=(marker,)))),
            ASPECTS,
        )
        return found.verdicts == {("marker", "3"): "predicted"}

    stamped = Marker(
        3, 150, {"track": "General", "title": "New", "comment": "stamped", "user": "api"}
    )
    assert is_predicted(stamped)
    cleared = Marker(3, 150, {"track": "General", "title": "New"})
    assert not is_predicted(cleared)


# Unseen by the proof -------------------------------------------------------------------------------------------


def test_positions_are_off_by_the_in_point_unseen(sim: Simulator, tmp_path: Path) -> None:
    stage = make_stage(sim, tmp_path, {"position_origin": "in"}, {})
    assert stage.apply(
        {"asset": {"title": FILM, "markers": [{"at": 500, "track": "Icon", "title": "x"}]}}
    ).ok
    assert 600 in {marker.pos for marker in sim.state.clip(FILM).markers}


def test_a_list_that_is_joined_by_another_sign_is_one_value_unseen(
    sim: Simulator, tmp_path: Path
) -> None:
    stage = make_stage(sim, tmp_path, {"list_separator": ";"}, {})
    assert stage.apply({"asset": {"title": FILM, "xmp": {"dc:subject": ["a", "b"]}}}).ok
    assert sim.state.clip(FILM).xmp["dc:subject"] == ["a,b"]


def test_a_link_that_is_the_clip_takes_it_away_and_counts_as_a_deletion(
    sim: Simulator, tmp_path: Path
) -> None:
    stage = make_stage(sim, tmp_path, {"link_delete": "clip"}, {"link_delete": "by_title"})
    news = sim.state.databases["NEWS"]
    news.add_entry(news.clip(FILM), "Playout/Tonight", LINK)
    task = {
        "asset": {
            "title": FILM,
            "links": [{"folder": "Playout/Tonight", "title": LINK, "state": "absent"}],
        }
    }
    assert [refusal.code for refusal in stage.plan(task, limits=Limits()).refusals] == [
        "delete_assets"
    ]
    result = stage.apply(task)
    assert news.find(FILM) is None
    assert not result.ok, "the clip is gone, and the proof says so"
