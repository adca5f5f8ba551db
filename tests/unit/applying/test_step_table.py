"""The state machine as a table: every state with every event, and every trouble with all that may be seen after it."""

from dataclasses import replace

import pytest

from msauto.applying.states import (
    Answered,
    AnswerLost,
    Event,
    ExpectationRead,
    Failed,
    Finish,
    Journalled,
    NotJournalled,
    NotSent,
    Pause,
    PauseEnded,
    ReadExpectation,
    Rejected,
    RetryPolicy,
    RunCancelled,
    Send,
    State,
    TargetProgress,
    Unreadable,
    Verified,
    Verify,
    WriteAhead,
)
from msauto.applying.transitions import InvalidTransitionError, abandon, begin, begin_again, conclude, step
from msauto.model.result import Difference, RequestResult
from msauto.verification.verifying import Verdict

PATIENCE = RetryPolicy(tries=2, backoff=(0.5,), retry_after=60, looks=(0.25,), restore=(1.0, 5.0))
DONE = RequestResult("done", 200, "", 1)
WRONG = Difference("field", "comment", "Ready", "raw")
NO_FILE = Difference("restore", "hires", desired=True, live="")

EVENTS: dict[str, Event] = {
    "journalled": Journalled(),
    "not journalled": NotJournalled("disk full"),
    "answered": Answered(200),
    "not sent": NotSent("refused"),
    "rejected": Rejected(400, "bad"),
    "failed": Failed("no room", 500),
    "lost": AnswerLost("cut"),
    "seen": ExpectationRead("all"),
    "unreadable": Unreadable("garbage"),
    "proved": Verified(),
    "waited": PauseEnded(),
    "stopped": RunCancelled(),
}

# One request of two is done; the second is the live one (of a target that proves, both are done).
START = TargetProgress(2, wait=60.0, results=(DONE,))
AT: dict[State, TargetProgress] = {
    State.READY: START,
    State.SENDING: replace(START, state=State.SENDING, tries=1),
    State.BACKING_OFF: replace(START, state=State.BACKING_OFF, tries=1, trouble=NotSent("refused")),
    State.SETTLING: replace(START, state=State.SETTLING, tries=1, looks=1, trouble=AnswerLost("cut")),
    State.PAUSING: replace(START, state=State.PAUSING, tries=1, looks=1, trouble=AnswerLost("cut")),
    State.PROVING: replace(START, state=State.PROVING, results=(DONE, DONE), looks=1),
    State.PROVING_LATER: replace(START, state=State.PROVING_LATER, results=(DONE, DONE), looks=2),
    State.RESTORING: replace(START, state=State.RESTORING, results=(DONE, DONE), differences=(NO_FILE,), polls=1),
    State.OVER: replace(START, state=State.OVER, results=(DONE, DONE)),
}

TABLE: dict[tuple[State, str], tuple[State, object, str | None]] = {
    (State.READY, "journalled"): (State.SENDING, Send(1), None),
    (State.READY, "not journalled"): (State.PROVING, Verify(), None),
    (State.READY, "stopped"): (State.PROVING, Verify(), None),
    (State.SENDING, "answered"): (State.PROVING, Verify(), "done"),
    (State.SENDING, "not sent"): (State.BACKING_OFF, Pause(0.5, stoppable=True), None),
    (State.SENDING, "rejected"): (State.SETTLING, ReadExpectation(1), None),
    (State.SENDING, "failed"): (State.PROVING, Verify(), "failed"),
    (State.SENDING, "lost"): (State.SETTLING, ReadExpectation(1), None),
    (State.BACKING_OFF, "waited"): (State.READY, WriteAhead(1), None),
    (State.BACKING_OFF, "stopped"): (State.PROVING, Verify(), None),
    (State.SETTLING, "seen"): (State.PROVING, Verify(), "done"),
    (State.SETTLING, "unreadable"): (State.PAUSING, Pause(0.25), None),
    (State.PAUSING, "waited"): (State.SETTLING, ReadExpectation(1), None),
    (State.PROVING, "proved"): (State.OVER, Finish(), None),
    (State.PROVING, "unreadable"): (State.PROVING_LATER, Pause(0.25), None),
    (State.PROVING_LATER, "waited"): (State.PROVING, Verify(), None),
    (State.RESTORING, "waited"): (State.PROVING, Verify(), None),
    (State.RESTORING, "stopped"): (State.OVER, Finish(), None),
}


def test_the_table_knows_every_state() -> None:
    assert set(AT) == set(State)


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("name", EVENTS)
def test_every_event_in_every_state(state: State, name: str) -> None:
    progress, event = AT[state], EVENTS[name]
    if (state, name) not in TABLE:
        with pytest.raises(InvalidTransitionError, match=state.value):
            step(progress, event, PATIENCE)
        return
    turn = step(progress, event, PATIENCE)
    settled = turn.progress.results[turn.settled].outcome if turn.settled is not None else None
    assert (turn.progress.state, turn.command, settled) == TABLE[state, name]


# How a request that was not simply answered ends: (what happened, what is seen) → what follows.
# "again" is sending once more; "later" one more look, after which "unverified" or "failed" follows.
CERTAIN = {"all": "done", "some": "failed", "none": "failed", "hidden": "failed", "unreadable": "later failed"}
BROKEN = {"all": "done", "some": "failed", "none": "failed", "hidden": "unverified", "unreadable": "later unverified"}
OPEN = {
    "all": "done",
    "some": "later unverified",
    "none": "later unverified",
    "hidden": "unverified",
    "unreadable": "later unverified",
}
FATES: list[tuple[Rejected | AnswerLost, dict[str, str]]] = [
    (AnswerLost("cut"), OPEN),
    (Rejected(502, "bad gateway"), OPEN),
    (Rejected(504, "gateway time-out"), OPEN),
    (Rejected(200, "error: no"), CERTAIN),
    (Rejected(400, "bad"), CERTAIN),
    (Rejected(404, "Object not found"), CERTAIN),
    (Rejected(409, "conflict"), CERTAIN),
    (Rejected(500, "boom"), BROKEN),
    (Rejected(501, "what?"), BROKEN),
    (Rejected(429, "slow down", 7), CERTAIN | {"none": "again 7", "hidden": "again 7"}),
    (Rejected(429, "slow down"), CERTAIN | {"none": "again 0.5", "hidden": "again 0.5"}),
    (Rejected(429, "slow down", 3600), CERTAIN),
    (Rejected(503, "busy", 7), BROKEN | {"none": "again 7"}),
    (Rejected(503, "busy"), BROKEN | {"none": "again 0.5"}),
    (Rejected(503, "busy", -1), BROKEN | {"none": "again 0"}),
]


def seen(name: str) -> Event:
    verdicts: dict[str, Verdict] = {"all": "all", "some": "some", "none": "none", "hidden": "hidden"}
    return Unreadable("garbage") if name == "unreadable" else ExpectationRead(verdicts[name])


@pytest.mark.parametrize("what", ["all", "some", "none", "hidden", "unreadable"])
@pytest.mark.parametrize(("trouble", "ends"), FATES, ids=lambda x: str(x) if not isinstance(x, dict) else "")
def test_every_trouble_and_what_is_seen_after_it(
    trouble: Rejected | AnswerLost, ends: dict[str, str], what: str
) -> None:
    sent = step(AT[State.SENDING], trouble, PATIENCE)
    turn = step(sent.progress, seen(what), PATIENCE)
    kind, *rest = ends[what].split()
    if kind == "again":
        assert turn.command == Pause(float(rest[0]), stoppable=True)
        assert turn.progress.state is State.BACKING_OFF
        once_more = replace(turn.progress, state=State.SENDING, tries=2)
        turn = step(step(once_more, trouble, PATIENCE).progress, seen(what), PATIENCE)
        kind = "failed"  # the tries are used up
    elif kind == "later":
        assert turn.command == Pause(0.25)
        turn = step(step(turn.progress, PauseEnded(), PATIENCE).progress, seen(what), PATIENCE)
        kind = rest[0]
    assert turn.settled == 1
    result = turn.progress.results[1]
    assert result.outcome == kind
    assert trouble.message in result.message
    assert result.status == (trouble.status if isinstance(trouble, Rejected) else None)
    assert conclude(turn.progress)[0] == ("changed" if kind == "done" else kind)


def test_never_sent_is_tried_again_within_bounds() -> None:
    turn = step(AT[State.SENDING], NotSent("refused"), PATIENCE)
    turn = step(step(turn.progress, PauseEnded(), PATIENCE).progress, Journalled(), PATIENCE)
    assert turn.command == Send(1)
    turn = step(turn.progress, NotSent("refused"), PATIENCE)
    assert turn.progress.results[1] == RequestResult("failed", None, "refused (tried 2 times)", 2)
    assert conclude(turn.progress) == ("failed", "request 2 of 2: refused (tried 2 times)")


def test_after_a_failure_nothing_more_is_sent() -> None:
    turn = step(replace(AT[State.SENDING], count=4), Rejected(400, "bad"), PATIENCE)
    turn = step(turn.progress, ExpectationRead("none"), PATIENCE)
    assert turn.command == Verify()  # of the one that was done
    assert [result.outcome for result in turn.progress.all_results] == ["done", "failed", "not sent", "not sent"]


def test_with_nothing_done_there_is_nothing_to_prove() -> None:
    turn = step(TargetProgress(1, state=State.SENDING, tries=1), Rejected(400, "bad"), PATIENCE)
    assert step(turn.progress, ExpectationRead("none"), PATIENCE).command == Finish()


def test_nothing_to_do_is_unchanged() -> None:
    turn = begin(0)
    assert turn.command == Finish()
    assert conclude(turn.progress) == ("unchanged", "")


# The proof -----------------------------------------------------------------------------------------------------


def test_differences_are_looked_at_again_before_they_count() -> None:
    turn = step(AT[State.PROVING], Verified((WRONG,)), PATIENCE)
    assert turn.command == Pause(0.25)
    again = step(turn.progress, PauseEnded(), PATIENCE).progress
    assert conclude(step(again, Verified(), PATIENCE).progress) == ("changed", "")
    turn = step(again, Verified((WRONG,)), PATIENCE)
    assert turn.command == Finish()
    assert turn.progress.differences == (WRONG,)
    assert conclude(turn.progress) == ("failed", "not as wanted when read again")


def test_a_target_that_cannot_be_read_again_is_unverified() -> None:
    turn = step(AT[State.PROVING], Unreadable("garbage"), PATIENCE)
    turn = step(step(turn.progress, PauseEnded(), PATIENCE).progress, Unreadable("garbage"), PATIENCE)
    assert conclude(turn.progress) == ("unverified", "it is sent, but the target cannot be read again: garbage")


def test_a_restore_is_waited_for_aside_until_its_time_is_over() -> None:
    turn = step(AT[State.PROVING], Verified((NO_FILE,), elapsed=0), PATIENCE)
    assert turn.command == Pause(1, stoppable=True, aside=True)
    turn = step(step(turn.progress, PauseEnded(), PATIENCE).progress, Verified((NO_FILE,), elapsed=57), PATIENCE)
    assert turn.command == Pause(3, stoppable=True, aside=True)
    unreadable = step(step(turn.progress, PauseEnded(), PATIENCE).progress, Unreadable("x", elapsed=58), PATIENCE)
    assert unreadable.command == Pause(0.25)
    assert conclude(step(step(turn.progress, PauseEnded(), PATIENCE).progress, Verified(), PATIENCE).progress) == (
        "changed",
        "",
    )
    turn = step(step(turn.progress, PauseEnded(), PATIENCE).progress, Verified((NO_FILE,), elapsed=60), PATIENCE)
    assert turn.command == Finish()
    assert conclude(turn.progress) == ("failed", "not restored within 60 s")


@pytest.mark.parametrize("left", [7e-15, 0.0009])
def test_what_is_left_of_a_wait_below_a_millisecond_is_over(left: float) -> None:
    turn = step(AT[State.PROVING], Verified((NO_FILE,), elapsed=AT[State.PROVING].wait - left), PATIENCE)
    assert turn.command == Finish()
    assert conclude(turn.progress) == ("failed", "not restored within 60 s")


def test_a_server_that_stutters_while_we_wait_for_a_restore() -> None:
    proving = replace(AT[State.RESTORING], state=State.PROVING, looks=2)
    turn = step(proving, Unreadable("garbage", elapsed=10), PATIENCE)
    assert turn.command == Pause(5, stoppable=True, aside=True)
    turn = step(proving, Unreadable("garbage", elapsed=60), PATIENCE)
    assert conclude(turn.progress)[0] == "unverified"


def test_a_restore_is_not_waited_for_where_something_else_is_wrong() -> None:
    turn = step(AT[State.PROVING], Verified((WRONG, NO_FILE)), PATIENCE)
    turn = step(step(turn.progress, PauseEnded(), PATIENCE).progress, Verified((WRONG, NO_FILE)), PATIENCE)
    assert turn.command == Finish()
    failed = replace(AT[State.PROVING], results=(DONE, RequestResult("failed", 400, "bad", 1)))
    turn = step(failed, Verified((NO_FILE,)), PATIENCE)
    assert (turn.command, conclude(turn.progress)[0]) == (Finish(), "failed")


def test_a_stop_while_waiting_for_a_restore_is_unverified() -> None:
    turn = step(AT[State.RESTORING], RunCancelled(), PATIENCE)
    assert conclude(turn.progress) == ("unverified", "stopped while waiting for the restored file")


# Stops, crashes ------------------------------------------------------------------------------------------------


def test_a_stop_before_the_first_request() -> None:
    turn = step(begin(2).progress, RunCancelled(), PATIENCE)
    assert turn.command == Finish()
    assert conclude(turn.progress) == ("not attempted", "stopped")


def test_a_stop_between_requests_says_what_was_sent() -> None:
    turn = step(step(AT[State.READY], RunCancelled(), PATIENCE).progress, Verified(), PATIENCE)
    assert conclude(turn.progress) == ("failed", "stopped: 1 of 2 requests were sent")


def test_a_stop_while_a_busy_server_is_given_time() -> None:
    busy = replace(AT[State.BACKING_OFF], trouble=Rejected(503, "busy"))
    turn = step(busy, RunCancelled(), PATIENCE)
    assert turn.settled == 1
    assert turn.progress.results[1].outcome == "failed"


def test_without_a_ledger_nothing_is_sent() -> None:
    turn = step(begin(2).progress, NotJournalled("disk full"), PATIENCE)
    assert turn.command == Finish()
    assert conclude(turn.progress) == ("not attempted", "disk full")


@pytest.mark.parametrize("state", State)
def test_abandoned_in_every_state(state: State) -> None:
    turn = abandon(AT[state], "stopped at once")
    assert turn.command == Finish()
    assert turn.progress.state is State.OVER
    outcome, why = conclude(turn.progress)
    if state in {State.SENDING, State.SETTLING, State.PAUSING}:
        assert (turn.settled, turn.progress.results[1].outcome, outcome) == (1, "unverified", "unverified")
    elif state in {State.READY, State.BACKING_OFF}:
        assert (turn.settled, outcome) == (None, "failed")
        assert turn.progress.all_results[1].outcome == "not sent"
    else:
        assert outcome == ("changed" if state is State.OVER else "unverified")
    assert ("stopped at once" in why) == (state is not State.OVER)


def test_a_crash_while_sending_is_settled_by_reading_and_never_sent_again() -> None:
    turn = begin_again(START, sending=True)
    assert turn.command == ReadExpectation(1)
    unseen = step(turn.progress, ExpectationRead("hidden"), PATIENCE)
    assert unseen.progress.results[1].outcome == "unverified"
    assert step(turn.progress, ExpectationRead("all"), PATIENCE).command == Verify()
    assert begin_again(START, sending=False).command == WriteAhead(1)
    assert begin_again(replace(START, results=(DONE, DONE)), sending=False).command == Verify()
