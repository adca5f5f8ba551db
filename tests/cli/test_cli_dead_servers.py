"""Servers that refuse access or fail after planning: the exit code, the report, and ``--resume`` afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from msauto.simulator import Simulator, empty_state
from tests.cli.command_line import Desk

FLAGS = ("-i", "inventory.yml", "--state-dir", "state", "--yes")
TITLES = [f"Clip {number:02}" for number in range(30)]


@pytest.fixture
def sim() -> Iterator[Simulator]:
    state = empty_state()
    for title in TITLES:
        state.databases["NEWS"].add_clip(title, "Raw", frames=100)
    with Simulator(state=state) as simulator:
        yield simulator


@pytest.fixture
def desk(tmp_path: Path, sim: Simulator) -> Desk:
    return Desk(tmp_path, sim.url)


def playbook(desk: Desk) -> str:
    return desk.play({"asset": {"title": "{{ item }}", "fields": {"comment": "Ready"}}, "loop": TITLES})


def ready(sim: Simulator) -> int:
    return sum(sim.state.clip(title).home.fields.get("comment") == "Ready" for title in TITLES)


@pytest.mark.parametrize(
    ("fault", "words", "most"),
    [
        ("status:403@POST", "the server studio-a rejects our account (", 2),
        ("status:400@SETFIELD", "the server studio-a rejected SETFIELD for 3 targets in a row (", 4),
    ],
)
def test_rejected_writes_are_not_repeated_for_every_clip_and_explained_once(
    desk: Desk, sim: Simulator, fault: str, words: str, most: int
) -> None:
    sim.faults.add(fault)
    ended = desk.run("apply", playbook(desk), *FLAGS, "--forks", "2")
    assert ended.code == 3
    assert sum(each.method == "POST" for each in sim.log) <= most
    assert ended.out.count(words) == 1
    assert "msauto apply --resume" in ended.out

    sim.faults.clear()
    assert desk.run("apply", playbook(desk), "--resume", "last", *FLAGS).code == 0
    assert ready(sim) == len(TITLES)


def test_resume_plans_the_playbook_again_for_what_the_run_did_not_finish(desk: Desk, sim: Simulator) -> None:
    sim.faults.add("status:403@POST .*Clip%2001")
    assert desk.run("apply", playbook(desk), *FLAGS, "--forks", "1").code == 3
    sim.faults.clear()
    sim.state.clip("Clip 00").home.fields["comment"] = "changed by hand after the run"
    sim.state.clip("Clip 29").home.fields["comment"] = "changed by hand, and planned again"
    again = desk.run("apply", playbook(desk), "--resume", "last", *FLAGS)
    assert (again.code, ready(sim)) == (0, len(TITLES) - 1), again
    assert "--resume narrows this plan" in again.out + again.err
    assert desk.run("apply", playbook(desk), "--resume", "last", *FLAGS).code == 4  # it finished every target
