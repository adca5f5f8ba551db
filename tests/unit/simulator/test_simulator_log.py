"""The request log, and the way in beside the interface."""

from __future__ import annotations

import json
from pathlib import Path

from msauto.simulator import SimDialect, Simulator, bulk_state
from msauto.simulator.http.log import RequestLog
from tests.unit.simulator.asking import Asker, asset, command_query


def test_what_a_request_leaves_behind(sim: Simulator, ask: Asker) -> None:
    ask.get("/storage/NEWS@Long%20Film?x=%41+b")
    ask.ask("PUT", "/rss/ticker/a.txt", "Ж".encode())
    read, write = sim.log
    assert (read.number, read.method, read.target) == (1, "GET", "/storage/NEWS@Long%20Film?x=%41+b")
    assert (write.number, write.body, write.status, write.done, write.fault) == (2, "Ж".encode(), 200, True, "")
    assert write.line == "PUT /rss/ticker/a.txt"
    assert sim.writes() == [write]
    sim.clear_log()
    assert sim.log == []
    ask.get("/rss")
    assert sim.log[0].number == 3


def test_the_log_file(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with Simulator(log_file=path, faults=["cut_before@rss"]) as sim:
        Asker(sim).ask("POST", asset("Long Film") + command_query("SETFIELD", name="comment", val="x"))
        Asker(sim).raw(b"GET /rss HTTP/1.1\r\nHost: x\r\n\r\n")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(row["number"], row["method"], row["status"], row["fault"], row["done"]) for row in rows] == [
        (1, "POST", 200, "", True), (2, "GET", 0, "cut_before", False),
    ]  # fmt: skip


def test_the_log_is_bounded() -> None:
    log = RequestLog(limit=2)
    for number in range(3):
        log.open("GET", f"/{number}")
    assert [entry.target for entry in log.entries()] == ["/1", "/2"]


def test_the_log_from_outside(ask: Asker) -> None:
    ask.ask("PUT", "/rss/ticker/a.txt", b"\xff")
    (row,) = json.loads(ask.get("/_simulator/log").body)
    assert (row["method"], row["body"], row["status"], row["done"]) == ("PUT", "\\xff", 400, False)


def test_the_state_from_outside(ask: Asker) -> None:
    state = json.loads(ask.get("/_simulator/state").body)
    assert [database["name"] for database in state["databases"]] == ["NEWS", "ARCHIVE"]
    assert state["databases"][0]["clips"][0]["entries"][0]["title"] == "Master Film"


def test_reset(sim: Simulator, ask: Asker) -> None:
    ask.command("Long Film", "SETFIELD", name="comment", val="x")
    ask.ask("DELETE", asset("Promo 1"))
    sim.faults.add("status:500@GET")
    assert ask.ask("POST", "/_simulator/reset").status == 200
    assert ask.attrs("Long Film")["comment"] == ""
    assert ask.get(asset("Promo 1 tonight")).status == 200
    assert len(sim.log) == 2
    for _ in range(2):
        ask.command("Long Film", "SETUSERFIELDS", a="1")
        ask.ask("POST", "/_simulator/reset")
        assert sim.state.clip("Long Film").xmp == {}


def test_the_first_reset_takes_back_what_was_written_to_mappings_and_lists(sim: Simulator, ask: Asker) -> None:
    ask.command("Evening News raw", "SETUSERFIELDS", **{"dc:title": "x"})
    ask.command("Long Film", "SETUSERFIELDS", **{"dc:title": "x"})
    ask.command("Long Film", "SETFIELD", name="user_1", val="x")
    sim.state.databases["NEWS"].profiles["WP9"] = (1, 1)
    ask.ask("POST", "/_simulator/reset")
    assert sim.state.clip("Evening News raw").xmp == {"dc:title": ["Evening News"], "dc:subject": ["raw"]}
    assert sim.state.clip("Long Film").xmp == {}
    assert sim.state.clip("Long Film").home.fields == {}
    assert "WP9" not in sim.state.databases["NEWS"].profiles


def test_a_state_too_big_for_a_reset() -> None:
    with Simulator(state=bulk_state(20_001)) as sim:
        assert Asker(sim).ask("POST", "/_simulator/reset").status == 400


def test_faults_from_outside(ask: Asker) -> None:
    reply = ask.ask("PUT", "/_simulator/faults", b'["status:500@GET /rss*1", "html@x"]')
    assert json.loads(reply.body) == {"status:500@GET /rss": 0, "html@x": 0}
    assert [ask.get("/rss").status for _ in range(2)] == [500, 200]
    bad = ask.ask("PUT", "/_simulator/faults", b'["explode@x"]')
    assert (bad.status, "explode" in bad.text) == (400, True)
    assert ask.ask("PUT", "/_simulator/faults", b"nonsense").status == 400


def test_the_dialect_from_outside(sim: Simulator, ask: Asker) -> None:
    assert json.loads(ask.get("/_simulator/dialect").body)["not_found"] == "404_text"
    ask.ask("PUT", "/_simulator/dialect", b'{"not_found": "500_text"}')
    assert sim.dialect == SimDialect(not_found="500_text")
    ask.ask("PUT", "/_simulator/dialect", b'["errors=200_text"]')
    assert sim.dialect == SimDialect(errors="200_text")
    assert ask.ask("PUT", "/_simulator/dialect", b'{"no": "such"}').status == 400
    assert ask.get("/_simulator/nothing").status == 404
