"""What a plan changes, grouped so that it can be read: the one grouping that text, Markdown and HTML show.

``group_plan(plan)`` returns a :class:`Grouping`; nothing is lost in it. Every change of a target without an error is
either in exactly one row of one block, or is one of ``deletions``:

- ``blocks``: targets that are shown together, in the order of the plan (that of their first target). A block is

  - ``alike``: at least 3 targets whose changes are the same;
  - ``similar``: at least 10 targets with the same kinds of change (action, aspect, subject) and other values;
  - ``alone``: one target;
  - ``other``: made by :func:`merge_blocks`, for a report that has no space for more blocks.

- ``Block.rows``: what the block does, a :class:`Row` for each thing that is shown. ``row.changes`` are all the pairs
  of target and change that it stands for. If ``row.same``, ``row.examples`` holds one pair that shows all of them;
  otherwise it holds two of them. From 10 changes of one kind on, also a single target has one row for all of them.
- ``Block.named()``: the names of the targets as ranges, by servers and database.
- ``deletions``: deleted assets and links. They are never folded: every form lists all of them.
- ``counts``: how many changes of each aspect there are, and on how many targets (:class:`KindCount`).
- ``errors``: the targets in error by error (:class:`ErrorGroup`), with all their names.
- ``warnings``: each warning once (:class:`WarningGroup`), with the names of the targets if it is given for several.

Values that are the title of their own target are compared as :data:`OWN_TITLE`: 300 links named like their assets are
the same change. The example of a ``same`` row has that placeholder in its key and values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Literal, NamedTuple

from msgspec import structs

from msauto.aspects import is_deletion
from msauto.interface.fields import LINK_FIELDS, names
from msauto.model.codec import to_key
from msauto.model.desired import TaskSource
from msauto.model.plan import Action, AspectName, Change, Json, Plan, Target
from msauto.report.name_ranges import NameRange, name_ranges
from msauto.report.value_texts import change_parts

OWN_TITLE: Final = "<title>"
"""Stands for the title of each target."""
FEWEST_ALIKE: Final = 3
FEWEST_SIMILAR: Final = 10
_EXAMPLES: Final = 2
_IN_FRAMES: Final = frozenset({"segment", "segmentation", "marker", "thumbnail"})
_FIELDS_IN_FRAMES: Final = frozenset(names(LINK_FIELDS, "position"))
_NO_SOURCE: Final = TaskSource("", 0, 0, "")

Level = Literal["alone", "alike", "similar", "other"]
PlannedChange = tuple[Target, Change]


class ChangeKind(NamedTuple):
    """What changes have in common: ``subject`` is the field's name, the marker's track, the link's folder, the command.

    It is empty where an aspect has only numbers or guids.
    """

    action: Action
    aspect: AspectName
    subject: str


@dataclass(frozen=True, slots=True)
class Row:
    """Changes of one kind that are shown together. ``same``: one example shows all of them."""

    kind: ChangeKind
    changes: tuple[PlannedChange, ...]
    examples: tuple[PlannedChange, ...]
    same: bool


class NamedTargets(NamedTuple):
    """The names of targets that the same servers have in a database of the same name."""

    servers: tuple[str, ...]
    database: str
    ranges: tuple[NameRange, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """Targets of one kind that are shown together, at least one, in the order of the plan."""

    level: Level
    targets: tuple[Target, ...]
    rows: tuple[Row, ...]

    @property
    def folders(self) -> tuple[str | None, ...]:
        """The home folders of the targets, each once; ``None`` is a folder that is not known."""
        return tuple(dict.fromkeys(target.folder for target in self.targets))

    def named(self) -> tuple[NamedTargets, ...]:
        """Return the names of the targets; servers with the same names are listed together."""
        return named_targets(self.targets)


class KindCount(NamedTuple):
    """How often an aspect changes; ``targets`` counts the targets that it changes on."""

    aspect: AspectName
    add: int
    change: int
    delete: int
    run: int
    targets: int


class ErrorGroup(NamedTuple):
    """Targets that cannot be planned for one reason; ``error`` may hold :data:`OWN_TITLE` if there are several."""

    error: str
    targets: tuple[Target, ...]


class WarningGroup(NamedTuple):
    """A warning. ``names``: the targets of ``server: name: text`` where at least 3 have the same text."""

    text: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Grouping:
    """A plan in groups; the docstring of the module describes each attribute."""

    blocks: tuple[Block, ...]
    deletions: tuple[PlannedChange, ...]
    counts: tuple[KindCount, ...]
    errors: tuple[ErrorGroup, ...]
    warnings: tuple[WarningGroup, ...]


def group_plan(plan: Plan, *, folded: bool = True) -> Grouping:
    """Return what a plan changes in groups; without ``folded`` every target has a block, and every change a row."""
    changing = [target for target in plan.targets if target.changes and target.error is None]
    deletions = tuple((target, each) for target in changing for each in target.changes if is_deletion(each))
    shown = [target for target in changing if not all(is_deletion(each) for each in target.changes)]
    return Grouping(
        tuple(_blocks(shown) if folded else map(_alone_unfolded, shown)),
        deletions,
        _counts(changing),
        tuple(_errors(plan)),
        tuple(_warnings(plan.warnings)),
    )


def merge_blocks(blocks: Sequence[Block]) -> Block:
    """Return one block of level ``other`` for several, with a row for each action and aspect."""
    found: dict[ChangeKind, list[PlannedChange]] = {}
    for row in (row for block in blocks for row in block.rows):
        found.setdefault(row.kind._replace(subject=""), []).extend(row.changes)
    targets = tuple(target for block in blocks for target in block.targets)
    rows = (Row(kind, tuple(changes), tuple(changes[:_EXAMPLES]), same=False) for kind, changes in found.items())
    return Block("other", targets, tuple(rows))


def named_targets(targets: Iterable[Target]) -> tuple[NamedTargets, ...]:
    """Return the names of targets as ranges; servers with the same names are listed together."""
    places: dict[tuple[str, str], list[str]] = {}
    for target in targets:
        places.setdefault((target.server, target.database), []).append(target.name)
    same: dict[tuple[str, tuple[NameRange, ...]], list[str]] = {}
    for (server, database), found in places.items():
        same.setdefault((database, name_ranges(found)), []).append(server)
    return tuple(NamedTargets(tuple(servers), database, ranges) for (database, ranges), servers in same.items())


def kind_of(change: Change) -> ChangeKind:
    """Return the kind of a change."""
    return ChangeKind(change.action, change.aspect, _subject(change))


def _subject(change: Change) -> str:
    match change.aspect:
        case "field" | "xmp":
            return change.key
        case "marker":
            item = change.after if isinstance(change.after, dict) else change.before
            return str(item.get("track", "")) if isinstance(item, dict) else ""
        case "link":
            return change.key.rpartition("/")[0]
        case "command":
            return change.key.partition(" ")[0]
    return ""


# Blocks --------------------------------------------------------------------------------------------------------


def _blocks(targets: Sequence[Target]) -> list[Block]:
    """Return the blocks of targets that change: first those alike, of the rest those similar, the rest alone."""
    found: dict[int, Block] = {}
    rest = list(range(len(targets)))
    for level, fewest, key in _FOLDS:
        groups: dict[object, list[int]] = {}
        for place in rest:
            groups.setdefault(key(targets[place]), []).append(place)
        rest = []
        for places in groups.values():
            if len(places) < fewest:
                rest += places
            else:
                found[places[0]] = _block(level, [targets[place] for place in places])
    found |= {place: _alone(targets[place]) for place in rest}
    return [found[place] for place in sorted(found)]


def _alike_key(target: Target) -> object:
    changes = tuple(_pattern(change, target) for change in _kept(target))
    shown = tuple(_shown_positions(change, target) for change in changes)
    content = to_key((target.kind, changes, shown, target.emptied, target.wait))
    return blake2b(content, digest_size=16).digest()  # 300,000 targets: their content is not held twice


def _similar_key(target: Target) -> object:
    emptied = frozenset(each.aspect for each in target.emptied)
    return target.kind, frozenset(map(kind_of, _kept(target))), emptied


_FOLDS: Final[tuple[tuple[Level, int, Callable[[Target], object]], ...]] = (
    ("alike", FEWEST_ALIKE, _alike_key),
    ("similar", FEWEST_SIMILAR, _similar_key),
)


def _kept(target: Target) -> list[Change]:
    """Return the changes that blocks show: all but the deletions."""
    return [change for change in target.changes if not is_deletion(change)]


def _block(level: Level, targets: Sequence[Target]) -> Block:
    if level == "alike":
        return Block(level, tuple(targets), tuple(_rows_alike(targets)))
    pairs = ((target, change) for target in targets for change in _kept(target))
    return Block(level, tuple(targets), tuple(_row(kind, changes) for kind, changes in _by_kind(pairs).items()))


def _alone(target: Target) -> Block:
    kept = _kept(target)
    rows = []
    for kind, places in _row_places(kept):
        pairs = tuple((target, kept[place]) for place in places)
        rows.append(Row(kind, pairs, pairs[:_EXAMPLES], same=len(pairs) == 1))
    return Block("alone", (target,), tuple(rows))


def _alone_unfolded(target: Target) -> Block:
    pairs = [(target, change) for change in _kept(target)]
    return Block("alone", (target,), tuple(Row(kind_of(pair[1]), (pair,), (pair,), same=True) for pair in pairs))


def _rows_alike(targets: Sequence[Target]) -> Iterator[Row]:
    """Yield the rows of the first target, with the changes of all."""
    first, kept = targets[0], _kept(targets[0])
    of_all = [(target, _kept(target)) for target in targets]
    for kind, places in _row_places(kept):
        changes = tuple((target, changes[place]) for place in places for target, changes in of_all)
        examples = tuple((first, _shown_pattern(kept[place], first)) for place in places[:_EXAMPLES])
        yield Row(kind, changes, examples, same=len(places) == 1)


def _row_places(changes: Sequence[Change]) -> Iterator[tuple[ChangeKind, list[int]]]:
    """Yield which changes of one target share a row: each has its own, but many of one kind have one."""
    by_kind: dict[ChangeKind, list[int]] = {}
    for place, change in enumerate(changes):
        by_kind.setdefault(kind_of(change), []).append(place)
    for place, change in enumerate(changes):
        kind = kind_of(change)
        places = by_kind[kind]
        if len(places) < FEWEST_SIMILAR:
            yield kind, [place]
        elif place == places[0]:
            yield kind, places


def _row(kind: ChangeKind, changes: Sequence[PlannedChange]) -> Row:
    """Return the row of a kind of change on several targets: with one example where it is the same everywhere."""
    target, first = changes[0]
    once = len({id(each) for each, _ in changes}) == len(changes)
    pattern = _pattern(first, target)
    shown = _shown_positions(first, target)
    if once and all(_pattern(c, each) == pattern and _shown_positions(c, each) == shown for each, c in changes):
        return Row(kind, tuple(changes), ((target, _shown_pattern(first, target)),), same=True)
    return Row(kind, tuple(changes), tuple(changes[:_EXAMPLES]), same=False)


def _shown_positions(change: Change, target: Target) -> tuple[str, ...]:
    """Return a change as it is shown if it has positions: their time codes depend on the frame rate of the target."""
    if change.aspect in _IN_FRAMES or change.key in _FIELDS_IN_FRAMES:
        return tuple(map(str, change_parts(change, target)))
    return ()


def _by_kind(pairs: Iterable[PlannedChange]) -> Mapping[ChangeKind, list[PlannedChange]]:
    groups: dict[ChangeKind, list[PlannedChange]] = {}
    for pair in pairs:
        groups.setdefault(kind_of(pair[1]), []).append(pair)
    return groups


# Own titles ----------------------------------------------------------------------------------------------------


def _pattern(change: Change, target: Target) -> Change:
    """Return a change as it is compared with those of other targets: without its source and its own title."""
    return structs.replace(_shown_pattern(change, target), source=_NO_SOURCE)


def _shown_pattern(change: Change, target: Target) -> Change:
    name = target.name
    key = change.key
    if change.aspect == "link" and key.endswith(f"/{name}"):
        key = key.removesuffix(name) + OWN_TITLE
    return structs.replace(
        change, key=key, before=_without_title(change.before, name), after=_without_title(change.after, name)
    )


def _without_title(value: Json, name: str) -> Json:
    if isinstance(value, str):
        return OWN_TITLE if value == name else value
    if isinstance(value, list):
        return [_without_title(each, name) for each in value]
    if isinstance(value, dict):
        return {key: _without_title(each, name) for key, each in value.items()}
    return value


# Counts and errors ---------------------------------------------------------------------------------------------


def _counts(targets: Iterable[Target]) -> tuple[KindCount, ...]:
    """Return the counts of each aspect, the most frequent first."""
    actions: Counter[tuple[AspectName, Action]] = Counter()
    on: Counter[AspectName] = Counter()
    for target in targets:
        actions.update((change.aspect, change.action) for change in target.changes)
        on.update({change.aspect for change in target.changes})
    counts = (
        KindCount(
            aspect,
            actions[aspect, "add"],
            actions[aspect, "change"],
            actions[aspect, "delete"],
            actions[aspect, "run"],
            number,
        )
        for aspect, number in on.items()
    )
    return tuple(sorted(counts, key=lambda each: (-sum(each[1:5]), each.aspect)))


def _errors(plan: Plan) -> Iterator[ErrorGroup]:
    """Yield the targets in error, those with the same error together; their own titles may differ in it."""
    groups: dict[str, list[Target]] = {}
    for target in plan.targets:
        if target.error is not None:
            groups.setdefault(_error_pattern(target.error, target.name), []).append(target)
    for pattern, targets in groups.items():
        errors = {target.error or "": target for target in targets}
        if len(errors) == 1:
            yield ErrorGroup(next(iter(errors)), tuple(targets))
        elif len(targets) >= FEWEST_ALIKE:
            yield ErrorGroup(pattern, tuple(targets))
        else:
            yield from (ErrorGroup(error, (target,)) for error, target in errors.items())


def _warnings(warnings: Iterable[str]) -> Iterator[WarningGroup]:
    """Yield the warnings, those of several targets together; the title is between the first two colons."""
    groups: dict[str, dict[str, str]] = {}
    for warning in dict.fromkeys(warnings):
        server, _, rest = warning.partition(": ")
        name, _, text = rest.partition(": ")
        pattern = f"{server}: {_error_pattern(text, name)}" if text else warning
        groups.setdefault(pattern, {})[warning] = name
    for pattern, named in groups.items():
        if len(named) >= FEWEST_ALIKE:
            yield WarningGroup(pattern, tuple(named.values()))
        else:
            yield from map(WarningGroup, named)


def _error_pattern(error: str, name: str) -> str:
    return re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", lambda _: OWN_TITLE, error) if name else error
