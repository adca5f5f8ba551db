"""Runs work in slices on the workers of a Dask cluster.

The limits of a server are divided into equal parts, and no more slices of it run at the same time. What travels are
parcels (:mod:`.parcels`); the name of a task shows only its number.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from itertools import count, islice
from typing import Any, Final, TypeVar

import dask
from distributed import Client, Future
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker

from msauto.concurrency import concurrent_map
from msauto.errors import ClusterError
from msauto.model.ports import Work
from msauto.model.server import ServerSpec
from msauto.running.parcels import Contents, Parcel, PlainContents, SharedValues, UnresolvedError, pack, unpack
from msauto.running.slices import SAME_VERSIONS, VERSIONS, SliceLimits, SliceResult, keep, run_slice, version_mismatch

T = TypeVar("T")
R = TypeVar("R")
_Resources = Mapping[str, float]

MOST_PARTS: Final = 4
"""How many slices of one server run at the same time: with more, each has too few connections."""
_SECONDS: Final = 2.0
"""How long a slice should take: long enough that its overhead is small, short enough to lose little."""
_MOST_ITEMS: Final = 2000
_WAITING: Final = 8
"""How many finished slices of one ``map`` may wait for an older one."""
_TO_CONNECT: Final = 10.0
_TO_RETURN: Final = 60.0
"""Seconds that a site may be without any worker: a nanny starts a killed one again."""
_POLL: Final = 1.0


class DaskRunner:
    """Implements ``Runner`` on a cluster; :func:`connected` makes one."""

    def __init__(self, client: Client, address: str, workers: Mapping[str, Any], contents: Contents) -> None:
        self._client = client
        self._address = address
        self._workers = workers
        self._contents = contents
        self._run = secrets.token_hex(4)
        self._numbers = count()
        self._known = SharedValues()
        self._kept: dict[int, tuple[Future, set[int]]] = {}
        self._parts: dict[str, tuple[int, asyncio.Semaphore]] = {}  # of each server: how many, and those that are free
        self._places: dict[frozenset[tuple[str, float]], asyncio.Semaphore] = {}
        self._lost: asyncio.Future[ClusterError] = asyncio.get_running_loop().create_future()

    async def map(self, work: Work[T, R], items: Iterable[T], *, limit: int) -> AsyncGenerator[R, None]:
        """Yield the result of each item in the order of the items (:class:`~msauto.model.ports.Runner`)."""
        server = work.server
        if server.url not in self._parts:
            number = max(1, min(MOST_PARTS, server.connections, limit, self._threads(server.worker)))
            self._parts[server.url] = number, asyncio.Semaphore(number)
        parts, free = self._parts[server.url]
        size = _SliceSize(limit)

        async def run(some: list[T]) -> SliceResult:
            async with free:
                result = await self._run_slice(work, some, SliceLimits(parts, max(1, limit // parts)))
            size.adapt(len(some), result.seconds)
            return result

        async with aclosing(concurrent_map(run, size.slices(items), limit=parts, waiting=_WAITING)) as results:
            async for result in results:
                for each in result.results:
                    yield each
                if result.error is not None:
                    raise result.error

    # One slice -------------------------------------------------------------------------------------------------

    async def _run_slice(self, work: Work[T, R], items: Sequence[T], limits: SliceLimits) -> SliceResult:
        async with self._place(work.server.worker):
            while True:
                parcel, used = pack((work, items), self._contents, self._known)
                shared = self._keep(used)
                future = self._client.submit(
                    run_slice,
                    VERSIONS,
                    limits,
                    parcel,
                    tuple(shared),
                    *shared.values(),
                    key=self._key("slice"),
                    resources=dict(work.server.worker) or None,
                    pure=False,
                )
                result: SliceResult = unpack(await self._result(future))
                if not isinstance(result.error, UnresolvedError) or result.results:
                    return result
                if self._contents.supply(result.error.key):
                    self._kept.clear()  # another slice may have done so already

    def _place(self, resources: _Resources) -> asyncio.Semaphore:
        """Return what bounds the slices that are submitted for the same workers."""
        key = frozenset(resources.items())
        if key not in self._places:
            self._places[key] = asyncio.Semaphore(2 * max(1, self._threads(resources)))
        return self._places[key]

    def _keep(self, used: Iterable[int]) -> dict[int, Future]:
        """Return the futures of shared values, and of those that they refer to, by number."""
        found: dict[int, Future] = {}
        for number in sorted(used):
            if number not in self._kept:
                parcel, inner = pack(self._known[number].value, self._contents, self._known)
                future = self._client.submit(keep, parcel, key=self._key("shared"), pure=False)
                self._kept[number] = future, inner
            future, inner = self._kept[number]
            found |= self._keep(inner)
            found[number] = future
        return found

    def _key(self, kind: str) -> str:
        return f"msauto-{kind}-{self._run}-{next(self._numbers)}"

    async def _result(self, future: Future) -> Parcel:
        """Return the result of a task; raises :class:`ClusterError` if the cluster is lost meanwhile."""
        waiting = asyncio.ensure_future(future.result())
        try:
            await asyncio.wait({waiting, self._lost}, return_when=asyncio.FIRST_COMPLETED)
            if self._lost.done():
                raise self._lost.result()
            if waiting.cancelled():
                raise self._gone()
            error = waiting.exception()
            if error is not None:
                raise self._translated(error)
            parcel: Parcel = waiting.result()
            return parcel
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            if future.status == "pending" and not self._lost.done():
                with suppress(Exception):
                    await self._client.cancel([future], asynchronous=True)

    def _translated(self, error: BaseException) -> ClusterError:
        if isinstance(error, FutureCancelledError | OSError | TimeoutError):
            return self._gone()
        if isinstance(error, KilledWorker):
            return ClusterError(
                f"several Dask workers of {self._address} died while they ran the same slice",
                remedy="look at their logs: they may have too little memory",
            )
        return ClusterError(
            f"the Dask cluster {self._address} failed: {type(error).__name__}",
            remedy="look at the logs of its workers: msauto must be installed there",
        )

    # The cluster -----------------------------------------------------------------------------------------------

    def _threads(self, resources: _Resources) -> int:
        """Return how many tasks that need these resources the workers can run at the same time."""
        return sum(_places_of(worker, resources) for worker in self._workers.values())

    def _gone(self) -> ClusterError:
        return ClusterError(
            f"the connection to the Dask scheduler {self._address} was lost",
            remedy="check that the scheduler runs, and run msauto again",
        )

    def check(self, servers: Iterable[ServerSpec]) -> None:
        """Raise :class:`ClusterError` if no worker has the resources of a server."""
        for server in servers:
            if not self._threads(server.worker):
                raise _no_worker(server, self._workers)

    async def watch(self, servers: Sequence[ServerSpec]) -> None:
        """Look after the cluster until cancelled: the scheduler must answer, and each site must have a worker."""
        last_seen = {server.name: 0.0 for server in servers}
        loop = asyncio.get_running_loop()
        while not self._lost.done():
            await asyncio.sleep(_POLL)
            try:
                self._workers = await asyncio.wait_for(_workers(self._client), _TO_CONNECT)
                if self._client.status != "running":
                    raise OSError(self._client.status)
            except (OSError, TimeoutError, RuntimeError, ValueError):
                self._lose(self._gone())
                return
            for server in servers:
                if self._threads(server.worker) or not last_seen[server.name]:
                    last_seen[server.name] = loop.time()
                elif loop.time() - last_seen[server.name] > _TO_RETURN:
                    self._lose(_no_worker(server, self._workers))

    def _lose(self, error: ClusterError) -> None:
        if not self._lost.done():
            self._lost.set_result(error)


class _SliceSize:
    """How many items the next slice gets, from how long the last ones took."""

    def __init__(self, first: int) -> None:
        self._items = max(1, first)

    def slices(self, items: Iterable[T]) -> Iterator[list[T]]:
        source = iter(items)
        while some := list(islice(source, self._items)):
            yield some

    def adapt(self, items: int, seconds: float) -> None:
        fitting = int(items / max(seconds, 0.001) * _SECONDS)
        self._items = max(1, min(fitting, 8 * self._items, _MOST_ITEMS))


@asynccontextmanager
async def connected(
    address: str, servers: Sequence[ServerSpec], contents: Contents | None = None, *, seconds: float = _TO_CONNECT
) -> AsyncIterator[DaskRunner]:
    """Connect to the scheduler at ``dask://HOST:PORT`` (or ``tls://``) and yield a runner.

    Raises :class:`ClusterError` before anything is sent: not reachable within ``seconds``, another version on a
    worker, no worker with the resources of a server.
    """
    _silence()
    protocol = dask.config.get("distributed.comm.default-scheme", "tcp")
    url = f"{protocol}://{address.removeprefix('dask://')}" if address.startswith("dask://") else address
    client = Client(url, asynchronous=True, timeout=seconds, set_as_default=False, name="msauto")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # versions are compared below
            workers = await _connect(client, address)
        runner = DaskRunner(client, address, workers, contents or PlainContents())
        runner.check(servers)
        watching = asyncio.ensure_future(runner.watch(servers))
        try:
            yield runner
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
    finally:
        with suppress(Exception):
            await asyncio.wait_for(client.close(), _TO_CONNECT)


async def _connect(client: Client, address: str) -> Mapping[str, Any]:
    """Return what the scheduler knows about each worker, which has our versions."""
    try:
        await client
        check_versions(await client.get_versions(packages=["msauto"]))
        return await _workers(client)
    except TypeError:  # what distributed raises without certificates
        raise ClusterError(
            f"the Dask scheduler {address} needs certificates, and the configuration of Dask names none",
            remedy="set distributed.comm.tls, for example in ~/.config/dask/distributed.yaml",
        ) from None
    except (OSError, TimeoutError, ValueError, RuntimeError) as error:
        raise ClusterError(
            f"the Dask scheduler {address} cannot be reached: {type(error).__name__}",
            remedy="check the address and the firewall, and start it with `dask scheduler`",
        ) from None
    except MemoryError:  # the answer of a web server is read as lengths
        raise ClusterError(
            f"{address} is not the port of a Dask scheduler",
            remedy="give the port that `dask scheduler` names (mostly 8786), not that of its dashboard",
        ) from None


async def _workers(client: Client) -> Mapping[str, Any]:
    """Return what the scheduler knows about each worker."""
    identity = await client.scheduler.identity(n_workers=-1)
    workers: Mapping[str, Any] = identity["workers"]
    return workers


def check_versions(versions: Mapping[str, Any]) -> None:
    """Raise :class:`ClusterError` for a worker with another version, by the answer of ``Client.get_versions``."""
    for address, each in versions["workers"].items():
        packages = each["packages"]
        theirs = packages.get("msauto"), ".".join(packages["python"].split(".")[:2])
        if theirs != VERSIONS:
            raise ClusterError(version_mismatch(address, theirs, VERSIONS), remedy=SAME_VERSIONS)


def _places_of(worker: Mapping[str, Any], resources: _Resources) -> int:
    """Return how many tasks that need these resources one worker can run at the same time."""
    threads, has = int(worker["nthreads"]), worker.get("resources", {})
    return min([threads, *(int(has.get(name, 0) // amount) for name, amount in resources.items())])


def _no_worker(server: ServerSpec, workers: Mapping[str, Any]) -> ClusterError:
    if not workers:
        return ClusterError("the Dask cluster has no workers", remedy="start one with `dask worker`")
    needed = ", ".join(f"{name}={amount:g}" for name, amount in server.worker.items())
    having = {f"{name}={amount:g}" for each in workers.values() for name, amount in each.get("resources", {}).items()}
    existing = f"resources of the workers: {', '.join(sorted(having))}" if having else "no worker has any resources"
    return ClusterError(
        f"server {server.name}: no Dask worker has the resources {needed}; {existing}",
        remedy=f"start a worker at its site with --resources {needed.replace(', ', ' ')!r}, or correct the host "
        "variable `worker`",
    )


def _silence() -> None:
    """Keep the log lines and warnings of distributed from stderr: what matters is raised as an error."""
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"})  # a listing is large
    for name in ("distributed", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    for name in list(logging.Logger.manager.loggerDict):
        if name.startswith("distributed"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
