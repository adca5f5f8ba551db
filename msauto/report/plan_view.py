"""What a plan changes, as text, Markdown and HTML show it: the one view that all forms are drawn from.

``view_plan(plan)`` returns a :class:`PlanView`; nothing is lost in it. Every change of a target without an error is
either in exactly one row of one block, or is one of ``deletions``:

- ``blocks``: targets that are shown together, in the order of the plan (that of their first target). A block is

  - ``alike``: at least 3 targets whose changes are the same;
  - ``table``: targets that change the same things, in at least 3 different ways, and nothing is removed. Those alike
    are a block of their own only from 10 titles on. A table has up to 100 lines;
  - ``alone``: one target.

- ``Block.rows``: what the block does, a :class:`Row` for each thing that is shown. ``row.changes`` are all the pairs
  of target and change that it stands for. If ``row.same``, ``row.example`` is a pair that shows all of them; otherwise
  it is a column of the table, whose :class:`TableLine` has a cell for each of them.
- ``Block.whole``: nothing of the block may be shortened or left out.
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
from functools import partial
from hashlib import blake2b
from itertools import chain, compress
from math import ceil
from operator import attrgetter
from typing import Final, Literal, NamedTuple, TypeVar

from msgspec import Struct, structs

from msauto.aspects import ASPECTS, deletions_of
from msauto.aspects.aspect import Value
from msauto.codec import to_key
from msauto.model.desired import TaskSource
from msauto.model.plan import Action, Change, Plan, Target
from msauto.model.snapshot import AspectName, Json
from msauto.report import texts
from msauto.report.clip_timeline import Timeline, timeline_of
from msauto.report.sanitizing import NameRange, message_lines, name_ranges, show, show_range
from msauto.secrets.redacted_plans import redact_plan

OWN_TITLE: Final = "<title>"
"""Stands for the title of each target."""
FEWEST_ALIKE: Final = 3
_FEWEST_FOLDED: Final = 10
"""Titles from which on equal changes do not stay in a table, and from which on list items are in one."""
ACTIONS: Final[tuple[Action, ...]] = ("add", "change", "delete", "run")
MOST_LINES: Final = 400
_MOST_TABLE_LINES: Final = 100
_NEVER_SHORTENED: Final = 40
"""Targets up to which a plan is shown in full, however long it is."""
_NO_SOURCE: Final = TaskSource("", 0, 0, "")

_LEVELS: Final = {"alone": "", "alike": "with the same changes", "table": "with changes of the same things"}

Level = Literal["alone", "alike", "table"]
PlannedChange = tuple[Target, Change]
_Key = TypeVar("_Key")


class Deletion(NamedTuple):
    """A deleted asset or link."""

    target: Target
    change: Change

    @property
    def link(self) -> str:
        """The folder and title of a link that is deleted alone; empty: the asset is deleted."""
        return texts.show_key(self.change) if ASPECTS[self.change.aspect].deletes == "link" else ""

    @property
    def facts(self) -> dict[str, str]:
        """What is lost with an asset: its folder, length, creation time and so on."""
        return {} if self.link else {part.label: part.value for part in texts.change_parts(self.change, self.target)}


class ChangeKind(NamedTuple):
    """What changes have in common: ``subject`` is the field's name, the marker's track, the link's folder, the command.

    It is empty where an aspect has only numbers or guids.
    """

    action: Action
    aspect: AspectName
    subject: str


class Cell(NamedTuple):
    """A change in a table. ``key`` and ``notes``: what is not in the heading and the notes of its column."""

    target: Target
    change: Change
    key: str
    notes: str

    def text(self, width: texts.ValueWidth) -> str:
        """Return what the change does."""
        values = ", ".join(map(str, texts.change_parts(self.change, self.target, width)))
        return " ".join(filter(None, (self.key, values, self.notes and f"({self.notes})")))


class Row(Struct, frozen=True):
    """Changes of one kind that are shown together. ``same``: the example shows all of them."""

    kind: ChangeKind
    changes: tuple[PlannedChange, ...]
    example: PlannedChange
    same: bool

    @property
    def key(self) -> str:
        """The key of the changes, or what their keys have in common; visible."""
        subject = self.kind.subject
        return texts.show_key(self.example[1]) if self.same else show(subject) if subject else ""

    @property
    def heading(self) -> str:
        """The heading of a column: the key; before it another action than a change, and the aspect of list items."""
        action, aspect, _ = self.kind
        sign = texts.SIGNS[action] if action != "change" else ""
        is_value = isinstance(ASPECTS[aspect], Value)
        return " ".join(filter(None, (sign, "" if self.key and is_value else aspect, self.key)))

    @property
    def notes(self) -> str:
        """The notes that all the changes have."""
        changes = self.changes[: 1 if self.same else None]
        notes = {"; ".join(texts.change_notes(change, target.rate)) for target, change in changes}
        return notes.pop() if len(notes) == 1 else ""

    @property
    def cells(self) -> Iterator[Cell]:
        """The changes as the cells of a column."""
        common = self.notes
        for target, change in self.changes:
            key = texts.show_key(change)
            notes = "" if common else "; ".join(texts.change_notes(change, target.rate))
            yield Cell(target, change, "" if key == self.key else key, notes)


class TableLine(NamedTuple):
    """A line of a table: targets of one title and the same changes, on several servers if there are several.

    ``place``: the servers, where not all lines have the same. ``cells``: a change for each column.
    """

    targets: tuple[Target, ...]
    place: str
    cells: tuple[Cell | None, ...]

    @property
    def label(self) -> str:
        """The title, and the servers."""
        return f"{show(self.targets[0].name)}{self.place and f' ({self.place})'}"


class NamedTargets(NamedTuple):
    """The names of targets that the same servers have in a database of the same name."""

    servers: tuple[str, ...]
    database: str
    ranges: tuple[NameRange, ...]

    @property
    def place(self) -> str:
        """The servers and the database, to be put before the names."""
        servers = ", ".join(map(show_range, name_ranges(self.servers)))
        return f"{servers} · {show(self.database)}: " if self.database else f"{servers}: "

    def listed(self, most: int | None = None) -> str:
        """Return the names; ``most``: how many names or ranges, the others are counted."""
        left = sum(each.size for each in self.ranges[most:]) if most is not None else 0
        return ", ".join(map(show_range, self.ranges[:most])) + (f" and {left} more" if left else "")


class TargetGroup(Struct, frozen=True):
    """Targets that are shown together, at least one, in the order of the plan."""

    targets: tuple[Target, ...]

    @property
    def heading(self) -> str:
        """The heading of its target, or server, database and number, such as ``studio-a · NEWS · 300 assets``."""
        if len(self.targets) == 1:
            return texts.target_heading(self.targets[0])
        kinds = {target.kind for target in self.targets}
        noun = texts.KINDS[self.targets[0].kind] if len(kinds) == 1 else "target"
        servers = {target.server for target in self.targets}
        databases = {target.database for target in self.targets if target.database}
        places = [show(min(names)) if len(names) == 1 else texts.plural(len(names), what)
                  for names, what in ((servers, "server"), (databases, "database")) if names]  # fmt: skip
        return " · ".join([*places, texts.plural(len(self.targets), noun)])

    @property
    def named(self) -> tuple[NamedTargets, ...]:
        """The names of several targets, which the heading only counts; servers with the same names are together."""
        if len(self.targets) == 1:
            return ()
        places: dict[tuple[str, str], list[str]] = {}
        for target in self.targets:
            places.setdefault((target.server, target.database), []).append(target.name)
        same: dict[tuple[str, tuple[NameRange, ...]], list[str]] = {}
        for (server, database), own in places.items():
            same.setdefault((database, name_ranges(own)), []).append(server)
        return tuple(NamedTargets(tuple(servers), database, ranges) for (database, ranges), servers in same.items())

    def name_lines(self, most: int | None = None) -> Iterator[str]:
        """Yield a line of names for each place, of which each is named where there are several."""
        named = self.named
        for targets in named:
            has_a_place = len(named) + len(targets.servers) > 2
            place = targets.place if has_a_place else ""
            yield f"{place}{targets.listed(most)}"


class Block(TargetGroup, frozen=True):
    """Targets of one kind; ``level`` is why they are together.

    ``whole``: it removes something, or the plan is short, so that each name and value of it is shown. ``table``: the
    targets of each line of a table.
    """

    level: Level
    rows: tuple[Row, ...]
    whole: bool
    table: tuple[tuple[Target, ...], ...] = ()

    @property
    def columns(self) -> list[Row]:
        """The things that are not the same in all targets."""
        return [row for row in self.rows if not row.same]

    @property
    def lines(self) -> Iterator[TableLine]:
        """The lines of the table."""
        columns = [{id(cell.target): cell for cell in row.cells} for row in self.columns]
        places = [", ".join(map(texts.server_of, targets)) for targets in self.table]
        places = places if len(set(places)) > 1 else [""] * len(places)
        for targets, place in zip(self.table, places, strict=True):
            yield TableLine(targets, place, tuple(column.get(id(targets[0])) for column in columns))

    @property
    def title(self) -> str:
        """The heading, and what the targets have in common."""
        return f"{self.heading} {_LEVELS[self.level]}".rstrip()

    @property
    def timeline(self) -> Timeline | None:
        """The timeline that all its targets have."""
        timeline = timeline_of(self.targets[0])
        return timeline if all(timeline_of(target) == timeline for target in self.targets[1:]) else None

    @property
    def folder(self) -> str:
        """The folder of all its targets, or how many folders they are in; empty if it is not known."""
        folders = {target.folder for target in self.targets}
        if len(folders) == 1:
            return texts.folder_note(self.targets[0])
        return f"in {len(folders)} folders" if None not in folders else ""

    @property
    def emptied(self) -> Sequence[str]:
        """A line for each kind of list that ``exactly`` empties."""
        if self.level == "alone":
            return texts.emptied_lists(self.targets[0])
        emptied = Counter(each.aspect for target in self.targets for each in target.emptied if each.count > 1)
        counts = ((aspect.replace("_", " "), texts.plural(count, "target")) for aspect, count in emptied.items())
        return [f"all {each}s of {targets} are removed: the lists are empty afterwards" for each, targets in counts]


class KindCount(NamedTuple):
    """How often an aspect changes; ``targets`` counts the targets that it changes on."""

    aspect: AspectName
    add: int
    change: int
    delete: int
    run: int
    targets: int


class ErrorGroup(TargetGroup, frozen=True):
    """Targets that cannot be planned for one reason; ``error`` may hold :data:`OWN_TITLE` if there are several."""

    error: str

    @property
    def lines(self) -> list[str]:
        """The lines of the error, visible."""
        return message_lines(self.error)


class WarningGroup(NamedTuple):
    """A warning. ``names``: the targets of ``server: name: text`` where at least 3 have the same text."""

    text: str
    names: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """The lines of the warning, visible."""
        return message_lines(self.text)

    @property
    def named(self) -> NamedTargets:
        """The names of the targets."""
        return NamedTargets((), "", name_ranges(self.names))


class PlanView(Struct, frozen=True):
    """A plan, without its secrets, as its forms show it; the docstring of the module describes the groups."""

    plan: Plan
    sentence: str
    refusals: tuple[str, ...]
    settings: str
    blocks: tuple[Block, ...]
    deletions: tuple[Deletion, ...]
    counts: tuple[KindCount, ...]
    errors: tuple[ErrorGroup, ...]
    warnings: tuple[WarningGroup, ...]

    @property
    def deletions_heading(self) -> str:
        """How much is deleted, to be put above the list of it."""
        links = sum(bool(each.link) for each in self.deletions)
        assets = len(self.deletions) - links
        verb = "is" if len(self.deletions) == 1 else "are"
        forever = "this cannot be undone" if not links else "a deleted asset cannot be brought back" if assets else ""
        return f"{texts.count_deletions(assets, links)} {verb} deleted{forever and f'; {forever}'}"


def view_plan(plan: Plan, *, folded: bool = True, keep_going: bool = False) -> PlanView:
    """Return the view of a plan; without ``folded`` every target has a block, and every change a row.

    ``keep_going``: targets in error are left out.
    """
    plan = redact_plan(plan)
    changing = [target for target in plan.targets if target.changes and target.error is None]
    deletions = tuple([Deletion(target, each) for target in changing for each in deletions_of(target)])
    shown = [target for target in changing if _kept(target)]
    short = len(shown) <= _NEVER_SHORTENED
    blocks = _blocks(shown, short=short) if folded else [_block("alone", [each], short=short) for each in shown]
    return PlanView(
        plan,
        texts.plan_sentence(plan, keep_going=keep_going),
        tuple(map(texts.refusal_sentence, plan.refusals)),
        texts.settings_line(plan),
        tuple(blocks),
        deletions,
        _counts(changing),
        tuple(_errors(plan)),
        tuple(_warnings(plan.warnings)),
    )


def shown_blocks(blocks: Sequence[Block]) -> tuple[list[Block], int]:
    """Return the blocks that a reader sees at first, and how many targets are in the others.

    Up to 40 targets are all shown, of more as many as fit in 400 lines. What removes something is always shown.
    """
    shown, lines, left = [], 0, 0
    for block in blocks:
        if lines <= MOST_LINES:
            lines += len(block.rows) + 2 + 2 * (block.timeline is not None)
            lines += len(block.table) * ceil(len(block.columns) / 3)
        if lines <= MOST_LINES or block.whole:
            shown.append(block)
        else:
            left += len(block.targets)
    return shown, left


def _loses(change: Change) -> bool:
    return change.action == "delete" or bool(change.losses)


def kind_of(change: Change) -> ChangeKind:
    """Return the kind of a change."""
    return ChangeKind(change.action, change.aspect, ASPECTS[change.aspect].shown(change).subject)


# Blocks --------------------------------------------------------------------------------------------------------


def _blocks(targets: Sequence[Target], *, short: bool) -> list[Block]:
    """Return the blocks of targets that change, in the order of the plan."""
    order = {id(target): place for place, target in enumerate(targets)}
    alike_key = partial(_alike_key, {})
    blocks: list[Block] = []
    for group in _of_the_same_things(targets):
        alike = [*_grouped(group, alike_key).values()]
        folded = [len({target.name for target in each}) >= _FEWEST_FOLDED for each in alike]
        tables = _tables([each for each, is_folded in zip(alike, folded, strict=True) if not is_folded], order, short)
        blocks += tables
        for each in compress(alike, folded) if tables else alike:
            if len(each) >= FEWEST_ALIKE:
                blocks.append(_block("alike", each, short=short))
            else:
                blocks += (_block("alone", [target], short=short) for target in each)
    return sorted(blocks, key=lambda block: order[id(block.targets[0])])


def _grouped(targets: Iterable[Target], key: Callable[[Target], _Key]) -> dict[_Key, list[Target]]:
    groups: dict[_Key, list[Target]] = {}
    for target in targets:
        groups.setdefault(key(target), []).append(target)
    return groups


def _of_the_same_things(targets: Sequence[Target]) -> list[list[Target]]:
    """Return the targets that may be one table, together: those that change one thing at least that others change."""
    groups: list[list[Target]] = []
    homes: dict[object, list[Target]] = {}
    for things, members in sorted(_grouped(targets, _things).items(), key=lambda item: -len(item[0])):
        home = next((homes[each] for each in things if each in homes), None)
        if home is None:
            groups.append(home := [])
        home += members
        for each in things:
            homes.setdefault(each, home)
    return groups


def _things(target: Target) -> tuple[object, ...]:
    """Return what a target changes: each thing, or all in one where it changes list items, or something is removed."""
    kept = _kept(target)
    about = target.kind, frozenset(each.aspect for each in target.emptied)
    kinds = [kind_of(change) for change in kept]
    loses = changes_an_item = False
    for change in kept:
        loses = loses or _loses(change)
        changes_an_item = changes_an_item or isinstance(change.after, dict)
    if loses or changes_an_item:
        return ((*about, loses, *kinds),)
    return tuple(dict.fromkeys([(*about, kind) for kind in kinds]))


def _tables(alike: Sequence[list[Target]], order: Mapping[int, int], short: bool) -> list[Block]:
    """Return the tables of targets that change the same things; ``alike``: those that change them alike.

    Empty if there are fewer than three of them, something is removed, or more than one list item differs.
    """
    if len(alike) < FEWEST_ALIKE or any(_loses(change) for change in _kept(alike[0][0])):
        return []
    lines = [tuple(line) for each in alike for line in _grouped(each, attrgetter("name")).values()]
    lines.sort(key=lambda line: order[id(line[0])])
    rows = _rows_of_table([*chain(*lines)])
    items = [row for row in rows if not row.same and isinstance(row.example[1].after, dict)]
    if len(items) > 1 or (items and len(alike) < _FEWEST_FOLDED):
        return []
    size = ceil(len(lines) / ceil(len(lines) / _MOST_TABLE_LINES))
    parts = [lines[at : at + size] for at in range(0, len(lines), size)]
    tables = [(tuple(chain(*part)), tuple(part)) for part in parts]
    whole = short or any(change.outside for each in alike for target in each for change in target.changes)
    if len(tables) == 1:
        targets, part = tables[0]
        return [Block(targets, "table", rows, whole, part)]
    return [Block(targets, "table", _rows_of_table(targets), whole, part) for targets, part in tables]


def _rows_of_table(targets: Sequence[Target]) -> tuple[Row, ...]:
    """Return a row for each thing that targets change; a second one of the same kind is a thing of its own."""
    things: dict[tuple[ChangeKind, int], list[PlannedChange]] = {}
    for target in targets:
        seen: Counter[ChangeKind] = Counter()
        for change in _kept(target):
            seen[kind := kind_of(change)] += 1
            things.setdefault((kind, seen[kind]), []).append((target, change))
    return tuple(_row(pairs, same=len(pairs) == len(targets) and _are_same(pairs)) for pairs in things.values())


def _alike_key(first: dict[bytes, Target], target: Target) -> object:
    """Return what targets with the same changes share; ``first`` keeps the first of them.

    Positions are compared as they are shown: only at another frame rate do the same frames show other time codes.
    """
    changes = [_shared(each, target) for each in _kept(target)]
    content = to_key((target.kind, changes, target.emptied, target.wait))
    key = blake2b(content, digest_size=16).digest()  # 300,000 targets: their content is not held twice
    known = first.setdefault(key, target)
    if target.rate == known.rate:
        return key
    shown, expected = ([_positions(each, of) for each in _kept(of)] for of in (target, known))
    return key if shown == expected else (key, str(shown))


def _kept(target: Target) -> list[Change]:
    """Return the changes that blocks show: all but the deletions."""
    kept = []
    for change in target.changes:
        if change.action != "delete" or not ASPECTS[change.aspect].deletes:
            kept.append(change)
    return kept


def _block(level: Level, targets: Sequence[Target], *, short: bool) -> Block:
    """Return a block of targets with the same changes in the same order, with a row for each of them.

    ``short``: the plan is, and is shown in full.
    """
    rows = [_row([*zip(targets, changes, strict=True)]) for changes in zip(*map(_kept, targets), strict=True)]
    whole = short or any(_loses(row.example[1]) or row.example[1].outside for row in rows)
    return Block(tuple(targets), level, tuple(rows), whole)


def _row(pairs: Sequence[PlannedChange], *, same: bool = True) -> Row:
    target, change = pairs[0]
    example = target, _shared(change, target) if len(pairs) > 1 else change
    return Row(kind_of(change), tuple(pairs), example, same)


# Own titles ----------------------------------------------------------------------------------------------------


def _are_same(pairs: Sequence[PlannedChange]) -> bool:
    """Return whether changes are the same, and their positions are shown alike."""
    first = None
    for target, change in pairs:
        content = to_key(_shared(change, target))
        if first is None:
            first = content
        elif content != first:
            return False
    return len({_positions(change, target) for target, change in {pair[0].rate: pair for pair in pairs}.values()}) == 1


def _positions(change: Change, target: Target) -> tuple[str, ...]:
    """Return the positions of a change as they are shown."""
    return tuple(map(str, texts.change_parts(_shared(change, target), target)))


def _shared(change: Change, target: Target) -> Change:
    """Return what a change may share with those of other targets: all but its source and its own title."""
    name = target.name
    key = change.key
    if ASPECTS[change.aspect].deletes == "link" and key.endswith(f"/{name}"):
        key = key.removesuffix(name) + OWN_TITLE

    before, after = _without_own_title(change.before, name), _without_own_title(change.after, name)
    return structs.replace(change, key=key, before=before, after=after, source=_NO_SOURCE)


def _without_own_title(value: Json, name: str) -> Json:
    """Return a value with the placeholder in place of each text that is the title."""
    if value == name:
        return OWN_TITLE
    if isinstance(value, dict):
        shared: dict[str, Json] = {}
        for key, part in value.items():
            if part == name:
                part = OWN_TITLE
            elif isinstance(part, dict | list):
                part = _without_own_title(part, name)
            shared[key] = part
        return shared
    if isinstance(value, list):
        return [_without_own_title(part, name) for part in value]
    return value


# Counts and errors ---------------------------------------------------------------------------------------------


def _counts(targets: Iterable[Target]) -> tuple[KindCount, ...]:
    """Return the counts of each aspect, the most frequent first."""
    actions: Counter[tuple[Action, AspectName]] = Counter()
    on: Counter[AspectName] = Counter()
    for target in targets:
        aspects: set[AspectName] = set()
        for change in target.changes:
            actions[change.action, change.aspect] += 1
            aspects.add(change.aspect)
        on.update(aspects)
    counts = (
        KindCount._make((aspect, *(actions[each, aspect] for each in ACTIONS), number)) for aspect, number in on.items()
    )
    return tuple(sorted(counts, key=lambda each: (-sum(each[1:5]), each.aspect)))


def _errors(plan: Plan) -> Iterator[ErrorGroup]:
    """Yield the targets in error, those with the same error together; their own titles may differ in it."""
    groups: dict[str, list[Target]] = {}
    for target in plan.targets:
        if target.error is not None:
            groups.setdefault(without_title(target.error, target.name), []).append(target)
    for pattern, targets in groups.items():
        errors = {target.error or "": target for target in targets}
        if len(errors) == 1:
            yield ErrorGroup(tuple(targets), next(iter(errors)))
        elif len(targets) >= FEWEST_ALIKE:
            yield ErrorGroup(tuple(targets), pattern)
        else:
            yield from (ErrorGroup((target,), error) for error, target in errors.items())


def _warnings(warnings: Iterable[str]) -> Iterator[WarningGroup]:
    """Yield the warnings, those of several targets together; the title is between the first two colons."""
    groups: dict[str, dict[str, str]] = {}
    for warning in dict.fromkeys(warnings):
        server, _, rest = warning.partition(": ")
        name, _, text = rest.partition(": ")
        pattern = f"{server}: {without_title(text, name)}" if text else warning
        groups.setdefault(pattern, {})[warning] = name
    for pattern, named in groups.items():
        if len(named) >= FEWEST_ALIKE:
            yield WarningGroup(pattern, tuple(named.values()))
        else:
            yield from map(WarningGroup, named)


def without_title(text: str, name: str) -> str:
    """Return a text with placeholders for a title in it."""
    return re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", lambda _: OWN_TITLE, text) if name else text
