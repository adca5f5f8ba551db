"""The executor with many targets: restores, forks, a ledger that fails, a run that is cancelled."""

import asyncio
import logging
from collections.abc import Sequence

import pytest
from msgspec import structs

from msauto.applying.executor import Cancellation
from msauto.applying.states import RetryPolicy
from msauto.errors import LedgerError
from msauto.model.events import (
    TargetFinished,
    WaitingForRestore,
)
from msauto.model.live import Asset
from msauto.model.plan import Plan, Target
from msauto.model.result import Difference, Result
from tests.unit.applying.applying_world import (
    Clock,
    DictJournal,
    Stage,
    apply,
    asset_target,
    fields_target,
    link_target,
    plan_of,
    restore_target,
)


def told(result: Result) -> list[tuple[str, list[str]]]:
    return [(target.outcome, [request.outcome for request in target.requests]) for target in result.targets]


LOST = {"command:COPY": {"unverified": "run-1"}}
"""What is remembered of a command that was sent, and whose answer was lost."""


def one(result: Result) -> tuple[str, list[str]]:
    return told(result)[0]


# Restores --------------------------------------------------------------------------------------------------------


def test_a_restore_is_waited_for() -> None:
    stage = Stage()
    target = restore_target(stage.world, takes=100)
    assert stage.run(target).ok
    assert 100 <= stage.world.clock.seconds <= 116
    waits = [event for event in stage.events.told if isinstance(event, WaitingForRestore)]
    assert waits
    assert [event.waited for event in waits] == sorted(event.waited for event in waits)
    assert {event.wait for event in waits} == {300}


def test_a_restore_that_takes_too_long() -> None:
    stage = Stage()
    target = restore_target(stage.world, takes=1000)
    (result,) = stage.run(target).targets
    assert (result.outcome, result.message) == ("failed", "not restored within 300 s")
    assert result.differences == (Difference("restore", "hires", desired=True, live=""),)
    assert stage.world.clock.seconds == pytest.approx(300, abs=20)


def test_a_restore_occupies_no_slot() -> None:
    stage = Stage()
    waiting = restore_target(stage.world, "Archived")
    others = [fields_target(stage.world, f"Film {number}", 1) for number in range(5)]
    result = stage.run(waiting, *others, forks=1)
    assert result.ok
    finished = [event.result.target.name for event in stage.events.told if isinstance(event, TargetFinished)]
    assert finished == [*(f"Film {number}" for number in range(5)), "Archived"]
    assert result.targets[0].target.name == "Archived"


# Many targets ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("forks", [1, 3, 100])
def test_no_more_than_forks_at_once(forks: int) -> None:
    stage = Stage()
    targets = [fields_target(stage.world, f"Film {number}", 2) for number in range(20)]
    assert stage.run(*targets, forks=forks).ok
    assert stage.world.busiest <= forks
    assert stage.world.busiest > min(forks, 2) - 1


def test_the_requests_of_a_target_keep_their_order() -> None:
    stage = Stage()
    targets = [fields_target(stage.world, f"Film {number}", 3) for number in range(5)]
    stage.run(*targets)
    for target in targets:
        paths = [request.path for request in target.requests]
        assert [path for path in stage.world.sent if path in paths] == paths


def test_one_folder_is_read_a_few_times_for_many_verifications() -> None:
    stage = Stage()
    targets = [link_target(stage.world, f"Film {number}") for number in range(50)]
    assert stage.run(*targets, forks=50).ok
    assert stage.world.reads.count("folder Tonight") <= 5


def test_errors_of_a_shared_reading_reach_all_readers() -> None:
    stage = Stage()
    targets = [link_target(stage.world, f"Film {number}") for number in range(5)]
    del stage.world.folders[("Tonight",)]
    for target in targets:
        stage.world.effects.pop(target.requests[0].path)
    assert {outcome for outcome, _ in told(stage.run(*targets))} == {"failed"}


def test_targets_that_cannot_be_applied_are_not_attempted() -> None:
    stage = Stage()
    good = fields_target(stage.world)
    wrong = structs.replace(fields_target(stage.world, "Other"), error="unknown asset")
    result = stage.run(wrong, good)
    assert [outcome for outcome, _ in told(result)] == ["not attempted", "changed"]
    assert result.targets[0].message == "unknown asset"
    assert not result.ok


def test_nothing_to_do() -> None:
    stage = Stage()
    assert stage.run().targets == ()
    stage.world.assets["Film"] = Asset("Film")
    assert one(stage.run(asset_target("Film", (), ()))) == ("unchanged", [])
    assert stage.world.reads == []


def test_an_internal_error_is_the_result_of_one_target(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    targets = [fields_target(stage.world, name, 1) for name in ("Film", "Other")]

    def fail(target: Target, live: object, doubtful: object) -> dict[str, object]:
        if target.name == "Film":
            raise KeyError("oh")
        return {}

    monkeypatch.setattr("msauto.applying.target_memory.memories", fail)
    result = stage.run(*targets)
    assert [outcome for outcome, _ in told(result)] == ["unverified", "changed"]
    assert result.targets[0].message == "internal error: 'oh'"


# The ledger ------------------------------------------------------------------------------------------------------


def test_a_ledger_that_cannot_open_a_run_sends_nothing() -> None:
    stage = Stage()
    target = fields_target(stage.world)

    class ReadOnly(DictJournal):
        def start(self, plan: Plan, playbooks: Sequence[str]) -> str:
            raise LedgerError("the ledger is read-only")

    stage.journal = ReadOnly()
    with pytest.raises(LedgerError, match="read-only"):
        stage.run(target)
    assert stage.world.sent == []


@pytest.mark.parametrize("at", range(1, 8))
def test_a_ledger_that_fails_during_the_run_ends_it(at: int) -> None:
    stage = Stage()
    targets = [fields_target(stage.world, f"Film {number}") for number in range(3)]
    stage.journal.fails_at = at
    result = stage.run(*targets, forks=1)
    sending = [line[1] for line in stage.journal.lines if line[0] == "sending"]
    assert stage.world.sent == sending  # nothing was sent that is not in the ledger
    assert len(stage.world.sent) == min(at - 1, 3) + max(0, at - 6)
    assert not result.ok
    assert "disk is full" in " ".join(target.message for target in result.targets)
    assert len(result.targets) == 3


# Stopping --------------------------------------------------------------------------------------------------------


def test_the_first_stop_finishes_requests_in_progress() -> None:
    stage = Stage()
    stop = Cancellation()
    targets = [fields_target(stage.world, f"Film {number}") for number in range(4)]
    path = targets[0].requests[1].path
    stage.world.responses[path] = ["cut after"]
    stage.world.on_send = lambda sent: stop() if sent == path else None
    result = stage.run(*targets, forks=1, cancellation=stop)
    assert result.interrupted
    assert told(result) == [("interrupted", ["done", "done", "not sent"]), *[("not attempted", ["not sent"] * 3)] * 3]
    assert result.targets[0].message == "stopped: 2 of 3 requests were sent"
    assert result.targets[1].message == "stopped before it was started"
    assert stage.journal.ended == result


def test_a_stop_ends_a_wait_for_a_restore() -> None:
    stage = Stage()
    stop = Cancellation()
    target = restore_target(stage.world, takes=1000)

    class Impatient(Clock):
        async def sleep(self, seconds: float) -> None:
            stop()
            await asyncio.Event().wait()

    stage.world.clock = Impatient()
    (result,) = stage.run(target, cancellation=stop).targets
    assert (result.outcome, result.message) == ("unverified", "stopped while waiting for the restored file")


def test_the_second_stop_leaves_at_once() -> None:
    stage = Stage()
    stop = Cancellation()
    targets = [fields_target(stage.world, f"Film {number}") for number in range(3)]
    path = targets[0].requests[1].path
    stage.world.responses[path] = ["hang"]

    async def main() -> Result:
        def twice(sent: str) -> None:
            if sent == path:
                asyncio.get_running_loop().call_later(0.01, stop)
                asyncio.get_running_loop().call_later(0.02, stop)

        stage.world.on_send = twice
        return await stage.apply(*targets, forks=1, cancellation=stop)

    result = asyncio.run(main())
    assert result.interrupted
    assert told(result)[0] == ("unverified", ["done", "unverified", "not sent"])
    assert told(result)[1] == ("not attempted", ["not sent"] * 3)
    assert "stopped at once" in result.targets[0].message
    assert stage.journal.states["Film 0", 1] == "unverified"
    assert stage.journal.ended == result


def test_a_download_that_is_abandoned_at_once_is_not_done() -> None:
    """It changes nothing on the server, so it is not in doubt."""
    stage = Stage()
    stop = Cancellation()
    target = fields_target(stage.world, "Film")
    last = structs.replace(target.requests[1], dest="out/still.png")
    target = structs.replace(target, requests=(target.requests[0], last))
    stage.world.responses[last.path] = ["hang"]

    async def main() -> Result:
        def twice(sent: str) -> None:
            if sent == last.path:
                asyncio.get_running_loop().call_later(0.01, stop)
                asyncio.get_running_loop().call_later(0.02, stop)

        stage.world.on_send = twice
        return await stage.apply(target, cancellation=stop)

    result = asyncio.run(main())
    assert result.interrupted
    assert told(result)[0] == ("interrupted", ["done", "failed"])
    assert "stopped at once: the file was not fetched" in result.targets[0].message
    assert stage.journal.states["Film", 1] == "failed"


def test_cancelling_leaves_the_journal_true(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    targets = [fields_target(stage.world, f"Film {number}", 2) for number in range(3)]
    for target in targets:
        stage.world.responses[target.requests[1].path] = ["hang"]

    async def main() -> None:
        task = asyncio.ensure_future(stage.apply(*targets))
        while len(stage.world.sent) < 6:  # noqa: ASYNC110 - the second request of each hangs
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    assert stage.journal.outcomes == {f"Film {number}": "unverified" for number in range(3)}
    assert stage.journal.ended is not None
    assert stage.journal.ended.interrupted
    assert caplog.records == []


def test_stopped_before_it_began() -> None:
    stage = Stage()
    stop = Cancellation()
    stop()
    assert one(stage.run(fields_target(stage.world), cancellation=stop)) == ("not attempted", ["not sent"] * 3)
    assert stage.world.sent == []


def test_the_retry_policy_is_a_parameter() -> None:
    stage = Stage()
    target = fields_target(stage.world, count=1)
    stage.world.responses[target.requests[0].path] = ["refused"] * 9

    async def main() -> Result:
        servers = {"studio-a": stage.server()}
        policy = RetryPolicy(tries=10, backoff=(1.0,))
        world = stage.world
        return await apply(
            plan_of(target), servers, stage.journal, stage.memory, world.clock, stage.events, forks=1, policy=policy
        )

    assert asyncio.run(main()).ok
    assert stage.world.clock.seconds == 9
