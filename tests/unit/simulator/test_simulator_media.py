"""Thumbnails and web proxies, opened as what they claim to be."""

from __future__ import annotations

import io
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import av
import av.container
import pytest
from PIL import Image

from msauto.simulator import SimDialect, Simulator
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


def test_a_proxy_is_a_film(ask: Asker) -> None:
    reply = ask.get(asset("Long Film") + "/WP1")
    assert (reply.status, reply.headers["content-type"]) == (200, "video/mp4")
    assert reply.headers["content-disposition"].startswith("attachment")
    with av.open(io.BytesIO(reply.body)) as film:
        assert isinstance(film, av.container.InputContainer)
        stream = film.streams.video[0]
        assert (stream.width, stream.height, stream.average_rate) == (320, 180, Fraction(25))
        frames = list(film.decode(stream))
        assert (len(frames), [frame.pts for frame in frames][-1]) == (50, 49)
        assert len({bytes(frame.planes[0]) for frame in frames}) == 50


def test_pvw_is_for_looking_at(ask: Asker) -> None:
    download, view = ask.get(asset("EP001") + "/WP2"), ask.get(asset("EP001") + "/PVW/WP2")
    assert view.headers["content-disposition"] == "inline"
    assert view.body == download.body


def test_an_unconfigured_profile_is_a_500(sim: Simulator, ask: Asker) -> None:
    assert ask.get(asset("EP001") + "/WP8").status == 500
    sim.state.databases["NEWS"].profiles["WP8"] = (64, 64)
    assert ask.get(asset("EP001") + "/WP8").status == 200
    assert ask.get(asset("Nobody") + "/WP1").status == 404


@pytest.mark.parametrize(
    ("desired", "status", "part"),
    [("bytes=0-9", 206, slice(0, 10)), ("bytes=10-", 206, slice(10, None)), ("bytes=-7", 206, slice(-7, None)),
     ("bytes=5-99999999", 206, slice(5, None)), ("lines=1-2", 200, slice(None))],
)  # fmt: skip
def test_ranges(ask: Asker, desired: str, status: int, part: slice) -> None:
    whole = ask.get(asset("Заставка") + "/WP2").body
    reply = ask.get(asset("Заставка") + "/WP2", Range=desired)
    assert (reply.status, reply.body) == (status, whole[part])
    if status == 206:
        assert reply.headers["content-range"].endswith(f"/{len(whole)}")


def test_a_range_beyond_the_film(ask: Asker) -> None:
    reply = ask.get(asset("Заставка") + "/WP2", Range="bytes=99999999-")
    assert (reply.status, reply.headers["content-range"][:8]) == (416, "bytes */")


FILM = asset("Заставка") + "/WP2"


@pytest.mark.parametrize(
    ("switch", "validator", "status"),
    [("yes", "etag", 206), ("date", "last-modified", 206), ("weak", "etag", 200), ("ignore", "etag", 200),
     ("no", None, 200)],
)  # fmt: skip
def test_a_part_is_given_where_the_file_is_the_same(
    sim: Simulator, ask: Asker, switch: str, validator: str | None, status: int
) -> None:
    sim.dialect = SimDialect(ranges=switch)
    whole = ask.get(FILM)
    assert {"etag", "last-modified"} & set(whole.headers) == ({validator} if validator else set())
    validator_value = whole.headers[validator] if validator else '"any"'
    assert validator_value.startswith("W/") == (switch == "weak")
    reply = ask.get(FILM, Range="bytes=100-", **{"If-Range": validator_value})
    assert (reply.status, reply.body) == (status, whole.body[100:] if status == 206 else whole.body)
    other = ask.get(FILM, Range="bytes=100-", **{"If-Range": '"another"'})
    assert (other.status, other.body) == (200, whole.body), "a changed file is given whole"


def test_a_thumbnail_has_parts_as_well(ask: Asker) -> None:
    whole = ask.get(f"{ICON}?w=32&h=18")
    reply = ask.get(f"{ICON}?w=32&h=18", Range="bytes=10-", **{"If-Range": whole.headers["etag"]})
    assert (reply.status, reply.body) == (206, whole.body[10:])
    assert ask.get(f"{ICON}?w=33&h=18").headers["etag"] != whole.headers["etag"]


def test_making_a_proxy_blocks_no_other_request() -> None:
    with Simulator(proxy_seconds=3000) as sim, socket.create_connection(("127.0.0.1", sim.port)) as waiting:
        waiting.sendall(f"GET {asset('EP002')}/WP2 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        while not sim.log:
            time.sleep(0.01)
        assert Asker(sim).get("/rss").status == 200


def test_a_proxy_is_made_once() -> None:
    with Simulator(proxy_seconds=0.05) as sim, ThreadPoolExecutor() as pool:
        ask = Asker(sim)
        assert len(set(pool.map(lambda _: ask.get(asset("EP002") + "/WP2").body, range(3)))) == 1
