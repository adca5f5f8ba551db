"""Undo, case by case against the embedded server: what comes back, is left alone, is listed as gone for good."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from msauto.api.stages import undo_of
from msauto.errors import RefusedError
from msauto.ledger.ledger import Ledger
from msauto.model.plan import Limits, Plan
from msauto.model.result import RunDetails
from msauto.model.server import ServerSpec
from msauto.simulator import Fault, Item, ServerState, SimDialect, SimMarker, SimSegment, Simulator, empty_state
from tests.stage import Stage


@pytest.fixture(scope="module")
def server() -> Iterator[Simulator]:
    with Simulator(state=empty_state()) as simulator:
        yield simulator


@pytest.fixture
def stage(server: Simulator, tmp_path: Path) -> Stage:
    server.state = empty_state()
    server.dialect = SimDialect()
    server.faults.clear()
    news = server.state.databases["NEWS"]
    news.make_folder("Playout")
    clip = news.add_clip("Film", "Raw", frames=100)
    clip.home.fields["comment"] = "raw"
    clip.xmp["dc:title"] = ["x"]
    clip.segments[:] = [SimSegment(1, 0, 5, ["One"]), SimSegment(2, 10, 6, ["Two"], keywords="kept")]
    clip.markers[:] = [
        SimMarker(1, 3, {"track": "General", "title": "m", "comment": "said", "rating": "2"}),
        SimMarker(7, 5, {"track": "Cue Point", "title": "c"}),
    ]
    channel = server.state.add_channel("ticker")
    channel.items[:] = [Item("n-1.txt", b"First\nmore", "n-1", "First", "First\nmore")]
    return Stage(server, tmp_path)


def asset(title: str = "Film", **args: Any) -> dict[str, Any]:
    return {"name": "A task", "asset": {"title": title, **args}}


def ticker(*items: dict[str, Any], **args: Any) -> dict[str, Any]:
    return {"name": "A task", "rss": {"channel": "ticker", "items": list(items), **args}}


def plan_of_undo(stage: Stage, run: str = "last") -> Plan:
    plan: Plan = stage.undo(run, dry=True)
    return plan


def warned(stage: Stage, words: str) -> bool:
    return any(words in warning for warning in plan_of_undo(stage).warnings)


# What comes back ----------------------------------------------------------------------------------------------


def test_a_rename_is_taken_back_with_all_the_rest(stage: Stage) -> None:
    assert stage.apply(asset("New", was=["Film"], fields={"comment": "Ready"})).ok
    assert stage.undo().ok
    assert stage.sim.state.clip("Film").home.fields["comment"] == "raw"
    assert plan_of_undo(stage).errors == 0


def test_a_title_that_another_clip_has_by_now_is_left_alone_and_all_else_comes_back(stage: Stage) -> None:
    stage.sim.state.databases["NEWS"].add_clip("Other", "Raw", frames=100)
    first = asset("New", was=["Film"], fields={"comment": "Ready"})
    assert stage.apply(first, asset("Other", fields={"comment": "Ready"})).ok
    taken = stage.sim.state.databases["NEWS"].add_clip("Film", "Raw", frames=7)
    plan = plan_of_undo(stage)
    assert plan.errors == 0
    assert "studio: New: the title is not changed, because another clip now has 'Film'" in plan.warnings
    assert stage.undo().ok
    assert stage.sim.state.clip("New").home.fields["comment"] == "raw"
    assert stage.sim.state.clip("Other").home.fields.get("comment", "") == ""
    assert "comment" not in taken.home.fields


def test_a_stranger_under_the_title_that_a_run_gave_is_left_alone(stage: Stage) -> None:
    assert stage.apply(asset("New", was=["Film"], fields={"comment": "Ready"})).ok
    news = stage.sim.state.databases["NEWS"]
    stage.sim.state.clip("New").home.title = "Film"
    stranger = news.add_clip("New", "Raw", frames=7)
    stranger.home.fields["comment"] = "Ready"
    assert warned(stage, "another clip now has this title")
    assert stage.undo().ok
    assert stranger.home.fields["comment"] == "Ready"


def test_a_stranger_under_the_new_title_is_not_renamed(stage: Stage) -> None:
    assert stage.apply(asset("New", was=["Film"], fields={"comment": "Ready"})).ok
    news = stage.sim.state.databases["NEWS"]
    news.remove_clip(stage.sim.state.clip("New"))
    news.add_clip("New", "Raw", frames=7)
    assert warned(stage, "another clip now has this title")
    assert stage.undo().ok
    assert stage.sim.state.clip("New").frames == 7


def test_a_deleted_marker_comes_back_whole_under_a_new_uid(stage: Stage) -> None:
    stage.sim.state.clip("Film").markers[0].fields["user"] = ""
    assert stage.apply(asset(markers=[{"uid": 1, "state": "absent"}])).ok
    stage.sim.clear_log()
    assert stage.undo().ok
    (sent,) = stage.sent()
    assert "uid=-1" in sent.target
    assert "user" not in sent.target
    markers = {
        (m.pos, m.fields["title"], m.fields["comment"], m.fields["rating"])
        for m in stage.sim.state.clip("Film").markers[1:]
    }
    assert markers == {(3, "m", "said", "2")}
    assert stage.undo(stage.runs()[-1], dry=True).requests == 0, "it is back already"


def test_one_of_two_markers_at_a_place_comes_back_beside_the_other(stage: Stage) -> None:
    clip = stage.sim.state.clip("Film")
    clip.markers.append(SimMarker(8, 3, {"track": "General", "title": "twin"}))
    assert stage.apply(asset(markers=[{"uid": 1, "state": "absent"}])).ok
    assert stage.undo().ok
    assert sorted(m.fields["title"] for m in clip.markers if m.pos == 3) == ["m", "twin"]
    assert stage.undo(stage.runs()[-1], dry=True).requests == 0


def test_one_of_two_markers_that_are_the_same_comes_back(stage: Stage) -> None:
    clip = stage.sim.state.clip("Film")
    clip.markers.append(SimMarker(8, 3, dict(clip.markers[0].fields)))
    assert stage.apply(asset(markers=[{"uid": 8, "state": "absent"}])).ok
    assert stage.undo().ok
    assert [m.pos for m in clip.markers].count(3) == 2


def test_one_of_two_comes_back_beside_the_one_that_the_task_kept(stage: Stage) -> None:
    clip = stage.sim.state.clip("Film")
    clip.markers.append(SimMarker(8, 3, dict(clip.markers[0].fields)))
    assert stage.apply(asset(markers=[{"at": 3, "title": "m"}], exactly={"markers": {"tracks": ["General"]}})).ok
    assert [m.uid for m in clip.markers] == [1, 7]
    assert stage.undo().ok
    assert [m.pos for m in clip.markers].count(3) == 2
    assert stage.undo(stage.runs()[-1], dry=True).requests == 0, "it is back already"


def test_a_marker_of_another_at_the_place_of_a_deleted_one_stays(stage: Stage) -> None:
    clip = stage.sim.state.clip("Film")
    assert stage.apply(asset(markers=[{"uid": 1, "state": "absent"}])).ok
    clip.markers.append(SimMarker(9, 3, {"track": "General", "title": "theirs"}))
    assert stage.undo().ok
    assert sorted(m.fields["title"] for m in clip.markers if m.pos == 3) == ["m", "theirs"]


def test_a_deleted_marker_and_a_new_one_of_its_uid_are_two(stage: Stage) -> None:
    clip = stage.sim.state.clip("Film")
    clip.markers[0].uid = 6
    assert stage.apply(asset(markers=[{"uid": 7, "state": "absent"}, {"at": 20, "title": "new"}])).ok
    assert [(m.uid, m.pos) for m in clip.markers] == [(6, 3), (7, 20)]
    assert stage.undo().ok
    assert sorted(m.pos for m in clip.markers) == [3, 5]


def test_of_two_markers_at_a_place_one_comes_back_and_the_other_is_as_before(stage: Stage) -> None:
    clip = stage.sim.state.clip("Film")
    clip.markers.append(SimMarker(8, 3, {"track": "General", "title": "other"}))
    assert stage.apply(asset(markers=[{"uid": 1, "state": "absent"}, {"uid": 8, "title": "ours"}])).ok
    assert stage.undo().ok
    assert sorted(m.fields["title"] for m in clip.markers if m.pos == 3) == ["m", "other"]


def test_only_what_was_named_is_written_back(stage: Stage) -> None:
    def stamp(state: ServerState) -> None:
        state.clip("Film").markers[0].fields["user"] = "the server"

    marker = stage.sim.state.clip("Film").markers[0]
    marker.fields["user"] = "bob"
    stage.sim.faults.add(Fault("CREATEMARKER", "after", change=stamp))
    assert stage.apply(asset(markers=[{"uid": 1, "title": "ours", "keywords": "k"}])).ok
    assert stage.undo().ok
    texts = {name: text for name, text in marker.fields.items() if text}
    assert texts == {"track": "General", "title": "m", "comment": "said", "rating": "2", "user": "the server"}


def test_what_somebody_has_taken_back_already_needs_no_word(stage: Stage) -> None:
    clip = stage.sim.state.clip("Film")
    assert stage.apply(asset(markers=[{"uid": 7, "title": "ours"}, {"at": 20, "title": "new"}])).ok
    clip.markers[1].fields["title"] = "c"
    clip.markers.pop()
    plan = plan_of_undo(stage)
    assert (plan.requests, plan.warnings) == (0, ())


def test_a_created_marker_goes_by_the_uid_that_was_learned(stage: Stage) -> None:
    clip = stage.sim.state.clip("Film")
    assert stage.apply(asset(markers=[{"at": 20, "title": "new"}])).ok
    clip.markers.insert(0, SimMarker(99, 20, {"track": "General", "title": "new"}))  # somebody makes another like it
    assert stage.undo().ok
    assert [m.uid for m in clip.markers] == [99, 1, 7]


def test_a_segmentation_goes_and_what_was_there_comes_back(stage: Stage) -> None:
    clip = stage.sim.state.clip("Film")
    before = [(s.number, s.start, s.duration, *s.titles) for s in clip.segments]
    assert stage.apply(asset(segmentation={"duration": 10, "title": "P"}, exactly=["segments"])).ok
    assert len(clip.segments) == 10
    assert stage.undo().ok
    assert sorted((s.number, s.start, s.duration, *s.titles) for s in clip.segments) == before
    assert clip.segment(2) is not None
    assert {s.keywords for s in clip.segments} == {"", "kept"}


def test_items_of_a_channel_come_back(stage: Stage) -> None:
    new = {"guid": "n-2", "text": "Second"}
    assert stage.apply(ticker({"guid": "n-1", "text": "Changed"}, new)).ok
    assert stage.undo().ok
    items = stage.sim.state.channels["ticker"].items
    assert [(item.guid, item.title, item.description) for item in items] == [("n-1", "First", "First\nmore")]
    assert stage.apply(ticker({"guid": "n-1", "state": "absent"})).ok
    assert stage.undo().ok
    items = stage.sim.state.channels["ticker"].items
    assert [(item.guid, item.title) for item in items] == [("n-1", "First")]


FULL = Item("n-2.xml", b"", "n-2", "Old", "Said", "http://x/", "Fri, 20 Nov 2026 09:00:00 +0000")


def shown(stage: Stage) -> list[tuple[str, ...]]:
    items = stage.sim.state.channels["ticker"].items
    return [(each.file, each.guid, each.title, each.description, each.link, each.pub_date) for each in items]


@pytest.mark.parametrize(
    "wanted",
    [
        {"item": {"title": "New"}},
        {"item": {"title": "New", "link": "http://y/"}},
        {"item": {"title": "Old", "description": "", "pubDate": "2026-11-21T09:00:00+00:00"}},
        {"text": "New"},
        {"state": "absent"},
    ],
    ids=["a title", "a link", "a date", "a text", "absent"],
)
def test_a_document_comes_back_whole(stage: Stage, wanted: dict[str, Any]) -> None:
    stage.sim.state.channels["ticker"].items[:] = [replace(FULL)]
    before = shown(stage)
    assert stage.apply(ticker({"guid": "n-2", **wanted})).ok
    assert shown(stage) != before
    assert stage.undo().ok
    assert shown(stage) == before


def test_what_no_task_names_of_a_document_is_written_again(stage: Stage) -> None:
    stage.sim.state.channels["ticker"].items[:] = [replace(FULL)]
    assert stage.apply(ticker({"guid": "n-2", "item": {"title": "New"}})).ok
    assert shown(stage) == [("n-2.xml", "n-2", "New", "Said", "http://x/", "Fri, 20 Nov 2026 09:00:00 +0000")]


def test_a_field_that_a_run_added_to_a_document_goes(stage: Stage) -> None:
    stage.sim.state.channels["ticker"].items[:] = [replace(FULL, link="", pub_date="")]
    before = shown(stage)
    assert stage.apply(ticker({"guid": "n-2", "item": {"link": "http://y/"}})).ok
    assert stage.undo().ok
    assert shown(stage) == before


def test_an_item_that_somebody_has_extended_is_left_alone(stage: Stage) -> None:
    items = stage.sim.state.channels["ticker"].items
    items[:] = [replace(FULL, link="", pub_date="")]
    assert stage.apply(ticker({"guid": "n-2", "item": {"title": "New"}}, {"guid": "n-3", "item": {"title": "Ours"}})).ok
    for item in items:
        item.link = "http://theirs/"
    plan = plan_of_undo(stage)
    assert plan.targets == ()
    told = "\n".join(plan.warnings)
    assert "item n-2 is left alone" in told
    assert "item n-3 is left alone" in told


def test_a_link_goes_where_the_dialect_names_a_way(stage: Stage) -> None:
    stage.dialect = {"link_delete": "by_title"}
    assert stage.apply(asset(links=[{"folder": "Playout", "title": "Tonight"}])).ok
    assert stage.undo().ok
    assert [entry.title for entry in stage.sim.state.clip("Film").entries] == ["Film"]


def test_a_link_of_a_title_that_another_link_has_is_left_and_the_rest_comes_back(stage: Stage) -> None:
    stage.dialect = {"link_delete": "by_title"}
    stage.sim.state.databases["NEWS"].make_folder("Archive")
    links = [{"folder": folder, "title": "Tonight"} for folder in ("Playout", "Archive")]
    assert stage.apply(asset(links=links, fields={"comment": "Ready"})).ok
    assert warned(stage, "link Playout/Tonight cannot be undone: 2 links of the asset have its title")
    assert stage.undo().ok
    clip = stage.sim.state.clip("Film")
    assert (len(clip.entries), clip.home.fields["comment"]) == (3, "raw")


def test_removing_a_link_counts_as_a_deletion(stage: Stage) -> None:

    stage.dialect = {"link_delete": "by_title"}
    assert stage.apply(asset(links=[{"folder": "Playout", "title": "Tonight"}])).ok
    plan = stage.undo(dry=True, limits=Limits())
    assert [refusal.code for refusal in plan.refusals] == ["delete_assets"]


def test_what_a_failed_run_did_is_taken_back_and_nothing_else(stage: Stage) -> None:
    stage.sim.faults.add("status:400@name=user_1")
    assert not stage.apply(asset(fields={"comment": "Ready", "user_1": "x", "user_2": "y"})).ok
    stage.sim.faults.clear()
    stage.sim.clear_log()
    assert stage.undo().ok
    assert ["name=comment" in entry.target for entry in stage.sent()] == [True]


def test_an_undo_can_be_undone(stage: Stage) -> None:
    desired = asset(fields={"comment": "Ready"}, markers=[{"uid": 1, "state": "absent"}, {"at": 9, "title": "n"}])
    assert stage.apply(desired).ok
    assert stage.undo().ok
    assert stage.undo().ok
    assert stage.plan(desired).requests == 0
    assert stage.undo().ok
    clip = stage.sim.state.clip("Film")
    assert clip.home.fields["comment"] == "raw"
    assert sorted(m.pos for m in clip.markers) == [3, 5]


# What is left alone -------------------------------------------------------------------------------------------


def test_what_somebody_has_changed_since_is_left_alone_and_told(stage: Stage) -> None:
    clip = stage.sim.state.clip("Film")
    desired = asset(
        fields={"comment": "Ready", "user_1": "ours"},
        xmp={"dc:title": ["ours"]},
        segments=[{"number": 1, "start": 1, "duration": 5}, {"number": 5, "start": 50, "duration": 5}],
        markers=[{"uid": 7, "at": 6}, {"at": 20, "title": "new"}],
    )
    assert stage.apply(desired, ticker({"guid": "n-1", "text": "Changed"})).ok
    clip.home.fields["comment"] = "theirs"
    clip.xmp["dc:title"] = ["theirs"]
    for number in (1, 5):
        segment = clip.segment(number)
        assert segment is not None
        segment.titles = ["theirs"]
    for marker in clip.markers:
        marker.fields["title"] = "theirs"
    stage.sim.state.channels["ticker"].items[0].title = "theirs"
    stage.sim.state.channels["ticker"].items[0].description = "theirs"
    plan = plan_of_undo(stage)
    told = "\n".join(plan.warnings)
    for what in ("field comment", "dc:title", "marker uid 7", "marker uid 8", "segment 1", "segment 5", "item n-1"):
        assert f"{what} is left alone" in told, told
    (target,) = plan.targets
    assert [(change.aspect, change.key) for change in target.changes] == [("field", "user_1")]


@pytest.mark.parametrize("name", ["rating", "user", "keywords", "colour"])
def test_a_marker_to_which_somebody_has_added_is_left_alone(stage: Stage, name: str) -> None:
    clip = stage.sim.state.clip("Film")
    assert stage.apply(asset(markers=[{"uid": 7, "at": 6}, {"at": 20, "title": "new"}])).ok
    for marker in clip.markers:
        marker.fields[name] = "5"
    assert plan_of_undo(stage).requests == 0
    assert warned(stage, "marker uid 7 is left alone")
    assert warned(stage, "marker uid 8 is left alone")


class Stamped(list[SimMarker]):
    """The markers of a server that notes the user of a new one."""

    def append(self, marker: SimMarker) -> None:
        marker.fields["user"] = "auto"
        super().append(marker)


def test_what_the_server_adds_to_a_new_marker_is_no_sign_of_others(stage: Stage) -> None:
    clip = stage.sim.state.clip("Film")
    clip.markers = Stamped(clip.markers)
    assert stage.apply(asset(markers=[{"at": 20, "title": "new"}])).ok
    assert stage.undo().ok
    assert [marker.uid for marker in clip.markers] == [1, 7]


def test_a_new_marker_of_the_same_uid_is_left_alone(stage: Stage) -> None:
    clip = stage.sim.state.clip("Film")
    assert stage.apply(asset(markers=[{"at": 20, "title": "new"}])).ok
    clip.markers[-1] = SimMarker(8, 40, {"track": "General", "title": "theirs"})
    assert plan_of_undo(stage).requests == 0
    assert warned(stage, "marker uid 8 is left alone")


@pytest.mark.parametrize("change", [{"track": "A1"}, {"rating": 3}, {"titles": ["new", "theirs"]}, {"keywords": "k"}])
def test_a_segment_to_which_somebody_has_added_is_left_alone(stage: Stage, change: dict[str, Any]) -> None:
    clip = stage.sim.state.clip("Film")
    segments = [{"number": 1, "start": 1, "duration": 5}, {"number": 5, "start": 50, "duration": 5, "title": "new"}]
    assert stage.apply(asset(segments=segments)).ok
    for segment in clip.segments:
        for name, value in change.items():
            setattr(segment, name, value)
    assert plan_of_undo(stage).requests == 0
    assert warned(stage, "segment 1 is left alone")
    assert warned(stage, "segment 5 is left alone")


def test_a_piece_that_somebody_has_changed_is_left_alone_and_named(stage: Stage) -> None:
    clip = stage.sim.state.clip("Film")
    clip.segments.clear()
    assert stage.apply(asset(segmentation={"duration": 20, "title": "P"})).ok
    clip.segments[2].titles = ["theirs"]
    assert warned(stage, "segment 3 is left alone")
    assert stage.undo().ok
    assert [segment.number for segment in clip.segments] == [3]


def test_segments_that_have_one_number_by_now_are_left_alone(stage: Stage) -> None:
    clip = stage.sim.state.clip("Film")
    assert stage.apply(asset(segments=[{"number": 5, "start": 50, "duration": 5}])).ok
    clip.segments.append(SimSegment(5, 70, 5, ["theirs"]))
    assert plan_of_undo(stage).requests == 0
    assert warned(stage, "segment 5 is left alone: 2 live segments have the number 5")


def test_a_link_that_somebody_has_changed_is_left_alone(stage: Stage) -> None:
    stage.dialect = {"link_delete": "by_title"}
    assert stage.apply(asset(links=[{"folder": "Playout", "title": "Tonight"}])).ok
    (link,) = [entry for entry in stage.sim.state.clip("Film").entries if entry.title == "Tonight"]
    link.fields["user_1"] = "theirs"
    assert plan_of_undo(stage).requests == 0
    assert warned(stage, "link Playout/Tonight is left alone")


def test_what_is_gone_by_now_is_not_made_again(stage: Stage) -> None:
    clip = stage.sim.state.clip("Film")
    assert stage.apply(asset(segments=[{"number": 1, "start": 1, "duration": 5}], markers=[{"uid": 7, "at": 6}])).ok
    clip.segments[:] = [segment for segment in clip.segments if segment.number == 2]
    clip.markers.pop()
    assert plan_of_undo(stage).requests == 0
    assert warned(stage, "segment 1 is left alone: it no longer exists")
    assert warned(stage, "marker uid 7 is left alone: it no longer exists")


def test_a_marker_that_is_gone_by_now_is_not_made_again(stage: Stage) -> None:
    assert stage.apply(asset(markers=[{"uid": 7, "at": 6}])).ok
    stage.sim.state.clip("Film").markers.pop()
    assert plan_of_undo(stage).requests == 0
    assert warned(stage, "marker uid 7 is left alone: it no longer exists")


def test_another_clip_of_the_title_is_left_alone(stage: Stage) -> None:
    assert stage.apply(asset(fields={"comment": "Ready"})).ok
    stage.sim.state.clip("Film").create_time = "2026-12-01T00:00:00"
    assert plan_of_undo(stage).requests == 0
    assert warned(stage, "another clip now has this title")


def test_an_asset_that_is_gone_is_left_alone(stage: Stage) -> None:
    assert stage.apply(asset(fields={"comment": "Ready"})).ok
    stage.sim.state.databases["NEWS"].remove_clip(stage.sim.state.clip("Film"))
    plan = plan_of_undo(stage)
    assert (plan.requests, plan.errors) == (0, 0)
    assert warned(stage, "it no longer exists")


# What is gone for good ----------------------------------------------------------------------------------------


def test_what_cannot_be_undone_is_listed(stage: Stage) -> None:
    stage.sim.dialect = SimDialect.parse(["link_fields=hidden"])
    stage.sim.state.databases["NEWS"].add_clip("Old", "Raw", frames=10)
    desired = asset(fields={"user_1": "never known"}, links=[{"folder": "Playout"}])
    command = {"name": "A command", "command": {"name": "PARTNER_EXPORT_VERSION", "title": "Film"}}
    stage.apply(desired, asset("Old", state="absent"), command)
    plan = plan_of_undo(stage)
    told = "\n".join(plan.warnings)
    for words in (
        "Old: asset Old cannot be undone: a deleted asset does not come back",
        "field user_1 cannot be undone: what was there before was never known",
        "link Playout/Film cannot be undone: the interface has no way to remove a link",
        "command PARTNER_EXPORT_VERSION cannot be undone: what a command did is not known",
    ):
        assert words in told, told
    assert plan.requests == 0


def test_what_comes_back_only_in_part_is_told(stage: Stage) -> None:
    stage.sim.state.clip("Film").segments[0].track = "A1"
    assert stage.apply(asset(lossy=True, segments=[{"number": 1, "start": 1, "duration": 5}])).ok
    assert warned(stage, "segment 1 comes back without what cannot be written")
    assert plan_of_undo(stage).requests == 2


# Whether it may be at all -------------------------------------------------------------------------------------


def details(stage: Stage) -> RunDetails:
    with Ledger.open(stage.folder / "state", readonly=True) as ledger:
        return ledger.run_details("last")


def test_a_server_that_is_another_by_now_is_refused(stage: Stage) -> None:
    assert stage.apply(asset(fields={"comment": "Ready"})).ok
    with pytest.raises(RefusedError, match="was applied to studio at"):
        undo_of(details(stage), [ServerSpec("studio", "http://127.0.0.1:1")])


def test_a_run_that_goes_on_is_refused(stage: Stage) -> None:
    assert stage.apply(asset(fields={"comment": "Ready"})).ok
    known = details(stage)
    going = structs.replace(known, summary=structs.replace(known.summary, status="running"))
    with pytest.raises(RefusedError, match="is still running"):
        undo_of(going, [ServerSpec("studio", stage.sim.url)])


def test_of_two_items_with_one_guid_the_first_comes_back_and_the_other_is_named(stage: Stage) -> None:
    channel = stage.sim.state.add_channel("ticker")
    first = Item("01.txt", b"A", "01", "A", "A")
    channel.items[:] = [first, Item("copy.xml", b"", "01", "Sunny", "All day")]
    assert stage.apply(ticker({"guid": "01", "state": "absent"})).ok
    assert channel.items == []
    assert warned(stage, "item 01: a second one ('Sunny') does not come back, because a guid names one item")
    assert stage.undo().ok
    assert channel.items == [first]


def test_an_item_under_the_guid_of_its_file_comes_back_in_its_file(stage: Stage) -> None:
    channel = stage.sim.state.add_channel("ticker")
    channel.items.clear()
    stage.dialect = {"rss_guid": "stem"}
    assert stage.apply(ticker({"guid": "01", "file": "x.txt", "text": "A"})).ok
    assert [item.guid for item in channel.items] == ["x"]
    assert stage.apply(ticker({"file": "x.txt", "state": "absent"})).ok
    assert channel.items == []
    assert stage.undo().ok
    assert [(item.file, item.guid, item.title) for item in channel.items] == [("x.txt", "x", "A")]
