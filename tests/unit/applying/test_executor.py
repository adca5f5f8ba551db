"""Applying against a small server with scripted answers: what is sent, what is reported, what is kept."""

import pytest
from msgspec import structs

from msauto.model.events import (
    RequestSending,
    RequestSettled,
    RunEnded,
    RunStarted,
    TargetFinished,
    TargetStarted,
)
from msauto.model.live import Asset, RssChannel, RssItem
from msauto.model.plan import Address, Change, Expectation, Request, Target
from msauto.model.result import Difference, Result
from tests.unit.applying.applying_world import (
    SOURCE,
    Stage,
    asset_target,
    command_target,
    delete_target,
    fields_target,
    marker_target,
    rename_target,
)


def told(result: Result) -> list[tuple[str, list[str]]]:
    return [(target.outcome, [request.outcome for request in target.requests]) for target in result.targets]


LOST = {"command:COPY": {"unverified": "run-1"}}
"""What is remembered of a command that was sent, and whose answer was lost."""


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


# One response of the second of three requests: what comes of the target, of its requests, and how often it was sent.
RESPONSES = [
    ("ok", "changed", "done", 1),
    ("refused", "changed", "done", 1),
    ("refused refused refused", "failed", "failed", 0),
    ("cut|before", "unverified", "unverified", 1),
    ("cut|after", "changed", "done", 1),
    ("400", "failed", "failed", 1),
    ("400|after", "changed", "done", 1),
    ("404", "failed", "failed", 1),
    ("500", "failed", "failed", 1),
    ("500|after", "changed", "done", 1),
    ("502", "unverified", "unverified", 1),
    ("504|after", "changed", "done", 1),
    ("503", "changed", "done", 2),
    ("503|after", "changed", "done", 1),
    ("503 503 503", "failed", "failed", 3),
    ("429 refused", "changed", "done", 2),
    ("swallowed", "failed", "done", 1),
    ("late|3", "changed", "done", 1),
    ("cut|late|3", "changed", "done", 1),
    ("cut|late|30", "unverified", "unverified", 1),
    ("crash", "unverified", "unverified", 1),
]


@pytest.mark.parametrize(("responses", "outcome", "request_outcome", "sends"), RESPONSES)
def test_an_outcome(responses: str, outcome: str, request_outcome: str, sends: int) -> None:
    stage = Stage()
    target = fields_target(stage.world)
    other = fields_target(stage.world, "Other")
    path = target.requests[1].path
    stage.world.responses[path] = [response.replace("|", " ") for response in responses.split()]
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
    assert (result.outcome, result.differences) == ("failed", (Difference("field", "user_0", "new", None),))


@pytest.mark.parametrize(
    ("response", "outcome", "markers"), [("cut before", "unverified", 1), ("cut after", "changed", 2)]
)
def test_a_new_marker_is_distinguished_from_its_old_twin(response: str, outcome: str, markers: int) -> None:
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
    if response.startswith("late"):  # the next request comes too early for its new address, and is swallowed
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
    old = structs.replace(target.id, name="Raw")
    stage.memory.remember(old, {"field:layer": "3", "field:comment": "older", "marker:Cue@1": 4})
    assert stage.run(target).ok
    kept = stage.memory.recall(target.id)
    assert stage.memory.recall(old) == {}
    assert (kept["field:layer"], kept["marker:Cue@1"]) == ("3", 4)
    assert "field:comment" not in kept  # the server reports it


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
    stage.world.effects["/rss/ticker?guid=n-0"] = lambda world: world.channels.update(ticker=RssChannel("ticker"))
    request = Request("DELETE", "/rss/ticker?guid=n-0", (), expect=(Expectation("rss_item", "n-0", None),))
    target = Target("studio-a", "", "rss_channel", "ticker", requests=(request,), address=Address("ticker"))
    stage.world.responses[request.path] = ["cut after"]
    assert stage.run(target).ok
    stage.world.channels["ticker"] = RssChannel("ticker", (RssItem("n-0"),))
    stage.world.responses[request.path] = ["swallowed"]
    assert one(stage.run(target))[0] == "failed"


def test_xmp_is_read_again_only_if_it_changed() -> None:
    stage = Stage()
    stage.world.assets["Film"] = Asset("Film", link_id=7)
    stage.world.effects["/xmp"] = lambda world: world.xmp.update(Film={"dc:subject": ("a", "b")})
    change = Change("change", "xmp", "dc:subject", [], ["a", "b"], "live", True, SOURCE)
    request = Request("POST", "/xmp", (0,), expect=(Expectation("xmp", "dc:subject", ["a", "b"]),))
    target = asset_target("Film", (change,), (request,), looked=("xmp:dc:subject", "xmp:dc:title"))
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
    stage.memory.remember(target.id, {"field:user_0": "old", "field:user_1": "old", "field:layer": "3"})
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


@pytest.mark.parametrize(
    ("response", "kept"),
    [
        ("ok", {"command:COPY": True}),
        ("cut after", LOST),
        ("500", {"command:COPY": {"unverified": "run-1", "status": 500}}),
        ("404", {}),
    ],
)
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
