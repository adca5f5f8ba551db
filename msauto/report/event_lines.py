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


class EventTarget(Struct, frozen=True):
    """The target that an event is about."""

    server: Annotated[str, Meta(description="its name in the inventory")]
    database: Annotated[str, Meta(description="its media database; empty for an RSS channel")]
    kind: Annotated[Kind, Meta(description="asset, rss_channel or database")]
    name: Annotated[str, Meta(description="its title or name")]


class Progress(Struct, frozen=True):
    """How much is done, or how much there is."""

    targets: Annotated[int, Meta(ge=0, description="targets")]
    requests: Annotated[int, Meta(ge=0, description="requests; 0 while planning")] = 0


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
    """Planning begins: nothing was read yet."""

    servers: Annotated[tuple[str, ...], Meta(description="the servers")]
    msauto: Annotated[str, Meta(description="the version of msauto")]


class TargetsFoundLine(EventLine, frozen=True, tag="targets_found"):
    """The targets of one server are known."""

    server: Annotated[str, Meta(description="the server")]
    targets: Annotated[int, Meta(ge=0, description="how many targets it has")]


class TargetPlannedLine(EventLine, frozen=True, tag="target_planned"):
    """A target is read and compared."""

    target: AboutTarget
    state: Annotated[events.PlannedState, Meta(description="what came of it")]
    changes: Annotated[int, Meta(ge=0, description="how many changes it needs")]
    requests: Annotated[int, Meta(ge=0, description="how many requests make them")]
    error: Annotated[str, Meta(description="why it cannot be planned; empty: it can")]
    reason: Annotated[str, Meta(description="why it is skipped; empty: it is not")]
    done: Annotated[Progress, Meta(description="the targets planned so far")]


class PlanningEndedLine(EventLine, frozen=True, tag="planning_ended"):
    """The plan is complete."""

    summary: Annotated[Summary, Meta(description="the counts of the plan")]
    refusals: Annotated[
        tuple[Refusal, ...], Meta(description="the limits that it exceeds, the first 20")
    ]


class RunStartedLine(EventLine, frozen=True, tag="run_started"):
    """Applying begins: the run is recorded, nothing was sent yet."""

    run: Annotated[str, Meta(description="its id in the history")]
    total: Annotated[Progress, Meta(description="what will be done")]


class TargetStartedLine(EventLine, frozen=True, tag="target_started"):
    """The first request of a target is about to be sent."""

    target: AboutTarget


class RequestSendingLine(EventLine, frozen=True, tag="request_sending"):
    """A request is recorded in the ledger, and sent now."""

    target: AboutTarget
    index: Index
    tries: Tries
    method: Annotated[str, Meta(description="the HTTP method")]


class RequestInDoubtLine(EventLine, frozen=True, tag="request_in_doubt"):
    """The answer to a request is lost: msauto reads the target to find out what the server did."""

    target: AboutTarget
    index: Index
    reason: Annotated[str, Meta(description="how the answer was lost")]


class RequestSettledLine(EventLine, frozen=True, tag="request_settled"):
    """The outcome of a request is known, or known to be unverified."""

    target: AboutTarget
    index: Index
    tries: Tries
    outcome: Annotated[RequestOutcome, Meta(description="what came of it")]
    status: Annotated[
        int | None, Meta(description="the HTTP status of the answer; null: no answer")
    ]
    message: Annotated[str, Meta(description="why it failed")]
    done: Annotated[Progress, Meta(description="what is done so far")]


class DownloadRequestedLine(EventLine, frozen=True, tag="download_requested"):
    """A file is requested; the server may be creating it."""

    target: AboutTarget
    index: Index
    time_limit: Annotated[float, Meta(description="seconds without a byte after which it fails")]


class DownloadReceivedLine(EventLine, frozen=True, tag="download_received"):
    """A part of a file has arrived."""

    target: AboutTarget
    index: Index
    received: Annotated[int, Meta(ge=0, description="bytes received so far")]
    total: Annotated[
        int | None, Meta(description="the size of the file; null: the server does not report it")
    ]


class RestoreWaitingLine(EventLine, frozen=True, tag="restore_waiting"):
    """All requests of a target are done, but the high-resolution file is not restored yet."""

    target: AboutTarget
    waited: Annotated[float, Meta(description="seconds waited so far")]
    wait: Annotated[float, Meta(description="seconds waited at most")]


class TargetFinishedLine(EventLine, frozen=True, tag="target_finished"):
    """The outcome of a target is known."""

    target: AboutTarget
    outcome: Annotated[Outcome, Meta(description="what came of it")]
    message: Annotated[str, Meta(description="why it is not as desired")]
    differences: Annotated[
        int, Meta(ge=0, description="how many things are not as desired when read again")
    ]
    done: Annotated[Progress, Meta(description="what is done so far")]


class RunEndedLine(EventLine, frozen=True, tag="run_ended"):
    """Applying ends."""

    run: Annotated[str, Meta(description="its id in the history")]
    ok: Annotated[bool, Meta(description="everything is done and verified")]
    interrupted: Annotated[bool, Meta(description="it was stopped")]
    targets: Annotated[dict[str, int], Meta(description="how many targets have each outcome")]


class CommandEndedLine(EventLine, frozen=True, tag="command_ended"):
    """The last line: without it, the command was killed."""

    code: Annotated[int, Meta(description="the exit code")]
    reason: Annotated[str, Meta(description="why it is not 0; may be empty")]


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
        roots.append(root)
        parts |= described | {kind.__name__: {"description": kind.__doc__, **line}}
    return schema_document("msauto event", {"oneOf": roots}, parts)
