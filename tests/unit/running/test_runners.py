"""One contract for the local runner and the Dask runner, and what only the Dask runner does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field

import pytest
from distributed import Client

from msauto.errors import ClusterError, PlanningError
from msauto.model.ports import Runner
from msauto.model.server import ServerSpec
from msauto.running.dask_runner import check_versions, connected
from msauto.running.local_runner import LocalRunner
from msauto.running.parcels import Parcel, Shared, unpack
from msauto.running.slices import VERSIONS, SliceLimits, SliceResult, run_slice
from msauto.simulator import Simulator, empty_state
from tests.clusters import Cluster, threads_cluster

SITE = ServerSpec("studio", "http://studio:7901", connections=8, worker={"site-oslo": 1})


@dataclass
class Log:
    """What the workers, which are threads of this process, have done."""

    opened: int = 0
    running: int = 0
    most: int = 0
    done: list[int] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)


LOGS: dict[str, Log] = {}


@dataclass(frozen=True)
class Squares:
    """Squares numbers. ``slow`` waits until it is released, ``bad`` raises."""

    log: str
    slow: int = -1
    bad: int = -1
    server: ServerSpec = SITE
    added: Shared[int] | None = None

    def open(self, server: ServerSpec) -> AbstractAsyncContextManager[Callable[[int], Awaitable[int]]]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Callable[[int], Awaitable[int]]]:
        LOGS[self.log].opened += 1
        yield self._square

    async def _square(self, number: int) -> int:
        log = LOGS[self.log]
        log.running += 1
        log.most = max(log.most, log.running)
        try:
            if number == self.slow:
                await until(log.released.is_set)
            await asyncio.sleep(0)
            if number == self.bad:
                raise PlanningError(f"{number} is bad", remedy="use another one")
            log.done.append(number)
            return number * number + (self.added.value if self.added else 0)
        finally:
            log.running -= 1


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - the workers are threads
        await asyncio.sleep(0.01)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with threads_cluster(workers=2, resources={"site-oslo": 2}) as cluster:
        yield cluster


@pytest.fixture(params=["local", "dask"])
def runner_of(request: pytest.FixtureRequest, cluster: Cluster) -> Callable[[], AbstractAsyncContextManager[Runner]]:
    @asynccontextmanager
    async def local() -> AsyncIterator[Runner]:
        yield LocalRunner()

    return local if request.param == "local" else lambda: connected(cluster.address, [SITE])


RunnerOf = Callable[[], AbstractAsyncContextManager[Runner]]


@pytest.fixture
def log(request: pytest.FixtureRequest) -> Iterator[tuple[str, Log]]:
    name = request.node.name
    LOGS[name] = Log()
    yield name, LOGS[name]
    LOGS[name].released.set()


def test_results_come_in_the_order_of_the_items(runner_of: RunnerOf, log: tuple[str, Log]) -> None:
    async def run() -> list[int]:
        async with runner_of() as runner:
            return [each async for each in runner.map(Squares(log[0]), range(100), limit=8)]

    assert asyncio.run(run()) == [number * number for number in range(100)]
    assert log[1].most <= 8


def test_the_first_error_is_raised_in_its_place(runner_of: RunnerOf, log: tuple[str, Log]) -> None:
    found: list[int] = []

    async def run() -> None:
        async with runner_of() as runner:
            async for each in runner.map(Squares(log[0], bad=41), range(100_000), limit=8):
                found.append(each)  # noqa: PERF401 - the results before the error count

    with pytest.raises(PlanningError, match="41 is bad") as raised:
        asyncio.run(run())
    assert raised.value.remedy == "use another one"
    assert found == [number * number for number in range(41)]
    assert len(log[1].done) < 50_000


def test_a_slow_item_does_not_delay_the_others(runner_of: RunnerOf, log: tuple[str, Log]) -> None:
    async def run() -> list[int]:
        async with runner_of() as runner:
            results = runner.map(Squares(log[0], slow=0), range(40), limit=8)
            first = asyncio.ensure_future(anext(results))
            await until(lambda: set(range(8, 40)) <= set(log[1].done))
            log[1].released.set()
            return [await first, *[each async for each in results]]

    assert asyncio.run(run()) == [number * number for number in range(40)]


def test_items_are_taken_as_they_are_needed(runner_of: RunnerOf, log: tuple[str, Log]) -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(300_000):
            taken.append(number)
            yield number

    async def run() -> None:
        async with runner_of() as runner, aclosing(runner.map(Squares(log[0]), items(), limit=8)) as results:
            assert [await anext(results) for _ in range(10)] == [number * number for number in range(10)]

    asyncio.run(run())
    assert len(taken) < 30_000


def test_closing_cancels_what_is_under_way(runner_of: RunnerOf, log: tuple[str, Log]) -> None:
    async def run() -> None:
        async with runner_of() as runner:
            results = runner.map(Squares(log[0], slow=3), range(100), limit=8)
            first = asyncio.ensure_future(anext(results))
            await until(lambda: log[1].running > 0)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            await results.aclose()
            await until(lambda: log[1].running == 0)  # the slow item was cancelled: it was not released

    asyncio.run(run())
    assert 3 not in log[1].done


def test_a_shared_value_reaches_the_workers(runner_of: RunnerOf, log: tuple[str, Log]) -> None:
    async def run() -> list[int]:
        async with runner_of() as runner:
            return [each async for each in runner.map(Squares(log[0], added=Shared(5)), range(30), limit=8)]

    assert asyncio.run(run()) == [number * number + 5 for number in range(30)]


def test_a_resource_that_no_worker_has_is_an_error_before_anything_starts(cluster: Cluster) -> None:
    other = ServerSpec("studio-b", "http://b", worker={"site-bergen": 1})

    async def run() -> None:
        async with connected(cluster.address, [SITE, other]):
            raise AssertionError("connected")

    with pytest.raises(ClusterError) as raised:
        asyncio.run(run())
    assert str(raised.value) == (
        "server studio-b: no Dask worker has the resources site-bergen=1; resources of the workers: site-oslo=2\n"
        "  → start a worker at its site with --resources 'site-bergen=1', or correct the host variable `worker`"
    )


def test_a_port_of_a_web_server_is_refused() -> None:
    async def run(address: str) -> None:
        async with connected(address, [SITE]):
            raise AssertionError

    with Simulator(state=empty_state()) as web:
        address = web.url.replace("http://", "dask://").rstrip("/")
        with pytest.raises(ClusterError, match=f"{address} is not the port of a Dask scheduler"):
            asyncio.run(run(address))


def test_a_scheduler_that_cannot_be_reached_is_an_error(unused_port: int) -> None:
    async def run() -> None:
        async with connected(f"dask://127.0.0.1:{unused_port}", [], seconds=0.5):
            raise AssertionError("connected")

    with pytest.raises(ClusterError, match=rf"the Dask scheduler dask://127.0.0.1:{unused_port} cannot be reached"):
        asyncio.run(run())


@pytest.fixture
def unused_port() -> int:
    import socket

    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def test_a_slice_of_another_version_is_not_opened(cluster: Cluster) -> None:
    async def run() -> SliceResult:
        async with Client(cluster.address.replace("dask", "tcp"), asynchronous=True, set_as_default=False) as client:
            broken = Parcel(b"would fail if it were opened")
            versions = ("0.0.1", VERSIONS[1])
            found: SliceResult = unpack(await client.submit(run_slice, versions, SliceLimits(1, 1), broken, ()))
            return found

    result = asyncio.run(run())
    assert result.results == []
    assert isinstance(result.error, ClusterError)
    assert f"has msauto {VERSIONS[0]} and Python {VERSIONS[1]}; here are msauto 0.0.1" in str(result.error)


def test_a_slice_waits_for_a_worker_that_returns(cluster: Cluster, log: tuple[str, Log]) -> None:
    async def run() -> list[int]:
        async with connected(cluster.address, [SITE]) as runner:
            runner._workers = {}  # as the scheduler reports while a nanny starts its worker again
            return [each async for each in runner.map(Squares(log[0]), range(3), limit=8)]

    assert asyncio.run(run()) == [0, 1, 4]


@pytest.mark.parametrize(
    ("theirs", "words"), [((None, "3.11"), "no msauto"), (("9.9", "3.12"), "msauto 9.9 and Python 3.12")]
)
def test_a_worker_of_another_version_is_refused(theirs: tuple[str | None, str], words: str) -> None:
    packages = {"python": f"{theirs[1]}.4.final.0", **({"msauto": theirs[0]} if theirs[0] else {})}
    with pytest.raises(ClusterError, match=rf"the Dask worker tcp://b:1 has {words}") as raised:
        check_versions({"workers": {"tcp://b:1": {"packages": packages}}})
    assert raised.value.remedy == "install the same versions of msauto and Python on the workers and here"
