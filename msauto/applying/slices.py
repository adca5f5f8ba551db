"""Applies waves in slices, which run on workers. All of them journal into one run of the shared ledger.

A slice holds a lock in the ledger while it runs. If its worker is lost, the slice may run again on another worker once
that lock is free: what the ledger records as finished is not repeated, and what it records as started is settled by
reading. The coordinator tells the workers to stop through the ledger.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from copy import deepcopy
from itertools import count
from typing import Final, Literal, Protocol

from msgspec import Struct, structs

from msauto.applying.apply_context import ApplyContext, ServerConnection
from msauto.applying.batches import BatchFailures, NumberedTarget
from msauto.applying.circuit_breaker import BreakerState
from msauto.applying.recovery import progress_of
from msauto.applying.wave_executor import LocalWaveExecutor, not_attempted
from msauto.concurrency import run_unless
from msauto.errors import MsautoError, one_line
from msauto.model import events
from msauto.model.result import RequestResult, TargetResult
from msauto.model.run_records import TargetRecord

StopSignal = Literal["finish", "at once"]
"""How workers stop: they ``finish`` what is under way, or abandon it."""

SLICE_TARGETS: Final = 50
"""Targets of a slice: some seconds of work."""

_CHECK_SECONDS: Final = 1.0


class TargetSlice(Struct, frozen=True):
    """Some targets of one server. ``number`` is that of the slice in its run, and names its lock.

    ``failures`` and ``breaker`` are what the coordinator knew when it made the slice.
    """

    number: int
    server: str
    targets: tuple[NumberedTarget, ...]
    failures: BatchFailures
    breaker: BreakerState


class SliceResult(Struct, frozen=True):
    """What became of a slice; ``results`` by the numbers of the targets, without those that were not started.

    ``error``: why the record in the ledger is not complete.
    """

    results: Mapping[int, TargetResult]
    breaker: BreakerState
    events: tuple[events.Event, ...] = ()
    error: str = ""


class SharedRun(Protocol):
    """A run of the shared ledger, as its coordinator uses it while slices run; errors are ``LedgerError``."""

    def check(self) -> None:
        """Raise if the session is lost, and with it the locks."""

    def stop(self, signal: StopSignal) -> None:
        """Tell the workers to stop."""

    async def wait_for_slices(self, numbers: Iterable[int]) -> None:
        """Wait, for a bounded time, until no worker holds the lock of one of these slices."""

    def records(self, positions: Sequence[int]) -> Mapping[int, TargetRecord]:
        """Return what the ledger records of targets, by their positions in the plan."""


MapSlices = Callable[[str, Iterator[TargetSlice]], AsyncGenerator[SliceResult, None]]
"""Runs the slices of a server on workers; yields their results in order, and takes slices as workers become free."""


class SlicedWaveExecutor:
    """Implements :class:`~msauto.applying.wave_executor.WaveExecutor` on workers.

    After any error of the workers no slice is started. The results of slices that were lost are those of the ledger;
    ``unsettled``: it does not know some of them, so that the next run must read these targets.
    """

    def __init__(
        self, context: ApplyContext, shared: SharedRun, map_slices: MapSlices, frozen: Callable[[], str | None]
    ) -> None:
        self._context = context
        self._shared = shared
        self._map_slices = map_slices
        self._frozen = frozen
        self._numbers = count()
        self._under_way: dict[int, TargetSlice] = {}
        self._breakers: dict[str, BreakerState] = defaultdict(BreakerState)
        self._error = ""
        self.results: dict[int, TargetResult] = {}
        self.spans: dict[str, tuple[float, float]] = {}
        self.unsettled = False

    def breakers(self) -> Mapping[str, BreakerState]:
        """Return the states of the circuit breakers, by server."""
        return self._breakers

    async def run(self, failures: BatchFailures, wave: Iterable[NumberedTarget]) -> None:
        """Apply the targets of a wave in slices, those of all servers at the same time."""
        by_server: dict[str, list[NumberedTarget]] = defaultdict(list)
        for number, target in wave:
            if target.error is None:
                by_server[target.server].append((number, target))
            else:
                self._skip((number, target), target.error)
        watching = asyncio.ensure_future(self._watch(failures))
        signal: StopSignal = "at once"
        try:
            async with asyncio.TaskGroup() as group:
                for server, targets in by_server.items():
                    group.create_task(self._run_server(failures, server, targets))
            signal = "finish"
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            if self._under_way:
                await self._collect(signal)
        for numbered in (each for targets in by_server.values() for each in targets):
            if self._error and numbered[0] not in self.results:
                self._skip(numbered, self._error)

    async def _run_server(self, failures: BatchFailures, server: str, targets: Sequence[NumberedTarget]) -> None:
        began = self._context.clock.monotonic()
        try:
            async with aclosing(self._map_slices(server, self._slices(failures, server, targets))) as results:
                async for result in results:
                    self._note(failures, server, result)
        except MsautoError as error:
            self._fail(error)
        first, _ = self.spans.get(server, (began, began))
        self.spans[server] = first, self._context.clock.monotonic()

    def _slices(self, failures: BatchFailures, server: str, targets: Sequence[NumberedTarget]) -> Iterator[TargetSlice]:
        """Yield the slices that may start, one whenever the runner takes it."""
        for start in range(0, len(targets), SLICE_TARGETS):
            some = tuple(targets[start : start + SLICE_TARGETS])
            breaker = self._breakers[server]
            stopped = self._context.cancellation.requested or failures.stop_reason() is not None or self._error
            reason = breaker.message(server, self._context.run) if breaker.open else self._frozen()
            if stopped:
                return
            if reason:
                for numbered in some:
                    self._skip(numbered, reason)
                continue
            piece = TargetSlice(next(self._numbers), server, some, deepcopy(failures), breaker)
            self._under_way[piece.number] = piece
            yield piece

    def _note(self, failures: BatchFailures, server: str, result: SliceResult) -> None:
        piece = self._under_way.pop(min(number for number, each in self._under_way.items() if each.server == server))
        self._breakers[server] = result.breaker
        for event in result.events:
            self._context.notify(event)
        for number, target in piece.targets:
            if number in result.results:
                self.results[number] = structs.replace(result.results[number], target=target)
                failures.note(self.results[number], server_lost=result.breaker.open)
        if result.error:
            self.unsettled = True
            self._error = self._error or result.error

    async def _watch(self, failures: BatchFailures) -> None:
        """Tell the workers to stop once the run is cancelled, or its batch has failed; notice a lost session."""
        try:
            while not (self._context.cancellation.requested or failures.stop_reason() or self._error):
                await self._context.cancellation.sleep(self._context.clock, _CHECK_SECONDS)
                self._shared.check()
            self._shared.stop("finish")
        except MsautoError as error:
            self._fail(error)

    def _fail(self, error: MsautoError) -> None:
        self._error = self._error or one_line(error)
        self.unsettled = True

    async def _collect(self, signal: StopSignal) -> None:
        """Take the results of slices that have not reported from the ledger, once their workers have stopped."""
        lost, self._under_way = self._under_way, {}
        positions = {number: target for piece in lost.values() for number, target in piece.targets}
        records: Mapping[int, TargetRecord] = {}
        try:
            self._shared.stop(signal)
            await self._shared.wait_for_slices(lost)
            records = self._shared.records(list(positions))
        except MsautoError as error:
            self._fail(error)
        for number, target in positions.items():
            record = records.get(number)
            if record is not None and record.outcome is not None:
                self.results[number] = structs.replace(result_of(record), target=target)
            elif record is None or record.begun is not None:
                self.unsettled = True
                message = "its worker was lost; the next run settles it by reading"
                results = (RequestResult("unverified", message=message),) * len(target.requests)
                self.results[number] = TargetResult(target, "unverified", message, results)
            else:
                continue
            self._context.notify(events.TargetFinished(self.results[number]))

    def _skip(self, numbered: NumberedTarget, reason: str) -> None:
        number, target = numbered
        self.results[number] = not_attempted(target, reason)
        self._context.notify(events.TargetFinished(self.results[number]))


def result_of(record: TargetRecord) -> TargetResult:
    """Return the result of a target that the ledger records as finished."""
    assert record.outcome is not None
    requests = tuple(
        RequestResult(
            "not sent" if each.state == "planned" or each.state == "sending" else each.state,
            each.status,
            each.message,
            each.tries,
        )
        for each in record.requests
    )
    return TargetResult(record.target, record.outcome, record.message, requests, record.differences, record.learned)


async def run_slice(
    context: ApplyContext,
    server: ServerConnection,
    piece: TargetSlice,
    records: Mapping[int, TargetRecord],
    frozen: Callable[[], str | None],
    *,
    forks: int,
) -> SliceResult:
    """Apply a slice in this process. ``records``: what the ledger has of its targets, if it ran before."""
    finished = {number: result_of(each) for number, each in records.items() if each.outcome is not None}
    started = {n: progress_of(each) for n, each in records.items() if each.begun is not None and n not in finished}
    server.breaker.state = piece.breaker
    executor = LocalWaveExecutor(context, {piece.server: server}, frozen, forks, started)
    left = [numbered for numbered in piece.targets if numbered[0] not in finished]
    left.sort(key=lambda numbered: numbered[0] not in started)
    await run_unless(executor.run(piece.failures, left), context.cancellation.at_once)
    context.commits.flush()
    failure = context.commits.failure
    error = "" if failure is None else one_line(failure)
    return SliceResult(finished | executor.results, server.breaker.state, error=error)
