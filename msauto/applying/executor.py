"""Apply a plan: targets in parallel, the requests of one target in order, every outcome a value."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

from msauto.applying.batches import BatchFailures, Numbered, Wave, numbers, waves
from msauto.applying.cancellation import Cancellation
from msauto.applying.group_commit import GroupCommit
from msauto.applying.states import RetryPolicy
from msauto.applying.target_executor import ApplyContext, ServerConnection, TargetExecutor
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
    stop: Cancellation | None = None,
    policy: RetryPolicy | None = None,
    frozen: Callable[[], str | None] = lambda: None,
) -> Result:
    """Send what the plan shows, settle and prove it; return one result for each target, in the plan's order.

    ``servers`` by their names in the plan; ``forks`` targets at a time (those that wait for a restore not counted).
    ``frozen`` is asked before each target, and its words are why that one is not attempted (contract, «Limits»).
    Whatever goes wrong with a target is its result. Raises ``LedgerError`` where the run cannot be recorded, and
    nothing was sent then. Being cancelled leaves the journal true: what was under way is unverified.
    """
    _settle(plan, journal, memory)
    run = journal.start(plan, playbooks)
    stop = stop or Cancellation()
    context = ApplyContext(run, journal, memory, clock, observer, GroupCommit(journal), stop, policy or RetryPolicy())
    context.tell(events.RunStarted(run, len(plan.targets), plan.requests))
    work = _RunResults(context, servers, plan, frozen)
    try:
        whole = await work.all(forks)
    except asyncio.CancelledError:
        work.end(interrupted=True)
        raise
    return work.end(interrupted=not whole or stop.requested)


def _settle(plan: Plan, journal: Journal, memory: Memory) -> None:
    """Write down what the plan takes as settled, before anything is sent."""
    if plan.settlements:
        with journal.together():
            for each in plan.settlements:
                memory.remember(each.target, {each.item: each.value})


class _RunResults:
    """The results of a run while it goes on."""

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
        self._why = "stopped before its turn"

    async def all(self, forks: int) -> bool:
        """Apply batch after batch; tell whether it ended by itself, and was not stopped at once."""
        for number in numbers(self._plan):
            watch = BatchFailures(self._plan, number)
            for wave in waves(self._plan, number):
                work = run_each(partial(self._apply_watched, watch), self._begun(wave, watch), limit=forks)
                if not await run_unless(work, self._context.stop.at_once):
                    return False
            why = watch.why_stop(over=True)
            if why is not None:
                self._why = why
                break
        return True

    def _begun(self, wave: Wave, watch: BatchFailures) -> Iterator[Numbered]:
        """Yield the targets, until somebody asks to stop or too much has failed."""
        for numbered in wave:
            if self._context.stop.requested or watch.why_stop():
                return
            yield numbered

    async def _apply_watched(self, watch: BatchFailures, numbered: Numbered, place: ConcurrencySlot) -> None:
        number, target = numbered
        server = self._servers.get(target.server)
        if target.error is not None or server is None:
            self._leave_out(number, target.error or f"the server {target.server} is not part of this run")
            return
        async with server.standing.door(place, partial(self._pause, watch)):
            if self._context.stop.requested or watch.why_stop():
                return  # somebody asked, or too much has failed, while it waited
            await self._apply_target(number, server, place)
        watch.note(self._results[number], given_up=server.standing.reach.given_up)

    async def _pause(self, watch: BatchFailures, missed: int) -> None:
        """Wait before a server in doubt is tried again; not for a target that is not to be begun anyway."""
        pauses, context = self._context.policy.doubt, self._context
        in_vain = watch.why_stop() or self._frozen() or context.gate.broken
        if pauses and not in_vain:
            await context.stop.sleep(context.clock, pauses[min(missed, len(pauses)) - 1])

    async def _apply_target(self, number: int, server: ServerConnection, place: ConcurrencySlot) -> None:
        target, reach = self._plan.targets[number], server.standing.reach
        why = reach.words(target.server, self._context.run) if reach.given_up else self._frozen()
        if why:
            self._leave_out(number, why)
            return
        life = TargetExecutor(self._context, server, target, place)
        try:
            await life.live()
        finally:
            if life.result is not None:
                self._results[number] = life.result

    def end(self, *, interrupted: bool) -> Result:
        """Close the run, with a result for every target; a ledger that fails only now changes no outcome."""
        for number in range(len(self._plan.targets)):
            if number not in self._results:
                self._leave_out(number, self._why)
        results = tuple(self._results[number] for number in range(len(self._plan.targets)))
        result = Result(self._context.run, self._plan, results, interrupted=interrupted)
        self._context.gate.flush()
        if self._context.gate.broken is None:
            with suppress(MsautoError):
                self._context.journal.end(self._context.run, result)
        self._context.tell(events.RunEnded(result))
        return result

    def _leave_out(self, number: int, why: str) -> None:
        target = self._plan.targets[number]
        requests = (RequestResult("not sent"),) * len(target.requests)
        self._results[number] = TargetResult(target, "not attempted", why, requests)
        self._context.tell(events.TargetFinished(self._results[number]))
