"""Which desired item of a list is which live one: the same for markers and segments.

An explicit key (uid, number) means that item and no other. Of the rest, what fits best is paired first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct

from msauto.aspects.comparison import Attributes
from msauto.aspects.plan_builder import refuse
from msauto.errors import PlanningError
from msauto.model.desired import TaskSource

L = TypeVar("L")


class ItemInFrames(Struct, frozen=True, eq=False):
    """What a task asks of one item; positions count from the first frame of the file.

    ``number`` is the explicit key, ``key`` how the plan names it, ``named`` what the task names. ``handles`` is what a
    live item shares that may be this one, the surest first. ``present`` false: it is to be absent.
    """

    number: int | None
    key: str
    named: Attributes
    source: TaskSource
    handles: tuple[Hashable, ...]
    present: bool


class Matching(NamedTuple, Generic[L]):
    """Desired items and live ones.

    ``kept`` are both, ``created`` only desired. Of the keys that are only live, tasks name ``removed`` as absent, and
    no task names the ``others``.
    """

    kept: list[tuple[ItemInFrames, L]]
    created: list[ItemInFrames]
    removed: dict[int, TaskSource]
    others: list[int]


Misses = Callable[[Attributes, L], Collection[str]]
"""Returns the attributes in which a live item is not as desired."""


def match(
    items: Sequence[ItemInFrames],
    live: Mapping[int, L],
    handles_of: Callable[[L], Collection[Hashable]],
    misses: Misses[L],
) -> Matching[L]:
    """Match what tasks ask with the live items by their keys."""
    present = [item for item in items if item.present]
    if not live:
        return Matching([], present, {}, [])
    alike: dict[Hashable, dict[int, L]] = defaultdict(dict)
    for number, each in live.items():
        for handle in handles_of(each):
            alike[handle][number] = each
    paired = _pair(present, alike, misses, {item.number for item in items})
    explicit = {item.number: index for index, item in enumerate(present)}
    paired |= {explicit[number]: number for number in live if number in explicit}
    kept = set(paired.values())
    gone = _removed(items, alike, misses)
    removed = {number: source for number, source in gone.items() if number in live and number not in kept}
    return Matching(
        [(present[index], live[number]) for index, number in sorted(paired.items())],
        [item for index, item in enumerate(present) if index not in paired],
        removed,
        [number for number in live if number not in kept and number not in removed],
    )


def _removed(
    items: Sequence[ItemInFrames], alike: Mapping[Hashable, Mapping[int, L]], misses: Misses[L]
) -> dict[int, TaskSource]:
    removed: dict[int, TaskSource] = {}
    for item in (item for item in items if not item.present):
        there = alike.get(item.handles[0], {}) if item.handles else {}
        named = [number for number, each in there.items() if not misses(item.named, each)]
        removed |= dict.fromkeys(named if item.number is None else [item.number], item.source)
    return removed


def _pair(
    present: Sequence[ItemInFrames],
    alike: Mapping[Hashable, Mapping[int, L]],
    misses: Misses[L],
    explicit: Collection[int | None],
) -> dict[int, int]:
    """Pair what shares the surest handle, and of that what differs least; return keys by the index of their item."""
    paired: dict[int, int] = {}
    taken = set(explicit)
    for rank in range(max((len(item.handles) for item in present), default=0)):
        fitting = sorted(
            (len(misses(item.named, each)), index, number)
            for index, item in enumerate(present)
            if item.number is None and index not in paired and rank < len(item.handles)
            for number, each in alike.get(item.handles[rank], {}).items()
            if number not in taken
        )
        for _, index, number in fitting:
            if index not in paired and number not in taken:
                paired[index] = number
                taken.add(number)
    return paired


def refuse_contradiction(what: str, gone: ItemInFrames, desired: ItemInFrames) -> PlanningError:
    """Return the error of an item that one task removes and another one desires."""
    message = f"{what} {gone.key} is removed here and desired at {desired.source.place}"
    return refuse(message, gone.source, "remove one of the two")
