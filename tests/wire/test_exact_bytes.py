"""What leaves is byte for byte what was built: no library on the way may improve it."""

from __future__ import annotations

import asyncio

import pytest

from msauto.errors import RejectedError
from msauto.model import requests
from msauto.model.plan import Address, Body, Request
from msauto.model.requests import asset_path
from msauto.model.server import Auth, Secret, ServerSpec
from msauto.server.client import AsyncMediaServer
from tests.tables import table
from tests.wire.raw_server import OK, Exchange, RawServer, answer

ALWAYS_SENT = {"host", "user-agent", "accept", "accept-encoding"}


async def sent(request: Request, auth: Auth | None = None) -> Exchange:
    async with RawServer(OK) as server:
        spec = ServerSpec("raw", server.url, auth=auth or Auth())
        async with AsyncMediaServer(spec) as client:
            await client.send(request)
    (exchange,) = server.exchanges
    return exchange


@table("addresses/awkward_targets", "path")
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_request_target_arrives_byte_for_byte(method: str, path: str) -> None:
    request = Request(method, path)  # type: ignore[arg-type]
    assert asyncio.run(sent(request)).line == f"{method} {path} HTTP/1.1".encode()


def test_body_and_its_type_arrive_unharmed() -> None:
    body = Body.of("Заголовок\r\n".encode(), "text/plain; charset=utf-8")
    exchange = asyncio.run(sent(requests.put_rss("ticker", "n 1.txt", body)))
    assert exchange.line == b"PUT /rss/ticker/n%201.txt HTTP/1.1"
    assert exchange.body == "Заголовок\r\n".encode()
    assert exchange.headers["content-type"] == "text/plain; charset=utf-8"
    assert exchange.headers["content-length"] == str(len(exchange.body))


def test_write_without_body_has_no_type_and_no_length_but_nought() -> None:
    exchange = asyncio.run(sent(requests.restore(asset_path("NEWS", Address("x")))))
    assert set(exchange.headers) == {*ALWAYS_SENT, "content-length"}
    assert exchange.headers["content-length"] == "0"
    assert exchange.body == b""


def test_read_has_no_header_that_aiohttp_would_add() -> None:
    exchange = asyncio.run(sent(Request("GET", "/rss")))
    assert set(exchange.headers) == ALWAYS_SENT
    assert exchange.headers["user-agent"].startswith("msauto/")


@pytest.mark.parametrize(
    ("auth", "name", "value"),
    [
        (
            Auth(username="ops", password=Secret("geheim ü")),
            "authorization",
            "Basic b3BzOmdlaGVpbSDDvA==",
        ),
        (Auth(bearer=Secret("t0ken")), "authorization", "Bearer t0ken"),
        (Auth(headers=(("X-Auth-Token", Secret("schlüssel")),)), "x-auth-token", "schlüssel"),
    ],
)
def test_authentication_is_sent_with_the_first_request(auth: Auth, name: str, value: str) -> None:
    assert asyncio.run(sent(Request("GET", "/rss"), auth)).headers[name] == value


def test_no_cookie_is_kept_and_no_redirect_followed() -> None:
    async def main() -> RawServer:
        cookie = answer(200, b"", "Set-Cookie: a=b\r\n")
        moved = answer(302, b"", "Location: /elsewhere\r\nSet-Cookie: c=d\r\n")
        async with RawServer(cookie, moved) as server, AsyncMediaServer(server.url) as client:
            await client.send(Request("POST", "/storage/N@x"))
            with pytest.raises(RejectedError, match="redirects to /elsewhere") as caught:
                await client.send(Request("POST", "/storage/N@x"))
            assert caught.value.status == 302
        return server

    server = asyncio.run(main())
    assert len(server.exchanges) == 2
    assert "cookie" not in server.exchanges[1].headers


def test_environment_proxies_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert asyncio.run(sent(Request("GET", "/rss"))).target == b"/rss"
