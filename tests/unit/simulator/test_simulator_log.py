"""The request log."""

from __future__ import annotations

import json
from pathlib import Path

from msauto.simulator import Simulator
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
