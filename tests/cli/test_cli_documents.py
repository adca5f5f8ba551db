"""``--format json`` of plan, apply and undo: whatever the ending, one document that the published schema allows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from msauto.simulator import Simulator
from tests.cli.command_line import Desk, Said
from tests.tables import table

INV = ("-i", "inventory.yml", "--state-dir", "state")
SCHEMA = json.loads((Path(__file__).parents[2] / "schemas/plan.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)


def document(sourced: Said, code: int) -> Any:
    assert sourced.code == code, sourced
    data = sourced.json
    VALIDATOR.validate(data)
    assert "Traceback" not in sourced.err
    return data


def apply(desk: Desk, *arguments: str) -> Said:
    return desk.run("apply", *arguments, *INV, "--format", "json")


def test_fine_and_taken_back(desk: Desk) -> None:
    data = document(apply(desk, desk.comment("new"), "--yes"), 0)
    assert (data["result"]["ok"], data["targets"][0]["requests"][0]["result"]["outcome"]) == (True, "done")
    assert "problems" not in data
    assert document(apply(desk, "play.yml", "--yes"), 0)["targets"] == []
    undone = document(desk.run("undo", data["result"]["run"], *INV, "--yes", "--format", "json"), 0)
    assert undone["result"]["ok"]


def test_failed(desk: Desk, sim: Simulator) -> None:
    sim.faults.add("status:403@POST")
    data = document(apply(desk, desk.comment("new"), "--yes"), 3)
    assert data["targets"][0]["result"]["outcome"] == "failed"


@table("cli/documents_refused", "settings", "task", "flags", "word")
def test_refused(desk: Desk, settings: str, task: dict[str, Any], flags: tuple[str, ...], word: str) -> None:
    desk.write("msauto.toml", settings)
    data = document(apply(desk, desk.play({"asset": {"title": "Promo 1", **task}}), *flags), 4)
    (problem,) = data["problems"]
    assert problem["code"] == "refused"
    assert word in problem["message"] + problem["remedy"]
    assert [target["name"] for target in data["targets"]] == ["Promo 1"]


def test_an_unusable_ledger(desk: Desk) -> None:
    desk.write("state/ledger.sqlite", "no ledger")
    data = document(apply(desk, desk.comment("new"), "--yes"), 1)
    assert [each["code"] for each in data["problems"]] == ["ledger"]


@table("cli/documents_bad_input", "name", "content", "code")
def test_bad_input(desk: Desk, name: str, content: str, code: str) -> None:
    desk.comment("new")
    desk.write(name, content)
    sourced = desk.run("plan", "play.yml", *INV, "--format", "json")
    problem = document(sourced, 1)["problems"][0]
    assert (problem["code"], problem["file"].endswith(name)) == (code, True)
    assert {"code", "message", "file", "line", "column", "remedy"} <= set(problem)
    assert problem["message"].partition("\n")[0] in sourced.err, "a person reads the same on stderr"


@table("cli/documents_bad_flags", "flags", "word")
def test_bad_flags(desk: Desk, flags: tuple[str, ...], word: str) -> None:
    data = document(apply(desk, desk.comment("new"), "--yes", *flags), 1)
    assert word in data["problems"][0]["message"]


@pytest.mark.parametrize("arguments", [(), ("none.yml",), ("--resume", "last"), ("--resume", "nobody")])
def test_nothing_to_apply(desk: Desk, arguments: tuple[str, ...]) -> None:
    assert document(apply(desk, *arguments, "--yes"), 1)["problems"]


def test_a_server_that_is_down(away: Desk) -> None:
    data = document(apply(away, away.comment("new"), "--yes"), 1)
    assert "no connection" in data["targets"][0]["error"]
