"""RSS channels: shapes, files, guids."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from msauto.simulator import SimDialect, Simulator
from tests.unit.simulator.asking import Asker

ITEM = (
    "<item><guid>g-9</guid><title>T &amp; Ж</title><description>D</description><link>http://x/</link></item>".encode()
)


def guids(ask: Asker, channel: str = "ticker") -> list[str]:
    return [guid.text or "" for guid in ask.get(f"/rss/{channel}").xml.iter("guid")]


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


@pytest.mark.parametrize("file", ["a%5Cb.txt", "a%5C%5Cb.txt", "a%5C%2Fb.txt"])
def test_a_backslash_in_a_channel_or_file_is_a_character_like_any_other(sim: Simulator, ask: Asker, file: str) -> None:
    """The backslash rule is for folders and titles alone (interface, «Addresses»)."""
    sim.state.add_channel("a\\b", "T")
    assert ask.ask("PUT", f"/rss/a%5Cb/{file}", b"x").status == 200
    assert [item.file for item in sim.state.channels["a\\b"].items] == [unquote(file)]


def test_put_text(sim: Simulator, ask: Asker) -> None:
    assert ask.ask("PUT", "/rss/ticker/n-2.txt", "Ж\nmore".encode()).status == 200
    item = sim.state.channels["ticker"].items[-1]
    assert (item.guid, item.title, item.description) == ("n-2", "Ж", "Ж\nmore")
    ask.ask("PUT", "/rss/ticker/n-1.txt", b"Fresh")
    assert guids(ask) == ["n-0", "n-1", "n-2"]
    assert sim.state.channels["ticker"].items[1].description == "Fresh"
    assert ask.ask("PUT", "/rss/ticker/bad.txt", b"\xff\xfe\xfd").status == 400


def test_put_a_document(ask: Asker) -> None:
    assert ask.ask("PUT", "/rss/ticker/a%2Fb.xml", ITEM).status == 200
    item = ask.get("/rss/ticker").xml.findall("channel/item")[-1]
    assert [item.findtext(tag) for tag in ("guid", "title", "description", "link")] == [
        "g-9",
        "T & Ж",
        "D",
        "http://x/",
    ]
    assert ask.ask("PUT", "/rss/ticker/a.xml", b"<rss><channel>" + ITEM + b"</channel></rss>").status == 200
    assert ask.ask("PUT", "/rss/ticker/a.xml", b"<nothing/>").status == 400
    assert ask.ask("PUT", "/rss/ticker/a.xml", b"no xml").status == 400


def test_delete_by_guid(ask: Asker) -> None:
    assert ask.ask("DELETE", "/rss/ticker?guid=n-0").status == 200
    assert guids(ask) == ["n-1"]
    assert ask.ask("DELETE", "/rss/ticker?guid=n-0").status == 404
    assert ask.ask("DELETE", "/rss/ticker").status == 400


@pytest.mark.parametrize(
    ("update", "status", "texts"), [("replace", 200, ["B"]), ("duplicate", 200, ["A", "B"]), ("refuse", 409, ["A"])]
)
def test_a_file_put_twice(sim: Simulator, ask: Asker, update: str, status: int, texts: list[str]) -> None:
    sim.state.add_channel("c")
    sim.dialect = SimDialect(rss_update=update)
    assert ask.ask("PUT", "/rss/c/f.txt", b"A").status == 200
    assert ask.ask("PUT", "/rss/c/f.txt", b"B").status == status
    assert [item.title for item in sim.state.channels["c"].items] == texts


def test_what_a_body_is(sim: Simulator, ask: Asker) -> None:
    sim.dialect = SimDialect(rss_body="text")
    ask.ask("PUT", "/rss/ticker/a.xml", ITEM)
    assert sim.state.channels["ticker"].items[-1].description == ITEM.decode()
    sim.dialect = SimDialect(rss_body="item")
    assert ask.ask("PUT", "/rss/ticker/b.txt", b"plain").status == 400
    assert ask.ask("PUT", "/rss/ticker/b.txt", ITEM).status == 200
    assert sim.state.channels["ticker"].items[-1].guid == "g-9"


def test_methods_and_names(ask: Asker) -> None:
    assert ask.ask("PUT", "/rss/nothing/a.txt", b"x").status == 404
    assert ask.ask("POST", "/rss/ticker").status == 405
    assert ask.get("/rss/a/b/c").status == 404
