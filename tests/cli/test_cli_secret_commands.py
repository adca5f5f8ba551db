"""Secrets that commands print, in the commands that reach a server: consent, and that none is shown or kept."""

from __future__ import annotations

import json
import sys

import pytest

from msauto.simulator import Simulator
from tests.cli.command_line import Desk

TOKEN = "tok-5521-98"
BATCH = """
name: night
schedule: {at: "05:00", tz: Europe/Oslo}
jobs:
  one: {playbooks: play.yml, inventory: inventory.yml}
"""
PLAN = ("plan", "play.yml", "-i", "inventory.yml")


@pytest.fixture
def desk(desk: Desk) -> Desk:
    command = json.dumps([sys.executable, "-c", f"print('{TOKEN}')"])
    desk.write("msauto.toml", f"[secrets]\ntoken = {{command = {command}}}\n")
    server = f"{{url: '{desk.url}', auth: {{bearer_secret: token}}}}"
    desk.write("inventory.yml", f"all: {{hosts: {{studio-a: {{server: {server}, database: NEWS}}}}}}\n")
    task = "asset: {title: EP001, fields: {comment: !secret {name: token}}}"
    desk.write("play.yml", f"- hosts: all\n  tasks:\n    - {task}\n")
    return desk


def test_it_is_sent_and_neither_shown_nor_kept(desk: Desk, sim: Simulator) -> None:
    said = desk.run("apply", *PLAN[1:], "--yes", "--secret-commands", "-vv")
    assert said.code == 0, said
    assert [TOKEN in entry.target for entry in sim.writes()] == [True]
    assert TOKEN not in f"{said.out}{said.err}"
    kept = desk.files() - {"msauto.toml"}
    assert not [name for name in kept if TOKEN.encode() in (desk.folder / name).read_bytes()]


@pytest.mark.parametrize(
    "arguments", [PLAN, ("apply", *PLAN[1:], "--yes"), ("show", "assets"), ("export",), ("probe",), ("undo", "last")]
)
def test_without_consent_it_is_refused_and_nothing_is_sent(
    desk: Desk, sim: Simulator, arguments: tuple[str, ...]
) -> None:
    if arguments[0] == "undo":
        assert desk.run("apply", *PLAN[1:], "--yes", "--secret-commands").code == 0
    sim.clear_log()
    inventory = () if "-i" in arguments else ("-i", "inventory.yml")
    said = desk.run(*arguments, *inventory)
    assert said.code == 4, said
    said.one_error(
        "Refused: the secret 'token' (", "msauto.toml:2:1)", "--secret-commands, or MSAUTO_SECRET_COMMANDS=1"
    )
    assert sim.log == []


@pytest.mark.parametrize(("value", "code"), [("1", 0), ("0", 4), ("yes", 4)])
def test_the_environment_is_consent(desk: Desk, value: str, code: int) -> None:
    desk.environment["MSAUTO_SECRET_COMMANDS"] = value
    assert desk.run(*PLAN).code == code


def test_a_saved_plan_keeps_no_consent(desk: Desk) -> None:
    assert desk.run(*PLAN, "--secret-commands", "--out", "p.plan").code == 0
    assert desk.run("apply", "p.plan", "--yes", "-i", "inventory.yml").code == 4
    assert desk.run("apply", "p.plan", "--yes", "--secret-commands").code == 0


def test_a_past_run_names_no_command(desk: Desk) -> None:
    (desk.folder / "msauto.toml").rename(desk.folder / "elsewhere.toml")
    assert desk.run("apply", *PLAN[1:], "--yes", "--secret-commands", "--config", "elsewhere.toml").code == 0
    undo = ("undo", "last", "-i", "inventory.yml", "--check", "--secret-commands")
    desk.run(*undo).one_error("unknown secret 'token'", "--config")
    assert desk.run(*undo, "--config", "elsewhere.toml").code == 0


def test_a_job_of_a_batch_needs_it_too(desk: Desk) -> None:
    desk.write("batch.yml", BATCH)
    assert desk.run("batch", "run", "batch.yml", "--check").code == 4
    assert desk.run("batch", "run", "batch.yml", "--check", "--secret-commands").code == 0


@pytest.mark.parametrize("arguments", [("validate", "play.yml"), ("vars", "studio-a"), ("batch", "check", "batch.yml")])
def test_what_needs_no_server_needs_no_consent(desk: Desk, arguments: tuple[str, ...]) -> None:
    desk.write("msauto.toml", "[secrets]\ntoken = {command = ['no-such-program']}\n")
    desk.write("batch.yml", BATCH)
    said = desk.run(*arguments, *(() if arguments[0] == "batch" else ("-i", "inventory.yml", "--secret-commands")))
    assert said.code == 0, said
