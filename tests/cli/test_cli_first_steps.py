"""What a new user gets: help that fits a terminal of 80 columns, and errors with a remedy."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from msauto.cli.main import COMMANDS, group
from msauto.simulator import Simulator
from tests.cli.command_line import Desk

INV = ("-i", "inventory.yml")


def test_the_list_of_commands_fits_and_is_cut_nowhere() -> None:
    told = CliRunner().invoke(group, ["--help"], terminal_width=80).output
    lines = told.splitlines()
    assert all(len(line) <= 80 for line in lines)
    for name in COMMANDS:
        (line,) = [line for line in lines if line.startswith(f"  {name} ")]
        assert not line.endswith("...")
    for word in ("msauto demo", "msauto init", "Exit codes: 0 fine", "130 interrupted"):
        assert word in told


@pytest.mark.parametrize(("typed", "meant"), [("aply", "'apply'"), ("plna", "'plan'"), ("simulator", "'simulate'")])
def test_a_command_that_is_misspelled(away: Desk, typed: str, meant: str) -> None:
    sourced = away.run(typed)
    assert sourced.code == 1
    sourced.one_error(f"did you mean {meant}?", "msauto --help")


def test_tasks_given_as_a_playbook(away: Desk) -> None:
    away.write("more.yml", "- asset: {title: A}\n")
    sourced = away.run("plan", *INV, "more.yml")
    assert sourced.code == 1
    sourced.one_error("this is a task (asset), but a playbook is a list of plays", "import_tasks")
    assert "did you mean" not in sourced.err


@pytest.mark.parametrize(
    ("arguments", "words", "remedy"),
    [
        (("assets", "Nowhere"), "studio-a has no folder 'Nowhere' in NEWS", "msauto show folders"),
        (("folders", "Nowhere"), "studio-a has no folder 'Nowhere' in NEWS", "msauto show folders"),
        (("assets", "-d", "NEWZ"), "studio-a has no media database 'NEWZ'", "msauto show databases"),
        (("folders", "-d", "NEWZ"), "studio-a has no media database 'NEWZ'", "msauto show databases"),
        (("asset", "Nobody"), "studio-a has no asset 'Nobody' in NEWS", "msauto show assets"),
        (("channel", "tick"), "studio-a has no channel 'tick'", "msauto show channels"),
    ],
)
def test_show_names_what_is_not_there_and_who_lists_it(
    desk: Desk, arguments: tuple[str, ...], words: str, remedy: str
) -> None:
    sourced = desk.run("show", *arguments, *INV)
    assert sourced.code == 1
    sourced.one_error(words, f"  → list them: {remedy}")


def test_a_web_server_that_is_no_media_server(desk: Desk, sim: Simulator) -> None:
    sim.faults.add("status:404@GET")
    for what in ("databases", "channels"):
        sourced = desk.run("show", what, *INV)
        sourced.one_error(f"studio-a has no list of {what}", "check that the address is that of a media server", "7901")
        assert sourced.code == 1


def test_a_port_that_is_taken(desk: Desk, sim: Simulator) -> None:
    sourced = desk.run("simulate", "--port", str(sim.port))
    sourced.one_error(f"Error: port {sim.port} on 127.0.0.1 is taken\n", "--port 0")
    assert "Errno" not in sourced.err
    sourced = desk.run("simulate", "--port", "0", "--fault", "status@x")
    sourced.one_error("needs a number, such as status:503")
