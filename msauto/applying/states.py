"""The state machine that applies one target: a pure function of progress and event.

The driver (:mod:`.target_executor`) does what each state asks for, and passes the event to :func:`step`.

::

    | state               | event                     | next state
    | ready               | Journalled                | sent
    |                     | Blocked, RunCancelled     | end
    |                     | AnotherClip               | finished, as while settling and verifying
    | sent                | Accepted                  | next request
    |                     | NotSent                   | backing off, bounded; then end
    |                     | Failed                    | end
    |                     | Rejected, InDoubt         | settling
    | backing off         | PauseEnded                | ready, with the same request
    |                     | RunCancelled              | end
    | settling            | EffectsRead: done         | next request
    |                     | EffectsRead: not done     | rejected: end; 429 and 503: backing off, or, if it
    |                     |                           | must not be done twice: waiting to settle, then ready
    |                     |                           | in doubt: waiting to settle, bounded; then end
    |                     | Unreadable                | waiting to settle, bounded; then end
    | waiting to settle   | PauseEnded                | settling
    | verifying           | TargetRead, Unreadable    | finished, waiting to verify, waiting for restore
    | waiting to verify   | PauseEnded                | verifying
    | waiting for restore | PauseEnded                | verifying
    |                     | RunCancelled              | finished

*Next request* is ready, or verifying after the last request. *End* sends nothing more: it is verifying if any request
was done, else finished. A request is sent again only if it was certainly not done, or if all that it touches is read as
it was before. It is sent at once if it may be done twice, else once that was so for as long as verification waits.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from msauto.applying.verification import Extent
from msauto.circuit_breaker import BUSY_STATUSES, GATEWAY_STATUSES
from msauto.concurrency import is_over
from msauto.model.result import Difference, Outcome, RequestOutcome, RequestResult
from msauto.retry_policy import RetryPolicy


class State(Enum):
    """The state of a target while it is applied."""

    READY = "ready"
    SENT = "sent"
    BACKING_OFF = "backing off"
    SETTLING = "settling"
    WAITING_TO_SETTLE = "waiting to settle"
    VERIFYING = "verifying"
    WAITING_TO_VERIFY = "waiting to verify"
    WAITING_FOR_RESTORE = "waiting for restore"
    FINISHED = "finished"


# Events --------------------------------------------------------------------------------------------------------


class Journalled(Struct, frozen=True):
    """The ledger durably records that the request is about to be sent."""


class Blocked(Struct, frozen=True):
    """No further request may be sent: the ledger failed, the server was given up, or a guard did not hold.

    ``in_doubt``: the request was sent before, and it is not known whether it was done.
    """

    message: str
    in_doubt: bool = False


class AnotherClip(Struct, frozen=True):
    """Reading shows that the target's title now leads to another clip than the one that was planned."""

    message: str


class Accepted(Struct, frozen=True):
    """The server accepted the request."""

    status: int


class NotSent(Struct, frozen=True):
    """The request certainly did not reach the server."""

    message: str


class Rejected(Struct, frozen=True):
    """The server answered with an error; ``retry_after`` in seconds. ``repeatable``: doing it twice does the same."""

    status: int
    message: str
    retry_after: float | None = None
    repeatable: bool = False

    @property
    def may_be_done(self) -> bool:
        """The error does not show that nothing was done: a busy server may answer 429 after the work, too."""
        return self.status >= 500 or self.status == 429


class Failed(Struct, frozen=True):
    """The request was certainly not done and must not be tried again: a download that failed after its retries."""

    message: str
    status: int | None = None


class InDoubt(Struct, frozen=True):
    """The outcome of the request is unknown."""

    message: str


class EffectsRead(Struct, frozen=True):
    """The target was read to settle one request; ``detail``: what else the user must know of what was read."""

    verdict: Extent
    detail: str = ""


class Unreadable(Struct, frozen=True):
    """The target could not be read; ``elapsed`` seconds after the last request."""

    message: str
    elapsed: float = 0.0


class TargetRead(Struct, frozen=True):
    """The target was read after its last request, ``elapsed`` seconds after it, and compared.

    ``restoring``: only a restored file is missing.
    """

    differences: tuple[Difference, ...] = ()
    elapsed: float = 0.0
    restoring: bool = False


class PauseEnded(Struct, frozen=True):
    """The pause is over."""


class RunCancelled(Struct, frozen=True):
    """The user stopped the run: in place of a new request, or during a pause."""


Event = (
    Journalled | Blocked | AnotherClip | Accepted | NotSent | Rejected | Failed | InDoubt
    | EffectsRead | Unreadable | TargetRead | PauseEnded | RunCancelled
)  # fmt: skip


class TargetProgress(Struct, frozen=True):
    """How far a target has come. ``results`` holds the settled requests, so its length is the next index.

    ``wait``: the seconds that a restore may take. ``failure``: why the current request needs settling. ``reads``: the
    reads since then; ``restore_reads``: those for a restored file. ``awaits_restore``: only a restored file is missing.
    ``problem``: what ended the target early; ``another``: that another clip has its title, and what may have reached
    it. ``pause``: seconds to wait, in a state that waits. ``repeated``: a request was sent again that may have been
    done.
    """

    count: int
    wait: float = 0.0
    state: State = State.READY
    results: tuple[RequestResult, ...] = ()
    tries: int = 0
    failure: NotSent | Rejected | InDoubt | None = None
    reads: int = 0
    restore_reads: int = 0
    differences: tuple[Difference, ...] = ()
    awaits_restore: bool = False
    cancelled: bool = False
    problem: str = ""
    another: str = ""
    pause: float = 0.0
    repeated: bool = False

    @property
    def index(self) -> int:
        """The index of the current request."""
        return len(self.results)

    @property
    def done(self) -> int:
        """How many requests were done; they are the first ones."""
        results = self.results
        if results and results[-1].outcome != "done":  # it ended the target
            return len(results) - 1
        return len(results)

    @property
    def complete(self) -> bool:
        """All requests were done."""
        return self.done == self.count

    @property
    def all_results(self) -> tuple[RequestResult, ...]:
        """One result for each request; those not reached were not sent."""
        return self.results + (RequestResult("not sent"),) * (self.count - len(self.results))

    @property
    def error(self) -> str:
        """The message of ``failure``."""
        return self.failure.message if self.failure else ""


class InvalidTransitionError(ValueError):
    """The event cannot occur in this state: an error in the driver."""


# Transitions ---------------------------------------------------------------------------------------------------


def begin(count: int, *, wait: float = 0.0) -> TargetProgress:
    """Return the start of a target with ``count`` requests, whose restore may take ``wait`` seconds."""
    return _after_result(TargetProgress(count, wait))


def resume(progress: TargetProgress, *, sending: bool) -> TargetProgress:
    """Return the progress to continue with after a crash; ``sending``: the next request may have been sent."""
    if not sending:
        return _after_result(progress)
    in_doubt = InDoubt("the run was killed while the request was in progress")
    return _read_effects(replace(progress, tries=max(progress.tries, 1), failure=in_doubt, reads=0))


def step(progress: TargetProgress, event: Event, policy: RetryPolicy) -> TargetProgress:
    """Return what follows from an event; raise :class:`InvalidTransitionError` if it cannot occur in this state.

    An event settles at most one request: then there is one more result.
    """
    match progress.state, event:
        case State.READY, Journalled():
            return replace(progress, state=State.SENT, tries=progress.tries + 1)
        case ((State.READY | State.SETTLING | State.VERIFYING), AnotherClip(message)):
            return _leave_to_another_clip(progress, message)
        case State.READY, Blocked(message, in_doubt=True) if isinstance(progress.failure, Rejected):
            return _settle(progress, "unverified", f"{progress.error}; {message}")
        case State.READY, Blocked(message):
            return _end(replace(progress, problem=message))
        case ((State.READY | State.BACKING_OFF), RunCancelled()):
            return _end(replace(progress, cancelled=True))
        case State.BACKING_OFF, PauseEnded():
            return replace(progress, state=State.READY)
        case State.SENT, Accepted(status):
            return _settle(progress, "done", "", status)
        case State.SENT, NotSent():
            return _send_again(replace(progress, failure=event), None, policy)
        case State.SENT, (Rejected() | InDoubt()):
            return _read_effects(replace(progress, failure=event, reads=0))
        case State.SENT, Failed(message, status):
            return _settle(progress, "failed", message, status)
        case State.SETTLING, EffectsRead(verdict, detail):
            failure = progress.failure
            if detail and failure is not None:
                progress = replace(
                    progress, failure=replace(failure, message=f"{failure.message}; {detail}")
                )
            return _after_reading(progress, verdict, policy)
        case State.SETTLING, Unreadable(message):
            return _after_failed_reading(progress, message, policy)
        case State.WAITING_TO_SETTLE, PauseEnded():
            return _read_effects(progress)
        case State.VERIFYING, TargetRead():
            read = replace(progress, differences=event.differences, awaits_restore=event.restoring)
            return _after_verifying(read, event.elapsed, policy)
        case State.VERIFYING, Unreadable():
            return _after_failed_verifying(progress, event, policy)
        case ((State.WAITING_TO_VERIFY | State.WAITING_FOR_RESTORE), PauseEnded()):
            return replace(progress, state=State.VERIFYING)
        case State.WAITING_FOR_RESTORE, RunCancelled():
            return replace(progress, cancelled=True, state=State.FINISHED)
    raise InvalidTransitionError(f"{event} cannot occur in the state {progress.state.value}")


def abandon(progress: TargetProgress, why: str, *, cancelled: bool = True) -> TargetProgress:
    """Return the end of a target that must end at once; a request in progress is left unverified.

    ``cancelled``: the user stopped the run; else it is an error.
    """
    if progress.state is State.FINISHED:
        return progress
    if progress.state in {State.SENT, State.SETTLING, State.WAITING_TO_SETTLE}:
        message = f"{progress.error}; {why}" if progress.failure else why
        return _finish(_with_result(progress, "unverified", message))
    progress = replace(progress, problem=why)
    if progress.state in {State.READY, State.BACKING_OFF}:
        progress = _end(replace(progress, cancelled=cancelled))
    return _finish(progress)


def conclude(progress: TargetProgress) -> tuple[Outcome, str]:
    """Return the outcome of a finished target, and its message."""
    if progress.another:
        return "failed" if progress.results else "not attempted", progress.another
    # After it, nothing more was sent.
    if progress.results and progress.results[-1].outcome != "done":
        return _conclude_undone(progress, progress.results[-1])
    if not progress.complete:
        why = progress.problem or "stopped"
        if not progress.results:
            return "not attempted", why
        return "failed", f"{why}: {progress.done} of {progress.count} requests were sent"
    if progress.cancelled or progress.problem:
        return "unverified", progress.problem or "stopped while waiting for the restored file"
    if progress.awaits_restore:
        return "failed", f"not restored within {progress.wait:g} s"
    if not progress.differences:
        return "changed" if progress.count else "unchanged", ""
    is_misread = all(difference.shown_as for difference in progress.differences)
    return "unverified" if is_misread else "failed", "not as desired when read again"


def _conclude_undone(progress: TargetProgress, result: RequestResult) -> tuple[Outcome, str]:
    """Return the outcome of a target whose last request was not done, and its message."""
    message = f"request {progress.index} of {progress.count}: {result.message}"
    if result.outcome == "unverified":
        return "failed" if progress.differences else "unverified", message
    return "failed", message


def _finish(progress: TargetProgress) -> TargetProgress:
    return replace(progress, state=State.FINISHED)


def _end(progress: TargetProgress) -> TargetProgress:
    """End before the current request; it has failed only if it was sent and rejected."""
    if isinstance(progress.failure, Rejected):
        return _settle(progress, "failed", progress.error)
    return _after_result(replace(progress, tries=0, failure=None), ends=True)


def _leave_to_another_clip(progress: TargetProgress, message: str) -> TargetProgress:
    """Finish at once: nothing more is sent to a title that leads to another clip, and nothing is verified."""
    if isinstance(progress.failure, Rejected | InDoubt):
        progress = _with_result(progress, _outcome_unread(progress), f"{progress.error}; {message}")
    # Those that reached the clip are the first ones.
    reached = len([result for result in progress.results if result.outcome != "failed"])
    then = "nothing was sent to it"
    if reached:
        which = "request 1" if reached == 1 else f"requests 1 to {reached}"
        then = f"{which} may have reached it: look at both clips"
    return _finish(replace(progress, another=f"{message}; {then}", differences=()))


def _outcome_unread(progress: TargetProgress) -> RequestOutcome:
    """Return the outcome of a request whose effects cannot be read."""
    if isinstance(progress.failure, Rejected) and not progress.failure.may_be_done:
        return "failed"
    return "unverified"


def _send_again(
    progress: TargetProgress, retry_after: float | None, policy: RetryPolicy
) -> TargetProgress:
    """Send a request again that was certainly not done, within the limits of the policy."""
    if progress.tries >= policy.tries:
        times = "once" if progress.tries == 1 else f"{progress.tries} times"
        return _settle(progress, "failed", f"{progress.error} (tried {times})")
    if retry_after is None:
        seconds = _nth(policy.backoff, progress.tries - 1)
    elif retry_after > policy.max_retry_after:
        return _settle(
            progress, "failed", f"{progress.error}; the server asks to wait {retry_after:g} s"
        )
    else:
        seconds = max(retry_after, 0.0)
    return replace(progress, state=State.BACKING_OFF, pause=seconds)


def _settle(
    progress: TargetProgress, outcome: RequestOutcome, message: str, status: int | None = None
) -> TargetProgress:
    """Settle the current request; the next one follows only if it was done."""
    return _after_result(_with_result(progress, outcome, message, status))


def _after_result(progress: TargetProgress, *, ends: bool = False) -> TargetProgress:
    """Go on after the last result: the next request follows if every one so far was done, unless the target ends."""
    done = progress.done
    if done == progress.index < progress.count and not ends:
        return replace(progress, state=State.READY)
    if done:
        return replace(progress, state=State.VERIFYING, reads=1)
    return _finish(progress)


def _with_result(
    progress: TargetProgress, outcome: RequestOutcome, message: str, status: int | None = None
) -> TargetProgress:
    if status is None and isinstance(progress.failure, Rejected):
        status = progress.failure.status
    result = RequestResult(outcome, status, message, progress.tries)
    return replace(progress, results=(*progress.results, result), tries=0, failure=None, reads=0)


# Settling ------------------------------------------------------------------------------------------------------


def _read_effects(progress: TargetProgress) -> TargetProgress:
    return replace(progress, state=State.SETTLING, reads=progress.reads + 1)


def _after_reading(
    progress: TargetProgress, verdict: Extent, policy: RetryPolicy
) -> TargetProgress:
    failure = progress.failure
    if verdict == "all":
        return _settle(progress, "done", f"{progress.error}; but reading shows that it is done")
    if isinstance(failure, Rejected) and failure.status not in GATEWAY_STATUSES:
        return _settle_rejected(progress, failure, verdict, policy)
    if verdict in ("hidden", "unshown"):
        return _settle(
            progress, "unverified", f"{progress.error}; reading cannot show whether it is done"
        )
    seen = "only part of it" if verdict == "some" else "nothing of it"
    message = f"{progress.error}; reading shows {seen} done, but the server may still act"
    return _settle_later(progress, policy) or _settle(progress, "unverified", message)


def _settle_rejected(
    progress: TargetProgress, rejected: Rejected, verdict: Extent, policy: RetryPolicy
) -> TargetProgress:
    if verdict in ("none", "unshown") and rejected.status in BUSY_STATUSES:
        following = _send_again_if_busy(progress, rejected, policy)
        is_settled = following.index > progress.index
        if verdict == "none" or not is_settled:
            return following
    if verdict != "none" and rejected.may_be_done:
        shows = (
            "cannot show whether it is done"
            if verdict in ("hidden", "unshown")
            else "shows neither it nor what was before"
        )
        return _settle(progress, "unverified", f"{progress.error}; reading {shows}")
    partly = "; reading shows that part of it is done" if verdict == "some" else ""
    return _settle(progress, "failed", f"{progress.error}{partly}")


def _send_again_if_busy(
    progress: TargetProgress, rejected: Rejected, policy: RetryPolicy
) -> TargetProgress:
    """Send a request again that a busy server rejected; one that would be done twice, once reading has waited."""
    later = None
    if not rejected.repeatable:
        later = _look_longer(progress, rejected, policy)
    following = later or _send_again(progress, rejected.retry_after, policy)
    if rejected.repeatable or following.state is not State.BACKING_OFF:
        return following
    # At once: the pause is over, and the last read was after it.
    return replace(following, state=State.READY, repeated=True)


def _look_longer(
    progress: TargetProgress, rejected: Rejected, policy: RetryPolicy
) -> TargetProgress | None:
    """Read on before a request is sent again that would be done twice: a server may show late what it did.

    The pauses are those in which verification waits for what is shown late, and as long as the server asks to wait.
    """
    later = _settle_later(progress, policy)
    if later is not None:
        return later
    asked = rejected.retry_after or 0.0
    seconds = asked - sum(policy.read_pauses)
    has_waited = progress.reads > len(policy.read_pauses) + 1
    if has_waited or is_over(seconds) or asked > policy.max_retry_after:
        return None
    return replace(progress, state=State.WAITING_TO_SETTLE, pause=seconds)


def _after_failed_reading(
    progress: TargetProgress, message: str, policy: RetryPolicy
) -> TargetProgress:
    text = f"{progress.error}; and the target cannot be read: {message}"
    return _settle_later(progress, policy) or _settle(progress, _outcome_unread(progress), text)


def _settle_later(progress: TargetProgress, policy: RetryPolicy) -> TargetProgress | None:
    if progress.reads > len(policy.read_pauses):
        return None
    return replace(
        progress, state=State.WAITING_TO_SETTLE, pause=policy.read_pauses[progress.reads - 1]
    )


# Verifying -----------------------------------------------------------------------------------------------------


def _after_verifying(
    progress: TargetProgress, elapsed: float, policy: RetryPolicy
) -> TargetProgress:
    """Wait, and verify again, while what differs may only not show yet; else finish."""
    waiting = None
    if progress.awaits_restore:
        progress = replace(progress, reads=1)
        waiting = _wait_for_restore(progress, elapsed, policy)
    elif progress.differences or progress.repeated:  # what was sent twice may show twice only later
        waiting = _verify_later(progress, policy)
    return waiting or _finish(progress)


def _after_failed_verifying(
    progress: TargetProgress, event: Unreadable, policy: RetryPolicy
) -> TargetProgress:
    later = _verify_later(progress, policy)
    if later is None and progress.awaits_restore:
        later = _wait_for_restore(progress, event.elapsed, policy)
    return later or _finish(
        replace(progress, problem=f"sent, but the target cannot be read again: {event.message}")
    )


def _verify_later(progress: TargetProgress, policy: RetryPolicy) -> TargetProgress | None:
    """Read again shortly: a server may accept a write before it shows it. Not if the target has failed anyway."""
    if not progress.complete or progress.reads > len(policy.read_pauses):
        return None
    pause = policy.read_pauses[progress.reads - 1]
    return replace(progress, state=State.WAITING_TO_VERIFY, reads=progress.reads + 1, pause=pause)


def _wait_for_restore(
    progress: TargetProgress, elapsed: float, policy: RetryPolicy
) -> TargetProgress | None:
    """Wait for the restored file while time is left: a restore takes minutes (interface, «States»)."""
    left = progress.wait - elapsed
    if not progress.complete or is_over(left):
        return None
    pause = min(_nth(policy.restore_pauses, progress.restore_reads), left)
    reads = progress.restore_reads + 1
    return replace(progress, state=State.WAITING_FOR_RESTORE, restore_reads=reads, pause=pause)


def _nth(pauses: tuple[float, ...], index: int) -> float:
    """Return the pause at ``index``, the last one repeated."""
    return pauses[min(index, len(pauses) - 1)] if pauses else 0.0
