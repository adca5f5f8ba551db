"""Batches as processes: two at once, signals, a server that dies and comes back, a full disk, ``kill -9``."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msauto.simulator import Simulator
from tests.cli.command_line import Desk
from tests.cli.test_cli_batch_run import STATE, batch, history
from tests.cli.test_cli_interrupts import ended, episodes, until

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


def test_two_batches_of_one_name_never_overlap(desk: Desk, sim: Simulator) -> None:
    sim.faults.add("delay:1@POST")
    with desk.start(*RUN) as first:
        until(sim.writes)
        second = desk.spawn(*RUN)
        assert second.code == 5
        assert "is running already: run " in second.err
        assert json.loads(second.out)["outcome"] == "locked"
        code, out, _ = ended(first)
    assert (code, outcomes(out)) == (0, [("ok", 0), ("ok", 0)])
    assert sorted(each["status"] for each in history(desk) if not each["job"]) == ["locked", "ok"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("at", "fault"), [("GET", "delay:2@GET"), ("POST", "delay:0.7@POST")])
def test_a_signal_stops_the_batch_gently(desk: Desk, sim: Simulator, number: int, at: str, fault: str) -> None:
    sim.faults.add(fault)
    with desk.start(*RUN) as process:
        until(lambda: any(entry.method == at for entry in sim.log) or (at == "GET" and sim.log))
        process.send_signal(number)
        code, out, _ = ended(process)
    assert (code, json.loads(out)["outcome"]) == (130, "interrupted")
    assert outcomes(out) == [("interrupted", 130), ("not attempted", 130)]
    done = [entry for entry in sim.writes() if entry.status == 200]
    assert len(done) == len(sim.writes())
    (of_batch,) = [each for each in history(desk) if not each["job"]]
    assert (of_batch["status"], of_batch["code"]) == ("interrupted", 130)


def test_a_signal_while_it_waits_to_try_again(desk: Desk) -> None:
    desk.inventory({"studio-a": {"server": {"url": "http://127.0.0.1:1"}, "database": "NEWS"}})
    batch(desk, {"a": {"playbooks": "play.yml", "retry": {"times": 2, "wait": "1h"}}, "b": {"playbooks": "play.yml"}})
    with desk.start(*RUN) as process:
        until(lambda: (desk.state / "ledger.sqlite").exists() and [e for e in history(desk) if e["job"] == "a"])
        process.send_signal(signal.SIGTERM)
        code, out, _ = ended(process)
    assert (code, outcomes(out)) == (130, [("failed", 1), ("not attempted", 130)])


def test_after_kill_9_the_rest_is_known(desk: Desk, sim: Simulator) -> None:
    sim.faults.add("delay:5@POST")
    with desk.start(*RUN) as process:
        until(sim.writes)
        process.kill()
        process.wait()
    sim.faults.clear()
    (of_batch,) = [each for each in history(desk) if not each["job"]]
    assert of_batch["status"] == "died"
    again = desk.run(*RUN, "--failed")
    assert [job["job"] for job in again.json["jobs"]] == ["a", "b"]


def test_a_server_that_dies_and_comes_back(desk: Desk, sim: Simulator) -> None:
    batch(desk, {"a": {"playbooks": "play.yml", "forks": 1, "retry": {"times": 20, "wait": "1s"}}})
    port = int(sim.url.rpartition(":")[2])
    sim.stop()
    with desk.start(*RUN) as process:
        until(lambda: (desk.state / "ledger.sqlite").exists() and [e for e in history(desk) if e["job"] == "a"])
        with Simulator(port=port) as again:
            code, out, err = ended(process)
            assert again.writes()
    (job,) = json.loads(out)["jobs"]
    assert (code, job["outcome"]) == (0, "ok"), err
    assert job["attempts"] > 1
    attempts = sorted(each["attempt"] for each in history(desk) if each["job"])
    assert attempts == list(range(1, job["attempts"] + 1))


def test_what_is_unverified_is_never_tried_again(desk: Desk, sim: Simulator) -> None:
    batch(desk, {"a": {"playbooks": "play.yml", "retry": {"times": 3, "wait": "1s"}}})
    sim.faults.add("swallow@POST")
    said = desk.spawn(*RUN)
    (job,) = json.loads(said.out)["jobs"]
    assert (said.code, job["outcome"], job["attempts"]) == (3, "failed", 1)


def test_a_full_disk_at_the_summary(desk: Desk) -> None:
    with Path("/dev/full").open("w") as full:
        said = desk.spawn(*RUN, stdout=full)
    assert said.code == 3
    assert "cannot write the result" in said.err
    assert [each["status"] for each in history(desk) if not each["job"]] == ["ok"]
