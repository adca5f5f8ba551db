"""Applying against a small server whose every answer is scripted: what is sent, what is told, what is kept."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

import pytest

from msauto.applying.executor import Stop, apply
from msauto.applying.turns import Patience
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
from msauto.model.plan import Address, Change, Expect, Plan, Request, Target
from msauto.model.result import Difference, Result
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
    plan_of,
    rename_target,
    restore_target,
)


def told(result: Result) -> list[tuple[str, list[str]]]:
    return [(target.outcome, [request.outcome for request in target.requests]) for target in result.targets]


LOST = {"command:COPY": {"unproved": "run-1"}}
"""What is remembered of a command that was sent, and whose answer was lost."""


def one(result: Result) -> tuple[str, list[str]]:
    return told(result)[0]


def test_all_goes_well() -> None:
    stage = Stage()
    target = fields_target(stage.world)
    result = stage.run(target)
    assert result.ok
    assert not result.interrupted
    assert one(result) == ("changed", ["done"] * 3)
    assert stage.world.sent == ["/Film?set=user_0", "/Film?set=user_1", "/Film?set=user_2"]
    assert stage.world.reads == ["asset Film"]  # the proof is one read
    lines = [" ".join(line) for line in stage.journal.lines]
    assert lines[:4] == ["start", "planned Film", "sending /Film?set=user_0", "settled /Film?set=user_0 done"]
    assert lines[-2:] == ["finished Film changed", "end"]
    kinds = [type(event) for event in stage.events.told]
    assert kinds == [RunStarted, TargetStarted, *[RequestSending, RequestSettled] * 3, TargetFinished, RunEnded]


def test_each_request_is_journalled_before_it_is_sent() -> None:
    stage = Stage()
    target = fields_target(stage.world)
    stage.world.on_send = lambda path: stage.journal.lines.index(("sending", path))  # raises if it is not there
    assert stage.run(target).ok


def test_two_records_share_a_commit() -> None:
    """What came of a request becomes durable with the next one's "sending": a commit for each request, and one more."""
    stage = Stage()
    stage.run(fields_target(stage.world, count=10))
    assert stage.journal.transactions <= 12
    stage = Stage()
    stage.run(*(fields_target(stage.world, f"Film {number}", 2) for number in range(8)), forks=8)
    assert stage.journal.transactions <= 6


# One fate of the second of three requests: what comes of the target, of its requests, and how often it was sent.
FATES = [
    ("ok", "changed", "done", 1),
    ("refused", "changed", "done", 1),
    ("refused refused refused", "failed", "failed", 0),
    ("cut|before", "unproved", "unproved", 1),
    ("cut|after", "changed", "done", 1),
    ("400", "failed", "failed", 1),
    ("400|after", "changed", "done", 1),
    ("404", "failed", "failed", 1),
    ("500", "failed", "failed", 1),
    ("500|after", "changed", "done", 1),
    ("502", "unproved", "unproved", 1),
    ("504|after", "changed", "done", 1),
    ("503", "changed", "done", 2),
    ("503|after", "changed", "done", 1),
    ("503 503 503", "failed", "failed", 3),
    ("429 refused", "changed", "done", 2),
    ("swallowed", "failed", "done", 1),
    ("late|3", "changed", "done", 1),
    ("cut|late|3", "changed", "done", 1),
    ("cut|late|30", "unproved", "unproved", 1),
    ("crash", "unproved", "unproved", 1),
]


@pytest.mark.parametrize(("fates", "outcome", "request_outcome", "sends"), FATES)
def test_a_fate(fates: str, outcome: str, request_outcome: str, sends: int) -> None:
    stage = Stage()
    target = fields_target(stage.world)
    other = fields_target(stage.world, "Other")
    path = target.requests[1].path
    stage.world.fates[path] = [fate.replace("|", " ") for fate in fates.split()]
    result = stage.run(target, other)
    last = "done" if request_outcome == "done" else "not sent"
    assert told(result) == [(outcome, ["done", request_outcome, last]), ("changed", ["done"] * 3)]
    assert stage.world.sent.count(path) == sends
    assert stage.world.done.count(path) <= 1
    assert stage.journal.outcomes["Film"] == outcome
    assert stage.journal.states["Film", 1] == request_outcome
    assert bool(result.targets[0].message) == (outcome != "changed")


def test_a_swallowed_write_is_told_field_by_field() -> None:
    stage = Stage()
    target = fields_target(stage.world)
    stage.world.fates = {"/Film?set=user_0": ["swallowed"], "/Film?set=user_2": ["swallowed"]}
    (result,) = stage.run(target).targets
    assert result.differences == (
        Difference("field", "user_0", "new", "old"),
        Difference("field", "user_2", "new", "old"),
    )
    assert result.message == "not as wanted when read again"


def test_a_target_that_cannot_be_read_again_is_unproved() -> None:
    stage = Stage()
    target = fields_target(stage.world)
    stage.world.unreadable = 99
    (result,) = stage.run(target).targets
    assert result.outcome == "unproved"
    assert result.message == "it is sent, but the target cannot be read again: the answer is garbage"
    stage = Stage()
    stage.world.unreadable = 2
    assert stage.run(fields_target(stage.world)).ok


def test_an_asset_that_vanishes_is_told() -> None:
    stage = Stage()
    target = fields_target(stage.world, count=1)
    stage.world.effects[target.requests[0].path] = lambda world: world.assets.clear()
    (result,) = stage.run(target).targets
    assert (result.outcome, result.differences) == ("failed", (Difference("field", "user_0", "new", None),))


@pytest.mark.parametrize(("fate", "outcome", "markers"), [("cut before", "unproved", 1), ("cut after", "changed", 2)])
def test_a_new_marker_is_told_from_its_old_twin(fate: str, outcome: str, markers: int) -> None:
    stage = Stage()
    target = marker_target(stage.world)
    stage.world.fates["/marker"] = [fate]
    assert one(stage.run(target))[0] == outcome
    assert len(stage.world.assets["Film"].markers) == markers
    assert stage.world.sent == ["/marker"]


@pytest.mark.parametrize("fate", ["ok", "cut after", "500 after", "late 3", "cut late 3"])
def test_a_rename_is_proved_under_the_new_title(fate: str) -> None:
    stage = Stage()
    target = rename_target(stage.world)
    stage.world.fates["/rename"] = [fate]
    if fate.startswith("late"):  # the next request comes too early for its new address, and is swallowed
        target = replace(target, changes=target.changes[:1], requests=target.requests[:1])
    assert stage.run(target).ok
    assert set(stage.world.assets) == {"Film"}


def test_a_lost_rename_that_was_not_done_is_unproved() -> None:
    stage = Stage()
    target = rename_target(stage.world)
    stage.world.fates["/rename"] = ["cut before"]
    assert one(stage.run(target)) == ("unproved", ["unproved", "not sent"])


def test_another_clip_with_the_new_title_is_not_taken_for_ours() -> None:
    stage = Stage()
    target = rename_target(stage.world)
    stage.world.assets["Film"] = Asset("Film", link_id=8, attributes={"comment": "new"})
    stage.world.fates["/rename"] = ["cut before"]
    assert one(stage.run(target)) == ("unproved", ["unproved", "not sent"])


def test_memories_move_with_a_renamed_asset() -> None:
    stage = Stage()
    target = rename_target(stage.world)
    old = replace(target.id, name="Raw")
    stage.memory.remember(old, {"field:layer": "3", "field:comment": "older", "marker:Cue@1": 4})
    assert stage.run(target).ok
    kept = stage.memory.recall(target.id)
    assert stage.memory.recall(old) == {}
    assert (kept["field:layer"], kept["marker:Cue@1"]) == ("3", 4)
    assert "field:comment" not in kept  # the server reports it


@pytest.mark.parametrize(
    ("fate", "outcome"), [("ok", "changed"), ("cut after", "changed"), ("cut before", "unproved"), ("404", "failed")]
)
def test_a_deleted_asset_is_proved_gone(fate: str, outcome: str) -> None:
    stage = Stage()
    target = delete_target(stage.world)
    stage.memory.remember(target.id, {"field:layer": "3"})
    stage.world.fates["/delete"] = [fate]
    assert one(stage.run(target))[0] == outcome
    assert stage.memory.recall(target.id) == ({} if outcome == "changed" else {"field:layer": "3"})


def test_gone_with_its_whole_database_is_not_gone() -> None:
    stage = Stage()
    target = delete_target(stage.world)
    stage.world.databases.clear()
    (result,) = stage.run(target).targets
    assert result.outcome == "unproved"
    assert "the database NEWS is not there" in result.message


def test_a_channel_is_proved_by_its_items() -> None:
    stage = Stage()
    stage.world.channels["ticker"] = RssChannel("ticker", (RssItem("n-0"),))
    stage.world.effects["/rss/ticker?guid=n-0"] = lambda world: world.channels.update(ticker=RssChannel("ticker"))
    request = Request("DELETE", "/rss/ticker?guid=n-0", (), expect=(Expect("rss_item", "n-0", None),))
    target = Target("studio-a", "", "rss_channel", "ticker", requests=(request,), address=Address("ticker"))
    stage.world.fates[request.path] = ["cut after"]
    assert stage.run(target).ok
    stage.world.channels["ticker"] = RssChannel("ticker", (RssItem("n-0"),))
    stage.world.fates[request.path] = ["swallowed"]
    assert one(stage.run(target))[0] == "failed"


def test_xmp_is_read_again_where_it_changed_and_nowhere_else() -> None:
    stage = Stage()
    stage.world.assets["Film"] = Asset("Film", link_id=7)
    stage.world.effects["/xmp"] = lambda world: world.xmp.update(Film={"dc:subject": ("a", "b")})
    change = Change("change", "xmp", "dc:subject", [], ["a", "b"], "live", True, SOURCE)
    request = Request("POST", "/xmp", (0,), expect=(Expect("xmp", "dc:subject", ["a", "b"]),))
    target = asset_target("Film", (change,), (request,), looked=("xmp:dc:subject", "xmp:dc:title"))
    assert stage.run(target).ok
    assert stage.world.reads == ["asset Film", "xmp Film"]


# What the server does not report ---------------------------------------------------------------------------------


def test_what_is_not_reported_is_remembered_after_the_proof() -> None:
    stage = Stage()
    target = fields_target(stage.world, count=2, reported=False)
    assert stage.run(target).ok
    assert stage.memory.recall(target.id) == {"field:user_0": "new", "field:user_1": "new"}


def test_what_may_have_been_written_is_no_longer_remembered() -> None:
    stage = Stage()
    target = fields_target(stage.world, count=2, reported=False)
    stage.memory.remember(target.id, {"field:user_0": "old", "field:user_1": "old", "field:layer": "3"})
    stage.world.fates[target.requests[1].path] = ["cut before"]
    assert one(stage.run(target)) == ("unproved", ["done", "unproved"])
    assert stage.memory.recall(target.id) == {"field:user_0": "new", "field:layer": "3"}


def test_memories_are_dropped_before_the_first_request_leaves() -> None:
    stage = Stage()
    target = fields_target(stage.world, count=1, reported=False)
    stage.memory.remember(target.id, {"field:user_0": "old"})
    seen = []
    stage.world.on_send = lambda path: seen.append(stage.memory.recall(target.id))
    stage.run(target)
    assert seen == [{}]


@pytest.mark.parametrize(
    ("fate", "kept"), [("ok", {"command:COPY": True}), ("cut after", LOST), ("500", LOST), ("404", {})]
)
def test_a_command_that_runs_once(fate: str, kept: dict[str, object]) -> None:
    stage = Stage()
    target = command_target(stage.world)
    stage.world.fates[target.requests[0].path] = [fate]
    outcome = {"ok": "changed", "404": "failed"}.get(fate, "unproved")
    assert one(stage.run(target))[0] == outcome
    assert stage.memory.recall(target.id) == kept
    assert stage.world.sent == [target.requests[0].path]


def test_a_command_that_ran_once_is_remembered_though_the_rest_fails() -> None:
    stage = Stage()
    command = command_target(stage.world)
    fields = fields_target(stage.world, count=1)
    target = replace(command, requests=command.requests + fields.requests)
    stage.world.fates[fields.requests[0].path] = ["swallowed"]
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
    assert result.differences == (Difference("restore", "hires", wanted=True, live=""),)
    assert stage.world.clock.seconds == pytest.approx(300, abs=20)


def test_a_restore_holds_no_place() -> None:
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


def test_one_folder_is_read_a_few_times_for_many_proofs() -> None:
    stage = Stage()
    targets = [link_target(stage.world, f"Film {number}") for number in range(50)]
    assert stage.run(*targets, forks=50).ok
    assert stage.world.reads.count("folder Tonight") <= 5


def test_errors_of_a_shared_reading_reach_everybody() -> None:
    stage = Stage()
    targets = [link_target(stage.world, f"Film {number}") for number in range(5)]
    del stage.world.folders[("Tonight",)]
    for target in targets:
        stage.world.effects.pop(target.requests[0].path)
    assert {outcome for outcome, _ in told(stage.run(*targets))} == {"failed"}


def test_targets_that_cannot_be_applied_are_not_attempted() -> None:
    stage = Stage()
    good = fields_target(stage.world)
    wrong = replace(fields_target(stage.world, "Other"), error="unknown asset")
    elsewhere = replace(fields_target(stage.world, "Third"), server="studio-b")
    result = stage.run(wrong, good, elsewhere)
    assert [outcome for outcome, _ in told(result)] == ["not attempted", "changed", "not attempted"]
    assert result.targets[0].message == "unknown asset"
    assert "studio-b is not part of this run" in result.targets[2].message
    assert not result.ok


def test_nothing_to_do() -> None:
    stage = Stage()
    assert stage.run().targets == ()
    stage.world.assets["Film"] = Asset("Film")
    assert one(stage.run(asset_target("Film", (), ()))) == ("unchanged", [])
    assert stage.world.reads == []


def test_a_mistake_of_ours_is_one_targets_result(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    targets = [fields_target(stage.world, name, 1) for name in ("Film", "Other")]

    def fail(target: Target, live: object) -> dict[str, object]:
        if target.name == "Film":
            raise KeyError("oh")
        return {}

    monkeypatch.setattr("msauto.applying.life.memories", fail)
    result = stage.run(*targets)
    assert [outcome for outcome, _ in told(result)] == ["unproved", "changed"]
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
def test_a_ledger_that_fails_on_the_way_ends_the_run(at: int) -> None:
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


def test_the_first_stop_finishes_what_is_under_way() -> None:
    stage = Stage()
    stop = Stop()
    targets = [fields_target(stage.world, f"Film {number}") for number in range(4)]
    path = targets[0].requests[1].path
    stage.world.fates[path] = ["cut after"]
    stage.world.on_send = lambda sent: stop() if sent == path else None
    result = stage.run(*targets, forks=1, stop=stop)
    assert result.interrupted
    assert told(result) == [("failed", ["done", "done", "not sent"]), *[("not attempted", ["not sent"] * 3)] * 3]
    assert result.targets[0].message == "stopped: 2 of 3 requests were sent"
    assert result.targets[1].message == "stopped before its turn"
    assert stage.journal.ended == result


def test_a_stop_ends_a_wait_for_a_restore() -> None:
    stage = Stage()
    stop = Stop()
    target = restore_target(stage.world, takes=1000)

    class Impatient(Clock):
        async def sleep(self, seconds: float) -> None:
            stop()
            await asyncio.Event().wait()

    stage.world.clock = Impatient()
    (result,) = stage.run(target, stop=stop).targets
    assert (result.outcome, result.message) == ("unproved", "stopped while waiting for the restored file")


def test_the_second_stop_leaves_at_once() -> None:
    stage = Stage()
    stop = Stop()
    targets = [fields_target(stage.world, f"Film {number}") for number in range(3)]
    path = targets[0].requests[1].path
    stage.world.fates[path] = ["hang"]

    async def main() -> Result:
        def twice(sent: str) -> None:
            if sent == path:
                asyncio.get_running_loop().call_later(0.01, stop)
                asyncio.get_running_loop().call_later(0.02, stop)

        stage.world.on_send = twice
        return await stage.apply(*targets, forks=1, stop=stop)

    result = asyncio.run(main())
    assert result.interrupted
    assert told(result)[0] == ("unproved", ["done", "unproved", "not sent"])
    assert told(result)[1] == ("not attempted", ["not sent"] * 3)
    assert "stopped at once" in result.targets[0].message
    assert stage.journal.states["Film 0", 1] == "unproved"
    assert stage.journal.ended == result


def test_cancelling_leaves_the_journal_true(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    targets = [fields_target(stage.world, f"Film {number}", 2) for number in range(3)]
    for target in targets:
        stage.world.fates[target.requests[1].path] = ["hang"]

    async def main() -> None:
        task = asyncio.ensure_future(stage.apply(*targets))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    assert stage.journal.outcomes == {f"Film {number}": "unproved" for number in range(3)}
    assert stage.journal.ended is not None
    assert stage.journal.ended.interrupted
    assert caplog.records == []


def test_stopped_before_it_began() -> None:
    stage = Stage()
    stop = Stop()
    stop()
    assert one(stage.run(fields_target(stage.world), stop=stop)) == ("not attempted", ["not sent"] * 3)
    assert stage.world.sent == []


def test_patience_is_a_setting() -> None:
    stage = Stage()
    target = fields_target(stage.world, count=1)
    stage.world.fates[target.requests[0].path] = ["refused"] * 9

    async def main() -> Result:
        servers = {"studio-a": stage.server()}
        patience = Patience(tries=10, backoff=(1.0,))
        world = stage.world
        return await apply(
            plan_of(target), servers, stage.journal, stage.memory, world.clock, stage.events, forks=1, patience=patience
        )

    assert asyncio.run(main()).ok
    assert stage.world.clock.seconds == 9
