"""Getting in: a real TLS server with its own authority, client certificates, proxies, limits. Against raw sockets."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from msauto.errors import InDoubtError, MsautoError, NotSentError
from msauto.model.plan import Request
from msauto.model.server import Auth, Secret, ServerSpec, Timeouts, Tls
from msauto.server.client import AsyncMediaServer
from tests.wire.authority import PASSWORD, Authority
from tests.wire.raw_server import OK, RawServer
from tests.wire.time_limit import NoWait, run_patiently, silence

PATH = "/storage/NEWS@a%5C%2Fb%40%20%D0%B6?command=SETFIELD&name=comment&val=%2e%2E"
WRITE = Request("POST", PATH)


@pytest.fixture(scope="module")
def house_ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    authority = Authority(tmp_path_factory.mktemp("house"), "house-ca").start()
    authority.issue("server")
    authority.issue("elsewhere", "elsewhere.example")
    authority.issue("client")
    authority.issue("locked", password=PASSWORD)
    authority.issue("old", days=-1)
    return authority


@pytest.fixture(scope="module")
def other_ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    authority = Authority(tmp_path_factory.mktemp("other"), "other-ca").start()
    authority.issue("client")
    return authority


def pem(authority: Authority, name: str) -> str:
    return str(authority.folder / f"{name}.pem")


def send(tls: Tls, context: ssl.SSLContext, auth: Auth = Auth()) -> RawServer:
    async def main() -> RawServer:
        async with RawServer(OK, tls=context) as server:
            spec = ServerSpec("studio", server.url, tls=tls, auth=auth)
            try:
                async with AsyncMediaServer(spec) as client:
                    await client.send(WRITE)
            except MsautoError as error:
                error.add_note(f"{len(server.exchanges)} requests were seen")
                raise
            return server

    return asyncio.run(main())


# TLS ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trust", ["a private authority", "anybody"])
def test_server_that_is_trusted(house_ca: Authority, trust: str) -> None:
    context = house_ca.server_context(pem(house_ca, "server"))
    auth = Auth(username="ops", password=Secret("geheim"))
    server = send(Tls(verify=False) if trust == "anybody" else Tls(ca=house_ca.ca), context, auth)
    assert server.lines == [f"POST {PATH} HTTP/1.1".encode()]
    assert (
        server.exchanges[0].headers["authorization"]
        == "Basic " + base64.b64encode(b"ops:geheim").decode()
    )


@pytest.mark.parametrize("trust", ["nobody", "another", "another name", "expired"])
def test_server_that_cannot_be_trusted_sees_nothing(
    house_ca: Authority, other_ca: Authority, trust: str
) -> None:
    name = {"another name": "elsewhere", "expired": "old"}.get(trust, "server")
    tls = {"nobody": Tls(), "another": Tls(ca=other_ca.ca)}.get(trust, Tls(ca=house_ca.ca))
    with pytest.raises(NotSentError, match="no secure connection") as caught:
        send(tls, house_ca.server_context(pem(house_ca, name)))
    assert "`tls`" in caught.value.remedy
    assert caught.value.__notes__ == ["0 requests were seen"]


@pytest.mark.parametrize("own", ["client", "locked"])
def test_client_certificate_lets_in(house_ca: Authority, own: str) -> None:
    context = house_ca.server_context(pem(house_ca, "server"), clients_of=house_ca)
    password = Secret(PASSWORD) if own == "locked" else None
    server = send(Tls(ca=house_ca.ca, cert=pem(house_ca, own), key_password=password), context)
    assert len(server.exchanges) == 1


@pytest.mark.parametrize("own", ["none", "of another authority", "expired"])
def test_without_the_right_client_certificate_nothing_is_done(
    house_ca: Authority, other_ca: Authority, own: str
) -> None:
    # With TLS 1.3 the server says no only after the handshake, when the request may have left: fate unknown is right.
    context = house_ca.server_context(pem(house_ca, "server"), clients_of=house_ca)
    cert = {"of another authority": pem(other_ca, "client"), "expired": pem(house_ca, "old")}.get(
        own
    )
    with pytest.raises((NotSentError, InDoubtError)) as caught:
        send(Tls(ca=house_ca.ca, cert=cert), context)
    assert caught.value.__notes__ == ["0 requests were seen"]
    assert "`tls`" in caught.value.remedy
    assert "not permitted" not in caught.value.message, "OpenSSL's number is not one of the system"


@pytest.mark.parametrize("password", [None, Secret("wrong one")])
def test_locked_key_is_an_error_and_never_a_question(
    house_ca: Authority, password: Secret | None
) -> None:
    tls = Tls(ca=house_ca.ca, cert=pem(house_ca, "locked"), key_password=password)
    with pytest.raises(NotSentError, match="TLS files") as caught:
        AsyncMediaServer(ServerSpec("studio", "https://studio", tls=tls))
    assert "key_password" in caught.value.remedy
    assert "wrong one" not in str(caught.value)


def test_certificate_without_a_key(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text(
        "-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n"
    )
    with pytest.raises(NotSentError, match="TLS files"):
        AsyncMediaServer(
            ServerSpec("studio", "https://studio", tls=Tls(cert=str(tmp_path / "cert.pem")))
        )


# Limits of one server -------------------------------------------------------------------------------------------


def test_each_kind_of_request_has_its_own_time() -> None:
    seen: list[float] = []

    async def main() -> None:
        async with RawServer(silence(50)) as server:
            times = Timeouts(connect=100, read=5, listing=30, proxy=900)
            async with AsyncMediaServer(ServerSpec("studio", server.url, timeouts=times)) as client:
                loop = asyncio.get_running_loop()
                for request in (WRITE, Request("PUT", "/storage/NEWS?connector=C")):
                    begun = loop.time()
                    with pytest.raises(InDoubtError, match="within the time allowed"):
                        await client.send(request)
                    seen.append(loop.time() - begun)

    run_patiently(main())
    assert 5 <= seen[0] < 30 <= seen[1] < 50


TIMES = Timeouts(connect=100, read=4, listing=5, proxy=6)
BATCH = Request("PUT", "/storage/NEWS?connector=C")
KINDS: dict[str, tuple[str, Callable[[AsyncMediaServer, Path], Awaitable[object]]]] = {
    "asset": ("read", lambda client, _: client.asset("NEWS", "x")),
    "write": ("read", lambda client, _: client.send(WRITE)),
    "batch": ("listing", lambda client, _: client.send(BATCH)),
    "folder": ("listing", lambda client, _: client.list("NEWS")),
    "databases": ("listing", lambda client, _: client.databases()),
    "thumbnail": ("read", lambda client, _: client.thumbnail("NEWS", "x")),
    "proxy": (
        "proxy",
        lambda client, folder: client.download_proxy("NEWS", "x", "WP1", folder / "x.mp4"),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_that_does_not_come_names_its_own_time_out(kind: str, tmp_path: Path) -> None:
    setting, ask = KINDS[kind]

    async def main() -> InDoubtError:
        async with RawServer(silence(10)) as server:
            spec = ServerSpec("studio", server.url, timeouts=TIMES)
            async with AsyncMediaServer(spec, clock=NoWait()) as client:
                with pytest.raises(InDoubtError) as caught:
                    await ask(client, tmp_path)
        return caught.value

    error = run_patiently(main())
    assert str(error).startswith("server studio at http")
    assert f"raise `timeouts.{setting}`" in error.remedy, error
