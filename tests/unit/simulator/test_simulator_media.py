"""Thumbnails and web proxies, opened as what they claim to be."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from msauto.simulator import Simulator
from msauto.simulator.media import draw_png
from tests.unit.simulator.asking import Asker, asset

ICON = asset("Lower Third") + "/GETICON"


def picture(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def pixels(image: Image.Image) -> bytes:
    return image.convert("RGB").tobytes()


def test_a_thumbnail_has_the_size_asked_for(ask: Asker) -> None:
    reply = ask.get(asset("Long Film") + "/GETICON?pos=1500&w=320&h=180")
    assert (reply.status, reply.headers["content-type"]) == (200, "image/png")
    image = picture(reply.body)
    assert (image.format, image.size) == ("PNG", (320, 180))
    assert image.info["Title"] == "Long Film"
    assert image.info["TimeCode"] == "00:01:00:00"


def test_the_default_size_is_the_images_own(ask: Asker) -> None:
    assert picture(ask.get(ICON).body).size == (1920, 1080)
    assert picture(ask.get(asset("Studio sound") + "/GETICON").body).size == (640, 360)


def test_pos_counts_from_the_in_point(sim: Simulator, ask: Asker) -> None:
    sim.state.clip("Long Film").home.fields["first_frame"] = "25"
    assert picture(ask.get(asset("Long Film") + "/GETICON?pos=1&w=9&h=9").body).info["TimeCode"] == "00:00:01:01"


def test_parameters_are_drawn(ask: Asker) -> None:
    target = ICON + "?w=320&h=180&param=headline:Hi%3A%20%D0%96%0aagain&param=subline:%26"
    with_params, without = picture(ask.get(target).body), picture(ask.get(ICON + "?w=320&h=180").body)
    assert with_params.info["Params"] == "headline: Hi: Ж\nagain\nsubline: &"
    assert pixels(with_params) != pixels(without)
    assert ask.get(ICON + "?param=nobody:x").status == 400
    assert ask.get(ICON + "?param=headline").status == 400


def test_pictures_are_distinguishable() -> None:
    texts = (("T", "00:00:00:01", ""), ("T", "00:00:00:02", ""), ("T", "00:00:00:01", "a: Ж"), ("S", "00:00:00:01", ""))
    drawn = [
        pixels(picture(draw_png(dict(zip(("Title", "TimeCode", "Params"), each, strict=True)), (321, 5))))
        for each in texts
    ]
    assert len(set(drawn)) == 4


@pytest.mark.parametrize("query", ["w=0", "h=5000", "w=x", "pos=-1", "dur=1.5"])
def test_bad_sizes_and_positions(ask: Asker, query: str) -> None:
    assert ask.get(f"{ICON}?{query}").status == 400


def test_a_proxy_has_bytes_of_its_own(ask: Asker) -> None:
    reply = ask.get(asset("Long Film") + "/WP1")
    assert (reply.status, reply.headers["content-type"]) == (200, "video/mp4")
    assert reply.headers["content-disposition"].startswith("attachment")
    assert reply.body[4:8] == b"ftyp"
    assert reply.body.count(b"Long Film in WP1, frame ") == 1000


def test_pvw_is_for_looking_at(ask: Asker) -> None:
    download, view = ask.get(asset("EP001") + "/WP2"), ask.get(asset("EP001") + "/PVW/WP2")
    assert view.headers["content-disposition"] == "inline"
    assert view.body == download.body


def test_an_unconfigured_profile_is_a_500(sim: Simulator, ask: Asker) -> None:
    assert ask.get(asset("EP001") + "/WP8").status == 500
    sim.state.databases["NEWS"].profiles.append("WP8")
    assert ask.get(asset("EP001") + "/WP8").status == 200
    assert ask.get(asset("Nobody") + "/WP1").status == 404
