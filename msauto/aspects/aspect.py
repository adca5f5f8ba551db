"""What the stages must know of one kind of state: each module of ``msauto.aspects`` fills in one :class:`Aspect`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

from msauto.aspects.arguments import ExportedPart, TaskArguments
from msauto.aspects.comparison import mapping
from msauto.aspects.merging import Merging
from msauto.aspects.plan_builder import PlanContext, Trigger
from msauto.documents.document import SourceNode
from msauto.documents.key_rules import KeyRule
from msauto.errors import Problem
from msauto.model.desired import Sourced, TaskSource
from msauto.model.facts import Need
from msauto.model.live import Asset, AssetSnapshot, Folder, Link
from msauto.model.plan import Action, AspectName, Change, Expectation, Json, Request, Target
from msauto.model.ports import LiveTarget
from msauto.model.result import TargetRecord
from msauto.model.server import Dialect, ServerSpec

T = TypeVar("T")
Item = tuple[str, Json]
"""An item of the memory: its name and its value; ``None`` forgets it."""
EXACTLY: Final = "exactly"
"""The key of the expectation that a list has no items but those that existed when planned, or are desired."""

Span = tuple[str, int, int, TaskSource]
"""What a task places: what it is, its first and its last frame, and where the task names it."""


class Detail(NamedTuple):
    """A line on a change that takes the place of its attributes. ``name``: what the value is; ``""``: plain text."""

    label: str
    value: Json
    name: str = ""


SEGMENTS: Final = "Segments"
POINTS: Final = "In and out"


class TimelinePlace(NamedTuple):
    """Where an item is. ``lane``: :data:`SEGMENTS`, :data:`POINTS` or a track; ``duration``: of a segment, else 0.

    Frames count from the first one of the file.
    """

    lane: str
    start: int
    duration: int
    title: str


class TimelineItem(NamedTuple):
    """A segment, marker or point before and after the changes; ``action`` is ``None`` where it stays as it is."""

    action: Action | None
    name: str
    before: TimelinePlace | None
    after: TimelinePlace | None


class Reads(NamedTuple):
    """What comparing a part takes beside the asset itself; ``links`` are all of the asset."""

    xmp: frozenset[str] = frozenset()
    folders: tuple[Folder, ...] = ()
    links: bool = False


@dataclass(frozen=True, slots=True)
class AppliedChange:
    """A change that a run made, or may have made (``whole`` false), with the requests that were sent for it."""

    change: Change
    requests: tuple[Request, ...]
    whole: bool

    @property
    def expects(self) -> tuple[Expectation, ...]:
        """What its requests had to show."""
        return tuple(expect for request in self.requests for expect in request.expect)


@dataclass(frozen=True, slots=True)
class UndoContext:
    """What an aspect needs to undo its changes of one asset.

    ``notes`` takes what the user must know, ``still`` the live values that the writes require.
    """

    record: TargetRecord
    made: Sequence[AppliedChange]
    spec: ServerSpec
    source: TaskSource
    asset: Asset
    live_links: Sequence[Link] | None
    notes: list[str]
    still: dict[str, Json] = field(default_factory=dict)

    @property
    def links(self) -> Sequence[Link]:
        """The links of the asset; raises ``Need`` if they are not read."""
        if self.live_links is None:
            raise Need("links")
        return self.live_links

    def of(self, *aspects: AspectName) -> list[AppliedChange]:
        """Return the changes of these aspects."""
        return [one for one in self.made if one.change.aspect in aspects]

    def sourced(self, value: T) -> Sourced[T]:
        """Return a value with the undo as its source."""
        return Sourced(value, self.source)


def _no_items(*_: Any) -> Iterator[Any]:
    return iter(())


def frames_of(value: Json) -> int | None:
    """Return a number of frames; servers report positions of fields as text. ``None`` for anything else."""
    text = str(value).strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else None


def titles_of_item(change: Change) -> tuple[str, str, str]:
    """Return the title that an item of a list gets, with what it is of and what it was."""
    was, now = (str(mapping(side).get("title", "")) for side in (change.before, change.after))
    return f"the title of {change.aspect} {change.key!r}", was, now


@dataclass(frozen=True, slots=True, kw_only=True)
class Aspect:
    """One kind of state: what the stages ask of it. They never name it."""

    name: AspectName

    # Playbooks -------------------------------------------------------------------------------------------------------

    keys: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    """Its keys of the ``asset`` module, with their types and fields."""
    rules: tuple[KeyRule, ...] = ()
    """How these keys depend on each other."""
    exactly: tuple[str, tuple[Any, Any]] | None = None
    """The name of its list under ``exactly``, with the type and field of that key."""
    check: Callable[[Any, SourceNode], Iterator[Problem]] = _no_items
    """Yields what is wrong with validated arguments."""
    check_on_server: Callable[[Any, SourceNode, Dialect], Iterator[Problem]] = _no_items
    """Yields what is wrong with them for a server of this dialect."""
    declare: Callable[[TaskArguments], Any] = lambda _: None
    """Returns the *part* that a task declares of it, if any."""
    export: Callable[[AssetSnapshot, Dialect], ExportedPart] = lambda *_: ExportedPart()
    """Returns live state as the value of its first key."""
    merge: Callable[[Merging, Sequence[Any]], Any] = lambda _, parts: parts[0]
    """Returns one part for those of several tasks."""

    # Planning --------------------------------------------------------------------------------------------------------

    reads: Callable[[Any, Asset, str], Reads] = lambda *_: Reads()
    """What comparing a part takes: from the part, the asset and its title."""
    of_entry: Callable[[Any, Asset, str | None], Any] | None = None
    """Turns a part that a task declares for another entry of the clip into one for the clip; the title of the entry
    is given where both are one target."""
    plan: Callable[[PlanContext, Any], None] | None = None
    """Compares a part with the asset, and adds changes and requests."""
    run: Callable[[PlanContext, Any, Trigger], None] | None = None
    """Adds what one desired operation runs."""
    looks: Mapping[str, Callable[[Any, LiveTarget, str], Any]] = field(default_factory=dict)
    """The names that the fingerprint covers, each with what it covers: of the asset, the live target, the rest of the
    name."""
    is_entry: bool = False
    """It is another entry of the asset, which only a title names."""
    belongs_to_entry: bool = False
    """Each entry of a clip has its own."""
    takes: Callable[[Change, Target], Folder | None] = lambda *_: None
    """Folder and title of an entry that a change makes or alters."""
    alters: Callable[[Change, str], Collection[str]] = lambda *_: ()
    """Which values of the clip's identity a change may alter, of an asset with this title."""
    is_rename: bool = False
    """A change of it gives the asset its other address."""
    deletes_target: bool = False
    """Its deletion is that of the asset."""
    is_file: bool = False
    """It fetches a file."""

    # Verification ----------------------------------------------------------------------------------------------------

    holds: Callable[[Expectation, LiveTarget], bool | None] | None = None
    """Whether an expectation holds; ``None`` where reading cannot show it. An aspect without it is run, not
    compared."""
    show: Callable[[Expectation, LiveTarget], Json] = lambda *_: None
    """The live side of a difference."""
    show_desired: Callable[[Expectation, LiveTarget], Json] = lambda expect, _: expect.desired
    """Its desired side."""
    alike: Callable[[Expectation, LiveTarget], Sequence[str]] = lambda *_: ()
    """The live items that are what is expected once: a server may have done a request twice."""
    is_partly_hidden: Callable[[Expectation, LiveTarget], bool] = lambda *_: False
    """Reading does not show the whole of it."""
    is_overruled: Callable[[Expectation, Expectation], bool] = lambda *_: False
    """A later expectation (the second one) replaces the deletion that the first one expects."""
    needs_asset: bool = True
    """Without the asset nothing of it holds."""
    survives_deletion: bool = False
    """It is expected of a deleted asset, too."""
    in_xmp: bool = False
    """Reading it takes the XMP fields of its name."""
    is_slow: bool = False
    """Its effect may take minutes."""

    # Warnings --------------------------------------------------------------------------------------------------------

    leaves: Callable[[LiveTarget, Expectation], LiveTarget] = lambda live, _: live
    """The live target as an expectation leaves it."""
    spans: Callable[[PlanContext, Any], Iterator[Span]] = _no_items
    """What a task places between frames."""
    titles: Callable[[Change], tuple[str, str, str] | None] = lambda _: None
    """What the title of a change is of, what it was and is."""
    warn: Callable[[PlanContext, Any, Callable[[], LiveTarget]], Iterator[str]] = _no_items
    """Yields warnings of its own from the live target after the run; raises ``PlanningError`` for what cannot be
    meant."""

    # Memory and undo -------------------------------------------------------------------------------------------------

    spoils: str = ""
    """How the items begin that it makes unknown for every asset of the database."""
    recreates: bool = False
    """What it deletes may be created again by a later request."""
    remember: Callable[[Expectation, LiveTarget], Iterator[Item]] = _no_items
    """What to keep of an expectation."""
    remember_all: Callable[[Sequence[Expectation], LiveTarget], Iterator[Item]] = _no_items
    """What to learn from all of them together."""
    forget: Callable[[Change], Iterator[Item]] = _no_items
    """What a change makes untrue."""
    learn: Callable[[Expectation, LiveTarget], Iterator[Item]] = _no_items
    """How an item was left, for undo."""
    value_items: Callable[[str], Sequence[str]] | None = None
    """The items that hold values which are not reported."""
    runs_once: bool = False
    """``run: once`` is remembered."""
    is_value: bool = False
    """A change shows the whole value before and after."""
    for_good: str = ""
    """Why no change of it can be undone."""
    why_not_undone: Callable[[Change, TargetRecord, ServerSpec], str | None] = lambda *_: None
    """Why this change cannot be undone."""
    undo: Callable[[UndoContext], Any] = lambda _: None
    """Returns the part that brings back what there was, if anything."""

    # Shown -----------------------------------------------------------------------------------------------------------

    label: Callable[[Change], str] = lambda change: change.key
    """How a change of it is called."""
    subject: Callable[[Change], str] = lambda _: ""
    """What many of its changes have in common: the field, the track, the folder."""
    is_called_by_subject: bool = False
    """Next to its subject, its label repeats it."""
    displayed: Callable[[Change], Change] = lambda change: change
    """A change as its attributes are shown."""
    details: Callable[[Change, Target], Sequence[Detail]] = lambda *_: ()
    """What is shown in place of its attributes."""
    timeline: Callable[[Change, Target], Iterator[TimelineItem]] = _no_items
    """Where it was and is."""
    is_on_timeline: bool = False
    """A change of it is drawn among what stays."""
    staying: Callable[[Asset, int, Sequence[Change]], Mapping[str, Any]] = lambda *_: {}
    """What stays, as its own fields of :class:`TargetContext`: from the asset, the frame from which the server
    counts, and the changes."""
    in_frames: bool = False
    """Its values count frames."""
    dialect: tuple[str, ...] = ()
    """The keys of the server's dialect that may explain why it is not as desired."""
