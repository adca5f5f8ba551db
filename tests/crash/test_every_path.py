"""Every path through the state machine, with every response at every step, and a crash after each of them."""

from collections.abc import Callable
from functools import cache

from msgspec.structs import replace

from msauto.applying.states import (
    Accepted,
    AnotherClip,
    Blocked,
    EffectsRead,
    Event,
    Failed,
    InDoubt,
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
from msauto.model.result import Difference
from msauto.retry_policy import RetryPolicy
from tests.conftest import COUNTED

POLICY = RetryPolicy(
    tries=2, backoff=(0.5,), max_retry_after=60, read_pauses=(0.25,), restore_pauses=(1.0,)
)
REQUESTS = 2

WRONG = Difference("field", "comment", "Ready", "raw")
NO_FILE = Difference("restore", "hires", desired=True, live="")
ANOTHER = AnotherClip("another clip now has this title")

SENT: tuple[Event, ...] = (
    Accepted(200),
    NotSent("refused"),
    InDoubt("cut"),
    Rejected(200, "error"),
    Rejected(404, "not found"),
    Rejected(429, "slow down", 1),
    Rejected(429, "slow down", 1, repeatable=True),
    Rejected(429, "slow down", 3600),
    Rejected(500, "boom"),
    Rejected(502, "gateway"),
    Rejected(503, "busy"),
    Rejected(503, "busy", repeatable=True),
    Failed("the disk is full"),
)
SEEN: tuple[Event, ...] = (
    EffectsRead("all"),
    EffectsRead("some"),
    EffectsRead("none"),
    EffectsRead("hidden"),
    Unreadable("garbage"),
)
PROVED: tuple[Event, ...] = (
    TargetRead(),
    TargetRead((WRONG,)),
    TargetRead((NO_FILE,), 1, restoring=True),
    TargetRead((NO_FILE,), 99, restoring=True),
    TargetRead((WRONG, NO_FILE)),
    Unreadable("garbage", elapsed=1),
    Unreadable("garbage", elapsed=99),
)


ANSWERS: dict[State, tuple[Event, ...]] = {
    State.READY: (
        Journalled(),
        Blocked("full"),
        Blocked("not again", in_doubt=True),
        ANOTHER,
        RunCancelled(),
    ),
    State.SENT: SENT,
    State.BACKING_OFF: (PauseEnded(), RunCancelled()),
    State.SETTLING: (*SEEN, ANOTHER),
    State.WAITING_TO_SETTLE: (PauseEnded(),),
    State.VERIFYING: (*PROVED, ANOTHER),
    State.WAITING_TO_VERIFY: (PauseEnded(),),
    State.WAITING_FOR_RESTORE: (PauseEnded(), RunCancelled()),
    State.FINISHED: (),
}
"""Everything that can happen in a state."""


Transition = tuple[TargetProgress, Event, TargetProgress]


@cache
def all_transitions() -> tuple[Transition, ...]:
    """Every progress that can be reached, the event after it, and the progress that follows."""
    todo = [begin(REQUESTS, wait=10)]
    known: set[TargetProgress] = set()
    transitions: list[Transition] = []
    while todo:
        progress = todo.pop()
        if progress in known:
            continue
        known.add(progress)
        for event in ANSWERS[progress.state]:
            following = step(progress, event, POLICY)
            transitions.append((progress, event, following))
            # How often a restore was looked for does not matter: it is bounded by time, which the events give.
            todo.append(_without_restore_reads(following))
    return tuple(transitions)


def _without_restore_reads(progress: TargetProgress) -> TargetProgress:
    return replace(progress, restore_reads=0)


def test_there_are_many_paths(record_property: Callable[[str, object], None]) -> None:
    record_property(
        COUNTED,
        f"transitions of the state machine, each also followed by a crash: {len(all_transitions())}",
    )
    assert len(all_transitions()) > 5_000
    assert {progress.state for progress, _, _ in all_transitions()} == set(State) - {State.FINISHED}


def test_nothing_is_sent_without_being_journalled_first() -> None:
    for progress, event, following in all_transitions():
        if following.state is State.SENT:
            assert progress.state is State.READY
            assert event == Journalled()
            assert following.index == progress.index


def test_what_was_possibly_done_is_never_sent_again() -> None:
    """Back to sending leads only what never left, or what a busy server refused and nothing is seen of.

    If doing it twice is not the same, nothing of it may be seen for as long as verification waits.
    """
    for progress, event, following in all_transitions():
        again = (
            following.state is State.READY
            and following.tries > 0
            and progress.state is State.SETTLING
        )
        if following.state is not State.BACKING_OFF and not again:
            continue
        trouble = following.failure
        if isinstance(event, NotSent):
            assert trouble == event
        else:
            assert progress.state is State.SETTLING
            assert isinstance(trouble, Rejected)
            assert isinstance(event, EffectsRead)
            assert trouble.status in {429, 503}
            assert event.verdict == "none"
            assert again is not trouble.repeatable
            assert not again or (progress.reads > len(POLICY.read_pauses) and following.repeated)
        assert following.tries < POLICY.tries


def test_a_lost_write_leaves_its_request_only_settled() -> None:
    for progress, _, following in all_transitions():
        if isinstance(progress.failure, InDoubt) and progress.state is not State.FINISHED:
            same = following.failure == progress.failure
            assert same or following.index == progress.index + 1
            if same:
                assert following.state in {State.SETTLING, State.WAITING_TO_SETTLE}


def test_every_path_ends() -> None:
    """Without restores there is no way in a circle."""
    after: dict[TargetProgress, set[TargetProgress]] = {}
    for progress, _, following in all_transitions():
        if following.state is not State.WAITING_FOR_RESTORE:
            after.setdefault(progress, set()).add(_without_restore_reads(following))
    depth: dict[TargetProgress, int] = {}

    def measure(progress: TargetProgress, above: frozenset[TargetProgress]) -> int:
        assert progress not in above, "a circle"
        if progress not in depth:
            below = (measure(each, above | {progress}) for each in after.get(progress, ()))
            depth[progress] = 1 + max(below, default=0)
        return depth[progress]

    assert measure(begin(REQUESTS, wait=10), frozenset()) < 60


def test_the_outcome_is_true() -> None:
    for _, event, progress in all_transitions():
        if progress.state is not State.FINISHED:
            continue
        outcome, why = conclude(progress)
        outcomes = [result.outcome for result in progress.all_results]
        assert len(outcomes) == REQUESTS
        assert outcomes == sorted(outcomes, key=["done", "failed", "unverified", "not sent"].index)
        assert sum(each in {"failed", "unverified"} for each in outcomes) <= 1
        if outcome == "changed":
            assert set(outcomes) == {"done"}
            assert event == TargetRead()
        else:
            assert why
        if outcome == "not attempted":
            assert set(outcomes) == {"not sent"}


def test_a_crash_at_every_transition_sends_nothing_twice() -> None:
    """What the ledger knows after a crash: the settled requests, and whether one more may have been sent."""
    for progress, _, _ in all_transitions():
        if progress.state in {State.VERIFYING, State.WAITING_TO_VERIFY, State.WAITING_FOR_RESTORE}:
            continue
        settled = TargetProgress(REQUESTS, results=progress.results)
        sending = progress.tries > 0
        again = resume(settled, sending=sending)
        if not sending:
            assert (again.state, again.index) == (State.READY, progress.index)
            continue
        assert (again.state, again.index) == (State.SETTLING, progress.index)
        for event in SEEN:
            following = step(again, event, POLICY)
            assert following.state is not State.BACKING_OFF
            assert (
                following.index == progress.index + 1 or following.state is State.WAITING_TO_SETTLE
            )


def test_abandoning_at_every_transition_reports_the_truth() -> None:
    for progress, _, _ in all_transitions():
        left = abandon(progress, "stopped at once")
        assert left.state is State.FINISHED
        outcome, why = conclude(left)
        if outcome != "failed" and all(result.outcome == "done" for result in progress.results):
            assert "stopped at once" in why
        assert outcome != "changed"
        if progress.state in {State.SENT, State.SETTLING, State.WAITING_TO_SETTLE}:
            assert left.results[-1].outcome == "unverified"
