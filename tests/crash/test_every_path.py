"""Every path through the state machine, with every response at every step, and a crash after each of them."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from msauto.applying.states import (
    Accepted,
    Blocked,
    Command,
    Event,
    ExpectationRead,
    Failed,
    Finish,
    InDoubt,
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
    Transition,
    Unreadable,
    Verify,
    WriteAhead,
    abandon,
    begin,
    conclude,
    resume,
    step,
)
from msauto.model.result import Difference
from tests.conftest import COUNTED

POLICY = RetryPolicy(tries=2, backoff=(0.5,), max_retry_after=60, read_pauses=(0.25,), restore_pauses=(1.0,))
REQUESTS = 2

WRONG = Difference("field", "comment", "Ready", "raw")
NO_FILE = Difference("restore", "hires", desired=True, live="")

SENT: tuple[Event, ...] = (
    Accepted(200),
    NotSent("refused"),
    InDoubt("cut"),
    Rejected(200, "error"),
    Rejected(404, "not found"),
    Rejected(429, "slow down", 1),
    Rejected(429, "slow down", 3600),
    Rejected(500, "boom"),
    Rejected(502, "gateway"),
    Rejected(503, "busy"),
    Failed("the disk is full"),
)
SEEN: tuple[Event, ...] = (
    ExpectationRead("all"),
    ExpectationRead("some"),
    ExpectationRead("none"),
    ExpectationRead("hidden"),
    Unreadable("garbage"),
)
PROVED: tuple[Event, ...] = (
    TargetRead(),
    TargetRead((WRONG,)),
    TargetRead((NO_FILE,), elapsed=1),
    TargetRead((NO_FILE,), elapsed=99),
    TargetRead((WRONG, NO_FILE)),
    Unreadable("garbage", elapsed=1),
    Unreadable("garbage", elapsed=99),
)


def answers(command: Command) -> tuple[Event, ...]:
    """Everything that can come of a command."""
    match command:
        case WriteAhead():
            return (Journalled(), Blocked("full"), RunCancelled())
        case Send():
            return SENT
        case ReadExpectation():
            return SEEN
        case Pause(cancellable=cancellable):
            return (PauseEnded(), RunCancelled()) if cancellable else (PauseEnded(),)
        case Verify():
            return PROVED
        case Finish():
            return ()


def all_transitions() -> Iterator[tuple[Transition, Event, Transition]]:
    """Every transition that can be reached, the event after it, and the transition that follows."""
    todo = [begin(REQUESTS, wait=10)]
    known: set[Transition] = set()
    while todo:
        transition = todo.pop()
        if transition in known:
            continue
        known.add(transition)
        for event in answers(transition.command):
            following = step(transition.progress, event, POLICY)
            yield transition, event, following
            # How often a restore was looked for does not matter: it is bounded by time, which the events give.
            todo.append(following._replace(progress=_without_restore_reads(following.progress)))


def _without_restore_reads(progress: TargetProgress) -> TargetProgress:
    return replace(progress, restore_reads=0)


ALL = list(all_transitions())
MAYBE_DONE = (InDoubt, Rejected)


def test_there_are_many_paths(record_property: Callable[[str, object], None]) -> None:
    record_property(COUNTED, f"transitions of the state machine, each also followed by a crash: {len(ALL)}")
    assert len(ALL) > 5_000
    assert {transition.progress.state for transition, _, _ in ALL} == set(State) - {State.FINISHED}


def test_nothing_is_sent_without_being_journalled_first() -> None:
    for transition, event, following in ALL:
        if isinstance(following.command, Send):
            assert isinstance(transition.command, WriteAhead)
            assert event == Journalled()
            assert following.command.index == transition.command.index == len(following.progress.results)


def test_what_was_possibly_done_is_never_sent_again() -> None:
    """Back to sending leads only what never left, or what a busy server refused and nothing is seen of."""
    for transition, event, following in ALL:
        if following.progress.state is not State.BACKING_OFF:
            continue
        trouble = following.progress.failure
        if isinstance(event, NotSent):
            assert trouble == event
        else:
            assert isinstance(transition.command, ReadExpectation)
            assert isinstance(trouble, Rejected)
            allowed = {429: {"none", "hidden"}, 503: {"none"}}
            assert isinstance(event, ExpectationRead)
            assert event.verdict in allowed[trouble.status]
        assert following.progress.tries < POLICY.tries


def test_a_lost_write_leaves_its_request_only_settled() -> None:
    for transition, _, following in ALL:
        if isinstance(transition.progress.failure, InDoubt) and transition.progress.state is not State.FINISHED:
            same = following.progress.failure == transition.progress.failure
            assert same or following.settled == transition.progress.index
            if same:
                assert following.progress.state in {State.SETTLING, State.WAITING_TO_SETTLE}


def test_every_path_ends() -> None:
    """Without restores there is no way in a circle."""
    after: dict[Transition, set[Transition]] = {}
    for transition, _, following in ALL:
        if following.progress.state is not State.WAITING_FOR_RESTORE:
            after.setdefault(transition, set()).add(
                following._replace(progress=_without_restore_reads(following.progress))
            )
    depth: dict[Transition, int] = {}

    def measure(transition: Transition, above: frozenset[Transition]) -> int:
        assert transition not in above, "a circle"
        if transition not in depth:
            below = (measure(each, above | {transition}) for each in after.get(transition, ()))
            depth[transition] = 1 + max(below, default=0)
        return depth[transition]

    assert measure(begin(REQUESTS, wait=10), frozenset()) < 60


def test_the_outcome_is_true() -> None:
    for _, event, following in ALL:
        if not isinstance(following.command, Finish):
            continue
        progress = following.progress
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
    for transition, _, _ in ALL:
        progress = transition.progress
        if progress.state in {State.VERIFYING, State.WAITING_TO_VERIFY, State.WAITING_FOR_RESTORE}:
            continue
        settled = TargetProgress(REQUESTS, results=progress.results)
        sending = progress.tries > 0
        again = resume(settled, sending=sending)
        if not sending:
            assert again.command == WriteAhead(progress.index)
            continue
        assert again.command == ReadExpectation(progress.index)
        for event in SEEN:
            following = step(again.progress, event, POLICY)
            assert following.progress.state is not State.BACKING_OFF
            assert following.progress.index == progress.index + 1 or following.progress.state is State.WAITING_TO_SETTLE


def test_abandoning_at_every_transition_reports_the_truth() -> None:
    for transition, _, _ in ALL:
        left = abandon(transition.progress, "stopped at once")
        assert isinstance(left.command, Finish)
        outcome, why = conclude(left.progress)
        if outcome != "failed" and all(result.outcome == "done" for result in transition.progress.results):
            assert "stopped at once" in why
        assert outcome != "changed"
        if transition.progress.state in {State.SENT, State.SETTLING, State.WAITING_TO_SETTLE}:
            assert left.progress.results[-1].outcome == "unverified"
