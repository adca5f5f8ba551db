"""Editorial warnings about values that a run sets: they are valid, but probably mistakes.

Only what the run adds or changes, and its effect on the rest, is checked. What is on the server already and does not
change is not checked. What concerns one aspect alone is in its module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from msgspec import structs

from msauto.aspects import ASPECTS, live_after
from msauto.aspects.plan_builder import PlanContext
from msauto.aspects.positions import InAndOut
from msauto.model.desired import DesiredAsset
from msauto.model.ports import LiveTarget


def check_editorial(context: PlanContext, desired: DesiredAsset) -> None:
    """Warn of what the changes of an asset make of it. Raises ``PlanningError`` for what cannot be meant."""
    if not context.builder.changes:
        return

    @cache
    def after() -> LiveTarget:
        return live_after(structs.replace(context.live, asset=context.asset), context.builder.requests())

    parts = [(ASPECTS[name], part) for name, part in desired.parts.items()]
    own = [warning for aspect, part in parts for warning in aspect.warn(context, part, after)]
    warnings = [*own, *_outside(context, desired, after), *_blank_ends(context)]
    context.builder.warnings += [f"{context.title}: {warning}" for warning in dict.fromkeys(warnings)]


def _outside(context: PlanContext, desired: DesiredAsset, after: Callable[[], LiveTarget]) -> Iterator[str]:
    """Yield what a task places outside the in and out points, where the run sets it or these points."""
    changes = context.builder.changes
    moved = any("frames" in ASPECTS[change.aspect].alters(change, context.title) for change in changes)
    span = InAndOut.of((after().asset if moved else None) or context.asset)
    if span.is_reversed:
        return
    set_here = {change.source.place for change in changes}
    for name, part in desired.parts.items():
        for what, first, last, source in ASPECTS[name].spans(context, part):
            where = span.misses(first, last) if moved or source.place in set_here else None
            if where is not None:
                yield f"{what} {where} ({source.place})"


def _blank_ends(context: PlanContext) -> Iterator[str]:
    """Yield the titles that get a blank at an end."""
    for change in context.builder.changes:
        titles = ASPECTS[change.aspect].titles(change) if change.action != "delete" else None
        if titles is None:
            continue
        what, was, title = titles
        if title != title.strip() and title != was:
            yield f"{what} has blanks at an end: {title!r} ({change.source.place})"
