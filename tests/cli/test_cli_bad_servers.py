"""Servers that do not run, answer with invalid data, or fail during a run: one clear error, nothing half-done."""

from __future__ import annotations

import json
from typing import Any

import pytest

from msauto.simulator import Simulator
from tests.cli.bad_server import bad_server, http
from tests.cli.command_line import Desk

pytestmark = pytest.mark.usefixtures("hurried")
INV = ("-i", "inventory.yml")
PASSWORD = "correct-horse-battery"
TOKEN = "tok-1234567890"

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


@pytest.mark.parametrize("name", ANSWERS)
def test_a_server_that_answers_nonsense(away: Desk, name: str) -> None:
    answer, words = ANSWERS[name]
    with bad_server(answer) as server:
        auth = {"basic": {"username": "ops", "password": PASSWORD}, "headers": {"X-Key": TOKEN}}
        away.inventory({"studio-a": {"server": {"url": server.url, "auth": auth}, "database": "NEWS"}})
        away.comment("new")
        for command in (("plan",), ("apply", "--yes"), ("plan", "--format", "json"), ("apply", "-y", "-vv")):
            sourced = away.run(*command, *INV, "play.yml")
            assert sourced.code == 1, sourced
            sourced.one_error()
            assert words.casefold() in sourced.out.casefold(), sourced.out
            assert PASSWORD not in sourced.out + sourced.err
            assert TOKEN not in sourced.out + sourced.err
        sourced = away.run("show", "asset", "EP001", *INV)
        assert sourced.code == 1
        sourced.one_error("studio-a")
        assert not [line for line in server.requests if not line.startswith("GET ")]
    ledger = (away.state / "msauto" / "ledger.sqlite").read_bytes()
    assert PASSWORD.encode() not in ledger


@pytest.mark.scale
@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://studio.invalid:7901"])
def test_a_thousand_targets_of_an_unreachable_server(away: Desk, url: str) -> None:
    away.inventory({"studio-a": {"server": {"url": url, "timeouts": {"connect": 2}}, "database": "NEWS"}})
    away.play({"asset": {"title": "Clip {{ item }}", "fields": {"comment": "x"}}, "loop": "{{ range(1000) | list }}"})
    sourced = away.run("plan", *INV, "play.yml")
    assert sourced.code == 1
    assert sourced.out.count("  error: ") == 1
    assert "1000 targets in error" in sourced.out
    sourced.one_error(f"server studio-a at {url}: ", "→ check")


def test_a_server_that_never_answers(away: Desk) -> None:
    with bad_server(None) as server:
        host = {"server": {"url": server.url, "timeouts": {"read": 0.1}}, "database": "NEWS"}
        away.inventory({"studio-a": host})
        away.play({"asset": {"title": "C{{ item }}", "fields": {"comment": "x"}}, "loop": "{{ range(200) | list }}"})
        sourced = away.run("plan", *INV, "play.yml")
        assert sourced.code == 1
        sourced.one_error("no answer within the time allowed", "timeouts.read")
        # Eight at a time, four tries each; after the first and the second silence another one is begun.
        assert len(server.requests) <= (8 + 2) * 4


def test_of_two_servers_one_is_away(desk: Desk, sim: Simulator) -> None:
    hosts: dict[str, Any] = {
        "studio-a": {"server": {"url": desk.url}, "database": "NEWS"},
        "studio-b": {"server": {"url": "http://127.0.0.1:1"}, "database": "NEWS"},
    }
    desk.inventory(hosts)
    desk.comment("new")
    assert desk.run("apply", "--yes", *INV, "play.yml").code == 1
    assert not sim.writes()
    sourced = desk.run("apply", "--yes", "--keep-going", *INV, "play.yml")
    assert sourced.code == 3
    assert len(sim.writes()) == 1
    sourced.one_error("studio-b", "left out")


# It dies while the plan is applied ---------------------------------------------------------------------------------


def comments(desk: Desk, count: int) -> None:
    titles = [f"EP{number:03d}" for number in range(1, count + 1)]
    desk.play({"asset": {"title": "{{ item }}", "fields": {"comment": "new"}}, "loop": titles})


@pytest.mark.parametrize(
    ("fault", "outcome", "done"),
    [
        ("status:500@POST .*EP002", "failed", False),
        ("status:401@POST .*EP002", "failed", False),
        ("html@POST .*EP002", "unverified", False),
        ("swallow@POST .*EP002", "failed", False),
        ("cut_after@POST .*EP002", "changed", True),  # settled by reading
        ("garbage@POST .*EP002", "changed", True),  # bodies of commands are not relied on
    ],
)
def test_a_fault_in_the_middle(desk: Desk, sim: Simulator, fault: str, outcome: str, done: bool) -> None:
    comments(desk, 4)
    sim.faults.add(fault)
    sourced = desk.run("apply", "--yes", *INV, "play.yml", "--format", "json")
    assert sourced.code == (0 if outcome == "changed" else 3), sourced
    sourced.one_error()
    found = {target["name"]: target["result"]["outcome"] for target in sourced.json["targets"]}
    assert found == {"EP001": "changed", "EP002": outcome, "EP003": "changed", "EP004": "changed"}
    assert (sim.state.clip("EP002").home.fields.get("comment") == "new") is done
    assert [sim.state.clip(f"EP00{n}").home.fields["comment"] for n in (1, 3, 4)] == ["new"] * 3


def test_a_server_that_is_gone_after_the_first_write(tmp_path: Any) -> None:
    with Simulator() as other:
        desk = Desk(tmp_path, other.url)
        comments(desk, 3)
        other.faults.add("cut_before@.*+5")  # planning reads three assets; then a write and its proof get through
        sourced = desk.run("apply", "--yes", "-f", "1", *INV, "play.yml", "--format", "json")
    assert sourced.code == 3
    found = [target["result"]["outcome"] for target in sourced.json["targets"]]
    assert found[0] == "changed"
    assert set(found[1:]) <= {"failed", "unverified"}
    sourced.one_error()
    runs = json.loads(desk.run("history", "--format", "json").out)
    assert [run["status"] for run in runs] == ["failed"]
    assert desk.run("history", "last").out.count("unverified") >= 1


def test_what_came_of_it_is_read_by_a_person(desk: Desk, sim: Simulator) -> None:
    comments(desk, 3)
    sim.faults.add("status:500@POST .*EP002")
    sourced = desk.run("apply", "--yes", *INV, "play.yml")
    assert sourced.code == 3
    assert "studio-a · NEWS · EP002: failed" in sourced.out
    assert "failed=1" in sourced.out
    assert "msauto history" in sourced.out
