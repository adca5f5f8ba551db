"""Link fields: one SETFIELD for each that differs (interface, «Link»)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msauto.diffing.aspect_definition import Aspect, Item, UndoContext, value_matches
from msauto.diffing.comparison import text_of
from msauto.diffing.link_fields import compare_field, field_holds, remember_field, shown_field, wire_value
from msauto.diffing.plan_builder import Phase, PlanContext
from msauto.interface import requests, versions
from msauto.model.desired import DesiredAsset
from msauto.model.plan import Expectation
from msauto.model.ports import LiveTarget


def plan_fields(context: PlanContext, desired: DesiredAsset) -> None:
    """Write each field that differs."""
    for name, sourced in desired.fields.items():
        value = wire_value(context.asset, name, sourced.value, sourced.source)
        known = compare_field(context, name, value, context.asset.attributes, f"{context.title}: field {name}")
        if known is None:
            context.builder.holding.append(Expectation("field", name, value))
            continue
        versions.require_field(context.server, name)
        before, basis = known
        after = shown_field(name, value)
        number = context.builder.change("change", "field", name, before, after, sourced.source, basis=basis)
        expect = Expectation("field", name, value, visible=basis == "live")
        context.builder.send(Phase.FIELD, requests.set_field(context.path, name, value), [number], expect)


def _holds(expect: Expectation, live: LiveTarget) -> bool | None:
    attributes = live.asset.attributes if live.asset else {}
    return field_holds(expect.key, str(expect.desired), attributes, visible=expect.visible)


def _remember(expect: Expectation, live: LiveTarget) -> Iterator[Item]:
    reported = expect.visible or (live.asset is not None and expect.key in live.asset.attributes)
    return remember_field(f"field:{expect.key}", expect.desired, reported=reported)


def _undo(context: UndoContext) -> Mapping[str, Any]:
    changes = [one.change for one in context.of("field")]
    return {
        "fields": {change.key: context.sourced(text_of(change.before)) for change in changes},
        "still": {f"field:{change.key}": change.after for change in changes},
    }


ASPECT = Aspect(
    name="field",
    plan=plan_fields,
    looks={"field": lambda asset, _, name: asset.attributes.get(name)},
    holds=_holds,
    show=lambda expect, live: live.asset.attributes.get(expect.key) if live.asset else None,
    alters=lambda change, _: {"frames"} if change.key in {"first_frame", "last_frame"} else (),
    remember=_remember,
    value_items=lambda name: (f"field:{name}",),
    is_value=True,
    commands={"SETFIELD": frozenset({"change"})},
    matches=lambda change, named: value_matches(change.key, change.after, named),
    undo=_undo,
)
