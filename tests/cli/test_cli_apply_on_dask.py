"""``apply --on dask://…`` as a command: interrupted, killed, with a lost scheduler and lost sessions."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from msauto.simulator import Simulator, empty_state
from tests.cli.command_line import Desk
from tests.cli.test_cli_shared_ledger import machine, said
from tests.clusters import Cluster, process_cluster
from tests.unit.ledger.test_shared_ledger import end_sessions
from tests.wire.front_door import FrontDoor

pytestmark = pytest.mark.scale

TITLES = [f"EP{number:03}" for number in range(40)]


@pytest.fixture
def sim() -> Iterator[Simulator]:
    state = empty_state()
    for title in TITLES:
        state.databases["NEWS"].add_clip(title, "Raw", frames=100)
    with Simulator(state=state) as simulator:
        yield simulator


@pytest.fixture
def desks(sim: Simulator, tmp_path: Path, shared_place: str) -> Callable[[str], Desk]:
    def desk(name: str) -> Desk:
        made = machine(sim, tmp_path, name, shared_place)
        made.play({"asset": {"title": "{{ item }}", "fields": {"comment": "Ready"}}, "loop": TITLES})
        return made

    return desk


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with process_cluster(2) as found:
        yield found


@contextmanager
def applying(sim: Simulator, desk: Desk, address: str, writes: int = 5) -> Iterator[subprocess.Popen[str]]:
    """A run on the cluster that has sent some of its writes, each of which takes a while."""
    sim.faults.add("delay:0.2@^POST")
    with desk.start("apply", "play.yml", "--yes", "--on", address, "--format", "json") as process:
        while len(sim.writes()) < writes and process.poll() is None:
            time.sleep(0.005)
        assert process.poll() is None, process.communicate()
        yield process


def check_rest(sim: Simulator, desk: Desk, *more: str, code: int = 0) -> str:
    """Another machine does the rest; nothing was sent twice."""
    sim.faults.clear()
    told = desk.spawn("apply", "play.yml", "--yes", "--format", "json", *more)
    assert told.code == code, told
    assert set(Counter(entry.line for entry in sim.writes()).values()) == {1}
    assert {sim.state.clip(title).home.fields["comment"] for title in TITLES} == {"Ready"}
    return told.err


def check_not_all(sim: Simulator, process: subprocess.Popen[str], code: int, why: str = "") -> None:
    told = said(process)
    assert told.code == code, told
    assert "Traceback" not in told.err
    outcomes = [each["result"]["outcome"] for each in told.json["targets"]]
    assert set(outcomes) <= {"changed", "unverified", "not attempted"}
    assert outcomes.count("not attempted") > 10
    assert outcomes.count("changed") >= 3
    assert len(outcomes) - outcomes.count("not attempted") >= len(sim.writes())
    messages = {each["result"]["message"] for each in told.json["targets"]}
    assert any(why in message for message in messages), messages


def test_ctrl_c_stops_the_workers(sim: Simulator, desks: Callable[[str], Desk], cluster: Cluster) -> None:
    with applying(sim, desks("oslo"), cluster.address) as process:
        process.send_signal(signal.SIGINT)
        check_not_all(sim, process, 130)
    count = len(sim.writes())
    time.sleep(0.5)
    assert len(sim.writes()) == count
    check_rest(sim, desks("bergen"))


def test_workers_of_a_killed_command_stop(sim: Simulator, desks: Callable[[str], Desk], cluster: Cluster) -> None:
    with applying(sim, desks("oslo"), cluster.address) as process:
        process.send_signal(signal.SIGKILL)
    told = check_rest(sim, desks("bergen"), "--lock-timeout", "60")
    assert "died with" in told or "Warning" not in told


def test_lost_sessions_stop_the_run(
    sim: Simulator, desks: Callable[[str], Desk], cluster: Cluster, shared_place: str
) -> None:
    with applying(sim, desks("oslo"), cluster.address, writes=14) as process:
        end_sessions(shared_place)
        check_not_all(sim, process, 3, "is lost")
    check_rest(sim, desks("bergen"))


@contextmanager
def own_cluster(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A scheduler and a worker as they are started by hand."""
    file = folder / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    start = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    scheduler = subprocess.Popen([*start, "--no-dashboard", "--scheduler-file", str(file)], **quiet)  # type: ignore[call-overload]
    start = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file), "--nworkers", "2"]
    worker = subprocess.Popen([*start, "--nthreads", "1", "--no-dashboard"], cwd=folder, **quiet)  # type: ignore[call-overload]
    try:
        from distributed import Client

        with Client(scheduler_file=str(file), timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
            address = client.scheduler.address
        yield address.replace("tcp://", "dask://"), scheduler
    finally:
        for process in (scheduler, worker):
            process.terminate()
            process.wait()


def test_a_lost_scheduler_ends_the_run(sim: Simulator, desks: Callable[[str], Desk], tmp_path: Path) -> None:
    with own_cluster(tmp_path) as (address, scheduler):
        with applying(sim, desks("oslo"), address) as process:
            scheduler.kill()
            check_not_all(sim, process, 3, "the connection to the Dask scheduler")
        check_rest(sim, desks("bergen"), "--lock-timeout", "60")


@pytest.mark.parametrize("forks", ["1", "3", "8"])
def test_a_command_has_no_more_connections_on_a_cluster(
    sim: Simulator, tmp_path: Path, cluster: Cluster, forks: str
) -> None:
    with FrontDoor(sim.url) as front:
        desk = Desk(tmp_path, sim.url)
        desk.inventory({"studio-a": {"server": {"url": front.url, "connections": 4}, "database": "NEWS"}})
        desk.play({"asset": {"title": "{{ item }}", "fields": {"comment": "Ready"}}, "loop": TITLES})
        sim.faults.add("delay:0.05@^GET")
        told = desk.run("plan", "-i", "inventory.yml", "play.yml", "--on", cluster.address, "-f", forks)
        assert told.code == 0, told
        assert 1 <= front.most["reads"] <= min(4, int(forks))
