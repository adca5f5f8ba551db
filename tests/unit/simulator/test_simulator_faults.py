"""Every kind of fault: what the client receives, whether the work was done, and the log."""

from __future__ import annotations

import http.client
import socket
import time

import pytest

from msauto.plugins.simulator.embedded import Fault, Simulator
from tests.tables import table
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


@pytest.mark.parametrize(("answer", "status"), [("", 200), (":503:2", 503)])
def test_effects_that_show_late(sim: Simulator, ask: Asker, answer: str, status: int) -> None:
    sim.faults.add(f"lag:3000{answer}@POST*1", f"lag:0.01{answer}@POST")
    assert ask.ask("POST", MARK).status == status
    assert (marked(sim), the_entry(sim)) == (0, (status, f"lag:3000{answer}", False))
    assert ask.ask("POST", MARK).status == status
    until_marked(sim)
    assert [entry.done for entry in sim.writes()] == [False, True]


@pytest.mark.parametrize(("answer", "status"), [("", 202), (":503:2", 503)])
def test_work_that_is_done_before_a_later_request(
    sim: Simulator, ask: Asker, answer: str, status: int
) -> None:
    sim.faults.add(f"deferred:2{answer}@POST*1")
    assert ask.ask("POST", MARK).status == status
    ask.get("/rss")
    assert (marked(sim), the_entry(sim)) == (0, (status, f"deferred:2{answer}", False))
    ask.get("/rss")
    assert (marked(sim), sim.writes()[0].done) == (1, True)


def test_deferred_work_is_done_when_a_test_says_so(sim: Simulator, ask: Asker) -> None:
    sim.faults.add("deferred:9@POST*1")
    ask.ask("POST", MARK)
    sim.deferred.finish()
    assert (marked(sim), sim.writes()[0].done) == (1, True)


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


@table("simulator/wrong_faults", "text")
def test_what_is_no_fault(text: str) -> None:
    with pytest.raises(ValueError, match=r"fault|unknown change"):
        Fault.parse(text)


def test_a_client_that_goes_away_mid_body_has_asked_nothing(
    sim: Simulator, ask: Asker, caplog: pytest.LogCaptureFixture
) -> None:
    sim.faults.add("slow_body:0.1@GET /storage", "delay:0.1@GET /rss$")
    head = b" HTTP/1.1\r\nHost: x\r\n"
    for sent in (
        b"PUT /rss/ticker/half.txt" + head + b"Content-Length: 100\r\n\r\nhalf",
        b"PUT /rss/ticker/half.txt"
        + head
        + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\nnonsense\r\n",
        b"GET /storage/NEWS" + head + b"\r\n",
        b"GET /rss" + head + b"\r\n",
    ):
        with socket.create_connection(("127.0.0.1", sim.port)) as connection:
            connection.sendall(sent)
            time.sleep(0.05)
    time.sleep(0.2)
    assert ask.get("/rss/ticker").body.count(b"<item>") == 2
    assert (sim.writes(), caplog.records) == ([], [])
