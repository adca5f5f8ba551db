"""What a failure shows about its server, and when the circuit breaker of the server opens.

The sets of statuses are the one policy: what is tried again (:mod:`msauto.server.http_client`, and for writes
:mod:`msauto.applying.states`), what slows a client down (:mod:`msauto.server.pacing`), and what opens a breaker.

While a plan is made, a read is tried several times before it counts as failed. The breaker opens at once if there is
no connection, or if the server rejects our account: asking again could lock it. It also opens after three reads in a
row without an answer, or with that of a busy server.

While a plan is applied, each of a thousand targets of a dead server would use up all its tries. The breaker is:

- *closed*: targets start freely.
- *half-open*: a target ended because the server could not be reached. Targets start one at a time, each after a pause,
  and have one try. Any answer closes the breaker.
- *open*: three such targets in a row ended, each started after the previous one ended; or the server rejected our
  account (401, 407, and 403 for a write). The remaining targets are not attempted; applying again continues with
  them. A 403 for a read may concern one folder alone, and stops nothing.
- *open for one kind of request*: the server answered it with the same rejection for three targets in a row, whether or
  not it names the target. It gets no more of it: targets that need it are not attempted, the others continue.

Every other failure concerns its target alone, and stops no other (inventory, «While applying»).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple
from urllib.parse import quote

from msgspec import Struct, field, structs

from msauto.errors import (
    InDoubtError,
    MissingError,
    NotFoundError,
    RejectedError,
    UnreachableError,
    UnreadableError,
    one_line,
)
from msauto.model.plan import CauseKind, Request
from msauto.model.requests import command_of
from msauto.model.result import RequestResult
from msauto.retry_policy import RetryPolicy

UNAUTHORIZED_STATUSES: Final = frozenset({401, 407})
GATEWAY_STATUSES: Final = frozenset({502, 504})
"""A gateway got no answer from the server."""
BUSY_STATUSES: Final = frozenset({429, 503})
"""The server itself has too much to do."""
OVERLOADED_STATUSES: Final = BUSY_STATUSES | {504}
"""Fewer requests at once may help."""
PARTIAL: Final = 206
"""A part of what was asked for."""
UNINFORMATIVE_STATUSES: Final = (
    GATEWAY_STATUSES | BUSY_STATUSES | UNAUTHORIZED_STATUSES | {403, PARTIAL}
)
"""Statuses that give no information about the requested object."""

Contact = Literal["answered", "busy", "silent", "unreachable", "unauthorized"]
"""An answer; one of a busy server; no answer; no connection; our account is rejected."""
Asked = Literal["read", "write", "download"]
_CAUSES: Final[Mapping[Contact | None, CauseKind]] = {
    "unreachable": "no connection", "silent": "no answer", "busy": "busy", "unauthorized": "account rejected"
}  # fmt: skip
PASSING: Final = frozenset[CauseKind]({"no connection", "no answer", "busy"})
"""Causes that may be over later: another attempt may help."""

_FAILURES_TO_OPEN: Final = 3


def contact_of(error: BaseException, asked: Asked = "read") -> Contact | None:
    """Return what an error shows about the server; ``None``: nothing.

    A lost *write* shows nothing, because the request itself may be the cause; the reads after it show more.
    """
    if isinstance(error, UnreachableError):
        return "unreachable"
    status = error.status if isinstance(error, RejectedError) else None
    if status in UNAUTHORIZED_STATUSES or (asked == "write" and status == 403):
        return "unauthorized"
    if isinstance(error, InDoubtError) or status in GATEWAY_STATUSES:
        return "silent" if asked == "read" else None
    if status in BUSY_STATUSES:
        return "busy"
    return "answered" if isinstance(error, RejectedError | UnreadableError) else None


REMEDIES: Final = {
    401: "check `auth` in the server's inventory entry",
    403: "check `auth` in the server's inventory entry, and the permissions of this user",
    407: "a proxy on the way requires authentication: reach the server without it",
    413: "send less at once",
    414: "lower `request_line` in the server's inventory entry",
    429: "the server has too many requests: set `requests_per_second`, or lower `connections`",
    503: "the server is busy or starting: try again later",
}
"""What to do about a status of HTTP."""


def account_remedy(status: int | None, asked: Asked, *, has_account: bool = True) -> str | None:
    """Return what to do if the server rejects our account; ``None`` for a status with another cause."""
    if status not in {401, 403}:
        return None
    if not has_account:
        return "requests are sent without an account: set `auth` in the server's inventory entry"
    if status == 401:
        return "the password, token or user name is refused: correct `auth` in the server's inventory entry"
    verb = "write" if asked == "write" else "read"
    return f"the account may not {verb} this: give it the right on the server, or name another account in `auth`"


def cause_of(error: BaseException) -> CauseKind | None:
    """Return what kind of cause an error of planning is; ``None``: none of these."""
    contact = contact_of(error)
    if contact in _CAUSES:
        return _CAUSES[contact]
    return "not found" if isinstance(error, MissingError | NotFoundError) else None


def kind_of(request: Request) -> str:
    """Return the kind of a request: its command, else its method and what it concerns.

    >>> kind_of(Request("POST", "/storage/NEWS@Film?command=SETFIELD&name=comment&val=Ready"))
    'SETFIELD'
    """
    command = command_of(request).get("command")
    if command:
        return command
    return f"{request.method} {request.effects[0].aspect}"


def _without(message: str, name: str) -> str:
    r"""Return a message without the name of a target, as it is or as in a path; a part of a word is not the name.

    >>> _without("'EP 1' is locked: /NEWS@EP%201", "EP 1")
    "'' is locked: /NEWS@"
    """
    names = "|".join(map(re.escape, (name, quote(name, safe=""))))
    return re.sub(rf"(?<!\w)(?:{names})(?!\w)", "", message)


class Rejection(NamedTuple):
    """The last answer to a kind of request: a rejection, and to how many targets in a row it was the same.

    ``common`` is its message without the name of the target.
    """

    status: int
    message: str
    common: str
    targets: int = 1

    def is_same(self, other: Rejection) -> bool:
        """Whether two targets were rejected in the same way: a server may name the target in its answer."""
        return self.status == other.status and (
            self.message == other.message or self.common == other.common
        )


class BreakerState(Struct, frozen=True):
    """The state of a circuit breaker, as a value.

    ``failures``: the targets in a row that ended because the server could not be reached. ``closings``: how often an
    answer has closed the breaker. ``reason``: the error that opened it. ``rejections``: by the kind of request.
    """

    failures: int = 0
    closings: int = 0
    unauthorized: bool = False
    reason: str = ""
    rejections: Mapping[str, Rejection] = {}

    @property
    def open(self) -> bool:
        """No further target may start."""
        return self.unauthorized or self.failures >= _FAILURES_TO_OPEN

    @property
    def half_open(self) -> bool:
        """Targets may start one at a time."""
        return self.failures > 0 and not self.open

    def answered(self) -> BreakerState:
        """Return the state after any answer."""
        if self.unauthorized or not self.failures:
            return self
        return BreakerState(closings=self.closings + 1, rejections=self.rejections)

    def after_read(self, error: BaseException) -> BreakerState:
        """Return the state after a read of planning, which failed each time that it was tried."""
        match contact_of(error):
            case "unauthorized":
                return self.rejected(one_line(error))
            case "unreachable":
                return structs.replace(self, failures=_FAILURES_TO_OPEN)
            case "silent" | "busy":
                return self.failed(self, one_line(error))
        return self.answered()

    def rejected(self, reason: str) -> BreakerState:
        """Return the state after the server rejected our account."""
        return structs.replace(self, unauthorized=True, reason=reason)

    def settled(self, request: Request, result: RequestResult, name: str) -> BreakerState:
        """Return the state after a request of the target ``name`` was settled; a kind that has stopped stays so."""
        kind = kind_of(request)
        rejections = dict(self.rejections)
        last = rejections.pop(kind, None)
        if last is not None and last.targets >= _FAILURES_TO_OPEN:
            return self
        if result.outcome != "done":
            if result.status is None:  # not an answer
                return self
            rejection = Rejection(result.status, result.message, _without(result.message, name))
            if last is not None and last.is_same(rejection):
                rejection = rejection._replace(targets=last.targets + 1)
            rejections[kind] = rejection
        return structs.replace(self, rejections=rejections)

    def failures_since_closed(self, start: BreakerState) -> int:
        """Return the failures at the start of a target; 0 if the breaker has closed since."""
        return min(self.failures, start.failures) if start.closings == self.closings else 0

    def failed(self, start: BreakerState, reason: str) -> BreakerState:
        """Return the state after a target that started in the state ``start`` could not reach the server.

        Targets that ran at the same time count as one failure.
        """
        failures = max(self.failures, self.failures_since_closed(start) + 1)
        return structs.replace(self, failures=failures, reason=self.reason or reason)

    def why_not(self, requests: Iterable[Request], server: str) -> str | None:
        """Return why requests may not be sent, and what to do; ``None``: they may."""
        if self.unauthorized:
            rejects = f"the server {server} rejects our account ({self.reason})"
            return f"{rejects}; check its `auth` and rights, then apply again"
        if self.failures >= _FAILURES_TO_OPEN:
            return f"the server {server} can no longer be reached ({self.reason}); once it can, apply again"
        if not self.rejections:
            return None
        for kind in map(kind_of, requests):
            last = self.rejections.get(kind)
            if last is not None and last.targets >= _FAILURES_TO_OPEN:
                return (
                    f"the server {server} rejected {kind} for {last.targets} targets in a row ({last.message}); "
                    "check the rights of the account, and `dialect`, then apply again"
                )
        return None


class CircuitBreaker(Struct):
    """The circuit breaker of one server in a run."""

    state: BreakerState = BreakerState()
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def update(self, state: BreakerState) -> None:
        """Set the state, and wake what waits for a change."""
        if state is not self.state:
            self.state = state
            self.wake()

    async def changed(self) -> None:
        """Wait until another target may start."""
        await self._changed.wait()

    def wake(self) -> None:
        """Let what waits check whether another target may start."""
        self._changed.set()
        self._changed = asyncio.Event()


class TargetContact:
    """What one target learns about its server, and reports to the circuit breaker; made when the target may start."""

    def __init__(self, breaker: CircuitBreaker) -> None:
        self.breaker = breaker
        self.shut_out = False  # to ask again could lock the account; of this target only
        self._start = breaker.state
        self._unreachable = ""  # why the server could not be reached at the last attempt

    def policy(self, policy: RetryPolicy) -> RetryPolicy:
        """Return the policy for the target now: it may try only once while the server may be unreachable."""
        state = self.breaker.state
        if state.unauthorized or (state.failures and state.failures_since_closed(self._start)):
            return policy.half_open
        return policy

    def answered(self) -> None:
        """Report an answer."""
        self._unreachable = ""
        if self.breaker.state.failures:
            self.breaker.update(self.breaker.state.answered())

    def failed(self, error: Exception, asked: Asked) -> None:
        """Report what an error shows about the server."""
        contact = contact_of(error, asked)
        if contact == "unauthorized":
            self._unreachable = ""
            self.shut_out = getattr(error, "status", None) in UNAUTHORIZED_STATUSES
            self.breaker.update(self.breaker.state.rejected(one_line(error)))
        elif contact in {"unreachable", "silent"}:
            self._unreachable = one_line(error)
        elif contact is not None:
            self.answered()

    def settled(self, request: Request, result: RequestResult, name: str) -> None:
        """Report what came of a request of the target ``name``."""
        if result.outcome == "done" and not self.breaker.state.rejections:
            return
        self.breaker.update(self.breaker.state.settled(request, result, name))

    def end(self, *, failed: bool) -> None:
        """Report the end of the target: a failure counts if the server could not be reached at the last attempt."""
        if failed and self._unreachable:
            self.breaker.update(self.breaker.state.failed(self._start, self._unreachable))
