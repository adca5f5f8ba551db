"""Link fields: one SETFIELD for each that differs (interface, «Link»).

A field that the Clip XML does not report is compared with what we last wrote; if nothing is recorded it is written
once (field notes, «fields that the Clip XML does not report»).
"""

from __future__ import annotations

from collections.abc import Mapping

from msauto.aspects.link_fields import shown_field, wire_value
from msauto.diffing.builder import PlanBuilder, PlanContext, left_alone
from msauto.diffing.comparison import same_value
from msauto.diffing.order import Phase
from msauto.interface import requests, versions
from msauto.model.desired import Position, Sourced
from msauto.model.plan import Basis, Expectation


def plan_fields(context: PlanContext, desired: Mapping[str, Sourced[str | Position]], builder: PlanBuilder) -> None:
    """Write each field that is not as wanted."""
    for name, sourced in desired.items():
        _plan_field(context, name, sourced, builder)


def _plan_field(context: PlanContext, name: str, sourced: Sourced[str | Position], builder: PlanBuilder) -> None:
    value = wire_value(context, name, sourced.value, sourced.source)
    before, basis = _known(context, name)
    builder.look(f"field:{name}")
    if basis != "none" and same_value(name, before, value):
        return
    still = context.still.get(f"field:{name}", before)
    if basis != "none" and not same_value(name, before, None if still is None else str(still)):
        builder.warnings.append(left_alone(f"{context.title}: field {name}", shown_field(name, before), still))
        return
    if name == "user_0":
        versions.require(context.server, versions.Feature.SET_USER_0)
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
