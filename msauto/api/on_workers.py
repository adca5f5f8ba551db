"""What workers of a cluster do, each for one server: plan it, apply it, settle what a dead run left, read it.

A worker gets the inputs and returns the result. What stays with the command is asked for while a task runs: variables
of its environment, and files that templates read together with ``asset``.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import structs

from msauto.api.server_plan import ServerPlanning, plan_server
from msauto.applying.apply_context import ApplyContext, Cancellation, GroupCommit, ServerConnection
from msauto.applying.circuit_breaker import BreakerState, CircuitBreaker
from msauto.applying.executor import BatchFailures, Records, Targets, apply_server
from msauto.applying.states import RetryPolicy
from msauto.applying.workers import AppliedServer, without_target
from msauto.concurrency import SystemClock, concurrent_list, finish, is_over
from msauto.errors import LedgerError
from msauto.ledger import Ledger, LockScope
from msauto.ledger.remembered_values import LedgerMemory
from msauto.model.desired import SelectRef, ServerIntents
from msauto.model.events import SILENT, Notify
from msauto.model.ledger_url import LedgerUrl
from msauto.model.live import Entry, ListedEntry, RssChannel, Snapshot
from msauto.model.plan import Json, Plan, TargetId
from msauto.model.ports import HashFile, Journal
from msauto.model.result import TargetRecord, TargetResult
from msauto.model.server import ServerSpec
from msauto.planning.survey import Survey
from msauto.playbook.input_files import Files, LookupContext
from msauto.playbook.templates.names import EnvView, SecretTracker
from msauto.secrets.redaction import Secrets
from msauto.secrets.redactor import SALT, Redactor, SecretMemory, redacted
from msauto.server.client import AsyncMediaServer
from msauto.server.reader import ServerReader
from msauto.server.snapshots import SnapshotReading

if TYPE_CHECKING:
    from msauto.applying.cluster import Cluster, WorkerTask

_POLL: Final = 0.2
_UNTIL_REACHED: Final = 20.0
"""Seconds to wait for a ledger that cannot be reached."""
_UNTIL_ENDED: Final = 90.0
"""Seconds to wait for workers to finish the requests that are under way."""

# Plan -----------------------------------------------------------------------------------------------------------------


async def plan_on(cluster: Cluster, given: ServerPlanning, memory: LedgerMemory, notify: Notify) -> Survey:
    """Plan one server on a worker of a cluster, with what the ledger remembers of it."""
    remembered = {**memory.of_server(given.work.server.name), SALT: memory.recall(SALT)}
    found: tuple[Survey, ServerPlanning]
    found = await cluster.run(given.work.server, _plan_on_worker, (given, remembered), notify)
    planned, there = found
    given.choice.merge(there.choice)
    for text in there.secrets.texts:
        given.secrets.add(text)
    return planned


async def _plan_on_worker(
    inputs: tuple[ServerPlanning, Mapping[TargetId, Mapping[str, Json]]], task: WorkerTask
) -> tuple[Survey, ServerPlanning]:
    given, remembered = inputs

    async def hash_file(dest: str) -> str | None:
        found: str | None = task.ask(("hash", dest))
        return found

    planned = await plan_server(given, _Remembered(remembered), hash_file, task.report)
    return planned, replace(given, work=ServerIntents(given.work.server, ()))


class _Remembered:
    """Implements ``Memory`` with what the ledger remembers of one server."""

    def __init__(self, items: Mapping[TargetId, Mapping[str, Json]]) -> None:
        self._items = {_key(target): found for target, found in items.items()}

    def recall(self, target: TargetId) -> Mapping[str, Json]:
        return self._items.get(_key(target), {})

    def pending(self, server: str) -> frozenset[tuple[str, str]]:
        kept = (target for target, items in self._items.items() if any(item.startswith("pending:") for item in items))
        return frozenset((each.database, each.name) for each in kept if (each.server, each.kind) == (server, "asset"))

    def remember(self, target: TargetId, items: Mapping[str, Json]) -> None:
        raise LedgerError(f"{target.name}: {len(items)} items: a worker that plans writes nothing")

    def forget_assets(self, server: str, database: str, prefix: str) -> None:
        raise LedgerError(f"{server} {database} {prefix}: a worker that plans writes nothing")


def _key(target: TargetId) -> TargetId:
    name = unicodedata.normalize("NFC", target.name)
    return structs.replace(target, name=name, create_time=target.create_time or None)


def never_frozen(_: datetime) -> None:
    """Return that targets may start at any time."""


# Apply ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SharedRun:
    """What the workers of a run have in common. ``session`` is that of the command with the ledger.

    ``settles``: they send nothing, and settle what a dead run left.
    """

    run: str
    ledger: LedgerUrl
    session: int
    scopes: Collection[LockScope]
    secrets: Secrets
    forks: int
    frozen: Callable[[datetime], str | None] = never_frozen
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    read_since: datetime | None = None
    settles: bool = False


class ServerApplying(NamedTuple):
    """What a worker applies: targets of one server, with what the command knows of the batch and the server."""

    shared: SharedRun
    server: ServerSpec
    targets: Targets
    failures: BatchFailures
    breaker: BreakerState


async def apply_on_worker(given: ServerApplying, task: WorkerTask) -> AppliedServer:
    """Take part in the run, and apply the targets; or continue where a worker that was lost has left them."""
    shared, spec, clock, cancellation = given.shared, given.server, SystemClock(), Cancellation()
    run, secrets, targets = shared.run, shared.secrets, given.targets
    scopes = [scope for scope in shared.scopes if scope.server == spec.url]
    with _opened(shared.ledger, task.worker) as ledger:
        async with ledger.join(run, shared.session, spec.name, scopes, clock):
            records = ledger.target_records(run, list(targets), begun=True)
            memory = SecretMemory(ledger.memory.by_url([spec]), secrets)
            journal: Journal = ledger.journal
            recorded = targets
            if secrets:
                redactor = Redactor(secrets)
                journal = redacted(journal, redactor)
                recorded = {number: redactor(target) for number, target in targets.items()}
            ledger.journal.attach(run, recorded)
            commits = GroupCommit(journal)
            context = ApplyContext(
                run, journal, memory, clock, SILENT, commits, cancellation, shared.policy, shared.read_since
            )
            if shared.settles:
                cancellation()  # starts no request
            breaker, results = CircuitBreaker(), dict[int, TargetResult]()
            breaker.state = given.breaker

            def report(number: int, result: TargetResult) -> None:
                results[number] = without_target(result)
                task.report((number, results[number]))

            async def apply() -> None:
                async with AsyncMediaServer(spec, admit=journal.check, read_only=shared.settles) as client:
                    connection, frozen = ServerConnection(ServerReader(client, clock=clock), client), shared.frozen
                    await apply_server(
                        context, connection, targets, records, given.failures, breaker, report,
                        forks=shared.forks, frozen=lambda: frozen(clock.now()),
                    )  # fmt: skip

            stopping = asyncio.ensure_future(_stop_with(task, given.failures))
            try:
                await finish(apply(), cancellation)
            finally:
                stopping.cancel()
            return AppliedServer(results, breaker.state)


def _opened(place: LedgerUrl, worker: str) -> Ledger:
    """Open the ledger; name the worker if it cannot, because the command can."""
    try:
        return Ledger.open(place)
    except LedgerError as error:
        message = f"the Dask worker {worker} cannot open the ledger: {error.message} ({error.remedy})"
        raise LedgerError(message, remedy=error.remedy) from None


async def _stop_with(task: WorkerTask, failures: BatchFailures) -> None:
    """Start no further target once the failures of all servers have stopped the batch."""
    while not task.stopping:  # noqa: ASYNC110 - another thread sets it
        await asyncio.sleep(_POLL)
    failures.stop("stopped by other servers")


class WorkersOfRun:
    """Implements ``RunWorkers`` for the command."""

    def __init__(self, cluster: Cluster, ledger: Ledger, servers: Mapping[str, ServerSpec], shared: SharedRun) -> None:
        self._cluster = cluster
        self._ledger = ledger
        self._servers = servers
        self._shared = shared

    async def apply(
        self,
        server: str,
        targets: Targets,
        failures: BatchFailures,
        breaker: BreakerState,
        on_report: Callable[[tuple[int, TargetResult]], None],
    ) -> AppliedServer:
        """Apply targets of a server on a worker."""
        spec = replace(self._servers[server], variables={})  # only playbooks use them
        given = ServerApplying(self._shared, spec, targets, failures, breaker)
        applied: AppliedServer = await self._cluster.run(spec, apply_on_worker, given, on_report)
        return applied

    def check(self) -> None:
        """Raise if the session is lost, and with it the locks."""
        self._ledger.journal.check()

    def stop_starting(self) -> None:
        """Let the workers finish the targets in progress, and start no others."""
        self._cluster.stopping = True

    async def wait_until_ended(self, server: str) -> bool:
        """Wait, for a bounded time, until no worker can send anything to the server; return whether that is so."""
        clock, run = SystemClock(), self._shared.run
        until, until_reached = clock.monotonic() + _UNTIL_ENDED, clock.monotonic() + _UNTIL_REACHED
        while True:
            try:
                self._ledger.journal.check()
                if self._ledger.bar_worker(run, server):
                    return True
            except LedgerError:  # the session is lost, and no worker begins without it
                try:
                    with Ledger.open(self._shared.ledger, readonly=True) as ledger:
                        if not ledger.is_alive(run):
                            return True
                except LedgerError:
                    until = min(until, until_reached)
            if is_over(until - clock.monotonic()):
                return False
            await asyncio.sleep(_POLL)

    def records(self, targets: Targets) -> Mapping[int, TargetRecord]:
        """Return what the ledger records of targets, by their positions in the plan."""
        with Ledger.open(self._shared.ledger, readonly=True) as ledger:
            return ledger.target_records(self._shared.run, list(targets))

    async def settle(self, server: str, records: Records) -> dict[int, TargetResult]:
        """Settle by reading what a dead run left in progress on a server; return the results."""
        targets = {number: record.target for number, record in records.items()}
        no_batch = BatchFailures(Plan("", ""), 0)
        applied = await self.apply(server, targets, no_batch, BreakerState(), lambda _: None)
        return {number: structs.replace(each, target=targets[number]) for number, each in applied.results.items()}


# Export -----------------------------------------------------------------------------------------------------------


class ReaderOnWorkers:
    """Reads listings and channels of one server for an export, each on a worker."""

    def __init__(self, cluster: Cluster, server: ServerSpec) -> None:
        self._run = partial(cluster.run, server, _read_on_worker)
        self._server = server

    async def read_select(self, select: SelectRef) -> Sequence[Entry] | None:
        """Return the entries that match, ``None`` if the folder does not exist."""
        found: Sequence[Entry] | None = await self._run((self._server, "read_select", select))
        return found

    async def read_channel(self, name: str) -> RssChannel | None:
        """Return a channel; ``None`` if it does not exist."""
        found: RssChannel | None = await self._run((self._server, "read_channel", name))
        return found


async def snapshots_on(
    cluster: Cluster, server: ServerSpec, forks: int, reading: SnapshotReading, items: Iterable[ListedEntry | str]
) -> AsyncIterator[Snapshot]:
    """Yield the snapshots of entries or titles, which one worker takes."""
    for each in await cluster.run(server, _take_on_worker, (server, forks, reading, list(items))):
        yield each


async def _read_on_worker(given: tuple[ServerSpec, str, object], _: WorkerTask) -> object:
    server, method, value = given
    async with AsyncMediaServer(server, read_only=True) as client:
        return await getattr(ServerReader(client), method)(value)


async def _take_on_worker(
    given: tuple[ServerSpec, int, SnapshotReading, list[ListedEntry | str]], _: WorkerTask
) -> list[Snapshot]:
    server, forks, reading, items = given
    async with AsyncMediaServer(server, read_only=True) as client:
        return await concurrent_list(reading.function(ServerReader(client)), items, limit=forks)


# What stays with the command --------------------------------------------------------------------------------------


class Belongings:
    """What templates read on the machine of the command. A worker that evaluates them asks for it."""

    def __init__(self, hash_file: HashFile) -> None:
        self._hash_file = hash_file
        self._env: Mapping[str, str] = {}
        self._lookups: list[LookupContext] = []
        self.reducers: Mapping[type, Callable[[Any], Any]] = {
            EnvView: self._view,
            LookupContext: self._lookup,
            MappingProxyType: lambda proxy: (_proxy, (dict(proxy),)),
        }
        """How intents are pickled."""

    def _view(self, view: EnvView) -> Any:
        self._env = view.values
        return EnvView, (_Environment(),)

    def _lookup(self, lookups: LookupContext) -> Any:
        self._env = lookups.env
        self._lookups.append(lookups)
        return _asking_lookups, (len(self._lookups) - 1, lookups.files.tracker, lookups.folder, lookups.root)

    async def answer(self, question: tuple[Any, ...]) -> Any:
        """Return what a worker asks for; raises what reading it raises."""
        match question:
            case ("env", name):
                return self._env.get(name)
            case ("names",):
                return tuple(self._env)
            case ("file", number, name):
                return self._lookups[number].content(name)
            case ("hash", dest):
                return await self._hash_file(dest)
        raise ValueError(question)


class _Environment(Mapping[str, str]):
    """The environment of the command, on a worker."""

    def __getitem__(self, name: str) -> str:
        value: str | None = _ask("env", name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(_ask("names"))

    def __len__(self) -> int:
        return len(_ask("names"))


@dataclass(frozen=True, slots=True)
class _AskingLookups(LookupContext):
    """The files of the command, on a worker."""

    number: int = 0

    def content(self, name: str) -> bytes:
        """Return the bytes of a file."""
        found: bytes = _ask("file", self.number, name)
        return found


def _asking_lookups(number: int, tracker: SecretTracker, folder: Path, root: Path) -> LookupContext:
    files = Files()
    files.tracker = tracker
    return _AskingLookups(_Environment(), files, folder, root, number=number)


def _proxy(data: dict[Any, Any]) -> Mapping[Any, Any]:
    return MappingProxyType(data)


def _ask(*question: object) -> Any:
    from msauto.applying.cluster import ask

    return ask(question)
