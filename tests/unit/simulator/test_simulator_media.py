"""Thumbnails and web proxies, opened as what they claim to be."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from msauto.simulator import Simulator
from tests.unit.simulator.asking import Asker, asset

ICON = asset("Lower Third") + "/GETICON"


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


@pytest.mark.parametrize("query", ["w=0", "h=5000", "w=x", "pos=-1", "dur=1.5"])
def test_bad_sizes_and_positions(ask: Asker, query: str) -> None:
    assert ask.get(f"{ICON}?{query}").status == 400


def test_a_proxy_has_bytes_of_its_own(ask: Asker) -> None:
    reply = ask.get(asset("Long Film") + "/WP1")
    assert (reply.status, reply.headers["content-type"]) == (200, "video/mp4")
    assert reply.headers["content-disposition"].startswith("attachment")
    assert reply.body[4:8] == b"ftyp"
    assert reply.body.count(b"Long Film in WP1, frame ") == 1000


def test_an_unconfigured_profile_is_a_500(sim: Simulator, ask: Asker) -> None:
    assert ask.get(asset("EP001") + "/WP8").status == 500
    sim.state.databases["NEWS"].profiles.append("WP8")
    assert ask.get(asset("EP001") + "/WP8").status == 200
    assert ask.get(asset("Nobody") + "/WP1").status == 404
