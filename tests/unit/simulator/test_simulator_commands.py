"""The commands: fields, links, files, cards, segments and markers; DELETE; the metadata connector."""

from __future__ import annotations

import time

import pytest

from msauto.simulator import SimClip, SimDialect, SimMarker, SimSegment, Simulator
from tests.tables import table
from tests.unit.simulator.asking import Asker, asset

FILM = "Long Film"


@pytest.mark.parametrize("name", ["type", "comment", "layer", "icon_pos", *(f"user_{n}" for n in range(8))])
def test_every_link_field_can_be_set(ask: Asker, name: str) -> None:
    assert ask.command(FILM, "SETFIELD", name=name, val="7").status == 200
    assert ask.attrs(FILM)[name] == "7"
    assert ask.command(FILM, "SETFIELD", name=name, val="").status == 200
    assert ask.attrs(FILM)[name] == ""


def test_in_and_out_points(ask: Asker) -> None:
    ask.command(FILM, "SETFIELD", name="first_frame", val=250)
    ask.command(FILM, "SETFIELD", name="last_frame", val=999)
    assert (ask.attrs(FILM)["first_frame"], ask.attrs(FILM)["last_frame"]) == ("250", "999")
    assert ask.command(FILM, "SETFIELD", name="first_frame", val="00:00:10:00").status == 400


def test_a_cleared_in_point_is_the_first_frame(ask: Asker) -> None:
    for value in ("250", ""):
        assert ask.command(FILM, "SETFIELD", name="first_frame", val=value).status == 200
        assert ask.command(FILM, "SETFIELD", name="last_frame", val=value).status == 200
    assert (ask.attrs(FILM)["first_frame"], ask.attrs(FILM)["last_frame"]) == ("0", "162499")


@pytest.mark.parametrize("value", ["1_000", " 7", "٣", "1.0", "", "9" * 30])
def test_numbers_are_plain_digits(ask: Asker, value: str) -> None:
    assert ask.command(FILM, "DELETESEGMENT", seg_num=value).status == 400


@pytest.mark.parametrize(
    "params", [{"name": "comment"}, {"val": "x"}, {"name": "frames", "val": "1"}, {"name": "layer", "val": "x"}]
)
def test_a_bad_setfield_is_refused(sim: Simulator, ask: Asker, params: dict[str, str]) -> None:
    assert ask.command(FILM, "SETFIELD", **params).status == 400
    assert sim.state.clip(FILM).home.fields == {}
    assert [entry.done for entry in sim.writes()] == [False]


def test_fields_belong_to_the_entry(ask: Asker) -> None:
    ask.command("Promo 1 tonight", "SETFIELD", name="comment", val="tonight only")
    assert ask.attrs("Promo 1 tonight")["comment"] == "tonight only"
    assert ask.attrs("Promo 1")["comment"] == ""


def test_renaming_the_home_renames_the_clip(ask: Asker) -> None:
    ask.command("Promo 1", "SETFIELD", name="clip_name", val="Promo / one")
    assert ask.get(asset("Promo 1")).status == 404
    assert ask.attrs("Promo / one")["title"] == "Promo / one"
    assert ask.attrs("Promo 1 tonight")["title"] == "Promo 1 tonight"


def test_renaming_a_link_leaves_the_clip(sim: Simulator, ask: Asker) -> None:
    ask.command("Promo 1 tonight", "SETFIELD", name="clip_name", val="Other")
    assert ask.get(asset("Promo 1 tonight")).status == 404
    assert sim.state.clip("Other").title == "Promo 1"


def test_a_title_that_is_taken(sim: Simulator, ask: Asker) -> None:
    assert ask.command("Promo 1", "SETFIELD", name="clip_name", val="Promo 2").status == 409
    assert ask.command("Promo 1", "SETFIELD", name="clip_name", val="").status == 400


def test_user_fields_are_lists(sim: Simulator, ask: Asker) -> None:
    ask.command(FILM, "SETUSERFIELDS", **{"dc:subject": "news,evening", "dc:title": "Ж"})
    assert sim.state.clip(FILM).xmp == {"dc:subject": ["news", "evening"], "dc:title": ["Ж"]}
    ask.command(FILM, "SETUSERFIELDS", **{"dc:subject": ""})
    assert sim.state.clip(FILM).xmp["dc:subject"] == []
    ask.ask("POST", asset(FILM) + "?command=SETUSERFIELDS&dc:x=1&dc:x=2,3")
    assert sim.state.clip(FILM).xmp["dc:x"] == ["1", "2", "3"]
    sim.dialect = SimDialect(list_separator=";")
    ask.command(FILM, "SETUSERFIELDS", **{"dc:subject": "a,b;c"})
    assert sim.state.clip(FILM).xmp["dc:subject"] == ["a,b", "c"]
    assert ask.command(FILM, "SETUSERFIELDS").status == 400


def test_copy_link(sim: Simulator, ask: Asker) -> None:
    assert ask.command(FILM, "COPYLINK", title="Tonight's film", folder="Playout/Tonight").status == 200
    assert ask.attrs("Tonight's film")["frames"] == "162500"
    home, link = sim.state.clip(FILM).entries
    assert (home.folder, link.folder) == (("Films",), ("Playout", "Tonight"))
    assert ask.command(FILM, "COPYLINK", title="x").status == 400


def test_delete_takes_all_entries(sim: Simulator, ask: Asker) -> None:
    assert ask.ask("DELETE", asset("Promo 1")).status == 200
    assert ask.get(asset("Promo 1")).status == 404
    assert ask.get(asset("Promo 1 tonight")).status == 404
    assert ask.ask("DELETE", asset("Promo 1")).status == 404
    assert b"Promo 1" not in ask.get("/storage/NEWS").body


def test_restore_takes_its_time() -> None:
    with Simulator(restore_seconds=3600) as sim:
        ask = Asker(sim)
        assert ask.command("Documentary 1987", "RESTORE").status == 200
        assert ask.clip("Documentary 1987").get("hires") == ""
        ask.command("Documentary 1987", "RESTORE")
        sim.state.clip("Documentary 1987").online_at = time.time()
        assert (ask.clip("Documentary 1987").get("hires") or "").startswith("$(video_path)")


def test_restore_of_what_is_not_archived(sim: Simulator, ask: Asker) -> None:
    assert ask.command(FILM, "RESTORE").status == 200
    sim.state.clip(FILM).online = False
    assert ask.command(FILM, "RESTORE").status == 409


def test_partner_commands_are_noted(sim: Simulator, ask: Asker) -> None:
    ask.command(FILM, "PARTNER_EXPORT_VERSION")
    ask.command(FILM, "PARTNER_EXPORT_VERSION", ns="title", id="Promo 1")
    assert [call["command"] for call in sim.state.clip(FILM).partner] == ["PARTNER_EXPORT_VERSION"] * 2
    assert ask.command(FILM, "PARTNER_EXPORT_VERSION", ns="handle", id="9").status == 404
    sim.state.databases["NEWS"].partner = False
    assert ask.command(FILM, "PARTNER_EXPORT_VERSION").status == 500
    assert len(sim.state.clip(FILM).partner) == 2


def test_a_program_card(sim: Simulator, ask: Asker) -> None:
    ask.command(FILM, "PARTNER_COPY_PROGRAM_FIELDS")
    assert sim.state.clip(FILM).xmp == {}
    assert ask.command(FILM, "PARTNER_MOVE_TO_ASSET", asset_id="1001", house_number="H-1").status == 200
    assert ask.clip(FILM).get("folder") == "Playout/Tonight"
    assert b"Long Film" not in ask.get("/storage/NEWS/Films").body
    ask.command(FILM, "PARTNER_COPY_PROGRAM_FIELDS")
    assert sim.state.clip(FILM).xmp == {"dc:title": ["Evening News"], "dc:subject": ["news"]}
    ask.command(FILM, "PARTNER_MOVE_TO_ASSET", asset_id="77")
    assert ask.clip(FILM).get("folder") == "Cards/77"
    assert ask.command(FILM, "PARTNER_MOVE_TO_ASSET").status == 400


def test_unknown_commands_and_assets(ask: Asker) -> None:
    assert ask.command(FILM, "EXPLODE").status == 400
    assert ask.ask("POST", asset(FILM)).status == 400
    assert ask.command("No such film", "RESTORE").text == "Object not found"


BATCH = """<batch><clip title="Long Film"><field name="dc:title">Ж</field><field name="dc:subject">a</field>
<field name="dc:subject">b</field></clip><clip title="Nobody"><field name="x">y</field></clip></batch>"""


def test_a_batch_through_a_connector(sim: Simulator, ask: Asker) -> None:
    target = "/storage/NEWS?connector=TRAFFIC"
    assert ask.ask("PUT", target, BATCH.encode()).status == 200
    assert sim.state.clip(FILM).xmp == {"dc:title": ["Ж"], "dc:subject": ["a", "b"]}
    assert sim.state.databases["NEWS"].connectors["TRAFFIC"] == [BATCH.encode()]
    assert ask.ask("PUT", "/storage/NEWS?connector=OTHER", b"<batch/>").status == 500
    assert ask.ask("PUT", "/storage/NEWS", b"<batch/>").status == 400
    assert ask.ask("PUT", target, b"<batch>").status == 400
    assert ask.ask("PUT", target, b"<!DOCTYPE x><batch/>").status == 400
    assert len(sim.state.databases["NEWS"].connectors["TRAFFIC"]) == 1


# Segments and markers: what the commands make, and what the dialect makes of what the interface leaves open


@pytest.fixture
def clip(sim: Simulator) -> SimClip:
    return sim.state.add_clip("C", frames=1000, rate=25)


def spans(clip: SimClip) -> list[tuple[int, int, int, list[str]]]:
    return [(segment.number, segment.start, segment.duration, segment.titles) for segment in clip.segments]


def test_segments_in_frames_and_time_codes(clip: SimClip, ask: Asker) -> None:
    ask.command("C", "CREATESEGMENT", seg_num=1, start_frame=0, duration="00:00:10:05", title="Ä", keywords="a b")
    ask.command("C", "CREATESEGMENT", seg_num=2, start_frame="00:00:20.02", duration=100)
    assert spans(clip) == [(1, 0, 255, ["Ä"]), (2, 500, 100, [])]
    assert clip.segments[0].keywords == "a b"
    shown = ask.clip("C").findall("Segment")[0]
    assert (shown.findtext("title"), shown.findtext("keywords")) == ("Ä", "a b")
    ask.command("C", "DELETESEGMENT", seg_num=1)
    assert spans(clip) == [(2, 500, 100, [])]


@table("simulator/wrong_segments", "params")
def test_a_bad_segment_is_refused(clip: SimClip, ask: Asker, params: dict[str, object]) -> None:
    assert ask.command("C", "CREATESEGMENT", **params).status == 400
    assert clip.segments == []


@pytest.mark.parametrize(
    ("update", "status", "after"),
    [
        ("refuse", 409, [(1, 0, 10, ["old"])]),
        ("overwrite", 200, [(1, 5, 20, [])]),
        ("duplicate", 200, [(1, 0, 10, ["old"]), (1, 5, 20, [])]),
        ("ignore", 200, [(1, 0, 10, ["old"])]),
    ],
)
def test_a_number_that_exists(
    sim: Simulator, clip: SimClip, ask: Asker, update: str, status: int, after: list[object]
) -> None:
    clip.segments = [SimSegment(1, 0, 10, ["old"])]
    sim.dialect = SimDialect(segment_update=update)
    assert ask.command("C", "CREATESEGMENT", seg_num=1, start_frame=5, duration=20).status == status
    assert spans(clip) == after


def test_segmentation_divides_the_whole(clip: SimClip, ask: Asker) -> None:
    clip.segments = [SimSegment(5, 0, 10)]
    ask.command("C", "CREATESEGMENTATION", duration="00:00:16:00", title="Part")
    assert spans(clip) == [(1, 0, 400, ["Part"]), (2, 400, 400, ["Part"]), (3, 800, 200, ["Part"])]
    assert ask.command("C", "CREATESEGMENTATION", duration=0).status == 400
    assert ask.command("C", "CREATESEGMENTATION").status == 400
    assert len(clip.segments) == 3


def test_what_is_not_there_to_delete(clip: SimClip, ask: Asker) -> None:
    assert ask.command("C", "DELETESEGMENT", seg_num=9).status == 404
    assert ask.command("C", "DELETEMARKER", uid=9).status == 404
    assert ask.command("C", "DELETEMARKER").status == 400


def test_markers(clip: SimClip, ask: Asker) -> None:
    ask.command("C", "CREATEMARKER", uid=-1, frame=10, track="Cue Point", title="t", comment="c", user="u",
                keywords="k", rating=3, extra="Ж")  # fmt: skip
    ask.command("C", "CREATEMARKER", uid=-1, frame=0)
    assert [(marker.uid, marker.pos) for marker in clip.markers] == [(1, 10), (2, 0)]
    assert clip.markers[0].fields == {
        "user": "u", "title": "t", "comment": "c", "track": "Cue Point", "keywords": "k", "rating": "3", "extra": "Ж",
    }  # fmt: skip
    assert clip.markers[1].fields["track"] == "General"
    shown = ask.clip("C").findall("Marker")[0]
    assert shown.findtext("Attr[@name='extra']") == "Ж"
    ask.command("C", "DELETEMARKER", uid=1)
    assert [marker.uid for marker in clip.markers] == [2]


def test_a_uid_is_not_given_twice_at_once(clip: SimClip, ask: Asker) -> None:
    clip.markers = [SimMarker(41, 0), SimMarker(7, 1)]
    ask.command("C", "CREATEMARKER", uid=-1, frame=2)
    assert clip.markers[-1].uid == 42


@pytest.mark.parametrize(
    ("update", "fields"),
    [
        ("clear", {"user": "", "title": "new", "comment": "", "track": "General", "keywords": "", "rating": "0"}),
        ("keep", {"title": "new", "comment": "old", "track": "Icon"}),
    ],
)
def test_changing_a_marker(sim: Simulator, clip: SimClip, ask: Asker, update: str, fields: dict[str, str]) -> None:
    clip.markers = [SimMarker(3, 5, {"title": "old", "comment": "old", "track": "Icon"})]
    sim.dialect = SimDialect(marker_update=update)
    ask.command("C", "CREATEMARKER", uid=3, frame=6, title="new")
    assert clip.markers == [SimMarker(3, 6, fields)]
    ask.command("C", "CREATEMARKER", uid=3, title="new")
    assert clip.markers[0].pos == 6


def test_a_uid_that_does_not_exist(clip: SimClip, ask: Asker) -> None:
    assert ask.command("C", "CREATEMARKER", uid=99, frame=1).status == 200
    assert [marker.uid for marker in clip.markers] == [99]


@pytest.mark.parametrize(
    "params",
    [{"frame": 1}, {"uid": -1}, {"uid": "x", "frame": 1}, {"uid": -1, "frame": 1000}, {"uid": -1, "frame": -1},
     {"uid": -1, "frame": "00:00:01:00"}, {"uid": -1, "frame": 1, "track": "Cue point"}],
)  # fmt: skip
def test_a_bad_marker_is_refused(clip: SimClip, ask: Asker, params: dict[str, object]) -> None:
    assert ask.command("C", "CREATEMARKER", **params).status == 400
    assert clip.markers == []


def test_a_server_that_numbers_segments_by_their_starts(sim: Simulator, ask: Asker) -> None:
    sim.dialect = SimDialect(segment_numbers="by_start")
    clip = sim.state.clip(FILM)
    clip.segments = []
    for number, start in ((1, 100), (2, 50), (9, 0)):
        assert ask.command(FILM, "CREATESEGMENT", seg_num=number, start_frame=start, duration=10).status == 200
    assert [(each.number, each.start) for each in clip.segments] == [(1, 0), (2, 50), (3, 100)]
    ask.command(FILM, "DELETESEGMENT", seg_num=1)
    assert [(each.number, each.start) for each in clip.segments] == [(1, 50), (2, 100)]


@pytest.mark.parametrize(("rule", "uid"), [("above", 6), ("lowest", 2)])
def test_the_uid_of_a_new_marker(sim: Simulator, ask: Asker, rule: str, uid: int) -> None:
    sim.dialect = SimDialect(marker_uid=rule)
    clip = sim.state.clip(FILM)
    clip.markers = [SimMarker(1, 0), SimMarker(5, 9)]
    ask.command(FILM, "CREATEMARKER", uid=-1, frame=70)
    assert [each.uid for each in clip.markers] == [1, 5, uid]


@pytest.mark.parametrize(("rule", "left"), [("keep", {"dc:title": ["T"]}), ("clear", {})])
def test_xmp_fields_that_are_not_sent(sim: Simulator, ask: Asker, rule: str, left: dict[str, list[str]]) -> None:
    sim.dialect = SimDialect(xmp_update=rule)
    sim.state.clip(FILM).xmp = {"dc:title": ["T"]}
    ask.command(FILM, "SETUSERFIELDS", **{"dc:subject": "x"})
    assert sim.state.clip(FILM).xmp == {**left, "dc:subject": ["x"]}
