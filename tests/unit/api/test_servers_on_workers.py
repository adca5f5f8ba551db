"""Workers that die, a session that is lost, a run that is stopped. Nothing is sent twice, or forgotten."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from msauto.applying.apply_context import ApplyContext, Cancellation, GroupCommit
from msauto.applying.executor import BatchFailures, ServerExecution, Targets, apply
from msauto.circuit_breaker import BreakerState, CircuitBreaker
from msauto.errors import ClusterError, LedgerError
from msauto.model.desired import Batch
from msauto.model.events import guarded
from msauto.model.plan import Target
from msauto.model.ports import Journal
from msauto.model.result import RequestRecord, RequestState, Result, TargetRecord, TargetResult
from msauto.plugins.dask.workplace import (
    AppliedServer,
    ServersOnWorkers,
    WorkersOfRun,
    without_target,
)
from msauto.retry_policy import RetryPolicy
from tests.unit.applying.applying_world import DictJournal, Stage, World, fields_target, plan_of

BEGUN = "2026-11-20T03:10:00.000Z"
COUNT = 120
OnReport = Callable[[tuple[int, TargetResult]], None]


class WorkerDiedError(Exception):
    """SIGKILL: nothing is sent or recorded after it."""


class WorkerJournal:
    """The journal as one worker sees it: nothing is recorded once the worker is dead."""

    def __init__(self, journal: DictJournal) -> None:
        self._journal = journal
        self.dead = False

    def __getattr__(self, name: str) -> Any:
        return self._nothing if self.dead and name != "commit" else getattr(self._journal, name)

    def commit(self, calls: Sequence[Callable[[], object]]) -> Future[None]:
        if self.dead:
            raise LedgerError("dead")
        return self._journal.commit(calls)

    def _nothing(self, *values: object) -> None:
        """Record nothing."""


@dataclass
class Workers:
    """Workers in this process, which share one journal. ``dies_at``: the sends at which a worker dies, in total.

    A server whose worker died is continued by another one, ``tries`` times in all, as a scheduler does.
    """

    stage: Stage
    dies_at: frozenset[int] = frozenset()
    tries: int = 3
    lost_session_after: int | None = None
    targets: Sequence[Target] = ()
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    attempts: int = 0

    # The shared ledger -------------------------------------------------------------------------------------------

    def check(self) -> None:
        if (
            self.lost_session_after is not None
            and len(self.stage.world.sent) >= self.lost_session_after
        ):
            raise LedgerError("the session with the ledger is lost")

    async def wait_until_ended(self, server: str) -> bool:
        assert server
        self.check()
        return True

    def stop_starting(self) -> None:
        self.stopping.set()

    def records(self, targets: Targets) -> Mapping[int, TargetRecord]:
        self.check()
        return {position: self._record(self.targets[position]) for position in targets}

    def _record(self, target: Target) -> TargetRecord:
        journal = self.stage.journal
        begun = BEGUN if (target.name, 0) in journal.states else None
        states: list[RequestState] = [
            journal.states.get((target.name, index), "planned")  # type: ignore[misc]
            for index in range(len(target.requests))
        ]
        sent = self.stage.world.clock.now().isoformat()
        requests = tuple(
            RequestRecord(state, 1, sent=None if state == "planned" else sent) for state in states
        )
        return TargetRecord(target, requests, begun, journal.outcomes.get(target.name))  # type: ignore[arg-type]

    # The workers -------------------------------------------------------------------------------------------------

    async def apply(
        self,
        server: str,
        targets: Targets,
        failures: BatchFailures,
        breaker: BreakerState,
        on_report: OnReport,
    ) -> AppliedServer:
        del server, on_report
        for _ in range(self.tries):
            self.attempts += 1
            try:
                return await self._on_worker(targets, failures, breaker)
            except* WorkerDiedError:
                pass
        raise ClusterError(f"{self.tries} workers were lost", remedy="look at the workers")

    async def _on_worker(
        self, targets: Targets, failures: BatchFailures, breaker: BreakerState
    ) -> AppliedServer:
        stage, world = self.stage, self.stage.world
        journal = WorkerJournal(stage.journal)

        def on_send(path: str) -> None:
            del path
            journal.dead = journal.dead or len(world.sent) in self.dies_at
            self.dies_at -= {len(world.sent)}
            if journal.dead:
                raise WorkerDiedError

        world.on_send = on_send
        begun = {
            number: each for number, each in self.records(targets).items() if each.begun is not None
        }
        context = context_of(stage, cast("Journal", journal))
        try:
            return await applied(context, stage, targets, begun, failures, breaker)
        except LedgerError:
            assert journal.dead
            raise WorkerDiedError from None


async def applied(
    context: ApplyContext,
    stage: Stage,
    targets: Targets,
    records: Mapping[int, TargetRecord],
    failures: BatchFailures,
    state: BreakerState | None = None,
) -> AppliedServer:
    """Do what a worker does."""
    breaker, results = CircuitBreaker(), dict[int, TargetResult]()
    breaker.state = state or breaker.state
    keep = results.__setitem__
    execution = ServerExecution(context, stage.server(), failures, breaker, keep, records=records)
    await execution.run_alone(targets)
    return AppliedServer(
        {number: without_target(each) for number, each in results.items()}, breaker.state
    )


def context_of(stage: Stage, journal: Journal) -> ApplyContext:
    clock, commits = stage.world.clock, GroupCommit(journal)
    return ApplyContext(
        "run-1",
        journal,
        stage.memory,
        clock,
        guarded(stage.events),
        commits,
        Cancellation(),
        RetryPolicy(),
    )


def run(
    stage: Stage,
    workers: Workers,
    targets: Sequence[Target],
    cancellation: Cancellation | None = None,
    *,
    fatal: bool = False,
    frozen: Callable[[], str | None] = lambda: None,
) -> Result:
    workers.targets = targets
    batches = (Batch("play", (targets[0].server,), fatal=True),) if fatal else ()

    async def everything() -> Result:
        return await apply(
            partial(ServersOnWorkers, workers=cast("WorkersOfRun", workers), frozen=frozen),
            structs.replace(plan_of(*targets), batches=batches),
            stage.journal,
            stage.memory,
            stage.world.clock,
            stage.events,
            cancellation=cancellation,
        )

    return asyncio.run(everything())


def targets_of(world: World, count: int = COUNT) -> list[Target]:
    return [fields_target(world, f"Clip {number:03}", 2) for number in range(count)]


def test_a_worker_does_what_one_process_does() -> None:
    stage = Stage()
    workers = Workers(stage)
    result = run(stage, workers, targets_of(stage.world))
    assert Counter(each.outcome for each in result.targets) == {"changed": COUNT}
    assert [each.target.name for each in result.targets] == sorted(
        each.target.name for each in result.targets
    )
    assert workers.attempts == 1
    assert stage.journal.ended is not None
    assert result.ok


@pytest.mark.scale
@given(st.frozensets(st.integers(0, 239), max_size=6))
def test_workers_that_die_lose_nothing_and_double_nothing(dies_at: frozenset[int]) -> None:
    stage = Stage()
    result = run(stage, Workers(stage, dies_at, tries=9), targets_of(stage.world))
    assert max(Counter(stage.world.sent).values()) == 1
    for each in result.targets:
        done = set(stage.world.assets[each.target.name].attributes.values()) == {"new"}
        # What was journalled and not seen done is never sent again: reading cannot show that it will not arrive.
        assert each.outcome == ("changed" if done else "unverified")
        assert done or dies_at


def test_a_server_whose_workers_all_die_ends_the_run() -> None:
    stage = Stage()
    result = run(stage, Workers(stage, frozenset({110}), tries=1), targets_of(stage.world))
    outcomes = Counter(each.outcome for each in result.targets)
    assert outcomes.keys() == {"changed", "unverified", "not attempted"}
    assert 50 <= outcomes["changed"] <= 55
    assert "1 workers were lost" in result.targets[-1].message
    assert stage.journal.ended is None
    assert ("leave", "run-1") in stage.journal.lines
    assert max(Counter(stage.world.sent).values()) == 1


def test_a_lost_session_of_the_command_ends_the_run() -> None:
    stage = Stage()
    result = run(
        stage, Workers(stage, frozenset({120}), lost_session_after=120), targets_of(stage.world)
    )
    assert {each.outcome for each in result.targets} == {"unverified"}, "the ledger cannot be read"
    assert {each.message for each in result.targets} == {
        "its worker has not reported; the next run settles it by reading"
    }
    assert stage.journal.ended is None
    assert max(Counter(stage.world.sent).values()) == 1


def test_cancelling_ends_the_work_and_takes_what_the_ledger_has() -> None:
    stage, cancellation = Stage(), Cancellation()
    targets = targets_of(stage.world, 3)
    workers = Workers(stage)

    async def apply(*_: object) -> AppliedServer:
        stage.journal.states.update({(targets[0].name, 0): "done", (targets[0].name, 1): "done"})
        stage.journal.outcomes[targets[0].name] = "changed"
        cancellation()
        await asyncio.Event().wait()
        raise AssertionError

    workers.apply = apply  # type: ignore[method-assign, assignment]
    result = run(stage, workers, targets, cancellation)
    assert result.interrupted
    assert [each.outcome for each in result.targets] == [
        "changed",
        "not attempted",
        "not attempted",
    ]
    assert stage.journal.ended is not None


def test_a_failed_batch_lets_workers_finish_the_targets_in_progress() -> None:
    stage = Stage()
    targets = targets_of(stage.world, 3)
    workers = Workers(stage)

    async def apply(server: str, given: Targets, *values: Any) -> AppliedServer:
        assert (server, list(given.values())) == (targets[0].server, targets)
        found = {
            0: TargetResult(targets[0], "failed", "500"),
            1: TargetResult(targets[1], "changed"),
        }
        found = {number: without_target(result) for number, result in found.items()}
        on_report: OnReport = values[-1]
        on_report((0, found[0]))
        await workers.stopping.wait()
        return AppliedServer(found, BreakerState())

    workers.apply = apply  # type: ignore[method-assign, assignment]
    result = run(stage, workers, targets, fatal=True)
    assert [each.outcome for each in result.targets] == ["failed", "changed", "not attempted"]
    assert "any_errors_fatal is set" in result.targets[2].message
    assert not result.interrupted


@pytest.mark.parametrize("state", ["down", "401"])
def test_a_server_that_cannot_be_reached_is_left_alone_by_the_next_attempt(state: str) -> None:
    stage = Stage()
    stage.world.state = lambda world: "up" if len(world.sent) < 20 else state
    result = run(stage, Workers(stage, frozenset({10})), targets_of(stage.world))
    assert result.targets[-1].outcome == "not attempted"
    assert "apply again" in result.targets[-1].message


def test_no_server_is_sent_to_a_worker_during_a_freeze() -> None:
    stage = Stage()
    workers = Workers(stage)
    result = run(stage, workers, targets_of(stage.world, 3), frozen=lambda: "the freeze of tonight")
    assert {(each.outcome, each.message) for each in result.targets} == {
        ("not attempted", "the freeze of tonight")
    }
    assert workers.attempts == 0


@pytest.mark.parametrize("settled", ["failed", "unverified"])
def test_the_next_attempt_sends_nothing_after_a_request_that_was_not_done(
    settled: RequestState,
) -> None:
    stage = Stage()
    (target,) = targets_of(stage.world, 1)
    requests = (
        RequestRecord(settled, 1, sent=stage.world.clock.now().isoformat()),
        RequestRecord("planned", 0),
    )
    records = {0: TargetRecord(target, requests, BEGUN, None)}

    async def apply_again() -> AppliedServer:
        context, failures = (
            context_of(stage, cast("Journal", stage.journal)),
            BatchFailures(plan_of(target), 0),
        )
        return await applied(context, stage, {0: target}, records, failures)

    assert asyncio.run(apply_again()).results[0].outcome == settled
    assert stage.world.sent == []


def test_a_request_that_was_never_settled_is_unverified_in_a_finished_target() -> None:
    stage = Stage()
    (target,) = targets_of(stage.world, 1)
    requests = (RequestRecord("done", 1), RequestRecord("sending", 2), RequestRecord("planned", 0))
    records = {0: TargetRecord(target, requests, BEGUN, "failed")}

    async def apply_again() -> AppliedServer:
        context, failures = (
            context_of(stage, cast("Journal", stage.journal)),
            BatchFailures(plan_of(target), 0),
        )
        return await applied(context, stage, {0: target}, records, failures)

    shown = asyncio.run(apply_again()).results[0].requests
    assert [(each.outcome, each.tries) for each in shown] == [
        ("done", 1),
        ("unverified", 2),
        ("not sent", 0),
    ]


def test_what_is_in_progress_is_settled_although_nothing_may_start() -> None:
    stage = Stage()
    targets = dict(enumerate(targets_of(stage.world, 3)))
    requests = (
        RequestRecord("sending", 1, sent=stage.world.clock.now().isoformat()),
        RequestRecord("planned", 0),
    )
    records = {1: TargetRecord(targets[1], requests, BEGUN, None)}

    async def settle() -> AppliedServer:
        context, failures = (
            context_of(stage, cast("Journal", stage.journal)),
            BatchFailures(plan_of(), 0),
        )
        context.cancellation()
        return await applied(context, stage, targets, records, failures)

    assert {number: each.outcome for number, each in asyncio.run(settle()).results.items()} == {
        1: "unverified"
    }
    assert stage.world.sent == []
