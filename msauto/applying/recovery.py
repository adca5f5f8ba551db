"""Crash recovery: the next run settles what an interrupted run left in progress, by reading alone.

A run that was killed leaves requests as «sending» in the ledger, and targets that were not verified. The next run reads
these targets before it plans. A request that reading shows as done is done, any other is *unverified*, and what reading
shows is remembered. Then the ledger closes the run as interrupted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping

from msauto.applying.apply_context import ApplyContext, Cancellation, GroupCommit, ServerConnection
from msauto.applying.circuit_breaker import CircuitBreaker
from msauto.applying.executor import BatchFailures, apply_server, result_of
from msauto.applying.states import RetryPolicy
from msauto.concurrency import concurrent_list
from msauto.model import events
from msauto.model.plan import Plan, Target
from msauto.model.ports import Clock, Journal, Memory
from msauto.model.result import RequestResult, Result, TargetResult
from msauto.model.run_records import RunDetails, TargetRecord

Records = Mapping[int, TargetRecord]
"""Targets of a run that died, by their positions in the plan."""
Settle = Callable[[str, Records], Awaitable[Mapping[int, TargetResult]]]
"""Settles targets of one server by reading, and returns their results."""


async def recover(
    details: RunDetails, settle: Settle, is_available: Callable[[Target], bool], journal: Journal
) -> tuple[TargetResult, ...]:
    """Settle what an interrupted run left in progress; return the results of these targets.

    Sends nothing. ``is_available``: the server of a target can be read, and no other run may write to the target.
    Closes the run once all of its targets are settled. Does nothing if the run is still alive. Raises ``LedgerError``.
    """
    run = details.summary.run
    if not journal.reopen(run, [record.target for record in details.targets]):
        return ()
    by_server: dict[str, dict[int, TargetRecord]] = defaultdict(dict)
    left = False
    for number, record in enumerate(details.targets):
        if record.begun is not None and record.outcome is None:
            if is_available(record.target):
                by_server[record.target.server][number] = record
            else:
                left = True

    async def settle_server(work: tuple[str, Records]) -> Mapping[int, TargetResult]:
        return await settle(*work)

    found = await concurrent_list(settle_server, by_server.items(), limit=max(1, len(by_server)))
    results = dict(sorted(item for each in found for item in each.items()))
    if left or len(results) < sum(map(len, by_server.values())):
        journal.leave(run)
    else:
        journal.end(run, _result(details, results))
    return tuple(results.values())


async def settle_here(
    server: str,
    records: Records,
    *,
    run: str,
    connections: Mapping[str, ServerConnection],
    journal: Journal,
    memory: Memory,
    clock: Clock,
    forks: int,
    policy: RetryPolicy | None = None,
) -> dict[int, TargetResult]:
    """Settle targets of a server by reading them from this process."""
    cancellation = Cancellation()
    cancellation()  # starts no request
    commits = GroupCommit(journal)
    context = ApplyContext(run, journal, memory, clock, events.SILENT, commits, cancellation, policy or RetryPolicy())
    results: dict[int, TargetResult] = {}
    await apply_server(
        context,
        connections[server],
        {number: record.target for number, record in records.items()},
        records,
        BatchFailures(Plan("", ""), 0),
        CircuitBreaker(),
        results.__setitem__,
        forks=forks,
    )
    return results


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
