"""Which desired item of a list is which live one.

An explicit key (uid, number, guid) means that item and no other. Of the rest, what fits best is paired first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from msauto.aspects.comparison import Attributes, Item, Items
from msauto.aspects.plan_builder import refuse
from msauto.errors import PlanningError
from msauto.model.desired import TaskSource

Misses = Callable[[Attributes, Item], Collection[str]]
"""Returns the names in which a live item is not as named."""
ItemsByHandle = Mapping[Hashable, Items]
"""The live items of each handle."""


class ListItem(Struct, frozen=True, eq=False):
    """What a task asks of one item; positions count from the first frame of the file.

    ``key`` is the explicit key, ``label`` how the plan names it, ``named`` what the task names. ``handles`` is what a
    live item shares that may be this one, the surest first. ``present`` false: it is to be absent. ``keys_before``
    (undo): it is one more beside the live items of these keys, unless an equal one is there, too. ``ours``: no task
    names its key, a run made it.
    """

    key: str | None
    label: str
    named: Attributes
    source: TaskSource
    handles: tuple[Hashable, ...]
    present: bool
    keys_before: frozenset[str] | None = None
    ours: bool = False

    @property
    def is_by_place(self) -> bool:
        """Whether a task wants the item that has its place: none of a key, and none besides others."""
        return self.present and self.key is None and self.keys_before is None


class Matching(Struct):
    """Desired items of a list and live ones, in pairs.

    ``live`` are the live items. ``present`` are the desired items in the order of the tasks, each with its live key,
    ``None`` for a new one; ``pairs`` and ``created`` are those with a key and those without. ``explicit`` are the keys
    that tasks name. Of the keys that are only live, tasks name ``removed`` as absent, and no task names the ``others``;
    ``surplus`` are those that ``exactly`` removes. ``spared`` are those that a task names as absent and that stay: they
    have other attributes, or are desired.
    """

    live: Items
    present: list[tuple[ListItem, str | None]]
    explicit: Collection[str | None]
    removed: dict[str, TaskSource] = {}
    others: list[str] = []
    spared: dict[str, ListItem] = {}
    surplus: dict[str, TaskSource] = {}

    pairs: list[tuple[ListItem, str]] = []
    created: list[ListItem] = []

    def __post_init__(self) -> None:
        self.pairs = []
        self.created = []
        for item, key in self.present:
            if key is None:
                self.created.append(item)
            else:
                self.pairs.append((item, key))


class _LiveList(Struct, frozen=True):
    """The live items of a list by key and by handle; ``prefix``: how the plan names one before its key."""

    items: Items
    by_handle: ItemsByHandle
    misses: Misses
    prefix: str

    def refuse_several(self, item: ListItem, keys: Sequence[str]) -> PlanningError:
        """Return the error of a task that may mean any of several live items."""
        lowest_first = sorted(keys, key=lambda key: (len(key), key))
        named = ", ".join(f"{self.prefix}{key}" for key in lowest_first)
        message = f"{item.label} may be any of several live items: {named}"
        return refuse(message, item.source, "name the one that you mean by its uid, number or guid")


def match(
    items: Sequence[ListItem],
    live: Items,
    handles_of: Callable[[Item], Collection[Hashable]],
    misses: Misses,
    prefix: str = "",
) -> Matching:
    """Match what tasks ask with the live items by their keys; ``misses`` names in what a live item differs.

    A task that removes or changes one of several live items at its place is refused: it may mean any of them. What is
    there alone, wholly as desired, is the desired one, also under a key that a task removes: it may be given again.
    """
    present: list[ListItem] = []
    absent: list[ListItem] = []
    for item in items:
        if item.present:
            present.append(item)
        else:
            absent.append(item)
    explicit = {item.key for item in items}
    if not live:
        return Matching(live, [(item, None) for item in present], explicit)
    by_handle: dict[Hashable, dict[str, Item]] = defaultdict(dict)
    for key, value in live.items():
        for handle in handles_of(value):
            by_handle[handle][key] = value
    live_list = _LiveList(live, by_handle, misses, prefix)
    paired = _pair(present, absent, live_list)
    pairs = [(item, paired.get(index)) for index, item in enumerate(present)]
    matching = Matching(live, pairs, explicit)
    paired_keys = set(paired.values())
    for item in absent:
        _remove(item, matching, paired_keys, live_list)
    for key in live:
        if key in matching.removed:
            matching.spared.pop(key, None)
        elif key not in paired_keys:
            matching.others.append(key)
    return matching


def _remove(
    item: ListItem, matching: Matching, paired_keys: Collection[str], live: _LiveList
) -> None:
    """Note the live items that a task names as absent, and those that stay nevertheless."""
    keys: Iterable[str] = ()
    if item.key is not None:
        keys = live.items.keys() & {item.key}
    elif item.handles:
        keys = live.by_handle.get(item.handles[0], ())
    meant = []
    for key in keys:
        is_desired = key in paired_keys
        if is_desired and item.key is None:
            continue
        is_as_named = not live.misses(item.named, live.items[key])
        if is_as_named and not is_desired:
            meant.append(key)
        elif is_as_named or not is_desired:
            matching.spared[key] = item
    if item.key is None and len(meant) > 1:
        raise live.refuse_several(item, meant)
    matching.removed.update(dict.fromkeys(meant, item.source))


def _pair(
    present: Sequence[ListItem], absent: Sequence[ListItem], live: _LiveList
) -> dict[int, str]:
    """Pair desired items with live ones; return the live keys by the index of their item.

    An explicit key is that item. Of the rest, what shares the surest handle is paired first, and of that what differs
    least.
    """
    removed_keys = _removed_keys(absent, live)
    index_of_key = {item.key: index for index, item in enumerate(present)}
    claimed_keys = index_of_key.keys() - removed_keys.keys()
    paired: dict[int, str] = {}
    for key in live.items:
        if key in index_of_key:
            paired[index_of_key[key]] = key
    for rank in range(max([len(item.handles) for item in present], default=0)):
        candidates: dict[int, Items] = {}
        for index, item in enumerate(present):
            if item.key is None and index not in paired and rank < len(item.handles):
                candidates[index] = live.by_handle.get(item.handles[rank], {})
        for fit in _fits(present, candidates, live.misses, removed_keys):
            index = fit.item_index
            key = fit.key
            if index in paired or key in claimed_keys:
                continue
            is_surely_it = rank == 0 and not fit.missed
            if fit.is_removed and not is_surely_it:
                continue
            others = _unnamed(candidates[index], (claimed_keys, removed_keys, {key}))
            may_be_another = not is_surely_it or removed_keys.get(key)
            if others and rank == 0 and may_be_another:
                raise live.refuse_several(present[index], [key, *others])
            paired[index] = key
            claimed_keys.add(key)
    return paired


def _removed_keys(absent: Sequence[ListItem], live: _LiveList) -> dict[str | None, bool]:
    """Return the keys that tasks remove, each with whether its live item is as the task names it."""
    removed_keys: dict[str | None, bool] = {}
    for item in absent:
        value = live.items.get(item.key or "")
        removed_keys[item.key] = value is not None and not live.misses(item.named, value)
    return removed_keys


def _unnamed(live: Items, named: Iterable[Collection[str | None]]) -> list[str]:
    """Return the keys that are not named. The named keys are not gone through: there may be very many."""
    keys: list[str] = []
    for key in live:
        if not any(key in keys_named for keys_named in named):
            keys.append(key)
    return keys


class _Fit(NamedTuple):
    """How a live item fits a desired one, which has an index: the best of them sorts first."""

    missed: int
    is_removed: bool
    item_index: int
    key_length: int
    key: str


def _fits(
    present: Sequence[ListItem],
    candidates: Mapping[int, Items],
    misses: Misses,
    removed_keys: Collection[str | None],
) -> list[_Fit]:
    """Return which live items fit which desired one: what differs least first, of equal ones the lowest number."""
    fits: list[_Fit] = []
    for index, live in candidates.items():
        item = present[index]
        for key, value in live.items():
            missed = len(misses(item.named, value))
            is_another = item.keys_before is not None and (missed > 0 or key in item.keys_before)
            if not is_another:
                fits.append(_Fit(missed, key in removed_keys, index, len(key), key))
    fits.sort()
    return fits
