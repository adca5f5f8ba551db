"""The state machine as a table: every state with every event, and every trouble with all that may be seen after it."""

from dataclasses import replace

import pytest

from msauto.applying.states import (
    Accepted,
    Blocked,
    Event,
    ExpectationRead,
    Failed,
    Finish,
    InDoubt,
    InvalidTransitionError,
    Journalled,
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
    TargetRead,
    Unreadable,
    Verify,
    WriteAhead,
    abandon,
    begin,
    conclude,
    resume,
    step,
)
from msauto.model.result import Difference, RequestResult
from msauto.verification.read_back import Verdict

POLICY = RetryPolicy(tries=2, backoff=(0.5,), max_retry_after=60, read_pauses=(0.25,), restore_pauses=(1.0, 5.0))
DONE = RequestResult("done", 200, "", 1)
WRONG = Difference("field", "comment", "Ready", "raw")
NO_FILE = Difference("restore", "hires", desired=True, live="")

EVENTS: dict[str, Event] = {
    "journalled": Journalled(),
    "not journalled": Blocked("disk full"),
    "answered": Accepted(200),
    "not sent": NotSent("refused"),
    "rejected": Rejected(400, "bad"),
    "failed": Failed("no room", 500),
    "lost": InDoubt("cut"),
    "seen": ExpectationRead("all"),
    "unreadable": Unreadable("garbage"),
    "proved": TargetRead(),
    "waited": PauseEnded(),
    "stopped": RunCancelled(),
}

# One request of two is done; the second is the live one (of a target that proves, both are done).
START = TargetProgress(2, wait=60.0, results=(DONE,))
AT: dict[State, TargetProgress] = {
    State.READY: START,
    State.SENT: replace(START, state=State.SENT, tries=1),
    State.BACKING_OFF: replace(START, state=State.BACKING_OFF, tries=1, failure=NotSent("refused")),
    State.SETTLING: replace(START, state=State.SETTLING, tries=1, reads=1, failure=InDoubt("cut")),
    State.WAITING_TO_SETTLE: replace(START, state=State.WAITING_TO_SETTLE, tries=1, reads=1, failure=InDoubt("cut")),
    State.VERIFYING: replace(START, state=State.VERIFYING, results=(DONE, DONE), reads=1),
    State.WAITING_TO_VERIFY: replace(START, state=State.WAITING_TO_VERIFY, results=(DONE, DONE), reads=2),
    State.WAITING_FOR_RESTORE: replace(
        START, state=State.WAITING_FOR_RESTORE, results=(DONE, DONE), differences=(NO_FILE,), restore_reads=1
    ),
    State.FINISHED: replace(START, state=State.FINISHED, results=(DONE, DONE)),
}

TABLE: dict[tuple[State, str], tuple[State, object, str | None]] = {
    (State.READY, "journalled"): (State.SENT, Send(1), None),
    (State.READY, "not journalled"): (State.VERIFYING, Verify(), None),
    (State.READY, "stopped"): (State.VERIFYING, Verify(), None),
    (State.SENT, "answered"): (State.VERIFYING, Verify(), "done"),
    (State.SENT, "not sent"): (State.BACKING_OFF, Pause(0.5, cancellable=True), None),
    (State.SENT, "rejected"): (State.SETTLING, ReadExpectation(1), None),
    (State.SENT, "failed"): (State.VERIFYING, Verify(), "failed"),
    (State.SENT, "lost"): (State.SETTLING, ReadExpectation(1), None),
    (State.BACKING_OFF, "waited"): (State.READY, WriteAhead(1), None),
    (State.BACKING_OFF, "stopped"): (State.VERIFYING, Verify(), None),
    (State.SETTLING, "seen"): (State.VERIFYING, Verify(), "done"),
    (State.SETTLING, "unreadable"): (State.WAITING_TO_SETTLE, Pause(0.25), None),
    (State.WAITING_TO_SETTLE, "waited"): (State.SETTLING, ReadExpectation(1), None),
    (State.VERIFYING, "proved"): (State.FINISHED, Finish(), None),
    (State.VERIFYING, "unreadable"): (State.WAITING_TO_VERIFY, Pause(0.25), None),
    (State.WAITING_TO_VERIFY, "waited"): (State.VERIFYING, Verify(), None),
    (State.WAITING_FOR_RESTORE, "waited"): (State.VERIFYING, Verify(), None),
    (State.WAITING_FOR_RESTORE, "stopped"): (State.FINISHED, Finish(), None),
}


def test_the_table_knows_every_state() -> None:
    assert set(AT) == set(State)


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("name", EVENTS)
def test_every_event_in_every_state(state: State, name: str) -> None:
    progress, event = AT[state], EVENTS[name]
    if (state, name) not in TABLE:
        with pytest.raises(InvalidTransitionError, match=state.value):
            step(progress, event, POLICY)
        return
    transition = step(progress, event, POLICY)
    settled = transition.progress.results[transition.settled].outcome if transition.settled is not None else None
    assert (transition.progress.state, transition.command, settled) == TABLE[state, name]


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
RESPONSES: list[tuple[Rejected | InDoubt, dict[str, str]]] = [
    (InDoubt("cut"), OPEN),
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
@pytest.mark.parametrize(("trouble", "ends"), RESPONSES, ids=lambda x: str(x) if not isinstance(x, dict) else "")
def test_every_failure_and_what_reading_shows_after_it(
    trouble: Rejected | InDoubt, ends: dict[str, str], what: str
) -> None:
    sent = step(AT[State.SENT], trouble, POLICY)
    transition = step(sent.progress, seen(what), POLICY)
    kind, *rest = ends[what].split()
    if kind == "again":
        assert transition.command == Pause(float(rest[0]), cancellable=True)
        assert transition.progress.state is State.BACKING_OFF
        once_more = replace(transition.progress, state=State.SENT, tries=2)
        transition = step(step(once_more, trouble, POLICY).progress, seen(what), POLICY)
        kind = "failed"  # the tries are used up
    elif kind == "later":
        assert transition.command == Pause(0.25)
        transition = step(step(transition.progress, PauseEnded(), POLICY).progress, seen(what), POLICY)
        kind = rest[0]
    assert transition.settled == 1
    result = transition.progress.results[1]
    assert result.outcome == kind
    assert trouble.message in result.message
    assert result.status == (trouble.status if isinstance(trouble, Rejected) else None)
    assert conclude(transition.progress)[0] == ("changed" if kind == "done" else kind)


def test_never_sent_is_tried_again_within_bounds() -> None:
    transition = step(AT[State.SENT], NotSent("refused"), POLICY)
    transition = step(step(transition.progress, PauseEnded(), POLICY).progress, Journalled(), POLICY)
    assert transition.command == Send(1)
    transition = step(transition.progress, NotSent("refused"), POLICY)
    assert transition.progress.results[1] == RequestResult("failed", None, "refused (tried 2 times)", 2)
    assert conclude(transition.progress) == ("failed", "request 2 of 2: refused (tried 2 times)")


def test_after_a_failure_nothing_more_is_sent() -> None:
    transition = step(replace(AT[State.SENT], count=4), Rejected(400, "bad"), POLICY)
    transition = step(transition.progress, ExpectationRead("none"), POLICY)
    assert transition.command == Verify()  # of the one that was done
    assert [result.outcome for result in transition.progress.all_results] == ["done", "failed", "not sent", "not sent"]


def test_with_nothing_done_there_is_nothing_to_verify() -> None:
    transition = step(TargetProgress(1, state=State.SENT, tries=1), Rejected(400, "bad"), POLICY)
    assert step(transition.progress, ExpectationRead("none"), POLICY).command == Finish()


def test_nothing_to_do_is_unchanged() -> None:
    transition = begin(0)
    assert transition.command == Finish()
    assert conclude(transition.progress) == ("unchanged", "")


# The proof -----------------------------------------------------------------------------------------------------


def test_differences_are_looked_at_again_before_they_count() -> None:
    transition = step(AT[State.VERIFYING], TargetRead((WRONG,)), POLICY)
    assert transition.command == Pause(0.25)
    again = step(transition.progress, PauseEnded(), POLICY).progress
    assert conclude(step(again, TargetRead(), POLICY).progress) == ("changed", "")
    transition = step(again, TargetRead((WRONG,)), POLICY)
    assert transition.command == Finish()
    assert transition.progress.differences == (WRONG,)
    assert conclude(transition.progress) == ("failed", "not as desired when read again")


def test_a_target_that_cannot_be_read_again_is_unverified() -> None:
    transition = step(AT[State.VERIFYING], Unreadable("garbage"), POLICY)
    transition = step(step(transition.progress, PauseEnded(), POLICY).progress, Unreadable("garbage"), POLICY)
    assert conclude(transition.progress) == ("unverified", "sent, but the target cannot be read again: garbage")


def test_a_restore_frees_its_slot_until_its_time_is_over() -> None:
    transition = step(AT[State.VERIFYING], TargetRead((NO_FILE,), elapsed=0), POLICY)
    assert transition.command == Pause(1, cancellable=True, frees_slot=True)
    transition = step(
        step(transition.progress, PauseEnded(), POLICY).progress, TargetRead((NO_FILE,), elapsed=57), POLICY
    )
    assert transition.command == Pause(3, cancellable=True, frees_slot=True)
    unreadable = step(step(transition.progress, PauseEnded(), POLICY).progress, Unreadable("x", elapsed=58), POLICY)
    assert unreadable.command == Pause(0.25)
    assert conclude(step(step(transition.progress, PauseEnded(), POLICY).progress, TargetRead(), POLICY).progress) == (
        "changed",
        "",
    )
    transition = step(
        step(transition.progress, PauseEnded(), POLICY).progress, TargetRead((NO_FILE,), elapsed=60), POLICY
    )
    assert transition.command == Finish()
    assert conclude(transition.progress) == ("failed", "not restored within 60 s")


@pytest.mark.parametrize("left", [7e-15, 0.0009])
def test_a_wait_below_a_millisecond_is_over(left: float) -> None:
    transition = step(AT[State.VERIFYING], TargetRead((NO_FILE,), elapsed=AT[State.VERIFYING].wait - left), POLICY)
    assert transition.command == Finish()
    assert conclude(transition.progress) == ("failed", "not restored within 60 s")


def test_an_unreadable_server_during_a_restore() -> None:
    proving = replace(AT[State.WAITING_FOR_RESTORE], state=State.VERIFYING, reads=2)
    transition = step(proving, Unreadable("garbage", elapsed=10), POLICY)
    assert transition.command == Pause(5, cancellable=True, frees_slot=True)
    transition = step(proving, Unreadable("garbage", elapsed=60), POLICY)
    assert conclude(transition.progress)[0] == "unverified"


def test_a_restore_is_not_waited_for_where_something_else_is_wrong() -> None:
    transition = step(AT[State.VERIFYING], TargetRead((WRONG, NO_FILE)), POLICY)
    transition = step(step(transition.progress, PauseEnded(), POLICY).progress, TargetRead((WRONG, NO_FILE)), POLICY)
    assert transition.command == Finish()
    failed = replace(AT[State.VERIFYING], results=(DONE, RequestResult("failed", 400, "bad", 1)))
    transition = step(failed, TargetRead((NO_FILE,)), POLICY)
    assert (transition.command, conclude(transition.progress)[0]) == (Finish(), "failed")


def test_a_stop_while_waiting_for_a_restore_is_unverified() -> None:
    transition = step(AT[State.WAITING_FOR_RESTORE], RunCancelled(), POLICY)
    assert conclude(transition.progress) == ("unverified", "stopped while waiting for the restored file")


# Stops, crashes ------------------------------------------------------------------------------------------------


def test_a_stop_before_the_first_request() -> None:
    transition = step(begin(2).progress, RunCancelled(), POLICY)
    assert transition.command == Finish()
    assert conclude(transition.progress) == ("not attempted", "stopped")


def test_a_stop_between_requests_says_what_was_sent() -> None:
    transition = step(step(AT[State.READY], RunCancelled(), POLICY).progress, TargetRead(), POLICY)
    assert conclude(transition.progress) == ("failed", "stopped: 1 of 2 requests were sent")


def test_a_stop_while_a_busy_server_is_given_time() -> None:
    busy = replace(AT[State.BACKING_OFF], failure=Rejected(503, "busy"))
    transition = step(busy, RunCancelled(), POLICY)
    assert transition.settled == 1
    assert transition.progress.results[1].outcome == "failed"


def test_without_a_ledger_nothing_is_sent() -> None:
    transition = step(begin(2).progress, Blocked("disk full"), POLICY)
    assert transition.command == Finish()
    assert conclude(transition.progress) == ("not attempted", "disk full")


@pytest.mark.parametrize("state", State)
def test_abandoned_in_every_state(state: State) -> None:
    transition = abandon(AT[state], "stopped at once")
    assert transition.command == Finish()
    assert transition.progress.state is State.FINISHED
    outcome, why = conclude(transition.progress)
    if state in {State.SENT, State.SETTLING, State.WAITING_TO_SETTLE}:
        assert (transition.settled, transition.progress.results[1].outcome, outcome) == (1, "unverified", "unverified")
    elif state in {State.READY, State.BACKING_OFF}:
        assert (transition.settled, outcome) == (None, "failed")
        assert transition.progress.all_results[1].outcome == "not sent"
    else:
        assert outcome == ("changed" if state is State.FINISHED else "unverified")
    assert ("stopped at once" in why) == (state is not State.FINISHED)


def test_a_crash_while_sending_is_settled_by_reading_and_never_sent_again() -> None:
    transition = resume(START, sending=True)
    assert transition.command == ReadExpectation(1)
    unseen = step(transition.progress, ExpectationRead("hidden"), POLICY)
    assert unseen.progress.results[1].outcome == "unverified"
    assert step(transition.progress, ExpectationRead("all"), POLICY).command == Verify()
    assert resume(START, sending=False).command == WriteAhead(1)
    assert resume(replace(START, results=(DONE, DONE)), sending=False).command == Verify()
