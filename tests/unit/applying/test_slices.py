"""Slices: workers that die, a session that is lost, a run that is stopped. Nothing is sent twice, or forgotten."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from msauto.applying.apply_context import ApplyContext
from msauto.applying.batches import BatchFailures, NumberedTarget
from msauto.applying.cancellation import Cancellation
from msauto.applying.circuit_breaker import BreakerState
from msauto.applying.executor import apply_with
from msauto.applying.group_commit import GroupCommit
from msauto.applying.slices import ItemResult, SlicedWaveExecutor, SliceExecution
from msauto.applying.states import RetryPolicy
from msauto.concurrency import concurrent_list
from msauto.errors import LedgerError, ServerError
from msauto.model.desired import Batch
from msauto.model.plan import Target
from msauto.model.ports import Journal
from msauto.model.result import Result, TargetResult
from msauto.model.run_records import RequestRecord, RequestState, TargetRecord
from tests.unit.applying.applying_world import DictJournal, Stage, World, fields_target, plan_of

COUNT, SLICE = 120, 50  # targets: three slices


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
class Cluster:
    """Workers in this process, which share one journal. ``dies_at``: the sends at which a worker dies, in total.

    A slice whose worker died is run again, ``tries`` times in all, as a scheduler does.
    """

    stage: Stage
    dies_at: frozenset[int] = frozenset()
    tries: int = 3
    slices: list[int] = field(default_factory=list)
    lost_session_after: int | None = None
    targets: Sequence[Target] = ()
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    # The shared ledger -------------------------------------------------------------------------------------------

    def check(self) -> None:
        if self.lost_session_after is not None and len(self.stage.world.sent) >= self.lost_session_after:
            raise LedgerError("the session with the ledger is lost")

    async def wait_for_workers(self) -> bool:
        self.check()
        return True

    def stop_starting(self) -> None:
        self.stopping.set()

    def records(self, positions: Sequence[int]) -> Mapping[int, TargetRecord]:
        self.check()
        return {position: self._record(self.targets[position]) for position in positions}

    def _record(self, target: Target) -> TargetRecord:
        journal = self.stage.journal
        begun = "then" if ("planned", target.name) in journal.lines else None
        states: list[RequestState] = [
            journal.states.get((target.name, index), "planned")  # type: ignore[misc]
            for index in range(len(target.requests))
        ]
        sent = self.stage.world.clock.now().isoformat()
        requests = tuple(RequestRecord(state, 1, sent=None if state == "planned" else sent) for state in states)
        return TargetRecord(target, requests, begun, journal.outcomes.get(target.name))  # type: ignore[arg-type]

    # The workers -------------------------------------------------------------------------------------------------

    async def map(
        self, server: str, targets: Iterator[NumberedTarget], failures: BatchFailures, breaker: BreakerState
    ) -> AsyncGenerator[ItemResult, None]:
        del server
        while some := list(islice(targets, SLICE)):
            self.slices.append(len(some))
            for each in await self._with_tries(some, failures, breaker):
                breaker = each.breaker
                yield each

    async def _with_tries(
        self, some: list[NumberedTarget], failures: BatchFailures, breaker: BreakerState
    ) -> list[ItemResult]:
        for _ in range(self.tries):
            with suppress(WorkerDiedError):
                return await self._on_worker(some, failures, breaker)
        raise ServerError(f"{self.tries} workers were lost", remedy="look at the workers")

    async def _on_worker(
        self, some: list[NumberedTarget], failures: BatchFailures, breaker: BreakerState
    ) -> list[ItemResult]:
        stage, world = self.stage, self.stage.world
        journal = WorkerJournal(stage.journal)

        def on_send(path: str) -> None:
            del path
            journal.dead = journal.dead or len(world.sent) in self.dies_at
            self.dies_at -= {len(world.sent)}
            if journal.dead:
                raise WorkerDiedError

        world.on_send = on_send
        shared = cast("Journal", journal)
        context = ApplyContext(
            "run-1", shared, stage.memory, world.clock, stage.events, GroupCommit(shared), Cancellation(), RetryPolicy()
        )
        connection = stage.server()
        execution = SliceExecution(context, connection, failures, breaker, lambda: None)
        records = self.records([number for number, _ in some])

        async def apply(numbered: NumberedTarget) -> ItemResult:
            result = await execution.apply(numbered, records[numbered[0]])
            return ItemResult(result, connection.breaker.state)

        results = await concurrent_list(apply, some, limit=4)
        context.commits.flush()
        if journal.dead:
            raise WorkerDiedError
        return results


def run(
    stage: Stage,
    cluster: Cluster,
    targets: Sequence[Target],
    cancellation: Cancellation | None = None,
    *,
    fatal: bool = False,
) -> Result:
    cluster.targets = targets
    batches = (Batch("play", (targets[0].server,), fatal=True),) if fatal else ()

    async def everything() -> Result:
        executor_of = partial(SlicedWaveExecutor, workers=cluster, frozen=lambda: None)
        return await apply_with(
            executor_of,
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


def test_slices_do_what_one_process_does() -> None:
    stage = Stage()
    cluster = Cluster(stage)
    result = run(stage, cluster, targets_of(stage.world))
    assert Counter(each.outcome for each in result.targets) == {"changed": COUNT}
    assert [each.target.name for each in result.targets] == sorted(each.target.name for each in result.targets)
    assert cluster.slices == [50, 50, 20]
    assert stage.journal.ended is not None
    assert result.ok


@given(st.frozensets(st.integers(0, 239), max_size=6))
def test_workers_that_die_lose_nothing_and_double_nothing(dies_at: frozenset[int]) -> None:
    stage = Stage()
    result = run(stage, Cluster(stage, dies_at, tries=9), targets_of(stage.world))
    assert max(Counter(stage.world.sent).values()) == 1
    for each in result.targets:
        done = set(stage.world.assets[each.target.name].attributes.values()) == {"new"}
        # What was journalled and not seen done is never sent again: reading cannot show that it will not arrive.
        assert each.outcome == ("changed" if done else "unverified")
        assert done or dies_at


def test_a_slice_whose_workers_all_die_ends_the_run() -> None:
    stage = Stage()
    cluster = Cluster(stage, frozenset({110}), tries=1)
    result = run(stage, cluster, targets_of(stage.world))
    outcomes = [each.outcome for each in result.targets]
    assert set(outcomes[:50]) == {"changed"}
    assert "unverified" in outcomes[50:100]
    assert set(outcomes[50:100]) <= {"changed", "unverified", "not attempted"}
    assert set(outcomes[100:]) == {"not attempted"}
    assert "1 workers were lost" in result.targets[-1].message
    assert stage.journal.ended is None
    assert ("leave", "run-1") in stage.journal.lines
    assert max(Counter(stage.world.sent).values()) == 1


def test_a_lost_session_of_the_coordinator_ends_the_run() -> None:
    stage = Stage()
    cluster = Cluster(stage, lost_session_after=120)
    result = run(stage, cluster, targets_of(stage.world))
    last = result.targets[-1]
    assert (last.outcome, last.message) == ("not attempted", "the session with the ledger is lost")
    assert stage.journal.ended is None
    assert max(Counter(stage.world.sent).values()) == 1


def test_cancelling_tells_the_workers_and_starts_nothing() -> None:
    stage, cancellation = Stage(), Cancellation()
    cluster = Cluster(stage)
    targets = targets_of(stage.world)
    cancelling = stage.world.effects[targets[10].requests[0].path]

    def cancel(world: World) -> None:
        cancelling(world)
        cancellation()

    stage.world.effects[targets[10].requests[0].path] = cancel
    result = run(stage, cluster, targets, cancellation)
    assert result.interrupted
    assert cluster.slices == [50]
    assert result.targets[-1].outcome == "not attempted"
    assert stage.journal.ended is not None


def test_rejected_credentials_are_not_used_again_because_an_older_slice_has_worked() -> None:
    stage = Stage()
    targets = targets_of(stage.world, 3)

    async def found(server: str, taken: Iterator[NumberedTarget], *_: object) -> AsyncGenerator[ItemResult, None]:
        del server
        assert len(list(islice(taken, 2))) == 2
        yield ItemResult(None, BreakerState().rejected("401"))
        yield ItemResult(None, BreakerState())
        assert list(taken) == []

    cluster = Cluster(stage)
    cluster.map = found  # type: ignore[method-assign, assignment]
    assert "rejects our account" in run(stage, cluster, targets).targets[2].message


def test_a_failed_batch_lets_workers_finish_the_targets_in_progress() -> None:
    stage = Stage()
    targets = targets_of(stage.world, 3)
    cluster = Cluster(stage)

    async def found(server: str, taken: Iterator[NumberedTarget], *_: object) -> AsyncGenerator[ItemResult, None]:
        del server
        assert len(list(islice(taken, 2))) == 2
        yield ItemResult(TargetResult(targets[0], "failed", "500"), BreakerState())
        await cluster.stopping.wait()
        yield ItemResult(TargetResult(targets[1], "changed"), BreakerState())
        assert list(taken) == []

    cluster.map = found  # type: ignore[method-assign, assignment]
    result = run(stage, cluster, targets, fatal=True)
    assert [each.outcome for each in result.targets] == ["failed", "changed", "not attempted"]
    assert "any_errors_fatal is set" in result.targets[2].message
    assert not result.interrupted


@pytest.mark.parametrize("state", ["down", "401"])
def test_a_server_that_cannot_be_reached_is_left_alone_by_later_slices(state: str) -> None:
    stage = Stage()
    stage.world.state = lambda world: "up" if len(world.sent) < 20 else state
    cluster = Cluster(stage)
    result = run(stage, cluster, targets_of(stage.world))
    assert len(cluster.slices) == 1
    assert result.targets[-1].outcome == "not attempted"
    assert "msauto apply PLAYBOOK --resume run-1" in result.targets[-1].message


@pytest.mark.parametrize("settled", ["failed", "unverified"])
def test_a_slice_that_runs_again_sends_nothing_after_a_request_that_was_not_done(settled: RequestState) -> None:
    stage = Stage()
    (target,) = targets_of(stage.world, 1)
    requests = (RequestRecord(settled, 1, sent=stage.world.clock.now().isoformat()), RequestRecord("planned", 0))
    record = TargetRecord(target, requests, "then", None)

    async def apply_again() -> str:
        journal = cast("Journal", stage.journal)
        context = ApplyContext(
            "run-1", journal, stage.memory, stage.world.clock, stage.events, GroupCommit(journal), Cancellation(),
            RetryPolicy(),
        )  # fmt: skip
        failures = BatchFailures(plan_of(target), 0)
        execution = SliceExecution(context, stage.server(), failures, BreakerState(), lambda: None)
        result = await execution.apply((0, target), record)
        assert result is not None
        return result.outcome

    assert asyncio.run(apply_again()) == settled
    assert stage.world.sent == []
