"""Raw paths: what a segment, a title, an NS:ID and a parameter are."""

from __future__ import annotations

from typing import Any

import pytest

from msauto.plugins.simulator.embedded import SimDialect, Simulator
from msauto.plugins.simulator.embedded.wire import (
    MalformedRequestError,
    RequestAddress,
    decode_address,
    decode_percent,
    decode_query,
    split_escaped,
)
from tests.tables import table
from tests.unit.simulator.asking import Asker


@table("addresses/percent", "raw", "plain")
def test_percent_is_decoded_once(raw: str, plain: str) -> None:
    assert decode_percent(raw) == plain


@pytest.mark.parametrize("raw", ["%", "%4", "%zz", "50%", "%D0", "%ff", "%+1"])
def test_a_broken_escape_is_malformed(raw: str) -> None:
    with pytest.raises(MalformedRequestError):
        decode_percent(raw)


@pytest.mark.parametrize("text", ["a\\", "a\\b", "\\"])
def test_a_backslash_that_escapes_nothing_is_malformed(text: str) -> None:
    with pytest.raises(MalformedRequestError):
        split_escaped(text)


@table("addresses/requested", "segments", "address")
def test_addresses(segments: list[str], address: dict[str, Any]) -> None:
    lists = {name: tuple(value) for name, value in address.items() if isinstance(value, list)}
    assert decode_address(segments) == RequestAddress(**{**address, **lists})


def test_query_keeps_duplicates_and_pluses() -> None:
    assert decode_query("a=1&a=2&b=%2Bx+y&c&d=%26=") == [
        ("a", "1"),
        ("a", "2"),
        ("b", "+x+y"),
        ("c", ""),
        ("d", "&="),
    ]


def test_dot_segments_and_double_encoding_stay_as_they_are(sim: Simulator, ask: Asker) -> None:
    sim.state.add_clip("..")
    sim.state.add_clip("%41")
    sim.state.add_clip("A")
    assert b">..<" in ask.get("/storage/NEWS@..").body
    assert b">%41<" in ask.get("/storage/NEWS@%2541").body
    assert [entry.target for entry in sim.log] == ["/storage/NEWS@..", "/storage/NEWS@%2541"]


@pytest.mark.parametrize(
    "target", ["/rss?", "/rss#x", "//rss//", '/storage/NEWS@[x]^`{|}"', "/a%2fb?c=%zz&&=", "*"]
)
def test_any_target_is_logged_as_it_came(sim: Simulator, ask: Asker, target: str) -> None:
    method = "OPTIONS" if target == "*" else "GET"
    ask.raw(f"{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert [entry.target for entry in sim.log] == [target]


def test_a_body_comes_whole(sim: Simulator, ask: Asker) -> None:
    large = bytes(5_000_000)
    ask.ask("PUT", "/rss/ticker/large.txt", large)
    ask.raw(b"PUT /rss/ticker/a.txt HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
            b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n")  # fmt: skip
    told = ask.raw(b"PUT /rss/ticker/b.txt HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n"
                   b"Connection: close\r\n\r\nd")  # fmt: skip
    assert told.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert [entry.body for entry in sim.writes()] == [large, b"abc", b"d"]


def test_an_answer_in_parts(sim: Simulator, ask: Asker) -> None:
    sim.state.clip("Studio A live").recording_since = None  # it grows between two answers
    whole = ask.get("/storage/NEWS")
    assert whole.headers["transfer-encoding"] == "chunked"
    old = ask.raw(b"GET /storage/NEWS HTTP/1.0\r\n\r\n")
    assert old.endswith(b"\r\n\r\n" + whole.body)
    head = ask.raw(b"HEAD /storage/NEWS HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert f"content-length: {len(whole.body)}".encode() in head.lower()
    assert head.endswith(b"\r\n\r\n")


def test_a_long_request_line_is_a_414(sim: Simulator, ask: Asker) -> None:
    sim.dialect = SimDialect(line_limit="100")
    assert ask.get("/rss?" + "x" * 94).status == 200
    assert ask.get("/rss?" + "x" * 96).status == 414
