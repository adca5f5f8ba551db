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
from msauto.interface.dialect import Dialect
from msauto.model.desired import Sourced, TaskSource
from msauto.model.facts import Need
from msauto.model.live import Asset, Folder, Link
from msauto.model.plan import Action, AspectName, Change, Expectation, Json, Request, Target
from msauto.model.ports import LiveTarget
from msauto.model.run_records import TargetRecord
from msauto.model.server import ServerSpec
from msauto.model.snapshot import AssetSnapshot

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
    """One kind of state.

    **Playbooks**: ``keys`` are those of the ``asset`` module, with their types and fields, ``rules`` how they depend on
    each other. ``exactly`` is the name of its list there, and the type of the key under ``exactly``. ``check`` yields
    what is wrong with validated arguments, ``check_on_server`` what is with those for one server. ``declare`` returns
    the part that a task declares, or ``None``; ``export`` live state as the value of its first key.

    **Planning**: a *part* is what tasks declare of it. ``merge`` returns one part for those of several tasks. ``reads``
    returns what comparing it takes, from the part, the asset and its title. ``plan`` compares it with the asset, and
    adds changes and requests; ``run`` adds what one desired operation runs. ``looks`` are the names that the
    fingerprint covers, each with what it covers of the asset, the live target and the rest of the name. ``of_entry``
    turns a part that a task declares for another entry of the clip into one for the clip: from that entry, and its
    title where the entries are one target.

    **Verification**: ``holds`` returns whether an expectation holds, ``None`` where reading cannot show it. An aspect
    without it is run rather than compared. ``show`` and ``show_desired`` return the two sides of a difference.
    ``alike`` names the live items that are what is expected once: a server may have done a request twice.
    ``is_partly_hidden``: reading does not show the whole of it. ``is_overruled``: a later expectation (the second one)
    replaces the deletion that the first one expects. ``needs_asset``: without the asset nothing of it holds.
    ``survives_deletion``: it is expected of a deleted asset, too. ``alters``: which values of the clip's identity a
    change of an asset with this title may alter. ``takes``: folder and title of an entry that a change makes or alters.
    ``is_slow``: its effect may take minutes. ``is_rename``: a change of it gives the asset its other address.
    ``deletes_target``: its deletion is that of the asset. ``is_entry``: it is another entry of the asset, which
    only a title names. ``belongs_to_entry``: each entry of a clip has its own. ``in_xmp``: reading it takes the XMP
    fields of its name.

    **Warnings**: ``leaves`` returns the live target as an expectation leaves it, ``spans`` what a task places between
    frames, ``titles`` what the title of a change is of, what it was and is. ``warn`` yields warnings of its own from
    the live target after the run; it raises ``PlanningError`` for what cannot be meant.

    **Memory**: ``spoils`` begins the items that it makes unknown for every asset of the database. ``recreates``: what
    it deletes may be created again by a later request. ``remember`` returns what to keep of an expectation,
    ``remember_all`` what to learn from all of them together, ``forget`` what a change makes untrue, ``learn`` how an
    item was left, for undo. ``value_items`` returns the items that hold values which are not reported. ``runs_once``:
    ``run: once`` is remembered. ``is_value``: a change shows the whole value before and after.

    **Undo**: ``for_good`` is why no change of it can be undone, ``why_not_undone`` why this one cannot. ``undo``
    returns the part that brings back what there was, if anything.

    **Shown**: ``label`` is how a change of it is called, ``subject`` what many of its changes have in common: the
    field, the track, the folder. ``is_called_by_subject``: next to its subject, its label repeats it. ``displayed``
    returns a change as its attributes are shown, ``details`` what is shown in their place, ``timeline`` where it was
    and is. ``is_on_timeline``: a change of it is drawn among what stays. ``staying`` returns that, as its own fields
    of :class:`TargetContext`: from the asset, the frame from which the server counts, and the changes. ``in_frames``:
    its values count frames. ``is_file``: it fetches a file. ``dialect`` names the keys of the server's dialect that
    may explain why it is not as desired.
    """

    name: AspectName
    keys: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    rules: tuple[KeyRule, ...] = ()
    exactly: tuple[str, tuple[Any, Any]] | None = None
    check: Callable[[Any, SourceNode], Iterator[Problem]] = _no_items
    check_on_server: Callable[[Any, SourceNode, Dialect], Iterator[Problem]] = _no_items
    declare: Callable[[TaskArguments], Any] = lambda _: None
    export: Callable[[AssetSnapshot, Dialect], ExportedPart] = lambda *_: ExportedPart()
    merge: Callable[[Merging, Sequence[Any]], Any] = lambda _, parts: parts[0]
    reads: Callable[[Any, Asset, str], Reads] = lambda *_: Reads()
    of_entry: Callable[[Any, Asset, str | None], Any] | None = None
    plan: Callable[[PlanContext, Any], None] | None = None
    run: Callable[[PlanContext, Any, Trigger], None] | None = None
    looks: Mapping[str, Callable[[Any, LiveTarget, str], Any]] = field(default_factory=dict)
    holds: Callable[[Expectation, LiveTarget], bool | None] | None = None
    show: Callable[[Expectation, LiveTarget], Json] = lambda *_: None
    show_desired: Callable[[Expectation, LiveTarget], Json] = lambda expect, _: expect.desired
    alike: Callable[[Expectation, LiveTarget], Sequence[str]] = lambda *_: ()
    is_partly_hidden: Callable[[Expectation, LiveTarget], bool] = lambda *_: False
    is_overruled: Callable[[Expectation, Expectation], bool] = lambda *_: False
    needs_asset: bool = True
    survives_deletion: bool = False
    alters: Callable[[Change, str], Collection[str]] = lambda *_: ()
    takes: Callable[[Change, Target], Folder | None] = lambda *_: None
    is_slow: bool = False
    deletes_target: bool = False
    is_entry: bool = False
    in_xmp: bool = False
    is_rename: bool = False
    belongs_to_entry: bool = False
    leaves: Callable[[LiveTarget, Expectation], LiveTarget] = lambda live, _: live
    spans: Callable[[PlanContext, Any], Iterator[Span]] = _no_items
    titles: Callable[[Change], tuple[str, str, str] | None] = lambda _: None
    warn: Callable[[PlanContext, Any, Callable[[], LiveTarget]], Iterator[str]] = _no_items
    spoils: str = ""
    recreates: bool = False
    remember: Callable[[Expectation, LiveTarget], Iterator[Item]] = _no_items
    remember_all: Callable[[Sequence[Expectation], LiveTarget], Iterator[Item]] = _no_items
    forget: Callable[[Change], Iterator[Item]] = _no_items
    learn: Callable[[Expectation, LiveTarget], Iterator[Item]] = _no_items
    value_items: Callable[[str], Sequence[str]] | None = None
    runs_once: bool = False
    is_value: bool = False
    for_good: str = ""
    why_not_undone: Callable[[Change, TargetRecord, ServerSpec], str | None] = lambda *_: None
    undo: Callable[[UndoContext], Any] = lambda _: None
    label: Callable[[Change], str] = lambda change: change.key
    subject: Callable[[Change], str] = lambda _: ""
    is_called_by_subject: bool = False
    displayed: Callable[[Change], Change] = lambda change: change
    details: Callable[[Change, Target], Sequence[Detail]] = lambda *_: ()
    timeline: Callable[[Change, Target], Iterator[TimelineItem]] = _no_items
    is_on_timeline: bool = False
    staying: Callable[[Asset, int, Sequence[Change]], Mapping[str, Any]] = lambda *_: {}
    in_frames: bool = False
    is_file: bool = False
    dialect: tuple[str, ...] = ()
