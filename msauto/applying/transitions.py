"""A target's life while it is applied, as a pure function of progress and event (design, «A request's life»).

::

    READY ──Journalled──► SENDING ──Answered──────────────► done: next READY, or PROVING after the last
      ▲                    │ │ └─NotSent, bounded─► BACKING_OFF ─┐
      │                    │ └─Rejected─┐                        │
      │                    └──Lost──────┴─► SETTLING ◄─► PAUSING │   Seen: all → done; some, none, hidden → by cause:
      └────────────────Waited──────────────────┼─────────────────┘     rejected → failed (429, 503: BACKING_OFF)
                                               └─► failed, unverified     lost → looked at again, then unverified
    PROVING ──Proved──► OVER;  differences: a few looks more;  restore not there: RESTORING, until the wait is over

The driver (``life.py``) carries out the one command that each turn gives, and comes back with its event. What was
possibly done is never sent again: only ``NotSent``, or a 429 or 503 of which nothing is seen, leads back to READY.
"""

from __future__ import annotations

from dataclasses import replace

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
    Transition,
    Unreadable,
    Verified,
    Verify,
    WriteAhead,
)
from msauto.concurrency import is_over
from msauto.model.result import Outcome, RequestOutcome, RequestResult
from msauto.verification.verifying import Verdict


class InvalidTransitionError(ValueError):
    """The event cannot come in this state: a mistake of the driver, never of the server."""


def begin(count: int, *, wait: float = 0.0) -> Transition:
    """Return the first turn of a target with ``count`` requests, whose restore may take ``wait`` seconds."""
    progress = TargetProgress(count, wait=wait)
    return _next(progress) if count else _over(progress)


def begin_again(progress: TargetProgress, *, sending: bool) -> Transition:
    """Return the first turn after a crash: ``progress.results`` as journalled, one more perhaps ``sending``."""
    if not sending:
        return _next(replace(progress, state=State.READY))
    lost = AnswerLost("the run died while it was under way")
    return _look(replace(progress, tries=max(progress.tries, 1), trouble=lost, looks=0))


def step(progress: TargetProgress, event: Event, policy: RetryPolicy) -> Transition:  # noqa: C901 - one table, read as one
    """Return what follows from an event; raise :class:`ImpossibleError` for one that cannot come in this state."""
    match progress.state, event:
        case State.READY, Journalled():
            return Transition(replace(progress, state=State.SENDING, tries=progress.tries + 1), Send(progress.index))
        case State.READY, NotJournalled(message):
            return _stop(replace(progress, problem=message))
        case ((State.READY | State.BACKING_OFF), RunCancelled()):
            return _stop(replace(progress, stopped=True))
        case State.BACKING_OFF, PauseEnded():
            return Transition(replace(progress, state=State.READY), WriteAhead(progress.index))
        case State.SENDING, (Answered() | NotSent() | Rejected() | AnswerLost()):
            return _sent(progress, event, policy)
        case State.SENDING, Failed(message, status):
            return _settle(progress, "failed", message, status)
        case State.SETTLING, ExpectationRead(verdict):
            return _seen(progress, verdict, policy)
        case State.SETTLING, Unreadable(message):
            return _unseen(progress, message, policy)
        case State.PAUSING, PauseEnded():
            return _look(progress)
        case State.PROVING, (Verified() | Unreadable()):
            return _proved(progress, event, policy)
        case ((State.PROVING_LATER | State.RESTORING), PauseEnded()):
            return Transition(replace(progress, state=State.PROVING), Verify())
        case State.RESTORING, RunCancelled():
            return _over(replace(progress, stopped=True))
    raise InvalidTransitionError(f"{event} cannot come while {progress.state.value}")


def abandon(progress: TargetProgress, why: str) -> Transition:
    """Return how things stand when a target must be left at once: what is under way has an unknown fate."""
    match progress.state:
        case State.OVER:
            return Transition(progress, Finish())
        case State.READY | State.BACKING_OFF:
            turn = _stop(replace(progress, stopped=True, problem=why))
            return Transition(replace(turn.progress, state=State.OVER), Finish(), turn.settled)
        case State.SENDING | State.SETTLING | State.PAUSING:
            after = f"{_trouble(progress)}; {why}" if progress.trouble else why
            progress = _with(progress, "unverified", after)
            return Transition(replace(progress, state=State.OVER, stopped=True), Finish(), progress.index - 1)
        case _:
            return _over(replace(progress, stopped=True, problem=why))


def conclude(progress: TargetProgress) -> tuple[Outcome, str]:
    """Return what came of a target, and why, once it is over."""
    for number, result in enumerate(progress.results, 1):
        if result.outcome in {"failed", "unverified"}:
            outcome: Outcome = "failed" if result.outcome == "failed" or progress.differences else "unverified"
            return outcome, f"request {number} of {progress.count}: {result.message}"
    if not progress.whole:
        return _cut_short(progress)
    if progress.stopped or progress.problem:
        return "unverified", progress.problem or "stopped while waiting for the restored file"
    if progress.differences:
        return "failed", _not_as_wanted(progress)
    return ("changed" if progress.count else "unchanged"), ""


# The single turns ----------------------------------------------------------------------------------------------


def _sent(
    progress: TargetProgress, event: Answered | NotSent | Rejected | AnswerLost, policy: RetryPolicy
) -> Transition:
    match event:
        case Answered(status):
            return _settle(progress, "done", "", status)
        case NotSent():
            return _try_again(replace(progress, trouble=event), None, policy)
        case _:
            return _look(replace(progress, trouble=event, looks=0))


def _try_again(progress: TargetProgress, retry_after: float | None, policy: RetryPolicy) -> Transition:
    """Send once more what was certainly not done, within bounds."""
    if progress.tries >= policy.tries:
        times = "once" if progress.tries == 1 else f"{progress.tries} times"
        return _settle(progress, "failed", f"{_trouble(progress)} (tried {times})")
    if retry_after is not None and retry_after > policy.retry_after:
        return _settle(progress, "failed", f"{_trouble(progress)}; the server asks to wait {retry_after:g} s")
    pause = _nth(policy.backoff, progress.tries - 1)
    seconds = pause if retry_after is None else max(retry_after, 0.0)
    return Transition(replace(progress, state=State.BACKING_OFF), Pause(seconds, stoppable=True))


def _look(progress: TargetProgress) -> Transition:
    progress = replace(progress, state=State.SETTLING, looks=progress.looks + 1)
    return Transition(progress, ReadExpectation(progress.index))


def _seen(progress: TargetProgress, verdict: Verdict, policy: RetryPolicy) -> Transition:
    if verdict == "all":
        return _settle(progress, "done", f"{_trouble(progress)}; but reading shows that it is done")
    if _maybe_later(progress):
        if verdict == "hidden":
            return _settle(progress, "unverified", f"{_trouble(progress)}; reading cannot show whether it is done")
        return _look_later(progress, policy) or _settle(progress, "unverified", _not_seen(progress, verdict))
    return _rejected(progress, verdict, policy)


def _rejected(progress: TargetProgress, verdict: Verdict, policy: RetryPolicy) -> Transition:
    """Settle what the server refused, and what was read after that does not show as done."""
    trouble = progress.trouble
    assert isinstance(trouble, Rejected)
    busy = trouble.status == 429 or (trouble.status == 503 and verdict == "none")
    if busy and verdict in {"none", "hidden"}:
        return _try_again(progress, trouble.retry_after, policy)
    if verdict == "hidden" and trouble.status >= 500:
        return _settle(progress, "unverified", f"{_trouble(progress)}; reading cannot show whether it is done")
    partly = "; reading shows that part of it is done" if verdict == "some" else ""
    return _settle(progress, "failed", f"{_trouble(progress)}{partly}")


def _unseen(progress: TargetProgress, message: str, policy: RetryPolicy) -> Transition:
    """Settle, or look again, where the target could not be read."""
    later = _look_later(progress, policy)
    if later is not None:
        return later
    trouble = progress.trouble
    certain = isinstance(trouble, Rejected) and trouble.status < 500
    text = f"{_trouble(progress)}; and the target cannot be read: {message}"
    return _settle(progress, "failed" if certain else "unverified", text)


def _look_later(progress: TargetProgress, policy: RetryPolicy) -> Transition | None:
    if progress.looks > len(policy.looks):
        return None
    pause = Pause(policy.looks[progress.looks - 1])
    return Transition(replace(progress, state=State.PAUSING), pause)


def _settle(progress: TargetProgress, outcome: RequestOutcome, message: str, status: int | None = None) -> Transition:
    """Close the live request; what was done leads on, all else ends the target."""
    progress = _with(progress, outcome, message, status)
    turn = _next(progress) if outcome == "done" else _close(progress)
    return Transition(turn.progress, turn.command, progress.index - 1)


def _with(progress: TargetProgress, outcome: RequestOutcome, message: str, status: int | None = None) -> TargetProgress:
    if status is None and isinstance(progress.trouble, Rejected):
        status = progress.trouble.status
    result = RequestResult(outcome, status, message, progress.tries)
    return replace(progress, results=(*progress.results, result), tries=0, trouble=None, looks=0)


def _next(progress: TargetProgress) -> Transition:
    if progress.index < progress.count:
        return Transition(replace(progress, state=State.READY), WriteAhead(progress.index))
    return _close(progress)


def _close(progress: TargetProgress) -> Transition:
    """Prove what was done; with nothing done there is nothing to prove."""
    if progress.done:
        return Transition(replace(progress, state=State.PROVING, looks=1), Verify())
    return _over(progress)


def _stop(progress: TargetProgress) -> Transition:
    """End before the live request: it is told as failed only if it was sent and refused."""
    if isinstance(progress.trouble, Rejected):
        return _settle(progress, "failed", _trouble(progress))
    return _close(replace(progress, tries=0, trouble=None))


def _proved(progress: TargetProgress, event: Verified | Unreadable, policy: RetryPolicy) -> Transition:
    if isinstance(event, Unreadable):
        return _prove_later(progress, policy) or _unverified(progress, event, policy)
    progress = replace(progress, differences=event.differences)
    restoring = all(difference.aspect == "restore" for difference in event.differences)
    if restoring:
        return _restoring(replace(progress, looks=1), event.elapsed, policy)
    return _prove_later(progress, policy) or _over(progress)


def _restoring(progress: TargetProgress, elapsed: float, policy: RetryPolicy) -> Transition:
    """Wait for the file, if that is all that is missing (field notes: restore takes minutes)."""
    left = progress.wait - elapsed
    if not progress.differences or not progress.whole or is_over(left):
        return _over(progress)
    pause = Pause(min(_nth(policy.restore, progress.polls), left), stoppable=True, aside=True)
    return Transition(replace(progress, state=State.RESTORING, polls=progress.polls + 1), pause)


def _unverified(progress: TargetProgress, event: Unreadable, policy: RetryPolicy) -> Transition:
    if progress.differences and all(difference.aspect == "restore" for difference in progress.differences):
        turn = _restoring(progress, event.elapsed, policy)
        if turn.progress.state is State.RESTORING:
            return turn
    return _over(replace(progress, problem=f"it is sent, but the target cannot be read again: {event.message}"))


def _prove_later(progress: TargetProgress, policy: RetryPolicy) -> Transition | None:
    """Look again shortly: a server may accept a write before it shows it. Not where the end is known anyway."""
    if not progress.whole or progress.looks > len(policy.looks):
        return None
    pause = Pause(policy.looks[progress.looks - 1])
    return Transition(replace(progress, state=State.PROVING_LATER, looks=progress.looks + 1), pause)


def _over(progress: TargetProgress) -> Transition:
    return Transition(replace(progress, state=State.OVER), Finish())


# Words ---------------------------------------------------------------------------------------------------------


def _maybe_later(progress: TargetProgress) -> bool:
    """Whether the server may still act: no answer, or a gateway's that it had none (502, 504)."""
    trouble = progress.trouble
    return isinstance(trouble, AnswerLost) or (isinstance(trouble, Rejected) and trouble.status in {502, 504})


def _trouble(progress: TargetProgress) -> str:
    return progress.trouble.message if progress.trouble else ""


def _not_seen(progress: TargetProgress, verdict: Verdict) -> str:
    seen = "only part of it" if verdict == "some" else "nothing of it"
    return f"{_trouble(progress)}; reading shows {seen} done, but the server may still act"


def _cut_short(progress: TargetProgress) -> tuple[Outcome, str]:
    why = progress.problem or "stopped"
    if not progress.results:
        return "not attempted", why
    return "failed", f"{why}: {progress.done} of {progress.count} requests were sent"


def _not_as_wanted(progress: TargetProgress) -> str:
    if all(difference.aspect == "restore" for difference in progress.differences):
        return f"not restored within {progress.wait:g} s"
    return "not as wanted when read again"


def _nth(pauses: tuple[float, ...], index: int) -> float:
    """Return the pause, the last one repeated."""
    return pauses[min(index, len(pauses) - 1)] if pauses else 0.0
