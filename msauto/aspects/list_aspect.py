"""Lists of items with keys: markers, segments, links and the items of an RSS channel.

Here is once what they share: which desired item is which live one, ``exactly``, ``state: absent``, twins,
contradictions, what is lost, and undo. The module of a list declares what its key is, what its attributes are, and
which requests create, change and delete one item.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from msgspec import structs

from msauto.aspects.aspect import Aspect, Live, TimelineItem, TimelinePlace, UndoContext, part_of
from msauto.aspects.comparison import Attributes, Item, Items, mapping, text_of
from msauto.aspects.matching import ListItem, Matching, match
from msauto.aspects.plan_builder import (
    LEFT,
    MADE,
    WHOLE,
    Doubt,
    PlanContext,
    doubts_of,
    is_kept,
    left_alone,
    quoted,
    refuse,
    tell_doubt,
)
from msauto.aspects.positions import check_in_point_stays
from msauto.model.desired import DesiredList, Sourced, TaskSource
from msauto.model.live import Asset
from msauto.model.plan import Basis, Change, Outside, ShownItem, Target
from msauto.model.ports import LiveTarget
from msauto.model.result import started
from msauto.model.snapshot import (
    NEW,
    TWINS,
    UNREAD,
    AspectName,
    Effect,
    Expected,
    Json,
    Part,
    Thing,
    is_equal,
    name_of,
)
from msauto.secrets.redaction import HIDDEN

_MOST_TOLD = 10
LeftItem = tuple[Item, str]
"""How a run left an item, and that run."""
CORRECT_NUMBER = "correct the number on the server, or take the task out"


class ListAspect(Aspect):
    """A list of a target. Its value in a snapshot maps keys to items; a key of several items has :data:`TWINS`."""

    called: ClassVar[str]
    """How a message calls one item."""
    key_called: ClassVar[str] = "key"
    """How a message calls its key."""
    exactly: ClassVar[tuple[str, tuple[Any, Any]] | None] = None
    """The name of the list under ``exactly``, with the type and field of that key."""
    replaces: ClassVar[bool] = False
    """A request that changes an item writes all of it again."""
    numbered: ClassVar[bool] = False
    """A server may give its items other keys after each request (dialect ``segment_numbers``)."""
    every: ClassVar[str] = ""
    """What shows all live items, where its own things do not: a fact."""
    positions: ClassVar[tuple[str, ...]] = ()
    """The attributes that are positions: frames of the file."""
    moves: ClassVar[tuple[frozenset[str], ...]] = ()
    """The attributes that others change when they move an item, in one of these ways."""
    unreported: ClassVar[tuple[str, ...]] = ()
    """The attributes that a server may not report: then the ledger holds what was last written."""

    # What a module declares ------------------------------------------------------------------------------------------

    def same(self, name: str, one: Json, other: Json) -> bool:
        """Return whether two values of an attribute are equal; ``None`` is absent."""
        raise NotImplementedError

    def handles(self, value: Attributes) -> Sequence[Hashable]:
        """Return by what a desired item without a key may be this live one, the surest first."""
        return (self.place(value),)

    def resolve(self, context: PlanContext, sourced: Sourced[Any], live: Items) -> ListItem:
        """Return what a task asks of one item, in frames of the file."""
        raise NotImplementedError

    def create(self, context: PlanContext, item: ListItem) -> None:
        """Add the change and the requests of a new item."""
        raise NotImplementedError

    def change(
        self, context: PlanContext, item: ListItem, key: str, live: Item, basis: Basis
    ) -> None:
        """Add the change and the requests of a live item that differs."""
        raise NotImplementedError

    def delete(
        self, context: PlanContext, key: str, live: Item, source: TaskSource, *, exactly: bool
    ) -> None:
        """Add the change and the request of an item that goes; ``exactly``: no task names it."""
        raise NotImplementedError

    def former(self, key: str, value: Attributes, keys_before: frozenset[str] | None) -> Any:
        """Return an item as it was before a run, for undo.

        ``keys_before``: the run deleted it; a server that gives keys makes a new one beside the live items of these.
        """
        raise NotImplementedError

    def absent(self, key: str) -> Any:
        """Return an item that undo removes."""
        raise NotImplementedError

    # Comparing -------------------------------------------------------------------------------------------------------

    def misses(self, named: Json, shown: Json) -> Sequence[str]:
        """Compare the named attributes; twins are equal to the same twins alone."""
        one = named if isinstance(named, dict) else {}
        other = shown if isinstance(shown, dict) else {}
        if TWINS in one or TWINS in other:
            return () if one == other else (TWINS,)
        if not isinstance(shown, dict):
            return tuple(one) or ("",)
        missed = []
        for name, value in one.items():
            now = other.get(name)
            if value == now or name in self.hidden(named, shown):
                continue
            if not self.same(name, value, now):
                missed.append(name)
        return missed

    def hidden(self, named: Json, shown: Json) -> Sequence[str]:
        """Return the named attributes that the server does not report of this item."""
        if not self.unreported:
            return ()
        one = mapping(named)
        other = mapping(shown)
        return [name for name in self.unreported if one.get(name) and name not in other]

    # Planning --------------------------------------------------------------------------------------------------------

    def plan(self, context: PlanContext, part: Any) -> None:
        """Make the list as desired; with ``exactly`` nothing else stays."""
        desired: DesiredList[Any] = part
        if not desired.items and not desired.exactly:
            self.settle_doubts(context)
            return
        if self.positions:
            check_in_point_stays(context)
        everything = self.live(context)
        unseen = self.unseen(context, everything)
        items = self._resolved(context, desired, everything)
        absent = [item for item in items if not item.present]
        matching = self.matched(context, desired, items, everything)
        if absent:
            self._refuse_contradictions(absent, matching)
        if matching.created and matching.pairs:
            self._refuse_what_stays_and_changes(desired, matching)
        if matching.spared:
            self._warn_of_spared(context, matching)
        if absent or desired.exactly:
            self._expect_no_others(context, desired, absent, everything)
        if context.memory:
            matching = self.without_kept(context, matching)
        if unseen:
            matching = self._without_unseen(context, matching, unseen)
        self.mind_surplus(context, matching)
        self.write(context, matching)
        if matching.surplus:
            self._note_emptied(context, desired, matching)

    def settle_doubts(self, context: PlanContext) -> None:
        """Implement :meth:`~msauto.aspects.aspect.Aspect.settle_doubts`."""
        if context.memory:
            self.unseen(context, self.live(context))

    def unseen(self, context: PlanContext, live: dict[str, Item]) -> list[Doubt]:
        """Return what accepted requests made and is still in doubt: a warning. What is seen alone is ours."""
        unseen: list[Doubt] = []
        for doubt in doubts_of(context, self.name):
            keys = self._keys_of_doubt(context, doubt, live)
            if len(keys) == 1:
                self._settle(context, doubt, keys[0], live)
                continue
            shown = "it does not show"
            if keys:
                shown = f"it shows as {' and '.join([f'{self.prefix}{key}' for key in keys])}"
            if len(unseen) < _MOST_TOLD:
                tell_doubt(context, self._called(doubt.key, doubt.value), doubt, shown)
            unseen.append(doubt)
        return unseen

    def _keys_of_doubt(self, context: PlanContext, doubt: Doubt, live: Items) -> list[str]:
        """Return the live items that what is in doubt may be: by its key, else at its place."""
        numbers_move = self.numbered and context.server.dialect.numbers_by_start
        if doubt.key in live and not numbers_move:
            return [doubt.key]
        place = self.place(doubt.value)
        keys: list[str] = []
        for key, value in live.items():
            if place is not None and self.place(value) == place:
                keys.append(key)
        return keys

    def _settle(self, context: PlanContext, doubt: Doubt, key: str, live: dict[str, Item]) -> None:
        """Note that what was in doubt is seen: ours if it is as the request made it, else changed outside."""
        value = live[key]
        builder = context.builder
        builder.settle(doubt.item)
        left = f"{LEFT}{self.name}:{key}"
        if self.misses(doubt.value, value):
            context.memory[left] = [doubt.value, doubt.run]
            builder.settle(left, context.memory[left])
            return
        made = mapping(doubt.value)
        hidden: Item = {}
        for name in self.hidden(doubt.value, value):
            hidden[name] = made[name]
        if hidden:
            live[key] = {**hidden, **value}
            builder.settle(f"{self.name}:{key}", hidden)
        if doubt.key.startswith(NEW):
            builder.settle(f"{MADE}{self.name}:{key}", value=True)
        thing = name_of((self.name, doubt.key))
        builder.settle(left, [live[key], doubt.run], thing)

    def _without_unseen(
        self, context: PlanContext, matching: Matching, unseen: Sequence[Doubt]
    ) -> Matching:
        """Return what is to be written, without new items that may be what is in doubt; it may show at any time.

        None may take the number that it has.
        """
        keys = {doubt.key for doubt in unseen}
        handles: set[Hashable] = set()
        for doubt in unseen:
            handles.update(self.handles(mapping(doubt.value)))
        present = []
        for item, key in matching.present:
            may_be_made = item.key in keys or not handles.isdisjoint(item.handles)
            if key is not None or not (may_be_made or self.numbered):
                present.append((item, key))
        unwanted = context.builder.unwanted
        unwanted[:] = [(name, kind) for name, kind in unwanted if name != self.name]
        return structs.replace(matching, present=present)

    def _resolved(
        self, context: PlanContext, desired: DesiredList[Any], live: Items
    ) -> Sequence[ListItem]:
        """Return what the tasks ask of each item, without what undo leaves alone."""
        items: Sequence[ListItem] = [
            self.resolve(context, sourced, live) for sourced in desired.items
        ]
        if context.memory:
            items = self.with_keys_of_ours(context, items, live)
        if context.required_live:
            items = [item for item in items if not self.is_left_alone(context, item, live)]
        return self.unite(items) if len(items) > 1 else items

    def matched(
        self,
        context: PlanContext,
        desired: DesiredList[Any],
        items: Sequence[ListItem],
        live: Items,
    ) -> Matching:
        """Match the items with the live ones, and note which others ``exactly`` removes; twins match nothing."""
        exactly = desired.exactly
        single = {key: value for key, value in live.items() if TWINS not in value}
        twins: Mapping[str, TaskSource] = {}
        if len(single) < len(live):
            twins = self.twins(context, live, items, desired)
        matching = match(items, single, self.handles, self.differs, self.prefix)
        for key in matching.others:
            if exactly and self.covers(desired, live[key]):
                matching.surplus[key] = exactly
        for key, source in twins.items():
            is_surplus = source is exactly
            going = matching.surplus if is_surplus else matching.removed
            going[key] = source
        if len(single) < len(live):  # what is planned around twins must know them
            return structs.replace(matching, live=live)
        return matching

    def mind_surplus(self, context: PlanContext, matching: Matching) -> None:
        """Note what goes: where its request is not done, it was there before and is not new in the next run."""
        for key, source in matching.surplus.items():
            context.builder.mind((self.name, key), matching.live[key], source)

    def _note_emptied(self, context: PlanContext, desired: Any, matching: Matching) -> None:
        """Note how many items go, where ``exactly`` leaves none of those that it concerns."""
        staying: list[Attributes] = [item.named for item in matching.created]
        for key, value in matching.live.items():
            if key not in matching.removed and key not in matching.surplus:
                staying += each_of(value)
        if any(self.covers(desired, value) for value in staying):
            return
        count = 0
        for key in matching.surplus:
            count += len(each_of(matching.live[key]))
        context.builder.emptied.append((self.name, count))
        if not desired.items:
            place = desired.exactly.place
            context.warn(
                f"`exactly` empties it of {self.called}s by a list with nothing in it ({place})"
            )

    def with_keys_of_ours(
        self, context: PlanContext, items: Sequence[ListItem], live: Items
    ) -> Sequence[ListItem]:
        """Return the items with the keys of those that a run made at their place, and that others have moved.

        A server may give the key of a deleted item again: one that differs otherwise is not ours. What others have put
        in its place counts as the desired item only if it is as desired.
        """
        key_at = self._places_of_ours(context, items, live)
        if not key_at:
            return items
        ours = set(key_at.values())
        others_at = defaultdict[Hashable, list[Item]](list)
        for key, value in live.items():
            if key not in ours:
                others_at[self.place(value)].append(value)
        keyed = []
        for item in items:
            place = self.place(item.named)
            if item.is_by_place and place in key_at:
                key = key_at[place]
                others = others_at[place]
                is_moved = self.place(live[key]) != place
                is_as_desired = any(not self.differs(item.named, value) for value in others)
                if (is_moved or others) and not is_as_desired:
                    label = f"{self.prefix}{key}"
                    item = structs.replace(item, key=key, label=label, ours=True)
            keyed.append(item)
        return keyed

    def _places_of_ours(
        self, context: PlanContext, items: Sequence[ListItem], live: Items
    ) -> dict[Hashable, str]:
        """Return where a run left each live item that it made and that no task names, with its key now."""
        ours: dict[Hashable, str] = {}
        if not (self.moves and context.is_known_clip):
            return ours
        named = {item.key for item in items}
        for key, (was, _) in self.left(context).items():
            if key not in live or key in named:
                continue
            is_made = self.replaces or context.memory.get(f"{MADE}{self.name}:{key}")
            if is_made and self._is_moved_at_most(was, live[key]):
                ours[self.place(was)] = key
        return ours

    def _is_moved_at_most(self, was: Item, live: Item) -> bool:
        """Return whether an item is where it was, or differs only in what moving it changes."""
        if self.place(live) == self.place(was):
            return True
        changed = set(self.misses(was, live))
        return any(changed <= moved for moved in self.moves)

    def without_kept(self, context: PlanContext, matching: Matching) -> Matching:
        """Return what is to be written, without what was changed outside and is kept."""
        left = self.left(context)
        whole_since = context.memory.get(f"{WHOLE}{self.name}")
        if not (left or whole_since):
            return matching
        live = matching.live
        how_left = self._how_left(context, matching, left)
        newest_run = max([run for _, run in left.values()], default=str(whole_since))

        def stays(called: str, key: str, named: Attributes | None, source: TaskSource) -> bool:
            known = how_left(key, named)
            live_item = live.get(key)
            if known is None:
                return False
            if live_item is not None and named is not None and not self.differs(named, live_item):
                return False
            outside = self._changed_outside(*known, named, live_item)
            if outside is None:
                return False
            desired = dict(named or {})
            return is_kept(context, (self.name, called), outside, live_item, source, desired)

        def stays_of_others(called: str, key: str, source: TaskSource) -> bool:
            user = text_of(live[key].get("user"))
            outside = Outside(None, newest_run, started(newest_run), user)
            return is_kept(context, (self.name, called), outside, live[key], source, None)

        present = []
        for item, key in matching.present:
            if not stays(item.label, key or item.key or "", item.named, item.source):
                present.append((item, key))
        removed = {}
        for key, source in matching.removed.items():
            if not stays(f"{self.prefix}{key}", key, None, source):
                removed[key] = source
        surplus = {}
        for key, source in matching.surplus.items():
            called = f"{self.prefix}{key}"
            if key in left:
                is_staying = stays(called, key, None, source)
            else:
                is_staying = stays_of_others(called, key, source)
            if not is_staying:
                surplus[key] = source
        return structs.replace(matching, present=present, removed=removed, surplus=surplus)

    def _how_left(
        self, context: PlanContext, matching: Matching, left: Mapping[str, LeftItem]
    ) -> Callable[[str, Attributes | None], LeftItem | None]:
        """Return what finds how a run left an item: by its key, else what is gone from its place.

        A key that a task names is that of then.
        """
        left_by_key = self.left_by_key(context, left)
        ours = [item.key for item, _ in matching.present if item.ours]
        named_keys = {*matching.explicit}.difference(ours)
        gone: dict[Hashable, LeftItem] = {}
        for key, known in left.items():
            if key not in matching.live:
                gone[self.place(known[0])] = known

        def how_left(key: str, named: Attributes | None) -> LeftItem | None:
            if key in named_keys:
                return left_by_key.get(key)
            if named is None or key in left:
                return left.get(key)
            place = self.place(named)
            return None if place is None else gone.get(place)

        return how_left

    def left_by_key(
        self, context: PlanContext, left: Mapping[str, LeftItem]
    ) -> Mapping[str, LeftItem]:
        """Return how a run left each item, and that run, by the key that it had then."""
        return left

    def left(self, context: PlanContext, kept_as: str = LEFT) -> dict[str, LeftItem]:
        """Return how a run left each item, and that run, by live key; as ``SHIFTED``, by the key of then."""
        prefix = f"{kept_as}{self.name}:"
        left: dict[str, LeftItem] = {}
        for item, known in context.memory.items():
            if not item.startswith(prefix) or not isinstance(known, list):
                continue
            # An older msauto kept a third value, and positions as the server counts them.
            counts_as_server = len(known) > 2 and context.server.dialect.counts_from_in
            if not counts_as_server:
                left[item.removeprefix(prefix)] = dict(mapping(known[0])), str(known[1])
        return left

    def _changed_outside(
        self, left: Item, run: str, named: Attributes | None, live: Attributes | None
    ) -> Outside | None:
        """Return what others have changed of an item that is to be as named, or removed (``None``)."""
        if live is None:
            return Outside(left, run, started(run))
        live_item = dict(live)
        is_lost_whole = named is None or self.replaces
        if is_lost_whole:
            would_change = {*self.misses(left, live_item), *self.misses(live_item, left)}
        else:
            would_change = {*self.misses(dict(named or {}), live_item)}
        left_then: Item = {name: left.get(name) for name in sorted(would_change - self.kept)}
        is_as_left = not self.misses(left_then, live_item)
        if is_as_left:
            return None
        user = text_of(live.get("user"))
        if user == text_of(left.get("user")):
            user = ""
        return Outside(left_then, run, started(run), user)

    def live(self, context: PlanContext) -> dict[str, Item]:
        """Return the live items, with the attributes that only the ledger knows.

        Those without a key cannot be named.
        """
        items: dict[str, Item] = {}
        for key, value in part_of(self, context.live).items():
            item = mapping(value)
            hidden: Item = {}
            if self.unreported and TWINS not in item:
                remembered = mapping(context.memory.get(f"{self.name}:{key}"))
                hidden = {name: remembered[name] for name in self.unreported if name in remembered}
            items[key] = {**hidden, **item}
        items.pop("", None)
        return items

    def differs(self, named: Attributes, live: Attributes) -> Sequence[str]:
        """Return the names in which a live item is not as desired, or may not be: its value is not known."""
        desired = dict(named)
        live_item = dict(live)
        names = [*self.misses(desired, live_item), *self.hidden(desired, live_item)]
        if not names or not self.kept:
            return names
        return [name for name in names if name not in self.kept]

    def unite(self, items: Sequence[ListItem]) -> Sequence[ListItem]:
        """Return the items with those merged that are one item under two names."""
        return items

    def covered(self, desired: Any) -> Sequence[Item]:
        """Return what the items have that ``exactly`` concerns, which may not be new either: one mapping of these."""
        return ({},)

    def covers(self, desired: Any, value: Attributes) -> bool:
        """Return whether ``exactly`` of a list concerns an item."""
        return any(kind.items() <= value.items() for kind in self.covered(desired))

    def write(self, context: PlanContext, matching: Matching) -> None:
        """Add the changes and requests: deletions first, so that an old and a new item never share a place."""
        live = matching.live
        for key, source in matching.removed.items():
            self.delete(context, key, live[key], source, exactly=False)
        for key, source in matching.surplus.items():
            self.delete(context, key, live[key], source, exactly=True)
        for item, key in matching.pairs:
            self.keep(context, item, key, live[key])
        for item in matching.created:
            self.create(context, item)

    def keep(self, context: PlanContext, item: ListItem, key: str, live: Item) -> None:
        """Change a live item that differs; one that is as desired is to stay so."""
        differs = self.differs(item.named, live)
        if not differs:
            context.builder.hold(self.effect(key, live, dict(item.named)), item.source)
        else:
            self.change(context, item, key, live, self.basis(context, key, live, differs))

    def basis(
        self, context: PlanContext, key: str, live: Attributes, differs: Collection[str]
    ) -> Basis:
        """Return how the value of what differs is known: from the server, from the ledger, or not at all."""
        if any(name not in self.unreported for name in differs):
            return "live"
        shown = mapping(part_of(self, context.live).get(key))
        unknown = [name for name in differs if name not in shown]
        if len(unknown) < len(differs):
            return "live"
        return "ledger" if all(name in live for name in unknown) else "none"

    def effect(self, key: str, before: Item | None, after: Item | None) -> Effect:
        """Return an effect on one item."""
        return Effect(self.name, key, before, after)

    def new_key(self, context: PlanContext) -> str:
        """Return the provisional key of one more item that the server numbers."""
        context.builder.news += 1
        return f"{NEW}{context.builder.news}"

    def is_left_alone(self, context: PlanContext, item: ListItem, live: Items) -> bool:
        """Return whether an item is left alone, because it is no longer as the run left it (undo): a warning."""
        name = f"{self.name}:{item.key}"
        if name not in context.required_live:
            return False
        key = item.key or ""
        required_live = context.required_live[name]
        live_item = live.get(key)
        if live_item is None:
            is_as_desired = not item.present
        else:
            is_as_desired = item.present and not self.differs(item.named, live_item)
        shown: Json = live_item
        if self.unreported:  # what the ledger knows besides was written by msauto
            shown = part_of(self, context.live).get(key)
        if is_as_desired or is_equal(required_live, shown, self):
            return False
        what = f"{self.called} {item.label}"
        warning = left_alone(what, shown, required_live)
        twins = mapping(live_item).get(TWINS)
        if isinstance(twins, list):
            warning = f"{what} is left alone: {self.describe_twins(key, twins)}"
        context.keep(warning)
        return True

    def _warn_of_spared(self, context: PlanContext, matching: Matching) -> None:
        """Warn of the items that stay: a task names them as absent, and they have other attributes or are desired."""
        for key, item in matching.spared.items():
            if key in matching.surplus:
                continue
            reasons = []
            value = matching.live[key]
            for name in self.differs(item.named, value):
                shown = f"its {name} is {value.get(name)!r}"
                if value.get(name) is None:
                    shown = f"it shows no {name}"
                reasons.append(f"{shown}, not {item.named[name]!r}")
            what = f"{self.called} {item.label} is left alone"
            if reasons:
                context.keep(f"{what}: {' and '.join(reasons)} ({item.source.place})")
                continue
            desired_at = {key: desired.source.place for desired, key in matching.pairs}
            context.warn(f"{what}: it is what {desired_at[key]} desires ({item.source.place})")

    def _expect_no_others(
        self,
        context: PlanContext,
        desired: Any,
        absent: Sequence[ListItem],
        live: Items,
    ) -> None:
        """Note which new items would be against what the tasks ask."""
        builder = context.builder
        for item in absent:
            if item.key is None:
                builder.unwanted.append((self.name, dict(item.named)))
            elif item.key not in live:
                builder.hold(self.effect(item.key, None, None))
        if desired.exactly:
            builder.exclude_others(self.name, self.covered(desired), desired.exactly)
            builder.look(self.every or self.name)

    def twins(
        self, context: PlanContext, live: Items, items: Sequence[ListItem], desired: Any
    ) -> dict[str, TaskSource]:
        """Return the twins that go, each key with the place that names them. Any other task on twins is refused.

        Which of them a request by their key takes is not known, so none of them counts as the desired one.
        """
        going: dict[str, TaskSource] = {}
        for key, value in live.items():
            twins = value.get(TWINS)
            if not isinstance(twins, list):
                continue
            source = self._who_removes(context, key, twins, items, desired)
            if source is not None:
                going[key] = source
        return going

    def _who_removes(
        self,
        context: PlanContext,
        key: str,
        twins: Sequence[Json],
        items: Sequence[ListItem],
        desired: Any,
    ) -> TaskSource | None:
        """Return the place of the task that removes all twins of a key; ``None``, with a warning, where none does."""
        named = next((item for item in items if item.key == key), None)
        loose = self._alike(items, twins)
        has_key = True
        source: TaskSource | None = None
        if named is not None:
            source = named.source
        elif desired.exactly and any(self.covers(desired, mapping(twin)) for twin in twins):
            source = desired.exactly
        elif loose is not None:
            source = loose.source
            has_key = False
        is_unread = unread_of(twins) != ""
        described = self.describe_twins(key, twins)
        if source is None:
            if not is_unread:  # else the warnings of the whole answer name it
                context.warn(described)
            return None
        if is_unread:
            raise refuse(described, source, CORRECT_NUMBER)
        consents, remedy = self.about_twins(context, key, len(twins), named)
        if named is not None and not named.present:
            consents = consents and not self._is_of_others(named, twins)
        if not consents or not has_key:
            what = f"{described}; a request by this {self.key_called} may take the wrong one"
            raise refuse(what, source, remedy)
        return source

    def _is_of_others(self, absent: ListItem, twins: Sequence[Json]) -> bool:
        """Return whether one of the twins has not what the entry names besides its key, and would go with them."""
        return any(self.differs(absent.named, mapping(twin)) for twin in twins)

    def _alike(self, items: Sequence[ListItem], twins: Sequence[Json]) -> ListItem | None:
        """Return the first item without a key that one of the twins may be."""
        handles: set[Hashable] = set()
        for twin in twins:
            handles.update(self.handles(mapping(twin)))
        for item in items:
            if item.key is None and not handles.isdisjoint(item.handles):
                return item
        return None

    def about_twins(
        self, context: PlanContext, key: str, count: int, named: ListItem | None
    ) -> tuple[bool, str]:
        """Return whether a task consents to remove all items of one key, and what to do before it may concern one."""
        by_key = f"name {self.key_called} {key} as absent with `lossy: true`"
        return context.lossy, f"remove one of them by hand, or {by_key}: then all {count} go"

    def describe_twins(self, key: str, twins: Sequence[Json]) -> str:
        """Return a sentence that names all items of one key, and why nothing may touch them."""
        unread = unread_of(twins)
        if unread:
            return f"{unread}, so nothing may touch this {self.called}"
        titles = " and ".join(repr(mapping(twin).get("title", "")) for twin in twins)
        return f"{len(twins)} live {self.called}s have the {self.key_called} {key}: {titles}"

    def _refuse_contradictions(self, absent: Sequence[ListItem], matching: Matching) -> None:
        """Refuse an item that one task removes and another one desires.

        What is removed by its key may be desired by its place only where another item is at that place.
        """
        new = {item.handles for item in matching.created}
        present = [item for item, _ in matching.present]
        desired_at = defaultdict[Hashable, list[ListItem]](list)
        for item in present:
            for handle in item.handles:
                desired_at[handle].append(item)
        for gone in absent:
            alike: Sequence[ListItem] = ()
            if gone.handles:
                alike = desired_at[gone.handles[0]]
            elif gone.key is None:
                alike = present
            for desired in alike:
                has_its_place = desired.handles[:1] == gone.handles[:1]
                if not has_its_place and not gone.named.items() <= desired.named.items():
                    continue
                is_new = desired.key is None and desired.handles in new
                if gone.key is None or is_new:
                    at = desired.source.place
                    what = f"{self.called} {gone.label} is removed here and desired at {at}"
                    raise refuse(what, gone.source, "remove one of the two")

    def _refuse_what_stays_and_changes(self, desired: Any, matching: Matching) -> None:
        """Refuse an item that one task names by its place as it is, and another one by its key as something else."""
        kept_at: dict[Hashable, tuple[ListItem, Item]] = {}
        for item, key in matching.pairs:
            value = matching.live[key]
            for handle in self.handles(value)[:1]:
                kept_at[handle] = item, value
        parts = {sourced.source: sourced.part for sourced in desired.items}
        for stays in matching.created:
            has_a_place = stays.is_by_place and stays.handles
            if not has_a_place or stays.handles[0] not in kept_at:
                continue
            changed, value = kept_at[stays.handles[0]]
            is_of_one_task = parts[changed.source] == parts[stays.source]
            if is_of_one_task or self.differs(stays.named, value):
                continue
            if self.differs(stays.named, {**value, **changed.named}):
                raise refuse(
                    f"{self.called} {stays.label} is desired as it is here, and changed at "
                    f"{changed.source.place} as {changed.label}",
                    stays.source,
                    "declare the same in both",
                )

    # Undo ------------------------------------------------------------------------------------------------------------

    def undo(self, context: UndoContext) -> Any:
        """Return the items as they were, each with how it must still be; ``notes`` name what the run may not have made.

        Ours is only what an accepted request made: verification read it under one new key.
        """
        items: list[Any] = []
        things = context.things.get(self.name, {})
        if not things:
            return None
        deleted = {key for key, effect in things.items() if effect.after is None}
        keys_before = context.keys_before(self.name) - deleted
        for key, effect in things.items():
            left = context.left((self.name, key))
            if left is None:
                context.notes.append(self._left_alone(key, effect))
                continue
            was, *twins = each_of(effect.before)
            written = mapping(effect.after)
            if key in deleted:
                value = was
            elif self.replaces:
                value = {**dict.fromkeys(written, ""), **was}
            else:
                value = {name: was.get(name, "") for name in written}
            called = f"{self.called} {self.prefix}{key}"
            if HIDDEN in value.values():
                context.notes.append(f"{called} is left alone: what was there before is hidden")
                continue
            live_key, context.required_live[f"{self.name}:{left[0]}"] = left
            if effect.before is None:
                items.append(self.absent(live_key))
                continue
            for twin in twins:
                title = str(twin.get("title") or twin.get("description") or "")
                why = f"because a {self.key_called} names one {self.called}"
                what = f"{self.called} {key}: a second one ({title!r})"
                context.notes.append(f"{what} does not come back, {why}")
            others = keys_before if key in deleted else None
            items.append(self.former(live_key, value, others))
        return DesiredList(tuple(map(context.sourced, items))) if items else None

    def _left_alone(self, key: str, effect: Expected) -> str:
        """Return the note on an item of which it is not known whether it is still as the run left it."""
        why = "how the run left it"
        if effect.before is None:
            why = "whether the run made it"
        return f"{self._called(key, effect.after)} is left alone: it is not known {why}"

    def _called(self, key: str, value: Json) -> str:
        """Return how a thing of a run is called in messages; one without a key yet by its value."""
        if key.startswith(NEW):
            return f"the new {self.called} ({quoted(value)})"
        return f"{self.called} {self.prefix}{key}"

    # Shown -----------------------------------------------------------------------------------------------------------

    def shown_as(self, named: Json, new: Collection[str]) -> tuple[str, str]:
        """Return under which of these new keys an item seems to show that was written, and why; empty: none."""
        return "", ""

    def timeline_place(self, value: Attributes) -> TimelinePlace | None:
        """Return where an item is on a timeline; ``None`` where it is nowhere."""
        return None

    def untouched(self, live: LiveTarget, touched: Collection[Thing]) -> Iterator[ShownItem]:
        """Yield the live items on a timeline that no request touches."""
        for key, value in part_of(self, live).items():
            place = self.timeline_place(mapping(value))
            if place is not None and (self.name, key) not in touched:
                yield ShownItem(
                    f"{self.prefix}{key}", place.lane, place.start, place.duration, place.title
                )

    def timeline(self, change: Change, target: Target, live: Live) -> Iterator[TimelineItem]:
        """Yield the item before and after."""
        before = mapping(change.before)
        after = mapping(change.after)
        now = {**before, **after} if change.after is not None else {}
        yield TimelineItem(
            change.action, change.key, self.timeline_place(before), self.timeline_place(now)
        )


def by_key(items: Sequence[tuple[str, Item]]) -> Part:
    """Return items by their keys; those that share a key are twins."""
    groups: dict[str, list[Item]] = {}
    for key, value in items:
        groups.setdefault(key, []).append(value)
    values: dict[str, Json] = {}
    for key, same in groups.items():
        is_plain = len(same) == 1 and UNREAD not in same[0]
        values[key] = same[0] if is_plain else {TWINS: list(same)}
    return values


def unread_items(asset: Asset, aspect: AspectName) -> list[tuple[str, Item]]:
    """Return the items of an answer that lack a number, each with its key: they are in the list, and stay as it is."""
    items: list[tuple[str, Item]] = []
    for item in asset.unread_items:
        if item.aspect == aspect:
            items.append((item.key, {**item.shown, UNREAD: str(item.number)}))
    return items


def unread_of(twins: Sequence[Json]) -> str:
    """Return which number of live items of one key cannot be read; empty if all can."""
    for twin in twins:
        unread = mapping(twin).get(UNREAD)
        if unread:
            return str(unread)
    return ""


def each_of(value: Any) -> list[Item]:
    """Return the items of one key: one, or twins."""
    twins = mapping(value).get(TWINS)
    if not isinstance(twins, list):
        return [dict(mapping(value))]
    return [dict(mapping(twin)) for twin in twins]
