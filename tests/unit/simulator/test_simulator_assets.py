"""One asset: its detailed shape, its XMP fields, the ways to find it."""

from __future__ import annotations

import pytest

from msauto.simulator import SimDialect, SimMarker, SimSegment, Simulator
from tests.unit.simulator.asking import Asker, asset


def test_the_detailed_shape(ask: Asker) -> None:
    clip = ask.clip("Master Film")
    assert clip.tag == "Clip"
    assert (clip.get("folder"), clip.get("archive"), clip.get("finalized")) == ("Master/Films", "", "true")
    assert (clip.get("hires") or "").startswith("$(video_path)/")
    first, second = clip.findall("Marker")
    assert (first.get("uid"), first.get("pos")) == ("1", "0")
    assert {child.get("name"): child.text for child in second.findall("Attr")} == {
        "title": "Ad break", "track": "Cue Point", "comment": "two minutes", "keywords": "ad",
    }  # fmt: skip
    reel = clip.findall("Segment")[0]
    assert reel.attrib == {"seg_num": "1", "seg_name": "Reel 1", "start_frame": "0", "duration": "67500"}
    assert [(child.tag, child.text) for child in reel] == [("title", "Reel 1"), ("track", "Program"), ("rating", "3")]
    sourced = ask.attrs("Master Film")
    assert (sourced["frames"], sourced["frame_time"], sourced["last_frame"]) == ("135000", "0.0416666667", "134999")


def test_a_template_lists_its_parameters(ask: Asker) -> None:
    assert [param.get("name") for param in ask.clip("Lower Third").findall("Param")] == ["headline", "subline"]
    assert ask.attrs("Lower Third")["mime_type"] == "10"


def test_an_archived_clip_has_no_file(ask: Asker) -> None:
    clip = ask.clip("Documentary 1987")
    assert (clip.get("folder"), clip.get("hires")) == ("Archive", "")
    assert clip.get("archive")


def test_a_clip_being_recorded_grows(sim: Simulator, ask: Asker) -> None:
    assert ask.clip("Studio A live").get("finalized") == "false"
    live = sim.state.clip("Studio A live")
    assert live.recording_since is not None
    before = int(ask.attrs("Studio A live")["frames"])
    live.recording_since -= 100
    assert 2500 <= int(ask.attrs("Studio A live")["frames"]) - before < 2600


def test_link_fields_shown_or_not(sim: Simulator, ask: Asker) -> None:
    sim.state.clip("Long Film").home.fields["user_0"] = "house"
    assert (ask.attrs("Long Film")["user_0"], ask.attrs("Long Film")["comment"]) == ("house", "")
    sim.dialect = SimDialect(link_fields="reported_when_set")
    assert ask.attrs("Long Film")["user_0"] == "house"
    assert "comment" not in ask.attrs("Long Film")
    sim.dialect = SimDialect(link_fields="hidden")
    assert "user_0" not in ask.attrs("Long Film")


def test_links_have_a_home(sim: Simulator, ask: Asker) -> None:
    link = ask.clip("Promo 1 tonight")
    assert link.get("folder") == "Promos"
    assert link.get("link_id") != ask.clip("Promo 1").get("link_id")
    assert ask.attrs("Promo 1 tonight")["title"] == "Promo 1 tonight"
    sim.dialect = SimDialect(link_folder="own")
    assert ask.clip("Promo 1 tonight").get("folder") == "Playout/Tonight"


def test_a_home_wins_over_a_link_of_its_title(sim: Simulator, ask: Asker) -> None:
    other = sim.state.add_clip("Other", "Others")
    sim.state.databases["NEWS"].add_entry(other, "Links", "Same name")
    assert ask.clip("Same name").get("folder") == "Others"
    sim.state.add_clip("Same name", "Homes")
    assert ask.clip("Same name").get("folder") == "Homes"


def test_title_case_is_a_switch(sim: Simulator, ask: Asker) -> None:
    assert ask.get(asset("long film")).status == 404
    sim.dialect = SimDialect(title_case="folded")
    assert ask.attrs("long film")["title"] == "Long Film"


def test_normalization_is_a_switch(sim: Simulator, ask: Asker) -> None:
    sim.state.add_clip("Caf\u00e9", frames=10)
    assert ask.get(asset("Cafe\u0301")).status == 404
    sim.dialect = SimDialect(title_case="normalized")
    assert ask.attrs("Cafe\u0301")["frames"] == "10"
    assert ask.get(asset("CAFE\u0301")).status == 404
    sim.state.add_clip("Cafe\u0301", frames=20)
    sim.dialect = SimDialect(title_case="exact")
    assert [ask.attrs(title)["frames"] for title in ("Caf\u00e9", "Cafe\u0301")] == ["10", "20"]


def test_twins_in_one_answer_are_a_switch(sim: Simulator, ask: Asker) -> None:
    first, _ = sim.state.add_clip("Twin", "A", frames=10), sim.state.add_clip("Twin", "B", frames=20)
    sim.state.databases["NEWS"].add_entry(first, "C", "Twin")
    assert ask.attrs("Twin")["frames"] == "10"
    sim.dialect = SimDialect(title_twins="both")
    assert [clip.get("folder") for clip in ask.get(asset("Twin")).xml.findall("Clip")] == ["A", "B"]
    assert ask.attrs("Long Film")["title"] == "Long Film"
    ask.command("Twin", "SETFIELD", name="comment", val="x")
    assert first.home.fields == {"comment": "x"}


def test_links_whose_titles_lead_nowhere_are_a_switch(sim: Simulator, ask: Asker) -> None:
    assert ask.attrs("Promo 1 tonight")["title"] == "Promo 1 tonight"
    sim.dialect = SimDialect(link_titles="nowhere")
    assert ask.get(asset("Promo 1 tonight")).status == 404
    assert ask.ask("DELETE", asset("Promo 1 tonight")).status == 404
    assert ask.attrs("Promo 1")["title"] == "Promo 1"
    assert b"Promo 1 tonight" in ask.get("/storage/NEWS/Playout/Tonight").body


def test_orig_name_is_a_switch(sim: Simulator, ask: Asker) -> None:
    assert ask.attrs("Long Film")["orig_name"] == "Long Film"
    sim.dialect = SimDialect(orig_name="hidden")
    assert "orig_name" not in ask.attrs("Long Film")


def test_positions_may_count_from_the_in_point(sim: Simulator, ask: Asker) -> None:
    clip = sim.state.add_clip("Positions", frames=1000)
    clip.markers, clip.segments = [SimMarker(1, 150)], [SimSegment(1, 200, 50)]
    clip.home.fields["first_frame"] = "100"
    sim.dialect = SimDialect(position_origin="in")
    shown = ask.clip("Positions")
    assert [marker.get("pos") for marker in shown.findall("Marker")] == ["50"]
    assert [segment.get("start_frame") for segment in shown.findall("Segment")] == ["100"]
    ask.command("Positions", "CREATEMARKER", uid=-1, frame=0)
    ask.command("Positions", "CREATESEGMENT", seg_num=2, start_frame=10, duration=5)
    assert [marker.pos for marker in clip.markers] == [150, 100]
    assert [segment.start for segment in clip.segments] == [200, 110]


def test_whether_keywords_of_segments_are_shown(sim: Simulator, ask: Asker) -> None:
    sim.state.add_clip("S").segments = [SimSegment(1, 0, 10, ["Part"], keywords="k")]
    assert ask.clip("S").findtext("Segment/keywords") == "k"
    sim.dialect = SimDialect(segment_keywords="hidden")
    assert ask.clip("S").find("Segment/keywords") is None


def test_finding_by_key_fields(sim: Simulator, ask: Asker) -> None:
    film = sim.state.clip("Long Film")
    sim.state.handles["4711"] = film
    film.xmp["dc:identifier"] = ["F-1"]
    film.home.fields["user_3"] = "house-3"
    for address in ("handle:4711", "title:Long%20Film", "orig_name:Long%20Film", "dc%3Aidentifier:F-1",
                    "user_3:house-3", f"link_id:{film.home.link_id}"):  # fmt: skip
        assert b">Long Film<" in ask.get(f"/storage/NEWS@{address}").body, address
    assert ask.get("/storage/NEWS@handle:1").text == "Object not found"
    assert ask.get("/storage/NEWS@nonsense:1").status == 404


def test_a_deleted_clip_is_still_read_by_its_handle(sim: Simulator, ask: Asker) -> None:
    sim.state.handles["12"] = sim.state.clip("Promo 1")
    assert ask.ask("DELETE", asset("Promo 1")).status == 200
    assert ask.get(asset("Promo 1")).text == "Object not found"
    assert b">Promo 1<" in ask.get("/storage/NEWS@handle:12").body
    assert ask.ask("POST", "/storage/NEWS@handle:12?command=PARTNER_EXPORT_VERSION&ns=handle&id=12").status == 200
    assert ask.ask("POST", "/storage/NEWS@handle:12?command=SETFIELD&name=clip_name&val=Ghost").status == 200
    assert ask.get(asset("Ghost")).status == 404


def test_xmp_shapes(sim: Simulator, ask: Asker) -> None:
    sim.state.clip("Long Film").xmp = {"dc:subject": ["a & b", "c"], "plain": ["ж"]}
    target = asset("Long Film") + "/GETUSERFIELDS"
    pairs = [(child.get("name"), child.text) for child in ask.get(target).xml]
    assert pairs == [("dc:subject", "a & b"), ("dc:subject", "c"), ("plain", "ж")]
    sim.dialect = SimDialect(xmp_shape="element")
    assert [(child.tag, child.text) for child in ask.get(target).xml] == [
        ("{urn:xmp:dc}subject", "a & b"), ("{urn:xmp:dc}subject", "c"), ("plain", "ж"),
    ]  # fmt: skip
    sim.dialect = SimDialect(xmp_shape="nested")
    fields = {field.get("name"): [li.text for li in field.iter("li")] for field in ask.get(target).xml}
    assert fields == {"dc:subject": ["a & b", "c"], "plain": ["ж"]}
    sim.dialect = SimDialect(xmp_shape="lines", list_separator="|")
    assert ask.get(target).text == "dc:subject=a & b|c\nplain=ж\n"
    sim.dialect = SimDialect(xmp_shape="unreadable")
    with pytest.raises(UnicodeDecodeError):
        _ = ask.get(target).text


def test_xmp_of_some_fields(sim: Simulator, ask: Asker) -> None:
    target = asset("Новости дня") + "/GETUSERFIELDS"
    assert len(ask.get(target).xml) == 3
    assert [child.text for child in ask.get(target + "?field=dc:creator").xml] == ["Ольга", "Per & Kari"]
    assert len(ask.get(target + "?field=dc%3Atitle&field=dc:creator").xml) == 3
    assert len(ask.get(target + "?field=dc:nothing").xml) == 0
    sim.dialect = SimDialect(xmp_without_field="empty")
    assert len(ask.get(target).xml) == 0
    sim.dialect = SimDialect(xmp_without_field="error")
    assert ask.get(target).status == 400
    assert len(ask.get(target + "?field=dc:title").xml) == 1


def test_only_the_methods_of_the_interface(ask: Asker) -> None:
    assert ask.ask("PUT", asset("Long Film")).status == 405
    assert ask.ask("POST", asset("Long Film") + "/GETUSERFIELDS").status == 405
    assert ask.get(asset("Long Film") + "/A/B").status == 404
    assert ask.ask("HEAD", asset("Long Film")).status == 200


def names(ask: Asker, target: str) -> list[str | None]:
    return [each.get("name") for each in ask.get(target).xml.iter("Attr")]


def test_omitted_attributes_are_in_no_answer(ask: Asker, sim: Simulator) -> None:
    assert {"frames", "frame_time"} <= set(names(ask, "/storage/NEWS@Long%20Film"))
    sim.state.clip("Long Film").omitted = ("frames", "frame_time")
    shown = names(ask, "/storage/NEWS@Long%20Film")
    assert not {"frames", "frame_time"} & set(shown)
    assert "title" in shown
    assert "frames" not in names(ask, "/storage/NEWS/Films")
