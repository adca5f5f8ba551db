"""What a server asks for when it refuses: another key, another proxy user, or to be left alone for a while."""

from __future__ import annotations

import asyncio

import pytest

from msauto.errors import InDoubtError, RejectedError
from msauto.model.plan import Method, Request
from msauto.model.server import Auth, Secret, ServerSpec
from msauto.server.client import AsyncMediaServer
from tests.tables import table
from tests.wire.raw_server import RawServer, answer, reset
from tests.wire.time_limit import NoWait


def refused(status: int, headers: str) -> tuple[RejectedError, NoWait, int]:
    """Read from a server that refuses; return the error, the waits and the number of requests."""
    clock = NoWait()

    async def main() -> tuple[RejectedError, int]:
        async with RawServer() as server:
            server.behaviours = (answer(status, b"", headers.replace("PORT", str(server.port))),)
            async with AsyncMediaServer(server.url, clock=clock) as client:
                with pytest.raises(RejectedError) as caught:
                    await client.asset("N", "x")
            return caught.value, len(server.lines)

    error, sent = asyncio.run(main())
    return error, clock, sent


def test_how_to_get_in() -> None:
    error, _, _ = refused(401, 'wWW-authenticate: Bearer realm="studio", error="invalid_token"\r\n')
    assert error.message == (
        'the server answered 401: Unauthorized; it requires Bearer realm="studio", error="invalid_token"'
    )


@pytest.mark.parametrize(
    ("status", "method", "auth", "remedy"),
    [
        (401, "GET", Auth(), "requests are sent without an account: set `auth`"),
        (
            401,
            "GET",
            Auth(bearer=Secret("a-token")),
            "the password, token or user name is refused: correct",
        ),
        (403, "GET", Auth(bearer=Secret("a-token")), "the account may not read this"),
        (403, "POST", Auth(bearer=Secret("a-token")), "the account may not write this"),
        (403, "POST", Auth(), "requests are sent without an account: set `auth`"),
    ],
)
def test_what_is_wrong_with_the_account(
    status: int, method: Method, auth: Auth, remedy: str
) -> None:
    async def main() -> RejectedError:
        async with RawServer(answer(status)) as server:
            async with AsyncMediaServer(ServerSpec("studio", server.url, auth=auth)) as client:
                with pytest.raises(RejectedError) as caught:
                    await client.send(Request(method, "/storage/NEWS@a"))
            return caught.value

    assert asyncio.run(main()).remedy.startswith(remedy)


@pytest.mark.parametrize("answered", [True, False])
def test_a_server_that_closes_the_first_connection_may_have_tls(*, answered: bool) -> None:
    async def main() -> InDoubtError:
        async with (
            RawServer(*([answer()] if answered else []), reset) as server,
            AsyncMediaServer(server.url) as client,
        ):
            if answered:
                await client.send(Request("POST", "/storage/NEWS@a"))
            with pytest.raises(InDoubtError) as caught:
                await client.send(Request("POST", "/storage/NEWS@a"))
        return caught.value

    assert ("write https:// in its `url`" in asyncio.run(main()).remedy) is not answered


@pytest.mark.parametrize(
    "text",
    [
        "400 The plain HTTP request was sent to HTTPS port",
        "Client sent an HTTP request to an HTTPS server.",
    ],
)
def test_a_server_that_has_tls_and_gets_plain_http(text: str) -> None:
    async def main() -> RejectedError:
        async with (
            RawServer(answer(400, text.encode())) as server,
            AsyncMediaServer(server.url) as client,
        ):
            with pytest.raises(RejectedError) as caught:
                await client.asset("N", "x")
        return caught.value

    assert asyncio.run(main()).remedy == "write https:// in the server's `url`"


def test_a_proxy_that_lets_nobody_in() -> None:
    error, _, _ = refused(407, "")
    assert "a proxy on the way requires authentication" in error.remedy


@table("server/redirects", "location", "remedy")
@pytest.mark.parametrize("status", [301, 302, 307])
def test_where_a_redirect_leads(status: int, location: str, remedy: str) -> None:
    error, clock, sent = refused(status, f"Location: {location}\r\n" if location else "")
    assert (sent, clock.pauses) == (1, [])
    assert "redirects are not followed" in error.message
    assert remedy in error.remedy
    assert "geheim" not in error.remedy


@pytest.mark.parametrize("asked", ["7", "Fri, 20 Nov 2026 12:00:07 GMT"])
def test_a_short_wait_is_kept(asked: str) -> None:
    _, clock, sent = refused(503, f"Retry-After: {asked}\r\n")
    assert (sent, clock.pauses) == (4, [7.0, 7.0, 7.0])


@table("server/long_waits", "asked", "told")
@pytest.mark.parametrize("status", [429, 503])
def test_nobody_waits_for_hours(status: int, asked: str, told: str) -> None:
    error, clock, sent = refused(status, f"Retry-After: {asked}\r\n")
    assert (sent, clock.pauses) == (1, [])
    assert error.remedy.endswith(f"(it asks to wait {told})")


@pytest.mark.parametrize(
    "asked", ["-5", "soon", "", "Wed, 21 Oct 2015 07:28:00 GMT", "Thu, 99 Foo 2026 99:99:99 GMT"]
)
def test_what_asks_for_no_time_is_tried_again_as_ever(asked: str) -> None:
    error, clock, sent = refused(503, f"Retry-After: {asked}\r\n")
    assert (sent, len(clock.pauses), max(clock.pauses) < 2) == (4, 3, True)
    assert "left alone" not in error.remedy
