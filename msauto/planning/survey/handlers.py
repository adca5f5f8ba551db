"""Which handlers run on a target: those of the tasks that changed it, and those that are pending from earlier runs.

A change belongs to the task that declares it. If two tasks declare the same change, it belongs to the first, as in
Ansible. If several tasks declare parts of one change, it belongs to all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct

from msauto.aspects.comparison import mapping
from msauto.aspects.plan_builder import PENDING_PREFIX, answer_told
from msauto.errors import SourceLocation
from msauto.model.desired import Desired, DesiredAsset, Handler, Sourced
from msauto.model.plan import Change, Json


class HandlerCall(Struct, frozen=True):
    """A handler to run; ``pending`` names the run that left it pending."""

    handler: Handler
    pending: str = ""


def notified(
    declared: Iterable[tuple[tuple[Handler, ...], Desired]], merged: DesiredAsset | None, changes: Sequence[Change]
) -> list[Handler]:
    """Return the handlers that the changes notify, each once, in the order of the plays."""
    places = {change.source.place for change in changes}
    for sourced in _sourced_values(merged) if merged else ():
        if sourced.source.place in places:
            places.update(source.place for source in sourced.also)
    return in_order(
        handler
        for handlers, desired in declared
        if handlers and places & set(_places_of(desired))
        for handler in handlers
    )


def in_order(handlers: Iterable[Handler]) -> list[Handler]:
    """Return handlers, each once, in the order of the plays."""
    return sorted({each.order: each for each in handlers}.values(), key=lambda each: each.order)


def handlers_in_doubt(memory: Mapping[str, Json], notified_handlers: Iterable[Handler]) -> list[str]:
    """Return why a deletion must wait: a handler that runs before it was sent by an earlier run, and may have run.

    Sending it again may run it twice, and deleting without it may lose data: the user must decide.
    """
    found = ((each.name, mapping(memory.get(f"{PENDING_PREFIX}{each.name}"))) for each in notified_handlers)
    return [_in_doubt(name, value, _DELETION_WAITS) for name, value in found if value.get("before")]


def pending_calls(
    memory: Mapping[str, Json],
    known: Iterable[Handler],
    notified_handlers: Sequence[Handler],
    certainly_notified: Sequence[Handler],
) -> tuple[list[HandlerCall], list[str]]:
    """Return the handlers to run, and warnings about those of earlier runs that do not run.

    ``known`` are all that the tasks name, ``notified_handlers`` those that changes notify, ``certainly_notified``
    those that a certain change notifies. If the answer to a handler was lost, only a certain change sends it again:
    the handler may have run already. A change is not certain if the server does not report the value.
    """
    runs, warnings = {each.order: HandlerCall(each) for each in notified_handlers}, list[str]()
    by_name: dict[str, list[Handler]] = {}
    for handler in in_order((*known, *notified_handlers)):
        by_name.setdefault(handler.name, []).append(handler)
    sure = {each.name for each in certainly_notified}
    for item, value in memory.items():
        if not item.startswith(PENDING_PREFIX):
            continue
        name, sent = item.removeprefix(PENDING_PREFIX), mapping(value)
        mine, run = by_name.get(name, []), str(sent.get("run", ""))
        if sent.get("unknown"):
            held = name not in sure and any(runs.pop(handler.order, None) for handler in mine)
            again = "a change of this run notifies it again" if name in sure else _NOT_AGAIN
            warnings.append(_in_doubt(name, sent, _HELD if held else again))
        elif mine:
            runs |= {handler.order: HandlerCall(handler, run) for handler in mine}
        else:
            warnings.append(
                f"the handler {name!r} is pending since run {run}, and no task of this run notifies it\n"
                "run the playbook that defines it, or drop it with --forget-pending"
            )
    return [runs[order] for order in sorted(runs)], warnings


_NOT_AGAIN = "it is not sent again automatically\ncheck the server; --forget-pending ends this warning"
_HELD = (
    "it is not sent again, because the changed value is not reported and may be set already\n"
    "check the server; to run it, use a separate task; --forget-pending ends this warning"
)
_DELETION_WAITS = (
    "it runs before the deletion: neither is sent\n"
    "check the server; --forget-pending sends the handler again, and then deletes"
)


def _in_doubt(name: str, sent: Mapping[str, Json], then: str) -> str:
    return (
        f"the handler {name!r} was sent by run {sent.get('run')} and {answer_told(sent)}: it may have run, and {then}"
    )


# Where a value is declared -------------------------------------------------------------------------------------


def _places_of(desired: Desired) -> Iterator[SourceLocation]:
    yield desired.source.place
    if isinstance(desired, DesiredAsset):
        yield from (sourced.source.place for sourced in _sourced_values(desired))
        for exactly in (desired.exactly.segments, desired.exactly.markers, desired.exactly.links):
            if exactly is not None:
                yield exactly.place


def _sourced_values(desired: DesiredAsset) -> Iterator[Sourced[Any]]:
    single: tuple[Sourced[Any] | None, ...] = desired.folder, desired.title, desired.segmentation, desired.restore
    yield from (sourced for sourced in single if sourced is not None)
    yield from chain(desired.fields.values(), desired.xmp.values(), desired.segments, desired.markers, desired.links)
