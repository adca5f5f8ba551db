"""What the ledger remembers of a target while it is applied, so that a run may be killed at any time.

- Values that the server does not report are forgotten before they are written, and kept again once verified.
- A handler is pending from the first request of its target that may change something until it is done. A handler that
  runs before a deletion is planned again together with the deletion.
- A request whose effect reading cannot show is in doubt from before it is sent until the server answers.

What must be known after a crash is written in the same transaction as the journal's record of the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec import structs

from msauto.applying.apply_context import ApplyContext
from msauto.applying.group_commit import Call
from msauto.aspects import ASPECTS
from msauto.diffing.comparison import mapping
from msauto.diffing.memory_items import BETWEEN, PENDING_PREFIX
from msauto.model.plan import Json, Target, TargetId
from msauto.model.ports import LiveTarget
from msauto.model.result import Difference, RequestResult
from msauto.verification.memory_updates import expectation_key, memories
from msauto.verification.read_back import rename_of

Items = dict[str, Json]


class TargetMemory:
    """Writes what is remembered of one target, under its name after the run, and before it if it is renamed."""

    def __init__(self, context: ApplyContext, target: Target) -> None:
        self._context = context
        self._target = target
        self._ids: tuple[TargetId, ...] = (target.id,)
        if rename_of(target) is not None and not target.address.namespace:
            self._ids += (structs.replace(target.id, name=target.address.name),)
        self._journalled: int | None = None
        self._downloads: dict[int, str] = {}
        self._verified: list[tuple[TargetId, Items]] = []

    def recall(self) -> Mapping[str, Json]:
        """Return what is remembered of the target."""
        return self._context.memory.recall(self._ids[0])

    def keep(self, items: Items) -> None:
        """Remember items with the next commit; ``None`` forgets one."""
        for target in self._ids if items else ():
            self._context.commits.note(partial(self._context.memory.remember, target, items))

    def before_request(self, index: int, *, first: bool) -> list[Call]:
        """Return the calls to make durable before a request is sent; ``first``: nothing was sent of the target."""
        self._journalled = index
        items = items_before_request(self._target, index, self._context.run)
        calls: list[Call] = [self._forget_overwritten] if first else []
        return [*calls, partial(self._context.memory.remember, self._ids[0], items)] if items else calls

    def _forget_overwritten(self) -> None:
        """Forget the values that the target's requests overwrite: after a crash, only reading shows them."""
        expects = [each for request in self._target.requests for each in request.expect]
        kinds = ((ASPECTS[each.aspect].value_items, each.key) for each in expects)
        names = frozenset(item for items, key in kinds if items is not None for item in items(key))
        memory = self._context.memory
        for target in self._ids:
            known = memory.recall(target)
            gone = {item for item in known if item in names or f"{item.partition(':')[0]}:*" in names}
            if gone:
                memory.remember(target, dict.fromkeys(gone))
        if any(each.aspect == "xmp_batch" for each in expects):  # it may write to any clip of the database
            memory.forget_assets(self._target.server, self._target.database, "xmp:")

    def downloaded(self, index: int, sha256: str) -> None:
        """Note the content of a download; it is remembered once its request is settled."""
        self._downloads[index] = sha256

    def request_settled(self, index: int, results: Sequence[RequestResult]) -> None:
        """Remember what follows from a settled request; ``results`` are those up to it."""
        items = items_after_request(self._target, index, results, self._context.run)
        if results[index].outcome == "done" and index in self._downloads:
            items |= download_items(self._target, index, self._downloads[index])
        self.keep(items)

    def verified(self, done: Target, live: LiveTarget, differences: Sequence[Difference]) -> None:
        """Note what the last read of the target showed; ``done`` is the target with its finished requests alone."""
        self._verified = verified_items(done, live, differences, self._ids, self._context.memory.recall)

    def target_finished(self, results: Sequence[RequestResult]) -> None:
        """Remember what was verified, and what a journalled request left that was not sent after all."""
        for target, items in self._verified:
            self._context.commits.note(partial(self._context.memory.remember, target, items))
        index = self._journalled
        if index is not None and results[index].outcome == "not sent":
            self.keep(_items_if_not_done(self._target, index, self._context.run, touched=index > 0))


# Items at each step, pure --------------------------------------------------------------------------------------


def items_before_request(target: Target, index: int, run: str) -> Items:
    """Return what to remember before a request is sent."""
    items: Items = {}
    if index == 0:
        items |= {each.item: each.pending(run) for each in _handlers(target) if not each.before}
    items |= _segments_between(target, index)
    if target.requests[index].dest is None:
        items |= _in_doubt(target, index, run)
    return items


def items_after_request(target: Target, index: int, results: Sequence[RequestResult], run: str) -> Items:
    """Return what to remember once a request is settled; ``results`` are those up to it."""
    outcome, status = results[index].outcome, results[index].status
    if outcome == "done":
        later = {each.item: each.pending(run) for each in _handlers(target) if each.index > index}
        return {each.item: later.get(each.item) for each in _handlers(target, index)} | _unseen_items(target, index)
    if outcome == "unverified":
        return {} if status is None else _in_doubt(target, index, run, status)
    touched = any(each.outcome in {"done", "unverified"} for each in results[:index])
    return _items_if_not_done(target, index, run, touched=touched)


def _items_if_not_done(target: Target, index: int, run: str, *, touched: bool) -> Items:
    """Return what to remember if a request was not done; handlers are pending only if the target was ``touched``."""
    items: Items = dict.fromkeys([*_once_items(target, index), *_segments_between(target, index)])
    for each in _handlers(target):
        if each.before:  # it is called again with its deletion
            items |= {each.item: None} if each.index == index else {}
        elif each.index >= index:
            items[each.item] = each.pending(run) if touched or each.since else None
    return items


def download_items(target: Target, index: int, sha256: str) -> Items:
    """Return what to remember of a download: the source of the file, and its content."""
    return {
        f"{each.aspect}:{each.key}": {**mapping(each.desired), "sha256": sha256}
        for each in target.requests[index].expect
    }


def verified_items(
    done: Target,
    live: LiveTarget,
    differences: Sequence[Difference],
    ids: Sequence[TargetId],
    recall: Callable[[TargetId], Mapping[str, Json]],
) -> list[tuple[TargetId, Items]]:
    """Return what to remember after the target was read again, and under which name.

    What differs is not remembered. The rest is: else a value that is not reported would be written in every run, as
    long as another one of its target differs. A renamed asset takes its items along, if reading shows the new title.
    A deleted asset has none.
    """
    doubtful = frozenset(map(expectation_key, differences))
    if any(aspect in {"title", "asset"} for aspect, _ in doubtful):
        return []
    after, *before = ids
    if done.kind == "asset" and live.asset is None and not doubtful:
        kept = [(name, dict.fromkeys(recall(name))) for name in ids]
        return [(name, items) for name, items in kept if items]
    items: Items = {}
    moved: list[tuple[TargetId, Items]] = []
    for old in before if rename_of(done) is not None else ():
        carried = recall(old)
        items |= carried
        moved += [(old, dict.fromkeys(carried))] if carried else []
    items |= memories(done, live, doubtful)
    return [*moved, (after, items)] if items else moved


@dataclass(frozen=True, slots=True)
class _PendingHandler:
    """A request that is pending once its target has changed: of a handler, or of a command with ``run: changed``."""

    index: int
    item: str
    since: str
    before: bool

    def pending(self, run: str) -> Json:
        return {"run": self.since or run}

    def in_doubt(self, run: str, answer: Mapping[str, Json]) -> Json:
        return {"run": self.since or run, "unknown": True, **({"before": True} if self.before else {}), **answer}


def _handlers(target: Target, index: int | None = None) -> Iterator[_PendingHandler]:
    """Yield the pending handlers of all requests, or of one."""
    for number in range(len(target.requests)) if index is None else (index,):
        request = target.requests[number]
        for change in (target.changes[each] for each in request.changes):
            if change.handler:
                item = f"{PENDING_PREFIX}{change.handler}"
                yield _PendingHandler(number, item, change.pending, change.before is True)
            elif any(each.aspect == "command" and each.desired == "changed" for each in request.expect):
                yield _PendingHandler(number, f"pending:command:{change.key}", change.pending, before=False)


def _in_doubt(target: Target, index: int, run: str, status: int | None = None) -> Items:
    """Return what to remember of a command or batch that may have run; ``status``: the server's answer."""
    answer: Items = {} if status is None else {"status": status}
    items: Items = {item: {"unverified": run, **answer} for item in _once_items(target, index)}
    return items | {each.item: each.in_doubt(run, answer) for each in _handlers(target, index)}


def _once_items(target: Target, index: int) -> list[str]:
    """Return the items of commands and batches that are sent only once."""
    expects = target.requests[index].expect
    once = (each for each in expects if ASPECTS[each.aspect].runs_once and each.desired == "once")
    return [f"{each.aspect}:{each.key}" for each in once]


def _unseen_items(target: Target, index: int) -> Items:
    """Return what to remember as soon as a command or batch is done: that it must not be sent again."""
    expects = [each for each in target.requests[index].expect if ASPECTS[each.aspect].runs_once]
    return dict(item for each in expects for item in ASPECTS[each.aspect].remember(each, LiveTarget()))


def _segments_between(target: Target, index: int) -> Items:
    """Return the segments that a request deletes and a later one creates again, as they should be then.

    If the run ends between the two, the segment is gone, with everything that no playbook declares.
    """
    request = target.requests[index]
    deleted = {each.key for each in request.expect if each.aspect == "segment" and each.desired is None}
    changes = (target.changes[each] for each in request.changes)
    recreated = (each for each in changes if each.action == "change" and each.aspect == "segment")
    return {f"{BETWEEN}{each.key}": each.after for each in recreated if each.key in deleted}
