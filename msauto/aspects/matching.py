"""Which desired item of a list is which live one.

An explicit key (uid, number, guid) means that item and no other. Of the rest, what fits best is paired first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from msgspec import Struct

from msauto.aspects.comparison import Attributes
from msauto.aspects.plan_builder import refuse
from msauto.errors import PlanningError
from msauto.model.desired import TaskSource

L = TypeVar("L", bound=Attributes)


class ListItem(Struct, frozen=True, eq=False):
    """What a task asks of one item; positions count from the first frame of the file.

    ``key`` is the explicit key, ``label`` how the plan names it, ``named`` what the task names. ``handles`` is what a
    live item shares that may be this one, the surest first. ``present`` false: it is to be absent. ``besides`` (undo):
    it is one more beside the live items of these keys, unless an equal one is there, too. ``ours``: no task names its
    key, a run made it.
    """

    key: str | None
    label: str
    named: Attributes
    source: TaskSource
    handles: tuple[Hashable, ...]
    present: bool
    besides: frozenset[str] | None = None
    ours: bool = False


@dataclass(frozen=True)
class Matching(Generic[L]):
    """Desired items of a list and live ones, in pairs.

    ``present`` are the desired items in the order of the tasks, each with its live key, ``None`` for a new one. Of the
    keys that are only live, tasks name ``removed`` as absent, and no task names the ``others``. ``spared`` are those
    that a task names as absent and that stay: they have other attributes, or are desired. ``explicit`` are the keys
    that tasks name.
    """

    present: list[tuple[ListItem, str | None]]
    removed: dict[str, TaskSource]
    others: list[str]
    spared: dict[str, ListItem]
    explicit: Collection[str | None] = ()

    @cached_property
    def kept(self) -> list[tuple[ListItem, str]]:
        """The items that are live, with their keys."""
        return [(item, key) for item, key in self.present if key is not None]

    @cached_property
    def created(self) -> list[ListItem]:
        """The items that are new."""
        return [item for item, key in self.present if key is None]


def match(
    items: Sequence[ListItem],
    live: Mapping[str, L],
    handles_of: Callable[[L], Collection[Hashable]],
    misses: Callable[[Attributes, L], Collection[str]],
    prefix: str = "",
) -> Matching[L]:
    """Match what tasks ask with the live items by their keys; ``misses`` names in what a live item differs.

    A task that removes or changes one of several live items at its place is refused: it may mean any of them. What is
    wholly as desired is the desired one, also under a key that a task removes: the server may give a key again.
    """
    present, explicit = [item for item in items if item.present], {item.key for item in items}
    if not live:
        return Matching([(item, None) for item in present], {}, [], {}, explicit)
    alike: dict[Hashable, dict[str, L]] = defaultdict(dict)
    for key, each in live.items():
        for handle in handles_of(each):
            alike[handle][key] = each
    going = {item.key for item in items if not item.present}
    paired = _pair(present, alike, misses, explicit - going, going, prefix)
    by_key = {item.key: index for index, item in enumerate(present) if item.key is not None}
    paired |= {by_key[key]: key for key in live if key in by_key}
    kept = set(paired.values())
    removed: dict[str, TaskSource] = {}
    spared: dict[str, ListItem] = {}
    for item in (item for item in items if not item.present):
        there: Iterable[str] = alike.get(item.handles[0], ()) if item.handles else ()
        keys = [key for key in (there if item.key is None else {item.key} & live.keys()) if key not in kept]
        meant = [key for key in keys if not misses(item.named, live[key])]
        if item.key is None and len(meant) > 1:
            raise _refuse_several(item, meant, prefix)
        removed |= dict.fromkeys(meant, item.source)
        spared |= {key: item for key in keys if key not in meant}
        if item.key is not None and item.key in kept and not misses(item.named, live[item.key]):
            spared[item.key] = item
    return Matching(
        [(item, paired.get(index)) for index, item in enumerate(present)],
        removed,
        [key for key in live if key not in kept and key not in removed],
        {key: item for key, item in spared.items() if key not in removed},
        explicit,
    )


def _pair(
    present: Sequence[ListItem],
    alike: Mapping[Hashable, Mapping[str, L]],
    misses: Callable[[Attributes, L], Collection[str]],
    taken: set[str | None],
    going: Collection[str | None],
    prefix: str,
) -> dict[int, str]:
    """Pair what shares the surest handle, and of that what differs least; return keys by the index of their item.

    ``taken`` are the keys of which tasks desire that item, ``going`` those that tasks remove.
    """
    paired: dict[int, str] = {}
    for rank in range(max((len(item.handles) for item in present), default=0)):
        there: dict[int, Mapping[str, L]] = {}
        fitting: list[tuple[int, bool, int, int, str]] = []
        for index, item in enumerate(present):
            if item.key is not None or index in paired or rank >= len(item.handles):
                continue
            there[index] = alike.get(item.handles[rank], {})
            for key, each in there[index].items():
                missed = len(misses(item.named, each))
                if item.besides is None or not (missed or key in item.besides):
                    fitting.append((missed, key in going, index, len(key), key))
        for missed, goes, index, _, key in sorted(fitting):  # of equal ones, the lowest number
            if index in paired or key in taken or (goes and (missed or rank)):
                continue
            rivals = [other for other in there[index] if other not in taken and other not in going]
            if missed and rank == 0 and len(rivals) > 1:
                raise _refuse_several(present[index], rivals, prefix)
            paired[index] = key
            taken.add(key)
    return paired


def _refuse_several(item: ListItem, keys: Sequence[str], prefix: str) -> PlanningError:
    named = ", ".join(f"{prefix}{key}" for key in sorted(keys, key=lambda key: (len(key), key)))
    message = f"{item.label} may be any of several live items: {named}"
    return refuse(message, item.source, "name the one that you mean by its uid, number or guid")
