"""Applies waves in slices on the workers of a cluster. All of them journal into one run of the shared ledger.

A slice holds a lock in the ledger while it runs. If its worker is lost, it runs again on another worker, once that lock
is free. What the ledger records as finished is not repeated, and what it records as started is settled by reading.
A slice that is cancelled finishes the requests that are under way, and starts none.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Final, Protocol

from msgspec import Struct, structs

from msauto.applying.apply_context import ApplyContext, ServerConnection
from msauto.applying.batches import BatchFailures, NumberedTarget
from msauto.applying.circuit_breaker import BreakerState
from msauto.applying.recovery import progress_of, result_of
from msauto.applying.wave_executor import LocalWaveExecutor, not_attempted
from msauto.concurrency import ConcurrencySlot, finish, run_unless
from msauto.errors import MsautoError, one_line
from msauto.model import events
from msauto.model.plan import Target
from msauto.model.result import RequestResult, TargetResult
from msauto.model.run_records import TargetRecord

_CHECK_SECONDS: Final = 1.0
_NO_TARGET: Final = Target("", "", "asset", "")


class ItemResult(Struct, frozen=True):
    """What became of a target on a worker; ``result``, without the target, is ``None`` if it was not started."""

    result: TargetResult | None
    breaker: BreakerState

    @classmethod
    def of(cls, result: TargetResult | None, breaker: BreakerState) -> ItemResult:
        """Leave out the target, which the coordinator has, and which may hold secrets."""
        return cls(result and structs.replace(result, target=_NO_TARGET), breaker)


class RunWorkers(Protocol):
    """The workers of a run, and what the shared ledger knows of it; errors are ``MsautoError``."""

    def map(
        self, server: str, targets: Iterator[NumberedTarget], failures: BatchFailures, breaker: BreakerState
    ) -> AsyncGenerator[ItemResult, None]:
        """Apply targets of a server, taken as workers become free; yield the results in order.

        Raises if the workers, or the record of what they did, are lost.
        """

    def check(self) -> None:
        """Raise if the session is lost, and with it the locks."""

    def stop_starting(self) -> None:
        """Let the workers finish the targets in progress, and start no others."""

    async def wait_for_workers(self) -> bool:
        """Wait, for a bounded time, until no worker can send anything for this run; return whether that is so."""

    def records(self, positions: Sequence[int]) -> Mapping[int, TargetRecord]:
        """Return what the ledger records of targets, by their positions in the plan."""


class SlicedWaveExecutor:
    """Implements :class:`~msauto.applying.wave_executor.WaveExecutor` on workers.

    After any error of the workers no target is started. The results of targets that no worker has reported are those
    of the ledger. ``unsettled``: it does not know some of them, so that the next run must read these targets.
    """

    def __init__(self, context: ApplyContext, workers: RunWorkers, frozen: Callable[[], str | None]) -> None:
        self._context = context
        self._workers = workers
        self._frozen = frozen
        self._under_way: dict[int, NumberedTarget] = {}
        self._breakers: dict[str, BreakerState] = defaultdict(BreakerState)
        self._stopped = asyncio.Event()
        self._error = ""
        self.results: dict[int, TargetResult] = {}
        self.spans: dict[str, tuple[float, float]] = {}
        self.unsettled = False

    def breakers(self) -> Mapping[str, BreakerState]:
        """Return the states of the circuit breakers, by server."""
        return self._breakers

    async def run(self, failures: BatchFailures, wave: Iterable[NumberedTarget]) -> None:
        """Apply the targets of a wave, those of all servers at the same time."""
        by_server: dict[str, list[NumberedTarget]] = defaultdict(list)
        for number, target in wave:
            if target.error is None:
                by_server[target.server].append((number, target))
            else:
                self._skip((number, target), target.error)
        watching = asyncio.ensure_future(self._watch(failures))
        try:
            await run_unless(self._run_servers(failures, by_server), self._stopped)
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            if self._under_way:
                await self._collect(failures)
        for numbered in (each for targets in by_server.values() for each in targets):
            if self._error and numbered[0] not in self.results:
                self._skip(numbered, self._error)

    async def _run_servers(self, failures: BatchFailures, by_server: Mapping[str, Sequence[NumberedTarget]]) -> None:
        async with asyncio.TaskGroup() as group:
            for server, targets in by_server.items():
                group.create_task(self._run_server(failures, server, targets))

    async def _run_server(self, failures: BatchFailures, server: str, targets: Sequence[NumberedTarget]) -> None:
        began = self._context.clock.monotonic()
        started = self._startable(failures, server, targets)
        try:
            async with aclosing(self._workers.map(server, started, failures, self._breakers[server])) as results:
                async for result in results:
                    self._note(failures, server, result)
        except MsautoError as error:
            self._fail(error)
        finally:
            first, _ = self.spans.get(server, (began, began))
            self.spans[server] = first, self._context.clock.monotonic()

    def _startable(
        self, failures: BatchFailures, server: str, targets: Sequence[NumberedTarget]
    ) -> Iterator[NumberedTarget]:
        """Yield the targets that may start, when the runner takes them."""
        for numbered in targets:
            if self._must_stop(failures):
                return
            reason = self._breakers[server].why_not(numbered[1].requests, server, self._context.run) or self._frozen()
            if reason:
                self._skip(numbered, reason)
            else:
                self._under_way[numbered[0]] = numbered
                yield numbered

    def _must_stop(self, failures: BatchFailures) -> bool:
        return bool(self._error) or self._context.cancellation.requested or failures.stop_reason() is not None

    def _note(self, failures: BatchFailures, server: str, found: ItemResult) -> None:
        number, target = self._under_way.pop(next(n for n, (_, t) in self._under_way.items() if t.server == server))
        self._breakers[server] = self._breakers[server].then(found.breaker)
        if found.result is not None:
            self._finish(structs.replace(found.result, target=target), number)
            failures.note(self.results[number], server_lost=self._breakers[server].open)

    def _finish(self, result: TargetResult, number: int) -> None:
        """Take the result of a target that a worker has started, and notify as if it were applied now."""
        target, notify = result.target, self._context.notify
        self.results[number] = result
        if result.outcome != "not attempted":
            notify(events.TargetStarted(target))
            for index, request in enumerate(result.requests):
                if request.outcome != "not sent":
                    notify(events.RequestSettled(target, index, request))
        notify(events.TargetFinished(result))

    async def _watch(self, failures: BatchFailures) -> None:
        """Stop the workers once the run is cancelled or the session is lost.

        Once the batch has failed, they still finish the targets in progress.
        """
        batch_failed = False
        try:
            while not (self._error or self._context.cancellation.requested):
                if not batch_failed and failures.stop_reason() is not None:
                    batch_failed = True
                    self._workers.stop_starting()
                await self._context.cancellation.sleep(self._context.clock, _CHECK_SECONDS)
                self._workers.check()
        except MsautoError as error:
            self._fail(error)
        self._stopped.set()

    def _fail(self, error: MsautoError) -> None:
        self._error = self._error or one_line(error)
        self.unsettled = True

    async def _collect(self, failures: BatchFailures) -> None:
        """Take the results that no worker has reported from the ledger, once the workers have stopped."""
        lost, self._under_way = self._under_way, {}
        records: Mapping[int, TargetRecord] = {}
        ended = cancelled = False
        try:
            ended = await self._workers.wait_for_workers()
        except asyncio.CancelledError:
            cancelled = True
        except MsautoError as error:
            self._fail(error)
        with suppress(MsautoError):
            records = self._workers.records(list(lost))
        for numbered in lost.values():
            self._take(numbered, records.get(numbered[0]), ended=ended)
            if numbered[0] in self.results:
                failures.note(self.results[numbered[0]])
        if cancelled:
            raise asyncio.CancelledError

    def _take(self, numbered: NumberedTarget, record: TargetRecord | None, *, ended: bool) -> None:
        """Take the result of a target from the ledger; ``ended``: no worker works on it any more."""
        number, target = numbered
        if record is not None and record.outcome is not None:
            self._finish(structs.replace(result_of(record), target=target), number)
        elif record is None or record.begun is not None or not ended:
            self.unsettled = True
            message = "its worker has not reported; the next run settles it by reading"
            results = (RequestResult("unverified", message=message),) * len(target.requests)
            self._finish(TargetResult(target, "unverified", message, results), number)

    def _skip(self, numbered: NumberedTarget, reason: str) -> None:
        number, target = numbered
        self.results[number] = not_attempted(target, reason)
        self._context.notify(events.TargetFinished(self.results[number]))


class SliceExecution:
    """Applies the targets of one slice on a worker, each by :meth:`apply`.

    ``failures`` and ``breaker`` are what the coordinator knew when it made the slice.
    """

    def __init__(
        self,
        context: ApplyContext,
        server: ServerConnection,
        failures: BatchFailures,
        breaker: BreakerState,
        frozen: Callable[[], str | None],
    ) -> None:
        self._context = context
        self._server = server
        self._failures = failures
        self._frozen = frozen
        server.breaker.state = breaker

    async def apply(self, numbered: NumberedTarget, record: TargetRecord | None = None) -> TargetResult | None:
        """Apply one target; ``record``: what the ledger has of it, if its slice ran before.

        If the task is cancelled, the requests under way are finished first. ``None``: the target was not started.
        """
        number, target = numbered
        if record is not None and record.outcome is not None:
            return result_of(record)
        started = {} if record is None or record.begun is None else {number: progress_of(record)}
        executor = LocalWaveExecutor(self._context, {target.server: self._server}, self._frozen, 1, started)
        work = executor.apply_one(self._failures, numbered, ConcurrencySlot.alone())
        _, cancelled = await finish(work, self._context.cancellation)
        if cancelled:
            raise asyncio.CancelledError
        return executor.results.get(number)
