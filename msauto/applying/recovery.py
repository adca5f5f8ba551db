"""Crash recovery: the next run settles what an interrupted run left in progress, by reading alone.

A run that was killed leaves requests as «sending» in the ledger, and targets that were not verified. The next run reads
these targets before it plans. A request that reading shows as done is done, any other is *unverified*, and what reading
shows is remembered. Then the ledger closes the run as interrupted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from msgspec import structs

from msauto.applying.apply_context import ApplyContext, Cancellation, GroupCommit, ServerConnection
from msauto.applying.states import RetryPolicy, TargetProgress, resume
from msauto.applying.target_executor import TargetExecutor
from msauto.concurrency import ConcurrencySlot, concurrent_list
from msauto.model import events
from msauto.model.plan import Plan, Target
from msauto.model.ports import Clock, Journal, Memory
from msauto.model.result import RequestResult, Result, TargetResult
from msauto.model.run_records import RunDetails, TargetRecord

_SETTLED_AFTER = timedelta(minutes=10)
"""A server has finished by then whatever it does for a request."""


NumberedRecord = tuple[int, TargetRecord]
"""A target of a run that died, and its position in the plan."""


Settle = Callable[[Sequence[NumberedRecord]], Awaitable[Mapping[int, TargetResult]]]
"""Settles targets by reading, and returns the results of those that it could settle, by position."""


async def recover(details: RunDetails, settle: Settle, journal: Journal) -> tuple[TargetResult, ...]:
    """Settle what an interrupted run left in progress; return the results of these targets.

    Sends nothing. Closes the run once all of its targets are settled. Does nothing if the run is still alive. Raises
    ``LedgerError``.
    """
    run = details.summary.run
    if not journal.reopen(run, [record.target for record in details.targets]):
        return ()
    in_progress = [
        (number, record)
        for number, record in enumerate(details.targets)
        if record.begun is not None and record.outcome is None
    ]
    results = await settle(in_progress)
    if len(results) < len(in_progress):
        journal.leave(run)
    else:
        journal.end(run, _result(details, results))
    return tuple(results.values())


async def settle_here(
    in_progress: Sequence[NumberedRecord],
    run: str,
    server_of: Callable[[Target], ServerConnection | None],
    journal: Journal,
    memory: Memory,
    clock: Clock,
    *,
    forks: int,
    policy: RetryPolicy | None = None,
) -> dict[int, TargetResult]:
    """Settle targets by reading them from this process.

    ``server_of`` returns the server of a target; ``None`` if it is not available, or another run may write to it.
    """
    cancellation = Cancellation()
    cancellation()  # starts no request
    observer, commits = events.SilentObserver(), GroupCommit(journal)
    context = ApplyContext(run, journal, memory, clock, observer, commits, cancellation, policy or RetryPolicy())
    available = [(each, server) for each in in_progress if (server := server_of(each[1].target)) is not None]

    async def settle(available: tuple[NumberedRecord, ServerConnection]) -> TargetResult:
        (_, record), server = available
        return await _settle(context, server, record)

    results = await concurrent_list(settle, available, limit=forks)
    commits.flush()
    if commits.failure is not None:
        raise commits.failure
    return {number: result for ((number, _), _), result in zip(available, results, strict=True)}


async def _settle(context: ApplyContext, server: ServerConnection, record: TargetRecord) -> TargetResult:
    sent = [datetime.fromisoformat(request.sent) for request in record.requests if request.sent is not None]
    if all(context.clock.now() - each >= _SETTLED_AFTER for each in sent):
        context = replace(context, policy=structs.replace(context.policy, read_pauses=()))
    executor = TargetExecutor(context, server, record.target, ConcurrencySlot.alone(), resumed=progress_of(record))
    await executor.run()
    assert executor.result is not None
    return executor.result


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
    return resume(TargetProgress(count, wait=wait, results=tuple(results), tries=tries), sending=sending)


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


def _result(details: RunDetails, settled: Mapping[int, TargetResult]) -> Result:
    """Return the result of the whole run; ``settled`` are the results of the targets in progress, by position."""
    summary = details.summary
    plan = Plan(
        summary.started,
        details.msauto,
        targets=tuple(record.target for record in details.targets),
        unchanged=summary.summary.get("unchanged", 0),
        reads=summary.summary.get("reads", 0),
    )
    results = (settled.get(number) or _result_of(record) for number, record in enumerate(details.targets))
    return Result(summary.run, plan, tuple(results), interrupted=True)


def _result_of(record: TargetRecord) -> TargetResult:
    if record.outcome is not None:
        return result_of(record)
    requests = (RequestResult("not sent"),) * len(record.target.requests)
    return TargetResult(record.target, "not attempted", "the run was killed before it started the target", requests)
