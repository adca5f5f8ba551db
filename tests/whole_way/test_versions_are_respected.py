"""What the set product version lacks is refused when planning, naming both versions; its own version is planned."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from msauto.model.fields import LINK_FIELDS
from msauto.model.plan import Plan
from msauto.model.requests import Feature, show_version
from msauto.simulator import SimClip, SimMarker, Simulator, empty_state
from tests.stage import Stage

ROOT = Path(__file__).resolve().parents[2]
TITLE = "Film"
COLON = "Part 1: the film"
Task = Mapping[str, Any]

NEEDS: dict[Feature, Task] = {
    Feature.LOAD_XMP: {"xmp_batch": {"connector": "TRAFFIC", "src": "batch.xml"}},
    Feature.RESTORE: {"asset": {"title": "Archived", "restore": True}},
    Feature.THUMBNAIL: {"thumbnail": {"title": TITLE, "dest": "still.png"}},
    Feature.SET_USER_FIELDS: {"asset": {"title": TITLE, "xmp": {"dc:title": ["x"]}}},
    Feature.CREATE_MARKER: {"asset": {"title": TITLE, "markers": [{"at": 0, "track": "General", "title": "x"}]}},
    Feature.DELETE_MARKER: {"asset": {"title": TITLE, "markers": [{"uid": 3, "state": "absent"}]}},
    Feature.PARTNER_EXPORT_VERSION: {"command": {"name": "PARTNER_EXPORT_VERSION", "title": TITLE}},
    Feature.PARTNER_COPY_PROGRAM_FIELDS: {"command": {"name": "PARTNER_COPY_PROGRAM_FIELDS", "title": TITLE}},
    Feature.PARTNER_MOVE_TO_ASSET: {
        "command": {"name": "PARTNER_MOVE_TO_ASSET", "title": TITLE, "params": {"asset_id": "1001"}}
    },
    Feature.KEY_ID: {"asset": {"id": "handle:4711", "fields": {"comment": "x"}}},
    Feature.GET_USER_FIELDS: {
        "asset": {"title": TITLE, "fields": {"comment": "{{ asset.xmp['dc:title'] | join(' ') }}"}}
    },
}
"""A task that cannot be done without the feature; for folderlist alone there is another way."""


@pytest.fixture(autouse=True)
def clip(sim: Simulator, tmp_path: Path) -> SimClip:
    sim.state = empty_state()
    news = sim.state.databases["NEWS"]
    film = news.add_clip(TITLE, "Raw", frames=400)
    film.xmp["dc:title"] = ["Kept"]
    film.markers.append(SimMarker(3, 10, {"track": "General"}))
    sim.state.handles["4711"] = film
    archived = news.add_clip("Archived", "Raw")
    archived.archive, archived.online = "$(archive_path)/film.mxf", False
    (tmp_path / "batch.xml").write_text("<batch/>", encoding="utf-8")
    sim.clear_log()
    return film


def told(plan: Plan) -> str:
    return "\n".join(target.error or "" for target in plan.targets)


def before(version: tuple[int, ...]) -> str:
    major, minor, patch = version
    return show_version((major, minor, patch - 1) if patch else (major, minor - 1, 999))


def test_every_feature_has_a_task() -> None:
    assert NEEDS.keys() | {Feature.FOLDERLIST} == set(Feature)


def test_the_page_names_the_versions_of_the_table() -> None:
    page = (ROOT / "docs" / "reference" / "interface.md").read_text(encoding="utf-8")
    told = page.partition("## Versions")[2].partition("\n## ")[0]
    assert set(re.findall(r"\d+\.\d+\.\d+", told)) == {
        show_version(each.since) for each in (*Feature, *LINK_FIELDS) if each.since
    }


@pytest.mark.parametrize("feature", NEEDS, ids=lambda feature: feature.name)
def test_an_older_version_is_refused_when_planning(feature: Feature, sim: Simulator, tmp_path: Path) -> None:
    old, since = before(feature.since), show_version(feature.since)
    plan = Stage(sim, tmp_path, version=old).plan(NEEDS[feature])
    assert plan.errors == 1
    assert feature.title in told(plan)
    assert since in told(plan)
    assert old in told(plan)
    assert not sim.writes()
    assert not any(target.requests for target in plan.targets)


def test_one_refusal_leaves_nothing_of_the_target_and_all_of_the_others(sim: Simulator, tmp_path: Path) -> None:
    sim.state.databases["NEWS"].add_clip("Other", "Raw")
    stage = Stage(sim, tmp_path, version="2.9.86")
    plan = stage.plan(
        {"asset": {"title": TITLE, "fields": {"comment": "x", "user_0": "y"}}},
        {"asset": {"title": "Other", "fields": {"comment": "x"}}},
    )
    assert "SETFIELD on user_0 came with version 2.9.87" in told(plan)
    assert [(target.name, bool(target.error), len(target.requests)) for target in plan.targets] == [
        (TITLE, True, 0),
        ("Other", False, 1),
    ]


@pytest.mark.parametrize(("version", "asked"), [("2.3.89", False), ("2.3.90", True)])
def test_folders_alone_are_asked_for_where_the_version_knows_that(
    version: str, asked: bool, sim: Simulator, tmp_path: Path
) -> None:
    stage = Stage(sim, tmp_path, version=version)
    plan = stage.plan({"asset": {"title": "Nobody", "fields": {"comment": "x"}, "missing": "skip"}})
    assert (plan.errors, plan.requests) == (0, 0), told(plan)
    assert any("format=folderlist" in target for target in stage.reads()) is asked


def test_xmp_that_an_older_version_cannot_show_is_compared_with_what_was_written(
    sim: Simulator, clip: SimClip, tmp_path: Path
) -> None:
    stage, task = Stage(sim, tmp_path, version="2.9.68"), {"asset": {"title": TITLE, "xmp": {"dc:title": ["New"]}}}
    assert stage.apply(task).ok
    assert clip.xmp["dc:title"] == ["New"]
    assert stage.plan(task).requests == 0
    assert not any("GETUSERFIELDS" in target for target in stage.reads())


# A title with a colon ------------------------------------------------------------------------------------------


def colon_task(title: str = COLON) -> dict[str, Any]:
    return {"asset": {"title": title, "fields": {"comment": "x"}}}


@pytest.mark.parametrize(
    ("dialect", "version", "address"),
    [
        ({}, None, "/storage/NEWS@Part%201%3A%20the%20film"),
        ({}, "2.0.0", "/storage/NEWS@Part%201%3A%20the%20film"),
        ({"title_address": "ns"}, None, "/storage/NEWS@title:Part%201%3A%20the%20film"),
        ({"title_address": "ns"}, "2.9.69", "/storage/NEWS@title:Part%201%3A%20the%20film"),
    ],
)
def test_a_colon_takes_the_form_that_the_dialect_names(
    dialect: dict[str, str], version: str | None, address: str, sim: Simulator, tmp_path: Path
) -> None:
    found = sim.state.add_clip(COLON, "Raw")
    stage = Stage(sim, tmp_path, dialect, version)
    sim.dialect = sim.dialect.with_values({"title_address": dialect.get("title_address", "plain")})
    try:
        result = stage.apply(colon_task())
    finally:
        sim.dialect = sim.dialect.with_values({"title_address": "plain"})
    assert result.ok, told(result.plan)
    assert found.home.fields["comment"] == "x"
    assert {entry.target.partition("?")[0] for entry in sim.log} == {address}


def test_a_title_without_a_colon_needs_no_ns(sim: Simulator, tmp_path: Path) -> None:
    stage = Stage(sim, tmp_path, {"title_address": "ns"}, "2.0.0")
    assert stage.apply(colon_task(TITLE)).ok
    assert {entry.target.partition("?")[0] for entry in sim.log} == {"/storage/NEWS@Film"}


@pytest.mark.parametrize(
    "asset",
    [
        {"title": COLON, "fields": {"comment": "x"}},
        {"title": COLON, "was": [TITLE]},
        {"title": COLON, "state": "absent"},
        {"select": {"folder": "Raw", "where": f"asset.title == '{COLON}'"}, "fields": {"comment": "x"}},
        {"title": TITLE, "links": [{"folder": "Playout", "title": COLON, "state": "absent"}]},
    ],
    ids=["found", "renamed", "deleted", "selected", "link removed"],
)
def test_a_colon_that_needs_ns_is_refused_on_an_older_version(
    asset: dict[str, Any], sim: Simulator, clip: SimClip, tmp_path: Path
) -> None:
    news = sim.state.databases["NEWS"]
    news.make_folder("Playout")
    if "was" not in asset and "links" not in asset:
        news.add_clip(COLON, "Raw")
    if "links" in asset:
        news.add_entry(clip, "Playout", COLON)
    dialect = {"title_address": "ns", "link_delete": "by_title"}
    plan = Stage(sim, tmp_path, dialect, "2.9.68").plan({"asset": asset})
    assert plan.errors == 1
    for words in (COLON, "title_address", "2.9.69", "2.9.68"):
        assert words in told(plan)
    assert not sim.writes()
