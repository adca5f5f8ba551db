"""Authentication by the real command, through TLS with a private authority: accepted, refused, and the messages.

No output contains a secret, nor does the ledger.
"""

from __future__ import annotations

import base64
from typing import Any

import pytest

from msauto.plugins.simulator.embedded import Simulator
from tests.cli.command_line import Desk, Said
from tests.tables import one_fast_in
from tests.wire.authority import PASSWORD, Authority
from tests.wire.front_door import FrontDoor

INV = ("-i", "inventory.yml")
SECRET = "correct-hörse-battery"
WRONG = "wrong-hörse-battery"
pytestmark = pytest.mark.usefixtures("hurried")


def basic(password: str = SECRET, user: str = "öps") -> bytes:
    return b"Authorization: Basic " + base64.b64encode(f"{user}:{password}".encode())


@pytest.fixture(scope="module")
def house_ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    authority = Authority(tmp_path_factory.mktemp("house"), "house-ca").start()
    authority.issue("server")
    authority.issue("client")
    authority.issue("locked", password=PASSWORD)
    authority.issue("elsewhere", "elsewhere.example")
    authority.issue("old", days=-1)
    return authority


def pem(authority: Authority, name: str) -> str:
    return str(authority.folder / f"{name}.pem")


def door(
    sim: Simulator,
    authority: Authority,
    own: str = "server",
    *,
    key: bytes = b"",
    ask: bool = False,
) -> FrontDoor:
    context = authority.server_context(pem(authority, own), clients_of=authority if ask else None)
    return FrontDoor(sim.url, tls=context, key=key)


def host(desk: Desk, url: str, **block: Any) -> None:
    desk.inventory({"studio-a": {"server": {"url": url, **block}, "database": "NEWS"}})
    desk.environment["STUDIO_SECRET"] = SECRET
    desk.comment("new")


def all_commands(desk: Desk) -> list[Said]:
    """Plan, apply and show; neither their output nor the ledger contains a secret."""
    outputs = [
        desk.run("plan", "-vv", *INV, "play.yml"),
        desk.run("apply", "-y", "-vv", *INV, "play.yml"),
        desk.run("show", "asset", "EP001", *INV, "--format", "json"),
    ]
    shown = [f"{output.out}{output.err}".encode() for output in outputs]
    kept = [file.read_bytes() for file in desk.state.rglob("*") if file.is_file()]
    pair = base64.b64encode(f"öps:{SECRET}".encode()).decode()
    for hidden in (SECRET, WRONG, PASSWORD, pair):
        for data in shown + kept:
            assert hidden.encode() not in data
    return outputs


def is_in(desk: Desk, sim: Simulator) -> None:
    assert [each.code for each in all_commands(desk)] == [0, 0, 0]
    assert sim.state.clip("EP001").home.fields["comment"] == "new"


def is_out(desk: Desk, sim: Simulator, *words: str) -> None:
    for each in all_commands(desk):
        assert each.code == 1, each
        each.one_error("studio-a", "→", *words)
    assert sim.log == []


# What authenticates ----------------------------------------------------------------------------------------------


def secret_file(desk: Desk, text: str) -> str:
    return desk.write("secrets/studio", f"{text}\n")


WAYS: dict[str, tuple[dict[str, Any], bytes]] = {
    "basic": ({"basic": {"username": "öps", "password": "{{ env.STUDIO_SECRET }}"}}, basic()),
    "basic file": ({"basic": {"username": "öps", "password_file": "secrets/studio"}}, basic()),
    "bearer": ({"bearer": "{{ env.STUDIO_SECRET }}"}, f"Authorization: Bearer {SECRET}".encode()),
    "bearer file": ({"bearer_file": "secrets/studio"}, f"Authorization: Bearer {SECRET}".encode()),
    "header": ({"headers": {"X-Key": "{{ env.STUDIO_SECRET }}"}}, f"X-Key: {SECRET}".encode()),
}


@pytest.mark.parametrize("way", one_fast_in(2, WAYS))
@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong"])
def test_the_door_looks_at_the_very_bytes(
    desk: Desk, sim: Simulator, house_ca: Authority, way: str, right: bool
) -> None:
    auth, key = WAYS[way]
    secret_file(desk, SECRET if right else WRONG)
    with door(sim, house_ca, key=key) as front:
        host(desk, front.url, auth=auth, tls={"ca": house_ca.ca})
        desk.environment["STUDIO_SECRET"] = SECRET if right else WRONG
        if right:
            is_in(desk, sim)
            assert front.refused == 0
        else:
            is_out(desk, sim, "401", "refused: correct `auth`", "Basic realm=studio")
            assert front.refused == 3  # once for each command: asking on could lock the account


def test_a_secret_that_is_not_there_is_told_before_anything_is_sent(
    desk: Desk, sim: Simulator
) -> None:
    for auth, words in (
        ({"bearer": "{{ env.NOT_SET }}"}, "NOT_SET"),
        ({"bearer_file": "secrets/none"}, "secrets/none"),
    ):
        host(desk, sim.url, auth=auth)
        for each in all_commands(desk):
            assert each.code == 1
            each.one_error("inventory.yml:", words)
    assert sim.log == []


# TLS -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("own", ["client", "locked"])
def test_a_client_certificate_lets_in(
    desk: Desk, sim: Simulator, house_ca: Authority, own: str
) -> None:
    tls = {"ca": house_ca.ca, "cert": pem(house_ca, own)}
    tls |= {"key_password": "{{ env.KEY }}"} if own == "locked" else {}
    desk.environment["KEY"] = PASSWORD
    with door(sim, house_ca, ask=True) as front:
        host(desk, front.url, tls=tls)
        is_in(desk, sim)


@pytest.mark.scale
@pytest.mark.parametrize("trusted", [True, False], ids=["trusted", "not trusted"])
def test_without_an_authority_those_of_the_system_decide(
    desk: Desk, sim: Simulator, house_ca: Authority, trusted: bool
) -> None:
    desk.environment |= {"SSL_CERT_FILE": house_ca.ca} if trusted else {}
    with door(sim, house_ca) as front:
        host(desk, front.url)
        said = desk.spawn("plan", *INV, "play.yml")
        if trusted:
            assert (said.code, said.err) == (0, "")
        else:
            said.one_error("studio-a", "certificate", "→")
    assert (sim.log != []) is trusted


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_an_authority_that_is_no_file_of_one(
    desk: Desk, sim: Simulator, content: bytes | None
) -> None:
    if content is not None:
        desk.write("ca.pem", content)
    host(desk, "https://127.0.0.1:1", tls={"ca": "ca.pem"})
    why = "path" if content is None else "PEM"
    is_out(desk, sim, "the TLS files cannot be used (ca: ca.pem, inventory.yml:7:15)", why)


# Connections -----------------------------------------------------------------------------------------------------


@pytest.mark.scale
@pytest.mark.parametrize("limit", [1, 3])
def test_no_more_requests_at_once_than_connections(desk: Desk, sim: Simulator, limit: int) -> None:
    desk.play(
        {
            "asset": {"title": "{{ item }}", "fields": {"comment": "new"}},
            "loop": [f"EP00{n}" for n in range(1, 10)],
        }
    )
    with FrontDoor(sim.url) as front:
        desk.inventory(
            {"studio-a": {"server": {"url": front.url, "connections": limit}, "database": "NEWS"}}
        )
        assert desk.run("plan", "-f", "8", *INV, "play.yml").code == 0
        assert front.most == {"reads": limit}
        assert desk.run("apply", "-y", "-f", "8", *INV, "play.yml").code == 0
        assert front.most == {"reads": limit, "writes": limit}
    assert len(sim.writes()) == 9


# The keyring -----------------------------------------------------------------------------------------------------


def test_the_keyring_itself(desk: Desk, sim: Simulator) -> None:
    keyring = pytest.importorskip("keyring")
    backend = pytest.importorskip("keyring.backend")

    class Remembering(backend.KeyringBackend):  # type: ignore[misc, name-defined]
        priority = 1

        def get_password(self, service: str, username: str) -> str | None:
            return SECRET if (service, username) == ("msauto", "öps") else None

        def set_password(self, service: str, username: str, password: str) -> None:
            raise NotImplementedError

    before = keyring.get_keyring()
    keyring.set_keyring(Remembering())
    try:
        with FrontDoor(sim.url, key=basic()) as front:
            host(desk, front.url, auth={"basic": {"username": "öps", "password_keyring": "msauto"}})
            is_in(desk, sim)
            host(
                desk, front.url, auth={"basic": {"username": "else", "password_keyring": "msauto"}}
            )
            for each in all_commands(desk):
                assert each.code == 1
                each.one_error("keyring set msauto else")
    finally:
        keyring.set_keyring(before)
