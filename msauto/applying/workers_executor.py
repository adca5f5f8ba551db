"""Applies waves on the workers of a cluster, each server by one of them, in one run of the shared ledger.

If a worker is lost, another attempt continues its server: what the ledger records as finished is not repeated, and what
it records as started is settled by reading. A worker that the command awaits no more finishes the requests
under way.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from msgspec import Struct, structs

from msauto.applying.apply_context import ApplyContext, ServerConnection
from msauto.applying.batches import BatchFailures, NumberedTarget
from msauto.applying.circuit_breaker import BreakerState
from msauto.applying.recovery import progress_of, result_of
from msauto.applying.wave_executor import LocalWaveExecutor, not_attempted
from msauto.concurrency import run_unless
from msauto.errors import MsautoError, one_line
from msauto.model import events
from msauto.model.plan import Target
from msauto.model.result import RequestResult, TargetResult
from msauto.model.run_records import TargetRecord

_CHECK_SECONDS: Final = 0.5
_NO_TARGET: Final = Target("", "", "asset", "")
Targets = Mapping[int, Target]
"""Targets of one server, by their positions in the plan."""


class AppliedServer(Struct, frozen=True):
    """What came of the targets of a server, without the targets: the command has them."""

    results: Mapping[int, TargetResult]
    breaker: BreakerState


class RunWorkers(Protocol):
    """The workers of a run, and what the shared ledger knows of it; errors are ``MsautoError``."""

    async def apply(
        self,
        server: str,
        targets: Targets,
        failures: BatchFailures,
        breaker: BreakerState,
        on_report: Callable[[tuple[int, TargetResult]], None],
    ) -> AppliedServer:
        """Apply targets of a server; ``on_report`` gets each result as soon as it is known, if it arrives."""

    def check(self) -> None:
        """Raise if the session is lost, and with it the locks."""

    def stop_starting(self) -> None:
        """Let the workers finish the targets in progress, and start no others."""

    async def wait_until_ended(self, servers: Collection[str]) -> bool:
        """Wait, for a bounded time, until no worker can send anything to the servers; return whether that is so."""

    def records(self, positions: Collection[int]) -> Mapping[int, TargetRecord]:
        """Return what the ledger records of targets, by their positions in the plan."""


async def apply_server(
    context: ApplyContext,
    connection: ServerConnection,
    targets: Targets,
    records: Mapping[int, TargetRecord],
    failures: BatchFailures,
    frozen: Callable[[], str | None],
    forks: int,
) -> AppliedServer:
    """Apply targets of one server on a worker; ``records`` are those of an attempt before, whose worker was lost."""
    finished = {number: result_of(record) for number, record in records.items() if record.outcome is not None}
    for result in finished.values():
        failures.note(result)
    resumed = {number: progress_of(record) for number, record in records.items() if number not in finished}
    servers = {target.server: connection for target in targets.values()}
    executor = LocalWaveExecutor(context, servers, frozen, forks, resumed)
    try:
        await executor.run(failures, [each for each in targets.items() if each[0] not in finished])
    finally:
        context.commits.flush()
    if context.commits.failure is not None:
        raise context.commits.failure
    results = {number: without_target(each) for number, each in (finished | executor.results).items()}
    return AppliedServer(results, connection.breaker.state)


def without_target(result: TargetResult) -> TargetResult:
    """Return a result without its target, which may hold secrets."""
    return structs.replace(result, target=_NO_TARGET)


class WorkersExecutor:
    """Implements :class:`~msauto.applying.wave_executor.WaveExecutor` on workers.

    After any error of a worker no target is started. The results of targets that no worker has reported are those of
    the ledger. ``unsettled``: it does not know some of them, so that the next run must read these targets.
    """

    def __init__(self, context: ApplyContext, workers: RunWorkers, frozen: Callable[[], str | None]) -> None:
        self._context = context
        self._workers = workers
        self._frozen = frozen
        self._under_way: dict[str, Targets] = {}
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
        """Apply the targets of a wave, all servers at the same time."""
        by_server: dict[str, dict[int, Target]] = defaultdict(dict)
        for number, target in wave:
            if target.error is None:
                by_server[target.server][number] = target
            else:
                self._skip(number, target, target.error)
        watching = asyncio.ensure_future(self._watch(failures))
        try:
            await run_unless(self._run_servers(failures, by_server), self._stopped)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            if self._under_way:
                await self._collect(failures)
        for number, target in (each for targets in by_server.values() for each in targets.items()):
            if self._error and number not in self.results:
                self._skip(number, target, self._error)

    async def _run_servers(self, failures: BatchFailures, by_server: Mapping[str, Targets]) -> None:
        async with asyncio.TaskGroup() as group:
            for server, targets in by_server.items():
                group.create_task(self._run_server(failures, server, targets))

    async def _run_server(self, failures: BatchFailures, server: str, targets: Targets) -> None:
        if self._error or failures.stop_reason() is not None:
            return
        reason = self._frozen()
        if reason is not None:
            for each in targets.items():
                self._skip(*each, reason)
            return
        self._under_way[server] = targets
        began = self._context.clock.monotonic()
        on_report = partial(self._note, failures, targets)
        try:
            applied = await self._workers.apply(server, targets, failures, self._breakers[server], on_report)
        except MsautoError as error:
            self._fail(error)
            return
        finally:
            first, _ = self.spans.get(server, (began, began))
            self.spans[server] = first, self._context.clock.monotonic()
        del self._under_way[server]
        self._breakers[server] = applied.breaker
        for found in applied.results.items():
            self._note(failures, targets, found, server_lost=applied.breaker.open)

    def _note(
        self, failures: BatchFailures, targets: Targets, found: tuple[int, TargetResult], *, server_lost: bool = False
    ) -> None:
        """Take the result of a target; the first time, notify as if it were applied now."""
        number, result = found
        is_new, notify = number not in self.results, self._context.notify
        result = self.results[number] = structs.replace(result, target=targets[number])
        failures.note(result, server_lost=server_lost)
        if is_new and result.outcome != "not attempted":
            notify(events.TargetStarted(result.target))
            for index, request in enumerate(result.requests):
                if request.outcome != "not sent":
                    notify(events.RequestSettled(result.target, index, request))
        if is_new:
            notify(events.TargetFinished(result))

    async def _watch(self, failures: BatchFailures) -> None:
        """Stop the workers once the run is cancelled or the session is lost.

        Once the batch has failed, they still finish the targets in progress.
        """
        try:
            while not (self._error or self._context.cancellation.requested):
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

    async def _collect(self, failures: BatchFailures) -> None:
        """Take the results that no worker has reported from the ledger, once the workers have stopped."""
        lost, self._under_way = self._under_way, {}
        records: Mapping[int, TargetRecord] = {}
        ended = cancelled = False
        try:
            ended = await self._workers.wait_until_ended(lost)
        except asyncio.CancelledError:
            cancelled = True
        except MsautoError as error:
            self._fail(error)
        with suppress(MsautoError):
            records = self._workers.records([number for targets in lost.values() for number in targets])
        for targets in lost.values():
            for number, target in targets.items():
                record = records.get(number)
                if record is not None and record.outcome is not None:
                    self._note(failures, targets, (number, result_of(record)))
                elif record is None or record.begun is not None or not ended:
                    self.unsettled = True
                    message = "its worker has not reported; the next run settles it by reading"
                    requests = (RequestResult("unverified", message=message),) * len(target.requests)
                    self._note(failures, targets, (number, TargetResult(target, "unverified", message, requests)))
        if cancelled:
            raise asyncio.CancelledError

    def _skip(self, number: int, target: Target, reason: str) -> None:
        self.results[number] = not_attempted(target, reason)
        self._context.notify(events.TargetFinished(self.results[number]))
