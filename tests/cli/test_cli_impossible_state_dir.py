"""An unusable ``state_dir`` is not an empty ledger: every command that reads it reports an error."""

from __future__ import annotations

import pytest

from msauto.simulator import Simulator
from tests.cli.command_line import Desk

INV = ("-i", "inventory.yml")


@pytest.mark.parametrize(
    "command",
    [
        ("plan", *INV, "play.yml"),
        ("apply", "--yes", *INV, "play.yml"),
        ("apply", "--check", *INV, "play.yml"),
        ("apply", "--yes", *INV, "--resume", "last"),
        ("undo", "--yes", *INV, "last"),
        ("history",),
        ("history", "last"),
    ],
    ids=" ".join,
)
def test_a_file(desk: Desk, sim: Simulator, command: tuple[str, ...]) -> None:
    desk.comment("new")
    desk.write("ledger", "a file")
    sourced = desk.run(*command, "--state-dir", "ledger")
    assert (sourced.code, sourced.out) == (1, ""), sourced
    sourced.one_error("ledger is not a folder", "--state-dir")
    assert not sim.writes()


def test_a_file_by_the_settings(desk: Desk) -> None:
    desk.comment("new")
    desk.write("ledger", "a file")
    desk.write("msauto.toml", 'state_dir = "ledger"\n[state]\nrequire = true\n')
    for command in (("plan",), ("apply", "--yes")):
        sourced = desk.run(*command, *INV, "play.yml")
        assert sourced.code == 1, sourced
        sourced.one_error("ledger is not a folder", "state_dir")


def test_a_name_that_no_folder_has(desk: Desk) -> None:
    desk.comment("new")
    desk.write("msauto.toml", 'state_dir = "a\\u0000b"\n')
    sourced = desk.run("plan", *INV, "play.yml")
    assert sourced.code == 1, sourced
    sourced.one_error("state_dir")
