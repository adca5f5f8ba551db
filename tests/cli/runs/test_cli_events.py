"""``--events`` and ``--progress``: whole lines that fit the published schema, and nothing that could change a run."""

from __future__ import annotations

import json
import os
import signal
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from msauto.plugins.simulator.embedded import Simulator
from msauto.report.event_lines import events_schema
from tests.cli.command_line import Desk

INV = ("-i", "inventory.yml", "--state-dir", "state")
VALIDATOR = Draft202012Validator(events_schema())


def lines_of(text: str) -> list[dict[str, Any]]:
    """Return the events; each line is whole and fits the schema, and none is missing."""
    assert text.endswith("\n")
    events = [json.loads(line) for line in text.splitlines()]
    for event in events:
        VALIDATOR.validate(event)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    return events


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def test_a_run_from_planning_to_its_end(desk: Desk) -> None:
    said = desk.run("apply", desk.comment("new"), *INV, "--yes", "--events", "run.jsonl")
    assert said.code == 0, said.err
    events = lines_of((desk.folder / "run.jsonl").read_text(encoding="utf-8"))
    assert kinds(events) == [
        *("planning_started", "targets_found", "target_planned", "planning_ended"),
        *(
            "run_started",
            "target_started",
            "request_sending",
            "request_settled",
            "target_finished",
            "run_ended",
        ),
        "command_ended",
    ]
    target = {"server": "studio-a", "database": "NEWS", "kind": "asset", "name": "EP001"}
    assert (events[2]["target"], events[2]["state"], events[2]["requests"]) == (
        target,
        "changed",
        1,
    )
    assert (events[7]["outcome"], events[7]["done"]) == ("done", {"targets": 0, "requests": 1})
    assert (events[-2]["ok"], events[-2]["targets"]["changed"], events[-1]["code"]) == (True, 1, 0)
    assert stat.S_IMODE((desk.folder / "run.jsonl").stat().st_mode) == 0o600


def test_the_end_says_why_nothing_was_sent(desk: Desk) -> None:
    desk.run("plan", desk.comment("new", "Nobody"), *INV, "--events", "plan.jsonl")
    events = lines_of((desk.folder / "plan.jsonl").read_text(encoding="utf-8"))
    assert (events[2]["state"], events[-1]["code"]) == ("error", 1)
    assert "Nobody" in events[2]["error"]
    said = desk.run(
        "apply", desk.comment("new"), *INV, "--events", "plan.jsonl"
    )  # the file is written anew
    last = lines_of((desk.folder / "plan.jsonl").read_text(encoding="utf-8"))[-1]
    assert (said.code, last["code"]) == (4, 4)
    assert "--yes" in said.err
    assert "terminal" in last["reason"]


def test_an_error_of_planning_shows_no_secret(desk: Desk) -> None:
    asset = "asset: {title: EP001, fields: {comment: !secret %s}}"
    tasks = "".join(f"    - {asset % secret}\n" for secret in ("first-secret", "second-secret"))
    desk.write("play.yml", f"- hosts: all\n  tasks:\n{tasks}")
    desk.run("plan", "play.yml", *INV, "--events", "plan.jsonl")
    text = (desk.folder / "plan.jsonl").read_text(encoding="utf-8")
    assert "two tasks declare different values: '***'" in lines_of(text)[2]["error"]
    assert "-secret" not in text


def test_a_lost_answer_is_in_doubt_until_it_is_settled(desk: Desk, sim: Simulator) -> None:
    sim.faults.add("cut_after@POST*1")
    assert desk.run("apply", desk.comment("new"), *INV, "--yes", "--events", "run.jsonl").code == 0
    found = kinds(lines_of((desk.folder / "run.jsonl").read_text(encoding="utf-8")))
    assert found[found.index("request_sending") :][:3] == [
        "request_sending",
        "request_in_doubt",
        "request_settled",
    ]


@pytest.mark.scale
def test_on_stdout_there_are_events_alone(desk: Desk) -> None:
    said = desk.spawn("apply", desk.comment("new"), *INV, "--yes", "--events", "-")
    assert kinds(lines_of(said.out))[-1] == "command_ended"
    assert "Plan: 0 to add, 1 to change" in said.err
    assert "Done: 1 changed" in said.err


def _missing(folder: Path) -> str:
    return str(folder / "missing" / "run.jsonl")


def _full(_: Path) -> str:
    return "/dev/full"


def _without_reader(folder: Path) -> str:
    os.mkfifo(folder / "pipe")
    return str(folder / "pipe")


@pytest.mark.parametrize("place", [_missing, _full, _without_reader])
def test_events_that_cannot_be_written_are_one_warning(
    desk: Desk, sim: Simulator, place: Any
) -> None:
    said = desk.run("apply", desk.comment("new"), *INV, "--yes", "--events", place(desk.folder))
    assert said.code == 0
    assert said.err.count("Warning: cannot write events to") == 1
    assert sim.state.clip("EP001").home.fields["comment"] == "new"


@pytest.mark.scale
@pytest.mark.parametrize("point", [1, 15, 30, 60])
def test_a_killed_run_leaves_whole_lines(desk: Desk, sim: Simulator, point: int) -> None:
    titles = [f"EP{number:03d}" for number in range(1, 13)]
    desk.play({"asset": {"title": "{{ item }}", "fields": {"comment": "new"}}, "loop": titles})
    file = desk.folder / "run.jsonl"
    sim.faults.add("delay:0.05@.")
    with desk.start("apply", "play.yml", *INV, "--yes", "--events", "run.jsonl") as process:
        while process.poll() is None and (
            not file.exists() or file.read_bytes().count(b"\n") < point
        ):
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert len(lines_of(file.read_text(encoding="utf-8"))) >= point


def test_planning_shows_progress(desk: Desk, sim: Simulator, hurried: None) -> None:
    del hurried
    sim.faults.add("delay:0.25@GET*1")
    desk.comment("new")
    shown = desk.run("plan", "play.yml", *INV, "--progress", "plain")
    note, _, progress = shown.err.partition("\n")
    assert note == "Note: --state-dir state has no ledger: nothing is known of earlier runs"
    assert "planning 1/1 targets · " in progress
    assert "planning" not in shown.out
    sim.faults.add("delay:0.25@GET*1")
    assert desk.run("plan", "play.yml", *INV, "--progress", "none").err == f"{note}\n"
