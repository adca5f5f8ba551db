"""What bad input gets: one clear error with place, cause and remedy, exit code 1, and no request to any server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from msauto.cli.main import COMMANDS, group
from msauto.plugins.simulator.embedded import Simulator
from tests.cli.command_line import Desk
from tests.tables import table

INV = ("-i", "inventory.yml")
LONG = "x" * 300
"""The name of a file that no file system takes."""


# Places that cannot be written -----------------------------------------------------------------------------------


def test_a_plan_is_kept_whole_and_for_its_owner(desk: Desk) -> None:
    desk.comment("new")
    before = desk.files()
    for _ in range(2):
        assert desk.run("plan", *INV, "play.yml", "--out", "tonight.plan").code == 0
    assert desk.files() == before | {"tonight.plan"}
    assert (desk.folder / "tonight.plan").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("apply", "--yes", *INV, "play.yml", f"--forks={'9' * 5000}"),
        ("apply", "--yes", *INV, "play.yml", f"--allow-delete={'9' * 5000}"),
        ("simulate", "--port=0", f"--fault=cut_before@GET*{'9' * 5000}"),
        ("show", "databases", "--server", f"http://127.0.0.1:{'9' * 5000}"),
        ("plan", *INV, "deep.yml"),
        ("history", "--state-dir", "a\0b"),
        ("plan", "-i", LONG, "play.yml"),
        ("plan", *INV, LONG),
        ("apply", "--yes", LONG),
        ("validate", LONG),
        ("plan", *INV, "far.yml"),
        ("plan", *INV, "play.yml", "--state-dir", LONG),
        ("plan", *INV, "still.yml"),
    ],
    ids=[
        *("forks", "a limit", "a fault", "a port", "a deep file", "a state folder"),
        *("an inventory", "a playbook", "a plan", "what is validated", "variables", "a ledger"),
        "a path",
    ],
)
def test_what_is_long_or_deep_or_has_a_nul_is_one_error(
    desk: Desk, sim: Simulator, arguments: tuple[str, ...]
) -> None:
    desk.comment("new")
    desk.write("deep.yml", "[" * 3000 + "]" * 3000)
    desk.write("far.yml", [{"hosts": "all", "vars_files": [[LONG, "play.yml"]], "tasks": []}])
    still = {"title": "EP001", "dest": f"{'out/' * 1020}still.png"}
    desk.play({"thumbnail": still}, name="still.yml")
    sourced = desk.run(*arguments)
    assert (sourced.code, sim.log) == (1, []), sourced
    sourced.one_error("→")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everywhere")
@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "-i", "closed/inventory.yml", "play.yml"),
        ("plan", "-i", "closed", "play.yml"),
        ("plan", *INV, "closed/play.yml"),
        ("plan", *INV, "far.yml"),
        ("validate", "closed/play.yml"),
        ("validate", "."),
        ("apply", "--yes", "closed/plan.json"),
        ("plan", *INV, "play.yml", "--state-dir", "closed/state"),
        ("vars", "studio-a", "-i", "closed/inventory.yml"),
    ],
    ids=lambda arguments: " ".join(arguments[:1] + arguments[-1:]),
)
def test_what_this_user_may_not_read_is_one_error(
    desk: Desk, sim: Simulator, arguments: tuple[str, ...]
) -> None:
    """A service user, and an inventory with passwords in a folder of another one."""
    desk.comment("new")
    desk.write("far.yml", [{"hosts": "all", "vars_files": [["closed/v.yml", "play.yml"]]}])
    closed = desk.folder / "closed"
    closed.mkdir(mode=0o000)
    sourced = desk.run(*arguments)
    closed.chmod(0o700)
    assert (sourced.code, sim.log) == (1, []), sourced
    sourced.one_error("Permission denied", "→")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everywhere")
def test_variables_that_this_user_may_not_read_are_not_left_out(desk: Desk, sim: Simulator) -> None:
    desk.comment("new")
    closed = desk.folder / "group_vars" / "all"
    closed.mkdir(mode=0o000, parents=True)
    sourced = desk.run("plan", *INV, "play.yml")
    closed.chmod(0o700)
    assert (sourced.code, sourced.out, sim.log) == (1, "", []), sourced
    sourced.one_error("group_vars/all: the folder cannot be read: Permission denied", "→")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everywhere")
@pytest.mark.parametrize("part", ["tasks", "handlers", "defaults", "vars", "meta"])
def test_parts_of_a_role_that_this_user_may_not_read_are_not_left_out(
    desk: Desk, sim: Simulator, part: str
) -> None:
    desk.write("play.yml", [{"hosts": "all", "database": "NEWS", "roles": ["films"], "tasks": []}])
    role = desk.folder / "roles" / "films"
    for folder in ("tasks", "handlers", "defaults", "vars", "meta"):
        (role / folder).mkdir(parents=True)
    tasks = [{"asset": {"title": "Long Film", "fields": {"comment": "new"}}}]
    desk.write("roles/films/tasks/main.yml", tasks)
    closed = role / part
    closed.chmod(0o000)
    sourced = desk.run("plan", *INV, "play.yml")
    closed.chmod(0o700)
    assert (sourced.code, sourced.out, sim.log) == (1, "", []), sourced
    sourced.one_error(f"roles/films/{part}/main.yml: the file cannot be read: Permission", "→")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_state_folder_without_permission(desk: Desk, sim: Simulator, tmp_path: Path) -> None:
    desk.comment("new")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    sourced = desk.run("apply", "--yes", *INV, "play.yml", "--state-dir", str(closed / "state"))
    assert sourced.code == 1
    sourced.one_error("ledger", "→")
    assert not sim.writes()


@pytest.mark.scale
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_behind_stdout(desk: Desk, sim: Simulator) -> None:
    desk.comment("new")
    with Path("/dev/full").open("w") as full:
        for command in (("plan",), ("apply", "--yes")):
            sourced = desk.spawn(*command, *INV, "play.yml", stdout=full)
            assert sourced.code == 1
            sourced.one_error("cannot write the result: No space left on device")
        assert not sim.writes()
        sourced = desk.spawn("apply", "--yes", "--format", "json", *INV, "play.yml", stdout=full)
    assert sourced.code == 3  # it was applied, and nobody could be told
    sourced.one_error("No space left", "msauto history")
    assert len(sim.writes()) == 1


@pytest.mark.scale
def test_whoever_reads_has_gone(desk: Desk, sim: Simulator) -> None:
    desk.comment("new")
    for command, code in (
        (("plan", *INV, "play.yml"), 0),
        (("show", "assets", *INV), 0),
        (("schema",), 0),
    ):
        sourced = _into_nothing(desk, *command)
        assert (sourced[0], sourced[1]) == (code, ""), sourced
    code, err = _into_nothing(desk, "apply", "--yes", *INV, "play.yml")
    assert code == 1
    assert "nothing was sent" in err
    assert not sim.writes()
    code, err = _into_nothing(desk, "apply", "--yes", "--format", "json", *INV, "play.yml")
    assert (code, err) == (0, "")
    assert len(sim.writes()) == 1


def _into_nothing(desk: Desk, *arguments: str) -> tuple[int, str]:
    ours, theirs = os.pipe()
    os.close(ours)
    with desk.start(*arguments, stdout=theirs) as process:
        os.close(theirs)
        _, err = process.communicate(timeout=30)
    return process.returncode, err


# An error points at its cause: the title of an unknown asset, the task that lacks a key, the server's URL


HEAD = "- hosts: all\n  tasks:\n"


@table("cli/unknown_assets", "task")
def test_an_unknown_asset_at_its_title(desk: Desk, task: str) -> None:
    desk.write("play.yml", HEAD + task)
    line = (HEAD + task).splitlines()[3]
    key = "title: " if "title: " in line else "id: "
    sourced = desk.run("plan", *INV, "play.yml")
    assert sourced.code == 1
    assert f"play.yml:4:{line.index(key) + len(key) + 1}: " in sourced.out, sourced.out


@pytest.mark.scale
def test_a_connection_error_names_the_url(away: Desk) -> None:
    away.inventory({"studio-a": {"server": {"url": "http://127.0.0.1:1"}, "database": "NEWS"}})
    away.comment("x")
    assert (
        "server studio-a at http://127.0.0.1:1: no connection"
        in away.run("plan", *INV, "play.yml").out
    )
    away.run("show", "channels", *INV).one_error("server studio-a at http://127.0.0.1:1: ")


# What a new user gets: help that fits a terminal of 80 columns, and errors with a remedy


def test_the_list_of_commands_fits_and_is_cut_nowhere() -> None:
    told = CliRunner().invoke(group, ["--help"], terminal_width=80).output
    lines = told.splitlines()
    assert told.replace("\n", "").isprintable()
    assert all(len(line) <= 80 for line in lines)
    for name in COMMANDS:
        (line,) = [line for line in lines if line.startswith(f"  {name} ")]
        assert not line.endswith("...")
    for word in ("msauto demo", "msauto init", "Exit codes: 0 fine", "130 interrupted"):
        assert word in told


@table("cli/show_what_does_not_exist", "arguments", "words", "remedy")
def test_show_names_what_is_not_there_and_what_is_nearest(
    desk: Desk, arguments: tuple[str, ...], words: str, remedy: str
) -> None:
    sourced = desk.run("show", *arguments, *INV)
    assert sourced.code == 1
    sourced.one_error(words, f"  → {remedy}")


@pytest.mark.parametrize(
    ("arguments", "listing"),
    [
        (("show", "asset", "Nobody", "-d", "NEWS"), "show assets"),
        (("show", "asset", "Promo 1"), "show databases"),
        (("show", "assets", "-d", "Elsewhere"), "show databases"),
        (("show", "channel", "nothing like it"), "show channels"),
    ],
)
def test_a_remedy_names_the_server_that_was_given(
    desk: Desk, sim: Simulator, arguments: tuple[str, ...], listing: str
) -> None:
    shown = desk.run(*arguments, "--server", sim.url)
    shown.one_error(f"msauto {listing} --server {sim.url}")


def test_a_port_that_is_taken(desk: Desk, sim: Simulator) -> None:
    sourced = desk.run("simulate", "--port", str(sim.port))
    sourced.one_error(f"Error: port {sim.port} on 127.0.0.1 is taken\n", "--port 0")
    assert "Errno" not in sourced.err
    sourced = desk.run("simulate", "--port", "0", "--fault", "status@x")
    sourced.one_error("needs a number, such as status:503")
