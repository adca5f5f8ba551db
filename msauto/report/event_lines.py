"""Events as JSON lines (``--events``), for programs that follow a command: one value for each line, and its schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, get_args

from msgspec import Meta, Struct

from msauto.codec import describe_types, dump, schema_document
from msauto.model import events
from msauto.model.plan import Kind, Refusal, Summary
from msauto.model.result import Outcome, RequestOutcome
from msauto.report.json import without_hidden_signs
from msauto.version import __version__

_DOWNLOAD_PAUSE: Final = 1.0
"""Seconds between two lines about the parts of downloads."""
_REFUSALS: Final = 20
_LONGEST: Final = 500
"""The longest message in characters: a line stays below the size that a pipe takes at once."""


Count = Annotated[int, Meta(ge=0)]


class EventTarget(Struct, frozen=True):
    """The target that an event is about.

    Attributes:
        server: its name in the inventory
        database: its media database; empty for an RSS channel
        kind: asset, rss_channel or database
        name: its title or name
    """

    server: str
    database: str
    kind: Kind
    name: str


class Progress(Struct, frozen=True):
    """How much is done, or how much there is.

    Attributes:
        targets: targets
        requests: requests; 0 while planning
    """

    targets: Count
    requests: Count = 0


AboutTarget = Annotated[EventTarget, Meta(description="which target")]
Index = Annotated[int, Meta(ge=0, description="which request of the target, from 0")]
Tries = Annotated[int, Meta(ge=0, description="how often the request was sent, this time included")]


class EventLine(Struct, frozen=True, tag_field="type"):
    """What every line begins with."""

    v: Annotated[Literal[1], Meta(description="the version of this format")]
    seq: Annotated[int, Meta(ge=1, description="the number of the line, from 1")]
    time: Annotated[str, Meta(description="when, ISO 8601 in UTC")]
    elapsed: Annotated[float, Meta(ge=0, description="seconds since the command began")]


class PlanningStartedLine(EventLine, frozen=True, tag="planning_started"):
    """Planning begins: nothing was read yet.

    Attributes:
        servers: the servers
        msauto: the version of msauto
    """

    servers: tuple[str, ...]
    msauto: str


class TargetsFoundLine(EventLine, frozen=True, tag="targets_found"):
    """The targets of one server are known.

    Attributes:
        server: the server
        targets: how many targets it has
    """

    server: str
    targets: Count


class TargetPlannedLine(EventLine, frozen=True, tag="target_planned"):
    """A target is read and compared.

    Attributes:
        state: what came of it
        changes: how many changes it needs
        requests: how many requests make them
        error: why it cannot be planned; empty: it can
        reason: why it is skipped; empty: it is not
        done: the targets planned so far
    """

    target: AboutTarget
    state: events.PlannedState
    changes: Count
    requests: Count
    error: str
    reason: str
    done: Progress


class PlanningEndedLine(EventLine, frozen=True, tag="planning_ended"):
    """The plan is complete.

    Attributes:
        summary: the counts of the plan
        refusals: the limits that it exceeds, the first 20
    """

    summary: Summary
    refusals: tuple[Refusal, ...]


class RunStartedLine(EventLine, frozen=True, tag="run_started"):
    """Applying begins: the run is recorded, nothing was sent yet.

    Attributes:
        run: its id in the history
        total: what will be done
    """

    run: str
    total: Progress


class TargetStartedLine(EventLine, frozen=True, tag="target_started"):
    """The first request of a target is about to be sent."""

    target: AboutTarget


class RequestSendingLine(EventLine, frozen=True, tag="request_sending"):
    """A request is recorded in the ledger, and sent now.

    Attributes:
        method: the HTTP method
    """

    target: AboutTarget
    index: Index
    tries: Tries
    method: str


class RequestInDoubtLine(EventLine, frozen=True, tag="request_in_doubt"):
    """The answer to a request is lost: msauto reads the target to find out what the server did.

    Attributes:
        reason: how the answer was lost
    """

    target: AboutTarget
    index: Index
    reason: str


class RequestSettledLine(EventLine, frozen=True, tag="request_settled"):
    """The outcome of a request is known, or known to be unverified.

    Attributes:
        outcome: what came of it
        status: the HTTP status of the answer; null: no answer
        message: why it failed
        done: what is done so far
    """

    target: AboutTarget
    index: Index
    tries: Tries
    outcome: RequestOutcome
    status: int | None
    message: str
    done: Progress


class DownloadRequestedLine(EventLine, frozen=True, tag="download_requested"):
    """A file is requested; the server may be creating it.

    Attributes:
        time_limit: seconds without a byte after which it fails
    """

    target: AboutTarget
    index: Index
    time_limit: float


class DownloadReceivedLine(EventLine, frozen=True, tag="download_received"):
    """A part of a file has arrived.

    Attributes:
        received: bytes received so far
        total: the size of the file; null: the server does not report it
    """

    target: AboutTarget
    index: Index
    received: Count
    total: int | None


class RestoreWaitingLine(EventLine, frozen=True, tag="restore_waiting"):
    """All requests of a target are done, but the high-resolution file is not restored yet.

    Attributes:
        waited: seconds waited so far
        wait: seconds waited at most
    """

    target: AboutTarget
    waited: float
    wait: float


class TargetFinishedLine(EventLine, frozen=True, tag="target_finished"):
    """The outcome of a target is known.

    Attributes:
        outcome: what came of it
        message: why it is not as desired
        differences: how many things are not as desired when read again
        done: what is done so far
    """

    target: AboutTarget
    outcome: Outcome
    message: str
    differences: Count
    done: Progress


class RunEndedLine(EventLine, frozen=True, tag="run_ended"):
    """Applying ends.

    Attributes:
        run: its id in the history
        ok: everything is done and verified
        interrupted: it was stopped
        targets: how many targets have each outcome
    """

    run: str
    ok: bool
    interrupted: bool
    targets: dict[str, int]


class CommandEndedLine(EventLine, frozen=True, tag="command_ended"):
    """The last line: without it, the command was killed.

    Attributes:
        code: the exit code
        reason: why it is not 0; may be empty
    """

    code: int
    reason: str


LINES: Final[Mapping[type, type[Any]]] = dict(
    zip(get_args(events.Event), EventLine.__subclasses__(), strict=True)
)
"""The line of each event: both are declared in the same order."""


class EventLines:
    """Turns events into lines, and counts what is done. ``now`` returns the time as text, ``monotonic`` seconds."""

    def __init__(self, now: Callable[[], str], monotonic: Callable[[], float]) -> None:
        self._now = now
        self._monotonic = monotonic
        self._began = monotonic()
        self._download_shown = -_DOWNLOAD_PAUSE
        self._seq = 0
        self._targets = self._requests = 0

    def line(self, event: events.Event) -> str | None:
        """Return the JSON of an event, with its line end; ``None`` for most of the parts of a download."""
        if isinstance(event, events.RunStarted):
            self._targets = self._requests = 0
        self._targets += isinstance(event, events.TargetPlanned | events.TargetFinished)
        self._requests += isinstance(event, events.RequestSettled)
        elapsed = self._monotonic() - self._began
        if isinstance(event, events.DownloadReceived) and event.received != event.total:
            if elapsed < self._download_shown + _DOWNLOAD_PAUSE:
                return None
            self._download_shown = elapsed
        self._seq += 1
        line = LINES[type(event)]
        done = Progress(self._targets, self._requests)
        own = (
            _value(name, event, done)
            for name in line.__struct_fields__[len(EventLine.__struct_fields__) :]
        )
        text = dump(line(1, self._seq, self._now(), round(elapsed, 3), *own))
        return f"{without_hidden_signs(text)}\n"


def _value(name: str, event: Any, done: Progress) -> Any:
    """Return a value of a line: what the event, or its result, has by that name, as short as a line needs it."""
    match name, event:
        case "msauto", _:
            return __version__
        case "done", _:
            return done
        case "total", events.RunStarted():
            return Progress(event.targets, event.requests)
        case "method", _:
            return event.target.requests[event.index].method
        case "targets", events.RunEnded():
            return event.result.counts
        case "target", events.TargetPlanned():
            return EventTarget(event.server, event.database, event.kind, event.name)
    value = getattr(event if hasattr(event, name) else event.result, name)
    match name:
        case "target":
            return EventTarget(value.server, value.database, value.kind, value.name)
        case "error" | "message" | "reason":
            if len(value) <= _LONGEST:
                return value
            return f"{value[: _LONGEST - 1]}…"
        case "refusals":
            return value[:_REFUSALS]
        case "differences":
            return len(value)
        case "waited":
            return round(value, 3)
    return value


def events_schema() -> dict[str, Any]:
    """Return the JSON Schema of one line (``msauto schema events``)."""
    roots = []
    parts: dict[str, Any] = {}
    for kind in LINES.values():
        root, described = describe_types(kind)
        line = described[kind.__name__]
        line["properties"]["type"]["description"] = "what happened"
        summary, _, _ = str(kind.__doc__).partition("\n")
        roots.append(root)
        parts |= described | {kind.__name__: {"description": summary, **line}}
    return schema_document("msauto event", {"oneOf": roots}, parts)
