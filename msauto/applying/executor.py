"""Apply a plan: batch after batch, and the targets of a batch by a wave executor; every outcome is a value."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from msauto.applying.apply_context import ApplyContext, Cancellation, GroupCommit, ServerConnection
from msauto.applying.batches import BatchFailures, batch_numbers, waves
from msauto.applying.states import RetryPolicy
from msauto.applying.wave_executor import LocalWaveExecutor, WaveExecutor, not_attempted
from msauto.concurrency import run_unless
from msauto.errors import MsautoError
from msauto.model import events
from msauto.model.plan import Plan
from msauto.model.ports import Clock, Journal, Memory
from msauto.model.result import Result, TargetResult

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
    executor_of = partial(LocalWaveExecutor, servers=servers, frozen=frozen, forks=forks)
    return await apply_with(
        executor_of,
        plan,
        journal,
        memory,
        clock,
        observer,
        playbooks=playbooks,
        cancellation=cancellation,
        policy=policy,
    )


async def apply_with(
    executor_of: Callable[[ApplyContext], WaveExecutor],
    plan: Plan,
    journal: Journal,
    memory: Memory,
    clock: Clock,
    observer: events.Observer,
    *,
    playbooks: Sequence[str] = (),
    cancellation: Cancellation | None = None,
    policy: RetryPolicy | None = None,
) -> Result:
    """Apply a plan as :func:`apply`, with the wave executor that is returned for the run."""
    if plan.settlements:
        with journal.together():
            for each in plan.settlements:
                memory.remember(each.target, {each.item: each.value})
    run = journal.start(plan, playbooks)
    cancellation, policy = cancellation or Cancellation(), policy or RetryPolicy()
    commits = GroupCommit(journal)
    context = ApplyContext(run, journal, memory, clock, observer, commits, cancellation, policy, plan.read_since)
    context.notify(events.RunStarted(run, len(plan.targets), plan.requests))
    plan_execution = _PlanExecution(context, plan, executor_of(context))
    try:
        complete = await plan_execution.run()
    except asyncio.CancelledError:
        plan_execution.end(interrupted=True)
        raise
    return plan_execution.end(interrupted=not complete or cancellation.requested)


class _PlanExecution:
    """The batches of a run, one after the other."""

    def __init__(self, context: ApplyContext, plan: Plan, executor: WaveExecutor) -> None:
        self._context = context
        self._plan = plan
        self._executor = executor
        self._reason = "stopped before it was started"
        self._began = context.clock.monotonic()

    async def run(self) -> bool:
        """Apply batch after batch; return whether the run was not stopped at once."""
        for number in batch_numbers(self._plan):
            failures = BatchFailures(self._plan, number)
            for wave in waves(self._plan, number):
                if not await run_unless(self._executor.run(failures, wave), self._context.cancellation.at_once):
                    return False
            reason = failures.stop_reason(batch_finished=True)
            if reason is not None:
                self._reason = reason
                break
        return True

    def end(self, *, interrupted: bool) -> Result:
        """Close the run, with a result for every target; a ledger that fails only now changes no outcome."""
        executor = self._executor
        results = tuple(self._result(number) for number in range(len(self._plan.targets)))
        lost = (name for name, state in executor.breakers().items() if state.failures and not state.unauthorized)
        result = Result(
            self._context.run,
            self._plan,
            results,
            interrupted=interrupted,
            unreachable=frozenset(lost),
            seconds=self._context.clock.monotonic() - self._began,
            server_seconds={server: last - first for server, (first, last) in executor.spans.items()},
        )
        self._context.commits.flush()
        if self._context.commits.failure is None:
            with suppress(MsautoError):
                if executor.unsettled:
                    self._context.journal.leave(self._context.run)
                else:
                    self._context.journal.end(self._context.run, result)
        self._context.notify(events.RunEnded(result))
        return result

    def _result(self, number: int) -> TargetResult:
        found = self._executor.results.get(number)
        if found is None:
            found = not_attempted(self._plan.targets[number], self._reason)
            self._context.notify(events.TargetFinished(found))
        return found
