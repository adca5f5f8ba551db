"""Recovery alone: the ledger's records, what is read, and the outcome. Nothing is ever sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from msauto.applying.apply_context import ApplyContext, Cancellation, GroupCommit
from msauto.applying.executor import Records, recover, settle_here
from msauto.ledger.ledger import Ledger
from msauto.model.events import ignore
from msauto.model.plan import Target
from msauto.model.result import RequestResult, TargetResult
from msauto.retry_policy import RetryPolicy
from tests.unit.applying.applying_world import Stage, fields_target, plan_of

Before = Callable[[Ledger, str, Target], None]


@pytest.fixture
def stage() -> Stage:
    return Stage()


def sending_first(ledger: Ledger, run: str, target: Target) -> None:
    ledger.journal.sending(run, target, 0)


def first_done(ledger: Ledger, run: str, target: Target) -> None:
    sending_first(ledger, run, target)
    ledger.journal.settled(run, target, 0, RequestResult("done", 200, tries=1))


def all_done(ledger: Ledger, run: str, target: Target) -> None:
    first_done(ledger, run, target)
    ledger.journal.sending(run, target, 1)
    ledger.journal.settled(run, target, 1, RequestResult("done", 200, tries=1))


def first_failed(ledger: Ledger, run: str, target: Target) -> None:
    sending_first(ledger, run, target)
    ledger.journal.settled(run, target, 0, RequestResult("failed", 400, "no", tries=1))


def not_begun(ledger: Ledger, run: str, target: Target) -> None:
    del ledger, run, target


def died(stage: Stage, folder: Path, target: Target, before: Before) -> str:
    with Ledger.open(folder, now=stage.world.clock.now) as ledger:
        run = ledger.journal.start(plan_of(target), ["news.yml"])
        before(ledger, run, target)
    return run


def recovered(
    stage: Stage, folder: Path, run: str, *, available: bool = True
) -> tuple[TargetResult, ...]:
    with Ledger.open(folder, now=stage.world.clock.now) as ledger:
        details = ledger.run_details(run)

        async def settle(_: str, records: Records) -> Mapping[int, TargetResult]:
            journal = ledger.journal
            commits, stop, policy = GroupCommit(journal), Cancellation(), RetryPolicy()
            context = ApplyContext(
                run, journal, ledger.memory(), stage.world.clock, ignore, commits, stop, policy
            )
            return await settle_here(context, stage.server(), records)

        work = recover(details, settle, lambda _: available, ledger.journal)
        return asyncio.run(work)


@pytest.mark.parametrize(
    ("before", "really_done", "outcome", "states"),
    [
        (sending_first, 0, "unverified", ["unverified", "not sent"]),
        (sending_first, 1, "failed", ["done", "not sent"]),
        (first_done, 1, "failed", ["done", "not sent"]),
        (all_done, 2, "changed", ["done", "done"]),
        (all_done, 1, "failed", ["done", "done"]),
        (first_failed, 0, "failed", ["failed", "not sent"]),
    ],
)
def test_a_target_in_progress_is_settled(
    stage: Stage, tmp_path: Path, before: Before, really_done: int, outcome: str, states: list[str]
) -> None:
    target = fields_target(stage.world, "Film", 2)
    run = died(stage, tmp_path, target, before)
    for request in target.requests[:really_done]:
        stage.world.act(request.path)
    assert [each.outcome for each in recovered(stage, tmp_path, run)] == [outcome]
    assert stage.world.sent == [], "nothing is sent"
    with Ledger.open(tmp_path, readonly=True) as ledger:
        details = ledger.run_details(run)
    assert details.summary.status == "interrupted"
    assert [record.state for record in details.targets[0].requests] == states


def test_a_target_never_started_is_closed_without_reading(stage: Stage, tmp_path: Path) -> None:
    run = died(stage, tmp_path, fields_target(stage.world, "Film", 2), not_begun)
    assert recovered(stage, tmp_path, run) == ()
    with Ledger.open(tmp_path, readonly=True) as ledger:
        details = ledger.run_details(run)
    assert (details.summary.status, details.targets[0].outcome) == ("interrupted", "not attempted")


def test_a_server_that_is_not_available_leaves_the_run_open(stage: Stage, tmp_path: Path) -> None:
    run = died(stage, tmp_path, fields_target(stage.world, "Film", 2), sending_first)
    assert recovered(stage, tmp_path, run, available=False) == ()
    assert len(recovered(stage, tmp_path, run)) == 1


def test_a_run_that_is_still_alive_is_not_recovered(stage: Stage, tmp_path: Path) -> None:
    target = fields_target(stage.world, "Film", 2)
    with Ledger.open(tmp_path, now=stage.world.clock.now) as alive:
        run = alive.journal.start(plan_of(target), [])
        sending_first(alive, run, target)
        assert recovered(stage, tmp_path, run) == ()
        alive.journal.settled(run, target, 0, RequestResult("done", 200))


def test_a_request_sent_long_ago_is_read_once(stage: Stage, tmp_path: Path) -> None:
    clock = stage.world.clock
    run = died(stage, tmp_path, fields_target(stage.world, "Film", 2), sending_first)
    began = clock.monotonic()
    recovered(stage, tmp_path, run)
    assert clock.monotonic() > began, "it may still be under way: looked at for a while"
    run = died(stage, tmp_path, fields_target(stage.world, "Clip", 2), sending_first)
    asyncio.run(clock.sleep(3600))
    began = clock.monotonic()
    recovered(stage, tmp_path, run)
    assert clock.monotonic() == began
