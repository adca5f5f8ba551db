"""The plan of one target in the making: :class:`PlanBuilder`, and what aspects read: :class:`PlanContext`.

The order of a target's requests is the table :class:`Phase`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from operator import itemgetter

from msgspec import Struct, structs

from msauto.errors import PlanningError
from msauto.model.desired import TaskSource
from msauto.model.live import Asset, Folder
from msauto.model.plan import Action, Address, Basis, Change, Outside, Request, Settlement, TargetId
from msauto.model.ports import LiveTarget
from msauto.model.server import ServerSpec
from msauto.model.snapshot import AspectName, Effect, Json, Snapshot, Thing


class Phase(Enum):
    """The kind of a request that decides its place in the order; the value is the reason for that place."""

    BATCH = "the only request of a database; its assets come after it"
    RENAME = "all that follows is addressed to the new title"
    RESTORE = "takes minutes: it starts early and works while the rest is sent"
    FIELD = "plain values of the clip, before what points into it"
    XMP = "plain values too; partner commands at the end read them"
    SEGMENT_DELETE = "a number must be free before a segment with it is created"
    SEGMENT_CREATE = "after every delete, so that two segments never share a number or overlap"
    MARKER_DELETE = "deleting first: an old and a new marker never share a position"
    MARKER_CHANGE = "a moved marker leaves its place before a new one takes it"
    MARKER_CREATE = "last of the markers, so that a new uid identifies a created marker"
    LINK_DELETE = "a title must be free in a folder before a link takes it"
    LINK_CREATE = "the clip is whole before it shows in a playout folder"
    LINK_FIELD = "a link must exist before its fields are set"
    RSS_PUT = "a channel on air is never empty: new items are added before others are deleted"
    RSS_REPLACE = "deleted and put again: off air for a moment, while the new items are present"
    RSS_DELETE = "after the new items are present"
    RUN = "a command works on the clip as desired"
    HANDLER = "after all other requests of the clip, because it acts on the changed clip"
    ASSET_DELETE = "a deleted asset takes no more requests"


_RANK = {phase: rank for rank, phase in enumerate(Phase)}


@lru_cache(1000)
def _shared_numbers(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Return the first of equal tuples: most targets have the same few."""
    return numbers


class Trigger(Struct, frozen=True):
    """Why something is run: for a task, or as the handler of that name, possibly one pending since an earlier run.

    ``before``: it runs before the asset is deleted, because nothing can be run on the asset after that.
    """

    handler: str = ""
    pending: str = ""
    before: bool = False

    @property
    def phase(self) -> Phase:
        """Where in the order it is run."""
        return Phase.HANDLER if self.handler else Phase.RUN


TASK = Trigger()
"""Run for a task."""


class PlanBuilder(Struct, eq=False):
    """Collects the changes and requests of one target. Requests refer to their changes by the number given here."""

    changes: list[Change] = []
    depends_on: set[str] = set()
    """What decisions depend on: facts (``fact frames``), things (``field first_frame``), whole aspects."""
    warnings: list[str] = []
    emptied: list[tuple[AspectName, int]] = []
    holding: list[Effect] = []
    """What the tasks ask and needs no change: it is to stay as it is."""
    unwanted: list[tuple[AspectName, Json]] = []
    """Attributes of items that no one may make meanwhile: the tasks exclude them."""
    minded: dict[str, Json] = {}
    """Items of the ledger: what is there, and others may not change, as if this run had left it so."""
    altered: set[str] = set()
    """The values of the clip's identity that the changes may alter."""
    claimed_places: list[tuple[Folder, TaskSource]] = []
    """Folder and title of each entry that the changes make or alter."""
    placed: list[tuple[str, int, int, TaskSource]] = []
    """What the tasks place: what it is, its first and its last frame, and where a task names it."""
    checks: list[Callable[[PlanContext, Callable[[], Snapshot]], Iterable[str]]] = []
    """They yield warnings from the snapshot after the run; ``PlanningError``: what cannot be meant.

    None of them holds the context, which holds this: the garbage collector would have to find each such circle.
    """
    outside: dict[tuple[AspectName, str], Outside] = {}
    """What was changed outside, by the aspect and how the change of it is called."""
    is_keeping: bool = False
    """Something that others changed stays as it is."""
    is_in_doubt: bool = False
    """Something that an accepted request made does not show, and is not made again."""
    settled: list[tuple[str, Json, str]] = []
    """What :meth:`settle` takes."""
    news: int = 0
    wait: float = 0.0
    ranked: list[tuple[int, Request]] = []
    """The requests as the aspects added them, each with its place in the table."""
    runs: set[int] = set()
    """The numbers of the changes that are run, not compared."""

    def settle(self, item: str, value: Json = None, thing: str = "") -> None:
        """Let the ledger hold an item, ``None``: no longer; ``thing``: what a run made, and is seen as it."""
        self.settled.append((item, value, thing))

    @property
    def differences(self) -> list[Change]:
        """The changes that were found by comparing; not what is run."""
        return [change for number, change in enumerate(self.changes) if number not in self.runs]

    def change(
        self,
        action: Action,
        aspect: AspectName,
        key: str,
        before: Json,
        after: Json,
        source: TaskSource,
        *,
        basis: Basis = "live",
        reversible: bool = True,
        losses: int = 0,
        called: str = "",
    ) -> int:
        """Add a change; return its number. A change of an unknown value cannot be undone.

        ``called``: how its task's item is called, where that is not its key.
        """
        reversible = reversible and basis != "none"
        outside = self.outside.get((aspect, called or key))
        change = Change(
            action, aspect, key, before, after, basis, reversible, source, losses, outside=outside
        )
        self.changes.append(change)
        return len(self.changes) - 1

    def run(
        self, aspect: AspectName, key: str, after: Json, source: TaskSource, cause: Trigger
    ) -> int:
        """Add what is run rather than compared; return its number. It cannot be undone."""
        before: Json = True if cause.before else None
        self.runs.add(len(self.changes))
        change = Change(
            "run",
            aspect,
            key,
            before,
            after,
            "live",
            False,
            source,
            0,
            cause.handler,
            cause.pending,
        )
        self.changes.append(change)
        return len(self.changes) - 1

    def send(
        self, phase: Phase, request: Request, changes: Sequence[int], *effects: Effect
    ) -> None:
        """Add a request that makes these changes and has these effects."""
        numbers = _shared_numbers(tuple(changes))
        self.ranked.append(
            (_RANK[phase], structs.replace(request, changes=numbers, effects=effects))
        )

    def look(self, *names: str) -> None:
        """Note what a decision depends on: it must still be so when the changes are made."""
        self.depends_on.update(names)

    def hold(self, effect: Effect, source: TaskSource | None = None) -> None:
        """Note what is as desired: it is to stay so; a task may also mind who changes it later."""
        self.holding.append(effect)
        if source is not None and effect.before is not None:
            self.mind(effect.thing, effect.before, source)

    def mind(self, thing: Thing, live: Json, source: TaskSource) -> None:
        """Note what is there, for a task that minds who changes it later."""
        if source.minds_others:
            aspect, key = thing
            self.minded[f"{LEFT}{aspect}:{key}"] = [live, THIS_RUN]

    def exclude_others(self, name: AspectName, kinds: Iterable[Json], source: TaskSource) -> None:
        """Note that a task wants no other items with these attributes."""
        self.unwanted += [(name, kind) for kind in kinds]
        if source.minds_others:
            self.minded[f"{WHOLE}{name}"] = THIS_RUN

    def warn_of_blanks(self, what: str, was: str, now: str, source: TaskSource) -> None:
        """Warn of a new title with blanks at an end: probably a mistake."""
        if now != now.strip() and now != was:
            self.warnings.append(f"{what} has blanks at an end: {now!r} ({source.place})")

    def requests(self) -> tuple[Request, ...]:
        """Return the requests in the order of the table; within one phase, as the aspects added them."""
        return tuple([request for _, request in sorted(self.ranked, key=itemgetter(0))])


class PlanContext(Struct, frozen=True, eq=False):
    """One asset as an aspect sees it. ``path`` is its escaped address once renamed, ``path_before`` until then.

    ``title`` is the asset's after the run, ``memory`` what the ledger holds of it, by ``aspect:key``. ``required_live``
    (undo): how a thing must be to be written over, by ``aspect:key``. ``address`` is how it is found after the run.
    ``files`` are the SHA-256 of what is where downloads are to be, ``fetched`` those of what a run put there, by
    the path. ``batch`` is the XMP batch that precedes it, and makes its XMP fields unknown. ``places`` are
    folder and title of every other entry that shows an asset which is to be deleted.
    ``hide`` returns a text without secrets.
    ``is_known_clip``: the ledger remembers surely this clip, and not only one of its title.
    """

    server: ServerSpec
    database: str
    path_before: str
    path: str
    title: str
    live_title: str
    asset: Asset
    live: LiveTarget
    builder: PlanBuilder
    memory: dict[str, Json] = {}
    lossy: bool = False
    required_live: Mapping[str, Json] = {}
    address: Address = Address("")
    files: Mapping[str, str | None] = {}
    fetched: Mapping[str, str] = {}
    batch: TaskSource | None = None
    places: tuple[Folder, ...] = ()
    is_known_clip: bool = False
    hide: Callable[[str], str] = str

    @property
    def origin(self) -> int:
        """The frame of the file from which the server counts the positions of a request."""
        if not self.server.dialect.counts_from_in:
            return 0
        return self.asset.first_frame or 0

    def warn(self, text: str) -> None:
        """Add a warning on the asset."""
        self.builder.warnings.append(f"{self.title}: {text}")

    def keep(self, why: str) -> None:
        """Note that something which others changed stays as it is, with a warning that contains the reason."""
        self.builder.is_keeping = True
        self.warn(why)


def length_of(asset: Asset) -> Sequence[str]:
    """Return the facts that a position is held against; the length of a clip that is still recorded grows."""
    facts = ("fact frame_time", "fact create_time", "fact finalized")
    return facts if asset.finalized is False else ("fact frames", *facts)


def left_alone(what: str, live: Json, wrote: Json) -> str:
    """Return the warning that undo leaves something alone that has changed since."""
    return f"{what} is left alone: {_now(live)}, and the run wrote {quoted(wrote)}"


def _now(live: Json) -> str:
    if live is None:
        return "it no longer exists"
    verb = "has" if isinstance(live, dict) else "is"
    return f"it {verb} {quoted(live)} now"


def quoted(value: Json) -> str:
    """Return a value as messages quote it: of an item, the attributes that it has."""
    if not isinstance(value, dict):
        return repr(value)
    return ", ".join(f"{name} {each!r}" for name, each in value.items() if each is not None)


def is_kept(
    context: PlanContext,
    called: tuple[AspectName, str],
    outside: Outside,
    live: Json,
    source: TaskSource,
    desired: Json,
) -> bool:
    """Return whether what was changed outside stays, as its task asks: a warning. Else its change shows it.

    Raises ``PlanningError`` where the task refuses.
    """
    context.builder.outside[called] = outside
    if not source.minds_others:
        return False
    text = f"{' '.join(called)} was changed outside since run {outside.run}"
    if not _is_secret(context, desired):  # else the values before may be secrets, too
        text += f": {_changed(outside.left, live)}"
    if source.outside == "refuse":
        remedy = "change the playbook, or write `outside: overwrite` or `outside: keep`"
        raise refuse(f"{context.title}: {text}", source, remedy)
    context.keep(f"{text}; it is kept ({source.place})")
    return True


def _is_secret(context: PlanContext, desired: Json) -> bool:
    """Return whether a desired value holds a secret."""
    values = desired.values() if isinstance(desired, dict) else (desired,)
    for value in values:
        text = str(value)
        if context.hide(text) != text:
            return True
    return False


def _changed(left: Json, live: Json) -> str:
    """Describe what something is now, and what the run left; of an item, in the attributes that were left."""
    if isinstance(left, list):
        return ", ".join(map(str, left))
    if live is None:
        return _now(live)
    if left is None:
        return f"{_now(live)}, and no run made it"
    if isinstance(left, dict) and isinstance(live, dict):
        live = {name: live.get(name) for name in left}
    return f"{_now(live)}, and the run left {quoted(left)}"


class Doubt(Struct, frozen=True):
    """What an accepted request made, while reading does not show it, or shows it more than once.

    ``item`` is where the ledger has it. ``key`` is that of its thing in ``run``, and ``value`` what it is to be.
    """

    aspect: str
    item: str
    key: str
    run: str
    value: Json


def doubts_in(memory: Mapping[str, Json]) -> Iterator[Doubt]:
    """Yield what is in doubt of a target until it is seen."""
    for item, known in memory.items():
        if item.startswith(DOUBT) and isinstance(known, dict):
            aspect, _, _ = item.removeprefix(DOUBT).partition(":")
            yield Doubt(aspect, item, str(known["key"]), str(known["run"]), known["value"])


def doubts_of(context: PlanContext, name: AspectName) -> list[Doubt]:
    """Return what is in doubt of an aspect."""
    return [doubt for doubt in doubts_in(context.memory) if doubt.aspect == name]


def tell_doubt(context: PlanContext, what: str, doubt: Doubt, shown: str) -> None:
    """Warn of what is in doubt: it is not made again, and the run ends with 3."""
    context.builder.is_in_doubt = True
    context.warn(
        f"run {doubt.run} made {what}, which the server accepted: {shown}, and it is not made again\n"
        "check the server, and set `shows_after` in its dialect; --forget-pending ends this warning"
    )


def adopted(
    context: PlanContext, kept: dict[str, TargetId], owner: TargetId
) -> Iterator[Settlement]:
    """Yield what the ledger is to hold of what planning has seen, also of what others have set as desired.

    ``kept`` has the target of each item, as the ledger knows it; a new item is of the one before, else of ``owner``.
    """
    last = owner
    for item, value, thing in context.builder.settled:
        last = kept.setdefault(item, last)
        yield Settlement(last, item, value, thing)
    for item, value in context.builder.minded.items():
        left = value[0] if isinstance(value, list) else value
        if item not in context.memory and not _is_secret(context, left):
            yield Settlement(kept.setdefault(item, owner), item, value)
    if not context.memory:
        return
    for effect in context.builder.holding:
        item = f"{LEFT}{effect.aspect}:{effect.key}"
        known = context.memory.get(item)
        if not isinstance(known, list):
            continue
        left, run = known[:2]
        live = _left_by_others(left, effect)
        if live != left:
            settled: Json = None if live is None else [live, run]
            yield Settlement(kept[item], item, settled)


def _left_by_others(left: Json, effect: Effect) -> Json:
    """Return what is left of a thing that others may have set as desired: of an item, in what a task names of it."""
    live = effect.before
    named = effect.after
    if not (isinstance(left, dict) and isinstance(live, dict) and isinstance(named, dict)):
        return live
    shown = live.keys() | left.keys()  # a text of an item shows as its title, for example
    seen = {name: live.get(name) for name in named if name in shown}
    return {**left, **seen}


def refuse(
    message: str, source: TaskSource | None, remedy: str, kind: type[PlanningError] = PlanningError
) -> PlanningError:
    """Return the error of one target, at the place of the task that causes it."""
    return kind(message, place=source.place if source else None, remedy=remedy)


# What the ledger remembers of requests that may have run ------------------------------------------------------

PENDING_PREFIX = "pending:handler:"
"""Prefix of the item of a handler that has not run since a run changed its target."""
LEFT = "left:"
"""Prefix of the item of a thing as the last run left it: its value, and the run."""
DOUBT = "pending:doubt:"
"""Prefix of the item of what an accepted request made, and reading has not shown."""
MADE = "made:"
"""Prefix of the item of a thing that a run made and the server gave a key."""
SHIFTED = "shifted:"
"""Prefix of the item of a key that others gave to another thing: how a run left the one that had it.

It stays until a run does what a task asks of this key.
"""
WHOLE = "whole:"
"""Prefix of the item of a list that a run left without what others had made: the run."""
THIS_RUN = ""
"""In place of a run that planning does not know yet: that which applies the plan."""
BETWEEN = "segment-between:"
"""Prefix of the item of a segment that was deleted to be created again, until it is."""


def things_left(memory: Mapping[str, Json]) -> Iterator[tuple[Thing, Json, str]]:
    """Yield each thing that runs left of a target, with its value then, and the run."""
    for item, known in memory.items():
        if item.startswith(LEFT) and isinstance(known, list):
            aspect, _, key = item.removeprefix(LEFT).partition(":")
            yield (aspect, key), known[0], str(known[1])


def last_writer(memory: Mapping[str, Json]) -> str:
    """Return the newest run that left a thing of a target; empty if none is remembered."""
    return max([run for _, _, run in things_left(memory)], default="")


def answer_told(remembered: Mapping[str, Json]) -> str:
    """Describe what is known of a command that may have run."""
    clip = remembered.get("clip")
    status = remembered.get("status")
    if clip is not None:
        return f"on {clip!r}, which may be this clip: too little is reported to know"
    return "and its answer was lost" if status is None else f"and the server answered {status}"


def certain(changes: Iterable[Change]) -> list[Change]:
    """Return the changes that surely are differences: not those of unknown values."""
    return [change for change in changes if change.basis != "none"]
