"""What the stages ask of one kind of state: each module of ``msauto.aspects`` is a value, a list or an operation.

The stages find an aspect in the registry, and never name one.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeVar

from msgspec import UNSET, Struct, UnsetType

from msauto.aspects.arguments import ExportedPart, TaskArguments
from msauto.aspects.comparison import Attributes, mapping
from msauto.aspects.merging import Merging
from msauto.aspects.plan_builder import LEFT, PlanContext, Trigger, answer_told, is_kept, left_alone
from msauto.documents.document import SourceNode
from msauto.documents.key_rules import KeyRule
from msauto.documents.strict_model import Model
from msauto.errors import Problem
from msauto.model.desired import Sourced, TaskSource
from msauto.model.live import Asset, AssetSnapshot, Folder
from msauto.model.plan import Action, Basis, Change, Outside, Target
from msauto.model.ports import LiveTarget
from msauto.model.result import TargetRecord, started
from msauto.model.server import Dialect, ServerSpec
from msauto.model.snapshot import AspectName, Effect, Expected, Json, Part, Thing, is_equal, name_of
from msauto.primitives.decimals import read_whole

T = TypeVar("T")

Live = Mapping[Thing, Json]
"""Live values by their things."""
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


class Detail(NamedTuple):
    """A line on a change that takes the place of its attributes. ``name``: what the value is; ``""``: plain text."""

    label: str
    value: Json
    name: str = ""


class Shown(NamedTuple):
    """A change as it is shown: how it is called, what many like it have in common, and its attributes."""

    label: str
    subject: str
    change: Change


class Reads(NamedTuple):
    """What comparing a part takes beside the asset itself.

    ``places``: the entries of these folders and titles. ``links``: all links of the asset. ``every_xmp``: all its XMP
    fields.
    """

    xmp: frozenset[str] = frozenset()
    places: tuple[Folder, ...] = ()
    links: bool = False
    every_xmp: bool = False


NO_READS: Final = Reads()


class UndoContext(Struct, frozen=True):
    """What an aspect needs to undo the changes of one target.

    ``changes`` are those that can be undone, with the number of each. ``things`` are, by aspect and key, those that
    their requests have changed which were done. ``notes`` takes what the user must know, ``required_live`` how each
    thing must be to be written over: as the run left it, ``None``: not there.
    """

    record: TargetRecord
    changes: Mapping[int, Change]
    things: Mapping[str, Mapping[str, Expected]]
    spec: ServerSpec
    source: TaskSource
    notes: list[str] = []
    required_live: dict[str, Json] = {}

    def of(self, aspect: str) -> list[Change]:
        """Return the changes of an aspect."""
        return [change for change in self.changes.values() if change.aspect == aspect]

    def keys_before(self, aspect: str) -> frozenset[str]:
        """Return the keys of the things of an aspect that there were before the run."""
        target = self.record.target
        keys = {key for name, key in target.others.things if name == aspect}
        for request in target.requests:
            for effect in request.effects:
                if effect.aspect == aspect and effect.before is not None:
                    keys.add(effect.key)
        return frozenset(keys)

    def left(self, thing: Thing) -> tuple[str, Json] | None:
        """Return the live key and the value of a thing as the run left it; ``None`` where that is not known."""
        known = self.record.left.get(name_of(thing))
        if not isinstance(known, list):
            return None
        return str(known[0]), known[1]

    def sourced(self, value: T) -> Sourced[T]:
        """Return a value with the undo as its source."""
        return Sourced(value, self.source)


class Aspect:
    """One kind of state: what the stages ask of it. The default is that it does not concern a stage."""

    name: ClassVar[AspectName]
    module: ClassVar[type[Model] | None] = None
    """The keys of its module, where that is one of its own."""
    prefix: ClassVar[str] = ""
    """How the name of a thing begins in a plan, before its key."""
    keys: ClassVar[Mapping[str, tuple[Any, Any]]] = {}
    """Its keys of the ``asset`` module, with their types and fields."""
    rules: ClassVar[tuple[KeyRule, ...]] = ()
    """How these keys depend on each other."""
    dialect: ClassVar[tuple[str, ...]] = ()
    """The keys of the server's dialect that may explain why it is not as desired."""
    deletes: ClassVar[Literal["", "asset", "link"]] = ""
    """What its deletion counts as."""
    for_good: ClassVar[str] = ""
    """Why no change of it can be undone."""
    missing: ClassVar[Json | UnsetType] = None
    """The value of a key that a reading of it does not show; ``UNSET``: unknown."""
    kept: ClassVar[frozenset[str]] = frozenset()
    """The attributes that no server shows, and that the ledger keeps."""
    per_entry: ClassVar[bool] = False
    """Each entry of a clip has its own values."""

    # Playbooks -------------------------------------------------------------------------------------------------------

    def check(self, args: Any, node: SourceNode) -> Iterator[Problem]:
        """Yield what is wrong with validated arguments."""
        return iter(())

    def check_for(self, args: Any, node: SourceNode, dialect: Dialect) -> Iterator[Problem]:
        """Yield what is wrong with the arguments of the module ``asset`` for a server of this dialect."""
        return iter(())

    def declare(self, task: TaskArguments) -> Any:
        """Return the *part* that a task declares of it, if any; with a module of its own, all that the task asks."""
        return None

    def merge(self, merging: Merging, parts: Sequence[Any]) -> Any:
        """Return one part for those of several tasks."""
        return parts[0]

    def export(self, snapshot: AssetSnapshot, dialect: Dialect) -> ExportedPart:
        """Return live state as the value of its first key."""
        return ExportedPart()

    # Planning --------------------------------------------------------------------------------------------------------

    def reads(self, part: Any, asset: Asset, title: str) -> Reads:
        """Return what comparing a part takes beside the asset."""
        return NO_READS

    def needs(self, keys: Collection[str]) -> Reads:
        """Return what reading these things of it again takes beside the asset; the key ``""`` of a list: all of it."""
        return NO_READS

    def for_clip(self, part: Any, asset: Asset, title: str | None) -> Any:
        """Return a part that a task declares for another entry of the clip as one for the clip.

        ``title`` is that of the entry, where both are one target.
        """
        return part

    def plan(self, context: PlanContext, part: Any) -> None:
        """Compare a part with the live target, and add changes and requests."""
        raise NotImplementedError

    def settle_doubts(self, context: PlanContext) -> None:
        """Settle what accepted requests made of it and is seen now; warn of what is still in doubt."""

    # The snapshot ----------------------------------------------------------------------------------------------------

    def things(self, live: LiveTarget) -> Part | None:
        """Return what a reading shows of it, by key; ``None`` where it was not read."""
        return None

    def misses(self, named: Json, shown: Json) -> Sequence[str]:
        """Implement :meth:`~msauto.model.snapshot.Rules.misses`."""
        return () if named == shown else ("",)

    def hidden(self, named: Json, shown: Json) -> Sequence[str]:
        """Implement :meth:`~msauto.model.snapshot.Rules.hidden`."""
        return ()

    def place(self, value: Any) -> Hashable:
        """Implement :meth:`~msauto.model.snapshot.Rules.place`."""
        return None

    # Undo ------------------------------------------------------------------------------------------------------------

    def undo(self, context: UndoContext) -> Any:
        """Return the part that brings back what there was, if anything."""
        return None

    # Shown -----------------------------------------------------------------------------------------------------------

    def shown(self, change: Change) -> Shown:
        """Return a change of it as it is shown."""
        return Shown(change.key, "", change)

    def details(self, change: Change, target: Target) -> Sequence[Detail]:
        """Return what is shown in place of its attributes."""
        return ()

    def timeline(self, change: Change, target: Target, live: Live) -> Iterator[TimelineItem]:
        """Yield where it was and is; ``live`` is what the requests of the target touch, as it was before the run."""
        return iter(())


def part_of(aspect: Aspect, live: LiveTarget) -> Part:
    """Return what a reading shows of an aspect, empty where it was not read; it is made once for each reading."""
    if aspect.name not in live.parts:
        live.parts[aspect.name] = aspect.things(live)
    return live.parts[aspect.name] or {}


def changed_outside(aspect: Aspect, context: PlanContext, key: str, live: Json) -> Outside | None:
    """Return how the last run left a thing, if others have changed it since."""
    known = context.memory.get(f"{LEFT}{aspect.name}:{key}")
    if not isinstance(known, list) or not aspect.misses(known[0], live):
        return None
    return Outside(known[0], str(known[1]), started(str(known[1])))


class Value(Aspect):
    """Values by name, each set by a request: link fields, XMP fields."""

    def former(self, change: Change, context: UndoContext) -> Any:
        """Return the value before a change as a task declares it; ``None``, with a note: it cannot be written."""
        raise NotImplementedError

    def is_due(
        self,
        context: PlanContext,
        effect: Effect,
        known: Json,
        basis: Basis,
        what: str,
        source: TaskSource,
    ) -> bool:
        """Return whether a value is to be written: it differs from the one that is known, or none is.

        One that is as desired is to stay so. Undo leaves alone, with a warning, what has changed since the run.
        """
        if basis == "none":
            return True
        if is_equal(effect.after, known, self):
            if basis == "live":
                context.builder.hold(effect, source)
            return False
        required_live = context.required_live.get(f"{self.name}:{effect.key}", known)
        if required_live is not known and not is_equal(required_live, known, self):
            context.keep(left_alone(what, known, required_live))
            return False
        if basis != "live":
            return True
        outside = changed_outside(self, context, effect.key, known)
        if outside is None:
            return True
        return not is_kept(context, (self.name, effect.key), outside, known, source, effect.after)

    def undo(self, context: UndoContext) -> Any:
        """Return the former values by name, each with the value that it must still have: as the run left it."""
        done = context.things.get(self.name, {})
        former: dict[str, Sourced[Any]] = {}
        for change in context.of(self.name):
            key = change.key
            value = self.former(change, context) if key in done else None
            if value is None:
                continue
            left = context.left((self.name, key))
            context.required_live[f"{self.name}:{key}"] = (
                done[key].after if left is None else left[1]
            )
            former[key] = context.sourced(value)
        return former or None

    def shown(self, change: Change) -> Shown:
        """Return a change with its key as what many have in common."""
        return Shown(change.key, change.key, change)


class Operation(Aspect):
    """What is run, not compared. Its effect has the value ``once``, ``always`` or ``changed``: how often it runs."""

    missing = UNSET

    may_have: ClassVar[tuple[str, str, str]] = (
        "have run",
        "has run",
        "has not, run it by a task with `run: always`",
    )
    """What it may do where its answer was lost, what the user may find, and what to do if not."""

    def was_sent(self, context: PlanContext, key: str, what: str) -> bool:
        """Return whether what runs once was sent; where its answer was lost, warn of it. ``what``: as it is called."""
        remembered = context.memory.get(f"{self.name}:{key}")
        run = mapping(remembered).get("unverified")
        if run is not None:
            self.warn_of_lost_answer(context, what, run, mapping(remembered))
        return bool(remembered)

    def warn_of_lost_answer(
        self,
        context: PlanContext,
        what: str,
        run: Json,
        remembered: Attributes,
        unless: str = "automatically",
    ) -> None:
        """Warn that something was sent and may have been done; ``unless``: when it is sent again nevertheless."""
        may, done, otherwise = self.may_have
        sent_by = f"run {run}" if run else "an earlier run"
        context.builder.warnings.append(
            f"{what} by {sent_by} {answer_told(remembered)}. It may {may}, and is not sent again {unless}\n"
            f"check the server. If it {done}, --forget-pending ends this warning. If it {otherwise}"
        )

    def run(self, context: PlanContext, desired: Any, cause: Trigger) -> None:
        """Add what one desired operation runs."""
        raise NotImplementedError


def frames_of(value: Json) -> int | None:
    """Return a number of frames; servers report positions of fields as text. ``None`` for anything else."""
    return read_whole(str(value), least=0)
