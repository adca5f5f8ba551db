"""Link fields: one SETFIELD for each that differs (interface, «Link»).

A field that the Clip XML does not report is compared with the value that we last wrote. If none is recorded, the field
is written once (field notes, «fields that the Clip XML does not report»).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msauto.diffing.aspect_definition import Aspect, Item, Parameters, UndoContext
from msauto.diffing.comparison import same_value, text_of
from msauto.diffing.plan_builder import PlanBuilder, PlanContext, left_alone
from msauto.diffing.positions import shown_field, wire_value
from msauto.diffing.request_order import Phase
from msauto.interface import requests, versions
from msauto.model.desired import DesiredAsset, Position, Sourced
from msauto.model.identity import plain
from msauto.model.plan import Basis, Change, Expectation, Json
from msauto.model.ports import LiveTarget


def plan_fields(context: PlanContext, desired: DesiredAsset, builder: PlanBuilder) -> None:
    """Write each field that differs."""
    for name, sourced in desired.fields.items():
        _plan_field(context, name, sourced, builder)


def _plan_field(context: PlanContext, name: str, sourced: Sourced[str | Position], builder: PlanBuilder) -> None:
    value = wire_value(context.asset, name, sourced.value, sourced.source)
    before, basis = _known(context, name)
    builder.look(f"field:{name}")
    if basis != "none" and same_value(name, before, value):
        return
    still = context.still.get(f"field:{name}", before)
    if basis != "none" and not same_value(name, before, None if still is None else str(still)):
        builder.warnings.append(left_alone(f"{context.title}: field {name}", shown_field(name, before), still))
        return
    versions.require_field(context.server, name)
    shown_before = shown_field(name, before) if basis != "none" else None
    number = builder.change(
        "change", "field", name, before=shown_before, after=shown_field(name, value), source=sourced.source, basis=basis
    )
    expect = Expectation("field", name, value, visible=basis == "live")
    builder.send(Phase.FIELD, requests.set_field(context.path, name, value), [number], expect)


def _known(context: PlanContext, name: str) -> tuple[str | None, Basis]:
    """Return the value that the field has, and how we know."""
    shown = context.asset.attributes.get(name)
    if shown is not None:
        return shown, "live"
    if context.memory.get(f"reported:{name}") is True:
        return "", "live"  # this server showed the field of this asset before: not shown is empty
    remembered = context.memory.get(f"field:{name}")
    return (None, "none") if remembered is None else (str(remembered), "ledger")


def _holds(expect: Expectation, live: LiveTarget) -> bool | None:
    shown = live.asset.attributes.get(expect.key) if live.asset else None
    if shown is None and not expect.visible:
        return None
    return same_value(expect.key, shown, str(expect.desired))


def _show(expect: Expectation, live: LiveTarget) -> Json:
    return live.asset.attributes.get(expect.key) if live.asset else None


def _remember(expect: Expectation, live: LiveTarget) -> Iterator[Item]:
    reported = expect.visible or (live.asset is not None and expect.key in live.asset.attributes)
    if reported:
        yield f"reported:{expect.key}", True
    yield f"field:{expect.key}", None if reported else expect.desired


def _says(change: Change, named: Parameters) -> bool:
    return named.get("name") == change.key and plain(named.get("val", "")) == plain(text_of(change.after))


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
    show=_show,
    remember=_remember,
    value_items=lambda name: (f"field:{name}",),
    is_value=True,
    commands={"SETFIELD": frozenset({"change"})},
    says=_says,
    undo=_undo,
)
