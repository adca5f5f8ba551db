"""Dead runs: what was under way when a run died is settled by reading, never by sending.

A run that was killed, or whose machine lost its power, leaves requests as «sending» in the ledger, and targets that
nobody proved. The next run looks at them before it plans: what is seen done is done, what is not is *unverified*, and
what the proof shows is remembered. Then the ledger closes the dead run as interrupted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from msauto.applying.cancellation import Cancellation
from msauto.applying.group_commit import GroupCommit
from msauto.applying.states import RetryPolicy, TargetProgress, Transition
from msauto.applying.target_executor import ApplyContext, ServerConnection, TargetExecutor
from msauto.applying.transitions import begin_again
from msauto.concurrency import ConcurrencySlot, concurrent_list
from msauto.model import events
from msauto.model.history import RunDetails, TargetRecord
from msauto.model.plan import Plan, Target
from msauto.model.ports import Clock, Journal, Memory
from msauto.model.result import RequestResult, Result, TargetResult

_LONG_AGO = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class RecoveredTarget:
    """What came of the targets that a dead run left open; ``left`` counts those whose server is not at hand."""

    run: str
    targets: tuple[TargetResult, ...]
    left: int


async def recover(
    details: RunDetails,
    server_of: Callable[[Target], ServerConnection | None],
    journal: Journal,
    memory: Memory,
    clock: Clock,
    *,
    forks: int,
    policy: RetryPolicy | None = None,
) -> RecoveredTarget | None:
    """Settle what a dead run left open; ``None`` where the run is alive after all.

    ``server_of`` gives the server of a target, ``None`` for one that is not at hand, or that another run may be writing
    to. Sends nothing. The run is closed once nothing of it is open any more. Raises ``LedgerError``.
    """
    run = details.summary.run
    if not journal.reopen(run, [record.target for record in details.targets]):
        return None
    stop = Cancellation()
    stop()  # whatever is not under way is not begun
    context = ApplyContext(
        run, journal, memory, clock, events.SilentObserver(), GroupCommit(journal), stop, policy or RetryPolicy()
    )
    open_ones = [record for record in details.targets if is_open(record)]
    at_hand = [(record, server) for record in open_ones if (server := server_of(record.target)) is not None]
    mine = [record for record, _ in at_hand]

    async def settle(both: tuple[TargetRecord, ServerConnection]) -> TargetResult:
        return await _settle(_in_haste(context, both[0]), both[1], both[0])

    found = await concurrent_list(settle, at_hand, limit=forks)
    context.gate.flush()
    if context.gate.broken is not None:
        raise context.gate.broken
    left = len(open_ones) - len(mine)
    if left:
        journal.leave(run)
    else:
        journal.end(run, _result(details, mine, found))
    return RecoveredTarget(run, tuple(found), left)


def is_open(record: TargetRecord) -> bool:
    """Tell whether a target was begun, and nobody knows what came of it."""
    return record.begun is not None and record.outcome is None


def _in_haste(context: ApplyContext, record: TargetRecord) -> ApplyContext:
    """Look just once where the last request left long ago: whatever the server was to do of it, it has done."""
    left = [datetime.fromisoformat(known.sent) for known in record.requests if known.sent is not None]
    if any(context.clock.now() - each < _LONG_AGO for each in left):
        return context
    return replace(context, policy=replace(context.policy, looks=()))


async def _settle(context: ApplyContext, server: ServerConnection, record: TargetRecord) -> TargetResult:
    places = asyncio.Semaphore(1)
    await places.acquire()
    life = TargetExecutor(context, server, record.target, ConcurrencySlot(places), again=_turn(record))
    await life.live()
    assert life.result is not None
    return life.result


def _turn(record: TargetRecord) -> Transition:
    """Return where the target stood: what was settled, and whether the next request was under way."""
    results: list[RequestResult] = []
    sending = False
    for known in record.requests:
        if known.state in {"done", "failed", "unverified"}:
            results.append(RequestResult(known.state, known.status, known.message, known.tries))
            continue
        sending = known.state == "sending"
        break
    progress = TargetProgress(len(record.target.requests), wait=record.target.wait, results=tuple(results))
    tries = record.requests[len(results)].tries if sending else 0
    return begin_again(replace(progress, tries=tries), sending=sending)


def _result(details: RunDetails, mine: list[TargetRecord], found: list[TargetResult]) -> Result:
    """Return the result of the whole run, those targets included that it never reached."""
    settled = {id(record): result for record, result in zip(mine, found, strict=True)}
    results = tuple(settled.get(id(record)) or _known(record) for record in details.targets)
    plan = Plan(
        details.summary.started,
        details.msauto,
        targets=tuple(record.target for record in details.targets),
        unchanged=details.summary.summary.get("unchanged", 0),
        reads=details.summary.summary.get("reads", 0),
    )
    return Result(details.summary.run, plan, results, interrupted=True)


def _known(record: TargetRecord) -> TargetResult:
    if record.outcome is not None:
        return TargetResult(record.target, record.outcome, record.message)
    requests = (RequestResult("not sent"),) * len(record.target.requests)
    return TargetResult(record.target, "not attempted", "the run died before its turn", requests)
