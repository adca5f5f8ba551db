"""The state machine as a table: every state with every event, and every trouble with all that may be seen after it."""

import pytest
from msgspec.structs import replace

from msauto.applying.states import (
    Accepted,
    AnotherClip,
    Blocked,
    EffectsRead,
    Event,
    Failed,
    InDoubt,
    InvalidTransitionError,
    Journalled,
    NotSent,
    PauseEnded,
    Rejected,
    RunCancelled,
    State,
    TargetProgress,
    TargetRead,
    Unreadable,
    abandon,
    begin,
    conclude,
    resume,
    step,
)
from msauto.applying.verification import Extent
from msauto.model.result import Difference, RequestOutcome, RequestResult
from msauto.retry_policy import RetryPolicy

POLICY = RetryPolicy(
    tries=2, backoff=(0.5,), max_retry_after=60, read_pauses=(0.25,), restore_pauses=(1.0, 5.0)
)
DONE = RequestResult("done", 200, "", 1)
WRONG = Difference("field", "comment", "Ready", "raw")
NO_FILE = Difference("restore", "hires", desired=True, live="")

EVENTS: dict[str, Event] = {
    "journalled": Journalled(),
    "not journalled": Blocked("disk full"),
    "another clip": AnotherClip("another clip now has this title"),
    "answered": Accepted(200),
    "not sent": NotSent("refused"),
    "rejected": Rejected(400, "bad"),
    "failed": Failed("no room", 500),
    "lost": InDoubt("cut"),
    "seen": EffectsRead("all"),
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
    State.WAITING_TO_SETTLE: replace(
        START, state=State.WAITING_TO_SETTLE, tries=1, reads=1, failure=InDoubt("cut")
    ),
    State.VERIFYING: replace(START, state=State.VERIFYING, results=(DONE, DONE), reads=1),
    State.WAITING_TO_VERIFY: replace(
        START, state=State.WAITING_TO_VERIFY, results=(DONE, DONE), reads=2
    ),
    State.WAITING_FOR_RESTORE: replace(
        START,
        state=State.WAITING_FOR_RESTORE,
        results=(DONE, DONE),
        differences=(NO_FILE,),
        restore_reads=1,
    ),
    State.FINISHED: replace(START, state=State.FINISHED, results=(DONE, DONE)),
}

TABLE: dict[tuple[State, str], tuple[State, float, str | None]] = {
    (State.READY, "journalled"): (State.SENT, 0, None),
    (State.READY, "not journalled"): (State.VERIFYING, 0, None),
    (State.READY, "stopped"): (State.VERIFYING, 0, None),
    (State.READY, "another clip"): (State.FINISHED, 0, None),
    (State.SETTLING, "another clip"): (State.FINISHED, 0, "unverified"),
    (State.VERIFYING, "another clip"): (State.FINISHED, 0, None),
    (State.SENT, "answered"): (State.VERIFYING, 0, "done"),
    (State.SENT, "not sent"): (State.BACKING_OFF, 0.5, None),
    (State.SENT, "rejected"): (State.SETTLING, 0, None),
    (State.SENT, "failed"): (State.VERIFYING, 0, "failed"),
    (State.SENT, "lost"): (State.SETTLING, 0, None),
    (State.BACKING_OFF, "waited"): (State.READY, 0, None),
    (State.BACKING_OFF, "stopped"): (State.VERIFYING, 0, None),
    (State.SETTLING, "seen"): (State.VERIFYING, 0, "done"),
    (State.SETTLING, "unreadable"): (State.WAITING_TO_SETTLE, 0.25, None),
    (State.WAITING_TO_SETTLE, "waited"): (State.SETTLING, 0, None),
    (State.VERIFYING, "proved"): (State.FINISHED, 0, None),
    (State.VERIFYING, "unreadable"): (State.WAITING_TO_VERIFY, 0.25, None),
    (State.WAITING_TO_VERIFY, "waited"): (State.VERIFYING, 0, None),
    (State.WAITING_FOR_RESTORE, "waited"): (State.VERIFYING, 0, None),
    (State.WAITING_FOR_RESTORE, "stopped"): (State.FINISHED, 0, None),
}


def test_the_table_knows_every_state() -> None:
    assert set(AT) == set(State)


@pytest.mark.parametrize("state", State)
def test_every_event_in_a_state(state: State) -> None:
    progress = AT[state]
    for name, event in EVENTS.items():
        if (state, name) not in TABLE:
            with pytest.raises(InvalidTransitionError, match=state.value):
                step(progress, event, POLICY)
            continue
        following = step(progress, event, POLICY)
        is_settled = following.index > progress.index
        settled = following.results[progress.index].outcome if is_settled else None
        assert (following.state, following.pause, settled) == TABLE[state, name], name


# How a request that was not simply answered ends: (what happened, what is seen) → what follows.
# "again" is sending once more; "later" one more look, after which "unverified" or "failed" follows.
CERTAIN = {
    "all": "done",
    "some": "failed",
    "none": "failed",
    "unshown": "failed",
    "hidden": "failed",
    "unreadable": "later failed",
}
BROKEN = CERTAIN | {
    "some": "unverified",
    "unshown": "unverified",
    "hidden": "unverified",
    "unreadable": "later unverified",
}
OPEN = {
    "all": "done",
    "some": "later unverified",
    "none": "later unverified",
    "unshown": "unverified",
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
    *(
        (
            Rejected(status, "busy", seconds, repeatable=True),
            BROKEN | {"none": again, "unshown": again.replace("failed", "unverified")},
        )
        for status in (429, 503)
        for seconds, again in (
            (7, "again 7"),
            (None, "again 0.5"),
            (-1, "again 0"),
            (3600, "failed"),
        )
    ),
]


EXTENTS: tuple[Extent, ...] = ("all", "some", "none", "unshown", "hidden")


def seen(name: str) -> Event:
    if name == "unreadable":
        return Unreadable("garbage")
    return EffectsRead(next(extent for extent in EXTENTS if extent == name))


@pytest.mark.parametrize("what", [*EXTENTS, "unreadable"])
@pytest.mark.parametrize(
    ("trouble", "ends"), RESPONSES, ids=lambda x: str(x) if not isinstance(x, dict) else ""
)
def test_every_failure_and_what_reading_shows_after_it(
    trouble: Rejected | InDoubt, ends: dict[str, str], what: str
) -> None:
    sent = step(AT[State.SENT], trouble, POLICY)
    progress = step(sent, seen(what), POLICY)
    kind, *rest = ends[what].split()
    if kind == "again":
        assert (progress.state, progress.pause) == (State.BACKING_OFF, float(rest[0]))
        once_more = replace(progress, state=State.SENT, tries=2)
        progress = step(step(once_more, trouble, POLICY), seen(what), POLICY)
        kind = "unverified" if what == "unshown" else "failed"  # the tries are used up
    elif kind == "later":
        assert (progress.state, progress.pause) == (State.WAITING_TO_SETTLE, 0.25)
        progress = step(step(progress, PauseEnded(), POLICY), seen(what), POLICY)
        kind = rest[0]
    assert progress.index == 2
    result = progress.results[1]
    assert result.outcome == kind
    assert trouble.message in result.message
    assert result.status == (trouble.status if isinstance(trouble, Rejected) else None)
    assert conclude(progress)[0] == ("changed" if kind == "done" else kind)


def test_never_sent_is_tried_again_within_bounds() -> None:
    progress = step(AT[State.SENT], NotSent("refused"), POLICY)
    progress = step(step(progress, PauseEnded(), POLICY), Journalled(), POLICY)
    assert progress.state is State.SENT
    progress = step(progress, NotSent("refused"), POLICY)
    assert progress.results[1] == RequestResult("failed", None, "refused (tried 2 times)", 2)
    assert conclude(progress) == ("failed", "request 2 of 2: refused (tried 2 times)")


def test_after_a_failure_nothing_more_is_sent() -> None:
    progress = step(replace(AT[State.SENT], count=4), Rejected(400, "bad"), POLICY)
    progress = step(progress, EffectsRead("none"), POLICY)
    assert progress.state is State.VERIFYING  # of the one that was done
    assert [result.outcome for result in progress.all_results] == [
        "done",
        "failed",
        "not sent",
        "not sent",
    ]


def test_with_nothing_done_there_is_nothing_to_verify() -> None:
    progress = step(TargetProgress(1, state=State.SENT, tries=1), Rejected(400, "bad"), POLICY)
    assert step(progress, EffectsRead("none"), POLICY).state is State.FINISHED


def test_nothing_to_do_is_unchanged() -> None:
    progress = begin(0)
    assert progress.state is State.FINISHED
    assert conclude(progress) == ("unchanged", "")


# The proof -----------------------------------------------------------------------------------------------------


def test_differences_are_looked_at_again_before_they_count() -> None:
    progress = step(AT[State.VERIFYING], TargetRead((WRONG,)), POLICY)
    assert progress.state is State.WAITING_TO_VERIFY
    assert progress.pause == 0.25
    again = step(progress, PauseEnded(), POLICY)
    assert conclude(step(again, TargetRead(), POLICY)) == ("changed", "")
    progress = step(again, TargetRead((WRONG,)), POLICY)
    assert progress.state is State.FINISHED
    assert progress.differences == (WRONG,)
    assert conclude(progress) == ("failed", "not as desired when read again")


def test_a_target_that_cannot_be_read_again_is_unverified() -> None:
    progress = step(AT[State.VERIFYING], Unreadable("garbage"), POLICY)
    progress = step(step(progress, PauseEnded(), POLICY), Unreadable("garbage"), POLICY)
    assert conclude(progress) == (
        "unverified",
        "sent, but the target cannot be read again: garbage",
    )


def test_a_restore_frees_its_slot_until_its_time_is_over() -> None:
    progress = step(AT[State.VERIFYING], TargetRead((NO_FILE,), 0, restoring=True), POLICY)
    assert (progress.state, progress.pause) == (State.WAITING_FOR_RESTORE, 1)
    progress = step(
        step(progress, PauseEnded(), POLICY), TargetRead((NO_FILE,), 57, restoring=True), POLICY
    )
    assert (progress.state, progress.pause) == (State.WAITING_FOR_RESTORE, 3)
    unreadable = step(step(progress, PauseEnded(), POLICY), Unreadable("x", elapsed=58), POLICY)
    assert (unreadable.state, unreadable.pause) == (State.WAITING_TO_VERIFY, 0.25)
    assert conclude(step(step(progress, PauseEnded(), POLICY), TargetRead(), POLICY)) == (
        "changed",
        "",
    )
    progress = step(
        step(progress, PauseEnded(), POLICY), TargetRead((NO_FILE,), 60, restoring=True), POLICY
    )
    assert progress.state is State.FINISHED
    assert conclude(progress) == ("failed", "not restored within 60 s")


@pytest.mark.parametrize("left", [7e-15, 0.0009])
def test_a_wait_below_a_millisecond_is_over(left: float) -> None:
    progress = step(
        AT[State.VERIFYING],
        TargetRead((NO_FILE,), AT[State.VERIFYING].wait - left, restoring=True),
        POLICY,
    )
    assert progress.state is State.FINISHED
    assert conclude(progress) == ("failed", "not restored within 60 s")


def test_an_unreadable_server_during_a_restore() -> None:
    proving = replace(
        AT[State.WAITING_FOR_RESTORE], state=State.VERIFYING, reads=2, awaits_restore=True
    )
    progress = step(proving, Unreadable("garbage", elapsed=10), POLICY)
    assert (progress.state, progress.pause) == (State.WAITING_FOR_RESTORE, 5)
    progress = step(proving, Unreadable("garbage", elapsed=60), POLICY)
    assert conclude(progress)[0] == "unverified"


def test_a_restore_is_not_waited_for_where_something_else_is_wrong() -> None:
    progress = step(AT[State.VERIFYING], TargetRead((WRONG, NO_FILE)), POLICY)
    progress = step(step(progress, PauseEnded(), POLICY), TargetRead((WRONG, NO_FILE)), POLICY)
    assert progress.state is State.FINISHED
    failed = replace(AT[State.VERIFYING], results=(DONE, RequestResult("failed", 400, "bad", 1)))
    progress = step(failed, TargetRead((NO_FILE,)), POLICY)
    assert (progress.state, conclude(progress)[0]) == (State.FINISHED, "failed")


def test_a_stop_while_waiting_for_a_restore_is_unverified() -> None:
    progress = step(AT[State.WAITING_FOR_RESTORE], RunCancelled(), POLICY)
    assert conclude(progress) == ("unverified", "stopped while waiting for the restored file")


# Stops, crashes ------------------------------------------------------------------------------------------------


def test_a_stop_before_the_first_request() -> None:
    progress = step(begin(2), RunCancelled(), POLICY)
    assert progress.state is State.FINISHED
    assert conclude(progress) == ("not attempted", "stopped")


def test_a_stop_between_requests_says_what_was_sent() -> None:
    progress = step(step(AT[State.READY], RunCancelled(), POLICY), TargetRead(), POLICY)
    assert conclude(progress) == ("failed", "stopped: 1 of 2 requests were sent")


def test_an_error_of_ours_between_requests_is_a_failure() -> None:
    progress = abandon(AT[State.READY], "internal error: x", cancelled=False)
    assert conclude(progress) == ("failed", "internal error: x: 1 of 2 requests were sent")


def test_a_stop_while_a_busy_server_is_given_time() -> None:
    busy = replace(AT[State.BACKING_OFF], failure=Rejected(503, "busy"))
    progress = step(busy, RunCancelled(), POLICY)
    assert progress.index == 2
    assert progress.results[1].outcome == "failed"


def test_without_a_ledger_nothing_is_sent() -> None:
    progress = step(begin(2), Blocked("disk full"), POLICY)
    assert progress.state is State.FINISHED
    assert conclude(progress) == ("not attempted", "disk full")


@pytest.mark.parametrize("state", State)
def test_abandoned_in_every_state(state: State) -> None:
    progress = abandon(AT[state], "stopped at once")
    assert progress.state is State.FINISHED
    assert progress.state is State.FINISHED
    outcome, why = conclude(progress)
    if state in {State.SENT, State.SETTLING, State.WAITING_TO_SETTLE}:
        assert (progress.index, progress.results[1].outcome, outcome) == (
            2,
            "unverified",
            "unverified",
        )
    elif state in {State.READY, State.BACKING_OFF}:
        assert (progress.index, outcome) == (1, "failed")
        assert progress.all_results[1].outcome == "not sent"
    else:
        assert outcome == ("changed" if state is State.FINISHED else "unverified")
    assert ("stopped at once" in why) == (state is not State.FINISHED)


def test_a_crash_while_sending_is_settled_by_reading_and_never_sent_again() -> None:
    progress = resume(START, sending=True)
    assert progress.state is State.SETTLING
    unseen = step(progress, EffectsRead("hidden"), POLICY)
    assert unseen.results[1].outcome == "unverified"
    assert step(progress, EffectsRead("all"), POLICY).state is State.VERIFYING
    assert resume(START, sending=False).state is State.READY
    assert resume(replace(START, results=(DONE, DONE)), sending=False).state is State.VERIFYING


@pytest.mark.parametrize("outcome", ["failed", "unverified"])
def test_after_a_crash_nothing_follows_a_request_that_was_not_done(outcome: RequestOutcome) -> None:
    settled = RequestResult(outcome, 500, "why", 1)
    first = resume(TargetProgress(2, results=(settled,)), sending=False)
    assert (first.state, conclude(first)) == (State.FINISHED, (outcome, "request 1 of 2: why"))
    assert (
        resume(TargetProgress(3, results=(DONE, settled)), sending=False).state is State.VERIFYING
    )


# A busy server that may have done it --------------------------------------------------------------------------------


def pauses_until_sent_again(
    rejected: Rejected, *, seen_after: int = 99
) -> tuple[list[float], TargetProgress]:
    """Return how long a request waits that a busy server rejected; reading shows it from a read on."""
    policy = RetryPolicy(tries=2, read_pauses=(0.2, 0.8, 2.0, 4.0))
    progress, pauses = step(replace(START, state=State.SENT, tries=1), rejected, policy), []
    while progress.state in {State.SETTLING, State.WAITING_TO_SETTLE}:
        if progress.state is State.WAITING_TO_SETTLE:
            pauses.append(progress.pause)
            progress = step(progress, PauseEnded(), policy)
        verdict: Extent = "all" if len(pauses) >= seen_after else "none"
        progress = step(progress, EffectsRead(verdict), policy)
    return pauses, progress


@pytest.mark.parametrize("status", [429, 503])
def test_what_must_not_be_done_twice_is_unverified_if_reading_cannot_show_it(status: int) -> None:
    progress = step(
        step(AT[State.SENT], Rejected(status, "busy"), POLICY), EffectsRead("hidden"), POLICY
    )
    assert progress.results[1].outcome == "unverified"


@pytest.mark.parametrize("status", [429, 503])
def test_what_must_not_be_done_twice_is_sent_again_only_after_as_long_as_verification_waits(
    status: int,
) -> None:
    pauses, progress = pauses_until_sent_again(Rejected(status, "busy"))
    assert pauses == [0.2, 0.8, 2.0, 4.0]
    assert (progress.state, progress.tries, progress.repeated) == (State.READY, 1, True)


def test_the_last_read_is_after_the_time_that_the_server_asks_to_wait() -> None:
    pauses, progress = pauses_until_sent_again(Rejected(503, "busy", 30))
    assert (sum(pauses), progress.state) == (30, State.READY)
    pauses, progress = pauses_until_sent_again(Rejected(503, "busy", 3600))
    assert (sum(pauses), progress.results[1].outcome) == (7.0, "failed")


@pytest.mark.parametrize("read", [0, 3, 4])
def test_what_shows_late_is_done_and_not_sent_again(read: int) -> None:
    _, progress = pauses_until_sent_again(Rejected(503, "busy"), seen_after=read)
    assert progress.results[1].outcome == "done"


def test_after_a_second_sending_verification_reads_until_the_end() -> None:
    progress = replace(AT[State.VERIFYING], repeated=True)
    following = step(progress, TargetRead(), POLICY)
    assert following.state is State.WAITING_TO_VERIFY
    assert step(AT[State.VERIFYING], TargetRead(), POLICY).state is State.FINISHED
