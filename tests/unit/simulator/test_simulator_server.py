"""Starting and stopping, the log, the state file, the foreground server."""

from __future__ import annotations

import errno
import http.client
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import fields
from pathlib import Path

import pytest

from msauto.plugins.simulator.embedded import SimDialect, Simulator, sample_state
from msauto.plugins.simulator.embedded.seed import load_state, state_from_json, state_to_json
from tests.tables import one_fast_in, table
from tests.unit.simulator.asking import Asker, asset, command_query


def test_it_starts_and_stops_and_leaves_no_thread() -> None:
    before = threading.active_count()
    with Simulator() as sim:
        assert Asker(sim).get("/rss").status == 200
    assert threading.active_count() == before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", sim.port))
    sim.stop()


def test_it_stops_with_connections_open_and_requests_in_flight(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Simulator(
        faults=["delay:3000@GET /rss", "late:3000@DELETE", "slow_body:3000@/storage"]
    ) as sim:
        idle = http.client.HTTPConnection("127.0.0.1", sim.port)
        idle.request("GET", "/nothing")
        idle.getresponse().read()
        waiting = []
        for line in ("GET /rss", "DELETE /rss/ticker?guid=n-0", "GET /storage"):
            connection = socket.create_connection(("127.0.0.1", sim.port))
            connection.sendall(f"{line} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            waiting.append(connection)
        while len(sim.log) < 4:
            time.sleep(0.01)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    idle.close()
    for connection in waiting:
        connection.close()


def test_what_is_not_http_is_refused_quietly(
    sim: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    for line in (b"nonsense", b"GET rss HTTP/1.1", b"GET /a b HTTP/1.1"):
        assert Asker(sim).raw(line + b"\r\n\r\n").startswith(b"HTTP/1.0 400 Bad Request")
    assert (sim.log, caplog.records) == ([], [])


def test_a_taken_port_is_an_error(sim: Simulator) -> None:
    with pytest.raises(OSError, match=f"port {sim.port} on 127.0.0.1 is taken") as caught:
        Simulator(port=sim.port).start()
    assert caught.value.errno == errno.EADDRINUSE


def test_what_a_request_leaves_behind(sim: Simulator, ask: Asker) -> None:
    ask.get("/storage/NEWS@Long%20Film?x=%41+b")
    ask.ask("PUT", "/rss/ticker/a.txt", "Ж".encode())
    read, write = sim.log
    assert (read.number, read.method, read.target) == (
        1,
        "GET",
        "/storage/NEWS@Long%20Film?x=%41+b",
    )
    assert (write.number, write.body, write.status, write.done, write.fault) == (
        2,
        "Ж".encode(),
        200,
        True,
        "",
    )
    assert write.line == "PUT /rss/ticker/a.txt"
    assert sim.writes() == [write]
    sim.clear_log()
    assert sim.log == []
    ask.get("/rss")
    assert sim.log[0].number == 3


def test_the_log_file(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with Simulator(log_file=path, faults=["cut_before@rss"]) as sim:
        Asker(sim).ask(
            "POST", asset("Long Film") + command_query("SETFIELD", name="comment", val="x")
        )
        Asker(sim).raw(b"GET /rss HTTP/1.1\r\nHost: x\r\n\r\n")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(row["number"], row["method"], row["status"], row["fault"], row["done"]) for row in rows] == [
        (1, "POST", 200, "", True), (2, "GET", 0, "cut_before", False),
    ]  # fmt: skip


def test_a_state_comes_back_from_json() -> None:
    state = sample_state()
    state.handles["5"] = state.clip("Long Film")
    state.clip("Long Film").home.fields["comment"] = "Ж"
    state.clip("Long Film").partner = ({"command": "X"},)
    state.clip("Long Film").omitted = ("frames",)
    state.databases["NEWS"].connectors["TRAFFIC"].append(b"\xff")
    data = state_to_json(state)
    again = state_from_json(json.loads(json.dumps(data)))
    assert json.dumps(state_to_json(again)) == json.dumps(data)
    assert again.handles["5"] is again.clip("Long Film")
    assert again.clip("Promo 1 tonight") is again.clip("Promo 1")
    assert again.add_clip("New").home.link_id == state.add_clip("New").home.link_id


def test_state_survives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "new" / "state.json"
    with Simulator(state_file=path) as sim:
        Asker(sim).command("Long Film", "SETFIELD", name="comment", val="kept")
        Asker(sim).ask("DELETE", asset("Promo 1"))
        Asker(sim).ask("PUT", "/rss/ticker/n-9.txt", b"kept")
    with Simulator(state_file=path) as sim:
        assert Asker(sim).attrs("Long Film")["comment"] == "kept"
        assert Asker(sim).get(asset("Promo 1 tonight")).status == 404
        assert b"n-9" in Asker(sim).get("/rss/ticker").body
    assert [child.name for child in path.parent.iterdir()] == ["state.json"]


def test_state_is_saved_while_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    with Simulator(state_file=path) as sim:
        Asker(sim).command("Long Film", "SETFIELD", name="comment", val="soon")
        assert not path.exists()
        while not path.exists():
            time.sleep(0.01)
        assert load_state(path).clip("Long Film").home.fields == {"comment": "soon"}


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"format": "other"}', '{"format": "msauto-simulator-house", "version": 1}'],
)
def test_a_broken_state_file_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"state\.json"):
        Simulator(state_file=path)
    assert path.read_text() == content


SERVE = textwrap.dedent("""
    import sys
    from msauto.plugins.simulator.embedded import Simulator
    Simulator("bulk:3", ["command_body=ok_text"], ["status:500@GET /rss*1"], port=int(sys.argv[1]),
              state_file=sys.argv[2]).run(lambda url: print(url, flush=True))
""")


@pytest.mark.parametrize("number", one_fast_in(3, [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]))
def test_the_foreground_server_saves_on_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "state.json"
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, "0", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        port = int(process.stdout.readline().rpartition(":")[2])
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request(
            "POST", asset("Bulk 000001") + command_query("SETFIELD", name="comment", val="x")
        )
        assert connection.getresponse().read() == b"OK"
        connection.request("GET", "/rss")
        assert connection.getresponse().status == 500
        os.kill(process.pid, number)
        assert process.wait(5) == 0
        assert process.stderr.read() == ""
        connection.close()
    assert load_state(path).clip("Bulk 000001").home.fields == {"comment": "x"}


def test_the_foreground_server_on_a_taken_port(sim: Simulator, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SERVE, str(sim.port), str(tmp_path / "s")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"port {sim.port} on 127.0.0.1 is taken" in done.stderr


# The dialect's switches as values; that each is looked at is shown where its subject is tested


@table("simulator/wrong_switches", "text", "names")
def test_a_wrong_switch_names_the_choices(text: str, names: str) -> None:
    with pytest.raises(ValueError, match=re.escape(names)):
        SimDialect.parse([text])


def test_every_switch_is_described() -> None:
    assert [entry.name for entry in fields(SimDialect) if not entry.metadata["description"]] == []
