"""Applying against a small server with scripted answers: what is sent, reported and kept; and many at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from msauto.applying.apply_context import Cancellation
from msauto.applying.verification import Verification, verify
from msauto.errors import LedgerError
from msauto.model.events import (
    RequestSending,
    RequestSettled,
    RunEnded,
    RunStarted,
    TargetFinished,
    TargetStarted,
    WaitingForRestore,
)
from msauto.model.live import Asset, RssChannel, RssItem
from msauto.model.plan import Address, Change, Plan, Request, Target
from msauto.model.result import Difference, Result
from msauto.model.snapshot import Effect, Seen, digest
from tests.tables import table
from tests.unit.applying.applying_world import (
    SOURCE,
    Clock,
    DictJournal,
    Stage,
    asset_target,
    command_target,
    delete_target,
    fields_target,
    link_target,
    marker_target,
    rename_target,
    restore_target,
)


def told(result: Result) -> list[tuple[str, list[str]]]:
    return [
        (target.outcome, [request.outcome for request in target.requests])
        for target in result.targets
    ]


def one(result: Result) -> tuple[str, list[str]]:
    return told(result)[0]


def test_all_requests_succeed() -> None:
    stage = Stage()
    target = fields_target(stage.world)
    result = stage.run(target)
    assert result.ok
    assert not result.interrupted
    assert one(result) == ("changed", ["done"] * 3)
    assert stage.world.sent == ["/Film?set=user_0", "/Film?set=user_1", "/Film?set=user_2"]
    assert stage.world.reads == ["asset Film"]  # the proof is one read
    lines = [" ".join(line) for line in stage.journal.lines]
    assert lines[:3] == ["start", "sending /Film?set=user_0", "settled /Film?set=user_0 done"]
    assert lines[-2:] == ["finished Film changed", "end"]
    kinds = [type(event) for event in stage.events.told]
    assert kinds == [
        RunStarted,
        TargetStarted,
        *[RequestSending, RequestSettled] * 3,
        TargetFinished,
        RunEnded,
    ]


def test_each_request_is_journalled_before_it_is_sent() -> None:
    stage = Stage()
    target = fields_target(stage.world)
    stage.world.on_send = lambda path: stage.journal.lines.index(
        ("sending", path)
    )  # raises if it is not there
    assert stage.run(target).ok


@table("applying/outcomes", "responses", "outcome", "request_outcome", "sends")
def test_an_outcome(responses: list[str], outcome: str, request_outcome: str, sends: int) -> None:
    stage = Stage()
    target = fields_target(stage.world)
    other = fields_target(stage.world, "Other")
    path = target.requests[1].path
    stage.world.responses[path] = responses
    result = stage.run(target, other)
    last = "done" if request_outcome == "done" else "not sent"
    assert told(result) == [(outcome, ["done", request_outcome, last]), ("changed", ["done"] * 3)]
    assert stage.world.sent.count(path) == sends
    assert stage.world.done.count(path) <= 1
    assert stage.journal.outcomes["Film"] == outcome
    assert stage.journal.states["Film", 1] == request_outcome
    assert bool(result.targets[0].message) == (outcome != "changed")


def test_a_write_that_is_not_done_is_reported_by_field() -> None:
    stage = Stage()
    target = fields_target(stage.world)
    stage.world.responses = {"/Film?set=user_0": ["swallowed"], "/Film?set=user_2": ["swallowed"]}
    (result,) = stage.run(target).targets
    assert result.differences == (
        Difference("field", "user_0", "new", "old"),
        Difference("field", "user_2", "new", "old"),
    )
    assert result.message == "not as desired when read again"


def test_a_target_that_cannot_be_read_again_is_unverified() -> None:
    stage = Stage()
    target = fields_target(stage.world)
    stage.world.unreadable = 99
    (result,) = stage.run(target).targets
    assert result.outcome == "unverified"
    assert result.message == "sent, but the target cannot be read again: the answer is garbage"
    stage = Stage()
    stage.world.unreadable = 2
    assert stage.run(fields_target(stage.world)).ok


def test_a_missing_asset_is_reported() -> None:
    stage = Stage()
    target = fields_target(stage.world, count=1)
    stage.world.effects[target.requests[0].path] = lambda world: world.assets.clear()
    (result,) = stage.run(target).targets
    assert (result.outcome, result.differences) == (
        "failed",
        (Difference("field", "user_0", "new", None),),
    )


@pytest.mark.parametrize(
    ("response", "outcome", "markers"),
    [("cut before", "unverified", 1), ("cut after", "changed", 2)],
)
def test_a_new_marker_is_distinguished_from_its_old_twin(
    response: str, outcome: str, markers: int
) -> None:
    stage = Stage()
    target = marker_target(stage.world)
    stage.world.responses["/marker"] = [response]
    assert one(stage.run(target))[0] == outcome
    assert len(stage.world.assets["Film"].markers) == markers
    assert stage.world.sent == ["/marker"]


@pytest.mark.parametrize("response", ["ok", "cut after", "500 after", "late 3", "cut late 3"])
def test_a_rename_is_verified_under_the_new_title(response: str) -> None:
    stage = Stage()
    target = rename_target(stage.world)
    stage.world.responses["/rename"] = [response]
    if response.startswith(
        "late"
    ):  # the next request comes too early for its new address, and is swallowed
        target = structs.replace(target, changes=target.changes[:1], requests=target.requests[:1])
    assert stage.run(target).ok
    assert set(stage.world.assets) == {"Film"}


def test_a_lost_rename_that_was_not_done_is_unverified() -> None:
    stage = Stage()
    target = rename_target(stage.world)
    stage.world.responses["/rename"] = ["cut before"]
    assert one(stage.run(target)) == ("unverified", ["unverified", "not sent"])


def test_another_clip_with_the_new_title_is_not_taken_for_ours() -> None:
    stage = Stage()
    target = rename_target(stage.world)
    stage.world.assets["Film"] = Asset("Film", link_id=8, attributes={"comment": "new"})
    stage.world.responses["/rename"] = ["cut before"]
    assert one(stage.run(target)) == ("unverified", ["unverified", "not sent"])


def test_memories_move_with_a_renamed_asset() -> None:
    stage = Stage()
    target = rename_target(stage.world)
    stage.memory.remember(
        target.id, {"field:layer": "3", "field:comment": "older", "marker:Cue@1": 4}
    )
    assert stage.run(target).ok
    (now,) = stage.memory.items
    assert now.name == target.title_after != target.name
    kept = stage.memory.recall(now)
    assert (kept["field:layer"], kept["marker:Cue@1"]) == ("3", 4)
    assert "field:comment" not in kept  # the server reports it


def test_memories_move_with_a_rename_that_is_never_read_again() -> None:
    stage = Stage()
    target = rename_target(stage.world)
    stage.memory.remember(target.id, {"field:layer": "3"})
    stage.world.state = lambda world: "down" if world.done else "up"
    (result,) = stage.run(target).targets
    assert [request.outcome for request in result.requests] == ["done", "not sent"]
    assert [kept.name for kept in stage.memory.items] == [target.title_after]


@pytest.mark.parametrize(
    ("response", "outcome"),
    [("ok", "changed"), ("cut after", "changed"), ("cut before", "unverified"), ("404", "failed")],
)
def test_a_deleted_asset_is_verified_as_missing(response: str, outcome: str) -> None:
    stage = Stage()
    target = delete_target(stage.world)
    stage.memory.remember(target.id, {"field:layer": "3"})
    stage.world.responses["/delete"] = [response]
    assert one(stage.run(target))[0] == outcome
    assert stage.memory.recall(target.id) == ({} if outcome == "changed" else {"field:layer": "3"})


def test_gone_with_its_whole_database_is_not_gone() -> None:
    stage = Stage()
    target = delete_target(stage.world)
    stage.world.databases.clear()
    (result,) = stage.run(target).targets
    assert result.outcome == "unverified"
    assert "database NEWS not found" in result.message


def test_a_channel_is_verified_by_its_items() -> None:
    stage = Stage()
    stage.world.channels["ticker"] = RssChannel("ticker", (RssItem("n-0"),))
    stage.world.effects["/rss/ticker?guid=n-0"] = lambda world: world.channels.update(
        ticker=RssChannel("ticker")
    )
    request = Request(
        "DELETE", "/rss/ticker?guid=n-0", (), effects=(Effect("rss_item", "n-0", before={}),)
    )
    target = Target(
        "studio-a", "", "rss_channel", "ticker", requests=(request,), address=Address("ticker")
    )
    stage.world.responses[request.path] = ["cut after"]
    assert stage.run(target).ok
    stage.world.channels["ticker"] = RssChannel("ticker", (RssItem("n-0"),))
    stage.world.responses[request.path] = ["swallowed"]
    assert one(stage.run(target))[0] == "failed"


def test_xmp_is_read_again_only_if_it_changed() -> None:
    stage = Stage()
    stage.world.assets["Film"] = Asset("Film", link_id=7)
    stage.world.xmp["Film"] = {"dc:title": ("x",)}
    stage.world.effects["/xmp"] = lambda world: world.xmp["Film"].update({"dc:subject": ("a", "b")})
    change = Change("change", "xmp", "dc:subject", [], ["a", "b"], "live", True, SOURCE)
    request = Request("POST", "/xmp", (0,), effects=(Effect("xmp", "dc:subject", [], ["a", "b"]),))
    target = asset_target(
        "Film", (change,), (request,), others=Seen.of({"xmp dc:title": digest(["x"])})
    )
    assert stage.run(target).ok
    assert stage.world.reads == ["asset Film", "xmp Film"]


# What the server does not report ---------------------------------------------------------------------------------


def test_a_value_not_reported_is_remembered_after_verification() -> None:
    stage = Stage()
    target = fields_target(stage.world, count=2, reported=False)
    assert stage.run(target).ok
    assert stage.memory.recall(target.id) == {"field:user_0": "new", "field:user_1": "new"}


def test_what_may_have_been_written_is_no_longer_remembered() -> None:
    stage = Stage()
    target = fields_target(stage.world, count=2, reported=False)
    stage.memory.remember(
        target.id, {"field:user_0": "old", "field:user_1": "old", "field:layer": "3"}
    )
    stage.world.responses[target.requests[1].path] = ["cut before"]
    assert one(stage.run(target)) == ("unverified", ["done", "unverified"])
    assert stage.memory.recall(target.id) == {"field:user_0": "new", "field:layer": "3"}


def test_memories_are_forgotten_before_the_first_request_is_sent() -> None:
    stage = Stage()
    target = fields_target(stage.world, count=1, reported=False)
    stage.memory.remember(target.id, {"field:user_0": "old"})
    seen = []
    stage.world.on_send = lambda path: seen.append(stage.memory.recall(target.id))
    stage.run(target)
    assert seen == [{}]


@table("applying/command_once", "response", "kept")
def test_a_command_that_runs_once(response: str, kept: dict[str, object]) -> None:
    stage = Stage()
    target = command_target(stage.world)
    stage.world.responses[target.requests[0].path] = [response]
    outcome = {"ok": "changed", "404": "failed"}.get(response, "unverified")
    assert one(stage.run(target))[0] == outcome
    assert stage.memory.recall(target.id) == kept
    assert stage.world.sent == [target.requests[0].path]


def test_a_command_that_ran_once_is_remembered_though_the_rest_fails() -> None:
    stage = Stage()
    command = command_target(stage.world)
    fields = fields_target(stage.world, count=1)
    target = structs.replace(command, requests=command.requests + fields.requests)
    stage.world.responses[fields.requests[0].path] = ["swallowed"]
    assert one(stage.run(target))[0] == "failed"
    assert stage.memory.recall(target.id) == {"command:COPY": True}


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
    assert result.differences == (Difference("restore", "hires", desired=True, live=False),)
    assert stage.world.clock.seconds == pytest.approx(300, abs=20)


def test_a_restore_occupies_no_slot() -> None:
    stage = Stage()
    waiting = restore_target(stage.world, "Archived")
    others = [fields_target(stage.world, f"Film {number}", 1) for number in range(5)]
    result = stage.run(waiting, *others, forks=1)
    assert result.ok
    finished = [
        event.result.target.name for event in stage.events.told if isinstance(event, TargetFinished)
    ]
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


def test_an_internal_error_is_the_result_of_one_target(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    targets = [fields_target(stage.world, name, 1) for name in ("Film", "Other")]

    def fail(target: Target, *given: Any, **more: Any) -> Verification:
        if target.name == "Film":
            raise KeyError("oh")
        return verify(target, *given, **more)

    monkeypatch.setattr("msauto.applying.verification.verify", fail)
    result = stage.run(*targets)
    assert [outcome for outcome, _ in told(result)] == ["unverified", "changed"]
    assert result.targets[0].message == "KeyError: 'oh'"


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
    sending = []
    for kind, *about in stage.journal.lines:
        if kind == "sending":
            sending.append(about[0])
    assert stage.world.sent == sending  # nothing was sent that is not in the ledger
    assert len(stage.world.sent) == min(at - 1, 3) + max(0, at - 6)
    assert not result.ok
    messages = [target.message for target in result.targets]
    assert len(messages) == 3
    assert "disk is full" in " ".join(messages)


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
    assert told(result) == [
        ("failed", ["done", "done", "not sent"]),
        *[("not attempted", ["not sent"] * 3)] * 3,
    ]
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
    assert (result.outcome, result.message) == (
        "unverified",
        "stopped while waiting for the restored file",
    )


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
    assert told(result)[0] == ("failed", ["done", "failed"])
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
    assert one(stage.run(fields_target(stage.world), cancellation=stop)) == (
        "not attempted",
        ["not sent"] * 3,
    )
    assert stage.world.sent == []


# A freeze that begins on the way: what is begun is finished, what is not begun is not attempted


def test_no_target_begins_once_it_is_frozen() -> None:
    stage = Stage()
    targets = [fields_target(stage.world, f"Film {number}", 2) for number in range(4)]
    asked: list[int] = []

    def frozen() -> str | None:
        asked.append(len(stage.world.sent))
        return "a freeze holds" if stage.world.sent else None

    result = stage.run(*targets, forks=1, frozen=frozen)
    assert [each.outcome for each in result.targets] == [
        "changed",
        "not attempted",
        "not attempted",
        "not attempted",
    ]
    assert {each.message for each in result.targets[1:]} == {"a freeze holds"}
    assert asked == [0, 2, 2, 2]
    assert not result.ok
    assert not result.interrupted
