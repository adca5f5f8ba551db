"""Tasks on a cluster: what they return, report and ask, how they end, and which clusters are refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from msauto.errors import ClusterError, PlanningError
from msauto.model.server import ServerSpec
from msauto.plugins.dask.cluster import (
    Cluster,
    Parcel,
    TaskResult,
    WorkerTask,
    check_versions,
    open_cluster,
    run_task,
)
from msauto.plugins.simulator.embedded import Simulator, empty_state
from tests import clusters
from tests.clusters import threads_cluster
from tests.stage import free_port

SITE = ServerSpec("studio", "http://studio:7901", worker={"site-oslo": 1})


@pytest.fixture(scope="module")
def started() -> Iterator[clusters.Cluster]:
    with threads_cluster(workers=2, resources={"site-oslo": 2}) as cluster:
        yield cluster


async def answer(question: object) -> object:
    if question == "bad":
        raise PlanningError("nobody knows", remedy="ask another")
    return f"{question}!"


def with_cluster(
    address: str, use: Callable[[Cluster], object], *servers: ServerSpec, seconds: float = 10
) -> None:
    async def run() -> None:
        async with open_cluster(address, servers, answer, {}, seconds=seconds) as cluster:
            await use(cluster)  # type: ignore[misc]

    asyncio.run(run())


async def double(number: int, task: WorkerTask) -> int:
    task.report(f"doubling {number}")
    await asyncio.sleep(0.5)
    task.report("done")
    return 2 * number


def test_a_task_tells_and_returns(started: clusters.Cluster) -> None:
    async def use(cluster: Cluster) -> None:
        reports: list[str] = []
        assert await cluster.run(SITE, double, 21, reports.append) == 42
        assert reports == ["doubling 21", "done"]
        numbers = range(6)
        found = await asyncio.gather(*(cluster.run(SITE, double, number) for number in numbers))
        assert found == [2 * number for number in numbers]

    with_cluster(started.address, use, SITE)


async def asking(questions: list[str], task: WorkerTask) -> list[object]:
    return [task.ask(question) for question in questions]


def test_a_task_asks_the_command(started: clusters.Cluster) -> None:
    async def use(cluster: Cluster) -> None:
        assert await cluster.run(SITE, asking, ["a", "b", "a"]) == ["a!", "b!", "a!"]
        with pytest.raises(PlanningError, match="nobody knows") as raised:
            await cluster.run(SITE, asking, ["a", "bad"])
        assert raised.value.remedy == "ask another"

    with_cluster(started.address, use, SITE)


async def failing(secret: str, _: WorkerTask) -> None:
    raise ValueError(secret)


def test_an_unexpected_error_shows_its_place_and_not_its_text(started: clusters.Cluster) -> None:
    async def use(cluster: Cluster) -> None:
        with pytest.raises(
            ClusterError, match=r"msauto itself failed on .*: ValueError at test_cluster.py"
        ) as raised:
            await cluster.run(SITE, failing, "hunter2-canary")
        assert "hunter2" not in str(raised.value)

    with_cluster(started.address, use, SITE)


SEEN: dict[str, threading.Event] = {
    name: threading.Event() for name in ("begun", "cancelled", "stopping")
}


async def waiting(_: None, task: WorkerTask) -> None:
    SEEN["begun"].set()
    try:
        while not task.stopping:  # noqa: ASYNC110 - another thread sets it
            await asyncio.sleep(0.01)
        SEEN["stopping"].set()
    except asyncio.CancelledError:
        SEEN["cancelled"].set()
        raise


def test_a_task_learns_that_it_should_stop_or_is_not_awaited(started: clusters.Cluster) -> None:
    async def use(cluster: Cluster) -> None:
        running = asyncio.ensure_future(cluster.run(SITE, waiting, None))
        await asyncio.to_thread(SEEN["begun"].wait, 20)
        running.cancel()
        assert await asyncio.to_thread(SEEN["cancelled"].wait, 20)
        cluster.stopping = True
        await cluster.run(SITE, waiting, None)
        assert SEEN["stopping"].is_set()

    with_cluster(started.address, use, SITE)


def test_a_parcel_shows_its_size_only() -> None:
    parcel = Parcel({"key": "hunter2-canary"})
    assert parcel.open() == {"key": "hunter2-canary"}
    assert "hunter2" not in f"{parcel!r} {parcel}"
    assert "bytes" in repr(parcel)


# Clusters that are refused ------------------------------------------------------------------------------------------


async def never(_: Cluster) -> None:
    raise AssertionError("connected")


def test_a_resource_that_no_worker_has_is_an_error_before_anything_starts(
    started: clusters.Cluster,
) -> None:
    other = ServerSpec("studio-b", "http://b", worker={"site-bergen": 1})
    with pytest.raises(ClusterError) as raised:
        with_cluster(started.address, never, SITE, other)
    assert str(raised.value) == (
        "server studio-b: no Dask worker has the resources site-bergen=1; resources of the workers: site-oslo=2\n"
        "  → start a worker at its site with --resources 'site-bergen=1', or correct the host variable `worker`"
    )


def test_a_port_of_a_web_server_is_refused() -> None:
    with Simulator(state=empty_state()) as web:
        address = web.url.replace("http://", "dask://").rstrip("/")
        with pytest.raises(ClusterError, match=f"{address} is not the port of a Dask scheduler"):
            with_cluster(address, never, SITE)


def test_a_scheduler_that_cannot_be_reached_is_an_error() -> None:
    unused = free_port()
    with pytest.raises(
        ClusterError, match=rf"the Dask scheduler dask://127.0.0.1:{unused} cannot be reached"
    ):
        with_cluster(f"dask://127.0.0.1:{unused}", never, seconds=0.5)


def test_a_task_of_another_version_is_not_opened(started: clusters.Cluster) -> None:
    async def run() -> TaskResult:
        async with clusters.client_of(started.address) as client:
            broken = Parcel(None)
            broken._data = b"would fail if it were opened"
            found: TaskResult = (
                await client.submit(run_task, ("0.0.1", "3.12"), "run", broken)
            ).open()
            return found

    error = asyncio.run(run()).error
    assert isinstance(error, ClusterError)
    assert "here are msauto 0.0.1 and Python 3.12" in str(error)


@pytest.mark.parametrize(
    ("theirs", "words"),
    [((None, "3.11"), "no msauto"), (("9.9", "3.12"), "msauto 9.9 and Python 3.12")],
)
def test_a_worker_of_another_version_is_refused(theirs: tuple[str | None, str], words: str) -> None:
    packages = {"python": f"{theirs[1]}.4.final.0", **({"msauto": theirs[0]} if theirs[0] else {})}
    with pytest.raises(ClusterError, match=rf"the Dask worker tcp://b:1 has {words}") as raised:
        check_versions({"workers": {"tcp://b:1": {"packages": packages}}})
    assert (
        raised.value.remedy
        == "install the same versions of msauto and Python on the workers and here"
    )
