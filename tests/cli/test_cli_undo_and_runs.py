"""``undo``, ``--not-after``, dead runs and ``[state] keep_runs`` on the command line."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from datetime import time as wall_time
from pathlib import Path

import pytest

from msauto.cli.asked import next_time
from msauto.ledger import Ledger
from msauto.model.plan import Plan
from msauto.simulator import Simulator, empty_house
from tests.cli.command_line import Desk

FLAGS = ("-i", "inventory.yml", "--state-dir", "state")
TITLES = ("A", "B", "C")


@pytest.fixture
def sim() -> Iterator[Simulator]:
    house = empty_house()
    for title in TITLES:
        house.databases["NEWS"].add_clip(title, "Raw", frames=100)
    with Simulator(house=house) as simulator:
        yield simulator


@pytest.fixture
def desk(tmp_path: Path, sim: Simulator) -> Desk:
    return Desk(tmp_path, sim.url)


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "what the test waits for did not come"
        time.sleep(0.01)


def all_three(desk: Desk) -> str:
    return desk.play({"asset": {"title": "{{ item }}", "fields": {"comment": "Ready"}}, "loop": list(TITLES)})


def comments(sim: Simulator) -> list[str]:
    return [sim.house.clip(title).home.fields.get("comment", "") for title in TITLES]


def test_undo_is_shown_asked_for_and_applied(desk: Desk, sim: Simulator) -> None:
    assert desk.run("apply", all_three(desk), *FLAGS, "--yes").code == 0
    shown = desk.run("undo", "last", *FLAGS, "--check")
    assert (shown.code, comments(sim)) == (0, ["Ready"] * 3)
    assert '"Ready" → ""' in shown.out
    refused = desk.run("undo", "last", *FLAGS)
    assert (refused.code, comments(sim)) == (4, ["Ready"] * 3)
    no = desk.run("undo", "last", *FLAGS, typed="no\n")
    assert (no.code, comments(sim)) == (4, ["Ready"] * 3)
    done = desk.run("undo", "last", *FLAGS, typed="yes\n")
    assert (done.code, comments(sim)) == (0, [""] * 3)
    runs = desk.run("history", "--state-dir", "state", "--format", "json").json
    assert [run["playbooks"] for run in runs] == [[f"undo {runs[1]['run']}"], ["play.yml"]]
    assert desk.run("undo", runs[1]["run"], *FLAGS, "--yes").out.startswith("No changes")


def test_undo_of_what_is_not_there(desk: Desk) -> None:
    said = desk.run("undo", "last", *FLAGS, "--yes")
    said.one_error("holds no run yet", "--state-dir")
    assert said.code == 1


def test_undo_of_a_server_that_moved_is_refused(desk: Desk, sim: Simulator) -> None:
    assert desk.run("apply", all_three(desk), *FLAGS, "--yes").code == 0
    desk.inventory({"studio-a": {"server": {"url": "http://127.0.0.1:9"}, "database": "NEWS"}})
    said = desk.run("undo", "last", *FLAGS, "--yes")
    said.one_error("was done on studio-a at", "give the inventory of that run")
    assert said.code == 4


def test_undo_says_what_it_cannot_take_back(desk: Desk, sim: Simulator) -> None:
    play = desk.play({"asset": {"title": "A", "state": "absent"}})
    assert desk.run("apply", play, *FLAGS, "--yes", "--allow-delete", "1").code == 0
    said = desk.run("undo", "last", *FLAGS, "--yes")
    assert said.code == 0
    assert "A: asset A cannot be undone: a deleted asset does not come back" in said.out


def test_not_after_is_refused_where_it_is_past(desk: Desk, sim: Simulator) -> None:
    said = desk.run("apply", all_three(desk), *FLAGS, "--yes", "--not-after", "2020-01-01T00:00")
    said.one_error("--not-after")
    assert (said.code, sim.writes()) == (4, [])


@pytest.mark.parametrize("text", ["", "soon", "25:00", "5:30", "0001-01-01", "0001-01-01T00:00+14:00", "23:16Z"])
def test_not_after_wants_a_time(desk: Desk, sim: Simulator, text: str) -> None:
    said = desk.run("apply", all_three(desk), *FLAGS, "--yes", "--not-after", text)
    said.one_error("--not-after", "is no time: write 05:30, or 2026-11-21T05:30")
    assert (said.code, sim.writes()) == (1, [])


@pytest.mark.parametrize(
    ("now", "clock", "expected"),
    [
        ("2026-11-20T22:00+01:00", "05:30", "2026-11-21T05:30+01:00"),
        ("2026-11-20T05:29+01:00", "05:30", "2026-11-20T05:30+01:00"),
        ("2026-11-20T05:30+01:00", "05:30", "2026-11-21T05:30+01:00"),
        ("2026-10-24T22:00+02:00", "05:30", "2026-10-25T05:30+01:00"),  # the clocks are put back in between
        ("2026-03-28T22:00+01:00", "05:30", "2026-03-29T05:30+02:00"),  # and forward
    ],
)
def test_not_after_is_by_the_clock_on_the_wall(
    monkeypatch: pytest.MonkeyPatch, now: str, clock: str, expected: str
) -> None:
    monkeypatch.setenv("TZ", "Europe/Oslo")
    time.tzset()
    try:
        here = datetime.fromisoformat(now).astimezone()
        assert next_time(wall_time.fromisoformat(clock), here) == datetime.fromisoformat(expected)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_not_after_begins_no_target_any_more(desk: Desk, sim: Simulator) -> None:
    sim.faults.add("delay:2@POST")
    until = (datetime.now(UTC) + timedelta(seconds=1.7)).isoformat()
    said = desk.run("apply", all_three(desk), *FLAGS, "--yes", "--forks", "1", "--not-after", until, "--format", "json")
    outcomes = [target["result"]["outcome"] for target in said.json["targets"]]
    assert (said.code, outcomes) == (3, ["changed", "not attempted", "not attempted"])
    assert comments(sim) == ["Ready", "", ""]
    sim.faults.clear()
    assert desk.run("apply", "--resume", "last", *FLAGS, "--yes").code == 0
    assert comments(sim) == ["Ready"] * 3


def test_resume_and_playbooks_do_not_go_together(desk: Desk) -> None:
    said = desk.run("apply", all_three(desk), "--resume", "last", *FLAGS, "--yes")
    assert said.code == 1
    assert "give no playbooks" in said.err


def die(desk: Desk, sim: Simulator, *, sent: bool) -> str:
    """Leave a run that died while the first request of the first target was under way."""
    assert desk.run("plan", all_three(desk), *FLAGS, "--out", "plan.json").code == 0
    from msauto.cli.saved import read_plan_file

    plan: Plan = read_plan_file(str(desk.folder / "plan.json"))
    with Ledger.open(desk.folder / "state") as ledger:
        ledger.journal.notes["url of studio-a"] = sim.url
        run = ledger.journal.start(plan, ["play.yml"])
        ledger.journal.planned(run, plan.targets[0])
        ledger.journal.sending(run, plan.targets[0], 0)
    if sent:
        sim.house.clip("A").home.fields["comment"] = "Ready"
    return run


@pytest.mark.parametrize("sent", [True, pytest.param(False, marks=pytest.mark.scale)])
def test_a_run_that_died_is_settled_by_reading(desk: Desk, sim: Simulator, sent: bool) -> None:
    run = die(desk, sim, sent=sent)
    assert desk.run("history", run, "--state-dir", "state", "--format", "json").json["status"] == "died"
    said = desk.run("apply", all_three(desk), *FLAGS, "--yes")
    assert said.code == 0
    assert f"Warning: run {run}" in said.err
    assert "died with 1 target under way" in said.err
    assert comments(sim) == ["Ready"] * 3
    assert len(sim.writes()) == (2 if sent else 3)
    story = desk.run("history", run, "--state-dir", "state", "--format", "json").json
    assert story["status"] == "interrupted"
    states = [target["requests"][0]["result"]["outcome"] for target in story["targets"]]
    assert states == ["done" if sent else "unproved", "not sent", "not sent"], story
    assert "died" not in desk.run("apply", all_three(desk), *FLAGS, "--yes").err


def test_a_ledger_that_is_taken_away_stops_the_run(desk: Desk, sim: Simulator) -> None:
    sim.faults.add("delay:1@POST")
    with desk.start("apply", all_three(desk), *FLAGS, "--yes", "--forks", "1", "--format", "json") as process:
        wait_for(lambda: bool(sim.writes()))
        for path in desk.state.glob("ledger*"):
            path.unlink()
        out, _ = process.communicate(timeout=30)
    results = [target["result"] for target in json.loads(out)["targets"]]
    assert [each["outcome"] for each in results] == ["changed", "not attempted", "not attempted"]
    assert (process.returncode, comments(sim)) == (3, ["Ready", "", ""])
    assert "was taken away" in results[1]["message"]


def test_a_dead_run_of_a_server_that_is_not_at_hand_waits(desk: Desk, sim: Simulator) -> None:
    run = die(desk, sim, sent=True)
    with Simulator(house=empty_house()) as other:
        other.house.databases["NEWS"].add_clip("A", "Raw", frames=10)
        desk.inventory({"studio-b": {"server": {"url": other.url}, "database": "NEWS"}}, "other.yml")
        play = desk.comment("x", "A", name="other-play.yml")
        said = desk.run("apply", play, "-i", "other.yml", "--state-dir", "state", "--yes")
    assert (said.code, "died" in said.err) == (0, False)
    assert desk.run("history", run, "--state-dir", "state", "--format", "json").json["status"] == "died"


def test_old_runs_are_forgotten_where_the_settings_say_so(desk: Desk, sim: Simulator) -> None:
    desk.write("msauto.toml", "[state]\nkeep_runs = 2\n")
    for text in ("1", "2", "3"):
        assert desk.run("apply", desk.comment(text, "A"), *FLAGS, "--yes").code == 0
    assert len(desk.run("history", "--state-dir", "state", "--format", "json").json) == 2
