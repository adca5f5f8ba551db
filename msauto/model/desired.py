"""Desired state, and the intents that yield it once facts are known.

A playbook resolves to **intents**: a :data:`Ref` (which target) and a pure ``evaluate(facts) -> Desired | None``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Final, Generic, Literal, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from msauto.errors import SourceLocation
from msauto.model.facts import Facts
from msauto.model.live import Folder
from msauto.model.server import ServerSpec
from msauto.model.timecode import Timecode
from msauto.secrets.redaction import Secrets

T = TypeVar("T")


ABSENT: Final = UNSET
"""Not named by the playbook, so not managed. An empty value, by contrast, clears."""
Absent = UnsetType

OutsidePolicy = Literal["overwrite", "keep", "refuse"]
"""What a task does with what others have changed since the last run."""
OUTSIDE: Final = "what becomes of a thing that others changed since the last run: overwrite (default), keep or refuse"
"""The description of that key, for the references."""


class TaskSource(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The place of a desired value in the playbooks, and the name of its task.

    Attributes:
        file: the file
        line: from 1; 0 is the whole file
        column: from 1
        task: the task's name
        outside: what the task does with what was changed outside; without it: overwrite
    """

    file: str
    line: int = 0
    column: int = 0
    task: str = ""
    outside: OutsidePolicy | UnsetType = UNSET

    @classmethod
    def at(
        cls, place: SourceLocation, task: str = "", outside: OutsidePolicy | UnsetType = UNSET
    ) -> TaskSource:
        """Return the source at a place."""
        return cls(place.file, place.line, place.column, task, outside)

    @property
    def place(self) -> SourceLocation:
        """The place in the file."""
        return SourceLocation(self.file, self.line, self.column)

    @property
    def minds_others(self) -> bool:
        """Whether the task keeps or refuses what others changed."""
        return self.outside not in (UNSET, "overwrite")

    @property
    def description(self) -> str:
        """The task and the place, as errors that compare tasks name them: ``the task 'Cards' (news.yml:9:18)``."""
        return f"the task {self.task!r} ({self.place})" if self.task else f"a task ({self.place})"


class Sourced(Struct, Generic[T], frozen=True, gc=False):
    """A desired value and its source; ``also`` are further sources of the same value.

    ``part``: which of the tasks that declare a list declares this item of it.
    """

    value: T
    source: TaskSource
    also: tuple[TaskSource, ...] = ()
    part: int = 0


class Position(Struct, frozen=True, gc=False):
    """A position: a time code less the ``origin`` of its task. Frames only once the rate is known.

    A frame number counts from the clip's first frame whatever the origin; durations have no origin.
    """

    timecode: Timecode
    origin: Timecode | None = None

    def to_frames(self, rate: Fraction) -> int:
        """Whole frames from the first frame of the file; raises ``TimecodeError``. May be negative."""
        frames = self.timecode.to_frames(rate)
        if self.origin is None or self.timecode.kind == "frames":
            return frames
        return frames - self.origin.to_frames(rate)

    def __str__(self) -> str:
        return self.timecode.text


# Which target -------------------------------------------------------------------------------------------------


class TitleRef(Struct, frozen=True, gc=False):
    """One asset by title; ``was`` are former titles, one of which may be found instead.

    If both titles are found, it is an error, unless both are one clip, or ``may_stay`` is set (undo): then the asset
    with the former title keeps it. ``link_id`` (undo): the entry that was renamed, where both titles lead to the clip.
    """

    database: str
    title: str
    was: tuple[str, ...] = ()
    may_stay: bool = False
    link_id: int | None = None


class IdRef(Struct, frozen=True, gc=False):
    """One asset by a key field: ``NS:ID`` (interface, «Addresses»)."""

    database: str
    namespace: str
    identifier: str


@dataclass(frozen=True, slots=True)
class SelectRef:
    """All assets of a listing that ``where`` holds for.

    Times without a zone are the server's own. ``expect_min``/``expect_max`` bound how many may be found.
    """

    database: str
    folder: Folder = ()
    recursive: bool = False
    created_after: datetime | date | None = None
    created_before: datetime | date | None = None
    created_within: timedelta | None = None
    mimetypes: tuple[str, ...] = ()
    where: Callable[[Facts], bool] | None = field(default=None, compare=False)
    expect_min: int | None = None
    expect_max: int | None = None

    @property
    def expects_count(self) -> bool:
        """Whether its task bounds how many may be found."""
        return bool(self.expect_min) or self.expect_max is not None


class ChannelRef(Struct, frozen=True, gc=False):
    """One RSS channel."""

    channel: str


class DatabaseRef(Struct, frozen=True, gc=False):
    """A media database as a whole."""

    database: str


Ref = TitleRef | IdRef | SelectRef | ChannelRef | DatabaseRef

# Desired state of it --------------------------------------------------------------------------------------------


class DesiredList(Struct, Generic[T], frozen=True, gc=False):
    """A list that a task declares; ``exactly``: the place that makes it complete, so that nothing else may be there."""

    items: tuple[Sourced[T], ...] = ()
    exactly: TaskSource | None = None


class DesiredAsset(Struct, frozen=True, gc=False):
    """The state of one asset that one task asks for, or, merged, all tasks.

    ``parts`` hold what each aspect is to be, by its name, in types of its own: a :class:`Sourced`, a mapping to such,
    or a :class:`DesiredList`. What has no part is not managed. ``required_live`` (undo): the live values that a
    write requires, by ``field:name`` and ``xmp:name``; a field with another value is left alone, with a warning.
    ``notes`` are shown with the plan. ``with_links``: the asset may be deleted although links show it.
    """

    source: TaskSource
    parts: Mapping[str, Any] = {}
    present: bool = True
    missing: Literal["error", "skip"] = "error"
    unfinalized: Literal["error", "skip", "allow"] = "error"
    lossy: bool = False
    folder: Sourced[Folder] | None = None
    required_live: Mapping[str, Any] = {}
    notes: tuple[str, ...] = ()
    with_links: bool = False

    @property
    def title(self) -> Sourced[str] | None:
        """The title that it is to have."""
        title: Sourced[str] | None = self.parts.get("title")
        return title

    def sourced(self) -> Iterator[Sourced[Any]]:
        """Yield all values with their sources."""
        if self.folder is not None:
            yield self.folder
        for part in self.parts.values():
            if isinstance(part, Sourced):
                yield part
            elif isinstance(part, Mapping):
                yield from part.values()
            else:
                yield from part.items
                # A list may have values of its own.
                more = (getattr(part, name) for name in part.__struct_fields__)
                yield from (value for value in more if isinstance(value, Sourced))

    def places(self) -> Iterator[SourceLocation]:
        """Yield where a task names something of it."""
        yield self.source.place
        yield from (sourced.source.place for sourced in self.sourced())
        lists = (part for part in self.parts.values() if isinstance(part, DesiredList))
        yield from (part.exactly.place for part in lists if part.exactly is not None)


class DesiredRssItem(Struct, frozen=True, gc=False):
    """An item of a channel: ``text``, or ``item`` (title, description, link, pubDate as texts).

    Without ``guid`` it is found by its file. With both (undo), ``text`` is what is sent where a text is.
    """

    guid: str
    file: str = ""
    text: str | Absent = ABSENT
    item: Mapping[str, str] | Absent = ABSENT
    present: bool = True

    @property
    def key(self) -> str:
        """What names the item in plans and in the ledger."""
        return self.guid or self.file

    def __str__(self) -> str:
        return (
            f"{self.text!r} in {self.file}"
            if self.item is ABSENT
            else f"{dict(self.item)} in {self.file}"
        )


class DesiredChannel(Struct, frozen=True, gc=False):
    """What one task wants of one channel, as :class:`DesiredAsset`."""

    source: TaskSource
    items: tuple[Sourced[DesiredRssItem], ...] = ()
    exactly: TaskSource | None = None
    required_live: Mapping[str, Any] = {}
    notes: tuple[str, ...] = ()


class DesiredOperation(Struct, frozen=True):
    """What is run on an asset rather than compared field by field; handlers are of these."""

    aspect: ClassVar[Any]
    source: TaskSource


class DesiredDownload(DesiredOperation, frozen=True):
    """What is saved as a file, and changes nothing on the server; ``dest`` as it is opened."""

    dest: str


@dataclass(frozen=True, slots=True)
class DesiredXmpBatch:
    """XMP metadata to be loaded into a database through a connector; ``src`` is the file as given."""

    aspect: ClassVar[Any] = "xmp_batch"
    source: TaskSource
    connector: str
    src: str
    content: bytes = field(repr=False)


class AssertionPassed(Struct, frozen=True):
    """The result of an ``assert`` with conditions that hold: nothing is desired. A failed condition is an error."""

    source: TaskSource


Desired = DesiredAsset | DesiredChannel | DesiredOperation | DesiredXmpBatch | AssertionPassed

# The bridge from playbooks to planning --------------------------------------------------------------------------


class Handler(Struct, frozen=True):
    """What runs once for each target that a task changed which names it under ``notify``.

    ``order`` is the number of its play, its own there, and its loop item's: which one it is, and when it runs.
    """

    name: str
    source: TaskSource
    evaluate: Callable[[Facts], Desired | None]
    order: tuple[int, ...] = ()


class Intent(Struct, frozen=True):
    """What one task wants of one or many targets of one server, not yet evaluated.

    ``evaluate`` is pure. It raises ``Need`` (a layer is missing), ``NoAssetError`` (facts of an asset that does
    not exist), ``InputError`` (places of what is wrong). ``None`` means: nothing is desired here (``when`` was false).
    ``absent``: the target is to be absent, so one that does not exist is unchanged, whatever ``when`` is.
    ``notify`` are the handlers of the task, ``batch`` the number of its play's batch that the server is in.
    ``if_missing``: the warning where ``missing`` is ``skip`` and it does not exist. ``named``: where the task names its
    asset.
    """

    ref: Ref
    source: TaskSource
    evaluate: Callable[[Facts], Desired | None]
    missing: Literal["error", "skip"] = "error"
    absent: bool = False
    notify: tuple[Handler, ...] = ()
    batch: int = 0
    if_missing: str = ""
    named: TaskSource | None = None


class Batch(Struct, frozen=True, forbid_unknown_fields=True):
    """Servers that are applied together, before the next batch begins (``serial`` of a play).

    Attributes:
        play: the play's name
        servers: the servers that go together
        max_fail: the percentage of failed servers above which the run ends; null: it ends if all
            fail
        fatal: one failed server ends the run
    """

    play: str
    servers: tuple[str, ...]
    max_fail: Annotated[float, Meta(ge=0, le=100)] | None = None
    fatal: bool = False


class ServerIntents(Struct, frozen=True):
    """All that the playbooks ask of one server, in the order of the tasks.

    ``left_out`` are the intents of tasks that ``--tags`` or ``--skip-tags`` leave out: nothing of them is planned, but
    what they declare is protected from the others.
    """

    server: ServerSpec
    intents: tuple[Intent, ...]
    left_out: tuple[Intent, ...] = ()


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that the plan was made from: its path from the repository, and the SHA-256 of its bytes in hex.

    ``content`` is kept until all secrets are known: a secret in the file could be guessed from the plain hash.
    ``None``: the file is too large to be searched for secrets.
    """

    path: str
    sha256: str
    content: bytes | None = field(default=b"", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ResolvedPlaybooks:
    """What playbooks and inventory come to: work for each server, and the files that were read.

    ``secrets`` are the texts that must not show; evaluating the intents finds more of them.
    """

    work: tuple[ServerIntents, ...]
    inputs: tuple[InputFile, ...] = ()
    warnings: tuple[str, ...] = ()
    batches: tuple[Batch, ...] = ()
    secrets: Secrets = field(default_factory=Secrets, compare=False, repr=False)

    @property
    def specs(self) -> tuple[ServerSpec, ...]:
        """The servers, in the order of the playbooks."""
        return tuple(work.server for work in self.work)
