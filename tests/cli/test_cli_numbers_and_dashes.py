"""Invalid numbers, and a file called ``-``: an error with a remedy, before anything is read."""

from __future__ import annotations

import json

import pytest

from msauto.simulator import Simulator
from tests.cli.command_line import Desk

INV = ("-i", "inventory.yml")


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "-1", "1e30", "86401", "soon", ""])
@pytest.mark.parametrize("command", [("apply", "--yes", *INV, "play.yml"), ("undo", "--yes", *INV, "last")])
def test_a_lock_timeout_that_never_ends(desk: Desk, sim: Simulator, command: tuple[str, ...], number: str) -> None:
    desk.comment("new")
    sourced = desk.run(*command, f"--lock-timeout={number}")
    assert (sourced.code, sim.log) == (1, []), sourced
    sourced.one_error("--lock-timeout", "→")


@pytest.mark.parametrize("number", ["0", "0.5", "86400"])
def test_a_lock_timeout(desk: Desk, number: str) -> None:
    desk.comment("new")
    assert desk.run("apply", "--yes", *INV, "play.yml", "--lock-timeout", number).code == 0


@pytest.mark.parametrize("command", [("plan",), ("apply", "--check")])
def test_a_plan_kept_on_stdout_is_all_that_is_there(desk: Desk, command: tuple[str, ...]) -> None:
    """``--out -`` is stdout, as everywhere on Unix: the plan file, whole, and nothing else."""
    desk.comment("new")
    sourced = desk.run(*command, *INV, "play.yml", "--out", "-")
    assert (sourced.code, sourced.json["format"]) == (0, "msauto-plan"), sourced
    assert "-" not in desk.files()
    desk.write("kept", sourced.out)
    assert desk.run("apply", "--yes", *INV, "kept").code == 0


def test_a_plan_with_errors_on_stdout(desk: Desk) -> None:
    desk.comment("new", title="No Such Clip")
    sourced = desk.run("plan", *INV, "play.yml", "--out", "-")
    assert sourced.code == 1
    assert json.loads(sourced.out)["summary"]["errors"] == 1
    sourced.one_error("cannot plan 1 target")


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_two_forms_on_stdout(desk: Desk, sim: Simulator, form: str) -> None:
    desk.comment("new")
    sourced = desk.run("plan", *INV, "play.yml", "--out", "-", "--format", form)
    assert (sourced.code, sourced.out, sim.log) == (1, "", []), sourced
    sourced.one_error("--out -", "→")


def test_a_freeze_on_no_day(desk: Desk, sim: Simulator) -> None:
    desk.write("msauto.toml", '[[freeze]]\ndays = []\nfrom = "18:00"\nto = "22:00"\ntz = "UTC"\n')
    desk.comment("new")
    sourced = desk.run("apply", "--yes", *INV, "play.yml")
    assert (sourced.code, sim.log) == (1, []), sourced
    sourced.one_error("days", "remove `days`")


NO_NUMBERS = ("nan", "inf", "-inf", "-1", "1.5", "true", "many", "²", "", "9" * 5000)


@pytest.mark.parametrize(
    ("flag", "number"),
    [
        *[("--forks", each) for each in (*NO_NUMBERS, "0", "513", str(10**30))],
        *[(f"--allow-{each}", number) for each in ("delete", "remove", "requests") for number in NO_NUMBERS],
    ],
)
def test_a_flag_whose_number_is_none(desk: Desk, sim: Simulator, flag: str, number: str) -> None:
    desk.comment("new")
    sourced = desk.run("apply", "--yes", *INV, "play.yml", f"{flag}={number}")
    assert (sourced.code, sim.log) == (1, []), sourced
    sourced.one_error(flag, "→")


@pytest.mark.parametrize("flag", ["--allow-delete", "--allow-remove", "--allow-requests"])
def test_more_than_any_run_does_may_be_allowed(desk: Desk, flag: str) -> None:
    desk.comment("new")
    assert desk.run("apply", "--yes", *INV, "play.yml", flag, str(10**30)).code == 0


@pytest.mark.parametrize(
    ("flag", "number"),
    [
        *[("--port", each) for each in (*NO_NUMBERS, "65536", str(10**30))],
        *[("--seed", f"bulk:{each}") for each in (*NO_NUMBERS, "10000000", str(10**30))],
        *[("--fault", f"status:{each}@GET") for each in (*NO_NUMBERS, "99", "600", "99999")],
        *[("--fault", f"delay:{each}@GET") for each in ("nan", "inf", "-1", "", "9" * 400)],
        *[("--fault", f"cut_before@GET*{'9' * 5000}")],
    ],
)
def test_a_simulator_whose_number_is_none(desk: Desk, flag: str, number: str) -> None:
    sourced = desk.run("simulate", "--port=0", f"{flag}={number}")
    assert sourced.code == 1, sourced
    sourced.one_error("Error: ", "→")


@pytest.mark.parametrize("port", ["0", "65536", "-1", "nan", "²", "9" * 5000])
def test_a_server_whose_port_is_none(desk: Desk, port: str) -> None:
    sourced = desk.run("show", "databases", "--server", f"http://127.0.0.1:{port}")
    assert sourced.code == 1, sourced
    sourced.one_error("→ write http://host:7901")
