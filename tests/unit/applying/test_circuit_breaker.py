"""A server that dies, or shuts us out, while a run goes on: asked a few times more, then left; others go on."""

import asyncio
from collections.abc import Callable, Sequence
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from msauto.applying.apply_context import ServerConnection
from msauto.circuit_breaker import BreakerState, contact_of
from msauto.errors import (
    InDoubtError,
    NotSentError,
    RejectedError,
    UnreachableError,
    UnreadableError,
)
from msauto.model.desired import Batch
from msauto.model.plan import Plan, Request, Target
from msauto.model.result import RequestResult, Result
from tests.tables import table
from tests.unit.applying.applying_world import (
    Stage,
    World,
    WorldReader,
    WorldSender,
    apply,
    command_target,
    fields_target,
)

COUNT = 200


def many(stage: Stage, count: int = COUNT) -> list[Target]:
    return [fields_target(stage.world, f"Film {number}", 1) for number in range(count)]


def outcomes(result: Result) -> dict[str, int]:
    found: dict[str, int] = {}
    for target in result.targets:
        found[target.outcome] = found.get(target.outcome, 0) + 1
    return found


def dead_after(asks: int, state: str = "down") -> Callable[[World], str]:
    return lambda world: state if world.asked > asks else "up"


@pytest.mark.parametrize("forks", [1, 8])
def test_a_dead_server_is_given_up_after_a_few_targets(forks: int) -> None:
    stage = Stage()
    stage.world.state = dead_after(40)
    result = stage.run(*many(stage), forks=forks)
    found = outcomes(result)
    assert found["changed"] == {1: 20, 8: found["changed"]}[forks]
    assert found["not attempted"] >= COUNT - 20 - 8 - 2
    assert found["failed"] + found.get("unverified", 0) <= forks + 2
    assert stage.world.asked <= 40 + forks * 6 + 2 * 2
    assert not result.ok


def test_targets_not_attempted_name_the_server_and_the_remedy() -> None:
    stage = Stage()
    stage.world.state = dead_after(0)
    result = stage.run(*many(stage), forks=8)
    last = result.targets[-1]
    assert last.outcome == "not attempted"
    assert [request.outcome for request in last.requests] == ["not sent"]
    assert last.message == (
        "the server studio-a can no longer be reached (no connection: Connection refused); once it can, apply again"
    )
    assert "Film 199" not in stage.journal.outcomes  # never begun


def test_a_silent_server_is_given_up_too() -> None:
    stage = Stage()
    stage.world.state = dead_after(0, "mute")
    result = stage.run(*many(stage), forks=4)
    assert outcomes(result) == {"unverified": 4 + 2, "not attempted": COUNT - 6}
    assert stage.world.asked <= 4 * (1 + 5) + 2 * (1 + 1)


def test_a_silent_server_is_given_up_where_reading_shows_nothing_of_what_is_sent() -> None:
    stage = Stage()
    stage.world.state = dead_after(0, "mute")
    result = stage.run(
        *(command_target(stage.world, f"Film {number}") for number in range(COUNT)), forks=4
    )
    assert outcomes(result) == {"unverified": 4 + 2, "not attempted": COUNT - 6}


def test_lost_answers_of_single_commands_do_not_open_the_breaker() -> None:
    stage = Stage()
    targets = [command_target(stage.world, f"Film {number}") for number in range(20)]
    for target in targets:
        stage.world.responses[target.requests[0].path] = ["cut before"]
    assert outcomes(stage.run(*targets)) == {"unverified": 20}


@pytest.mark.parametrize("status", ["401", "407"])
def test_a_server_that_rejects_the_credentials_is_not_asked_again(status: str) -> None:
    stage = Stage()
    stage.world.state = dead_after(10, status)
    result = stage.run(*many(stage), forks=4)
    assert stage.world.asked <= 10 + 4
    last = result.targets[-1]
    assert last.outcome == "not attempted"
    assert last.message == (
        f"the server studio-a rejects our account (the server says {status}); check its `auth` and rights, "
        "then apply again"
    )


@pytest.mark.parametrize("seconds", [1, 2, 8, 14])
@pytest.mark.parametrize("forks", [1, 8])
def test_a_server_that_comes_back_shortly_gets_the_rest(seconds: int, forks: int) -> None:
    stage = Stage()
    stage.world.state = lambda world: (
        "down" if world.asked > 20 and world.clock.seconds < seconds else "up"
    )
    found = outcomes(stage.run(*many(stage), forks=forks))
    assert found.get("not attempted", 0) == 0
    assert found["changed"] >= COUNT - forks - 2


@pytest.mark.parametrize("response", ["refused", "cut before", "swallowed"])
def test_no_other_failure_stops_the_others(response: str) -> None:
    stage = Stage()
    targets = many(stage, 12)
    for target in targets[:11]:
        stage.world.responses[target.requests[0].path] = [response] * 9
    result = stage.run(*targets, forks=2)
    assert "not attempted" not in outcomes(result)
    assert result.targets[-1].outcome == "changed"


# Rejected writes -------------------------------------------------------------------------------------------------


def reject(stage: Stage, targets: Sequence[Target], *responses: str) -> None:
    """Let the server answer the first request of each target with a rejection, however often it is sent."""
    for target, response in zip(targets, responses, strict=False):
        stage.world.responses[target.requests[0].path] = [response] * 9


@pytest.mark.parametrize("forks", [1, 4])
def test_an_account_that_may_not_write_sends_no_more_writes(forks: int) -> None:
    stage = Stage()
    targets = many(stage, 60)
    reject(stage, targets, *["403"] * 60)
    result = stage.run(*targets, command_target(stage.world, "Other"), forks=forks)
    assert len(stage.world.sent) <= forks
    assert outcomes(result) == {
        "failed": len(stage.world.sent),
        "not attempted": 61 - len(stage.world.sent),
    }
    assert result.targets[-1].message == (
        "the server studio-a rejects our account (the server says 403); check its `auth` and rights, then apply again"
    )
    assert (
        "but the target cannot be read" not in result.targets[0].message
    )  # reading is still allowed


def test_a_download_that_is_forbidden_stops_no_writes() -> None:
    assert contact_of(RejectedError("x", status=403), "download") == "answered"
    assert contact_of(RejectedError("x", status=403), "read") == "answered"


@pytest.mark.parametrize("forks", [1, 4])
@pytest.mark.parametrize("status", ["400", "404", "429", "500", "502", "503"])
def test_three_equal_rejections_in_a_row_stop_this_kind_of_request(status: str, forks: int) -> None:
    stage = Stage()
    targets = many(stage, 60)
    reject(stage, targets, *[status] * 60)
    commands = [command_target(stage.world, f"Other {number}") for number in range(5)]
    result = stage.run(*targets, *commands, forks=forks)
    rejected = [each for each in result.targets[:60] if each.outcome != "not attempted"]
    assert len(rejected) <= 3 + forks - 1
    assert {each.outcome for each in result.targets[60:]} == {"changed"}
    assert result.targets[59].message == (
        f"the server studio-a rejected POST field for 3 targets in a row ({rejected[0].requests[0].message}); "
        "check the rights of the account, and `dialect`, then apply again"
    )


@table("applying/rejections_that_stop_nothing", "responses")
def test_different_rejections_and_those_with_a_success_between_stop_nothing(
    responses: list[str],
) -> None:
    stage = Stage()
    targets = many(stage, 12)
    reject(stage, targets, *responses)
    result = stage.run(*targets, forks=1)
    assert "not attempted" not in outcomes(result)


def test_a_rejection_that_names_its_target_equals_that_of_another() -> None:
    def after(message: str) -> BreakerState:
        breaker = BreakerState()
        for name in ("EP 1", "A", "EP 2"):
            text = message.format(name, quote(name))
            breaker = breaker.settled(
                Request("POST", "/x?command=SETFIELD"), RequestResult("failed", 200, text), name
            )
        return breaker

    for message in (
        "Error: '{0}' is locked",
        "Error: cannot change /NEWS@{1}",
        "Error: A clip is locked",
    ):
        assert after(message).rejections["SETFIELD"].targets == 3, message


def test_a_target_is_not_begun_if_it_needs_a_kind_of_request_that_is_rejected() -> None:
    stage = Stage()
    targets = many(stage, 3)
    reject(stage, targets, *["400"] * 3)
    first = command_target(stage.world, "Other")
    both = structs.replace(first, requests=(*first.requests, targets[0].requests[0]))
    result = stage.run(*targets, both, forks=1)
    assert result.targets[-1].outcome == "not attempted"
    assert len(stage.world.sent) == 3


def test_another_server_goes_on() -> None:
    stage = Stage()
    there = World(clock=stage.world.clock)
    here = many(stage, 50)
    others = [
        structs.replace(fields_target(there, f"Film {number}", 1), server="studio-b")
        for number in range(50)
    ]
    stage.world.state = dead_after(0)
    mixed = [target for both in zip(here, others, strict=True) for target in both]
    result = run_two(stage, there, Plan("", "", targets=tuple(mixed)), forks=4)
    by_server = {
        name: {t.outcome for t in result.targets if t.target.server == name}
        for name in ("studio-b",)
    }
    assert by_server == {"studio-b": {"changed"}}


def run_two(stage: Stage, there: World, plan: Plan, forks: int) -> Result:
    other = ServerConnection(WorldReader(there), WorldSender(there), asyncio.Semaphore(4))
    servers = {"studio-a": stage.server(), "studio-b": other}

    async def main() -> Result:
        clock = stage.world.clock
        return await apply(
            plan, servers, stage.journal, stage.memory, clock, stage.events, forks=forks
        )

    return asyncio.run(main())


def test_a_server_that_was_given_up_counts_as_failed_in_every_batch() -> None:
    stage, there = Stage(), World()
    stage.world.state = dead_after(0)
    both = ("studio-a", "studio-b")
    first = many(stage, 20)
    second = [
        structs.replace(fields_target(stage.world, f"Late {number}", 1), batch=1)
        for number in range(2)
    ]
    other = [
        structs.replace(fields_target(there, f"There {number}", 1), server="studio-b", batch=1)
        for number in range(9)
    ]
    batches = (
        Batch("one", ("studio-a", "studio-b"), max_fail=50.0),
        Batch("two", both, max_fail=0.0),
    )
    plan = Plan("", "", targets=(*first, *second, *other), batches=batches)
    result = run_two(stage, there, plan, forks=1)
    late = {target.target.name: target for target in result.targets}
    assert "no longer be reached" in late["Late 0"].message
    assert late["There 8"].outcome == "not attempted"
    assert "1 of 2 servers failed (studio-a)" in late["There 8"].message


@given(st.lists(st.tuples(st.sampled_from(["answer", "miss"]), st.integers(0, 12)), max_size=12))
def test_only_consecutive_failures_open_the_breaker(events: list[tuple[str, int]]) -> None:
    """Each target that misses was begun at any time before: ``back`` events ago."""
    breaker = BreakerState()
    past = [breaker]
    answered_at = 0
    for kind, back in events:
        begun_at = max(0, len(past) - 1 - back)
        before, begun = breaker, past[begun_at]
        breaker = breaker.answered() if kind == "answer" else breaker.failed(begun, "gone")
        if kind == "answer":
            assert not breaker.half_open
            assert not breaker.open
            answered_at = len(past)
        else:
            missed = begun.failures if begun_at >= answered_at else 0
            assert breaker.failures == max(before.failures, missed + 1)
            assert breaker.half_open or breaker.open
        past.append(breaker)
    assert breaker.open == (breaker.failures >= 3)


def test_targets_from_before_an_answer_count_as_one_with_those_after_it() -> None:
    """A scout of the first doubt goes on, others begin beside it, and the server goes again: that is one miss."""
    doubt = BreakerState().failed(BreakerState(), "gone")
    answered = doubt.answered()
    again = answered.failed(answered, "gone").failed(doubt, "gone")
    assert again.failures == 1
    assert again.failures_since_closed(doubt) == 0, "it has all its tries, as those beside it"


def test_what_an_error_shows_about_the_server() -> None:
    refused = UnreachableError("x")
    assert contact_of(refused, "read") == contact_of(refused, "write") == "unreachable"
    assert contact_of(InDoubtError("x"), "read") == "silent"
    assert contact_of(InDoubtError("x"), "write") is None
    assert contact_of(RejectedError("x", status=504), "read") == "silent"
    assert contact_of(RejectedError("x", status=503), "read") == "busy"
    assert contact_of(RejectedError("x", status=401), "write") == "unauthorized"
    assert contact_of(UnreadableError("x"), "read") == "answered"
    assert contact_of(NotSentError("the request line is too long"), "write") is None
    assert contact_of(ZeroDivisionError(), "read") is None


@pytest.mark.parametrize(
    ("error", "reads"),
    [
        (UnreachableError("x"), 1),
        (RejectedError("x", status=401), 1),
        (InDoubtError("x"), 3),
        (RejectedError("x", status=502), 3),
        (RejectedError("x", status=503), 3),
        (RejectedError("x", status=429), 3),
    ],
)
def test_reads_of_planning_that_open_the_breaker(error: Exception, reads: int) -> None:
    breaker = BreakerState()
    for _ in range(reads):
        assert not breaker.open
        breaker = breaker.after_read(error)
    assert breaker.open


@pytest.mark.parametrize(
    "error", [RejectedError("x", status=500), UnreadableError("x"), NotSentError("too long")]
)
def test_any_other_failure_of_a_read_closes_the_breaker(error: Exception) -> None:
    breaker = BreakerState()
    for _ in range(2):
        breaker = breaker.after_read(InDoubtError("x"))
    assert not breaker.after_read(error).failures
