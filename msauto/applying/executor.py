"""Apply a plan: targets concurrently, the requests of one target in order, every outcome a value."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from msauto.applying.apply_context import ApplyContext, ServerConnection
from msauto.applying.batches import BatchFailures, NumberedTarget, batch_numbers, waves
from msauto.applying.cancellation import Cancellation
from msauto.applying.group_commit import GroupCommit
from msauto.applying.states import RetryPolicy
from msauto.applying.target_executor import TargetExecutor
from msauto.concurrency import ConcurrencySlot, run_each, run_unless
from msauto.errors import MsautoError
from msauto.model import events
from msauto.model.plan import Plan
from msauto.model.ports import Clock, Journal, Memory
from msauto.model.result import RequestResult, Result, TargetResult

__all__ = ["Cancellation", "RetryPolicy", "ServerConnection", "apply"]


async def apply(
    plan: Plan,
    servers: Mapping[str, ServerConnection],
    journal: Journal,
    memory: Memory,
    clock: Clock,
    observer: events.Observer,
    *,
    forks: int,
    playbooks: Sequence[str] = (),
    cancellation: Cancellation | None = None,
    policy: RetryPolicy | None = None,
    frozen: Callable[[], str | None] = lambda: None,
) -> Result:
    """Send the requests of a plan, settle and verify them; return one result for each target, in the plan's order.

    ``servers`` by their names in the plan; ``forks`` targets at a time, without those that wait for a restore.
    ``frozen`` is called before each target: a text is why the target is not attempted (contract, «Limits»).

    Any error of a target is its result. Raises ``LedgerError`` if the run cannot be recorded: nothing was sent then. If
    the task is cancelled, the requests in progress are journalled as unverified.
    """
    if plan.settlements:
        with journal.together():
            for each in plan.settlements:
                memory.remember(each.target, {each.item: each.value})
    run = journal.start(plan, playbooks)
    cancellation, policy = cancellation or Cancellation(), policy or RetryPolicy()
    context = ApplyContext(run, journal, memory, clock, observer, GroupCommit(journal), cancellation, policy)
    context.notify(events.RunStarted(run, len(plan.targets), plan.requests))
    plan_execution = _PlanExecution(context, servers, plan, frozen)
    try:
        complete = await plan_execution.run(forks)
    except asyncio.CancelledError:
        plan_execution.end(interrupted=True)
        raise
    return plan_execution.end(interrupted=not complete or cancellation.requested)


class _PlanExecution:
    """The targets of a run, and their results so far."""

    def __init__(
        self,
        context: ApplyContext,
        servers: Mapping[str, ServerConnection],
        plan: Plan,
        frozen: Callable[[], str | None],
    ) -> None:
        self._context = context
        self._servers = servers
        self._plan = plan
        self._frozen = frozen
        self._results: dict[int, TargetResult] = {}
        self._reason = "stopped before it was started"
        self._changed = asyncio.Event()
        self._began = context.clock.monotonic()
        self._spans: dict[str, tuple[float, float]] = {}
        for server in servers.values():
            server.breaker.on_change = self._changed.set

    async def run(self, forks: int) -> bool:
        """Apply batch after batch; return whether the run was not stopped at once."""
        for number in batch_numbers(self._plan):
            failures = BatchFailures(self._plan, number)
            for wave in waves(self._plan, number):
                work = run_each(partial(self._apply_admitted, failures), self._startable(failures, wave), limit=forks)
                if not await run_unless(work, self._context.cancellation.at_once):
                    return False
            reason = failures.stop_reason(batch_finished=True)
            if reason is not None:
                self._reason = reason
                break
        return True

    async def _startable(
        self, failures: BatchFailures, wave: Iterable[NumberedTarget]
    ) -> AsyncIterator[NumberedTarget]:
        """Yield the targets that may start now. While a server is probed, its targets wait here and not as tasks."""
        coming = iter(wave)
        waiting: dict[str, deque[NumberedTarget]] = defaultdict(deque)
        while self._may_start(failures):
            self._changed.clear()
            queue = next(
                (each for name, each in waiting.items() if each and not self._servers[name].breaker.probing), None
            )
            numbered = queue.popleft() if queue else next(coming, None)
            if numbered is None:
                if not any(waiting.values()):
                    return
                await self._changed.wait()
            elif numbered[1].server in self._servers and self._servers[numbered[1].server].breaker.probing:
                waiting[numbered[1].server].append(numbered)
            else:
                yield numbered

    def _may_start(self, failures: BatchFailures) -> bool:
        return not self._context.cancellation.requested and failures.stop_reason() is None

    async def _apply_admitted(self, failures: BatchFailures, numbered: NumberedTarget, slot: ConcurrencySlot) -> None:
        """Apply a target once the circuit breaker of its server admits it."""
        number, target = numbered
        server = self._servers.get(target.server)
        if target.error is not None or server is None:
            self._skip(number, target.error or f"the server {target.server} is not part of this run")
            return
        async with server.breaker.admission(slot, partial(self._pause, failures)):
            if not self._may_start(failures):
                return
            await self._apply_target(number, server, slot)
        failures.note(self._results[number], server_lost=server.breaker.state.open)

    async def _pause(self, failures: BatchFailures, missed: int) -> None:
        """Wait before a server is probed; not if the target will not start anyway."""
        pauses, context = self._context.policy.half_open_pauses, self._context
        blocked = failures.stop_reason() or self._frozen() or context.commits.failure
        if pauses and not blocked:
            await context.cancellation.sleep(context.clock, pauses[min(missed, len(pauses)) - 1])

    async def _apply_target(self, number: int, server: ServerConnection, slot: ConcurrencySlot) -> None:
        target, breaker = self._plan.targets[number], server.breaker.state
        reason = breaker.message(target.server, self._context.run) if breaker.open else self._frozen()
        if reason:
            self._skip(number, reason)
            return
        executor = TargetExecutor(self._context, server, target, slot)
        began = self._context.clock.monotonic()
        try:
            await executor.run()
        finally:
            first, _ = self._spans.get(target.server, (began, began))
            self._spans[target.server] = first, self._context.clock.monotonic()
            if executor.result is not None:
                self._results[number] = executor.result

    def end(self, *, interrupted: bool) -> Result:
        """Close the run, with a result for every target; a ledger that fails only now changes no outcome."""
        for number in range(len(self._plan.targets)):
            if number not in self._results:
                self._skip(number, self._reason)
        results = tuple(self._results[number] for number in range(len(self._plan.targets)))
        breakers = {name: server.breaker.state for name, server in self._servers.items()}
        lost = frozenset(name for name, state in breakers.items() if state.failures and not state.unauthorized)
        result = Result(
            self._context.run,
            self._plan,
            results,
            interrupted=interrupted,
            unreachable=lost,
            seconds=self._context.clock.monotonic() - self._began,
            server_seconds={server: last - first for server, (first, last) in self._spans.items()},
        )
        self._context.commits.flush()
        if self._context.commits.failure is None:
            with suppress(MsautoError):
                self._context.journal.end(self._context.run, result)
        self._context.notify(events.RunEnded(result))
        return result

    def _skip(self, number: int, reason: str) -> None:
        target = self._plan.targets[number]
        requests = (RequestResult("not sent"),) * len(target.requests)
        self._results[number] = TargetResult(target, "not attempted", reason, requests)
        self._context.notify(events.TargetFinished(self._results[number]))
