"""The shapes of what is read: an asset, its XMP fields, listings, stills, viewing copies and channels."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from msauto.simulator import SimDialect, Simulator
from tests.unit.simulator.asking import Asker, asset, quoted


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
    for text, shown in (("growing", "growing"), ("empty", "")):
        sim.dialect = SimDialect(unfinalized=text)
        assert ask.clip("Studio A live").get("finalized") == shown
        listed = {clip.get("finalized") for clip in ask.get("/storage/NEWS/Raw/2026").xml.iter("Clip")}
        assert listed == {"true", shown}
    sim.dialect = SimDialect()
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


# GET /storage and GET /storage/NAME/FOLDER: shapes, filters, the place of the requested folder


def titles(ask: Asker, target: str) -> list[str]:
    return [found.text or "" for found in ask.get(target).xml.iterfind(".//Clip/Attr[@name='title']")]


@pytest.fixture
def still(sim: Simulator) -> None:
    """A state without a clip that is being recorded: a clip that grows between two listings makes them differ."""
    live = sim.state.clip("Studio A live")
    assert live.recording_since is not None
    live.recording_since = None


@pytest.mark.usefixtures("still")
def test_databases_come_with_their_content(ask: Asker) -> None:
    root = ask.get("/storage").xml
    assert [child.get("name") for child in root.findall("Database")] == ["NEWS", "ARCHIVE"]
    assert "Long Film" in [found.text for found in root.iterfind(".//Clip/Attr[@name='title']")]
    assert ask.get("/storage/").body == ask.get("/storage").body


def test_stored_tree_holds_folders_and_clips(ask: Asker) -> None:
    root = ask.get("/storage/NEWS/Raw").xml
    assert (root.tag, root.get("query_root")) == ("StoredTree", "Raw")
    top = root.findall("Folder")
    assert [folder.get("name") for folder in top] == [""]
    assert [folder.get("name") for folder in top[0].findall("Folder")] == ["2026"]
    clips = top[0].findall("Clip")
    assert len(clips) == 12
    assert clips[0].get("finalized") == "true"
    assert clips[0].get("link_id", "").isdigit()
    names = {child.get("name") for child in clips[0].findall("Attr")}
    assert {"bps", "frame_time", "frames", "first_frame", "last_frame", "title", "create_time", "rec_time"} <= names


@pytest.mark.usefixtures("still")
def test_the_format_parameter(ask: Asker) -> None:
    assert ask.get("/storage/NEWS/Raw?format=StoredTree").body == ask.get("/storage/NEWS/Raw").body
    folders = ask.get("/storage/NEWS?format=folderlist").xml
    assert folders.find(".//Clip") is None
    assert folders.find("Folder/Folder[@name='Playout']/Folder[@name='Tonight']") is not None
    mam = ask.get("/storage/NEWS/Films?format=mam").xml
    (film,) = mam.findall("asset")
    sourced = {child.tag: child.text for child in film}
    assert sourced["id"] == "Long Film"
    assert sourced["dir"] == "Films"
    assert sourced["length"] == "01:48:20"
    assert (sourced["hires"] or "").startswith("$(video_path)")
    assert "proxy" not in sourced
    assert "<proxy>$(video_path)" in ask.get("/storage/NEWS/Raw/2026?format=mam").text
    assert ask.get("/storage/NEWS?format=pdf").status == 400


def test_the_folder_with_a_slash(ask: Asker) -> None:
    assert len(titles(ask, f"/storage/NEWS/{quoted('A/B Tests')}")) == 8
    assert ask.get("/storage/NEWS/A/B%20Tests").status == 404
    assert ask.get("/storage/NEWS/A%5C%2FB%20Tests").xml.get("query_root") == r"A\/B Tests"


def test_texts_in_place_of_the_true_ones_and_a_listing_that_lags(sim: Simulator, ask: Asker) -> None:
    clip = sim.state.clip("Long Film")
    clip.shown = {"finalized": "growing", "frame_time": "0,04"}
    clip.listed = {"comment": "earlier", "finalized": "true"}
    own, (listed,) = ask.clip("Long Film"), ask.get("/storage/NEWS/Films").xml.iter("Clip")
    for answer, finalized, comment in ((own, "growing", ""), (listed, "true", "earlier")):
        texts = {each.get("name"): each.text or "" for each in answer.findall("Attr")}
        assert (answer.get("finalized"), texts["frame_time"], texts["comment"]) == (finalized, "0,04", comment)


def test_datetime_filter(sim: Simulator, ask: Asker) -> None:
    late = titles(ask, "/storage/NEWS/Raw/2026?datetime=2026-11-19")
    assert late == [*(f"Story {number:03d}" for number in (*range(18, 28), *range(46, 56), *range(74, 84))),
                    "Evening News raw", "Studio A live"]  # fmt: skip
    assert titles(ask, "/storage/NEWS/Raw?datetime=2026-11-20T06:00:00").count("EP012") == 0
    assert titles(ask, "/storage/NEWS/Raw?datetime=2026-11-20T05:59:59").count("EP012") == 1
    assert ask.get("/storage/NEWS?datetime=yesterday").status == 400
    sim.dialect = SimDialect(datetime_filter="ignored")
    assert len(titles(ask, "/storage/NEWS/Raw?datetime=2999-01-01")) > 100


def test_a_shallow_listing_names_folders_only(sim: Simulator, ask: Asker) -> None:
    sim.dialect = SimDialect(listing_depth="shallow")
    top = ask.get("/storage/NEWS/Raw").xml.find("Folder")
    assert top is not None
    assert len(top.findall("Clip")) == 12
    assert [len(folder) for folder in top.findall("Folder")] == [0]


def test_a_long_listing_is_sent_in_pieces(sim: Simulator, ask: Asker) -> None:
    for number in range(500):
        sim.state.add_clip(f"Many {number}", "Many")
    reply = ask.get("/storage/NEWS/Many")
    assert "content-length" not in reply.headers
    assert len(reply.xml.findall(".//Clip")) == 500
    assert ask.ask("HEAD", "/storage/NEWS/Many").body == b""


def test_options_of_the_whole_server_are_not_there(ask: Asker) -> None:
    assert ask.raw(b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 404")


# Thumbnails and web proxies, opened as what they claim to be


def picture(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def test_a_thumbnail_has_the_size_asked_for(ask: Asker) -> None:
    reply = ask.get(asset("Long Film") + "/GETICON?pos=1500&w=320&h=180")
    assert (reply.status, reply.headers["content-type"]) == (200, "image/png")
    image = picture(reply.body)
    assert (image.format, image.size) == ("PNG", (320, 180))
    assert image.info["Title"] == "Long Film"
    assert image.info["TimeCode"] == "00:01:00:00"


def test_a_proxy_has_bytes_of_its_own(ask: Asker) -> None:
    reply = ask.get(asset("Long Film") + "/WP1")
    assert (reply.status, reply.headers["content-type"]) == (200, "video/mp4")
    assert reply.headers["content-disposition"].startswith("attachment")
    assert reply.body[4:8] == b"ftyp"
    assert reply.body.count(b"Long Film in WP1, frame ") == 1000


def test_the_list_of_channels(ask: Asker) -> None:
    assert [channel.get("name") for channel in ask.get("/rss").xml] == ["ticker", "weather"]
    assert ask.get("/rss/").body == ask.get("/rss").body


def test_a_channel_is_rss(ask: Asker) -> None:
    root = ask.get("/rss/ticker").xml
    assert (root.tag, root.get("version")) == ("rss", "2.0")
    items = root.findall("channel/item")
    assert [(item.findtext("guid"), item.findtext("title")) for item in items] == [
        ("n-0", "Yesterday's headline"), ("n-1", "An outdated headline"),
    ]  # fmt: skip
    assert ask.get("/rss/weather").xml.findtext("channel/title") == "Погода"
