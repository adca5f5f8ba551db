"""XMP fields: all that differ in one SETUSERFIELDS, split only at the cap of the request line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import structs

from msauto.aspects.aspect import Aspect, Declared, UndoContext
from msauto.aspects.comparison import same_list, texts
from msauto.aspects.plan_builder import Phase, PlanContext, left_alone, refuse
from msauto.interface import requests, versions
from msauto.model.desired import DesiredAsset, Sourced
from msauto.model.plan import Basis, Expectation, Json, Request
from msauto.model.ports import LiveTarget

Changed = tuple[str, Sourced[tuple[str, ...]], int]


def plan_xmp(context: PlanContext, desired: DesiredAsset) -> None:
    """Write the XMP fields that differ."""
    separator = context.server.dialect.list_separator
    changed: list[Changed] = []
    for name, sourced in desired.xmp.items():
        for value in sourced.value:
            if separator in value:  # the server would read it as several values
                raise refuse(
                    f"the value {value!r} of {name} holds {separator!r}, which separates values on this server",
                    sourced.source,
                    "leave the sign out, or set `list_separator` in the server's dialect if it separates otherwise",
                )
        before, basis = _known(context, name)
        if context.batch is None:
            context.builder.look(f"xmp:{name}")
        if basis != "none" and same_list(before, sourced.value):
            context.builder.holding.append(Expectation("xmp", name, list(sourced.value)))
            continue
        shown: Json = list(before) if basis != "none" else None
        still = context.still.get(f"xmp:{name}", shown)
        if basis != "none" and isinstance(still, list) and not same_list(before, [str(value) for value in still]):
            context.builder.warnings.append(left_alone(f"{context.title}: {name}", shown, still))
            continue
        after: Json = list(sourced.value)
        number = context.builder.change("change", "xmp", name, shown, after, sourced.source, basis=basis)
        changed.append((name, sourced, number))
    if changed:
        versions.require(context.server, versions.Feature.SET_USER_FIELDS)
    for group in _split(context, changed):
        visible = context.live.xmp is not None or context.batch is not None
        expects = [Expectation("xmp", name, list(sourced.value), visible=visible) for name, sourced, _ in group]
        context.builder.send(Phase.XMP, _request(context, group), [number for *_, number in group], *expects)


def _known(context: PlanContext, name: str) -> tuple[Sequence[str], Basis]:
    if context.batch is not None:
        return (), "none"  # what the batch leaves is not known: sent whatever is there now
    if context.live.xmp is not None:
        return context.live.xmp.get(name, ()), "live"  # asked for and not in the answer: empty
    remembered = context.memory.get(f"xmp:{name}")
    return ([str(value) for value in remembered], "ledger") if isinstance(remembered, list) else ((), "none")


def _split(context: PlanContext, changed: Sequence[Changed]) -> Iterator[list[Changed]]:
    group: list[Changed] = []
    for item in changed:
        length = requests.request_line_length(_request(context, [*group, item]))
        if group and length > context.server.request_line:
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def _request(context: PlanContext, group: Sequence[Changed]) -> Request:
    values = {name: sourced.value for name, sourced, _ in group}
    return requests.set_user_fields(context.path, values, context.server.dialect.list_separator)


def _holds(expect: Expectation, live: LiveTarget) -> bool | None:
    return None if live.xmp is None else same_list(live.xmp.get(expect.key, ()), texts(expect.desired))


def _undo(context: UndoContext) -> Mapping[str, Any]:
    separator = context.spec.dialect.list_separator
    changes = [one.change for one in context.of("xmp")]
    fields = {}
    for change in changes:
        values = texts(change.before)
        if any(separator in value for value in values):
            why = f"its former value holds {separator!r}, which separates values"
            context.notes.append(f"{change.key} is left alone: {why}")
        else:
            fields[change.key] = context.sourced(values)
    return {"xmp": fields, "still": {f"xmp:{change.key}": change.after for change in changes}}


def _leaves(live: LiveTarget, expect: Expectation) -> LiveTarget:
    return structs.replace(live, xmp={**(live.xmp or {}), expect.key: texts(expect.desired)})


def _differing(now: DesiredAsset, then: DesiredAsset) -> Iterator[Declared]:
    for name in (name for name in now.xmp if name in then.xmp):
        if not same_list(now.xmp[name].value, then.xmp[name].value):
            yield name, f"the XMP field {name}", now.xmp[name]


ASPECT = Aspect(
    name="xmp",
    in_xmp=True,
    plan=plan_xmp,
    looks={"xmp": lambda _, live, name: None if live.xmp is None else list(live.xmp.get(name, ()))},
    holds=_holds,
    show=lambda expect, live: list((live.xmp or {}).get(expect.key, ())),
    leaves=_leaves,
    facts=lambda name: {f"xmp:{name}", "fact:xmp"},
    differing=_differing,
    remember=lambda expect, live: iter([(f"xmp:{expect.key}", expect.desired if live.xmp is None else None)]),
    value_items=lambda name: (f"xmp:{name}",),
    is_value=True,
    subject=lambda change: change.key,
    is_called_by_subject=True,
    dialect=("list_separator", "xmp_read"),
    undo=_undo,
)
