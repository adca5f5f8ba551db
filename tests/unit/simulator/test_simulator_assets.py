"""What is read that no text shows: clips that grow, keys, long listings, stills and viewing copies."""

from __future__ import annotations

import io

from PIL import Image

from msauto.plugins.simulator.embedded import Simulator
from tests.unit.simulator.asking import Asker, asset


def test_a_clip_being_recorded_grows(sim: Simulator, ask: Asker) -> None:
    live = sim.state.clip("Studio A live")
    assert live.recording_since is not None
    before = int(ask.attrs("Studio A live")["frames"])
    live.recording_since -= 100
    assert 2500 <= int(ask.attrs("Studio A live")["frames"]) - before < 2600


def test_links_have_ids_of_their_own(ask: Asker) -> None:
    assert ask.clip("Promo 1 tonight").get("link_id") != ask.clip("Promo 1").get("link_id")


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
    assert (
        ask.ask(
            "POST", "/storage/NEWS@handle:12?command=PARTNER_EXPORT_VERSION&ns=handle&id=12"
        ).status
        == 200
    )
    assert (
        ask.ask("POST", "/storage/NEWS@handle:12?command=SETFIELD&name=clip_name&val=Ghost").status
        == 200
    )
    assert ask.get(asset("Ghost")).status == 404


# GET /storage and GET /storage/NAME/FOLDER: shapes, filters, the place of the requested folder


def test_a_long_listing_is_sent_in_pieces(sim: Simulator, ask: Asker) -> None:
    for number in range(500):
        sim.state.add_clip(f"Many {number}", "Many")
    reply = ask.get("/storage/NEWS/Many")
    assert "content-length" not in reply.headers
    assert len(reply.xml.findall(".//Clip")) == 500
    assert ask.ask("HEAD", "/storage/NEWS/Many").body == b""


def test_options_of_the_whole_server_are_not_there(ask: Asker) -> None:
    assert ask.raw(b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").startswith(
        b"HTTP/1.1 404"
    )


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
