"""The only home of Dask: tasks on the workers of a cluster, each for one server.

What travels are parcels, which no dashboard or log can show; the name of a task shows only its number. While tasks run,
the command and the workers exchange what a task reports, what it asks of the machine of the command, and whether it
should start nothing more. A task returns errors as values and never raises, because a worker logs what a task raises.
"""

from __future__ import annotations

import asyncio
import io
import logging
import pickle
import secrets
import sys
import threading
import traceback
import warnings
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from typing import Any, Final

import dask
from distributed import Client, Future, get_worker
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker
from msgspec import Struct

from msauto.errors import ClusterError, MsautoError
from msauto.model.server import ServerSpec
from msauto.version import __version__

Reducers = Mapping[type, Callable[[Any], Any]]
"""How objects of some types are pickled, as ``__reduce__`` returns it."""
Answer = Callable[[Any], Awaitable[Any]]
"""Answers what a task asks of the machine of the command."""
Workers = Mapping[str, Any]
"""What the scheduler knows about each worker, by its address."""

_TO_CONNECT: Final = 10.0
_TO_RETURN: Final = 60.0
"""Seconds that a site may be without any worker: a nanny starts a killed one again."""
_POLL: Final = 0.2
_LOOKS: Final = 5
"""After how many exchanges the workers are counted."""
_VERSIONS: Final = (__version__, f"{sys.version_info[0]}.{sys.version_info[1]}")
_SAME_VERSIONS: Final = "install the same versions of msauto and Python on the workers and here"


class Parcel:
    """Pickled values. Its ``repr`` shows the size only."""

    def __init__(self, value: object, reducers: Reducers | None = None) -> None:
        file = io.BytesIO()
        pickler = pickle.Pickler(file, pickle.HIGHEST_PROTOCOL)
        pickler.dispatch_table = dict(reducers or {})
        pickler.dump(value)
        self._data = file.getvalue()

    def open(self) -> Any:
        """Return what it holds."""
        return pickle.loads(self._data)  # noqa: S301 - who can connect to the scheduler can run code anyway

    def __repr__(self) -> str:
        return f"Parcel({len(self._data)} bytes)"

    def __sizeof__(self) -> int:
        return len(self._data)


# On a worker ------------------------------------------------------------------------------------------------------


class TaskResult(Struct, frozen=True):
    """What a task returns, or the error that it raised; ``reports``: those since the last exchange."""

    value: Any = None
    error: Exception | None = None
    reports: tuple[Any, ...] = ()


class WorkerTask:
    """The task that runs in this thread. ``stopping``: it should start nothing more, and finish what is under way."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.stopping = False
        self.answers: dict[Hashable, Any] = {}
        self.question: Hashable | None = None
        self._reports: deque[Any] = deque()
        self._dask = get_worker()
        self.key = self._dask.get_current_task()
        self.worker = str(self._dask.name or self._dask.address)

    @property
    def is_awaited(self) -> bool:
        """Whether the command still waits for it. Dask forgets cancelled tasks, and those of a command that ended."""
        task = self._dask.state.tasks.get(self.key)
        running = self._dask.status.name in {"running", "paused", "closing_gracefully"}
        return running and task is not None and task.state in {"executing", "long-running"}

    def report(self, value: object) -> None:
        """Pass something to the command, with the next exchange."""
        self._reports.append(value)

    def take_reports(self) -> tuple[Any, ...]:
        """Return the reports since the last call."""
        return tuple(self._reports.popleft() for _ in range(len(self._reports)))

    def ask(self, question: Hashable) -> Any:
        """Return the answer of the command, or raise its error. Nothing else runs in this thread meanwhile."""
        with _EXCHANGED:
            self.question = question
            while question not in self.answers:
                if not _EXCHANGED.wait(_POLL) and not self.is_awaited:
                    raise ClusterError("the command has ended")
            self.question = None
        answer = self.answers[question]
        if isinstance(answer, Exception):
            raise answer
        return answer


_TASKS: Final[dict[str, WorkerTask]] = {}
_EXCHANGED: Final = threading.Condition()
_CURRENT: Final = ContextVar[WorkerTask]("the task that runs")


def ask(question: Hashable) -> Any:
    """Ask the command something in the task that runs: :meth:`WorkerTask.ask`."""
    return _CURRENT.get().ask(question)


def run_task(versions: tuple[str, str], run: str, parcel: Parcel) -> Parcel:
    """Run a task in an event loop of its own; return its :class:`TaskResult`."""
    task = WorkerTask(run)
    _CURRENT.set(task)
    _TASKS[task.key] = task
    try:
        if versions != _VERSIONS:
            raise _other_version(task.worker, _VERSIONS, versions)
        work, given = parcel.open()
        value = asyncio.run(_while_awaited(work(given, task), task))
        return Parcel(TaskResult(value, reports=task.take_reports()))
    except asyncio.CancelledError:
        return Parcel(TaskResult(error=ClusterError("the task was cancelled")))
    except MsautoError as error:
        return Parcel(TaskResult(error=error))
    except Exception as error:  # noqa: BLE001 - its text may hold a secret, and stays here
        place = ""
        for frame in traceback.extract_tb(error.__traceback__)[-1:]:
            place = f" at {Path(frame.filename).name}:{frame.lineno}"
        message = (
            f"msauto itself failed on the Dask worker {task.worker}: {type(error).__name__}{place}"
        )
        remedy = "this is a bug in msauto: run it without --on, and report it"
        return Parcel(TaskResult(error=ClusterError(message, remedy=remedy)))
    finally:
        del _TASKS[task.key]


async def _while_awaited(work: Awaitable[Any], task: WorkerTask) -> Any:
    """Do the work; cancel it once the command does not wait for it any more."""
    working = asyncio.ensure_future(work)
    while not (await asyncio.wait({working}, timeout=_POLL))[0]:
        if not task.is_awaited:
            working.cancel()
            break
    return await working


def _exchange(run: str, stopping: bool, answers: Parcel) -> Parcel:
    """Give the tasks of a run what the command has for them; return their reports and questions, by their keys."""
    tasks = [task for task in list(_TASKS.values()) if task.run == run]
    with _EXCHANGED:
        for task in tasks:
            task.stopping = stopping
            task.answers |= answers.open()
        _EXCHANGED.notify_all()
    return Parcel({task.key: (task.take_reports(), task.question) for task in tasks})


def _other_version(
    worker: str, of_worker: tuple[str | None, str], of_command: tuple[str, str]
) -> ClusterError:
    msauto, python = of_worker
    msauto_here, python_here = of_command
    has = f"msauto {msauto}" if msauto else "no msauto"
    return ClusterError(
        f"the Dask worker {worker} has {has} and Python {python}; "
        f"here are msauto {msauto_here} and Python {python_here}",
        remedy=_SAME_VERSIONS,
    )


# In the command ---------------------------------------------------------------------------------------------------


class Cluster:
    """The workers of a cluster; :func:`open_cluster` connects. ``stopping``: all tasks should start nothing more."""

    def __init__(self, client: Client, address: str, reducers: Reducers) -> None:
        self.stopping = False
        self.closing = False
        self._client = client
        self._address = address
        self._reducers = reducers
        self._run = secrets.token_hex(4)
        self._numbers = count()
        self._on_report: dict[str, Callable[[Any], object]] = {}
        self._lost: asyncio.Future[ClusterError] = asyncio.get_running_loop().create_future()

    async def run(
        self,
        server: ServerSpec,
        work: Callable[[Any, WorkerTask], Awaitable[Any]],
        given: object,
        on_report: Callable[[Any], object] = lambda _: None,
    ) -> Any:
        """Return what ``work`` returns for a server, on a worker at its site; ``on_report`` gets what the task reports.

        If the worker is lost, the work is done again on another one. Raises ``ClusterError``, and what ``work`` raises.
        Cancelled: the task learns that it is not awaited any more.
        """
        key = f"msauto-server-{self._run}-{next(self._numbers)}"
        self._on_report[key] = on_report
        future = self._client.submit(
            run_task,
            _VERSIONS,
            self._run,
            Parcel((work, given), self._reducers),
            key=key,
            resources=dict(server.worker) or None,
            pure=False,
        )
        try:
            result: TaskResult = (await self._result(future)).open()
        finally:
            del self._on_report[key]
        for report in result.reports:
            on_report(report)
        if result.error is not None:
            raise result.error
        return result.value

    async def _result(self, future: Future) -> Parcel:
        waiting = asyncio.ensure_future(future.result())
        try:
            await asyncio.wait({waiting, self._lost}, return_when=asyncio.FIRST_COMPLETED)
            if self._lost.done():
                raise self._lost.result()
            error = FutureCancelledError("", "") if waiting.cancelled() else waiting.exception()
            if isinstance(error, FutureCancelledError | OSError | TimeoutError):
                raise self._gone()
            if isinstance(error, KilledWorker):
                message = f"several Dask workers of {self._address} died while they worked for the same server"
                raise ClusterError(
                    message, remedy="look at their logs: they may have too little memory"
                )
            if error is not None:
                message = f"the Dask cluster {self._address} failed: {type(error).__name__}"
                raise ClusterError(
                    message,
                    remedy="look at the logs of its workers: msauto must be installed there",
                )
            parcel: Parcel = waiting.result()
            return parcel
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            if future.status == "pending" and not self._lost.done():
                with suppress(Exception):
                    await self._client.cancel([future], asynchronous=True)

    def _gone(self) -> ClusterError:
        message = f"the connection to the Dask scheduler {self._address} was lost"
        return ClusterError(message, remedy="check that the scheduler runs, and run msauto again")

    async def watch(self, servers: Sequence[ServerSpec], answer: Answer) -> None:
        """Exchange with the tasks until ``closing``. The scheduler must answer, and each site must have a worker."""
        last_seen = {server.name: 0.0 for server in servers}
        now = asyncio.get_running_loop().time
        looks = count(1)
        answers: dict[Any, Any] = {}
        while not self.closing:  # what is awaited here may swallow a cancellation
            await asyncio.sleep(_POLL)
            if self._on_report:
                answers = await self._exchange(answers, answer)
            if next(looks) % _LOOKS:
                continue
            try:
                async with asyncio.timeout(_TO_CONNECT):
                    workers = await _workers(self._client)
                if self._client.status != "running":
                    raise OSError(self._client.status)
            except (OSError, TimeoutError, RuntimeError, ValueError):
                self._lost.set_result(self._gone())
                return
            for server in servers:
                if _can_read(server, workers) or not last_seen[server.name]:
                    last_seen[server.name] = now()
                elif now() - last_seen[server.name] > _TO_RETURN:
                    self._lost.set_result(_no_worker(server, workers))
                    return

    async def _exchange(self, answers: Mapping[Any, Any], answer: Answer) -> dict[Any, Any]:
        """Exchange once; return the answers to what is asked now. A question that is not answered is asked again."""
        asked: set[Any] = set()
        with suppress(OSError, TimeoutError, RuntimeError, ValueError):
            call = self._client.run(
                _exchange, self._run, self.stopping, Parcel(answers), on_error="ignore"
            )
            async with asyncio.timeout(_TO_CONNECT):
                parcels = (await call).values()
            for parcel in parcels:
                asked |= self._take_reports(parcel.open())
        answered = {}
        for question in asked:
            try:
                answered[question] = await answer(question)
            except Exception as error:  # noqa: BLE001 - raised where it was asked
                answered[question] = error
        return answered

    def _take_reports(self, of_tasks: Mapping[str, tuple[Sequence[Any], Any]]) -> set[Any]:
        """Pass on what the tasks of a worker report; return what they ask."""
        asked: set[Any] = set()
        for key, (reports, question) in of_tasks.items():
            if key in self._on_report:
                for report in reports:
                    self._on_report[key](report)
            if question is not None:
                asked.add(question)
        return asked


@asynccontextmanager
async def open_cluster(
    address: str,
    servers: Sequence[ServerSpec],
    answer: Answer,
    reducers: Reducers,
    *,
    seconds: float = _TO_CONNECT,
) -> AsyncIterator[Cluster]:
    """Connect to the scheduler at ``dask://HOST:PORT`` (or ``tls://``).

    Raises :class:`ClusterError` before anything is sent: not reachable within ``seconds``, another version on a
    worker, no worker with the resources of a server.
    """
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"})  # a server is large
    for name in ("distributed", "tornado", "asyncio", *logging.Logger.manager.loggerDict):
        if name in {"tornado", "asyncio"} or name.startswith("distributed"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters is raised as an error
    protocol = dask.config.get("distributed.comm.default-scheme", "tcp")
    url = (
        f"{protocol}://{address.removeprefix('dask://')}"
        if address.startswith("dask://")
        else address
    )
    client = Client(url, asynchronous=True, timeout=seconds, set_as_default=False, name="msauto")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # versions are compared below
            workers = await _connect(client, address)
        for server in servers:
            if not _can_read(server, workers):
                raise _no_worker(server, workers)
        cluster = Cluster(client, address, reducers)
        watching = asyncio.ensure_future(cluster.watch(servers, answer))
        try:
            yield cluster
        finally:
            cluster.closing = True
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
    finally:
        with suppress(Exception):
            await asyncio.wait_for(client.close(), _TO_CONNECT)


async def _connect(client: Client, address: str) -> Workers:
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


async def _workers(client: Client) -> Workers:
    """Return what the scheduler knows about each worker."""
    identity = await client.scheduler.identity(n_workers=-1)
    workers: Workers = identity["workers"]
    return workers


def check_versions(versions: Mapping[str, Any]) -> None:
    """Raise :class:`ClusterError` for a worker with another version, by the answer of ``Client.get_versions``."""
    for address, worker in versions["workers"].items():
        packages = worker["packages"]
        of_worker = packages.get("msauto"), ".".join(packages["python"].split(".")[:2])
        if of_worker != _VERSIONS:
            raise _other_version(address, of_worker, _VERSIONS)


def _can_read(server: ServerSpec, workers: Workers) -> bool:
    """Return whether a worker has the resources of a server."""
    for worker in workers.values():
        resources = worker.get("resources", {})
        if all(resources.get(name, 0) >= amount for name, amount in server.worker.items()):
            return True
    return False


def _no_worker(server: ServerSpec, workers: Workers) -> ClusterError:
    if not workers:
        return ClusterError(
            "the Dask cluster has no workers", remedy="start one with `dask worker`"
        )
    needed = _named(server.worker)
    having = set[str]()
    for worker in workers.values():
        having.update(_named(worker.get("resources", {})))
    existing = "no worker has any resources"
    if having:
        existing = f"resources of the workers: {', '.join(sorted(having))}"
    return ClusterError(
        f"server {server.name}: no Dask worker has the resources {', '.join(needed)}; {existing}",
        remedy=f"start a worker at its site with --resources {' '.join(needed)!r}, or correct the host "
        "variable `worker`",
    )


def _named(resources: Mapping[str, float]) -> list[str]:
    return [f"{name}={amount:g}" for name, amount in resources.items()]
