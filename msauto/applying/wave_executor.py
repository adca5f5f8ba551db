"""Waves: the targets of a batch that may be applied concurrently. The requests of one target are sent in order."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import partial
from typing import Protocol

from msauto.applying.apply_context import ApplyContext, ServerConnection
from msauto.applying.batches import BatchFailures, NumberedTarget
from msauto.applying.circuit_breaker import BreakerState
from msauto.applying.states import TargetProgress
from msauto.applying.target_executor import TargetExecutor
from msauto.concurrency import ConcurrencySlot, run_each
from msauto.model import events
from msauto.model.plan import Target
from msauto.model.result import RequestResult, TargetResult


class WaveExecutor(Protocol):
    """Applies the targets of a wave, in this process or on workers.

    ``results`` by the number of the target. ``spans``: for each server, the seconds of the clock from the start of its
    first target to the end of its last. ``unsettled``: the next run must settle some targets by reading.
    """

    results: dict[int, TargetResult]
    spans: dict[str, tuple[float, float]]
    unsettled: bool

    async def run(self, failures: BatchFailures, wave: Iterable[NumberedTarget]) -> None:
        """Apply the targets that may start, and note their failures. Cancelled: what is under way is unverified."""

    def breakers(self) -> Mapping[str, BreakerState]:
        """Return the states of the circuit breakers, by server."""


def not_attempted(target: Target, reason: str) -> TargetResult:
    """Return the result of a target that was not started."""
    return TargetResult(target, "not attempted", reason, (RequestResult("not sent"),) * len(target.requests))


class LocalWaveExecutor:
    """Implements :class:`WaveExecutor` in this process.

    ``forks`` targets at a time, without those that wait for a restore. ``resumed``: the progress of the targets that
    another process has started, by their numbers.
    """

    def __init__(
        self,
        context: ApplyContext,
        servers: Mapping[str, ServerConnection],
        frozen: Callable[[], str | None],
        forks: int,
        resumed: Mapping[int, TargetProgress] | None = None,
    ) -> None:
        self._context = context
        self._servers = servers
        self._frozen = frozen
        self._forks = forks
        self._resumed = resumed or {}
        self._changed = asyncio.Event()
        self.results: dict[int, TargetResult] = {}
        self.spans: dict[str, tuple[float, float]] = {}
        self.unsettled = False
        for server in servers.values():
            server.breaker.on_change = self._changed.set

    def breakers(self) -> Mapping[str, BreakerState]:
        """Return the states of the circuit breakers, by server."""
        return {name: server.breaker.state for name, server in self._servers.items()}

    async def run(self, failures: BatchFailures, wave: Iterable[NumberedTarget]) -> None:
        """Apply the targets that may start, and note their failures."""
        await run_each(partial(self.apply_one, failures), self._startable(failures, wave), limit=self._forks)

    async def _startable(
        self, failures: BatchFailures, wave: Iterable[NumberedTarget]
    ) -> AsyncIterator[NumberedTarget]:
        """Yield the targets that may start now. While a server is probed, its targets wait here and not as tasks."""
        coming = iter(wave)
        waiting: dict[str, deque[NumberedTarget]] = defaultdict(deque)
        while True:
            self._changed.clear()
            queue = next(
                (each for name, each in waiting.items() if each and not self._servers[name].breaker.probing), None
            )
            numbered = queue.popleft() if queue else next(coming, None)
            if numbered is None:
                if not any(waiting.values()):
                    return
                await self._changed.wait()
            elif numbered[0] not in self._resumed and not self._may_start(failures):
                if not self._resumed:
                    return
            elif numbered[1].server in self._servers and self._servers[numbered[1].server].breaker.probing:
                waiting[numbered[1].server].append(numbered)
            else:
                yield numbered

    def _may_start(self, failures: BatchFailures) -> bool:
        return not self._context.cancellation.requested and failures.stop_reason() is None

    async def apply_one(self, failures: BatchFailures, numbered: NumberedTarget, slot: ConcurrencySlot) -> None:
        """Apply a target once the circuit breaker of its server admits it."""
        number, target = numbered
        server = self._servers.get(target.server)
        if target.error is not None or server is None:
            self._skip(numbered, target.error or f"the server {target.server} is not part of this run")
            return
        async with server.breaker.admission(slot, partial(self._pause, failures)):
            if number not in self._resumed and not self._may_start(failures):
                return
            await self._apply_target(numbered, server, slot)
        failures.note(self.results[number], server_lost=server.breaker.state.open)

    async def _pause(self, failures: BatchFailures, missed: int) -> None:
        """Wait before a server is probed; not if the target will not start anyway."""
        pauses, context = self._context.policy.half_open_pauses, self._context
        blocked = failures.stop_reason() or self._frozen() or context.commits.failure
        if pauses and not blocked:
            await context.cancellation.sleep(context.clock, pauses[min(missed, len(pauses)) - 1])

    async def _apply_target(self, numbered: NumberedTarget, server: ServerConnection, slot: ConcurrencySlot) -> None:
        number, target = numbered
        reason = server.breaker.state.why_not(target.requests, target.server, self._context.run) or self._frozen()
        if reason and number not in self._resumed:
            self._skip(numbered, reason)
            return
        executor = TargetExecutor(self._context, server, target, slot, self._resumed.get(number))
        began = self._context.clock.monotonic()
        try:
            await executor.run()
        finally:
            first, _ = self.spans.get(target.server, (began, began))
            self.spans[target.server] = first, self._context.clock.monotonic()
            if executor.result is not None:
                self.results[number] = executor.result

    def _skip(self, numbered: NumberedTarget, reason: str) -> None:
        number, target = numbered
        self.results[number] = not_attempted(target, reason)
        self._context.notify(events.TargetFinished(self.results[number]))
