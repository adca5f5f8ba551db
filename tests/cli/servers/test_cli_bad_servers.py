"""Servers that do not run, answer with invalid data, or fail during a run: one clear error, nothing half-done."""

from __future__ import annotations

import pytest

from tests.cli.command_line import Desk
from tests.tables import one_fast_in
from tests.wire.raw_server import RawServer, beside, raw

pytestmark = pytest.mark.usefixtures("hurried")
INV = ("-i", "inventory.yml")
PASSWORD = "correct-horse-battery"
TOKEN = "tok-1234567890"


def http(
    body: bytes, status: str = "200 OK", kind: str = "text/xml", *, length: int | None = None
) -> bytes:
    """Return an answer; ``length`` is the declared length, if that is wrong."""
    size = len(body) if length is None else length
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


WRONG_CLIP = b'<Clip link_id="1" finalized="true"><Attr name="title">Another clip</Attr></Clip>'
ANSWERS: dict[str, tuple[bytes, str]] = {
    "html": (http(b"<!DOCTYPE html><html><body>Log in</body></html>", kind="text/html"), "HTML"),
    "garbage": (http(bytes(range(256)) * 4), "encoding"),
    "nothing": (http(b""), "empty"),
    "json": (http(b'{"ok": true}', kind="application/json"), "XML"),
    "half": (http(b'<Clip link_id="1"><Attr na', length=500), "the connection closed"),
    "cut xml": (http(b'<Clip link_id="1"><Attr name="title">EP001</Attr>'), ""),
    "no http": (b"SSH-2.0-OpenSSH_9.6\r\n", "not valid HTTP"),
    "silence and close": (b"", "the connection closed"),
    "dtd": (http(b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/x">]><Clip>&b;</Clip>'), "DTD"),
    "wrong clip": (http(WRONG_CLIP), "Another clip"),
    "401": (http(b"who are you", "401 Unauthorized"), "401"),
    "403": (http(b"no", "403 Forbidden"), "403"),
    "500": (http(b"boom", "500 Internal Server Error"), "boom"),
    "redirect": (b"HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n", "redirects to"),
}  # fmt: skip


@pytest.mark.parametrize("name", one_fast_in(3, ANSWERS))
def test_a_server_that_answers_nonsense(away: Desk, name: str) -> None:
    answer, words = ANSWERS[name]
    with beside(RawServer(raw(answer))) as server:
        auth = {"basic": {"username": "ops", "password": PASSWORD}, "headers": {"X-Key": TOKEN}}
        away.inventory(
            {"studio-a": {"server": {"url": server.url, "auth": auth}, "database": "NEWS"}}
        )
        away.comment("new")
        for command in (
            ("plan",),
            ("apply", "--yes"),
            ("plan", "--format", "json"),
            ("apply", "-y", "-vv"),
        ):
            sourced = away.run(*command, *INV, "play.yml")
            assert sourced.code == 1, sourced
            sourced.one_error()
            assert words.casefold() in sourced.out.casefold(), sourced.out
            assert PASSWORD not in sourced.out + sourced.err
            assert TOKEN not in sourced.out + sourced.err
        sourced = away.run("show", "asset", "EP001", *INV)
        assert sourced.code == 1
        sourced.one_error("studio-a")
        assert not [line for line in server.lines if not line.startswith(b"GET ")]
    ledger = (away.state / "msauto" / "ledger.sqlite").read_bytes()
    assert PASSWORD.encode() not in ledger


def test_another_web_server_is_told_from_an_unknown_name(away: Desk) -> None:
    nothing = http(b"<html>nothing here</html>", "404 Not Found", "text/html")
    with beside(RawServer(raw(nothing))) as server:
        away.inventory({"studio-a": {"server": {"url": server.url}, "database": "NEWS"}})
        for task in ({"asset": {"title": "EP001"}}, {"rss": {"channel": "ticker", "items": []}}):
            away.play(task)
            sourced = away.run("plan", *INV, "play.yml")
            sourced.one_error(
                "not found: no media server answers at", "check the host and the port of `url`"
            )


@pytest.mark.scale
@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://studio.invalid:7901"])
def test_a_thousand_targets_of_an_unreachable_server(away: Desk, url: str) -> None:
    away.inventory(
        {"studio-a": {"server": {"url": url, "timeouts": {"connect": 2}}, "database": "NEWS"}}
    )
    away.play(
        {
            "asset": {"title": "Clip {{ item }}", "fields": {"comment": "x"}},
            "loop": "{{ range(1000) | list }}",
        }
    )
    sourced = away.run("plan", *INV, "play.yml")
    assert sourced.code == 1
    assert sourced.out.count("  error: ") == 1
    assert "1000 targets in error" in sourced.out
    sourced.one_error(f"server studio-a at {url}: ", "→ check")
