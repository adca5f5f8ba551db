"""``undo`` and ``--resume``: the settings of the run hold in any directory; ``last`` is a run that wrote something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msauto.simulator import Simulator, empty_state
from tests.cli.command_line import Desk

STATE = ("--state-dir", "state", "--yes")
HOUSE = 'inventory = "../inventory.yml"\nprotected = ["Guarded"]\n'
SEGMENT = {"asset": {"title": "Film", "segments": [{"number": 1, "start": 0, "duration": 10}]}}
ALLOWED = 'inventory = "../inventory.yml"\n'


@pytest.fixture
def sim() -> Iterator[Simulator]:
    state = empty_state()
    state.databases["NEWS"].add_clip("Film", "Guarded", frames=100)
    with Simulator(state=state) as simulator:
        yield simulator


@pytest.fixture
def desk(tmp_path: Path, sim: Simulator) -> Desk:
    made = Desk(tmp_path, sim.url)
    made.write("house/msauto.toml", HOUSE)
    return made


def segments(sim: Simulator) -> int:
    return len(sim.state.clip("Film").segments)


def applied(desk: Desk) -> None:
    desk.play(SEGMENT, name="house/play.yml")
    assert desk.run("apply", "house/play.yml", *STATE).code == 0


def test_undo_elsewhere_obeys_what_is_beside_the_playbooks(desk: Desk, sim: Simulator) -> None:
    applied(desk)
    sourced = desk.run("undo", "last", *STATE)
    assert (sourced.code, segments(sim)) == (4, 1), sourced
    sourced.one_error("protected")


def test_a_config_of_today_wins(desk: Desk, sim: Simulator) -> None:
    applied(desk)
    desk.write("house/other.toml", ALLOWED)
    assert desk.run("undo", "last", "--config", "house/other.toml", *STATE).code == 0
    assert segments(sim) == 0


def test_a_config_that_the_run_was_given_holds_for_its_undo(desk: Desk, sim: Simulator) -> None:
    desk.write("rules/house.toml", HOUSE)
    (desk.folder / "house/msauto.toml").unlink()
    desk.play(SEGMENT, name="house/play.yml")
    assert desk.run("apply", "house/play.yml", "--config", "rules/house.toml", *STATE).code == 0
    assert (desk.run("undo", "last", *STATE).code, segments(sim)) == (4, 1)


def test_undo_of_an_undo_obeys_them_too(desk: Desk, sim: Simulator) -> None:
    desk.write("house/msauto.toml", ALLOWED)
    applied(desk)
    assert (desk.run("undo", "last", *STATE).code, segments(sim)) == (0, 0)
    desk.write("house/msauto.toml", ALLOWED + "[limits]\nrequests = 0\n")
    sourced = desk.run("undo", "last", *STATE)
    assert (sourced.code, segments(sim)) == (4, 0), sourced


def test_settings_that_are_gone_are_told_where_others_hold(desk: Desk, sim: Simulator) -> None:
    applied(desk)
    (desk.folder / "house/msauto.toml").unlink()
    desk.write("msauto.toml", 'inventory = "inventory.yml"\n')
    sourced = desk.run("undo", "last", *STATE)
    assert (sourced.code, segments(sim)) == (0, 0), sourced
    assert "Warning" in sourced.err
    assert "house/msauto.toml does not exist" in sourced.err


def test_resume_obeys_the_settings_that_the_run_was_given(desk: Desk, sim: Simulator) -> None:
    desk.write("house/strict.toml", ALLOWED)
    sim.faults.add("status:401@SETFIELD")
    desk.play({"asset": {"title": "Film", "fields": {"comment": "x"}}})
    assert desk.run("apply", "play.yml", "--config", "house/strict.toml", *STATE).code == 3
    sim.faults.clear()
    desk.write("house/strict.toml", ALLOWED + "[limits]\nrequests = 0\n")
    assert desk.run("apply", "--resume", "last", *STATE).code == 4
    desk.write("house/strict.toml", ALLOWED)
    assert desk.run("apply", "--resume", "last", *STATE).code == 0


def test_resume_elsewhere_obeys_what_is_beside_the_playbooks(desk: Desk, sim: Simulator) -> None:
    desk.write("house/msauto.toml", ALLOWED)
    task = {"asset": {"title": "{{ item }}", "fields": {"comment": "x"}}, "loop": ["Film", "Other"]}
    sim.state.databases["NEWS"].add_clip("Other", "Guarded", frames=100)
    sim.faults.add("status:401@SETFIELD")
    desk.play(task, name="house/play.yml")
    assert desk.run("apply", "house/play.yml", "--forks", "1", *STATE).code == 3
    sim.faults.clear()
    desk.write("house/msauto.toml", ALLOWED + "[limits]\nrequests = 0\n")
    assert desk.run("apply", "--resume", "last", *STATE).code == 4
    desk.write("house/msauto.toml", ALLOWED)
    assert desk.run("apply", "--resume", "last", *STATE).code == 0
    assert sim.state.clip("Other").home.fields["comment"] == "x"


def test_the_history_tells_whose_settings_held(desk: Desk) -> None:
    desk.write("house/msauto.toml", ALLOWED)
    applied(desk)
    (desk.folder / "house/msauto.toml").unlink()
    assert str(desk.folder / "house/msauto.toml") in desk.run("history", "last", "--state-dir", "state").out


# The last run ----------------------------------------------------------------------------------------------------


def test_undo_last_after_a_run_that_changed_nothing(desk: Desk, sim: Simulator) -> None:
    desk.write("house/msauto.toml", ALLOWED)
    applied(desk)
    applied(desk)  # as wanted already
    runs = desk.run("history", "--state-dir", "state", "--format", "json").json
    assert len(runs) == 2
    sourced = desk.run("undo", "last", *STATE)
    assert (sourced.code, segments(sim)) == (4, 1)
    sourced.one_error(f"the last run, {runs[0]['run']}, changed nothing", f"msauto undo {runs[1]['run']}")
    assert desk.run("undo", runs[1]["run"], *STATE).code == 0
    assert segments(sim) == 0


def test_undo_last_where_nothing_was_ever_changed(desk: Desk, sim: Simulator) -> None:
    desk.write("house/msauto.toml", ALLOWED)
    desk.play({"asset": {"title": "Film", "fields": {"comment": ""}}}, name="house/play.yml")
    assert desk.run("apply", "house/play.yml", *STATE).code == 0
    sourced = desk.run("undo", "last", *STATE)
    assert sourced.code == 4
    sourced.one_error("changed nothing", "no other run changed anything")


def test_the_last_run_is_that_of_this_repository(desk: Desk, sim: Simulator) -> None:
    applied(desk)
    desk.write("elsewhere/msauto.toml", ALLOWED)
    elsewhere = Desk(desk.folder / "elsewhere", sim.url)
    for command in (("undo", "last", "--yes"), ("report", "last"), ("history", "last")):
        sourced = elsewhere.run(*command, "--state-dir", "../state")
        assert sourced.code == 1, sourced
        sourced.one_error(f"contains no runs of the repository {elsewhere.folder}", "msauto history --all")
    assert segments(sim) == 1


# --check is plan -------------------------------------------------------------------------------------------------

BROKEN = {"asset": {"title": "Nobody", "fields": {"comment": "x"}}}
NAMED = [
    ("--format", "json"),
    ("--format", "markdown"),
    ("--format", "html"),
    ("-v",),
    ("--detailed-exitcode",),
    ("--keep-going",),
    ("--out", "kept.json"),
    ("--forget-pending",),
    ("--limit", "studio-a"),
    ("--limit", "nobody"),
    ("--tags", "none"),
    ("--no-color",),
    ("--server", "http://127.0.0.1:1"),
    ("--config", "house/other.toml"),
    (),
]


def same(text: str) -> str:
    """Return the output without the time."""
    return re.sub(r"\d\d:\d\d:\d\d(\.\d+)?", "", text)


@pytest.mark.parametrize(
    ("flags", "tasks"),
    [(flags, "both" if "--keep-going" in flags else "changes") for flags in NAMED]
    + [(flags, tasks) for flags in ((), NAMED[4]) for tasks in ("nothing", "errors", "both", "refused")],
)
def test_check_is_plan(desk: Desk, flags: tuple[str, ...], tasks: str) -> None:
    desk.write("house/other.toml", ALLOWED + "forks = 1\n")
    nothing = {"asset": {"title": "Film", "fields": {"comment": ""}}}
    gone = {"asset": {"title": "Film", "state": "absent"}}
    named: dict[str, list[dict[str, Any]]] = {
        "changes": [SEGMENT],
        "nothing": [nothing],
        "errors": [BROKEN],
        "both": [SEGMENT, BROKEN],
        "refused": [gone],
    }
    desk.play(*named[tasks], name="house/play.yml")
    planned = desk.run("plan", "house/play.yml", "--state-dir", "state", *flags)
    kept = desk.folder / "kept.json"
    first = kept.read_text() if kept.exists() else ""
    kept.unlink(missing_ok=True)
    checked = desk.run("apply", "--check", "house/play.yml", "--state-dir", "state", *flags)
    assert (checked.code, same(checked.out), same(checked.err)) == (planned.code, same(planned.out), same(planned.err))
    assert same(kept.read_text() if kept.exists() else "") == same(first)
    assert bool(first) == ("--out" in flags)
    if flags == ("--detailed-exitcode",):
        assert planned.code == {"changes": 2, "nothing": 0, "errors": 1, "both": 1, "refused": 4}[tasks]


@pytest.mark.parametrize("flags", [("--out", "kept.json"), ("--detailed-exitcode",)])
def test_flags_of_a_plan_are_for_a_check(desk: Desk, flags: tuple[str, ...]) -> None:
    desk.play(SEGMENT, name="house/play.yml")
    sourced = desk.run("apply", "house/play.yml", *STATE, *flags)
    assert sourced.code == 1
    sourced.one_error("--check")
