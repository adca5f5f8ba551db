"""The results of a plan: frozen values, and their JSON form."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, get_args

from msgspec import Struct

from msauto.codec import dump, load
from msauto.model.plan import (
    InputHash,
    Plan,
    PlannedServer,
    PlanOptions,
    SkippedTarget,
    Target,
)
from msauto.model.snapshot import AspectName, Json, Thing
from msauto.primitives.iso_times import parse_datetime
from msauto.secrets.redaction import HIDDEN

Outcome = Literal[
    "changed",
    "unchanged",
    "kept",
    "skipped",
    "failed",
    "unverified",
    "not attempted",
]
"""*kept* (what others changed) and *skipped* are only counted: such targets are not among those of a run."""
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
"""All outcomes, in the order in which they are counted."""
COUNT_OF: Final = {outcome: outcome.replace(" ", "_") for outcome in OUTCOMES}
"""The name of the count of each outcome, in JSON and in the recap: ``not_attempted``."""
RequestOutcome = Literal["done", "failed", "unverified", "not sent"]


class ReportedProblem(Struct, frozen=True):
    """A problem in JSON: of a text, of the usage, of a target or of a server.

    Attributes:
        code: what kind: one of the error index, or usage, planning, refused, locked, ledger,
            server, error
        file: the file, if it is in a file
        line: from 1; 0 is the whole file
        column: from 1
        message: what is wrong
        remedy: what to do
        excerpt: the line with a caret under the place
        level: error or warning
    """

    code: str
    file: str | None
    line: int
    column: int
    message: str
    remedy: str
    excerpt: str
    level: str


class Difference(Struct, frozen=True, omit_defaults=True):
    """A thing that is not as desired when read again; ``why``, where the values do not show it.

    ``shown_as``: the new key under which it seems to show, because the dialect does not fit.
    """

    aspect: AspectName
    key: str
    desired: Json
    live: Json
    why: str = ""
    shown_as: str = ""

    @property
    def thing(self) -> Thing:
        """The aspect and the key."""
        return self.aspect, self.key


class RequestResult(Struct, frozen=True):
    """The result of one request: ``tries`` counts how often it was sent (more than one only where that is safe)."""

    outcome: RequestOutcome
    status: int | None = None
    message: str = ""
    tries: int = 0


UNTREATED_NOTE: Final = "untreated by "
"""Before the playbooks: the note of a run on what it found as desired, kept, and skipped (:class:`Untreated`)."""
COUNTED_BY_SERVER: Final = "positions"
"""The note on a run that an older msauto recorded: its positions are as the server counts them."""
LEFT_CLIP: Final = "clip"
"""The key of the clip's identity in what is ``left``."""


class TargetResult(Struct, frozen=True):
    """The result of one target; ``requests`` is parallel to ``target.requests``.

    ``left`` is how the run left each thing that it made or changed, as verification read it: its live key and its value
    by aspect and key, ``marker new 1``; and the clip (``LEFT_CLIP``). The ledger keeps it, a finished run does not.
    ``notes`` name what changed meanwhile besides.
    ``seen`` counts the things that verification found, ``unseen`` the aspects of those that reading cannot show.
    ``seconds``: how long it took, waiting included.
    """

    target: Target
    outcome: Outcome
    message: str = ""
    requests: tuple[RequestResult, ...] = ()
    differences: tuple[Difference, ...] = ()
    left: Mapping[str, Json] = {}
    seen: int = 0
    unseen: tuple[AspectName, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return a short form, as that of its target."""
        return f"<TargetResult {self.target.server}: {self.target.kind} {self.target.name!r}: {self.outcome}>"


class Result(Struct, frozen=True):
    """The results of a run: one result for each target of the plan, in its order.

    ``unreachable`` names the servers that did not answer at the end. ``seconds``: how long applying took, ``None`` if
    that is not known; ``server_seconds``: from the start of the first target of a server to the end of its last.
    """

    run: str
    plan: Plan
    targets: tuple[TargetResult, ...]
    interrupted: bool = False
    unreachable: frozenset[str] = frozenset()
    seconds: float | None = None
    server_seconds: Mapping[str, float] = {}

    def __repr__(self) -> str:
        """Return a short form, as that of its plan."""
        return f"<Result {self.run}: {len(self.targets)} targets{', interrupted' if self.interrupted else ''}>"

    @property
    def ok(self) -> bool:
        """Whether everything is done and verified."""
        outcomes = {target.outcome for target in self.targets}
        return outcomes <= {"changed", "unchanged"} and not self.plan.left_out

    @property
    def server_counts(self) -> dict[str, dict[str, int]]:
        """How many targets of each server have each outcome, by :data:`COUNT_OF`; those that it did not treat, too."""
        counts: dict[str, Counter[str]] = {}
        for server in self.plan.servers:
            counts[server.name] = Counter(unchanged=server.unchanged, kept=server.kept)
        for skipped in self.plan.skipped:
            counts.setdefault(skipped.server, Counter())["skipped"] += 1
        for result in self.targets:
            counts.setdefault(result.target.server, Counter())[COUNT_OF[result.outcome]] += 1
        return {
            server: {key: outcomes[key] for key in COUNT_OF.values()}
            for server, outcomes in counts.items()
        }

    @property
    def counts(self) -> dict[str, int]:
        """How many targets have each outcome, by :data:`COUNT_OF`."""
        total = dict.fromkeys(COUNT_OF.values(), 0)
        for counts in self.server_counts.values():
            for key, number in counts.items():
                total[key] += number
        return total


class Untreated(Struct, frozen=True):
    """What a plan has besides its targets; very many may be skipped every night."""

    servers: tuple[PlannedServer, ...] = ()
    skipped: tuple[SkippedTarget, ...] = ()

    def pack(self) -> str:
        """Return the text of a note."""
        return b64encode(zlib.compress(dump(self).encode())).decode()

    @classmethod
    def unpack(cls, note: str) -> Untreated:
        """Return what a note has; nothing of an empty one."""
        return load(cls, zlib.decompress(b64decode(note)).decode()) if note else cls()


def format_time(time: datetime) -> str:
    """Return a time as the ledger writes it, e.g. ``2026-11-20T10:15:00.123Z``."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(text: str) -> datetime:
    """Return the time of a text that :func:`format_time` wrote."""
    return parse_datetime(text).astimezone(UTC)


def started(run: str) -> str:
    """Return when a run began, as the ledger writes times: its name begins with that.

    >>> started("20261120T101500Z-ab12")
    '2026-11-20T10:15:00.000Z'
    """
    return format_time(parse_datetime(run.partition("-")[0]))


def seconds_between(started: str | None, ended: str | None) -> float:
    """Return a duration; 0 for what did not run, or if the clock was set back meanwhile."""
    if started is None or ended is None:
        return 0.0
    return max(0.0, (parse_time(ended) - parse_time(started)).total_seconds())


RunStatus = Literal[
    "running", "ok", "failed", "interrupted", "died", "error", "refused", "locked", "missed"
]
"""``died``: the process ended without closing the run. ``failed``: something is not done, verified or as desired.

Nothing was written: ``error`` (bad input, a target that cannot be planned), ``refused`` (you must decide),
``locked`` (by another run), ``missed`` (a batch that was started outside its window). A job that only plans is
``ok``, too.
"""

RequestState = Literal["planned", "sending"] | RequestOutcome
"""``planned``: never sent. ``sending``: it may have been sent, and is not settled."""


class RunSummary(Struct, frozen=True):
    """One run, an attempt that wrote nothing, or a batch.

    Times are ISO 8601 in UTC; ``ended`` is ``None``: it runs or died.

    Its fields are the keys of ``msauto history --format json``. ``summary`` counts what the plan held (the fields of
    :class:`~msauto.model.plan.Summary`), and how many of its requests were sent, or tried (``sent``). After the end it
    also counts the outcomes of the targets (changed, failed, unverified, not_attempted). For an
    attempt that wrote nothing it counts what was planned. ``code`` is the exit code, ``reason`` why it was not 0.
    ``folder`` is the working directory of the command. ``repository`` is the folder of the ``msauto.toml`` or
    ``.git`` above the playbooks, ``settings`` the path of the settings file that was used. ``batch``, ``job`` and
    ``attempt`` (from 1) are those of a run in a batch; a batch itself has no job.
    """

    run: str
    started: str
    ended: str | None
    status: RunStatus
    playbooks: tuple[str, ...]
    summary: dict[str, int]
    code: int | None = None
    reason: str = ""
    user: str = ""
    host: str = ""
    folder: str = ""
    batch: str = ""
    job: str = ""
    attempt: int | None = None
    repository: str = ""
    settings: str = ""

    def __post_init__(self) -> None:
        # Anything but a time is an error here.
        seconds_between(self.started, self.ended or self.started)

    def __repr__(self) -> str:
        """Return a short form: a list of runs is long."""
        return f"<Run {self.run}: {self.status}, {' '.join(self.playbooks)}>"

    @property
    def is_batch(self) -> bool:
        """Whether it is a batch, not a job of one."""
        return bool(self.batch) and not self.job

    @property
    def who(self) -> str:
        """The user and the host, as far as they are known."""
        return user_at(self.user, self.host)

    def is_of(self, repository: Path) -> bool:
        """Return whether it belongs to a repository: its playbooks are below it, or it was started there."""
        for place in (self.repository, self.folder):
            if place and Path(place).is_relative_to(repository):
                return True
        return False


def user_at(user: str, host: str) -> str:
    """Return ``user@host``, as far as they are known."""
    return "@".join(filter(None, (user, host)))


class RequestRecord(Struct, frozen=True):
    """What the ledger knows of one request; parallel to ``target.requests``. Times are ISO 8601 in UTC."""

    state: RequestState
    tries: int = 0
    status: int | None = None
    message: str = ""
    sent: str | None = None
    settled: str | None = None

    @property
    def result(self) -> RequestResult:
        """The result as far as it is known: a request that may have been sent, and is not settled, is unverified."""
        outcome: RequestOutcome = "unverified"
        if self.state == "planned":
            outcome = "not sent"
        elif self.state != "sending":
            outcome = self.state
        return RequestResult(outcome, self.status, self.message, self.tries)


_MAYBE_DONE: Final[frozenset[RequestState]] = frozenset({"done", "unverified", "sending"})


class TargetRecord(Struct, frozen=True):
    """One target of a run: as planned, and what came of it (``outcome`` ``None``: the run died before that).

    ``left`` and ``notes`` are those of its result.
    """

    target: Target
    requests: tuple[RequestRecord, ...] = ()
    begun: str | None = None
    outcome: Outcome | None = None
    message: str = ""
    differences: tuple[Difference, ...] = ()
    left: Mapping[str, Json] = {}
    notes: tuple[str, ...] = ()

    @property
    def made(self) -> dict[int, set[RequestState]]:
        """The changes of which something was sent, unless it is certain that none of it was done, by their numbers.

        Each has the states of its requests.
        """
        states: dict[int, set[RequestState]] = {}
        for request, known in zip(self.target.requests, self.requests, strict=False):
            for number in request.changes:
                states.setdefault(number, set()).add(known.state)
        made = {}
        for number in sorted(states):
            if not _MAYBE_DONE.isdisjoint(states[number]):
                made[number] = states[number]
        return made

    @property
    def result(self) -> TargetResult:
        """The result as far as it is known; without an outcome, the requests show how far the target came."""
        requests = tuple([request.result for request in self.requests])
        outcome = self.outcome
        message = self.message
        if outcome is None:
            outcomes = {request.outcome for request in requests}
            outcome = "not attempted" if outcomes <= {"not sent"} else "failed"
            if "unverified" in outcomes:
                outcome = "unverified"
            message = message or "the run ended before this target was done"
        return TargetResult(
            self.target,
            outcome,
            message,
            requests,
            self.differences,
            self.left,
            seconds=seconds_between(self.begun, max(self.times, default=None)),
            notes=self.notes,
        )

    @property
    def times(self) -> list[str]:
        """When it was begun, and its requests were settled."""
        times = [self.begun, *(request.settled for request in self.requests)]
        return [time for time in times if time]


class PastTarget(Struct, frozen=True):
    """A target as one run planned and left it: a page of the journal of a clip."""

    run: RunSummary
    record: TargetRecord

    def __repr__(self) -> str:
        """Return a short form."""
        return f"<PastTarget {self.run.run}: {self.record.target.name!r}: {self.record.outcome}>"


class RunDetails(Struct, frozen=True):
    """Everything about one run. ``pid`` and ``host`` are those of its process.

    ``changed_servers``: the names of the servers on which it may have changed anything, in its order.

    ``notes`` is what was recorded besides the plan: ``override_freeze`` holds the reason that the user gave. ``batch``
    is the summary of a batch, as its JSON has it.
    """

    summary: RunSummary
    pid: int
    host: str
    msauto: str
    targets: Sequence[TargetRecord] = ()
    changed_servers: Collection[str] = ()
    notes: Mapping[str, str] = {}
    batch: Mapping[str, Json] = {}

    def __repr__(self) -> str:
        """Return a short form."""
        return (
            f"<RunDetails {self.summary.run}: {self.summary.status}, {len(self.targets)} targets>"
        )

    @property
    def plan(self) -> Plan:
        """The plan of the run, as far as the ledger keeps it."""
        settings = self.summary.settings
        untreated = Untreated()
        for note, text in self.notes.items():
            if note.startswith(UNTREATED_NOTE):
                untreated = Untreated.unpack(text)
        return Plan(
            self.summary.started,
            self.msauto,
            targets=tuple([record.target for record in self.targets]),
            unchanged=sum([server.unchanged for server in untreated.servers]),
            kept=sum([server.kept for server in untreated.servers]),
            skipped=untreated.skipped,
            reads=self.summary.summary.get("reads", 0),
            servers=untreated.servers,
            settings=InputHash(settings, HIDDEN) if settings else None,
            options=PlanOptions(playbooks=self.summary.playbooks),
        )

    @property
    def result(self) -> Result:
        """The result of the run; what it did not reach is not attempted."""
        summary = self.summary
        times: dict[str, list[str]] = {}
        for record in self.targets:
            times.setdefault(record.target.server, []).extend(record.times)
        server_seconds: dict[str, float] = {}
        for server, of_server in times.items():
            if of_server:
                server_seconds[server] = seconds_between(min(of_server), max(of_server))
        seconds = None if summary.ended is None else seconds_between(summary.started, summary.ended)
        return Result(
            summary.run,
            self.plan,
            tuple([record.result for record in self.targets]),
            interrupted=summary.status in {"interrupted", "died"},
            seconds=seconds,
            server_seconds=server_seconds,
        )
