"""What earlier runs left of a target, and which handlers run on it.

Handlers run on a target if their tasks changed it, or if they are pending from an earlier run. A change belongs to the
task that declares it. If two tasks declare the same change, it belongs to the first, as in Ansible. If several tasks
declare parts of one change, it belongs to all of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from msauto.aspects import is_of_entry
from msauto.aspects.comparison import mapping
from msauto.aspects.plan_builder import (
    DOUBT,
    LEFT,
    PENDING_PREFIX,
    SHIFTED,
    WHOLE,
    answer_told,
    certain,
)
from msauto.model.desired import Desired, DesiredAsset, Handler
from msauto.model.identity import compare_clips
from msauto.model.plan import Change, Settlement, TargetId, is_one_entry
from msauto.model.ports import Memory, Remembered
from msauto.model.snapshot import Json

IsGone = Callable[[TargetId], Awaitable[bool]]


class RecalledItems(Struct):
    """The items by ``aspect:key``, with the target of each as the ledger knows it; and the settlements of items.

    ``forget`` and ``overdue`` are those of :func:`recall`. ``target`` is the one of new items. ``run`` is the last
    that is known to have written to the target, and ``seen`` has digests of what it left. ``title`` is the one that its
    entry had then, ``titles`` are those of all of its entries, by ``link_id``. ``is_crowded``: too many clips report
    the same values to compare them.
    """

    target: TargetId
    forget: bool
    overdue: str
    items: dict[str, Json] = {}
    kept: dict[str, TargetId] = {}
    settlements: list[Settlement] = []
    run: str = ""
    seen: Mapping[str, str] = {}
    title: str = ""
    titles: dict[int | None, str] = {}
    is_crowded: bool = False
    is_known_clip: bool = False

    def take(self, items: Mapping[str, Json], kept: TargetId, owner: TargetId) -> None:
        """Take items that ``kept`` holds, or settle them; they are ``owner``'s then, but for what is pending."""
        for item, value in items.items():
            is_pending = item.startswith("pending:")
            is_overdue = item.startswith(DOUBT) and str(mapping(value).get("at")) < self.overdue
            if is_overdue or (self.forget and is_pending):
                self.settlements.append(Settlement(kept, item, None))
                continue
            holder = kept if is_pending else owner
            if self.forget and "unverified" in mapping(value):  # what was sent has run
                value = True
                self.settlements.append(Settlement(holder, item, value))
            self.items[item] = value
            self.kept[item] = holder


async def recall(
    memory: Memory,
    target: TargetId,
    titles: Iterable[str] = (),
    is_gone: IsGone | None = None,
    *,
    forget: bool,
    overdue: str = "",
) -> RecalledItems:
    """Return what is remembered of a target; of an asset, its title or one of ``titles`` may have been another entry's.

    ``is_gone``: the title of what is remembered no longer leads to what may be its clip. ``forget`` settles what is
    pending or in doubt: pending items are dropped, and what was sent has run. What was made before ``overdue`` would
    show by now.
    """
    recalled = RecalledItems(target, forget, overdue)
    in_doubt: dict[str, Json] = {}
    for record in memory.records(target, titles):
        kept = record.target
        if record.is_crowd:
            recalled.is_crowded = True
            continue
        is_sure = record.answer == "same"
        is_its_entry = is_sure and is_one_entry(kept, target)
        if is_its_entry:
            recalled.target = kept
        if is_sure and kept.clip.link_id is not None:
            recalled.titles[kept.clip.link_id] = kept.name
        items = record.items
        if not is_its_entry and is_gone is not None:
            items = _counting_items(record, is_of_others=not await is_gone(kept))
            if not is_sure:
                in_doubt |= items
        owner = kept if is_sure else target
        recalled.take(items, kept, owner)
        may_be_its_entry = bool(items) and not is_sure
        if record.run and (is_its_entry or may_be_its_entry):
            recalled.run = record.run
            recalled.seen = record.seen
            recalled.title = kept.name
        recalled.is_known_clip = recalled.is_known_clip or _is_known(kept, target)
    for item, value in in_doubt.items():  # of what a run wrote to, its own memory alone is asked
        if recalled.items.get(item) is value:
            recalled.settlements.append(Settlement(target, item, value))
    return recalled


def not_concerned(items: Mapping[str, Json]) -> Iterator[str]:
    """Yield what is pending of a clip that no task of a run concerns, under the title that it has now."""
    yield from due_handlers((), (), None, (), items).warnings
    for item, sent in items.items():
        if item.startswith("pending:") and not item.startswith(PENDING_PREFIX):
            _, kind, name, *_ = item.split(":")
            what = f"the new {name}" if item.startswith(DOUBT) else f"{kind} {name}"
            yield (
                f"{what} is pending since run {mapping(sent).get('run')}, and no task of this run "
                "concerns its clip\nrun the playbook that names the clip, or drop it with --forget-pending"
            )


def _is_known(kept: TargetId, target: TargetId) -> bool:
    """Return whether two sightings are surely of one clip: also an entry of one ``link_id`` and creation time."""
    comparison = compare_clips(kept.clip, target.clip)
    link_id = kept.clip.link_id
    is_one_entry_then = link_id is not None and link_id == target.clip.link_id
    is_kept_by_both = is_one_entry_then and "create_time" in comparison.equal
    return comparison.answer == "same" or is_kept_by_both


def _counting_items(record: Remembered, *, is_of_others: bool) -> Mapping[str, Json]:
    """Return what counts of another entry of the clip, or of what may be the clip.

    ``is_of_others``: its title leads to another clip, or to another entry of this one.
    """
    if record.answer != "same":
        return {} if is_of_others else _in_doubt_of(record)
    if not is_of_others:
        return record.items
    # What is of that entry alone is not of this one.
    return {item: value for item, value in record.items.items() if not is_of_entry(item)}


def _in_doubt_of(record: Remembered) -> Mapping[str, Json]:
    """Return what counts of a clip that may be the target: what ran may have run on it, and no value is known."""
    doubt = {"clip": record.target.name}
    items: dict[str, Json] = {}
    for item, value in record.items.items():
        if item.startswith((LEFT, SHIFTED, WHOLE, DOUBT)):
            items[item] = value
        elif item.startswith("pending:"):
            items[item] = {**mapping(value), **doubt, "unknown": True}
        elif item.startswith("command:"):
            items[item] = {"unverified": record.run, **mapping(value), **doubt}
    return items


class DueHandlers(Struct, frozen=True):
    """The handlers to run, each with the run that left it pending, if one did; and warnings about the others.

    ``in_doubt``: why a deletion must wait.
    """

    calls: Sequence[tuple[Handler, str]] = ()
    warnings: Sequence[str] = ()
    in_doubt: Sequence[str] = ()


def due_handlers(
    known: Sequence[Handler],
    declared: Sequence[tuple[Sequence[Handler], Desired]],
    merged: DesiredAsset | None,
    changes: Sequence[Change],
    memory: Mapping[str, Json],
) -> DueHandlers:
    """Return the handlers that run on a target, each once, in the order of the plays.

    ``known`` are all that its tasks name, ``declared`` what the tasks declare, each with its handlers. If the answer to
    a handler was lost, only a certain change sends it again: the handler may have run already. A change is not certain
    if the server does not report the value. A handler that runs before a deletion, and was sent by an earlier run, may
    have run: sending it again may run it twice, and deleting without it may lose data. So the user must decide.
    """
    pending: dict[str, Mapping[str, Json]] = {}
    for item, value in memory.items():
        if item.startswith(PENDING_PREFIX):
            pending[item.removeprefix(PENDING_PREFIX)] = mapping(value)
    if not known and not pending:
        return DueHandlers()
    called = _notified(declared, merged, changes)
    waits = _why_deletion_waits(merged, called, pending)
    if waits:
        return DueHandlers(in_doubt=waits)
    calls = {handler.order: (handler, "") for handler in called}
    notified_for_sure = {handler.name for handler in _notified(declared, merged, certain(changes))}
    warnings: list[str] = []
    for name, sent in pending.items():
        of_name = {handler.order: handler for handler in known if handler.name == name}
        is_lost = bool(sent.get("unknown"))
        if is_lost and name in notified_for_sure:
            warnings.append(_in_doubt(name, sent, "a change of this run notifies it again"))
        elif is_lost:
            why = _NOT_AGAIN if of_name.keys().isdisjoint(calls) else _HELD
            if len(of_name) > 1:
                why += f"\n{_OTHERS.format(len(of_name))}"
            warnings.append(_in_doubt(name, sent, why))
            for order in of_name:
                calls.pop(order, None)
        elif of_name:
            for order, handler in of_name.items():
                calls[order] = handler, str(sent.get("run", ""))
        else:
            warnings.append(_not_notified(name, sent))
    return DueHandlers([calls[order] for order in sorted(calls)], warnings)


def _why_deletion_waits(
    merged: DesiredAsset | None,
    called: Iterable[Handler],
    pending: Mapping[str, Mapping[str, Json]],
) -> list[str]:
    """Return which handlers that run before a deletion may have run already."""
    if merged is None or merged.present:
        return []
    waits: dict[str, str] = {}
    for handler in called:
        sent = pending.get(handler.name, {})
        if sent.get("before"):
            waits[handler.name] = _in_doubt(handler.name, sent, _DELETION_WAITS)
    return list(waits.values())


def _notified(
    declared: Iterable[tuple[Sequence[Handler], Desired]],
    merged: DesiredAsset | None,
    changes: Sequence[Change],
) -> list[Handler]:
    """Return the handlers that the changes notify, each once, in the order of the plays."""
    places = {change.source.place for change in changes}
    if merged is not None:
        for sourced in merged.sourced():
            if sourced.source.place in places:
                places.update([source.place for source in sourced.also])
    by_order: dict[tuple[int, ...], Handler] = {}
    for handlers, desired in declared:
        if not handlers:
            continue
        declared_at = (
            desired.places() if isinstance(desired, DesiredAsset) else [desired.source.place]
        )
        if not places.isdisjoint(declared_at):
            by_order |= {handler.order: handler for handler in handlers}
    return [by_order[order] for order in sorted(by_order)]


_NOT_AGAIN = (
    "it is not sent again automatically\ncheck the server; --forget-pending ends this warning"
)
_HELD = (
    "it is not sent again, because the changed value is not reported and may be set already\n"
    "check the server; to run it, use a separate task; --forget-pending ends this warning"
)
_OTHERS = "of its {} calls for this target, those after the one in question were not sent"
_DELETION_WAITS = (
    "it runs before the deletion: neither is sent\n"
    "check the server; --forget-pending sends the handler again, and then deletes"
)


def _not_notified(name: str, sent: Mapping[str, Json]) -> str:
    return (
        f"the handler {name!r} is pending since run {sent.get('run', '')}, and no task of this run notifies it"
        "\nrun the playbook that defines it, or drop it with --forget-pending"
    )


def _in_doubt(name: str, sent: Mapping[str, Json], then: str) -> str:
    sent_by = f"was sent by run {sent.get('run')} {answer_told(sent)}"
    if "clip" in sent:
        sent_by = f"is pending since run {sent.get('run')} {answer_told(sent)}"
    return f"the handler {name!r} {sent_by}: it may have run, and {then}"
