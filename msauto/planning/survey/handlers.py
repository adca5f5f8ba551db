"""Which handlers run on a target: those of the tasks that changed it, and those that an earlier run left undone.

A change is a task's if it was said there; of two tasks that say the same, the first one's, as in Ansible. All tasks
count that said more of one and the same thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from msauto.diffing.comparison import mapping
from msauto.diffing.memory_items import PENDING_PREFIX, answer_told
from msauto.errors import SourceLocation
from msauto.model.desired import Desired, DesiredAsset, Handler, Sourced
from msauto.model.plan import Change, Json


@dataclass(frozen=True, slots=True)
class HandlerCall:
    """A handler that is to run; ``pending`` names the run that left it undone."""

    handler: Handler
    pending: str = ""


def notified(
    asked: Iterable[tuple[tuple[Handler, ...], Desired]], united: DesiredAsset | None, changes: Sequence[Change]
) -> list[Handler]:
    """Return the handlers that the changes call, each once, in the order in which the plays define them."""
    places = {change.source.place for change in changes}
    for sourced in _said(united) if united else ():
        if sourced.source.place in places:
            places.update(source.place for source in sourced.also)
    called = (
        handler for handlers, desired in asked if handlers and places & set(_places(desired)) for handler in handlers
    )
    return in_order(called)


def in_order(handlers: Iterable[Handler]) -> list[Handler]:
    """Return handlers, each once, in the order in which the plays define them."""
    return sorted({each.order: each for each in handlers}.values(), key=lambda each: each.order)


def held_back(memory: Mapping[str, Json], called: Iterable[Handler]) -> list[str]:
    """Return why a deletion waits: a handler that runs before it was sent by an earlier run, and may have run.

    Sending it again may run it twice, and deleting without it may be a loss for good: a person decides.
    """
    found = ((each.name, mapping(memory.get(f"{PENDING_PREFIX}{each.name}"))) for each in called)
    return [_in_doubt(name, value, _DELETION_WAITS) for name, value in found if value.get("before")]


def pending_calls(
    memory: Mapping[str, Json], known: Iterable[Handler], called: Sequence[Handler], surely: Sequence[Handler]
) -> tuple[list[HandlerCall], list[str]]:
    """Return the handlers that are to run, and what to say of those of earlier runs that are not.

    ``known`` are all that the tasks name; ``called`` those that the changes call, ``surely`` those that a certain one
    does. Where the answer to a handler was lost, only a certain change calls it once more: a value that the server does
    not report may be written again for want of knowledge alone, and that would send again what may have been done.
    """
    runs, warnings = {each.order: HandlerCall(each) for each in called}, list[str]()
    by_name: dict[str, list[Handler]] = {}
    for handler in in_order((*known, *called)):
        by_name.setdefault(handler.name, []).append(handler)
    sure = {each.name for each in surely}
    for item, value in memory.items():
        if not item.startswith(PENDING_PREFIX):
            continue
        name, run = item.removeprefix(PENDING_PREFIX), str(mapping(value).get("run", ""))
        mine = by_name.get(name, [])
        if not mapping(value).get("unknown"):
            runs |= {handler.order: HandlerCall(handler, run) for handler in mine}
            warnings += [] if mine else [_stranger(name, run)]
        elif name in sure:
            warnings.append(_in_doubt(name, mapping(value), "what changes now calls it once more"))
        else:
            held = any(runs.pop(handler.order, None) for handler in mine)
            warnings.append(_in_doubt(name, mapping(value), _HELD if held else _NOT_AGAIN))
    return [runs[order] for order in sorted(runs)], warnings


_NOT_AGAIN = "it is not sent again by itself\nlook on the server; --forget-pending ends this warning"
_HELD = (
    "it is not sent again for a value that the server does not report, and that may be there already\n"
    "look on the server; if it has to run, run it by a task of its own; --forget-pending ends this warning"
)
_DELETION_WAITS = (
    "it runs before the deletion: neither is sent\n"
    "look on the server; --forget-pending sends the handler again, and then deletes"
)


def _in_doubt(name: str, value: Mapping[str, Json], then: str) -> str:
    return (
        f"the handler {name!r} was sent by run {value.get('run')} and {answer_told(value)}: it may have run, and {then}"
    )


def _stranger(name: str, run: str) -> str:
    return (
        f"the handler {name!r} is pending since run {run}, and no task of this run notifies it\n"
        "run the playbook that has it, or drop it with --forget-pending"
    )


# Where a wanted value was said ---------------------------------------------------------------------------------


def _places(desired: Desired) -> Iterator[SourceLocation]:
    yield desired.source.place
    if isinstance(desired, DesiredAsset):
        yield from (sourced.source.place for sourced in _said(desired))
        for exactly in (desired.exactly.segments, desired.exactly.markers, desired.exactly.links):
            if exactly is not None:
                yield exactly.place


def _said(desired: DesiredAsset) -> Iterator[Sourced[object]]:
    for field in fields(desired):
        value = getattr(desired, field.name)
        parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple) else (value,)
        yield from (part for part in parts if isinstance(part, Sourced))
