"""Flags and commands of Ansible and Terraform are answered with ours, and none is read as something else."""

from __future__ import annotations

from pathlib import Path

import pytest
from click import Context, Group

from msauto.cli import other_tools
from msauto.cli.main import COMMANDS, group
from tests.cli.command_line import Desk
from tests.tables import table


def commands_of(name: str) -> list[str]:
    command = group.get_command(Context(group), name)
    assert isinstance(command, Group)
    return command.list_commands(Context(command))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.play(
        {"asset": {"title": "A", "fields": {"comment": "b"}}, "tags": ["prep", "night"]},
        hosts="studio-a",
    )
    return desk


@table("cli/words_of_other_tools", "arguments", "remedy")
def test_it_is_answered_with_ours(desk: Desk, arguments: str, remedy: str) -> None:
    said = desk.run(*arguments.split())
    assert said.code == 1
    said.one_error("no such", remedy)
    assert said.out == ""


def test_no_command_is_answered_with_another() -> None:
    ours = {
        *COMMANDS,
        *(f"{group}.{name}" for group in ("batch", "show", "state") for name in commands_of(group)),
    }
    assert not other_tools.COMMANDS.keys() & ours


def test_hosts_tasks_and_tags_are_listed_offline(desk: Desk) -> None:
    lists = {
        word: desk.run("plan", "play.yml", "-i", "inventory.yml", f"--list-{word}")
        for word in ("hosts", "tags")
    }
    assert lists["hosts"].out == "A play  (play.yml, 1 host)\n  studio-a\n"
    assert lists["tags"].out == "A play  (play.yml, 1 host)\n  night\n  prep\n"
    tasks = desk.run("plan", "play.yml", "-i", "inventory.yml", "--list-tasks", "--tags", "prep")
    assert tasks.out == "A play  (play.yml, 1 host)\n  asset  Task 1  [night, prep]\n"
    assert (tasks.code, tasks.err) == (0, "")
    document = desk.run(
        "plan",
        "play.yml",
        "-i",
        "inventory.yml",
        "--list-tasks",
        "--skip-tags",
        "prep",
        "--format",
        "json",
    )
    assert [(play["hosts"], play["tasks"]) for play in document.json] == [(["studio-a"], [])]


def test_a_play_without_a_name_is_listed_by_its_place(desk: Desk) -> None:
    desk.write("play.yml", [{"hosts": "all", "tasks": []}])
    assert desk.run("plan", "play.yml", "-i", "inventory.yml", "--list-hosts").out == (
        "play.yml:1:3  (1 host)\n  studio-a\n"
    )
