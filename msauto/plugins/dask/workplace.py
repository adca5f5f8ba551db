"""What workers of a cluster do, each for one server: plan it, apply it, settle what a dead run left, read it.

A worker gets the inputs and returns the result. What stays with the command is asked for while a task runs: variables
of its environment, and files that templates read together with ``asset``.

All workers that apply take part in one run of the shared ledger. If a worker is lost, another attempt continues its
server: what the ledger records as finished is not repeated, and what it records as started is settled by reading. A
worker that the command awaits no more finishes the requests under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import asynccontextmanager, nullcontext, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from msgspec import Struct, structs

from msauto.api.workplace import Frozen, ServerPlanning, StageContext, never_frozen, plan_server
from msauto.applying.apply_context import ApplyContext, Cancellation, GroupCommit, ServerConnection
from msauto.applying.executor import (
    BatchFailures,
    OnResult,
    Records,
    ServerExecution,
    Targets,
    not_attempted,
)
from msauto.circuit_breaker import BreakerState, CircuitBreaker
from msauto.concurrency import SystemClock, concurrent_list, finish, is_over, run_unless
from msauto.errors import ClusterError, LedgerError, MsautoError, RefusedError, one_line
from msauto.ledger.journal import LedgerMemory, ServerMemory
from msauto.ledger.ledger import Ledger
from msauto.ledger.locks import LockScope
from msauto.model.desired import ServerIntents
from msauto.model.events import Notify, RequestSettled, TargetFinished, TargetStarted, ignore
from msauto.model.ledger_url import LedgerUrl
from msauto.model.plan import Plan, Target
from msauto.model.ports import HashFile, Journal
from msauto.model.result import RequestResult, TargetRecord, TargetResult
from msauto.model.server import ServerSpec
from msauto.planning.survey import Survey
from msauto.playbook.input_files import Files, LookupContext
from msauto.playbook.templates.names import EnvView, SecretTracker
from msauto.retry_policy import RetryPolicy
from msauto.secrets.redacted_plans import Redactor, SecretMemory, redacted
from msauto.secrets.redaction import Secrets
from msauto.server.client import AsyncMediaServer
from msauto.server.downloads import hash_file
from msauto.server.reader import ServerReader

if TYPE_CHECKING:
    from msauto.api.workplace import PlanServer, ReadServer, ServersOfRun, SettleServer
    from msauto.plugins.dask.cluster import Cluster, WorkerTask

NumberedResult = tuple[int, TargetResult]
"""The result of a target, after its position in the plan."""
OnReport = Callable[[NumberedResult], None]
ItemT = TypeVar("ItemT")
T = TypeVar("T")

_POLL: Final = 0.2
_CHECK_SECONDS: Final = 0.5
_NO_TARGET: Final = Target("", "", "asset", "")
_UNTIL_REACHED: Final = 20.0
"""Seconds to wait for a ledger that cannot be reached."""
_UNTIL_ENDED: Final = 90.0
"""Seconds to wait for workers to finish the requests that are under way."""


class OnWorkers:
    """The :class:`~msauto.api.workplace.Workplace` of a Dask cluster, by its address."""

    def __init__(self, address: str) -> None:
        self._address = address

    def check_ledger(self, ledger: Ledger) -> None:
        """Let workers take part in runs of the ledger; raises ``LedgerError`` if it is local."""
        ledger.admit_workers()

    @asynccontextmanager
    async def _connected(self, specs: Iterable[ServerSpec]) -> AsyncIterator[Cluster]:
        try:
            from msauto.plugins.dask.cluster import open_cluster
        except ImportError as error:
            message = f"--on {self._address} needs the packages dask and distributed"
            raise ClusterError(message, remedy="pip install dask distributed") from error
        belongings = Belongings(hash_file)
        async with open_cluster(
            self._address, [*specs], belongings.answer, belongings.reducers
        ) as cluster:
            yield cluster

    @asynccontextmanager
    async def planning(self, specs: Iterable[ServerSpec]) -> AsyncIterator[PlanServer]:
        """Implement :meth:`Workplace.planning`."""
        async with self._connected(specs) as cluster:
            yield partial(plan_on, cluster)

    @asynccontextmanager
    async def reading(self, specs: Iterable[ServerSpec]) -> AsyncIterator[ReadServer]:
        """Implement :meth:`Workplace.reading`."""
        async with self._connected(specs) as cluster:
            yield lambda server, forks: nullcontext(partial(read_each_on, cluster, server, forks))

    @asynccontextmanager
    async def settling(
        self, stage: StageContext, scopes: Collection[LockScope], journal: Journal
    ) -> AsyncIterator[SettleServer]:
        """Implement :meth:`Workplace.settling`."""
        del journal
        async with self._connected(stage.resolved.specs) as cluster:

            async def settle(run: str, server: str, records: Records) -> Mapping[int, TargetResult]:
                shared = _shared_run(stage, run, scopes, never_frozen)
                return await WorkersOfRun(
                    cluster, stage, structs.replace(shared, settles=True)
                ).settle(server, records)

            yield settle

    @asynccontextmanager
    async def applying(
        self, stage: StageContext, plan: Plan, journal: Journal, frozen: Frozen
    ) -> AsyncIterator[ServersOfRun]:
        """Implement :meth:`Workplace.applying`."""
        del journal
        for target in plan.targets:
            if any(request.dest is not None for request in target.requests):
                raise RefusedError(
                    f"{target.name!r}: a download is saved on this machine, and workers run on others",
                    remedy="apply the tasks with downloads without --on; choose them with --tags",
                )
        urls = {spec.name: spec.url for spec in stage.resolved.specs}
        targets = (target for target in plan.targets if target.address.namespace != "handle")
        # As in scopes_of.
        scopes = {LockScope(urls[target.server], target.database) for target in targets}
        async with self._connected(stage.resolved.specs) as cluster:

            def servers_of(context: ApplyContext) -> ServersOnWorkers:
                shared = _shared_run(stage, context.run, scopes, frozen)
                shared = structs.replace(
                    shared, policy=context.policy, read_since=context.read_since
                )
                workers = WorkersOfRun(cluster, stage, shared)
                return ServersOnWorkers(context, workers, lambda: frozen(stage.clock.now()))

            yield servers_of


def _shared_run(
    stage: StageContext, run: str, scopes: Collection[LockScope], frozen: Frozen
) -> SharedRun:
    return SharedRun(
        run, *stage.ledger.admit_workers(), scopes, stage.resolved.secrets, stage.forks, frozen
    )


# Plan -----------------------------------------------------------------------------------------------------------------


async def plan_on(
    cluster: Cluster, given: ServerPlanning, memory: LedgerMemory, notify: Notify
) -> Survey:
    """Plan one server on a worker of a cluster, with what the ledger remembers of it."""
    remembered = memory.of_server(given.work.server.name)
    returned: tuple[Survey, ServerPlanning]
    returned = await cluster.run(given.work.server, _plan_on_worker, (given, remembered), notify)
    planned, on_worker = returned
    given.choice.merge(on_worker.choice)
    given.protection.merge(on_worker.protection)
    for text in on_worker.secrets.texts:
        given.secrets.add(text)
    return planned


async def _plan_on_worker(
    inputs: tuple[ServerPlanning, ServerMemory], task: WorkerTask
) -> tuple[Survey, ServerPlanning]:
    given, remembered = inputs

    async def ask_hash(dest: str) -> str | None:
        content_hash: str | None = task.ask(("hash", dest))
        return content_hash

    planned = await plan_server(given, remembered, task.report, ask_hash)
    return planned, structs.replace(given, work=ServerIntents(given.work.server, ()))


# Apply, on a worker ---------------------------------------------------------------------------------------------------


class SharedRun(Struct, frozen=True):
    """What the workers of a run have in common. ``session`` is that of the command with the ledger.

    ``settles``: they send nothing, and settle what a dead run left.
    """

    run: str
    ledger: LedgerUrl
    session: int
    scopes: Collection[LockScope]
    secrets: Secrets
    forks: int | None
    frozen: Frozen
    policy: RetryPolicy = RetryPolicy()
    read_since: datetime | None = None
    settles: bool = False


class ServerApplying(NamedTuple):
    """What a worker applies: targets of one server, with what the command knows of the batch and the server."""

    shared: SharedRun
    server: ServerSpec
    targets: Targets
    failures: BatchFailures
    breaker: BreakerState


class AppliedServer(Struct, frozen=True):
    """What came of the targets of a server, without the targets: the command has them."""

    results: Mapping[int, TargetResult]
    breaker: BreakerState


def without_target(result: TargetResult) -> TargetResult:
    """Return a result without its target, which may hold secrets."""
    return structs.replace(result, target=_NO_TARGET)


async def apply_on_worker(given: ServerApplying, task: WorkerTask) -> AppliedServer:
    """Take part in the run, and apply the targets; or continue where a worker that was lost has left them."""
    shared, spec, targets = given.shared, given.server, given.targets
    clock, cancellation = SystemClock(), Cancellation()
    scopes = [scope for scope in shared.scopes if scope.server == spec.url]
    with _opened(shared.ledger, task.worker) as ledger:
        async with ledger.join(shared.run, shared.session, spec.name, scopes, clock):
            records = ledger.target_records(shared.run, list(targets), begun=True)
            redactor = Redactor(shared.secrets)
            recorded = {number: redactor(target) for number, target in targets.items()}
            ledger.journal.attach(shared.run, recorded, records)
            journal: Journal = redacted(ledger.journal, redactor)
            context = ApplyContext(
                shared.run,
                journal,
                SecretMemory(ledger.memory([spec]), shared.secrets),
                clock,
                ignore,
                GroupCommit(journal),
                cancellation,
                shared.policy,
                shared.read_since,
                shared.secrets,
            )
            if shared.settles:
                cancellation()  # starts no request
            breaker, results = CircuitBreaker(), dict[int, TargetResult]()
            breaker.state = given.breaker

            def report(number: int, result: TargetResult) -> None:
                results[number] = without_target(result)
                task.report((number, results[number]))

            stopping = asyncio.ensure_future(_stop_with(task, given.failures))
            try:
                await finish(_execute(given, context, records, breaker, report), cancellation)
            finally:
                stopping.cancel()
            return AppliedServer(results, breaker.state)


async def _execute(
    given: ServerApplying,
    context: ApplyContext,
    records: Records,
    breaker: CircuitBreaker,
    on_result: OnResult,
) -> None:
    shared, spec = given.shared, given.server
    admit = context.journal.check
    async with AsyncMediaServer(spec, admit=admit, read_only=shared.settles) as client:
        slots = asyncio.Semaphore(shared.forks or spec.connections)
        reader = ServerReader(client, clock=context.clock)
        delay = spec.dialect.longest_delay.total_seconds()
        connection = ServerConnection(reader, client, slots, delay)
        execution = ServerExecution(
            context,
            connection,
            given.failures,
            breaker,
            on_result,
            lambda: shared.frozen(context.clock.now()),
            records,
        )
        await execution.run_alone(given.targets)


def _opened(place: LedgerUrl, worker: str) -> Ledger:
    """Open the ledger; name the worker if it cannot, because the command can."""
    try:
        return Ledger.open(place)
    except LedgerError as error:
        message = (
            f"the Dask worker {worker} cannot open the ledger: {error.message} ({error.remedy})"
        )
        raise LedgerError(message, remedy=error.remedy) from None


async def _stop_with(task: WorkerTask, failures: BatchFailures) -> None:
    """Start no further target once the failures of all servers have stopped the batch."""
    while not task.stopping:  # noqa: ASYNC110 - another thread sets it
        await asyncio.sleep(_POLL)
    failures.stop("stopped by other servers")


# Apply, in the command ------------------------------------------------------------------------------------------------


class ServersOnWorkers:
    """Implements :class:`~msauto.applying.executor.Servers` on workers.

    After any error of a worker no target is started. The results of targets that no worker has reported are those of
    the ledger. ``unsettled``: it does not know some of them, so that the next run must read these targets.
    """

    def __init__(
        self, context: ApplyContext, workers: WorkersOfRun, frozen: Callable[[], str | None]
    ) -> None:
        self._context = context
        self._workers = workers
        self._frozen = frozen
        self._stopped = asyncio.Event()
        self._error = ""
        self._noted_numbers: set[int] = set()
        self.unsettled = False

    async def apply(
        self,
        server: str,
        targets: Targets,
        failures: BatchFailures,
        breaker: CircuitBreaker,
        on_result: OnResult,
    ) -> None:
        """Implement :meth:`~msauto.applying.executor.Servers.apply`."""
        if failures.stop_reason() is not None or self._context.cancellation.requested:
            return
        reason = self._error or self._frozen()
        if not reason:
            note = partial(self._note, targets, failures, breaker, on_result)
            await self._apply_on_worker(server, targets, failures, breaker, note)
            reason = self._error
        if reason:
            for number, target in targets.items():
                if number not in self._noted_numbers:
                    on_result(number, not_attempted(self._context, target, reason))

    async def _apply_on_worker(
        self,
        server: str,
        targets: Targets,
        failures: BatchFailures,
        breaker: CircuitBreaker,
        note: Callable[[NumberedResult], None],
    ) -> None:
        """Note the results that a worker reports; those of the ledger where it does not come to its end."""

        async def work() -> None:
            try:
                applied = await self._workers.apply(server, targets, failures, breaker.state, note)
            except MsautoError as error:
                self._fail(error)
                return
            breaker.state = applied.breaker
            for numbered in applied.results.items():
                note(numbered)

        watching = asyncio.ensure_future(self._watch(failures))
        is_over = False
        try:
            is_over = await run_unless(work(), self._stopped) and not self._error
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            if not is_over:
                await self._collect(server, targets, note)

    def _note(
        self,
        targets: Targets,
        failures: BatchFailures,
        breaker: CircuitBreaker,
        on_result: OnResult,
        numbered: NumberedResult,
    ) -> None:
        """Take the result of a target; the first time, notify as if it were applied now."""
        number, result = numbered
        result = structs.replace(result, target=targets[number])
        failures.note(result, breaker)
        if number in self._noted_numbers:
            return
        self._noted_numbers.add(number)
        on_result(number, result)
        if result.outcome != "not attempted":
            self._context.notify(TargetStarted(result.target))
            for index, request in enumerate(result.requests):
                if request.outcome != "not sent":
                    self._context.notify(RequestSettled(result.target, index, request))
        self._context.notify(TargetFinished(result))

    async def _watch(self, failures: BatchFailures) -> None:
        """Stop the workers once the run is cancelled or the session is lost.

        Once the batch has failed, they still finish the targets in progress.
        """
        try:
            while not self._context.cancellation.requested:
                if failures.stop_reason() is not None:
                    self._workers.stop_starting()
                await self._context.cancellation.sleep(self._context.clock, _CHECK_SECONDS)
                self._workers.check()
        except MsautoError as error:
            self._fail(error)
        self._stopped.set()

    def _fail(self, error: MsautoError) -> None:
        self._error = self._error or one_line(error)
        self.unsettled = True
        self._stopped.set()

    async def _collect(self, server: str, targets: Targets, note: OnReport) -> None:
        """Take the results that no worker has reported from the ledger, once the worker has stopped."""
        records: Mapping[int, TargetRecord] = {}
        has_ended = cancelled = False
        try:
            has_ended = await self._workers.wait_until_ended(server)
        except asyncio.CancelledError:
            cancelled = True
        except MsautoError as error:
            self._fail(error)
        with suppress(MsautoError):
            records = self._workers.records(targets)
        for number, target in targets.items():
            record = records.get(number)
            may_have_begun = record is None or record.begun is not None
            if record is not None and record.outcome is not None:
                note((number, record.result))
            elif may_have_begun or not has_ended:
                self.unsettled = True
                message = "its worker has not reported; the next run settles it by reading"
                requests = (RequestResult("unverified", message=message),) * len(target.requests)
                note((number, TargetResult(target, "unverified", message, requests)))
        if cancelled:
            raise asyncio.CancelledError


class WorkersOfRun:
    """The workers of a run, and what the shared ledger knows of it; errors are ``MsautoError``."""

    def __init__(self, cluster: Cluster, stage: StageContext, shared: SharedRun) -> None:
        self._cluster = cluster
        self._ledger = stage.ledger
        self._servers = {spec.name: spec for spec in stage.resolved.specs}
        self._shared = shared

    async def apply(
        self,
        server: str,
        targets: Targets,
        failures: BatchFailures,
        breaker: BreakerState,
        on_report: OnReport,
    ) -> AppliedServer:
        """Apply targets of a server on a worker."""
        spec = self._servers[server]
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
        clock = SystemClock()
        begun = clock.monotonic()
        until = begun + _UNTIL_ENDED
        while True:
            try:
                if self._has_ended(server):
                    return True
            except LedgerError:
                until = min(until, begun + _UNTIL_REACHED)
            if is_over(until - clock.monotonic()):
                return False
            await asyncio.sleep(_POLL)

    def _has_ended(self, server: str) -> bool:
        """Return whether no worker can send anything to the server now; raises ``LedgerError``."""
        run = self._shared.run
        try:
            self._ledger.journal.check()
            return self._ledger.bar_worker(run, server)
        except LedgerError:  # the session is lost, and no worker begins without it
            with Ledger.open(self._shared.ledger, readonly=True) as ledger:
                return not ledger.is_alive(run)

    def records(self, targets: Targets) -> Mapping[int, TargetRecord]:
        """Return what the ledger records of targets, by their positions in the plan."""
        with Ledger.open(self._shared.ledger, readonly=True) as ledger:
            return ledger.target_records(self._shared.run, list(targets))

    async def settle(self, server: str, records: Records) -> dict[int, TargetResult]:
        """Settle by reading what a dead run left in progress on a server; return the results."""
        targets = {number: record.target for number, record in records.items()}
        no_batch = BatchFailures(Plan("", ""), 0)
        applied = await self.apply(server, targets, no_batch, BreakerState(), lambda _: None)
        results = applied.results.items()
        return {
            number: structs.replace(result, target=targets[number]) for number, result in results
        }


# Export -----------------------------------------------------------------------------------------------------------


async def read_each_on(
    cluster: Cluster,
    server: ServerSpec,
    forks: int | None,
    read: Callable[[ServerReader, ItemT], Awaitable[T]],
    items: Iterable[ItemT],
) -> AsyncIterator[T]:
    """Yield what a function reads for each item, on one worker: :class:`~msauto.server.snapshots.ReadEach`."""
    for result in await cluster.run(server, _read_on_worker, (server, forks, read, list(items))):
        yield result


async def _read_on_worker(
    given: tuple[
        ServerSpec, int | None, Callable[[ServerReader, ItemT], Awaitable[T]], list[ItemT]
    ],
    _: WorkerTask,
) -> list[T]:
    server, forks, read, items = given
    async with AsyncMediaServer(server, read_only=True) as client:
        return await concurrent_list(
            partial(read, ServerReader(client)), items, limit=forks or server.connections
        )


# What stays with the command --------------------------------------------------------------------------------------


_LOOKUPS: Final = (
    LookupContext.content,
    LookupContext.matching,
    LookupContext.secret,
    LookupContext.written,
)
"""What a worker may ask of the files of the command."""


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
        return _asking_lookups, (
            len(self._lookups) - 1,
            lookups.files.tracker,
            lookups.folder,
            lookups.root,
        )

    async def answer(self, question: tuple[Any, ...]) -> Any:
        """Return what a worker asks for; raises what reading it raises."""
        match question:
            case ("env", name):
                return self._env.get(name)
            case ("names",):
                return tuple(self._env)
            case ("hash", dest):
                return await self._hash_file(dest)
            case (lookup, number, name) if lookup in _LOOKUPS:
                return lookup(self._lookups[number], name)
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


class _AskingLookups(LookupContext, frozen=True):
    """The files of the command, on a worker."""

    number: int = 0

    def content(self, name: str) -> bytes:
        """Return the bytes of a file."""
        return self._asked(LookupContext.content, name)

    def matching(self, pattern: str) -> list[str]:
        """Return the paths of files whose names match."""
        return self._asked(LookupContext.matching, pattern)

    def written(self, name: str) -> str:
        """Return the path of a file to write: it is written where the command of msauto runs."""
        return self._asked(LookupContext.written, name)

    def secret(self, name: str) -> str:
        """Return a secret that a command prints, which the command of msauto runs."""
        text = self._asked(LookupContext.secret, name)
        self.files.tracker.secrets.add(text)
        return text

    def _asked(self, lookup: Callable[[LookupContext, str], T], name: str) -> T:
        answer: T = _ask(lookup, self.number, name)
        return answer


def _asking_lookups(number: int, tracker: SecretTracker, folder: Path, root: Path) -> LookupContext:
    files = Files()
    files.tracker = tracker
    return _AskingLookups(_Environment(), files, folder, root, number=number)


def _proxy(data: dict[Any, Any]) -> Mapping[Any, Any]:
    return MappingProxyType(data)


def _ask(*question: object) -> Any:
    from msauto.plugins.dask.cluster import ask

    return ask(question)
