"""Every kind of fault: what the client receives, whether the work was done, and the log."""

from __future__ import annotations

import http.client
import re
import socket
import time

import pytest
from click.testing import CliRunner

from msauto.cli.commands.simulate import command
from msauto.simulator import Fault, Simulator
from msauto.simulator.faults import CHANGES, HOOKS, KINDS
from tests.docs.pages import ROOT
from tests.unit.simulator.asking import Asker, asset, command_query

MARK = asset("Long Film") + command_query("CREATEMARKER", uid=-1, frame=5)
POST = f"POST {MARK} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def marked(sim: Simulator) -> int:
    return len(sim.state.clip("Long Film").markers)


def until_marked(sim: Simulator) -> None:
    while not marked(sim):
        time.sleep(0.01)


def the_entry(sim: Simulator) -> tuple[int, str, bool]:
    (entry,) = sim.writes()
    return entry.status, entry.fault, entry.done


def test_a_status(sim: Simulator, ask: Asker) -> None:
    sim.faults.add("status:503:2@CREATEMARKER*1")
    reply = ask.ask("POST", MARK)
    assert (reply.status, reply.headers["retry-after"]) == (503, "2")
    assert (marked(sim), the_entry(sim)) == (0, (503, "status:503:2", False))
    assert ask.ask("POST", MARK).status == 200


def test_a_status_without_retry_after(sim: Simulator, ask: Asker) -> None:
    sim.faults.add(Fault("Films", "status:500"))
    assert "retry-after" not in ask.get("/storage/NEWS/Films").headers


def test_a_delay(sim: Simulator, ask: Asker) -> None:
    sim.faults.add("delay:0.15@CREATEMARKER")
    started = time.perf_counter()
    assert ask.ask("POST", MARK).status == 200
    assert time.perf_counter() - started >= 0.15
    assert (marked(sim), the_entry(sim)) == (1, (200, "delay:0.15", True))


def test_cut_before_the_work(sim: Simulator, ask: Asker) -> None:
    sim.faults.add("cut_before@POST")
    assert ask.raw(POST) == b""
    assert (marked(sim), the_entry(sim)) == (0, (0, "cut_before", False))


def test_cut_after_the_work(sim: Simulator, ask: Asker) -> None:
    sim.faults.add("cut_after@POST .*CREATEMARKER*1")
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        ask.ask("POST", MARK)
    assert (marked(sim), the_entry(sim)) == (1, (0, "cut_after", True))
    assert ask.ask("POST", MARK).status == 200


def test_a_cut_on_a_kept_alive_connection(sim: Simulator) -> None:
    sim.faults.add("cut_after@CREATEMARKER")
    connection = http.client.HTTPConnection("127.0.0.1", sim.port, timeout=5)
    connection.request("GET", "/rss")
    connection.getresponse().read()
    connection.request("POST", MARK)
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        connection.getresponse()
    connection.close()


def test_garbage(sim: Simulator, ask: Asker) -> None:
    sim.faults.add("garbage@.")
    reply = ask.ask("POST", MARK)
    assert reply.status == 200
    with pytest.raises(UnicodeDecodeError):
        _ = reply.text
    assert (marked(sim), the_entry(sim)) == (1, (200, "garbage", True))


def test_truncate(sim: Simulator, ask: Asker) -> None:
    whole = ask.get("/storage/NEWS").body
    sim.faults.add("truncate@.")
    with pytest.raises(http.client.IncompleteRead) as caught:
        ask.get("/storage/NEWS")
    assert caught.value.partial == whole[: len(whole) // 2]
    assert caught.value.expected == len(whole) - len(whole) // 2
    with pytest.raises(http.client.IncompleteRead):
        ask.ask("POST", MARK)
    assert (marked(sim), the_entry(sim)) == (1, (200, "truncate", True))


def test_swallow(sim: Simulator, ask: Asker) -> None:
    sim.faults.add("swallow@.")
    reply = ask.ask("POST", MARK)
    assert (reply.status, reply.body) == (200, b"")
    assert (marked(sim), the_entry(sim)) == (0, (200, "swallow", False))
    assert ask.get(asset("Long Film")).xml.tag == "Clip"


def test_late(sim: Simulator, ask: Asker) -> None:
    sim.faults.add("late:3000@POST*1", "late:0.01@POST")
    assert ask.raw(POST) == b""
    assert (marked(sim), the_entry(sim)) == (0, (0, "late:3000", False))
    assert ask.raw(POST) == b""
    until_marked(sim)
    assert [entry.done for entry in sim.writes()] == [False, True]


def test_a_status_after_the_work(sim: Simulator, ask: Asker) -> None:
    sim.faults.add("done_status:429:3@POST")
    reply = ask.ask("POST", MARK)
    assert (reply.status, reply.headers["retry-after"]) == (429, "3")
    assert (marked(sim), the_entry(sim)) == (1, (429, "done_status:429:3", True))


@pytest.mark.parametrize(("answer", "status"), [("", 200), (":503:2", 503)])
def test_effects_that_show_late(sim: Simulator, ask: Asker, answer: str, status: int) -> None:
    sim.faults.add(f"lag:3000{answer}@POST*1", f"lag:0.01{answer}@POST")
    assert ask.ask("POST", MARK).status == status
    assert (marked(sim), the_entry(sim)) == (0, (status, f"lag:3000{answer}", False))
    assert ask.ask("POST", MARK).status == status
    until_marked(sim)
    assert [entry.done for entry in sim.writes()] == [False, True]


def test_a_login_page(sim: Simulator, ask: Asker) -> None:
    sim.faults.add("html@POST")
    reply = ask.ask("POST", MARK)
    assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"sign in" in reply.body
    assert (marked(sim), the_entry(sim)) == (0, (200, "html", False))


@pytest.mark.parametrize(("most", "came"), [(0, 0), (7, 7), (10**6, None)])
def test_a_body_that_is_cut(sim: Simulator, ask: Asker, most: int, came: int | None) -> None:
    whole = ask.get("/rss/ticker").body
    sim.faults.add(f"cut_at:{most}@.")
    head, _, body = ask.raw(b"GET /rss/ticker HTTP/1.1\r\nHost: x\r\n\r\n").partition(b"\r\n\r\n")
    promised = int(head.lower().partition(b"content-length: ")[2].split()[0])
    assert body == whole[:came]
    assert promised > len(body)


def test_a_slow_body(sim: Simulator, ask: Asker) -> None:
    whole = ask.get("/rss/ticker").body
    sim.faults.add("slow_body:0.2@.")
    started = time.perf_counter()
    assert ask.get("/rss/ticker").body == whole
    assert time.perf_counter() - started >= 0.18
    assert ask.ask("POST", MARK).status == 200


def test_skip_times_and_order(sim: Simulator, ask: Asker) -> None:
    sim.faults.add("status:500@GET /rss*2+1", "status:503@GET")
    assert [ask.get("/rss").status for _ in range(5)] == [503, 500, 500, 503, 503]
    assert sim.faults.hits() == {"status:500@GET /rss": 2, "status:503@GET": 3}
    sim.faults.clear()
    assert ask.get("/rss").status == 200


def test_matching_is_on_the_raw_target(sim: Simulator, ask: Asker) -> None:
    sim.faults.add(r"status:500@^GET /storage/NEWS@Long%20Film$")
    assert ask.get(asset("Long Film")).status == 500
    assert ask.get(asset("Long Film") + "/GETUSERFIELDS").status == 200


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("cut_after@POST .*CREATEMARKER*1", Fault("POST .*CREATEMARKER", "cut_after", 1)),
        ("status:429:3@GET*2+5", Fault("GET", "status:429:3", 2, 5)),
        ("late:0.5@NEWS@Film", Fault("NEWS@Film", "late:0.5")),
        ("html@.*+3", Fault(".*", "html", None, 3)),
        ("lag:2:503:1@POST", Fault("POST", "lag:2:503:1")),
    ],
)
def test_faults_as_text(text: str, fault: Fault) -> None:
    assert Fault.parse(text) == fault


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cut_after",
        "explode@x",
        "delay@x",
        "status:abc@x",
        "html@(",
        "html@",
        "late:1.2.3@x",
        "done_status:9@x",
        "lag@x",
    ],
)
def test_what_is_no_fault(text: str) -> None:
    with pytest.raises(ValueError, match=r"fault"):
        Fault.parse(text)


def test_every_kind_is_documented() -> None:
    page = (ROOT / "docs/how-to/test-your-playbooks.md").read_text(encoding="utf-8")
    shown = CliRunner().invoke(command, ["--help"]).output
    for kind in (*KINDS, *HOOKS, *CHANGES):
        assert re.search(rf"`{kind}[:[`]", page), kind
        assert re.search(rf"[ ,]{kind}[:[, \n]", shown), kind


def test_a_client_that_goes_away_mid_body_has_asked_nothing(
    sim: Simulator, ask: Asker, caplog: pytest.LogCaptureFixture
) -> None:
    sim.faults.add("slow_body:0.1@GET /storage", "delay:0.1@GET /rss$")
    head = b" HTTP/1.1\r\nHost: x\r\n"
    for sent in (
        b"PUT /rss/ticker/half.txt" + head + b"Content-Length: 100\r\n\r\nhalf",
        b"PUT /rss/ticker/half.txt" + head + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\nnonsense\r\n",
        b"GET /storage/NEWS" + head + b"\r\n",
        b"GET /rss" + head + b"\r\n",
    ):
        with socket.create_connection(("127.0.0.1", sim.port)) as connection:
            connection.sendall(sent)
            time.sleep(0.05)
    time.sleep(0.2)
    assert ask.get("/rss/ticker").body.count(b"<item>") == 2
    assert (sim.writes(), caplog.records) == ([], [])
