"""Applies the targets of one server on workers. Each slice journals into the run of the coordinator."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from msgspec import structs

from msauto.applying.apply_context import ApplyContext, ServerConnection
from msauto.applying.batches import BatchFailures, NumberedTarget
from msauto.applying.cancellation import Cancellation
from msauto.applying.circuit_breaker import BreakerState
from msauto.applying.group_commit import GroupCommit
from msauto.applying.recovery import NumberedRecord
from msauto.applying.slices import ItemResult, SliceExecution
from msauto.applying.states import RetryPolicy
from msauto.concurrency import is_over
from msauto.errors import LedgerError, MsautoError
from msauto.ledger import Ledger, LedgerPlace, LockScope
from msauto.ledger.locks import Lock, this_process
from msauto.ledger.memory import MemoryByUrl
from msauto.model.events import SILENT
from msauto.model.plan import Plan, Target
from msauto.model.ports import Clock, Journal, Runner
from msauto.model.result import TargetResult
from msauto.model.run_records import TargetRecord
from msauto.model.server import ServerSpec
from msauto.running.current_slice import CURRENT_SLICE
from msauto.secrets.redaction import Secrets
from msauto.secrets.redactor import Redactor, redacted_journal
from msauto.secrets.remembered_secrets import SecretMemory
from msauto.server.availability import SystemClock
from msauto.server.client import AsyncMediaServer
from msauto.server.reader import ServerReader

_POLL: Final = 0.2
_UNTIL_STOPPED: Final = 1.0
"""Seconds between two looks at whether the batch of a slice was stopped."""
_UNTIL_FREE: Final = 120.0
"""Seconds to wait for the session of a lost worker to end: longer than PostgreSQL takes to notice."""
_UNTIL_REACHED: Final = 20.0
"""Seconds to wait for a ledger that cannot be reached."""
_UNTIL_ENDED: Final = 90.0
"""Seconds to wait for workers to finish the requests that are under way."""

FrozenAt = Callable[[datetime], str | None]
"""Returns why no target may start at a time. It can be pickled."""


@dataclass(slots=True)
class SharedApply:
    """What the slices of a run have in common. ``settles``: they send nothing, and settle what a dead run left."""

    run: str
    ledger: LedgerPlace
    scopes: Collection[LockScope]
    secrets: Secrets
    frozen: FrozenAt | None
    policy: RetryPolicy
    read_since: datetime | None = None
    settles: bool = False


@dataclass(slots=True)
class ApplyWork:
    """Implements ``Work``: applies targets. ``failures`` and ``breaker`` are what is known when a slice is sent."""

    server: ServerSpec
    apply: SharedApply
    failures: BatchFailures
    breaker: BreakerState

    @asynccontextmanager
    async def open(self, server: ServerSpec) -> AsyncIterator[Callable[[NumberedTarget], Awaitable[ItemResult]]]:
        """Take part in the run, and return the function that applies one target; raises ``LedgerError``.

        What was applied when the slice ran before, on a worker that was lost, is in the ledger.
        """
        shared, clock, current = self.apply, SystemClock(), CURRENT_SLICE.get()
        targets = dict(current.items)
        scopes = [scope for scope in shared.scopes if scope.server == self.server.url]
        with _opened(shared.ledger, current.worker) as ledger, ledger.hold_shared(shared.run, scopes):
            async with _held(ledger.slice_lock(shared.run, current.name), shared.run, clock):
                records = ledger.target_records(shared.run, list(targets), begun=True)
                memory = SecretMemory(MemoryByUrl(ledger.memory, [server]), shared.secrets)
                journal: Journal = ledger.journal
                if shared.secrets:
                    redactor = Redactor(shared.secrets)
                    journal = redacted_journal(journal, redactor)
                    targets = {number: redactor(target) for number, target in targets.items()}
                ledger.journal.attach(shared.run, targets)
                context = ApplyContext(
                    shared.run,
                    journal,
                    memory,
                    clock,
                    SILENT,
                    GroupCommit(journal),
                    Cancellation(),
                    shared.policy,
                    shared.read_since,
                )
                async with AsyncMediaServer(server, admit=journal.check, read_only=shared.settles) as client:
                    connection = ServerConnection(ServerReader(client, clock=clock), client)
                    try:
                        async with _stopped_with(ledger, shared.run, self.failures):
                            yield self._function(context, connection, records)
                    finally:  # also of a slice that is cancelled: its requests under way are finished
                        context.commits.flush()
                if context.commits.failure is not None:
                    raise context.commits.failure

    def _function(
        self, context: ApplyContext, connection: ServerConnection, records: Mapping[int, TargetRecord]
    ) -> Callable[[NumberedTarget], Awaitable[ItemResult]]:
        shared = self.apply
        redactor = Redactor(shared.secrets)
        if shared.settles:
            context.cancellation()  # starts no request
        execution = SliceExecution(
            context,
            connection,
            self.failures,
            self.breaker,
            lambda: shared.frozen(context.clock.now()) if shared.frozen else None,
        )

        async def apply(numbered: NumberedTarget) -> ItemResult:
            result = await execution.apply(numbered, records.get(numbered[0]))
            if result is not None and shared.secrets:
                result = redactor(result)
            return ItemResult.of(result, connection.breaker.state)

        return apply


def _opened(place: LedgerPlace, worker: str) -> Ledger:
    """Open the ledger; name the worker if it cannot, because the coordinator can."""
    try:
        return Ledger.open(place)
    except LedgerError as error:
        message = f"the Dask worker {worker} cannot open the ledger: {error.message} ({error.remedy})"
        raise LedgerError(message, remedy=error.remedy) from None


@asynccontextmanager
async def _held(lock: Lock, run: str, clock: Clock) -> AsyncIterator[None]:
    """Hold the lock of a slice; wait for the session of a worker that was lost with it."""
    until = clock.monotonic() + _UNTIL_FREE
    while not lock.try_hold(this_process(run, clock.now().isoformat(timespec="seconds"))):
        if is_over(until - clock.monotonic()):
            raise LedgerError(
                f"a slice of run {run} is still held by {lock.holder()}",
                remedy="end that worker: the next run settles what it left",
            )
        await clock.sleep(_POLL)
    try:
        yield
    finally:
        lock.release()


@asynccontextmanager
async def _stopped_with(ledger: Ledger, run: str, failures: BatchFailures) -> AsyncIterator[None]:
    """Start no further target once the failures of all slices have stopped the batch."""

    async def watch() -> None:
        with suppress(LedgerError):  # then nothing can be sent either
            while not ledger.is_stopping(run):  # noqa: ASYNC110 - no event comes from the ledger
                await asyncio.sleep(_UNTIL_STOPPED)
            failures.stop("stopped by other slices")

    watching = asyncio.ensure_future(watch()) if failures.can_stop else None
    try:
        yield
    finally:
        if watching is not None:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


class ApplyOnWorkers:
    """Implements ``RunWorkers`` for the coordinator of a run."""

    def __init__(
        self, runner: Runner, servers: Mapping[str, ServerSpec], ledger: Ledger, shared: SharedApply, forks: int
    ) -> None:
        self._runner = runner
        self._servers = servers
        self._ledger = ledger
        self._shared = shared
        self._forks = forks

    async def map(
        self, server: str, targets: Iterator[NumberedTarget], failures: BatchFailures, breaker: BreakerState
    ) -> AsyncGenerator[ItemResult, None]:
        """Apply targets of a server; yield the results in their order."""
        if server not in self._servers:
            raise MsautoError(f"the server {server} is not part of this run")
        work = ApplyWork(self._servers[server], self._shared, failures, breaker)
        async with aclosing(self._runner.map(work, targets, limit=self._forks)) as results:
            async for each in results:
                work.breaker = work.breaker.then(each.breaker)
                yield each

    def check(self) -> None:
        """Raise if the session is lost, and with it the locks."""
        self._ledger.journal.check()
        if not self._ledger.is_alive(self._shared.run):
            raise LedgerError(
                f"the session with the ledger {self._ledger.name} is lost, and with it the locks of this run",
                remedy="run it again: the next run, from any machine, reads what this one left",
            )

    def stop_starting(self) -> None:
        """Let the workers finish the targets in progress, and start no others."""
        self._ledger.journal.stop_starting(self._shared.run)

    async def wait_for_workers(self) -> bool:
        """Wait, for a bounded time, until no worker can send anything for this run; return whether that is so."""
        clock = SystemClock()
        until = clock.monotonic() + _UNTIL_ENDED
        until_reached = clock.monotonic() + _UNTIL_REACHED
        while True:
            try:
                if self._no_worker_can_send():
                    return True
            except LedgerError:
                until = min(until, until_reached)
            if is_over(until - clock.monotonic()):
                return False
            await asyncio.sleep(_POLL)

    def _no_worker_can_send(self) -> bool:
        """Return whether none takes part, and none can begin: a slice that was cancelled may be about to."""
        run = self._shared.run
        with suppress(LedgerError):
            return self._ledger.journal.bar_workers(run)
        with Ledger.open(self._shared.ledger, readonly=True) as ledger:  # the session is lost
            return not ledger.is_alive(run) and not ledger.has_workers(run)

    def records(self, positions: Sequence[int]) -> Mapping[int, TargetRecord]:
        """Return what the ledger records of targets, by their positions in the plan."""
        run = self._shared.run
        with suppress(LedgerError):
            return self._ledger.target_records(run, positions)
        with Ledger.open(self._shared.ledger, readonly=True) as ledger:  # the session is lost
            return ledger.target_records(run, positions)


async def settle_on_workers(
    workers: ApplyOnWorkers, available: Callable[[Target], bool], in_progress: Sequence[NumberedRecord]
) -> dict[int, TargetResult]:
    """Settle by reading what a dead run left in progress; return the results that could be settled, by position.

    ``available``: no other run may write to the target.
    """
    by_server: dict[str, dict[int, Target]] = defaultdict(dict)
    for number, record in in_progress:
        if available(record.target):
            by_server[record.target.server][number] = record.target
    settled: dict[int, TargetResult] = {}
    for server, targets in by_server.items():
        results = workers.map(server, iter(targets.items()), BatchFailures(Plan("", ""), 0), BreakerState())
        async with aclosing(results):
            numbers = iter(targets)
            async for each in results:
                number = next(numbers)
                if each.result is not None:
                    settled[number] = structs.replace(each.result, target=targets[number])
    return settled
