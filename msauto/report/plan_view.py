"""What a plan changes, as text, Markdown and HTML show it: the one view that all forms are drawn from.

``view_plan(plan)`` returns a :class:`PlanView`; nothing is lost in it. Every change of a target without an error is
either in exactly one row of one block, or is one of ``deletions``:

- ``blocks``: targets that are shown together, in the order of the plan (that of their first target). A block is

  - ``alike``: at least 3 targets whose changes are the same;
  - ``similar``: at least 10 targets whose changes are the same but for one value, which is nothing that is removed;
  - ``alone``: one target.

- ``Block.rows``: what the block does, a :class:`Row` for each thing that is shown. ``row.changes`` are all the pairs
  of target and change that it stands for. If ``row.same``, ``row.examples`` holds one pair that shows all of them;
  otherwise (in a ``similar`` block) it holds two of them, and in a plan of up to 40 targets all.
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import Final, Literal, NamedTuple

from msgspec import Struct, structs

from msauto.aspects import ASPECTS, is_deletion
from msauto.codec import to_key
from msauto.model.desired import TaskSource
from msauto.model.plan import Action, Change, Plan, Target
from msauto.model.snapshot import AspectName
from msauto.report import texts
from msauto.report.clip_timeline import Timeline, timeline_of
from msauto.report.sanitizing import NameRange, message_lines, name_ranges, show, show_range
from msauto.secrets.redacted_plans import map_texts, redact_plan

OWN_TITLE: Final = "<title>"
"""Stands for the title of each target."""
FEWEST_ALIKE: Final = 3
FEWEST_SIMILAR: Final = 10
ACTIONS: Final[tuple[Action, ...]] = ("add", "change", "delete", "run")
_EXAMPLES: Final = 2
MOST_LINES: Final = 400
_NEVER_SHORTENED: Final = 40
"""Targets up to which a plan is shown in full, however long it is."""
_NO_SOURCE: Final = TaskSource("", 0, 0, "")

_LEVELS: Final = {"alone": "", "alike": "with the same changes", "similar": "with the same changes but for one value"}

Level = Literal["alone", "alike", "similar"]
PlannedChange = tuple[Target, Change]


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


class Row(Struct, frozen=True):
    """Changes of one kind that are shown together. ``same``: one example shows all of them."""

    kind: ChangeKind
    changes: tuple[PlannedChange, ...]
    examples: tuple[PlannedChange, ...]
    same: bool

    @property
    def key(self) -> str:
        """The key of the changes, or what their keys have in common; visible."""
        subject = self.kind.subject
        return texts.show_key(self.examples[0][1]) if self.same else show(subject) if subject else ""

    @property
    def notes(self) -> str:
        """The notes of a change that is the same everywhere."""
        return "; ".join(texts.change_notes(self.examples[0][1])) if self.same else ""


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


class Block(TargetGroup, frozen=True):
    """Targets of one kind; ``level`` is why they are together.

    ``whole``: it removes something, or the plan is short, so that each name and value of it is shown.
    """

    level: Level
    rows: tuple[Row, ...]
    whole: bool

    @property
    def title(self) -> str:
        """The heading, and what the targets have in common."""
        return f"{self.heading} {_LEVELS[self.level]}".rstrip()

    @property
    def timeline(self) -> Timeline | None:
        """The timeline that all its targets have."""
        if self.level == "similar":
            return None
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
    deletions = tuple(Deletion(target, each) for target in changing for each in target.changes if is_deletion(each))
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
    """Return the blocks of targets that change: first those alike, of the rest those similar, the rest alone."""
    blocks: dict[int, Block] = {}
    rest = list(range(len(targets)))
    folds: tuple[tuple[Level, int, Callable[[Target], object]], ...] = (
        ("alike", FEWEST_ALIKE, partial(_alike_key, {})),
        ("similar", FEWEST_SIMILAR, _similar_key),
    )
    for level, fewest, key in folds:
        groups: dict[object, list[int]] = {}
        for place in sorted(rest):
            groups.setdefault(key(targets[place]), []).append(place)
        rest = []
        for places in groups.values():
            block = _block(level, [targets[place] for place in places], short=short) if len(places) >= fewest else None
            if block is not None and _differs_in_one_value(block):
                blocks[places[0]] = block
            else:
                rest += places
    blocks |= {place: _block("alone", [targets[place]], short=short) for place in rest}
    return [blocks[place] for place in sorted(blocks)]


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


def _similar_key(target: Target) -> object:
    emptied = frozenset(each.aspect for each in target.emptied)
    return target.kind, tuple(map(kind_of, _kept(target))), emptied


def _kept(target: Target) -> list[Change]:
    """Return the changes that blocks show: all but the deletions."""
    return [change for change in target.changes if not is_deletion(change)]


def _block(level: Level, targets: Sequence[Target], *, short: bool) -> Block:
    """Return a block of targets with the same kinds of changes in the same order, with a row for each change.

    ``short``: the plan is, and is shown in full.
    """
    rows = []
    for changes in zip(*map(_kept, targets), strict=True):
        pairs = tuple(zip(targets, changes, strict=True))
        target, change = pairs[0]
        same = level != "similar" or _are_same(pairs)
        examples = pairs if short else pairs[:_EXAMPLES]
        if same:
            examples = ((target, change if level == "alone" else _shared(change, target)),)
        rows.append(Row(kind_of(change), pairs, examples, same))
    whole = short or any(_loses(change) for row in rows for _, change in row.examples)
    return Block(tuple(targets), level, tuple(rows), whole)


def _differs_in_one_value(block: Block) -> bool:
    """Return whether the changes of all targets are the same but for one value, which is nothing that is removed."""
    differing = set()
    for place, row in enumerate(row for row in block.rows if not row.same):
        first = row.changes[0][1]
        if _loses(first):
            return False
        for _, change in row.changes[1:]:
            for old, new in ((first.before, change.before), (first.after, change.after)):
                if isinstance(old, dict) and isinstance(new, dict):
                    differing |= {(place, name) for name in old | new if old.get(name) != new.get(name)}
                elif old != new:
                    differing.add((place, ""))
    return len(differing) <= 1


# Own titles ----------------------------------------------------------------------------------------------------


def _are_same(pairs: Sequence[PlannedChange]) -> bool:
    """Return whether changes are the same, and their positions are shown alike."""
    compared = (to_key(_shared(change, target)) for target, change in pairs)
    first = next(compared)
    if any(each != first for each in compared):
        return False
    return len({_positions(change, target) for target, change in {pair[0].rate: pair for pair in pairs}.values()}) == 1


def _positions(change: Change, target: Target) -> tuple[str, ...]:
    """Return the positions of a change as they are shown."""
    if ASPECTS[change.aspect].details(change, target):
        return ()
    return tuple(map(str, texts.change_parts(_shared(change, target), target)))


def _shared(change: Change, target: Target) -> Change:
    """Return what a change may share with those of other targets: all but its source and its own title."""
    name = target.name
    key = change.key
    if ASPECTS[change.aspect].deletes == "link" and key.endswith(f"/{name}"):
        key = key.removesuffix(name) + OWN_TITLE

    def replaced(text: str) -> str:
        return OWN_TITLE if text == name else text

    before, after = map_texts(change.before, replaced), map_texts(change.after, replaced)
    return structs.replace(change, key=key, before=before, after=after, source=_NO_SOURCE)


# Counts and errors ---------------------------------------------------------------------------------------------


def _counts(targets: Iterable[Target]) -> tuple[KindCount, ...]:
    """Return the counts of each aspect, the most frequent first."""
    actions: Counter[tuple[Action, AspectName]] = Counter()
    on: Counter[AspectName] = Counter()
    for target in targets:
        actions.update((change.action, change.aspect) for change in target.changes)
        on.update({change.aspect for change in target.changes})
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
