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
    numbers = {item.number for item in items}
    free = {number: each for number, each in live.items() if number not in numbers}
    paired = _pair(present, free, handles_of, misses)
    explicit = {item.number: index for index, item in enumerate(present)}
    paired |= {explicit[number]: number for number in live if number in explicit}
    kept = set(paired.values())
    rest = {number: each for number, each in live.items() if number not in kept}
    removed = _removed([item for item in items if not item.present], rest, misses)
    return Matching(
        [(present[index], live[number]) for index, number in sorted(paired.items())],
        [item for index, item in enumerate(present) if index not in paired],
        removed,
        [number for number in rest if number not in removed],
    )


def _removed(absent: Sequence[ItemInFrames], rest: Mapping[int, L], misses: Misses[L]) -> dict[int, TaskSource]:
    removed: dict[int, TaskSource] = {}
    for item in absent:
        named = [number for number, each in rest.items() if item.named and not misses(item.named, each)]
        gone = named if item.number is None else [item.number]
        removed |= {number: item.source for number in gone if number in rest}
    return removed


def _pair(
    present: Sequence[ItemInFrames],
    free: Mapping[int, L],
    handles_of: Callable[[L], Collection[Hashable]],
    misses: Misses[L],
) -> dict[int, int]:
    """Pair what shares the surest handle, and of that what differs least; return keys by the index of their item."""
    alike: dict[Hashable, list[int]] = defaultdict(list)
    for number, each in free.items():
        for handle in handles_of(each):
            alike[handle].append(number)
    paired: dict[int, int] = {}
    for rank in range(max((len(item.handles) for item in present), default=0)):
        taken = set(paired.values())
        fitting = sorted(
            (len(misses(item.named, free[number])), index, number)
            for index, item in enumerate(present)
            if item.number is None and index not in paired and rank < len(item.handles)
            for number in alike.get(item.handles[rank], ())
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
