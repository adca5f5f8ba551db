"""An attacker who answers in place of a server, or writes titles and RSS texts on it: what is possible and what not."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from msauto.plugins.simulator.embedded import Item
from tests.security.security_desk import CANARY, FORMATS, leaks, plan_and_apply, repository, server
from tests.wire.raw_server import RawServer, answer, beside

FLAGS = ("-i", "inventory.yml", "--state-dir", "state")
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x1b[31mred"
TEXT = "\u202egnp\u2066\x9b31m<script>alert(1)</script>|`]()\n# head <img src=x onerror=alert(2)>"
"""What XML can carry: a title or a comment that was written on the server."""
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def laugh(number: int) -> str:
    """Ten times the laugh before it."""
    return f"&l{number - 1};" * 10 if number else "ha" * 50


def document(kind: str, folder: Path) -> bytes:
    """An answer that tries to read files, to grow, or to run deep."""
    laughs = "".join(f"<!ENTITY l{n} '{laugh(n)}'>" for n in range(9))
    file = f"file://{folder}/outside.txt"
    many = " ".join(f"a{number}='x'" for number in range(200_000))
    inclusion = f'<xi:include href="{file}" parse="text"/>'
    return {
        "an external entity": f'<!DOCTYPE Clip [<!ENTITY x SYSTEM "{file}">]><Clip><Attr name="t">&x;</Attr></Clip>',
        "an external DTD": f'<!DOCTYPE Clip SYSTEM "{file}"><Clip/>',
        "a parameter entity": f'<!DOCTYPE Clip [<!ENTITY % x SYSTEM "{file}"> %x;]><Clip/>',
        "a billion laughs": f"<!DOCTYPE Clip [{laughs}]><Clip><Attr name='title'>&l8;</Attr></Clip>",
        "an inclusion": f'<Clip xmlns:xi="http://www.w3.org/2001/XInclude">{inclusion}</Clip>',
        "depth": "<Clip>" * 200_000,
        "many attributes": f"<Clip {many}/>",
        "a page": "<html><form action='/login'></form></html>",
        "noise": "\x00\x01\x02" * 1000,
        "nothing": "",
        "an error": f"Error: {ESCAPES}{TEXT}",
        "a clip of another name": f'<Clip><Attr name="title">{TEXT.replace("<", "&lt;")}</Attr></Clip>',
    }[kind].encode()


KINDS = (
    "an external entity", "an external DTD", "a parameter entity", "a billion laughs", "an inclusion", "depth",
    "many attributes", "a page", "noise", "nothing", "an error",
    "a clip of another name",
)  # fmt: skip


@pytest.mark.scale
@pytest.mark.parametrize("kind", KINDS)
def test_no_answer_reads_a_file_grows_or_breaks_anything(tmp_path: Path, kind: str) -> None:
    with beside(RawServer(answer(200, document(kind, tmp_path)))) as listening:
        desk = repository(tmp_path, listening.url)
        asset = {"title": "Film", "fields": {"comment": "x"}, "xmp": {"dc:title": ["y"]}}
        play = desk.play(
            {"asset": asset}, {"rss": {"channel": "ticker", "items": [{"guid": "n", "text": "t"}]}}
        )
        sourced = [
            desk.run("apply", play, *FLAGS, "--yes"),
            desk.run("show", "asset", "Film", "-i", "inventory.yml"),
        ]
    assert sourced[0].code in {1, 3}
    for each in sourced:
        assert "Traceback" not in each.err
        assert "msauto itself failed" not in each.err
        assert not HARMFUL.search(each.out + each.err)
    assert leaks(desk, sourced, CANARY) == []


class Tags(HTMLParser):
    """Collects the tags and the attributes that could do anything."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.addresses: set[str] = set()
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.found |= {
            name for name, _ in attributes if name.startswith("on") or name in {"src", "action"}
        }
        self.addresses |= {str(value) for name, value in attributes if name == "href"}
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script":
            self.scripts[-1] += data


def test_texts_on_a_server_are_shown_as_texts(tmp_path: Path) -> None:
    """Comments and RSS texts with signs for terminals and tags for browsers, shown in every form."""
    with server() as sim:
        clip = sim.state.clip("Film")
        clip.home.fields["comment"] = TEXT
        clip.xmp["dc:title"] = [TEXT]
        sim.state.channels["ticker"].items[:] = [Item("n.txt", b"", f"g{TEXT}", TEXT, TEXT)]
        desk = repository(tmp_path, sim.url)
        asset = {"title": "Film", "fields": {"comment": f"x{TEXT}"}, "xmp": {"dc:title": ["y"]}}
        items = [{"guid": "n-1", "text": "t"}]
        rss = {"channel": "ticker", "items": items, "exactly": True}
        play = desk.play({"asset": asset}, {"name": f"Task {TEXT}{ESCAPES}", "rss": rss})
        outputs = {
            form: desk.run("plan", play, *FLAGS, "--format", form, "-vv") for form in FORMATS
        }
        sourced = [
            *outputs.values(),
            *(desk.run("show", what, "-i", "inventory.yml") for what in ("assets", "channels")),
        ]
        sourced.append(desk.run("show", "asset", "Film", "-i", "inventory.yml"))
        sourced.append(desk.run("export", "--title", "Film", "-i", "inventory.yml"))
    assert all("alert" in each.out for each in outputs.values())
    for each in sourced:
        assert not HARMFUL.search(each.out + each.err), each
    tags = Tags()
    tags.feed(outputs["html"].out)
    assert not tags.found & {"iframe", "img", "object", "src", "action"}
    assert all(
        address.startswith("#") and not re.search(r"[<>:]", address) for address in tags.addresses
    )
    assert not any(
        "alert" in script and "<" in script for script in tags.scripts
    )  # data, in which it is escaped
    assert not any(name.startswith("on") for name in tags.found)
    assert "<script" not in outputs["markdown"].out
    assert "<img" not in outputs["markdown"].out


@pytest.mark.scale
@pytest.mark.parametrize("way", ["basic", "bearer", "headers"])
def test_what_one_gets_in_with_never_shows(tmp_path: Path, way: str) -> None:
    """Search for the secret in the output of every form, and in every file that is written: state, plan, logs."""
    block = {
        "basic": {"basic": {"username": "ops", "password": CANARY}},
        "bearer": {"bearer": "Canary-7Q-token"},
        "headers": {"headers": {"X-Auth-Token": "Canary-7Q-token"}},
    }[way]
    secret = CANARY if way == "basic" else "Canary-7Q-token"
    switches = {
        "basic": ("auth=basic", f"auth_secret={CANARY}"),
        "bearer": ("auth=bearer", "auth_secret=Canary-7Q-token"),
        "headers": ("auth=header", "auth_secret=Canary-7Q-token"),
    }[way]
    with server(*switches) as sim:
        desk = repository(tmp_path, sim.url, auth=block)
        play = desk.comment("x", "Film")
        sourced = plan_and_apply(desk, play)
        assert any(entry.done for entry in sim.writes()), [each.err for each in sourced]
        sourced.append(desk.run("show", "asset", "Film", "-i", "inventory.yml"))
        sourced.append(desk.run("export", "--title", "Film", "-i", "inventory.yml"))
        sourced.append(desk.run("probe", "-i", "inventory.yml"))
        sim.faults.add("status:500@.")
        sourced += plan_and_apply(desk, play)
    sourced.append(desk.run("plan", play, *FLAGS))  # it is away now
    assert leaks(desk, sourced, secret, spare=frozenset({"inventory.yml"})) == []
