"""One asset: its detailed shape, its XMP fields, the ways to find it."""

from __future__ import annotations

from msauto.simulator import SimDialect, Simulator
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
