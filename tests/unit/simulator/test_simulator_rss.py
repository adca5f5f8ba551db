"""RSS channels: shapes, files, guids."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from msauto.simulator import SimDialect, Simulator
from tests.unit.simulator.asking import Asker

ATOM = "{http://www.w3.org/2005/Atom}"
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
    """The interface has the backslash rule for folders and titles alone («Folder»)."""
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


@pytest.mark.parametrize(
    ("kind", "shown"), [("item", ["g-9", "t"]), ("file", ["f.xml", "t.txt"]), ("stem", ["f", "t"])]
)
def test_where_guids_come_from(sim: Simulator, ask: Asker, kind: str, shown: list[str]) -> None:
    sim.state.add_channel("c")
    sim.dialect = SimDialect(rss_guid=kind)
    ask.ask("PUT", "/rss/c/f.xml", ITEM)
    ask.ask("PUT", "/rss/c/t.txt", b"text")
    assert guids(ask, "c") == shown
    assert ask.ask("DELETE", f"/rss/c?guid={shown[0]}").status == 200
    assert guids(ask, "c") == shown[1:]


def test_what_a_body_is(sim: Simulator, ask: Asker) -> None:
    sim.dialect = SimDialect(rss_body="text")
    ask.ask("PUT", "/rss/ticker/a.xml", ITEM)
    assert sim.state.channels["ticker"].items[-1].description == ITEM.decode()
    sim.dialect = SimDialect(rss_body="item")
    assert ask.ask("PUT", "/rss/ticker/b.txt", b"plain").status == 400
    assert ask.ask("PUT", "/rss/ticker/b.txt", ITEM).status == 200
    assert sim.state.channels["ticker"].items[-1].guid == "g-9"


def test_other_shapes(sim: Simulator, ask: Asker) -> None:
    ask.ask("PUT", "/rss/ticker/b.xml", ITEM)
    sim.dialect = SimDialect(rss_shape="atom")
    feed = ask.get("/rss/ticker").xml
    assert feed.tag == f"{ATOM}feed"
    last = feed.findall(f"{ATOM}entry")[-1]
    assert [last.findtext(f"{ATOM}{tag}") for tag in ("id", "title", "summary")] == ["g-9", "T & Ж", "D"]
    sim.dialect = SimDialect(rss_shape="bare")
    assert ask.get("/rss/ticker").xml.tag == "channel"
    sim.dialect = SimDialect(rss_shape="rss_namespaced")
    assert ask.get("/rss/ticker").xml.tag.endswith("}rss")


def test_methods_and_names(ask: Asker) -> None:
    assert ask.ask("PUT", "/rss/nothing/a.txt", b"x").status == 404
    assert ask.ask("POST", "/rss/ticker").status == 405
    assert ask.get("/rss/a/b/c").status == 404


@pytest.mark.parametrize("shape", ["rss", "atom", "rss_namespaced", "bare"])
def test_every_shape_is_xml_in_every_namespace(sim: Simulator, ask: Asker, shape: str) -> None:
    sim.dialect = SimDialect(rss_shape=shape, xml_namespace="default")
    root = ask.get("/rss/ticker").xml  # well-formed: a root that has a namespace of its own keeps it
    assert root.tag.startswith("{")
    assert root.tag.startswith(ATOM) is (shape == "atom")


def test_a_guid_that_several_items_have() -> None:
    for takes, left in (("all", []), ("first", ["n-7"])):
        with Simulator(dialect=SimDialect(rss_delete=takes)) as sim:
            ask = Asker(sim)
            for file in ("n-7.txt", "n-7.xml"):
                ask.ask("PUT", f"/rss/ticker/{file}", b"<item><title>T</title></item>")
            assert guids(ask)[2:] == ["n-7", "n-7"]
            assert ask.ask("DELETE", "/rss/ticker?guid=n-7").status == 200
            assert guids(ask)[2:] == left


def test_an_item_without_a_guid_shows_none(sim: Simulator, ask: Asker) -> None:
    sim.state.channels["ticker"].items[0].guid = ""
    assert guids(ask) == ["n-1"]
    sim.dialect = SimDialect(rss_shape="atom")
    assert len(list(ask.get("/rss/ticker").xml.iter(f"{ATOM}entry"))) == 2
    assert len(list(ask.get("/rss/ticker").xml.iter(f"{ATOM}id"))) == 2, "the feed's, and one item's"
    assert ask.ask("DELETE", "/rss/ticker?guid=").status in {400, 404}
