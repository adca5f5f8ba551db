"""The simulator as programs see it that know nothing of msauto: is it a fair stand-in for a media server?

Each is skipped, with the reason, where the program is not installed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from PIL import Image

from msauto.simulator import SimDialect, Simulator, state_from_seed
from tests.clients.programs import run

pytestmark = pytest.mark.scale

FILM = "/storage/NEWS@Long%20Film"
NEWS_OF_THE_DAY = "/storage/NEWS@%D0%9D%D0%BE%D0%B2%D0%BE%D1%81%D1%82%D0%B8%20%D0%B4%D0%BD%D1%8F"
PROMO = "/storage/NEWS@Promo%201"


@pytest.fixture
def sim() -> Iterator[Simulator]:
    with Simulator(state_from_seed("sample")) as simulator:
        yield simulator


# curl ----------------------------------------------------------------------------------------------------------


def curl(sim: Simulator, target: str, *words: str, expect: int = 0) -> bytes:
    return run("curl", "-sS", "--max-time", "30", *words, sim.url + target, expect=(expect,))


def test_curl_reads_a_clip_and_a_listing(sim: Simulator) -> None:
    clip = ET.fromstring(curl(sim, NEWS_OF_THE_DAY, "--fail"))
    assert (clip.tag, clip.get("folder")) == ("Clip", r"A\/B Tests")
    assert clip.findtext("Attr[@name='title']") == "Новости дня"
    for shape, root in (("StoredTree", "StoredTree"), ("mam", "mam"), ("folderlist", "StoredTree")):
        assert ET.fromstring(curl(sim, f"/storage/NEWS/Films?format={shape}", "--fail")).tag == root
    assert ET.fromstring(curl(sim, "/storage", "--fail", "--compressed")).tag == "Databases"


@pytest.mark.parametrize("version", ["--http1.0", "--http1.1"])
def test_curl_writes_what_is_then_there(sim: Simulator, version: str) -> None:
    curl(sim, f"{FILM}?command=SETFIELD&name=comment&val=1%2B1%20%26", "--fail", version, "-X", "POST")
    assert sim.state.clip("Long Film").home.fields["comment"] == "1+1 &"
    sim.dialect = SimDialect(plus="space")  # as forms have it: what curl makes of a blank in --data-urlencode
    sourced = ("command=SETFIELD", "name=comment", "val=Ready, 50% & 1+1")
    words = [word for each in sourced for word in ("--data-urlencode", each)]
    curl(sim, FILM, "--fail", version, "-G", "-X", "POST", *words)
    assert sim.state.clip("Long Film").home.fields["comment"] == "Ready, 50% & 1+1"


def test_curl_uploads_an_item_with_expect_100_and_in_chunks(sim: Simulator, tmp_path: Path) -> None:
    file = tmp_path / "n-9.txt"
    file.write_text("Заголовок\n" + "long text " * 20_000, encoding="utf-8")
    curl(sim, "/rss/ticker/n-9.txt", "--fail", "-T", str(file), "-H", "Expect: 100-continue")
    curl(sim, "/rss/ticker/n-8.txt", "--fail", "-T", str(file), "-H", "Transfer-Encoding: chunked")
    bodies = {item.file: item.body for item in sim.state.channels["ticker"].items}
    assert bodies["n-9.txt"] == bodies["n-8.txt"] == file.read_bytes()
    curl(sim, "/rss/ticker?guid=n-9", "--fail", "-X", "DELETE")
    assert "n-9.txt" not in {item.file for item in sim.state.channels["ticker"].items}


def test_curl_is_told_what_is_not_there(sim: Simulator) -> None:
    curl(sim, "/storage/NEWS@Nobody", "--fail", expect=22)
    assert curl(sim, "/storage/NEWS@Nobody").startswith(b"Object not found")
    assert curl(sim, f"{FILM}/WP8", "-o", "/dev/null", "-w", "%{http_code}") == b"500"


def test_curl_heads(sim: Simulator) -> None:
    assert b"content-type: text/xml" in curl(sim, FILM, "--head", "--fail").lower()


def test_curl_gets_in(sim: Simulator) -> None:
    sim.dialect = SimDialect(auth="basic")
    curl(sim, FILM, "--fail", expect=22)
    curl(sim, FILM, "--fail", "-u", "ops:secret")
    sim.dialect = SimDialect(auth="bearer")
    curl(sim, FILM, "--fail", "--oauth2-bearer", "secret")


# feedparser ----------------------------------------------------------------------------------------------------


def feed(sim: Simulator, channel: str = "weather") -> Any:
    feedparser = pytest.importorskip("feedparser", reason="feedparser is not installed (pip install feedparser)")
    return feedparser.parse(curl_free(sim, f"/rss/{channel}"))


def curl_free(sim: Simulator, target: str) -> bytes:
    from urllib.request import urlopen

    with urlopen(sim.url + target, timeout=30) as answer:
        body: bytes = answer.read()
    return body


@pytest.mark.parametrize("encoding", ["utf-8", "windows-1251", "koi8-r", "utf-16"])
@pytest.mark.parametrize("shape", ["rss", "atom"])
def test_feedparser_reads_every_channel(sim: Simulator, shape: str, encoding: str) -> None:
    sim.dialect = SimDialect(rss_shape=shape, xml_encoding=encoding)
    found = feed(sim)
    assert not found.bozo, found.get("bozo_exception")
    assert found.version == {"rss": "rss20", "atom": "atom10"}[shape]
    assert found.feed.title == "Погода"
    assert [(entry.id, entry.title, entry.summary) for entry in found.entries] == [
        ("oslo", "Oslo", "−4 °C, snø"),
        ("moscow", "Москва: −7", "Москва: −7"),
    ]


@pytest.mark.parametrize("shape", ["rss", "atom"])
def test_feedparser_reads_what_was_put(sim: Simulator, shape: str) -> None:
    from urllib.request import Request, urlopen

    body = "<item><guid>g</guid><title>T &amp; «Ж»</title><link>http://x/?a=1&amp;b=2</link></item>"
    request = Request(f"{sim.url}/rss/weather/g.xml", body.encode(), method="PUT")
    urlopen(request, timeout=30).close()
    sim.dialect = SimDialect(rss_shape=shape)
    entry = feed(sim).entries[-1]
    assert (entry.id, entry.title, entry.link) == ("g", "T & «Ж»", "http://x/?a=1&b=2")


# A media player's probe, a PNG checker -------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["WP1", "WP2", "PVW/WP1"])
def test_ffprobe_knows_a_proxy_for_a_film(sim: Simulator, profile: str) -> None:
    told = run(
        "ffprobe", "-v", "error", "-show_streams", "-show_format", "-count_frames", "-of", "json",
        f"{sim.url}{PROMO}/{profile}",
    )  # fmt: skip
    sourced = json.loads(told)
    (video,) = [stream for stream in sourced["streams"] if stream["codec_type"] == "video"]
    assert (video["width"], video["height"]) == ((160, 90) if profile == "WP2" else (320, 180))
    assert "mp4" in sourced["format"]["format_name"]
    assert video["r_frame_rate"] == "25/1"
    assert int(video["nb_read_frames"]) > 0


def test_ffprobe_is_told_that_a_profile_is_missing(sim: Simulator) -> None:
    run("ffprobe", "-v", "error", f"{sim.url}{PROMO}/WP8", expect=(1,))


@pytest.mark.parametrize("query", ["", "?pos=1500", "?w=33&h=17", "?w=320&h=180&pos=0"])
def test_a_png_checker_finds_no_fault_in_a_thumbnail(sim: Simulator, query: str, tmp_path: Path) -> None:
    body = curl_free(sim, f"{FILM}/GETICON{query}")
    Image.open(BytesIO(body)).verify()
    file = tmp_path / "still.png"
    file.write_bytes(body)
    assert b"OK" in run("pngcheck", str(file))


# Ansible -------------------------------------------------------------------------------------------------------


def test_ansible_plays_a_small_playbook_by_its_uri_module(sim: Simulator, tmp_path: Path) -> None:
    still = tmp_path / "still.png"
    sourced = {"base_url": sim.url, "still": str(still), "ansible_python_interpreter": sys.executable}
    run(
        "ansible-playbook", "-i", "localhost,", "-e", json.dumps(sourced),
        str(Path(__file__).with_name("story.yml")),
        HOME=str(tmp_path), ANSIBLE_NOCOLOR="1", ANSIBLE_LOCALHOST_WARNING="false",
    )  # fmt: skip
    film = sim.state.clip("Long Film")
    assert film.home.fields["comment"] == "Ready, 50% & more"
    assert [(marker.pos, marker.fields["title"]) for marker in film.markers] == [(250, "Ad")]
    items = {item.file: item for item in sim.state.channels["ticker"].items}
    assert sorted(items) == ["n-1.txt", "n-9.txt"]
    assert items["n-9.txt"].description == "Новости\nдня"
    assert sim.state.databases["NEWS"].find("Promo 1") is None
    assert Image.open(BytesIO(still.read_bytes())).size == (160, 90)
