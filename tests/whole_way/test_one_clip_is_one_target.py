"""Whole way: links under own and other titles, two clips of one title, renamed clips with links of their old title."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from msauto.model import clip_entries
from msauto.planning import deletion, survey
from msauto.plugins.simulator.embedded import SimClip, SimDialect, Simulator, sample_state
from msauto.plugins.simulator.embedded.state import SimMarker
from tests.stage import BOLD, Stage, errors
from tests.tables import table

TONIGHT = "Playout/Tonight/Promo 1 tonight"


@pytest.fixture(params=["home", "own"])
def link_folder(request: pytest.FixtureRequest) -> str:
    """Which folder the answer to a link reports."""
    return str(request.param)


@pytest.fixture
def stage(link_folder: str, tmp_path: Path) -> Iterator[Stage]:
    """A server whose links report the clip's folder, and one whose links report their own."""
    state = sample_state()
    news = state.databases["NEWS"]
    news.add_entry(news.clip("EP001"), "Playout/Tonight", "EP001")
    with Simulator(state=state, dialect=[f"link_folder={link_folder}", "link_delete=clip"]) as sim:
        yield Stage(sim, tmp_path)


def asset(title: str, **desired: Any) -> dict[str, Any]:
    return {"name": title, "asset": {"title": title, **desired}}


def selected(select: dict[str, Any], **desired: Any) -> dict[str, Any]:
    return {"name": "Selected", "asset": {"select": select, **desired}}


# Deleting ------------------------------------------------------------------------------------------------------


def test_the_title_of_a_link_does_not_delete_its_clip_with_consent_either(
    stage: Stage, link_folder: str
) -> None:
    (error,) = errors(stage.plan(asset("Promo 1 tonight", state="absent", with_links=True)))
    own = "'Promo 1 tonight' may be a link of Promos/Promo 1: the server does not show which of them is the clip"
    assert (own if link_folder == "own" else f"the entry {TONIGHT} is a link") in error


def test_where_each_entry_reports_its_own_folder_a_task_must_name_that_of_the_clip(
    stage: Stage, link_folder: str
) -> None:
    gone = asset("Promo 1", state="absent", with_links=True)
    found = errors(stage.plan(gone))
    assert len(found) == (link_folder == "own")
    assert all("write the `folder:` in which the clip itself lives" in error for error in found)
    (target,) = stage.plan(
        asset("Promo 1", folder="Promos", state="absent", with_links=True)
    ).targets
    assert (target.error, target.places) == (None, (TONIGHT,))


def _markers(count: int) -> list[SimMarker]:
    return [SimMarker(number, number, {"track": "General"}) for number in range(1, count + 1)]


# Two clips of one title ----------------------------------------------------------------------------------------


@pytest.fixture
def twins(stage: Stage) -> Stage:
    """EP001 lives in Raw, and another clip of that title in Films; a title leads to the one in Raw."""
    stage.sim.state.databases["NEWS"].add_clip(
        "EP001", "Films", frames=9000, create_time="2026-10-01T12:00:00"
    )
    return stage


@pytest.mark.parametrize(
    "select",
    [
        {"folder": "Films"},
        {"folder": "Films", "where": "asset.frames == 9000"},
        {"folder": "Films", "where": "asset.markers | length == 0 and asset.frames == 9000"},
    ],
)
@table("planning/selected_titles", "module")
def test_a_selected_clip_is_never_another_of_its_title(
    twins: Stage, select: dict[str, Any], module: dict[str, Any]
) -> None:
    ((name, args),) = module.items()
    plan = twins.plan(
        {"name": "Films", name: {"select": select, **args}, "when": 'asset.title == "EP001"'}
    )
    (error,) = errors(plan)
    assert "two clips have the title 'EP001': the listing shows the one in Films/EP001" in error
    assert "`folder:`" in error
    assert "`id:`" in error
    assert plan.requests == 0


def test_a_key_id_and_a_title_of_two_clips_are_two_targets(twins: Stage) -> None:
    film = twins.sim.state.databases["NEWS"].folder("Films")
    assert film is not None
    entry = next(each for each in film.entries.values() if each.title == "EP001")
    by_id = {
        "name": "By id",
        "asset": {"id": f"link_id:{entry.link_id}", "fields": {"comment": "film"}},
    }
    result = twins.apply(by_id, asset("EP001", fields={"comment": "episode"}))
    assert result.ok
    assert entry.fields["comment"] == "film"
    assert twins.sim.state.databases["NEWS"].clip("EP001").home.fields["comment"] == "episode"


# One clip by several names -------------------------------------------------------------------------------------

MARKER = {"at": 0, "track": "General", "title": "Checked"}


def test_clips_of_equal_values_are_united_with_their_own_links_alone(stage: Stage) -> None:
    """Three entries have one file and one identity, and the markers of one of them differ: it is another clip."""
    copy = _copy_of_promo(stage)
    copy.markers.extend(_markers(1))
    tasks = [
        asset(title, markers=[MARKER | {"at": 7}])
        for title in ("Promo 1", "Promo 1 tonight", "Promo copy")
    ]
    assert stage.apply(*tasks).ok
    assert len(stage.sent()) == 2
    assert stage.plan(*tasks).targets == ()


@pytest.mark.parametrize(("copies", "targets"), [(0, 1), (1, 2)])
@pytest.mark.parametrize("link_folder", ["home"])
def test_where_no_file_is_reported_the_folders_show_what_is_a_link(
    stage: Stage, link_folder: str, copies: int, targets: int
) -> None:
    """The link is in no folder of the clip; with an equal clip beside that, it may be of either of the two."""
    del link_folder
    for _ in range(copies):
        _copy_of_promo(stage)
    for clip in stage.sim.state.databases["NEWS"].clips():
        clip.file, clip.archive = "", ""
    link = asset("Promo 1 tonight", fields={"comment": "Ready"})
    plan = stage.plan(link, asset("Promo 1", fields={"user_1": "Promo"}))
    assert len(plan.targets) == targets


def _copy_of_promo(stage: Stage) -> SimClip:
    """Add a clip that has all values of another, and return it."""
    news = stage.sim.state.databases["NEWS"]
    promo = news.clip("Promo 1")
    names = ("frames", "create_time", "orig_name", "file", "proxy", "archive")
    values = {name: getattr(promo, name) for name in names}
    return news.add_clip("Promo copy", "Promos", **values)


# What servers do not report ------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["on disk", "in the archive", "not reported"])
def test_links_of_one_file_count_although_all_other_values_are_the_same(
    stage: Stage, file: str
) -> None:
    """No other clip shows that files distinguish clips, and the title of the links leads to the first of them."""
    news, own = stage.sim.state.databases["NEWS"], "Promo 1"
    for clip in list(news.clips()):
        clip.omitted, clip.create_time, clip.frames = ("orig_name",), "2026-11-14T10:00:00", 250
        clip.online = file == "on disk"
        clip.archive = f"tape/{clip.title}.mxf" if file == "in the archive" else ""
        if clip.title not in {own, "EP001"}:
            news.remove_clip(clip)
    news.add_entry(news.clip(own), "Playout/Late", "Promo on air")
    news.add_entry(news.clip(own), "Films", "Promo on air")
    (error,) = errors(stage.plan(asset(own, state="absent")))
    assert "has several entries" in error
    for place in ("Playout/Late", "Films"):
        limits = structs.replace(BOLD, protected=(place,))
        deleted = stage.plan(
            asset(own, folder="Promos", state="absent", with_links=True), limits=limits
        )
        assert [refusal.code for refusal in deleted.refusals] == ["protected"]


def test_a_link_among_many_clips_of_equal_values_counts_before_a_deletion(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spots of one length, ingested together: more equal entries than links of one clip hold links, too."""
    for module in (clip_entries, deletion, survey):
        assert module.MOST_LINKS == 50
        monkeypatch.setattr(module, "MOST_LINKS", 8)
    news = stage.sim.state.databases["NEWS"]
    for number in range(12):
        spot = news.add_clip(
            f"Spot {number:02}", "Spots", create_time="2026-11-14T10:00:00", frames=750
        )
        spot.omitted = ("orig_name",)
    news.add_entry(news.clip("Spot 07"), "Playout/Late", "Spot on air")
    (error,) = errors(stage.plan(asset("Spot 07", state="absent")))
    assert "has several entries" in error
    assert "Playout/Late/Spot on air" in error
    others = [asset(f"Spot {number:02}", state="absent") for number in range(12) if number != 7]
    assert stage.apply(
        *others
    ).ok  # none of them is taken for a link because another one is deleted meanwhile
    assert [clip.title for clip in news.clips() if clip.create_time == "2026-11-14T10:00:00"] == [
        "Spot 07"
    ]


@pytest.mark.parametrize(
    "missing", [("create_time", "orig_name"), ("frames", "orig_name"), ("create_time", "frames")]
)
def test_a_link_counts_before_a_deletion_where_too_little_is_reported(
    stage: Stage, missing: tuple[str, ...]
) -> None:
    for clip in stage.sim.state.databases["NEWS"].clips():
        clip.omitted = missing
    (error,) = errors(stage.plan(asset("Promo 1", state="absent")))
    assert "has several entries" in error
    assert TONIGHT in error
    assert "EP00" not in error
    stage.apply(asset("EP002", state="absent"))
    assert "EP002" not in {clip.title for clip in stage.sim.state.databases["NEWS"].clips()}


def test_a_clip_with_many_links_of_other_titles_is_not_deleted(stage: Stage) -> None:
    news = stage.sim.state.databases["NEWS"]
    for number in range(60):
        news.add_entry(news.clip("Promo 1"), "Playout/Late", f"Promo on air {number:02}")
    (error,) = errors(stage.plan(asset("Promo 1", state="absent")))
    assert "Promo on air 00" in error
    assert "more), and a clip is not deleted while links show it" in error


@pytest.mark.parametrize(
    "missing", [("create_time",), ("create_time", "orig_name"), ("create_time", "frames")]
)
def test_a_link_id_that_all_entries_have_tells_nothing(
    stage: Stage, missing: tuple[str, ...]
) -> None:
    news = stage.sim.state.databases["NEWS"]
    film = news.add_clip("EP001", "Films", frames=9000, orig_name="film.mxf", omitted=missing)
    news.clip("EP001").omitted = missing
    film.home.link_id = news.clip("EP001").home.link_id
    (error,) = errors(
        stage.plan(
            selected({"folder": "Films", "where": 'asset.title == "EP001"'}, fields={"type": "x"})
        )
    )
    assert "two clips have the title 'EP001'" in error


@pytest.mark.parametrize("has_link_ids", [True, False])
def test_a_clip_with_the_title_of_a_link_is_not_deleted_for_it(
    stage: Stage, has_link_ids: bool
) -> None:
    """Sixty archived spots of one length, ingested together: equal values identify nothing."""
    news = stage.sim.state.databases["NEWS"]
    for number in range(60):
        spot = news.add_clip(
            f"Spot {number:02}", "Spots", create_time="2026-11-14T10:00:00", frames=750
        )
        spot.online, spot.archive, spot.omitted = False, f"tape/{number}.mxf", ("orig_name",)
    news.add_entry(news.clip("Spot 07"), "Playout/Late", "Spot on air")
    news.change_entry(news.clip("Spot 08").home, title="Spot on air")
    for entry in news.root.walk():
        entry.link_id = entry.link_id if has_link_ids else 7
    by_title = Stage(stage.sim, stage.folder, {"link_delete": "by_title"})
    gone = {"folder": "Playout/Late", "title": "Spot on air", "state": "absent"}
    (error,) = errors(by_title.plan(asset("Spot 07", links=[gone])))
    assert "the link Playout/Late/Spot on air cannot be removed" in error


def test_a_clip_is_not_removed_as_a_link_of_its_link(tmp_path: Path) -> None:
    """All entries have one link_id, and each reports its own folder: which of them is the clip is unknown."""
    with Simulator(dialect=["link_folder=own", "link_delete=clip"]) as sim:
        for entry in sim.state.databases["NEWS"].clip("Promo 1").entries:
            entry.link_id = 7
        stage = Stage(sim, tmp_path, {"link_delete": "by_title"})
        (error,) = errors(stage.plan(asset("Promo 1 tonight", links=[], exactly=["links"])))
        assert "which of the two is the clip" in error


def test_a_link_is_removed_where_the_folders_show_it_or_a_task_or_the_run_that_made_it_does(
    stage: Stage, link_folder: str
) -> None:
    stage.sim.dialect = SimDialect.parse([f"link_folder={link_folder}", "link_delete=by_title"])
    by_title, news = (
        Stage(stage.sim, stage.folder, {"link_delete": "by_title"}),
        stage.sim.state.databases["NEWS"],
    )
    made = {"folder": "Playout/Tonight", "title": "EP002 tonight"}
    gone = {**made, "state": "absent"}
    assert by_title.apply(asset("EP002", links=[made])).ok
    assert by_title.undo("last").ok
    assert len(news.clip("EP002").entries) == 1
    assert by_title.apply(asset("EP002", links=[made])).ok
    found = errors(by_title.plan(asset("EP002", links=[gone])))
    assert len(found) == (link_folder == "own")
    assert all("which of the two is the clip, and which is the link" in error for error in found)
    assert by_title.apply(
        asset("EP002", folder="/".join(news.clip("EP002").home.folder), links=[gone])
    ).ok
    assert len(news.clip("EP002").entries) == 1
