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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from hashlib import blake2b
from itertools import chain
from math import ceil
from operator import attrgetter, itemgetter
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_args

from msgspec import Struct, structs

from msauto.aspects import ASPECTS, deletions_of
from msauto.aspects.aspect import Value
from msauto.codec import to_key
from msauto.model.desired import TaskSource
from msauto.model.plan import Action, Change, Plan, SkippedTarget, SkipReason, Target
from msauto.model.snapshot import AspectName, Json
from msauto.report.clip_timeline import Timeline, timeline_of
from msauto.report.sanitizing import (
    NameRange,
    message_lines,
    name_ranges,
    show,
    show_name,
    show_range,
    visible,
)
from msauto.report.texts import (
    KINDS,
    SIGNS,
    ValueWidth,
    change_notes,
    change_parts,
    count_deletions,
    emptied_lists,
    folder_note,
    local_time,
    plan_sentence,
    plural,
    refusal_sentence,
    server_of,
    settings_line,
    show_key,
    target_heading,
)
from msauto.secrets.redacted_plans import redact_plan

PLACE: Final = r"(?:[^:]+\.ya?ml|\S+):\d+:\d+: "
"""The place in a file with which a message begins, as a pattern; the names of playbooks may have spaces."""
OWN_TITLE: Final = "<title>"
"""Stands for the title of each target."""
FEWEST_ALIKE: Final = 3
_FEWEST_FOLDED: Final = 10
"""Titles from which on equal changes do not stay in a table, and from which on list items are in one."""
ACTIONS: Final[tuple[Action, ...]] = ("add", "change", "delete", "run")
MOST_LINES: Final = 400
_MOST_DELETION_LINES: Final = 10
"""Titles up to which each deletion has a line of its own."""
_TITLES_OF_LINE: Final = 20
_OWN_FACTS: Final = ("length", "created")
"""What each deleted asset has of its own: a line of several titles leaves it out."""
_MOST_SKIPPED: Final = 100
"""How many names, or ranges of names, of skipped targets are shown."""
_MOST_TABLE_LINES: Final = 100
_NEVER_SHORTENED: Final = 40
"""Targets up to which a plan is shown in full, however long it is."""
_NO_SOURCE: Final = TaskSource("", 0, 0, "")

_LEVELS: Final = {
    "alone": "",
    "alike": "with the same changes",
    "table": "with changes of the same things",
}

Level = Literal["alone", "alike", "table"]
PlannedChange = tuple[Target, Change]
_Kinds = Mapping[int, "ChangeKind"]
"""The kinds of changes, by their ids."""
_Key = TypeVar("_Key")
_Shown = TypeVar("_Shown")
_NamesThere = tuple[str, tuple[NameRange, ...]]
PlacedName = tuple[str, str, str]
"""The server, the database and the name of a target."""
placed_name: Final[Callable[[Any], PlacedName]] = attrgetter("server", "database", "name")


class Deletion(NamedTuple):
    """A deleted asset or link."""

    target: Target
    change: Change

    @property
    def link(self) -> str:
        """The folder and title of a link that is deleted alone; empty: the asset is deleted."""
        if ASPECTS[self.change.aspect].deletes != "link":
            return ""
        return show_key(self.change)

    @property
    def facts(self) -> dict[str, str]:
        """What is lost with an asset: its folder, length, creation time and so on."""
        if self.link:
            return {}
        return {part.label: part.value for part in change_parts(self.change, self.target)}


class DeletionGroup(NamedTuple):
    """Deletions on one line: a title on several servers, or titles of which the same is known on the same servers."""

    deletions: tuple[Deletion, ...]

    @property
    def place(self) -> str:
        """The servers and the database."""
        targets = [deletion.target for deletion in self.deletions]
        return place_of([target.server for target in targets], targets[0].database)

    @property
    def named(self) -> dict[str, Target]:
        """What is deleted, each with its first target; visible."""
        named: dict[str, Target] = {}
        for deletion in self.deletions:
            name = show_name(deletion.target.name)
            if deletion.link:
                name = f"link {deletion.link} of {name}"
            if deletion.change.losses:
                name = f"{name}  (removed by `exactly`)"
            named.setdefault(name, deletion.target)
        return named

    @property
    def facts(self) -> list[str]:
        """What is known of each; what differs with the servers, and of several titles what they have in common."""
        if len(self.named) > 1:
            return self.common_facts
        return self._facts({})

    @property
    def common_facts(self) -> list[str]:
        """What several titles have in common."""
        return self._facts(_OWN_FACTS)

    def _facts(self, without: Collection[str]) -> list[str]:
        servers: dict[tuple[str, str], list[str]] = {}
        title = self.deletions[0].target.name
        alike = [deletion for deletion in self.deletions if deletion.target.name == title]
        for deletion in alike:
            for label, value in deletion.facts.items():
                if label not in without:
                    servers.setdefault((label, value), []).append(deletion.target.server)
        facts = []
        for fact, names in servers.items():
            text = " ".join(fact)
            if len(names) < len(alike):
                text = f"{text} ({names_of_servers(names)})"
            facts.append(text)
        return facts

    @property
    def line(self) -> str:
        """The servers and the names: the text that a user searches for."""
        return f"{self.heading}{', '.join(self.named)}"

    @property
    def heading(self) -> str:
        """What is before the names: the servers, and how many names follow."""
        number = len(self.named)
        return f"{self.place} · {number}: " if number > 1 else f"{self.place} · "


def names_of_servers(servers: Iterable[str]) -> str:
    """Return the names of servers, each once; visible."""
    return ", ".join(map(show_range, name_ranges(dict.fromkeys(servers))))


def place_of(servers: Iterable[str], database: str) -> str:
    """Return servers and their database; visible."""
    names = names_of_servers(servers)
    return f"{names} · {show(database)}" if database else names


def deletion_groups(deletions: Iterable[Deletion], *, whole: bool) -> Iterator[DeletionGroup]:
    """Yield deletions by title, or, where they are many, by what they have in common."""
    titles = _grouped(deletions, _named_deletion)
    if whole or len(titles) <= _MOST_DELETION_LINES:
        yield from (DeletionGroup(tuple(group)) for group in titles.values())
        return
    places = _grouped(titles.values(), _common_of_deletions)
    for groups in places.values():
        for start in range(0, len(groups), _TITLES_OF_LINE):
            part = groups[start : start + _TITLES_OF_LINE]
            yield DeletionGroup(tuple(chain.from_iterable(part)))


def _named_deletion(deletion: Deletion) -> tuple[str, str, str, bool]:
    target = deletion.target
    return target.database, target.name, deletion.link, bool(deletion.change.losses)


def _common_of_deletions(alike: Sequence[Deletion]) -> tuple[Any, ...]:
    """Return on which servers a title is deleted, and what it has in common with others there."""
    known = []
    for target, change in alike:
        outside = change.outside and str(change.outside.left)
        known.append((target.server, target.folder, target.places, outside))
    return alike[0].target.database, bool(alike[0].link), *known


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

    def text(self, width: ValueWidth) -> str:
        """Return what the change does."""
        values = ", ".join(map(str, change_parts(self.change, self.target, width)))
        notes = f"({self.notes})" if self.notes else ""
        return " ".join(filter(None, (self.key, values, notes)))


class Row(Struct, frozen=True):
    """Changes of one kind that are shown together. ``same``: the example shows all of them."""

    kind: ChangeKind
    changes: tuple[PlannedChange, ...]
    example: PlannedChange
    same: bool

    @property
    def key(self) -> str:
        """The key of the changes, or what their keys have in common; visible."""
        if self.same:
            return show_key(self.example[1])
        subject = self.kind.subject
        if subject:
            return show(subject)
        return ""

    @property
    def heading(self) -> str:
        """The heading of a column: the key; before it another action than a change, and the aspect of list items."""
        action, aspect, _ = self.kind
        parts = []
        if action != "change":
            parts.append(SIGNS[action])
        key = self.key
        if not key or not isinstance(ASPECTS[aspect], Value):
            parts.append(aspect)
        if key:
            parts.append(key)
        return " ".join(parts)

    @property
    def notes(self) -> str:
        """The notes that all the changes have."""
        changes = self.changes[:1] if self.same else self.changes
        notes = {_notes(change, target) for target, change in changes}
        if len(notes) == 1:
            return notes.pop()
        return ""

    @property
    def cells(self) -> Iterator[Cell]:
        """The changes as the cells of a column."""
        common_key = self.key
        common_notes = self.notes
        for target, change in self.changes:
            key = show_key(change)
            if key == common_key:
                key = ""
            notes = "" if common_notes else _notes(change, target)
            yield Cell(target, change, key, notes)


def _notes(change: Change, target: Target) -> str:
    return "; ".join(change_notes(change, target.rate))


class TableLine(NamedTuple):
    """A line of a table: targets of one title and the same changes, on several servers if there are several.

    ``place``: the servers, where these are not all of the table. ``cells``: a change for each column.
    """

    targets: tuple[Target, ...]
    place: str
    cells: tuple[Cell | None, ...]

    @property
    def label(self) -> str:
        """The title, and the servers."""
        title = show(self.targets[0].name)
        if self.place:
            return f"{title} ({self.place})"
        return title

    def shown(self, width: ValueWidth) -> Iterator[str]:
        """Yield the text of each cell."""
        for cell in self.cells:
            yield cell.text(width) if cell else ""


class NamedTargets(NamedTuple):
    """The names of targets that the same servers have in a database of the same name.

    ``place``: the servers and the database, to be put before the names; empty where a heading has them.
    """

    servers: tuple[str, ...]
    database: str
    ranges: tuple[NameRange, ...]
    place: str = ""

    @property
    def size(self) -> int:
        """How many targets have the names."""
        return self.names * max(1, len(self.servers))

    @property
    def names(self) -> int:
        """How many names there are."""
        return sum(names.size for names in self.ranges)

    def listed(self, most: int | None = None) -> str:
        """Return the place and the names; ``most``: how many names or ranges, the others are counted."""
        shown = self.ranges[:most]
        others = sum(names.size for names in self.ranges[len(shown) :])
        more = f" and {others} more" if others else ""
        return f"{self.place}{', '.join(map(show_range, shown))}{more}"


def named_targets(targets: Iterable[PlacedName]) -> tuple[NamedTargets, ...]:
    """Return the names of targets; servers with the same names are together."""
    places: dict[tuple[str, str], list[str]] = {}
    for server, database, name in targets:
        places.setdefault((server, database), []).append(name)
    alike: dict[_NamesThere, list[str]] = {}
    for (server, database), names in places.items():
        servers = alike.setdefault((database, name_ranges(names)), [])
        servers.append(server)
    named = []
    for (database, ranges), servers in alike.items():
        place = f"{place_of(servers, database)}: "
        named.append(NamedTargets(tuple(servers), database, ranges, place))
    return tuple(named)


def bounded_names(named: Iterable[NamedTargets], most: int, more: int = 0) -> str:
    """Return so many names or ranges of all places, and how many others there are; ``more`` have no names here."""
    parts = []
    for targets in named:
        shown = targets._replace(ranges=targets.ranges[:most])
        most -= len(shown.ranges)
        more += targets.size - shown.size
        if shown.ranges:
            parts.append(shown.listed())
    names = "; ".join(parts)
    return f"{names} and {more} more" if more else names


class TargetGroup(Struct, frozen=True):
    """Targets that are shown together, at least one, in the order of the plan."""

    targets: tuple[Target, ...]

    @property
    def heading(self) -> str:
        """The heading of its target, or server, database and number, such as ``studio-a · NEWS · 300 assets``."""
        if len(self.targets) == 1:
            return target_heading(self.targets[0])
        kinds = {target.kind for target in self.targets}
        noun = KINDS[self.targets[0].kind] if len(kinds) == 1 else "target"
        databases = {target.database for target in self.targets if target.database}
        parts = [names_of_servers(target.server for target in self.targets)]
        if len(databases) == 1:
            parts += map(show, databases)
        elif databases:
            parts.append(plural(len(databases), "database"))
        parts.append(plural(len(self.targets), noun))
        return " · ".join(parts)

    @property
    def named(self) -> tuple[NamedTargets, ...]:
        """The names of several targets, which the heading only counts; servers with the same names are together."""
        if len(self.targets) == 1:
            return ()
        first, *others = named_targets(map(placed_name, self.targets))
        if not others:
            first = first._replace(place="")
        return first, *others

    def name_lines(self, most: int | None = None) -> list[str]:
        """Return a line of names for each place."""
        return [targets.listed(most) for targets in self.named]


class Block(TargetGroup, frozen=True, dict=True):
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
        columns = []
        for row in self.columns:
            columns.append({id(cell.target): cell for cell in row.cells})
        everywhere = self._place(self.targets)
        for targets in self.table:
            place = self._place(targets)
            if place == everywhere:
                place = ""
            first = id(targets[0])
            cells = tuple([column.get(first) for column in columns])
            yield TableLine(targets, place, cells)

    @cached_property
    def _has_databases(self) -> bool:
        """Whether its targets are in several databases: each line of a table asks."""
        return len({target.database for target in self.targets}) > 1

    def _place(self, targets: Iterable[Target]) -> str:
        """Return the servers of targets, with their databases where these are several."""
        if self._has_databases:
            return ", ".join(dict.fromkeys(map(server_of, targets)))
        return names_of_servers([target.server for target in targets])

    @property
    def title(self) -> str:
        """The heading, and what the targets have in common."""
        return f"{self.heading} {_LEVELS[self.level]}".rstrip()

    @cached_property
    def timeline(self) -> Timeline | None:
        """The timeline that all its targets have."""
        first, *others = self.targets
        timeline = timeline_of(first)
        for target in others:
            if timeline_of(target) != timeline:
                return None
        return timeline

    @property
    def folder(self) -> str:
        """The folder of all its targets, or how many folders they are in; empty if it is not known."""
        folders = {target.folder for target in self.targets}
        if len(folders) == 1:
            return folder_note(self.targets[0])
        if None in folders:
            return ""
        return f"in {len(folders)} folders"

    @property
    def emptied(self) -> Sequence[str]:
        """A line for each kind of list that ``exactly`` empties."""
        if self.level == "alone":
            return emptied_lists(self.targets[0])
        counts: Counter[AspectName] = Counter()
        for target in self.targets:
            counts.update(emptied.aspect for emptied in target.emptied if emptied.count > 1)
        lines = []
        for aspect, count in counts.items():
            items = f"all {aspect.replace('_', ' ')}s of {plural(count, 'target')}"
            lines.append(f"{items} are removed: the lists are empty afterwards")
        return lines


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
    """A warning. ``named``: the targets of ``server: name: text`` where at least 3 have the same text."""

    text: str
    named: tuple[NamedTargets, ...] = ()

    @property
    def lines(self) -> list[str]:
        """The lines of the warning, visible."""
        return message_lines(self.text)

    def name_lines(self, most: int | None = None) -> list[str]:
        """Return a line of names for each place."""
        return [targets.listed(most) for targets in self.named]


class SkippedGroup(NamedTuple):
    """Targets that are skipped for one reason; ``named``: those that the last run did not skip, or all."""

    reason: str
    targets: tuple[SkippedTarget, ...]
    named: tuple[NamedTargets, ...]

    @property
    def line(self) -> str:
        """Their number, the reason, and the names; visible."""
        line = f"{len(self.targets)} {self.reason}"
        if not self.named:
            return f"{line}, as in the last run"
        line = f"{line}: {bounded_names(self.named, _MOST_SKIPPED)}"
        others = len(self.targets) - sum(targets.size for targets in self.named)
        if others:
            line = f"{line}; {others} as in the last run"
        return line


def skipped_groups(
    targets: Iterable[SkippedTarget], *, whole: bool = False
) -> tuple[SkippedGroup, ...]:
    """Return skipped targets by their reasons; ``whole``: each is named, also what is not new."""
    groups = _grouped(targets, _skip_order)
    shown = []
    for (_, reason), group in sorted(groups.items(), key=itemgetter(0)):
        named = [target for target in group if whole or not target.repeated]
        shown.append(SkippedGroup(reason, tuple(group), named_targets(map(placed_name, named))))
    return tuple(shown)


def _skip_order(target: SkippedTarget) -> tuple[int, str]:
    """Return the place of a reason in a list that begins with the worst, and the reason in words."""
    reason: str = target.reason
    if target.at:
        reason = f"gone since run {visible(target.run)} ({local_time(target.at)})"
    elif target.title:
        reason = f"renamed to {show(target.title)}"
    return get_args(SkipReason).index(target.reason), reason


class PlanView(Struct, frozen=True):
    """A plan, without its secrets, as its forms show it; the docstring of the module describes the groups."""

    plan: Plan
    sentence: str
    refusals: tuple[str, ...]
    settings: str
    blocks: tuple[Block, ...]
    deletions: tuple[Deletion, ...]
    deletion_groups: tuple[DeletionGroup, ...]
    counts: tuple[KindCount, ...]
    errors: tuple[ErrorGroup, ...]
    warnings: tuple[WarningGroup, ...]
    skipped: tuple[SkippedGroup, ...]

    @property
    def deletions_heading(self) -> str:
        """How much is deleted, to be put above the list of it."""
        links = sum(bool(deletion.link) for deletion in self.deletions)
        assets = len(self.deletions) - links
        verb = "is" if len(self.deletions) == 1 else "are"
        heading = f"{count_deletions(assets, links)} {verb} deleted"
        if not links:
            return f"{heading}; this cannot be undone"
        if assets:
            return f"{heading}; a deleted asset cannot be brought back"
        return heading


def view_plan(plan: Plan, *, folded: bool = True, keep_going: bool = False) -> PlanView:
    """Return the view of a plan; without ``folded`` every target has a block, and every change a row.

    ``keep_going``: targets in error are left out.
    """
    plan = redact_plan(plan)
    changing = []
    shown = []
    deletions = []
    for target in plan.targets:
        if target.changes and target.error is None:
            changing.append(target)
            deletions += [Deletion(target, change) for change in deletions_of(target)]
            if _kept(target):
                shown.append(target)
    short = len(shown) <= _NEVER_SHORTENED
    if folded:
        blocks = _blocks(shown, short=short)
    else:
        blocks = [_block("alone", [target], short=short) for target in shown]
    return PlanView(
        plan,
        plan_sentence(plan, keep_going=keep_going),
        tuple(map(refusal_sentence, plan.refusals)),
        settings_line(plan),
        tuple(blocks),
        tuple(deletions),
        tuple(deletion_groups(deletions, whole=not folded)),
        _counts(changing),
        tuple(_errors(plan)),
        tuple(_warnings(plan.warnings)),
        skipped_groups(plan.skipped, whole=not folded),
    )


class ShownBlocks(NamedTuple):
    """The blocks that a reader sees at first, and how many targets are in the others."""

    blocks: list[Block]
    hidden_targets: int


def shown_blocks(blocks: Sequence[Block]) -> ShownBlocks:
    """Return the blocks that a reader sees at first.

    Up to 40 targets are all shown, of more as many as fit in 400 lines. What removes something is always shown.
    """
    shown = []
    lines = hidden_targets = 0
    for block in blocks:
        if lines <= MOST_LINES:
            lines += len(block.rows) + 2
            lines += len(block.table) * ceil(len(block.columns) / 3)
            if block.timeline is not None:
                lines += 2
        if lines <= MOST_LINES or block.whole:
            shown.append(block)
        else:
            hidden_targets += len(block.targets)
    return ShownBlocks(shown, hidden_targets)


def _is_lossy(change: Change) -> bool:
    return change.action == "delete" or bool(change.losses)


def kind_of(change: Change) -> ChangeKind:
    """Return the kind of a change."""
    return ChangeKind(change.action, change.aspect, ASPECTS[change.aspect].shown(change).subject)


# Blocks --------------------------------------------------------------------------------------------------------


def _blocks(targets: Sequence[Target], *, short: bool) -> list[Block]:
    """Return the blocks of targets that change, in the order of the plan."""
    order = {id(target): place for place, target in enumerate(targets)}
    alike_key = partial(_alike_key, {})
    kinds: dict[int, ChangeKind] = {}
    for target in targets:
        for change in target.changes:
            kinds[id(change)] = kind_of(change)
    blocks: list[Block] = []
    for group in _of_the_same_things(targets, kinds):
        folded = []
        others = []
        for alike in _grouped(group, alike_key).values():
            titles = {target.name for target in alike}
            if len(titles) >= _FEWEST_FOLDED:
                folded.append(alike)
            else:
                others.append(alike)
        tables = _tables(others, order, kinds, short)
        blocks += tables
        for alike in folded if tables else [*folded, *others]:
            if len(alike) >= FEWEST_ALIKE:
                blocks.append(_block("alike", alike, short=short))
            else:
                blocks += [_block("alone", [target], short=short) for target in alike]
    return sorted(blocks, key=lambda block: order[id(block.targets[0])])


def _grouped(targets: Iterable[_Shown], key: Callable[[_Shown], _Key]) -> dict[_Key, list[_Shown]]:
    groups: dict[_Key, list[_Shown]] = {}
    for target in targets:
        groups.setdefault(key(target), []).append(target)
    return groups


def _of_the_same_things(targets: Sequence[Target], kinds: _Kinds) -> list[list[Target]]:
    """Return the targets that may be one table, together: those that change one thing at least that others change."""
    groups: list[list[Target]] = []
    homes: dict[object, list[Target]] = {}
    by_things = _grouped(targets, partial(_things, kinds))
    for things in sorted(by_things, key=len, reverse=True):
        home = next((homes[thing] for thing in things if thing in homes), None)
        if home is None:
            home = []
            groups.append(home)
        home += by_things[things]
        for thing in things:
            homes.setdefault(thing, home)
    return groups


def _things(kinds: _Kinds, target: Target) -> tuple[object, ...]:
    """Return what a target changes: each thing, or all in one where it changes list items, or something is removed."""
    kept = _kept(target)
    about = target.kind, frozenset(emptied.aspect for emptied in target.emptied)
    kept_kinds = [kinds[id(change)] for change in kept]
    is_lossy = changes_an_item = False
    for change in kept:
        is_lossy = is_lossy or _is_lossy(change)
        changes_an_item = changes_an_item or isinstance(change.after, dict)
    if is_lossy or changes_an_item:
        return ((*about, is_lossy, *kept_kinds),)
    return tuple(dict.fromkeys([(*about, kind) for kind in kept_kinds]))


def _tables(
    alike: Sequence[list[Target]], order: Mapping[int, int], kinds: _Kinds, short: bool
) -> list[Block]:
    """Return the tables of targets that change the same things; ``alike``: those that change them alike.

    Empty if there are fewer than three of them, something is removed, or more than one list item differs.
    """
    if len(alike) < FEWEST_ALIKE or any(map(_is_lossy, _kept(alike[0][0]))):
        return []
    lines = _table_lines(alike, order)
    rows = _rows_of_table([*chain(*lines)], kinds)
    differing_items = 0
    for row in rows:
        differing_items += not row.same and isinstance(row.example[1].after, dict)
    if differing_items > 1 or (differing_items and len(alike) < _FEWEST_FOLDED):
        return []
    changes = chain.from_iterable(target.changes for target in chain(*lines))
    is_whole = short or any(change.outside for change in changes)
    tables = []
    for part in _in_tables(lines):
        targets = tuple(chain(*part))
        if len(part) < len(lines):
            rows = _rows_of_table(targets, kinds)
        tables.append(Block(targets, "table", rows, is_whole, part))
    return tables


def _in_tables(lines: Sequence[tuple[Target, ...]]) -> Iterator[tuple[tuple[Target, ...], ...]]:
    """Yield the lines of each table: as few tables as can show them, of about the same length."""
    count = ceil(len(lines) / _MOST_TABLE_LINES)
    size = ceil(len(lines) / count)
    for start in range(0, len(lines), size):
        yield tuple(lines[start : start + size])


def _table_lines(
    alike: Iterable[list[Target]], order: Mapping[int, int]
) -> list[tuple[Target, ...]]:
    """Return the targets of each line of a table: those of one title with the same changes."""
    lines: list[tuple[Target, ...]] = []
    for targets in alike:
        lines += map(tuple, _grouped(targets, attrgetter("name")).values())
    lines.sort(key=lambda line: order[id(line[0])])
    return lines


def _rows_of_table(targets: Sequence[Target], kinds: _Kinds) -> tuple[Row, ...]:
    """Return a row for each thing that targets change; a second one of the same kind is a thing of its own."""
    things: dict[tuple[ChangeKind, int], list[PlannedChange]] = {}
    for target in targets:
        counts: dict[ChangeKind, int] = {}
        for change in _kept(target):
            kind = kinds[id(change)]
            number = counts[kind] = counts.get(kind, 0) + 1
            things.setdefault((kind, number), []).append((target, change))
    rows = []
    for changes in things.values():
        same = len(changes) == len(targets) and _are_same(changes)
        rows.append(_row(changes, same=same))
    return tuple(rows)


def _alike_key(first: dict[bytes, Target], target: Target) -> object:
    """Return what targets with the same changes share; ``first`` keeps the first of them.

    Positions are compared as they are shown: only at another frame rate do the same frames show other time codes.
    """
    changes = [_shared(change, target) for change in _kept(target)]
    content = to_key((target.kind, changes, target.emptied, target.wait))
    key = blake2b(content, digest_size=16).digest()  # 300,000 targets: content is not held twice
    example = first.setdefault(key, target)
    if target.rate == example.rate:
        return key
    positions = _all_positions(target)
    if positions == _all_positions(example):
        return key
    return (key, str(positions))


def _all_positions(target: Target) -> list[tuple[str, ...]]:
    return [_positions(change, target) for change in _kept(target)]


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
    rows = []
    whole = short
    for changes in zip(*map(_kept, targets), strict=True):
        rows.append(_row([*zip(targets, changes, strict=True)]))
        whole = whole or _is_lossy(changes[0]) or changes[0].outside is not None
    return Block(tuple(targets), level, tuple(rows), whole)


def _row(pairs: Sequence[PlannedChange], *, same: bool = True) -> Row:
    target, change = pairs[0]
    if len(pairs) > 1:
        change = _shared(change, target)
    return Row(kind_of(change), tuple(pairs), (target, change), same)


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
    rates = {id(target.rate): (target, change) for target, change in pairs}  # equal ones may be two
    positions = {_positions(change, target) for target, change in rates.values()}
    return len(positions) == 1


def _positions(change: Change, target: Target) -> tuple[str, ...]:
    """Return the positions of a change as they are shown."""
    return tuple(map(str, change_parts(_shared(change, target), target)))


def _shared(change: Change, target: Target) -> Change:
    """Return what a change may share with those of other targets: all but its source and its own title."""
    name = target.name
    key = change.key
    if ASPECTS[change.aspect].deletes == "link" and key.endswith(f"/{name}"):
        key = key.removesuffix(name) + OWN_TITLE

    before, after = change.before, _without_own_title(change.after, name)
    if before is not None:
        before = _without_own_title(before, name)
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
    changed: Counter[AspectName] = Counter()
    for target in targets:
        aspects: set[AspectName] = set()
        for change in target.changes:
            actions[change.action, change.aspect] += 1
            aspects.add(change.aspect)
        changed.update(aspects)
    counts = []
    for aspect, number in changed.items():
        numbers = [actions[action, aspect] for action in ACTIONS]
        counts.append((-sum(numbers), KindCount._make((aspect, *numbers, number))))
    return tuple(count for _, count in sorted(counts))


def _errors(plan: Plan) -> Iterator[ErrorGroup]:
    """Yield the targets in error, those with the same error together; server and own title may differ in it."""
    groups: dict[str, list[Target]] = {}
    for target in plan.targets:
        if target.error is not None:
            pattern = without_title(without_server(target.error, target.server), target.name)
            groups.setdefault(pattern, []).append(target)
    for pattern, targets in groups.items():
        errors = {target.error or "": target for target in targets}
        if len(errors) == 1:
            yield ErrorGroup(tuple(targets), next(iter(errors)))
        elif len(targets) >= FEWEST_ALIKE:
            names = {target.name for target in targets}
            if len(names) == 1:
                pattern = pattern.replace(OWN_TITLE, targets[0].name)
            yield ErrorGroup(tuple(targets), pattern)
        else:
            for error, target in errors.items():
                yield ErrorGroup((target,), error)


def _warnings(warnings: Iterable[str]) -> Iterator[WarningGroup]:
    """Yield the warnings, those of several targets together; the title is between the first two colons."""
    groups: dict[str, dict[str, PlacedName]] = {}
    for warning in dict.fromkeys(warnings):
        server, _, rest = warning.partition(": ")
        name, _, text = rest.partition(": ")
        pattern = without_title(text, name) if text else warning
        groups.setdefault(pattern, {})[warning] = (server, "", name)
    for pattern, targets in groups.items():
        if len(targets) < FEWEST_ALIKE:
            yield from map(WarningGroup, targets)
            continue
        first, *others = named_targets(targets.values())
        if not others:
            pattern = f"{first.place}{pattern}"
            first = first._replace(place="")
        yield WarningGroup(pattern, (first, *others))


def without_server(message: str, server: str) -> str:
    """Return a message without the server and the request with which it begins; its place in a file stays."""
    names = rf"(server {re.escape(show(server))}(, database [^:]+| at \S+)?: )?(GET \S+: )?"
    return re.sub(rf"^({PLACE})?{names}", r"\1", message)


def without_title(text: str, name: str) -> str:
    """Return a text with placeholders for a title in it."""
    if not name:
        return text
    return re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", lambda _: OWN_TITLE, text)
