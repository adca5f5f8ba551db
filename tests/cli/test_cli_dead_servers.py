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


@pytest.mark.scale
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("status:401@.*+40", "no longer accepts our credentials"),
        ("cut_before@.*+40", "can no longer be reached"),
    ],
)
@pytest.mark.usefixtures("hurried")
def test_what_a_lost_server_leaves_is_taken_up_again(desk: Desk, sim: Simulator, fault: str, words: str) -> None:
    sim.faults.add(fault)
    ended = desk.run("apply", playbook(desk), *FLAGS, "--forks", "2", "--format", "json")
    assert ended.code == 3
    results = [target["result"] for target in ended.json["targets"]]
    left = [result for result in results if result["outcome"] == "not attempted"]
    assert len(left) >= 20
    assert all(words in result["message"] for result in left)
    asked = list(sim.log)[40:]
    assert len(asked) < 80
    run = desk.run("history", "--state-dir", "state", "--format", "json").json[0]["run"]
    assert all(f"msauto apply --resume {run}" in result["message"] for result in left)

    sim.faults.clear()
    before = ready(sim)
    again = desk.run("apply", "--resume", run, *FLAGS)
    assert again.code == 0
    assert ready(sim) == before + len(left)
