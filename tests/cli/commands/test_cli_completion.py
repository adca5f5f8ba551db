"""What a shell is offered: hosts, groups, tags, runs and titles, without the imports of a command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import click
import pytest
from click.shell_completion import CompletionItem
from click.testing import CliRunner

from msauto.cli.commands.completion import SHELLS, VARIABLE, keep_titles, light_group
from msauto.cli.main import group
from tests.cli.command_line import Desk

INV = ("-i", "inventory.yml")


def offered(desk: Desk, *words: str) -> list[CompletionItem]:
    """Return what is offered for the last of the words."""
    with desk._standing():
        complete = SHELLS["bash"](light_group(group), {}, "msauto", VARIABLE)
        return complete.get_completions(list(words[:-1]), words[-1])


def values(desk: Desk, *words: str) -> list[str]:
    return [each.value for each in offered(desk, *words)]


def test_the_commands_are_described_with_the_settings_of_their_group(away: Desk) -> None:
    """What a command shows of its help is kept with it: else one that was described takes no ``-h`` any more."""
    command = click.Command("plan")
    settings = {"help_option_names": ["-h", "--help"]}
    commands = click.Group("msauto", commands=[command], context_settings=settings)
    with away._standing():
        light_group(commands)
    assert CliRunner().invoke(commands, ["plan", "-h"]).exit_code == 0


def test_hosts_and_groups_of_the_inventory(away: Desk) -> None:
    hosts = {"studio-a": {"server": {"url": "{{ x }}"}}, "studio-b": None}
    away.write("hosts/all.yml", {"all": {"children": {"playout": {"hosts": hosts}}}})
    away.write("hosts/odd.yml", "all: {hosts: {odd: !secret x}}")
    assert values(away, "plan", "play.yml", "-i", "hosts", "--limit", "") == [
        *("all", "playout", "studio-a", "studio-b", "odd"),
    ]
    assert values(away, "plan", "-i", "hosts", "-l", "playout:!studio-") == [
        "playout:!studio-a",
        "playout:!studio-b",
    ]
    away.write("msauto.toml", 'inventory = "hosts"')
    assert values(away, "vars", "stud") == ["studio-a", "studio-b"]


def test_tags_of_the_playbooks(away: Desk) -> None:
    task = {"asset": {"title": "{{ item }}"}, "tags": ["prep", "night, late"]}
    away.write("tasks/more.yml", [{**task, "tags": "more"}])
    away.play({"block": [task]}, {"import_tasks": "tasks/more.yml"})
    assert sorted(values(away, "plan", "play.yml", "--tags", "")) == [
        "late",
        "more",
        "night",
        "prep",
    ]
    away.play({**task, "tags": "studio"}, name="studio/play.yml")
    assert values(away, "plan", "studio/play.yml", "-l", "all", "--tags", "") == ["studio"]
    assert values(away, "plan", "--skip-tags", "prep,ni") == ["prep,night"]
    away.write("msauto.toml", '[roles]\npath = "shared"')
    away.write("roles/films/tasks/main.yml", [{"import_role": {"name": "news"}, "tags": "films"}])
    away.write("shared/news/tasks/main.yml", [{**task, "tags": "news"}])
    away.write("play.yml", [{"hosts": "all", "roles": [{"role": "films", "tags": ["night"]}]}])
    assert sorted(values(away, "plan", "play.yml", "--tags", "")) == ["films", "news", "night"]


def test_what_a_terminal_would_obey_is_not_offered(away: Desk) -> None:
    task = {"asset": {"title": "x"}, "tags": ["night", "n\x1b[2J", "n\u202eeg"]}
    away.play(task)
    assert values(away, "plan", "play.yml", "--tags", "n") == ["night"]


def test_runs_of_the_ledger(desk: Desk) -> None:
    assert desk.run("apply", desk.comment("new"), *INV, "--yes").code == 0
    (run,) = desk.run("history", "--format", "json").json
    for words in (("undo", "2"), ("history", "2"), ("report", "2")):
        (found,) = offered(desk, *words)
        assert found.value == run["run"]
        assert str(found.help).endswith(" ok play.yml")
    assert values(desk, "undo", "la") == ["last"]


def test_titles_that_were_shown_or_changed(desk: Desk) -> None:
    assert values(desk, "show", "asset", "EP00") == []
    assert desk.run("apply", desk.comment("new"), *INV, "--yes").code == 0
    assert values(desk, "show", "asset", "EP00") == ["EP001"]
    assert desk.run("show", "assets", "Raw", "--recursive", *INV).code == 0
    assert "Evening News raw" in values(desk, "export", "--title", "Even")
    assert {"EP001", "EP002"} <= set(values(desk, "export", "--title", "EP"))


def test_nothing_that_cannot_be_read_is_an_error(away: Desk) -> None:
    away.write("msauto.toml", "inventory = [")
    away.write("bad.yml", "a: [")
    away.write("state/msauto/ledger.sqlite", "no database")
    assert values(away, "plan", "-i", "bad.yml", "-l", "") == []
    assert values(away, "plan", "bad.yml", "-i", "missing", "-t", "") == []
    assert values(away, "undo", "2") == []


HEAVY = (
    "aiohttp",
    "jinja2",
    "pydantic",
    "msgspec",
    "lxml",
    "httpx",
    "asyncio",
    "msauto.api.stages",
)


@pytest.mark.scale
def test_an_answer_needs_no_command(away: Desk) -> None:
    """The first answer remembers the commands; later ones must come within 0.3 s, so that none of these is imported."""
    away.environment |= {
        "_MSAUTO_COMPLETE": "bash_complete",
        "COMP_WORDS": "msauto plan -i inventory.yml -l st",
    }
    away.environment |= {"COMP_CWORD": "5"}
    program = f"import sys; from msauto.cli.main import main; main(); print({{*{HEAVY}}} & {{*sys.modules}})"
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=away.folder,
            env=away.surroundings(),
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout.splitlines() == ["plain,studio-a", "set()"]


def test_bash_keeps_a_title_whole(desk: Desk, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": desk.surroundings()["XDG_CACHE_HOME"]}):
        keep_titles("http://a", "NEWS", ["Evening News, $HOME * raw", "two\nlines"])
    desk.write("bin/msauto", f'#!/bin/sh\nexec "{sys.executable}" -m msauto "$@"\n')
    (desk.folder / "bin/msauto").chmod(0o755)
    words = 'COMP_WORDS=(msauto show asset Even); COMP_CWORD=3; _msauto_completion msauto; echo "${COMPREPLY[@]}"'
    script = f'PATH="{desk.folder}/bin:$PATH"\n{desk.run("completion", "bash").out}\n{words}\n'
    done = subprocess.run(
        [bash],
        input=script,
        cwd=desk.folder,
        env=desk.surroundings(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1:] == [r"Evening\ News\,\ \$HOME\ \*\ raw"], done.stderr
