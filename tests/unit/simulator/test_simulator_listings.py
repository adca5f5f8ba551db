"""GET /storage and GET /storage/NAME/FOLDER: shapes, filters, the place of the requested folder."""

from __future__ import annotations

import pytest

from msauto.simulator import SimDialect, Simulator
from tests.unit.simulator.asking import Asker, quoted


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


def test_links_are_listed_where_they_are(ask: Asker) -> None:
    assert titles(ask, "/storage/NEWS/Playout/Tonight") == ["Promo 1 tonight", "Promo 2 tonight"]


@pytest.mark.parametrize("missing", ["/storage/NOWHERE", "/storage/NEWS/Nowhere", "/storage/NEWS/raw"])
def test_what_is_not_there(ask: Asker, missing: str) -> None:
    reply = ask.get(missing)
    assert (reply.status, reply.text) == (404, "Object not found")


def test_datetime_filter(sim: Simulator, ask: Asker) -> None:
    late = titles(ask, "/storage/NEWS/Raw/2026?datetime=2026-11-19")
    assert late == [*(f"Story {number:03d}" for number in (*range(18, 28), *range(46, 56), *range(74, 84))),
                    "Evening News raw", "Studio A live"]  # fmt: skip
    assert titles(ask, "/storage/NEWS/Raw?datetime=2026-11-20T06:00:00").count("EP012") == 0
    assert titles(ask, "/storage/NEWS/Raw?datetime=2026-11-20T05:59:59").count("EP012") == 1
    assert ask.get("/storage/NEWS?datetime=yesterday").status == 400
    sim.dialect = SimDialect(datetime_filter="ignored")
    assert len(titles(ask, "/storage/NEWS/Raw?datetime=2999-01-01")) > 100


def test_mimetype_filter(ask: Asker) -> None:
    assert titles(ask, "/storage/NEWS?mimetype=Graphics") == ["Lower Third", "Ticker", "Заставка"]
    both = "/storage/NEWS?mimetype=Audio&mimetype=StillImage"
    assert titles(ask, both) == ["Studio sound"]
    assert ask.get("/storage/NEWS?mimetype=Audio,StillImage").status == 400
    assert ask.get("/storage/NEWS?mimetype=Vinyl").status == 400


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


def test_only_get_is_for_listings(ask: Asker) -> None:
    assert ask.ask("POST", "/storage/NEWS/Raw").status == 405
    assert ask.ask("DELETE", "/storage/NEWS/Raw").status == 405
    assert ask.ask("PUT", "/storage").status == 405
    assert ask.get("/elsewhere").status == 404
    assert ask.raw(b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 404")
