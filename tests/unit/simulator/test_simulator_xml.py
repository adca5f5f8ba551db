"""The frame around an XML answer: encodings, wrappers, line ends, namespaces, oddities."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from msauto.simulator import SimDialect, Simulator
from msauto.simulator.answers import escape_attribute, escape_text
from tests.unit.simulator.asking import Asker, asset

TITLE = "Новости дня"


def test_the_default_frame(ask: Asker) -> None:
    reply = ask.get(asset(TITLE))
    assert reply.headers["content-type"] == "text/xml; charset=utf-8"
    assert reply.body.startswith(b'<?xml version="1.0" encoding="utf-8"?>\n<Clip ')
    assert reply.body.endswith(b"</Clip>")


@pytest.mark.parametrize("encoding", ["utf-8", "windows-1251", "koi8-r", "utf-16"])
def test_encodings(sim: Simulator, ask: Asker, encoding: str) -> None:
    sim.state.clip(TITLE).home.fields["comment"] = "日本 №"
    sim.dialect = SimDialect(xml_encoding=encoding)
    body = ask.get(asset(TITLE)).body
    decoded = body.decode(encoding)
    assert decoded.startswith(f'<?xml version="1.0" encoding="{encoding}"?>')
    assert TITLE in decoded
    assert ("&#26085;" in decoded) is (encoding in ("windows-1251", "koi8-r"))
    shown = ET.fromstring(body)
    assert shown.findtext("Attr[@name='comment']") == "日本 №"


def test_a_long_listing_in_another_encoding(sim: Simulator, ask: Asker) -> None:
    for number in range(300):
        sim.state.add_clip(f"Новость {number} 日", "Много")
    sim.dialect = SimDialect(xml_encoding="utf-16", xml_wrapper="xml")
    root = ask.get("/storage/NEWS/%D0%9C%D0%BD%D0%BE%D0%B3%D0%BE").xml
    assert len(root.findall(".//Clip")) == 300


def test_wrappers(sim: Simulator, ask: Asker) -> None:
    sim.dialect = SimDialect(xml_wrapper="xml")
    for target in (asset(TITLE), "/storage/NEWS", "/storage", "/rss/ticker"):
        assert ask.get(target).xml.tag == "xml"
    sim.dialect = SimDialect(xml_wrapper="stray_end")
    body = ask.get("/storage/NEWS/Films").body
    assert body.endswith(b"</StoredTree>\n</xml>")
    with pytest.raises(ET.ParseError):
        ET.fromstring(body)


def test_namespaces(sim: Simulator, ask: Asker) -> None:
    sim.dialect = SimDialect(xml_namespace="default")
    for target, root in ((asset(TITLE), "Clip"), ("/storage/NEWS/Films", "StoredTree"), ("/rss", "channels")):
        reply = ask.get(target)
        assert reply.xml.tag == f"{{urn:media-storage:1}}{root}"


AWKWARD = "a<b>&\"'\n\r\n\té\x00\x1b\ud800\ufffe]]>"


def test_escaping_survives_a_parser() -> None:
    root = ET.fromstring(f'<r a="{escape_attribute(AWKWARD)}">{escape_text(AWKWARD)}</r>')
    expected = "a<b>&\"'\n\r\n\té\ufffd\ufffd\ufffd\ufffd]]>"
    assert root.get("a") == expected
    assert root.text == expected
