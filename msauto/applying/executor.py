"""Apply a plan: batch after batch, and the servers of a batch at the same time, each by :class:`ServerExecution`.

Batches follow Ansible's rules (``serial``, ``max_fail_percentage``, ``any_errors_fatal``). A server has failed if one
of its targets in the batch failed or is unverified, or if its circuit breaker is open. The next batch does not start
once all servers of a batch have failed, once more of them failed than ``max_fail_percentage`` allows, or, with
``any_errors_fatal``, once one failed. The last two also stop the rest of the batch. Targets in progress are always
finished. Every outcome is a value.

A run that was killed leaves requests as *sending* in the ledger, and targets that were not verified. The next run reads
these targets before it plans (:func:`recover`). A request that reading shows as done is done, any other is
*unverified*, and what reading shows is remembered. Then the ledger closes the run as interrupted.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final, Protocol

from msgspec import Struct, structs

from msauto.applying.apply_context import ApplyContext, Cancellation, GroupCommit, ServerConnection
from msauto.applying.states import TargetProgress, resume
from msauto.applying.target_executor import TargetExecutor
from msauto.aspects.plan_builder import LEFT, THIS_RUN
from msauto.circuit_breaker import CircuitBreaker, TargetContact
from msauto.concurrency import ConcurrencySlot, concurrent_list, run_unless
from msauto.errors import MsautoError, one_line
from msauto.model import events
from msauto.model.plan import Plan, Target
from msauto.model.ports import Clock, Journal, Memory
from msauto.model.result import RequestResult, Result, RunDetails, TargetRecord, TargetResult
from msauto.model.snapshot import Json
from msauto.primitives.iso_times import parse_datetime
from msauto.retry_policy import RetryPolicy

Targets = Mapping[int, Target]
"""Targets of one server, by their positions in the plan."""
OnResult = Callable[[int, TargetResult], None]
"""Receives the result of a target, with its position in the plan."""
Records = Mapping[int, TargetRecord]
"""Targets of a run that died, by their positions in the plan."""
Settle = Callable[[str, Records], Awaitable[Mapping[int, TargetResult]]]
"""Settles targets of one server by reading, and returns their results."""

_SETTLED_AFTER: Final = timedelta(minutes=10)
"""A server has finished by then whatever it does for a request."""


class Servers(Protocol):
    """Where the servers of a run are applied. ``unsettled``: the next run must settle some targets by reading."""

    unsettled: bool

    async def apply(
        self,
        server: str,
        targets: Targets,
        failures: BatchFailures,
        breaker: CircuitBreaker,
        on_result: OnResult,
    ) -> None:
        """Apply the targets that may start, and note their failures. Cancelled: what is under way is unverified."""


async def apply(
    servers_of: Callable[[ApplyContext], Servers],
    plan: Plan,
    journal: Journal,
    memory: Memory,
    clock: Clock,
    notify: events.Notify,
    *,
    playbooks: Sequence[str] = (),
    cancellation: Cancellation | None = None,
    policy: RetryPolicy | None = None,
) -> Result:
    """Send the requests of a plan, settle and verify them; return one result for each target, in the plan's order.

    Any error of a target is its result. Raises ``LedgerError`` if the run cannot be recorded: nothing was sent then. If
    the task is cancelled, the requests in progress are journalled as unverified.
    """
    run = journal.start(plan, playbooks)
    if plan.settlements:
        with journal.together():
            for settlement in plan.settlements:
                value = _of_run(settlement.value, run)
                memory.remember(settlement.target, {settlement.item: value})
                if settlement.thing:
                    _, _, key = settlement.item.removeprefix(LEFT).partition(":")
                    journal.adopt(settlement.target, settlement.thing, key, value)
    cancellation, policy = cancellation or Cancellation(), policy or RetryPolicy()
    commits = GroupCommit(journal)
    notify = events.guarded(notify)
    context = ApplyContext(
        run,
        journal,
        memory,
        clock,
        notify,
        commits,
        cancellation,
        policy,
        plan.read_since,
        plan.secrets,
    )
    context.notify(events.RunStarted(run, len(plan.targets), plan.requests))
    plan_execution = _PlanExecution(context, plan, servers_of(context), clock.monotonic())
    try:
        complete = await plan_execution.run()
    except asyncio.CancelledError:
        plan_execution.end(interrupted=True)
        raise
    return plan_execution.end(interrupted=not complete or cancellation.requested)


def _of_run(value: Json, run: str) -> Json:
    """Return what the ledger is to hold; what planning found as desired is as this run leaves it."""
    if value == THIS_RUN:
        return run
    if isinstance(value, list) and value[1:] == [THIS_RUN]:
        return [value[0], run]
    return value


class _PlanExecution(Struct):
    """The batches of a run, one after the other. ``spans``: when the first target of a server began, the last ended."""

    context: ApplyContext
    plan: Plan
    servers: Servers
    began: float
    breakers: dict[str, CircuitBreaker] = {}
    results: dict[int, TargetResult] = {}
    spans: dict[str, tuple[float, float]] = {}
    reason: str = "stopped before it was started"

    async def run(self) -> bool:
        """Apply batch after batch; return whether the run was not stopped at once."""
        for number in sorted({target.batch for target in self.plan.targets}):
            failures = BatchFailures(self.plan, number)
            # First the databases, because an XMP batch writes assets.
            for databases in (True, False):
                by_server: dict[str, dict[int, Target]] = defaultdict(dict)
                for index, target in enumerate(self.plan.targets):
                    if target.batch != number or (target.kind == "database") is not databases:
                        continue
                    if target.error is None:
                        by_server[target.server][index] = target
                    else:
                        self._keep(index, not_attempted(self.context, target, target.error))
                if by_server and not await run_unless(
                    self._apply(failures, by_server), self.context.cancellation.at_once
                ):
                    return False
            reason = failures.stop_reason(batch_finished=True)
            if reason is not None:
                self.reason = reason
                break
        return True

    async def _apply(self, failures: BatchFailures, by_server: Mapping[str, Targets]) -> None:
        async with asyncio.TaskGroup() as group:
            for server, targets in by_server.items():
                breaker = self.breakers.setdefault(server, CircuitBreaker())
                group.create_task(
                    self.servers.apply(server, targets, failures, breaker, self._keep)
                )

    def _keep(self, number: int, result: TargetResult) -> None:
        self.results[number] = result
        if result.outcome != "not attempted":
            server, now = result.target.server, self.context.clock.monotonic()
            first, _ = self.spans.get(server, (now, now))
            self.spans[server] = min(first, now - result.seconds), now

    def end(self, *, interrupted: bool) -> Result:
        """Close the run, with a result for every target; a ledger that fails only now changes no outcome."""
        context = self.context
        results: list[TargetResult] = []
        for number, target in enumerate(self.plan.targets):
            result = self.results.get(number)
            results.append(result or not_attempted(context, target, self.reason))
        unreachable: set[str] = set()
        for server, breaker in self.breakers.items():
            if breaker.state.failures and not breaker.state.unauthorized:
                unreachable.add(server)
        of_run = Result(
            context.run,
            self.plan,
            tuple(results),
            interrupted=interrupted,
            unreachable=frozenset(unreachable),
            seconds=context.clock.monotonic() - self.began,
            server_seconds={server: last - first for server, (first, last) in self.spans.items()},
        )
        context.commits.flush()
        if context.commits.failure is None:
            with suppress(MsautoError):
                if self.servers.unsettled:
                    context.journal.leave(context.run)
                else:
                    context.journal.end(context.run, of_run)
        context.notify(events.RunEnded(of_run))
        return of_run


def not_attempted(context: ApplyContext, target: Target, reason: str) -> TargetResult:
    """Return the result of a target that was not started, and notify of it."""
    result = TargetResult(
        target, "not attempted", reason, (RequestResult("not sent"),) * len(target.requests)
    )
    context.notify(events.TargetFinished(result))
    return result


def _unfinished(target: Target, message: str) -> TargetResult:
    """Return the result of a target whose outcome is not known: what was sent is in the ledger."""
    return TargetResult(
        target, "unverified", message, (RequestResult("unverified"),) * len(target.requests)
    )


class BatchFailures:
    """Counts the failed servers of one batch. Nothing stops the single batch of a plan that has no batches."""

    def __init__(self, plan: Plan, number: int) -> None:
        self._batch = plan.batches[number] if number < len(plan.batches) else None
        self._name = f"batch {number + 1} of {len(plan.batches)}"
        self._failed: dict[str, None] = {}
        self._stopped = ""

    def stop(self, reason: str) -> None:
        """Stop the batch because of failures that are counted elsewhere."""
        self._stopped = reason

    def note(self, result: TargetResult, breaker: CircuitBreaker) -> None:
        """Note the result of a target, and the circuit breaker of its server."""
        if breaker.state.open or result.outcome in {"failed", "unverified"}:
            self._failed[result.target.server] = None

    def stop_reason(self, *, batch_finished: bool = False) -> str | None:
        """Return why no further target may start; ``batch_finished``: all targets of the batch have finished."""
        batch = self._batch
        if self._stopped or batch is None or not self._failed:
            return self._stopped or None
        total = len(batch.servers)
        failed = f"{len(self._failed)} of {total} servers failed ({', '.join(self._failed)})"
        if batch.fatal:
            rule = ", and any_errors_fatal is set"
        elif batch.max_fail is not None and 100 * len(self._failed) > batch.max_fail * total:
            rule = f", more than max_fail_percentage {batch.max_fail:g} allows"
        elif batch_finished and set(batch.servers) <= set(self._failed):
            rule = ": no server is left"
        else:
            return None
        return f"not started: {self._name}: {failed}{rule}"


# One server -----------------------------------------------------------------------------------------------------------


class ServersHere(Struct):
    """Applies the servers of a run in this process.

    ``frozen`` is called before each target: a text is why the target is not attempted (settings, «Freezes»).
    """

    context: ApplyContext
    connections: Mapping[str, ServerConnection]
    frozen: Callable[[], str | None] = lambda: None
    unsettled: bool = False

    async def apply(
        self,
        server: str,
        targets: Targets,
        failures: BatchFailures,
        breaker: CircuitBreaker,
        on_result: OnResult,
    ) -> None:
        """Implement :meth:`Servers.apply`."""
        connection = self.connections[server]
        execution = ServerExecution(
            self.context, connection, failures, breaker, on_result, self.frozen
        )
        await execution.run(targets)


class ServerExecution(Struct):
    """The targets of one server, which start in order: see :mod:`msauto.circuit_breaker`.

    ``records`` are those of a process that was lost: what it finished is not repeated, what it began is settled.
    ``probe``: the slot of the target that probes the server.
    """

    context: ApplyContext
    connection: ServerConnection
    failures: BatchFailures
    breaker: CircuitBreaker
    on_result: OnResult
    frozen: Callable[[], str | None] = lambda: None
    records: Records = {}
    probe: ConcurrencySlot | None = None

    def __post_init__(self) -> None:
        policy = self.context.policy.showing_after(self.connection.shows_after)
        self.context = structs.replace(self.context, policy=policy)

    async def run(self, targets: Targets) -> None:
        """Apply the targets that may start. Those that were begun before are settled in any case."""
        async with asyncio.TaskGroup() as group:
            for number, target in targets.items():
                record = self.records.get(number)
                if record is not None and record.outcome is not None:
                    self._note(number, structs.replace(record.result, target=target))
                elif record is not None or self._may_start():
                    slot = await self._admit()
                    # Its task begins later. A breaker that becomes half-open meanwhile is not probed by it.
                    contact = TargetContact(self.breaker)
                    group.create_task(self._apply(number, target, record, slot, contact))

    async def run_alone(self, targets: Targets) -> None:
        """Apply targets of the only server of a run, as :meth:`run`, and record that; raises what the ledger raises."""
        commits = self.context.commits
        try:
            await self.run(targets)
        finally:
            commits.flush()
        if commits.failure is not None:
            raise commits.failure

    def _may_start(self) -> bool:
        return not self.context.cancellation.requested and self.failures.stop_reason() is None

    async def _admit(self) -> ConcurrencySlot:
        """Return a slot for the next target. While the breaker is half-open, it waits for the last probe and a pause.

        Getting a slot takes time, in which the breaker may have become half-open: then the target waits again.
        """
        breaker = self.breaker
        while True:
            while self.probe is not None and breaker.state.half_open:
                await breaker.changed()
            probes = breaker.state.half_open
            if probes:
                await self._pause()
            await self.connection.slots.acquire()
            slot = ConcurrencySlot(self.connection.slots)
            if probes:
                self.probe = slot
            if probes or not breaker.state.half_open:
                return slot
            slot.leave()

    async def _pause(self) -> None:
        """Wait before the server is probed; not if the target will not start anyway."""
        context = self.context
        pauses = context.policy.half_open_pauses
        if self.failures.stop_reason() or self.frozen() or context.commits.failure:
            return
        number = min(self.breaker.state.failures, len(pauses))
        await context.cancellation.sleep(context.clock, pauses[number - 1])

    async def _apply(
        self,
        number: int,
        target: Target,
        record: TargetRecord | None,
        slot: ConcurrencySlot,
        contact: TargetContact,
    ) -> None:
        try:
            context, resumed = self.context, None
            if record is not None:
                context, resumed = _settling(context, record), progress_of(record)
            elif not self._may_start():
                return
            else:
                reason = self.breaker.state.why_not(target.requests, target.server) or self.frozen()
                if reason is not None:
                    self._note(number, not_attempted(context, target, reason))
                    return
            executor = TargetExecutor(context, self.connection, contact, target, slot, resumed)
            try:
                await executor.run()
            except Exception as error:  # noqa: BLE001 - an error of one target never concerns another one
                executor.result = executor.result or _unfinished(target, one_line(error))
            finally:
                if executor.result is not None:
                    self._note(number, executor.result)
        finally:
            slot.leave()
            if self.probe is slot:
                self.probe = None
                self.breaker.wake()

    def _note(self, number: int, result: TargetResult) -> None:
        self.failures.note(result, self.breaker)
        self.on_result(number, result)


# What an interrupted run left in progress ----------------------------------------------------------------------------


async def recover(
    details: RunDetails, settle: Settle, is_available: Callable[[Target], bool], journal: Journal
) -> tuple[TargetResult, ...]:
    """Settle what an interrupted run left in progress; return the results of these targets.

    Sends nothing. ``is_available``: the server of a target can be read, and no other run may write to the target.
    Closes the run once all of its targets are settled. Does nothing if the run is still alive. Raises ``LedgerError``.
    """
    run, details = details.summary.run, structs.replace(details, targets=tuple(details.targets))
    if not journal.reopen(run, [record.target for record in details.targets]):
        return ()
    by_server: dict[str, dict[int, TargetRecord]] = defaultdict(dict)
    unsettled = 0
    for number, record in enumerate(details.targets):
        if record.begun is not None and record.outcome is None:
            unsettled += 1
            if is_available(record.target):
                by_server[record.target.server][number] = record

    async def settle_server(work: tuple[str, Records]) -> Mapping[int, TargetResult]:
        return await settle(*work)

    settled: dict[int, TargetResult] = {}
    for of_server in await concurrent_list(
        settle_server, by_server.items(), limit=max(1, len(by_server))
    ):
        settled |= of_server
    if len(settled) < unsettled:
        journal.leave(run)
    else:
        results = [
            settled.get(number) or record.result for number, record in enumerate(details.targets)
        ]
        journal.end(run, Result(run, details.plan, tuple(results), interrupted=True))
    return tuple([settled[number] for number in sorted(settled)])


async def settle_here(
    context: ApplyContext, connection: ServerConnection, records: Records
) -> Mapping[int, TargetResult]:
    """Settle targets of a server by reading them from this process."""
    context.cancellation()  # starts no request
    targets = {number: record.target for number, record in records.items()}
    results: dict[int, TargetResult] = {}
    no_batch, keep = BatchFailures(Plan("", ""), 0), results.__setitem__
    execution = ServerExecution(
        context, connection, no_batch, CircuitBreaker(), keep, records=records
    )
    await execution.run_alone(targets)
    return results


def _settling(context: ApplyContext, record: TargetRecord) -> ApplyContext:
    """Return the context to settle a target by reading: once, if the server has done long ago what it does."""
    if not context.cancellation.requested:
        return context
    waited = timedelta(seconds=sum(context.policy.read_pauses))
    settled_after = max(_SETTLED_AFTER, waited)
    for request in record.requests:
        if request.sent is None:
            continue
        if context.clock.now() - parse_datetime(request.sent) < settled_after:
            return context
    return structs.replace(context, policy=structs.replace(context.policy, read_pauses=()))


def progress_of(record: TargetRecord) -> TargetProgress:
    """Return how far the target had come when it was interrupted."""
    results: list[RequestResult] = []
    tries = 0
    sending = False
    for request in record.requests:
        if request.state not in {"done", "failed", "unverified"}:
            sending = request.state == "sending"
            tries = request.tries if sending else 0
            break
        results.append(RequestResult(request.state, request.status, request.message, request.tries))
    count, wait = len(record.target.requests), record.target.wait
    return resume(
        TargetProgress(count, wait=wait, results=tuple(results), tries=tries), sending=sending
    )
