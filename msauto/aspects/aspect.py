"""What the stages must know of one kind of state: each module of ``msauto.aspects`` fills in one :class:`Aspect`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct, field

from msauto.aspects.arguments import ExportedPart, TaskArguments
from msauto.aspects.comparison import mapping
from msauto.aspects.merging import Merging
from msauto.aspects.plan_builder import PlanContext, Trigger
from msauto.documents.document import SourceNode
from msauto.documents.key_rules import KeyRule
from msauto.documents.strict_model import Model
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


class AppliedChange(Struct, frozen=True):
    """A change that a run made, or may have made (``whole`` false), with the requests that were sent for it."""

    change: Change
    requests: tuple[Request, ...]
    whole: bool

    @property
    def expects(self) -> tuple[Expectation, ...]:
        """What its requests had to show."""
        return tuple(expect for request in self.requests for expect in request.expect)


class UndoContext(Struct, frozen=True):
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


class Aspect(Struct, frozen=True, kw_only=True):
    """One kind of state: what the stages ask of it. They never name it."""

    name: AspectName

    # Playbooks -------------------------------------------------------------------------------------------------------

    # The keys of its module, where that is one of its own.
    module: type[Model] | None = None
    # Its keys of the ``asset`` module, with their types and fields.
    keys: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    # How these keys depend on each other.
    rules: tuple[KeyRule, ...] = ()
    # The name of its list under ``exactly``, with the type and field of that key.
    exactly: tuple[str, tuple[Any, Any]] | None = None
    # Yields what is wrong with validated arguments.
    check: Callable[[Any, SourceNode], Iterator[Problem]] = _no_items
    # Yields what is wrong with them for a server of this dialect.
    check_on_server: Callable[[Any, SourceNode, Dialect], Iterator[Problem]] = _no_items
    # Returns the *part* that a task declares of it, if any; with a module of its own, all that the task asks for.
    declare: Callable[[TaskArguments], Any] = lambda _: None
    # Returns live state as the value of its first key.
    export: Callable[[AssetSnapshot, Dialect], ExportedPart] = lambda *_: ExportedPart()
    # Returns one part for those of several tasks.
    merge: Callable[[Merging, Sequence[Any]], Any] = lambda _, parts: parts[0]

    # Planning --------------------------------------------------------------------------------------------------------

    # What comparing a part takes, if anything: from the part, the asset and its title.
    reads: Callable[[Any, Asset, str], Reads] | None = None
    # Turns a part that a task declares for another entry of the clip into one for the clip; the title of the entry is
    # given where both are one target.
    of_entry: Callable[[Any, Asset, str | None], Any] = lambda part, *_: part
    # Compares a part with the asset, and adds changes and requests.
    plan: Callable[[PlanContext, Any], None] = lambda *_: None
    # Adds what one desired operation runs.
    run: Callable[[PlanContext, Any, Trigger], None] = lambda *_: None
    # The names that the fingerprint covers, each with what it covers: of the asset, the live target, the rest of the
    # name.
    looks: Mapping[str, Callable[[Any, LiveTarget, str], Any]] = field(default_factory=dict)
    # It is another entry of the asset, which only a title names.
    is_entry: bool = False
    # Each entry of a clip has its own.
    belongs_to_entry: bool = False
    # Folder and title of an entry that a change makes or alters.
    takes: Callable[[Change, Target], Folder | None] = lambda *_: None
    # Which values of the clip's identity a change may alter, of an asset with this title.
    alters: Callable[[Change, str], Collection[str]] = lambda *_: ()
    # A change of it gives the asset its other address.
    is_rename: bool = False
    # Its deletion is that of the asset.
    deletes_target: bool = False
    # It fetches a file.
    is_file: bool = False

    # Verification ----------------------------------------------------------------------------------------------------

    # Whether an expectation holds; ``None`` where reading cannot show it. An aspect without it is run, not compared.
    holds: Callable[[Expectation, LiveTarget], bool | None] | None = None
    # The live items that no task asks for and that did not exist when planned: an expectation :data:`EXACTLY` has none.
    strangers: Callable[[Expectation, LiveTarget], list[Json]] | None = None
    # The live side of a difference.
    show: Callable[[Expectation, LiveTarget], Json] = lambda *_: None
    # Its desired side.
    show_desired: Callable[[Expectation, LiveTarget], Json] = lambda expect, _: expect.desired
    # The live items that are what is expected once: a server may have done a request twice.
    alike: Callable[[Expectation, LiveTarget], Sequence[str]] = lambda *_: ()
    # Reading does not show the whole of it.
    is_partly_hidden: Callable[[Expectation, LiveTarget], bool] = lambda *_: False
    # A later expectation (the second one) replaces the deletion that the first one expects.
    is_overruled: Callable[[Expectation, Expectation], bool] | None = None
    # Without the asset nothing of it holds.
    needs_asset: bool = True
    # It is expected of a deleted asset, too.
    survives_deletion: bool = False
    # Reading it takes the XMP fields of its name.
    in_xmp: bool = False
    # Its effect may take minutes.
    is_slow: bool = False

    # Warnings --------------------------------------------------------------------------------------------------------

    # The asset as an expectation leaves it.
    leaves: Callable[[Asset, Expectation], Asset] = lambda asset, _: asset
    # What a task places between frames.
    spans: Callable[[PlanContext, Any], Iterator[Span]] = _no_items
    # What the title of a change is of, what it was and is.
    titles: Callable[[Change], tuple[str, str, str] | None] = lambda _: None
    # Yields warnings of its own from the asset after the run; raises ``PlanningError`` for what cannot be meant.
    warn: Callable[[PlanContext, Any, Callable[[], Asset]], Iterator[str]] = _no_items

    # Memory and undo -------------------------------------------------------------------------------------------------

    # How the items begin that it makes unknown for every asset of the database.
    spoils: str = ""
    # What it deletes may be created again by a later request.
    recreates: bool = False
    # What to keep of an expectation.
    remember: Callable[[Expectation, LiveTarget], Iterator[Item]] = _no_items
    # What to learn from all of them together.
    remember_all: Callable[[Sequence[Expectation], LiveTarget], Iterator[Item]] = _no_items
    # What a change makes untrue.
    forget: Callable[[Change], Iterator[Item]] = _no_items
    # How an item was left, for undo.
    learn: Callable[[Expectation, LiveTarget], Iterator[Item]] = _no_items
    # The items that hold values which are not reported.
    value_items: Callable[[str], Sequence[str]] | None = None
    # ``run: once`` is remembered.
    runs_once: bool = False
    # A change shows the whole value before and after.
    is_value: bool = False
    # Why no change of it can be undone.
    for_good: str = ""
    # Why this change cannot be undone.
    why_not_undone: Callable[[Change, TargetRecord, ServerSpec], str | None] = lambda *_: None
    # Returns the part that brings back what there was, if anything.
    undo: Callable[[UndoContext], Any] = lambda _: None

    # Shown -----------------------------------------------------------------------------------------------------------

    # How a change of it is called.
    label: Callable[[Change], str] = lambda change: change.key
    # What many of its changes have in common: the field, the track, the folder.
    subject: Callable[[Change], str] = lambda _: ""
    # A change as its attributes are shown.
    displayed: Callable[[Change], Change] = lambda change: change
    # What is shown in place of its attributes.
    details: Callable[[Change, Target], Sequence[Detail]] = lambda *_: ()
    # Where it was and is.
    timeline: Callable[[Change, Target], Iterator[TimelineItem]] = _no_items
    # A change of it is drawn among what stays.
    is_on_timeline: bool = False
    # What stays, as its own fields of :class:`TargetContext`: from the asset, the frame from which the server counts,
    # and the changes.
    staying: Callable[[Asset, int, Sequence[Change]], Mapping[str, Any]] = lambda *_: {}
    # Its values count frames.
    in_frames: bool = False
    # The keys of the server's dialect that may explain why it is not as desired.
    dialect: tuple[str, ...] = ()
