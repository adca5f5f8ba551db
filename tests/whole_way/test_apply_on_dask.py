"""``apply`` on a Dask cluster whose workers are processes, with a shared ledger in PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from msauto.api.stages import apply_plan, make_plan, recover_runs, scopes_of, specs_of
from msauto.concurrency import SystemClock
from msauto.ledger import Ledger
from msauto.model.desired import Batch
from msauto.model.events import SilentObserver
from msauto.model.result import Result
from msauto.simulator import Simulator, empty_state
from tests.clusters import Cluster, process_cluster
from tests.stage import BOLD, Stage

COUNT, IN_FLIGHT = 40, 8


@pytest.fixture(scope="module")
def started_cluster() -> Iterator[Cluster]:
    with process_cluster(2) as found:
        yield found


@pytest.fixture
def cluster(started_cluster: Cluster) -> Cluster:
    """Two workers that run: a nanny starts a killed one again."""
    with started_cluster.cluster.get_client() as client:
        client.wait_for_workers(2, timeout=60)
    return started_cluster


@pytest.fixture
def sim() -> Iterator[Simulator]:
    state = empty_state()
    for number in range(COUNT):
        state.databases["NEWS"].add_clip(f"Clip {number:03}", "Raw", frames=100)
    with Simulator(state=state) as simulator:
        yield simulator


TASK: dict[str, Any] = {
    "name": "Describe",
    "asset": {"select": {"folder": "Raw"}, "fields": {"comment": "Ready"}, "markers": [{"at": 7, "title": "Ad"}]},
}


def apply_on(stage: Stage, place: str, on: str | None, *tasks: dict[str, Any], fatal: bool = False) -> Result:
    resolved = stage.resolved(*tasks)
    batches = (Batch("A test", ("studio",), fatal=True),) if fatal else ()

    async def everything() -> Result:
        with Ledger.open(place) as ledger:
            clock = SystemClock()
            if on is not None:
                ledger.admit_workers()
            scopes, specs = scopes_of(resolved), specs_of(resolved)
            async with ledger.hold(scopes, clock):
                await recover_runs(ledger, specs, scopes, clock=clock, forks=8)
                plan = await make_plan(resolved, memory=ledger.memory, clock=clock, forks=8, limits=BOLD)
                plan = structs.replace(plan, batches=batches)
                return await apply_plan(
                    plan, specs, ledger=ledger, clock=clock, observer=SilentObserver(), forks=8, on=on
                )

    return asyncio.run(everything())


def test_everything_is_applied_once(sim: Simulator, tmp_path: Path, shared_place: str, cluster: Cluster) -> None:
    stage = Stage(sim, tmp_path)
    result = apply_on(stage, shared_place, cluster.address, TASK)
    assert Counter((each.outcome, each.message) for each in result.targets) == {("changed", ""): COUNT}
    assert set(Counter(entry.line for entry in sim.writes()).values()) == {1}
    with Ledger.open(shared_place, readonly=True) as ledger:
        (run,) = ledger.history()
    assert (run.status, run.summary["sent"], run.summary["changed"]) == ("ok", 2 * COUNT, COUNT)
    assert apply_on(stage, shared_place, cluster.address, TASK).plan.requests == 0


def kill_workers(cluster: Cluster) -> None:
    for nanny in cluster.cluster.workers.values():
        with suppress(ProcessLookupError, TypeError):
            os.kill(nanny.pid, signal.SIGKILL)


@pytest.mark.scale
@pytest.mark.parametrize("kind", ["delay:0.4", "slow_body:0.4"])
@pytest.mark.parametrize("number", [1, 30, 2 * COUNT - 3])
def test_killed_workers_lose_and_double_nothing(
    sim: Simulator, tmp_path: Path, shared_place: str, cluster: Cluster, kind: str, number: int
) -> None:
    sim.faults.add(f"{kind}@^(POST|PUT|DELETE)*1+{number - 1}")
    with ThreadPoolExecutor(1) as thread:
        applying = thread.submit(apply_on, Stage(sim, tmp_path), shared_place, cluster.address, TASK)
        while len(sim.writes()) < number and not applying.done():
            time.sleep(0.002)
        kill_workers(cluster)
        result = applying.result()
    outcomes = Counter(each.outcome for each in result.targets)
    # A worker may die between the journal and the send. Reading cannot show that such a request will never arrive.
    assert outcomes["unverified"] <= IN_FLIGHT
    assert outcomes.keys() <= {"changed", "unverified", "not attempted"}
    for each in result.targets:  # a nanny gives up if its worker is killed while it starts
        assert each.outcome != "not attempted" or "Dask" in each.message
    assert apply_on(Stage(sim, tmp_path), shared_place, None, TASK).ok
    assert set(Counter(entry.line for entry in sim.writes()).values()) == {1}
    assert apply_on(Stage(sim, tmp_path), shared_place, None, TASK).plan.requests == 0


@pytest.mark.scale
def test_a_failed_batch_leaves_no_target_half_done(
    sim: Simulator, tmp_path: Path, shared_place: str, cluster: Cluster
) -> None:
    sim.faults.add("status:400@^POST.*Clip%20004")
    sim.faults.add("delay:2@^(POST|PUT).*Clip%20(00[89]|0[1-9])")  # the second slice
    result = apply_on(Stage(sim, tmp_path), shared_place, cluster.address, TASK, fatal=True)
    outcomes = Counter(each.outcome for each in result.targets)
    assert outcomes.keys() == {"changed", "failed", "not attempted"}
    assert outcomes["failed"] == 1
    assert not result.interrupted
    assert len(sim.writes()) == 2 * outcomes["changed"] + 1
    with Ledger.open(shared_place, readonly=True) as ledger:
        assert [run.status for run in ledger.history()] == ["failed"]
