"""The values of a target's life while it is applied: its state, what can happen, what is to be done next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from msauto.model.result import Difference, RequestResult
from msauto.verification.verifying import Verdict


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to try and to look, in seconds.

    ``tries``: how often a request may be sent in all, where it is certain that it was not done; ``backoff`` the
    pauses between. ``looks``: the pauses between reads that look for what a request should have done.
    ``restore``: the pauses between looks for a restored file, the last one repeated. ``doubt``: the pauses before
    the next target of a server that could not be reached (:mod:`.circuit_breaker`), the last one repeated.
    """

    tries: int = 3
    backoff: tuple[float, ...] = (0.5, 2.0)
    retry_after: float = 60.0  # a server that asks for more patience than this gets none
    looks: tuple[float, ...] = (0.2, 0.8, 2.0, 4.0)
    restore: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0, 15.0)
    doubt: tuple[float, ...] = (2.0, 10.0)

    @property
    def in_doubt(self) -> RetryPolicy:
        """The patience with a server of which nobody knows whether it is still there: once, without back-off."""
        return replace(self, tries=1, looks=())


class State(Enum):
    """Where a target is in its life."""

    READY = "ready"
    SENDING = "sending"
    BACKING_OFF = "backing off"
    SETTLING = "settling"
    PAUSING = "pausing"
    PROVING = "proving"
    PROVING_LATER = "proving later"
    RESTORING = "restoring"
    OVER = "over"


# Events --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Journalled:
    """The ledger holds, durably, that the request is about to be sent."""


@dataclass(frozen=True, slots=True)
class NotJournalled:
    """The ledger cannot be written: nothing more may be sent."""

    message: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The server accepted the request."""

    status: int


@dataclass(frozen=True, slots=True)
class NotSent:
    """Certain: the server has seen nothing of it."""

    message: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """The server answered with an error; ``retry_after`` seconds if it said so."""

    status: int
    message: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """Certain: it was not done, and trying again would not help (a download, whose reads were tried again already)."""

    message: str
    status: int | None = None


@dataclass(frozen=True, slots=True)
class AnswerLost:
    """The fate of the request is unknown."""

    message: str


@dataclass(frozen=True, slots=True)
class ExpectationRead:
    """The target was read again, to settle one request."""

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The target could not be read again; ``elapsed`` seconds since all was sent."""

    message: str
    elapsed: float = 0.0


@dataclass(frozen=True, slots=True)
class Verified:
    """The target was read again after its last request; ``elapsed`` seconds since then."""

    differences: tuple[Difference, ...] = ()
    elapsed: float = 0.0


@dataclass(frozen=True, slots=True)
class PauseEnded:
    """The pause is over."""


@dataclass(frozen=True, slots=True)
class RunCancelled:
    """A person wants no new requests; comes where a request would begin, or instead of waiting."""


Event = (
    Journalled
    | NotJournalled
    | Answered
    | NotSent
    | Rejected
    | Failed
    | AnswerLost
    | ExpectationRead
    | Unreadable
    | Verified
    | PauseEnded
    | RunCancelled
)  # fmt: skip

# Commands ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WriteAhead:
    """Journal that the request ``index`` is about to be sent → Journalled, NotJournalled, Stopped."""

    index: int


@dataclass(frozen=True, slots=True)
class Send:
    """Send the request once → Answered, NotSent, Rejected, Failed, Lost."""

    index: int


@dataclass(frozen=True, slots=True)
class ReadExpectation:
    """Read what the request should have done → Seen, Unreadable."""

    index: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait → Waited, or Stopped where ``stoppable``. ``aside``: without holding a worker's place."""

    seconds: float
    stoppable: bool = False
    aside: bool = False


@dataclass(frozen=True, slots=True)
class Verify:
    """Read the target and compare it with what the requests that are done should show → Proved, Unreadable."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing is left to do."""


Command = WriteAhead | Send | ReadExpectation | Pause | Verify | Finish


@dataclass(frozen=True, slots=True)
class TargetProgress:
    """How far a target has come. ``results`` holds the settled requests, so its length is the live one's index.

    ``trouble`` is why the live request is not simply done; ``looks`` counts reads since then, ``polls`` the looks
    for a restored file; ``wait`` is how long that may take. ``problem`` tells what kept the target from its end.
    """

    count: int
    wait: float = 0.0
    state: State = State.READY
    results: tuple[RequestResult, ...] = ()
    tries: int = 0
    trouble: NotSent | Rejected | AnswerLost | None = None
    looks: int = 0
    polls: int = 0
    differences: tuple[Difference, ...] = ()
    stopped: bool = False
    problem: str = ""

    @property
    def index(self) -> int:
        """The request that is being seen to."""
        return len(self.results)

    @property
    def done(self) -> int:
        """How many requests were done; they are the first ones."""
        return sum(result.outcome == "done" for result in self.results)

    @property
    def whole(self) -> bool:
        """All requests are done."""
        return self.done == self.count

    @property
    def all_results(self) -> tuple[RequestResult, ...]:
        """One result for each request; those never reached were not sent."""
        return self.results + (RequestResult("not sent"),) * (self.count - len(self.results))


class Transition(NamedTuple):
    """What follows from an event. ``settled`` is the request that the event settled, the last of ``results``."""

    progress: TargetProgress
    command: Command
    settled: int | None = None
