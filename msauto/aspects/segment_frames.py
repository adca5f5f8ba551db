"""What the aspects segment and segmentation share: the changes and the requests of a list of segments."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from typing import Final, NamedTuple

from msgspec import structs

from msauto.aspects.aspect import part_of
from msauto.aspects.comparison import Attributes, Item, Items, mapping, text_of
from msauto.aspects.list_aspect import CORRECT_NUMBER, ListAspect, each_of, unread_of
from msauto.aspects.matching import ListItem, Matching
from msauto.aspects.plan_builder import BETWEEN, Phase, PlanContext, refuse
from msauto.aspects.positions import to_wire
from msauto.aspects.segment_arguments import NEVER_WRITTEN, cannot_write_back
from msauto.errors import PlanningError
from msauto.model import requests
from msauto.model.desired import TaskSource
from msauto.model.fields import SEGMENT_NAMES
from msauto.model.plan import Action
from msauto.model.snapshot import TWINS, Effect

UNREPORTED: Final = SEGMENT_NAMES[1:]
"""Attributes that the server may not report: all but the title."""
NOT_SENT: Final[Item] = dict.fromkeys(UNREPORTED)
"""What is known of a new segment by what is not sent: ``None``, whatever the server shows."""
TITLE_BEGINS: Final = "title_begins"
"""In place of the title of a piece of a segmentation: a server may add its number to it."""
Span = tuple[int, int]
"""From a frame up to, not with, another."""


def span_of(item: Attributes) -> Span:
    """Return where a segment is; a part that is not known is 0."""
    start = _start_of(item)
    return start, start + int(str(item.get("duration", 0)))


def _start_of(item: Attributes) -> int:
    return int(str(item.get("start", 0)))


def show(key: str, live: Attributes) -> Item:
    """Return a live segment as plans show it."""
    texts = {name: live[name] for name in (*UNREPORTED, *NEVER_WRITTEN) if live.get(name)}
    return {
        "number": int(key),
        **{name: live[name] for name in ("start", "duration", "title")},
        **texts,
    }


def remake(live: Attributes, named: Attributes) -> Item:
    """Return a segment as it is created again, with the named attributes in place of its own."""
    if TITLE_BEGINS in named:
        named = {**named, "title": named[TITLE_BEGINS]}
    title = {"title": live["title"]} if live.get("title") else {}
    known = {name: live[name] for name in UNREPORTED if live.get(name) is not None}
    texts = {**title, **known, **named}
    place = {name: named.get(name, live.get(name)) for name in ("start", "duration")}
    return {**place, **{name: str(texts[name]) for name in SEGMENT_NAMES if name in texts}}


def by_start(segments: Mapping[int, Item]) -> dict[int, Item]:
    """Return the segments as a server numbers them that does so by their starts."""

    def start_of(item: Item) -> int:
        return _start_of(each_of(item)[0])

    return dict(enumerate(sorted(segments.values(), key=start_of), 1))


class _Making(NamedTuple):
    """A segment to create: its number, what it is, what it is written over, its change, and its start on the wire."""

    number: int
    made: Item
    over: Item | None
    change: int
    start_on_wire: int


class SegmentRequests:
    """Adds what a plan does to the segments of an asset: the changes at once, their requests by :meth:`send`.

    ``live`` are the segments before; ``segments`` those that the requests so far leave, by number. ``gone`` are
    the numbers to delete, with the changes that do so: several segments of one number take several.
    """

    def __init__(self, rule: ListAspect, context: PlanContext, live: Items) -> None:
        dialect = context.server.dialect
        self.recreates = dialect.segment_update == "recreate"
        self.rule = rule
        self.context = context
        self.live = live
        self.gone = defaultdict[int, list[int]](list)
        self.segments: dict[int, Item] = {}
        self._unread = ""
        for key, item in live.items():
            unread = unread_of(each_of(item))
            if unread:
                self._unread = unread
            else:
                self.segments[int(key)] = item
        self._shown = part_of(rule, context.live)
        names: set[str] = set()
        for value in self._shown.values():
            for segment in each_of(value):
                names.update(segment)
        self._never_shown = [name for name in UNREPORTED if name not in names]
        self._by_start = dialect.numbers_by_start
        self._made: list[_Making] = []

    def unknown(self, key: str) -> list[str]:
        """Return the attributes that the server never shows and no run has written: recreating loses them."""
        return [name for name in self._never_shown if name not in self.live[key]]

    def write(self, matching: Matching) -> None:
        """Add the changes that make the live segments the desired ones."""
        rule = self.rule
        live = self.live
        pairs = matching.pairs
        if not self.recreates:  # else all is deleted before
            moves = [
                (span_of(live[key]), span_of({**live[key], **item.named})) for item, key in pairs
            ]
            pairs = [pairs[index] for index in free_first(moves)]
        for item, key in pairs:
            if rule.differs(item.named, live[key]):
                self._rewrite(item, key)
            else:  # what reading does not show of it is not looked at again
                shown = dict(mapping(self._shown[key]))
                effect = rule.effect(key, shown, dict(item.named))
                self.context.builder.hold(effect, item.source)
        new = self._number_new(matching)
        overwritten = {instead for _, _, instead in new}
        for key, source in matching.removed.items():
            self.delete(key, source, exactly=False)
        for key, source in matching.surplus.items():
            if key not in overwritten:
                self.delete(key, source, exactly=True)
        for number, item, instead in new:
            self._create(number, item, instead)

    def _rewrite(self, item: ListItem, key: str) -> None:
        """Change a live segment. What is lost is ``None`` afterwards; what was never known is not in ``before``.

        What was never known is shown, and counts as no loss: nearly every segment has none.
        """
        live = self.live[key]
        rule = self.rule
        context = self.context
        lost = cannot_write_back(live)
        new = remake(live, item.named)
        if lost and not context.lossy:
            raise self._refuse_loss(item, key, lost)
        before = show(key, live)
        for name in UNREPORTED:
            is_empty = name in live and not live[name]
            if is_empty and new.get(name) == "":  # and stays so: not a difference
                before[name] = ""
        gone = [*lost, *(name for name in self.unknown(key) if name not in new)]
        # A title alone is a weak key, and a segmentation names none: the segment that changes counts as lost.
        has_key = item.key is not None and not item.ours
        has_place = rule.place(live) in item.handles and TITLE_BEGINS not in item.named
        is_lost = bool(lost) or not (has_key or has_place)
        basis = rule.basis(context, key, live, rule.differs(item.named, live))
        change = context.builder.change(
            "change",
            "segment",
            key,
            before,
            before | dict.fromkeys(gone) | new,
            item.source,
            basis=basis,
            reversible=not gone,
            losses=int(is_lost),
            called=item.label,
        )
        if self.recreates:
            self.gone[int(key)].append(change)
            self._make(int(key), new, change, None)
        else:
            self._make(int(key), new, change, key)

    def _refuse_loss(self, item: ListItem, key: str, lost: Attributes) -> PlanningError:
        way = "overwriting it, which may lose"
        if self.recreates:
            way = "deleting and creating it, which loses"
        return refuse(
            f"segment {key} can only be changed by {way} {_describe(lost)}",
            item.source,
            "set `lossy: true` in the task, or change the segment by hand",
        )

    def delete(self, key: str, source: TaskSource, *, exactly: bool) -> None:
        """Delete a live segment, or all of its number; ``exactly``: no task names it."""
        for live in each_of(self.live[key]):
            change = self.context.builder.change(
                "delete",
                "segment",
                key,
                show(key, live),
                None,
                source,
                reversible=not cannot_write_back(live),
                losses=int(exactly),
            )
            self.gone[int(key)].append(change)

    def _create(self, number: int, item: ListItem, instead: str | None) -> None:
        """Create a segment, or write it over one that no task names: nothing of that must remain."""
        named = dict(item.named)
        before: Item | None = None
        action: Action = "add"
        if instead is not None:
            action = "change"
            replaced = self.live[instead]
            before = show(str(number), replaced)
            for name in SEGMENT_NAMES:
                if replaced.get(name):
                    named.setdefault(name, "")
        new = remake({}, named)
        change = self.context.builder.change(
            action,
            "segment",
            str(number),
            before,
            {"number": number, **new},
            item.source,
            losses=int(before is not None),
            called=item.label,
        )
        self._make(number, new, change, instead)

    def _make(self, number: int, new: Item, change: int, over: str | None) -> None:
        builder = self.context.builder
        shown = builder.changes[change]
        before = mapping(shown.before)
        builder.warn_of_blanks(
            f"the title of segment {str(number)!r}",
            text_of(before.get("title")),
            text_of(new.get("title")),
            shown.source,
        )
        start = to_wire(_start_of(new), self.context.origin, shown.source)
        replaced = None
        if over is not None:
            replaced = self.segments[int(over)]
        sent = {**NOT_SENT, **new}
        self._made.append(_Making(number, sent, replaced, change, start))

    def _number_new(self, matching: Matching) -> list[tuple[int, ListItem, str | None]]:
        """Return the new segments with the lowest free numbers, or those of surplus ones that they are written over."""
        live = self.live
        going = {*matching.removed, *matching.surplus}
        created = [_interrupted(item, self.context.memory, live) for item in matching.created]
        if created and self._unread:
            raise refuse(
                f"a new segment may have the number or the place of another one: {self._unread}",
                created[0].source,
                CORRECT_NUMBER,
            )
        places: dict[ListItem, int] = {}
        if self._by_start:
            places = self._places(matching, created, going)
        replaceable: list[str] = []
        if not self.recreates:
            replaceable = [key for key in matching.surplus if TWINS not in live[key]]
        free = self._free_numbers(matching, going - {*replaceable})
        new: list[tuple[int, ListItem, str | None]] = []
        for item in created:
            if item.key is not None:
                new.append((int(item.key), item, None))
            elif replaceable:
                instead = self._replaced(item, replaceable)
                replaceable.remove(instead)
                new.append((int(instead), item, instead))
            elif self._by_start:
                new.append((places[item], item, None))
            else:
                new.append((next(free), item, None))
        return new

    def _free_numbers(self, matching: Matching, going: Collection[str]) -> Iterator[int]:
        """Yield the numbers that no segment keeps and no task names, from the lowest."""
        held = {*matching.explicit, *self.live.keys() - going}
        for name in self.context.memory:
            if name.startswith(BETWEEN):
                held.add(name.removeprefix(BETWEEN))
        for number in count(1):
            if str(number) not in held:
                yield number

    def _replaced(self, item: ListItem, replaceable: Sequence[str]) -> str:
        """Return the surplus segment that a new one is written over: one that shares a handle, else the first."""
        handles = {*item.handles}
        for key in replaceable:
            if not handles.isdisjoint(self.rule.handles(self.live[key])):
                return key
        return replaceable[0]

    def _places(
        self, matching: Matching, created: Sequence[ListItem], going: Collection[str]
    ) -> dict[ListItem, int]:
        """Return the numbers that a server gives by the starts of segments; refuse any other that a task names.

        Which of the segments of one start has which number is known only while none of them is made again.
        """
        start_of: dict[ListItem, int] = {}
        unchanged: set[ListItem] = set()
        untouched = self.live.keys() - going
        for item, key in matching.pairs:
            live = self.live[key]
            start_of[item] = _start_of({**live, **item.named})
            untouched.discard(key)
            if not self.rule.differs(item.named, live):
                unchanged.add(item)
        for item in created:
            start_of[item] = _start_of(item.named)
        starts = [_start_of(self.live[key]) for key in untouched]
        starts += start_of.values()
        starts.sort()
        places: dict[ListItem, int] = {}
        for item, start in start_of.items():
            places[item] = number = bisect_left(starts, start) + 1
            last = bisect_right(starts, start)
            if item.key is None or item.ours:
                continue
            if item in unchanged and number <= int(item.key) <= last:
                continue
            if number < last:
                raise refuse(
                    f"segment {item.key} starts where another one does: this server numbers segments by their "
                    "starts, and which number it would get is not known",
                    item.source,
                    "leave the numbers out (dialect `segment_numbers`)",
                )
            if item.key != str(number):
                raise refuse(
                    f"segment {item.key} would get the number {number}: this server numbers segments by their starts",
                    item.source,
                    f"write number: {number}, or leave the numbers out (dialect `segment_numbers`)",
                )
        for key in matching.removed:
            if key in matching.explicit and int(key) <= len(starts):
                advice = "another segment gets its number, and goes in the next run: name it by start and duration"
                self.context.warn(f"segment {key} goes; {advice}")
        return places

    # Requests --------------------------------------------------------------------------------------------------------

    def send(self) -> bool:
        """Add the requests in their order; return whether there are any.

        Deletions go from the highest number down: lower ones keep their numbers on every server.
        """
        builder = self.context.builder
        path = self.context.path
        before = dict(self.segments)
        for key in sorted(self.gone, reverse=True):
            number = self._number_now(key, before[key])
            effects = self._after(number, None)
            request = requests.delete_segment(path, number)
            for change in self.gone[key]:
                builder.send(Phase.SEGMENT_DELETE, request, [change], *effects)
        for number, made, over, change, start_on_wire in self._made:
            if over is not None:
                number = self._number_now(number, over)
            elif self._by_start:
                number = self._number_for(made)
            texts = {}
            for name in SEGMENT_NAMES:
                if made.get(name) is not None:
                    texts[name] = str(made[name])
            start, end = span_of(made)
            request = requests.create_segment(path, number, start_on_wire, end - start, texts)
            builder.send(Phase.SEGMENT_CREATE, request, [change], *self._after(number, made))
        return bool(self.gone or self._made)

    def _number_now(self, planned: int, item: Item) -> int:
        """Return the number that a segment has after the requests so far."""
        if not self._by_start:
            return planned
        return _number_of(self.segments, item)

    def _number_for(self, made: Item) -> int:
        """Return the number to create a segment with: none that another has, whichever the server gives it."""
        free = next(number for number in count(1) if number not in self.segments)
        given = _number_of(by_start({**self.segments, free: made}), made)
        return free if given in self.segments else given

    def _after(self, number: int, item: Item | None) -> list[Effect]:
        """Go on to the list after a request; return what that does: a number goes from one segment to another."""
        if not self._by_start:
            was = self.segments.get(number)
            _put(self.segments, number, item)
            return self._changed(number, was, item)
        before = self.segments
        remaining = {**self.segments}
        _put(remaining, number, item)
        self.segments = by_start(remaining)
        effects: list[Effect] = []
        for shifted in sorted(before.keys() | self.segments.keys()):
            effects += self._changed(shifted, before.get(shifted), self.segments.get(shifted))
        return effects

    def _changed(self, number: int, was: Item | None, now: Item | None) -> list[Effect]:
        """Return what a number goes through that one segment leaves, and another gets."""
        effects: list[Effect] = []
        if was is now:
            return effects
        if was is not None:
            effects.append(self.rule.effect(str(number), was, None))
        if now is not None:
            effects.append(self.rule.effect(str(number), None, now))
        return effects


def _put(segments: dict[int, Item], number: int, item: Item | None) -> None:
    if item is None:
        segments.pop(number, None)
    else:
        segments[number] = item


def _number_of(segments: Mapping[int, Item], item: Item) -> int:
    return next(number for number, segment in segments.items() if segment is item)


def _interrupted(item: ListItem, memory: Attributes, live: Collection[str]) -> ListItem:
    """Add what a new segment had, if an interrupted run deleted it and did not create it again."""
    start = item.named.get("start")
    duration = item.named.get("duration")
    for name, value in memory.items():
        key = name.removeprefix(BETWEEN)
        had = mapping(value)
        if not name.startswith(BETWEEN) or key in live:
            continue
        has_its_place = start == had.get("start") and duration == had.get("duration")
        if item.key == key or (item.key is None and has_its_place):
            kept = {}
            for attribute in ("start", "duration", *SEGMENT_NAMES):
                if had.get(attribute) is not None:
                    kept[attribute] = had[attribute]
            return structs.replace(item, key=key, named={**kept, **item.named})
    return item


def _describe(lost: Attributes) -> str:
    parts = []
    for name, value in lost.items():
        shown = str(value)
        if isinstance(value, list):
            shown = ", ".join(map(repr, value))
        elif name == "track":
            shown = repr(value)
        parts.append(f"its {name.replace('_', ' ')} {shown}")
    return " and ".join(parts)


def free_first(moves: Sequence[tuple[Span, Span]]) -> list[int]:
    """Order moves from one span to another, so that each finds its new span left by the others; return indices.

    Those that swap places have no such order: they keep theirs, and a server that refuses an overlap reports it.

    >>> free_first([((0, 10), (0, 15)), ((10, 20), (15, 25))])
    [1, 0]
    """
    by_start = sorted((old, index) for index, (old, _) in enumerate(moves))
    longest = max((end - start for (start, end), _ in moves), default=0)
    ordered: dict[int, None] = {}
    begun: set[int] = set()
    for first in range(len(moves)):
        stack = [first]
        while stack:
            index = stack[-1]
            if index in begun:
                ordered.setdefault(stack.pop())
                continue
            begun.add(index)
            start, end = moves[index][1]
            low, high = (bisect_left(by_start, ((frame, 0), 0)) for frame in (start - longest, end))
            in_the_way = [other for (_, old_end), other in by_start[low:high] if old_end > start]
            stack += [other for other in reversed(in_the_way) if other not in begun]
    return list(ordered)


def gaps_and_overlaps(segments: Mapping[int, Item]) -> Iterator[str]:
    """Describe where segments overlap, or leave gaps between them and the earlier one that ends last."""
    spans = []
    for number, item in segments.items():
        for segment in each_of(item):
            spans.append((span_of(segment), number))
    spans.sort()
    reached = None
    furthest = 0
    for (start, end), number in spans:
        if reached is not None and start < reached:
            yield f"segments {furthest} and {number} overlap by {min(reached, end) - start} frames"
        elif reached is not None and start > reached:
            yield f"{start - reached} frames lie between segments {furthest} and {number}"
        if reached is None or end > reached:
            reached = end
            furthest = number
