"""What the ledger remembers of a target while it is applied, so that a run may be killed at any time.

- Values that the server does not report are forgotten before they are written, and kept again once verified.
- How the run left what it wrote is kept once verified, so that the next plan finds what others change.
- A handler is pending from the first request of its target that may change something until it is done. A handler that
  runs before a deletion is planned again together with the deletion.
- A request whose effect reading cannot show is in doubt from before it is sent until the server answers.

What must be known after a crash is written in the same transaction as the journal's record of the request.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from msgspec import structs

from msauto.applying.apply_context import ApplyContext, Call
from msauto.applying.verification import Verification, accepted_new, rename_of
from msauto.aspects import ASPECTS, NUMBERED, SHOWN_WHOLE, is_of_entry, snapshot_of
from msauto.aspects.aspect import Operation
from msauto.aspects.comparison import mapping
from msauto.aspects.downloads import fetched_file
from msauto.aspects.plan_builder import BETWEEN, DOUBT, LEFT, MADE, PENDING_PREFIX, WHOLE
from msauto.model.identity import ClipIdentity
from msauto.model.plan import Request, Target, TargetId, is_one_entry
from msauto.model.ports import LiveTarget
from msauto.model.result import RequestResult, format_time
from msauto.model.snapshot import (
    ASSET,
    EVERY,
    NEW,
    TITLE,
    Effect,
    Json,
    Thing,
    part_digest,
    thing_of,
)

Items = dict[str, Json]


class TargetMemory:
    """Writes what is remembered of one target: of an asset, to all that is surely remembered of its clip."""

    def __init__(self, context: ApplyContext, target: Target) -> None:
        self._context = context
        self._target = target
        self._rename_index = rename_of(target)
        self._entry: TargetId | None = None  # as it was kept, once it is looked for
        self._other_entries: list[TargetId] = []  # of its clip, as they were kept
        self._kept_items: Items = {}
        aspects = {effect.aspect for effects in target.effects for effect in effects}
        self._runs_something = not _OPERATIONS.isdisjoint(aspects)
        self._handlers: Sequence[_PendingHandler] = ()
        if self._runs_something:
            self._handlers = tuple(_pending_handlers(target, context.run))
        self._last_made: Mapping[Thing, int] = {}
        if not NUMBERED.isdisjoint(aspects):
            self._last_made = _last_made(target)
        self._journalled_index: int | None = None
        self._items_before: Mapping[str, Json] | None = None  # remembered before the first write
        self._downloads: dict[int, str] = {}
        self._verified: list[Call] = []
        self._awaited: Mapping[Thing, Json] | None = None  # nothing was read after the requests

    def keep(self, items: Items) -> None:
        """Remember items with the next commit; ``None`` forgets one."""
        if items:
            self._context.commits.note(partial(self._remember, items))

    def _remember(self, items: Items) -> None:
        """Remember items of the entry; of other entries of the clip, forget what is not of one entry alone."""
        self._context.memory.remember(self._kept_entry(), items)
        if not self._other_entries:
            return
        shared: Items = {item: None for item in items if not is_of_entry(item)}
        if shared:
            for entry in self._other_entries:
                self._context.memory.remember(entry, shared)

    def _kept_entry(self) -> TargetId:
        """Return the entry of the target as it was kept, found by the ``link_id``, else by the title."""
        if self._entry is None:
            target = self._entry = self._target.id
            for record in self._context.memory.records(target):
                if record.answer != "same":
                    continue
                self._kept_items |= record.items
                if is_one_entry(record.target, target):
                    self._entry = record.target
                self._other_entries.append(record.target)
            if self._entry in self._other_entries:
                self._other_entries.remove(self._entry)
        return self._entry

    def before_request(self, index: int, *, first: bool) -> list[Call]:
        """Return the calls to make durable before a request is sent; ``first``: nothing was sent of the target."""
        self._journalled_index = index
        items: Items = {}
        if index == 0:
            for handler in self._handlers:
                if not handler.before:
                    items[handler.item] = handler.pending
        if self._last_made:
            items |= self._items_between(index)
        if self._runs_something and self._target.requests[index].dest is None:
            items |= self._in_doubt(index)
        calls: list[Call] = []
        if first:
            calls.append(self._forget_overwritten)
        calls.append(partial(self._forget_left, index))
        if items:
            calls.append(partial(self._remember, items))
        return calls

    def _forget_overwritten(self) -> None:
        """Forget the values that the target's requests overwrite: after a crash, only reading shows them.

        The key :data:`EVERY` stands for a value of every asset of the database, which a request may write.
        """
        memory, target = self._context.memory, self._target
        names: Items = {}
        of_every_asset: list[str] = []
        for request in target.requests:
            for effect in _values_written(request):
                if effect.key == EVERY:
                    of_every_asset.append(effect.aspect)
                else:
                    names[f"{effect.aspect}:{effect.key}"] = None
        if names:
            self._remember(names)
        for aspect in of_every_asset:
            for prefix in ("", LEFT):
                memory.forget_assets(target.server, target.database, f"{prefix}{aspect}:")

    def _names_left(self, index: int) -> list[str]:
        effects = _values_written(self._target.requests[index])
        return [f"{LEFT}{effect.aspect}:{effect.key}" for effect in effects]

    def _forget_left(self, index: int) -> None:
        """Forget how a run left what a request writes; it is remembered again if the request is not done."""
        if self._items_before is None:
            self._kept_entry()  # finds what is kept
            self._items_before = self._kept_items
        if self._items_before:
            names = self._names_left(index)
            if self._items_before.keys() & names:
                self._remember(dict.fromkeys(names))

    def downloaded(self, index: int, sha256: str) -> None:
        """Remember the content of a file that was fetched: it may be replaced as long as it is so."""
        self._downloads[index] = sha256
        dest = self._target.requests[index].dest
        assert dest is not None
        file: Items = {"sha256": sha256}
        self._context.commits.note(partial(self._context.memory.remember, fetched_file(dest), file))

    def request_settled(self, index: int, results: Sequence[RequestResult]) -> None:
        """Remember what follows from a settled request; ``results`` are those up to it."""
        result = results[index]
        if result.outcome == "done":
            if self._runs_something:
                self.keep(self._items_if_done(index))
            if index == self._rename_index:
                target = self._target
                keep = partial(self._keep_clip, target.title_after, target.clip, {})
                self._context.commits.note(keep)
        elif result.outcome == "failed":
            self.keep(self._items_if_not_done(index, results))
        else:
            self.keep(self._left_before(index, results))
            if result.status is not None:
                self.keep(self._in_doubt(index, {"status": result.status}))

    def verified(self, live: LiveTarget, verification: Verification) -> None:
        """Note what the last read of the target showed.

        What differs is not remembered. The rest is: else a value that is not reported would be written in every run, as
        long as another one of its target differs. A deleted asset has none.
        """
        self._verified, self._awaited = [], verification.awaited
        for difference in verification.differences:
            if difference.thing in (ASSET, TITLE):
                return
        is_asset = self._target.kind == "asset"
        if is_asset and live.asset is None and not verification.differences:
            self._verified.append(self._forget_clip)
            return
        items: Items = {**verification.remembered, **self._items_left(live, verification)}
        if items:
            self._verified.append(partial(self._remember, items))
        if live.asset is not None:
            title = live.asset.title or self._target.name
            keep = partial(self._keep_clip, title, ClipIdentity.of(live.asset), self._seen(live))
            self._verified.append(keep)

    def _forget_clip(self) -> None:
        for entry in (self._kept_entry(), *self._other_entries):
            self._context.memory.forget_clip(entry)

    def _seen(self, live: LiveTarget) -> Mapping[str, str]:
        """Return digests of what the run leaves of what others edit, unless it holds a secret."""
        secrets = self._context.secrets
        seen: dict[str, str] = {}
        for name, part in snapshot_of(live, SHOWN_WHOLE).items():
            if not (secrets.texts and secrets.occurs_in(str(part))):
                seen[name] = part_digest(part)
        return seen

    def _keep_clip(self, title: str, clip: ClipIdentity, seen: Mapping[str, str]) -> None:
        """Keep what the clip is now, and what the run leaves of it."""
        now = structs.replace(self._target.id, name=title, clip=clip)
        self._context.memory.keep_clip(self._kept_entry(), now, self._context.run, seen)
        self._entry = now

    def another_clip(self, results: Sequence[RequestResult]) -> None:
        """Remember nothing of what may have reached another clip; what runs once may have run, or not."""
        self._verified, self._awaited = [], {}
        for index, result in enumerate(results):
            if result.outcome in {"done", "unverified"}:
                self.keep(self._in_doubt(index))

    def target_finished(self, results: Sequence[RequestResult]) -> None:
        """Remember what was verified, and what a journalled request left that was not sent after all."""
        self._context.commits.note(*self._verified)
        self.keep(self._doubts(results))
        index = self._journalled_index
        if index is not None and results[index].outcome == "not sent":
            self.keep(self._items_if_not_done(index, results))

    def _doubts(self, results: Sequence[RequestResult]) -> Items:
        """Return what accepted requests made and reading has not shown: the next plan looks for it."""
        awaited = self._awaited
        if awaited is None:
            awaited = accepted_new(self._target, results)
        items: Items = {}
        if not awaited:
            return items
        run, now = self._context.run, format_time(self._context.clock.now())
        for number, ((aspect, key), value) in enumerate(awaited.items()):
            doubt: Items = {"key": key, "run": run, "at": now, "value": value}
            items[f"{DOUBT}{aspect}:{run} {number}"] = doubt
        return items

    def _items_left(self, live: LiveTarget, verification: Verification) -> Items:
        """Return how the run left what it wrote, unless its key holds a secret; what it made itself is ours."""
        made: dict[tuple[str, Hashable], str] = {}
        items: Items = {}
        secrets = self._context.secrets
        for unwanted, kind in self._target.unwanted:
            is_whole_list = mapping(kind).keys() <= {"track"}
            if is_whole_list:
                items[f"{WHOLE}{unwanted}"] = self._context.run
        for name, left_as in verification.left.items():
            if not isinstance(left_as, list):
                continue
            if secrets.texts and secrets.occurs_in(str(left_as[0])):
                continue
            aspect, key = thing_of(name)
            live_key, value = left_as
            remembered = verification.remembered.get(f"{aspect}:{live_key}")
            if remembered and not isinstance(remembered, dict):
                continue  # reading does not show it
            left, ours = f"{LEFT}{aspect}:{live_key}", f"{MADE}{aspect}:{live_key}"
            if value is None:
                items[left] = items[ours] = None
                continue
            items[left] = [value, self._context.run]
            if key.startswith(NEW):
                items[ours] = True
                made[aspect, ASPECTS[aspect].place(value)] = str(live_key)
        if self._items_before:
            items = {**self._items_gone(live, self._items_before, made), **items}
        return items

    def _items_gone(
        self,
        live: LiveTarget,
        before: Mapping[str, Json],
        made: Mapping[tuple[str, Hashable], str],
    ) -> Items:
        """Return which of the items ``before`` to forget: a key that is gone may be given to an item of others.

        ``made`` are the keys of new items by aspect and place: what others deleted there was made again.
        """
        items: Items = {}
        for item, left_as in before.items():
            _, _, name = item.partition(":")
            aspect, _, key = name.partition(":")
            is_gone = False
            if item.startswith(MADE):
                part = snapshot_of(live, (aspect,)).get(aspect)
                is_gone = part is not None and key not in part
            elif made and item.startswith(LEFT) and isinstance(left_as, list):
                place = ASPECTS[aspect].place(left_as[0])
                is_gone = place is not None and made.get((aspect, place), key) != key
            if is_gone:
                items[item] = None
        return items

    # Items at each step ----------------------------------------------------------------------------------------

    def _items_if_done(self, index: int) -> Items:
        request = self._target.requests[index]
        items: Items = {}
        for handler in self._handlers:
            if handler.request == index:
                items[handler.item] = None
        for handler in self._handlers:  # what is called again later is still pending
            if handler.request > index and handler.item in items:
                items[handler.item] = handler.pending
        items |= run_items(request)
        if index in self._downloads:
            items |= download_items(self._target, index, self._downloads[index])
        return items

    def _items_if_not_done(self, index: int, results: Sequence[RequestResult]) -> Items:
        """Return what to remember if a request was not done; handlers are pending if the target may have changed."""
        may_have_changed = False
        for result in results[:index]:
            if result.outcome in {"done", "unverified"}:
                may_have_changed = True
        items: Items = dict.fromkeys(_items_run(self._target.requests[index], "once"))
        items |= dict.fromkeys(self._items_between(index))
        items |= self._left_before(index, results)
        for handler in self._handlers:
            if handler.before:  # it is called again with its deletion
                if handler.request == index:
                    items[handler.item] = None
            elif handler.request >= index:
                is_pending = may_have_changed or handler.since
                items[handler.item] = handler.pending if is_pending else None
        return items

    def _left_before(self, index: int, results: Sequence[RequestResult]) -> Items:
        """Return how a run had left what a request writes, unless another request may have written it before."""
        left = self._items_before
        if left is None:
            left = self._left_as_planned(index)
        names = dict.fromkeys(self._names_left(index))
        for number, result in enumerate(results[:index]):
            if result.outcome != "not sent":
                for name in self._names_left(number):
                    names.pop(name, None)
        return {name: left[name] for name in names if name in left}

    def _left_as_planned(self, index: int) -> Items:
        """Return how a run had left what others changed, and a request overwrites: a run that died has forgotten it."""
        request = self._target.requests[index]
        changes = [self._target.changes[number] for number in request.changes]
        items: Items = {}
        for effect in request.effects:
            for change in changes:
                is_of_effect = len(changes) == 1 or change.key == effect.key
                if change.outside is None or not is_of_effect:
                    continue
                left = change.outside.left
                if isinstance(left, dict):
                    left = {**mapping(effect.before), **left}
                items[f"{LEFT}{effect.aspect}:{effect.key}"] = [left, change.outside.run]
        return items

    def _items_between(self, index: int) -> Items:
        """Return the items that a request deletes and a later one creates again, as they should be then.

        If the run ends between the two, the item is gone, with everything that no playbook declares.
        """
        items: Items = {}
        request = self._target.requests[index]
        gone: set[Thing] = set()
        for effect in request.effects:
            if effect.after is None and self._last_made.get(effect.thing, -1) > index:
                gone.add(effect.thing)
        for number in request.changes:
            change = self._target.changes[number]
            if gone and change.thing in gone:
                items[f"{BETWEEN}{change.key}"] = change.after
        return items

    def _in_doubt(self, index: int, answer: Mapping[str, Json] | None = None) -> Items:
        """Return what to remember of a command or batch that may have run; ``answer``: the server's status."""
        answer = answer or {}
        items: Items = {}
        for item in _items_run(self._target.requests[index], "once"):
            items[item] = {"unverified": self._context.run, **answer}
        for handler in self._handlers:
            if handler.request == index:
                doubt: dict[str, Json] = {**handler.pending, "unknown": True}
                if handler.before:
                    doubt["before"] = True
                items[handler.item] = {**doubt, **answer}
        return items


class _PendingHandler(NamedTuple):
    """A request that is pending once its target has changed: of a handler, or of a command with ``run: changed``."""

    request: int
    item: str
    since: str
    before: bool
    pending: Items


def _pending_handlers(target: Target, run: str) -> Iterator[_PendingHandler]:
    for index, request in enumerate(target.requests):
        is_repeated = bool(_items_run(request, "changed"))
        for number in request.changes:
            change = target.changes[number]
            pending: Items = {"run": change.pending or run}
            if change.handler:
                item, is_before = f"{PENDING_PREFIX}{change.handler}", change.before is True
                yield _PendingHandler(index, item, change.pending, is_before, pending)
            elif is_repeated:
                yield _PendingHandler(
                    index, f"pending:command:{change.key}", change.pending, False, pending
                )


def _last_made(target: Target) -> dict[Thing, int]:
    """Return the last request that makes each numbered item."""
    last_made: dict[Thing, int] = {}
    for index, request in enumerate(target.requests):
        for effect in request.effects:
            if effect.after is not None and effect.aspect in NUMBERED:
                last_made[effect.aspect, effect.key] = index
    return last_made


def run_items(request: Request) -> Items:
    """Return what to remember of what ran: what runs once must not be sent again, and of the rest, that it did run."""
    return dict.fromkeys(_items_run(request, "once", "always"), True)


def download_items(target: Target, index: int, sha256: str) -> Items:
    """Return what to remember of a download: the source of the file, and its content."""
    items: Items = {}
    for effect in target.requests[index].effects:
        items[f"{effect.aspect}:{effect.key}"] = {**mapping(effect.after), "sha256": sha256}
    return items


_OPERATIONS: Final = frozenset(
    name for name, aspect in ASPECTS.items() if isinstance(aspect, Operation)
)
"""The aspects of what is run."""


def _values_written(request: Request) -> list[Effect]:
    """Return what a request writes, and does not run."""
    return [effect for effect in request.effects if effect.aspect not in _OPERATIONS]


def _items_run(request: Request, *often: str) -> list[str]:
    """Return the items of what a request runs so often: ``once``, ``always``, ``changed``."""
    items = []
    for effect in request.effects:
        if effect.aspect in _OPERATIONS and effect.after in often:
            items.append(f"{effect.aspect}:{effect.key}")
    return items
