"""Which memories a write makes doubtful, and which must be kept at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from msauto.aspects import ASPECTS
from msauto.diffing.comparison import mapping
from msauto.diffing.memory_items import BETWEEN, PENDING_PREFIX
from msauto.model.plan import Change, Json, Target, TargetId
from msauto.model.ports import LiveTarget
from msauto.model.result import Difference, RequestResult
from msauto.verification.memory_updates import expectation_key, memories
from msauto.verification.verifying import rename_of


def written(target: Target) -> frozenset[str]:
    """Return the names of the memories that the target's requests make doubtful; ``name:*`` is all of a kind."""
    expects = [each for request in target.requests for each in request.expect]
    kinds = ((ASPECTS[each.aspect].value_items, each.key) for each in expects)
    return frozenset(item for items, key in kinds if items is not None for item in items(key))


def loads_xmp(target: Target) -> bool:
    """Tell whether the target's requests load XMP fields into clips that nobody names: an XMP batch."""
    return any(each.aspect == "xmp_batch" for request in target.requests for each in request.expect)


def is_of(item: str, names: frozenset[str]) -> bool:
    """Tell whether a memory is among those that :func:`written` names."""
    return item in names or f"{item.partition(':')[0]}:*" in names


def once(target: Target, index: int) -> dict[str, Json]:
    """Return what to keep as soon as a request is done, proved or not: that a command is not to be sent again."""
    expects = [each for each in target.requests[index].expect if ASPECTS[each.aspect].runs_once]
    return dict(item for each in expects for item in ASPECTS[each.aspect].remember(each, LiveTarget()))


def proved(
    done: Target,
    live: LiveTarget,
    differences: Sequence[Difference],
    ids: Sequence[TargetId],
    recall: Callable[[TargetId], Mapping[str, Json]],
) -> list[tuple[TargetId, dict[str, Json]]]:
    """Return what to keep after a proof, and under which name; ``done`` is the target with the requests that were done.

    What differs is not kept; all else is: a value that is not reported and was taken would be written again in every
    run, as long as another of its target fails. A renamed asset takes its memories along, unless the proof shows no new
    name: whose memories these would be is not known then. A deleted asset has none.
    """
    doubtful = frozenset(map(expectation_key, differences))
    if any(aspect in {"title", "asset"} for aspect, _ in doubtful):
        return []
    after, *before = ids
    if done.kind == "asset" and live.asset is None and not doubtful:
        kept = [(name, dict.fromkeys(recall(name))) for name in ids]
        return [(name, items) for name, items in kept if items]
    items: dict[str, Json] = {}
    left: list[tuple[TargetId, dict[str, Json]]] = []
    for old in before if rename_of(done) is not None else ():
        carried = recall(old)
        items |= carried
        left += [(old, dict.fromkeys(carried))] if carried else []
    items |= memories(done, live, doubtful)
    return [*left, (after, items)] if items else left


# What a run leaves undone ---------------------------------------------------------------------------------------
#
# A handler is pending from the moment that the first request of its target may change something, until it is done; one
# that runs before a deletion is planned again together with it. What is sent and cannot be seen by reading is unverified
# from the moment before it is sent, until its answer is there. All of it is written in the same transaction as the
# journal's word that a request is about to leave: a run may die at any time.


def ahead(target: Target, index: int, run: str) -> dict[str, Json]:
    """Return what to keep before a request leaves."""
    items: dict[str, Json] = {}
    if index == 0:
        items |= {debt.item: debt.pending(run) for debt in _debts(target) if not debt.before}
    items |= _between(target, index)
    if target.requests[index].dest is None:
        items |= _in_doubt(target, index, run)
    return items


def _in_doubt(target: Target, index: int, run: str, more: Mapping[str, Json] = MappingProxyType({})) -> dict[str, Json]:
    """Return what to keep of a command or batch that may run, and of which reading shows nothing."""
    items: dict[str, Json] = {item: {"unverified": run, **more} for item in _once(target, index)}
    return items | {debt.item: debt.in_doubt(run, more) for debt in _debts(target, index)}


def settled(target: Target, index: int, results: Sequence[RequestResult], run: str) -> dict[str, Json]:
    """Return what to keep once it is known what came of a request; ``results`` are those before it, and its own."""
    outcome = results[index].outcome
    if outcome == "done":
        later = {debt.item: debt.pending(run) for debt in _debts(target) if debt.index > index}
        return {debt.item: later.get(debt.item) for debt in _debts(target, index)} | once(target, index)
    if outcome == "unverified":
        status = results[index].status
        return {} if status is None else _in_doubt(target, index, run, {"status": status})
    return undone(target, index, run, touched=any(each.outcome in {"done", "unverified"} for each in results[:index]))


def undone(target: Target, index: int, run: str, *, touched: bool) -> dict[str, Json]:
    """Return what to keep where a request was not done: handlers are pending only of a ``touched`` target."""
    items: dict[str, Json] = dict.fromkeys([*_once(target, index), *_between(target, index)])
    for debt in _debts(target):
        if debt.before:  # it is called again with its deletion
            items |= {debt.item: None} if debt.index == index else {}
        elif debt.index >= index:
            items[debt.item] = debt.pending(run) if touched or debt.since else None
    return items


def fetched(target: Target, index: int, sha256: str) -> dict[str, Json]:
    """Return what to keep of a download: what the file was made from, and its content."""
    return {
        f"{each.aspect}:{each.key}": {**mapping(each.desired), "sha256": sha256}
        for each in target.requests[index].expect
    }


@dataclass(frozen=True, slots=True)
class _PendingHandler:
    """A request that is pending once its target has changed: a handler's, or that of a command with ``run: changed``."""

    index: int
    item: str
    since: str
    before: bool

    def pending(self, run: str) -> dict[str, Json]:
        return {"run": self.since or run}

    def in_doubt(self, run: str, more: Mapping[str, Json]) -> dict[str, Json]:
        return {"run": self.since or run, "unknown": True, **({"before": True} if self.before else {}), **more}


def _debts(target: Target, index: int | None = None) -> Iterator[_PendingHandler]:
    for number in range(len(target.requests)) if index is None else (index,):
        request = target.requests[number]
        for change in (target.changes[each] for each in request.changes):
            if change.handler:
                yield _PendingHandler(
                    number, f"{PENDING_PREFIX}{change.handler}", change.pending, change.before is True
                )
            elif any(each.aspect == "command" and each.desired == "changed" for each in request.expect):
                yield _PendingHandler(number, f"pending:command:{change.key}", change.pending, before=False)


def _between(target: Target, index: int) -> dict[str, Json]:
    """Return the segments that a request deletes and a later one makes anew, as they are to be then.

    Should the run end between the two, or the second be swallowed, the segment is gone, and with it what no playbook
    names of it. The proof that it is there again lets it be forgotten.
    """
    request = target.requests[index]
    gone = {each.key for each in request.expect if each.aspect == "segment" and each.desired is None}
    changes = (target.changes[each] for each in request.changes)
    return {f"{BETWEEN}{each.key}": each.after for each in changes if _is_remade(each) and each.key in gone}


def _is_remade(change: Change) -> bool:
    return change.action == "change" and change.aspect == "segment"


def _once(target: Target, index: int) -> list[str]:
    return [
        f"{each.aspect}:{each.key}"
        for each in target.requests[index].expect
        if ASPECTS[each.aspect].runs_once and each.desired == "once"
    ]
