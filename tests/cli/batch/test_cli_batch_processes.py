"""Batches as processes: two at once, signals, a full disk, ``kill -9``."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msauto.plugins.simulator.embedded import Simulator
from tests.cli.batch.test_cli_batch import STATE, batch, history
from tests.cli.command_line import Desk
from tests.cli.runs.test_cli_interrupts import ended, episodes, until
from tests.unit.batch.recorder import Recorder, recording

RUN = ("batch", "run", "batch.yml", *STATE, "--format", "json")


@pytest.fixture
def sim() -> Iterator[Simulator]:
    """A separate simulator: its delayed work must not be done in another test."""
    with Simulator() as simulator:
        yield simulator


@pytest.fixture
def desk(sim: Simulator, tmp_path: Path) -> Desk:
    desk = Desk(tmp_path, sim.url)
    episodes(desk, 2)
    batch(desk, {name: {"playbooks": "play.yml", "forks": 1} for name in ("a", "b")})
    return desk


def outcomes(out: str) -> list[Any]:
    return [(job["outcome"], job["code"]) for job in json.loads(out)["jobs"]]


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    with recording() as made:
        yield made


def watched(desk: Desk, recorder: Recorder) -> None:
    jobs = {name: {"playbooks": "play.yml", "forks": 1} for name in ("a", "b")}
    notify = [{"to": recorder.url("notice", "json"), "on": ["failed"]}]
    batch(desk, jobs, heartbeat=recorder.url("ping"), notify=notify)


@pytest.mark.scale
def test_two_batches_of_one_name_never_overlap(desk: Desk) -> None:
    code = "import time\nfrom pathlib import Path\nwhile not Path('go').exists(): time.sleep(0.01)"
    jobs = {name: {"playbooks": "play.yml"} for name in ("a", "b")}
    batch(desk, jobs, defaults={"on_end": [[sys.executable, "-c", code]]})
    with desk.start(*RUN) as first:
        until(
            lambda: (
                (desk.state / "ledger.sqlite").exists()
                and [e for e in history(desk) if e["job"] == "a"]
            )
        )
        second = desk.spawn(*RUN)
        assert second.code == 5
        status = desk.run("batch", "status", "batch.yml", "--format", "json", *STATE).json
        assert [job["outcome"] for job in status] == ["running", "waiting"]
        desk.write("go", "")
        assert "is running already: run " in second.err
        assert json.loads(second.out)["outcome"] == "locked"
        code_of_first, out, _ = ended(first)
    assert (code_of_first, outcomes(out)) == (0, [("ok", 0), ("ok", 0)])
    assert sorted(each["status"] for each in history(desk) if not each["job"]) == ["locked", "ok"]


@pytest.mark.parametrize(
    ("number", "at", "fault"),
    [
        (signal.SIGINT, "GET", "delay:300@GET"),  # longer than the time limit of a test
        pytest.param(signal.SIGTERM, "POST", "delay:0.7@POST", marks=pytest.mark.scale),
        pytest.param(signal.SIGHUP, "POST", "delay:0.7@POST", marks=pytest.mark.scale),
    ],
)
def test_a_signal_stops_the_batch_gently_and_is_reported(
    desk: Desk, sim: Simulator, recorder: Recorder, number: int, at: str, fault: str
) -> None:
    watched(desk, recorder)
    sim.faults.add(fault)
    with desk.start(*RUN) as process:
        until(lambda: at in [entry.method for entry in sim.log])
        process.send_signal(number)
        code, out, _ = ended(process)
    assert code == 130
    assert json.loads(out)["outcome"] == "interrupted"
    assert outcomes(out) == [("interrupted", 130), ("not attempted", 130)]
    assert {entry.status for entry in sim.writes()} <= {200}
    (of_batch,) = [entry for entry in history(desk) if not entry["job"]]
    assert of_batch["status"] == "interrupted"
    assert of_batch["code"] == 130
    assert sorted(recorder.paths) == ["/notice", "/ping/130", "/ping/start"]


@pytest.mark.scale
@pytest.mark.usefixtures("hurried")
def test_after_kill_9_there_is_a_start_alone_and_the_rest_is_known(
    desk: Desk, sim: Simulator, recorder: Recorder
) -> None:
    watched(desk, recorder)
    sim.faults.add("delay:300@POST")  # longer than the time limit of a test
    with desk.start(*RUN) as process:
        until(sim.writes)
        process.kill()
        process.wait()
    assert recorder.paths == ["/ping/start"]
    sim.faults.clear()
    (of_batch,) = [each for each in history(desk) if not each["job"]]
    assert of_batch["status"] == "died"
    shown = desk.run("history", of_batch["run"], *STATE)
    assert shown.out.startswith("nightly: interrupted: 2 of 2 jobs not ok (its process died)\n")
    assert "its process died\n    → run it again\n" in shown.out
    assert "a: 1 of 4 requests sent; its process died" in desk.run("history", *STATE).out
    assert shown.out == desk.run("report", of_batch["run"], *STATE).out
    story = desk.run("history", of_batch["run"], *STATE, "--format", "json").json
    assert (story["status"], story["outcome"]) == ("died", "interrupted")
    status = desk.run("batch", "status", "batch.yml", *STATE, "--format", "json")
    assert (status.code, {each["last_success"] for each in status.json}) == (3, {None})
    _, command = shown.out.splitlines()[-1].split("→ to run these jobs again: ")
    again = desk.run(*shlex.split(command)[1:], "--format", "json")
    assert [(job["job"], job["outcome"]) for job in again.json["jobs"]] == [
        ("a", "ok"),
        ("b", "ok"),
    ]
    assert "died with 1 target in progress" in again.json["jobs"][0]["warnings"][0]
    assert desk.run("batch", "status", "batch.yml", *STATE).code == 0


@pytest.mark.scale
def test_a_full_disk_at_the_summary(desk: Desk) -> None:
    with Path("/dev/full").open("w") as full:
        said = desk.spawn(*RUN, stdout=full)
    assert said.code == 3
    assert "cannot write the result" in said.err
    assert [each["status"] for each in history(desk) if not each["job"]] == ["ok"]


@pytest.mark.scale
def test_monitoring_that_hangs_gets_10_seconds(desk: Desk, recorder: Recorder) -> None:
    recorder.status = 0
    watched(desk, recorder)
    desk.write("play.yml", "- hosts: [")
    said = desk.spawn(*RUN)
    assert said.code == 1
    deliveries = json.loads(said.out)["deliveries"]
    assert [(each["kind"], bool(each["error"])) for each in deliveries] == [
        ("heartbeat", True),
        ("heartbeat", True),
        ("notice", True),
    ]


@pytest.mark.scale
def test_messages_in_the_journal_have_priorities(desk: Desk, tmp_path: Path) -> None:
    desk.write("play.yml", "- hosts: [")
    with (tmp_path / "journal").open("wb") as journal:
        status = os.fstat(journal.fileno())
        desk.environment["JOURNAL_STREAM"] = f"{status.st_dev}:{status.st_ino}"
        said = desk.spawn(*RUN, stderr=journal)
    lines = (tmp_path / "journal").read_text(encoding="utf-8").splitlines()
    assert said.code == 1
    assert lines[0] == "<6>=== nightly: a"
    assert any(line.startswith("<3>play.yml:1:") for line in lines)
    assert all(re.match("<[346]>", line) for line in lines)
