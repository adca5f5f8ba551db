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


def plan_fields(scene: PlanContext, wanted: Mapping[str, Sourced[str | Position]], draft: PlanBuilder) -> None:
    """Write each field that is not as wanted."""
    for name, said in wanted.items():
        _plan_field(scene, name, said, draft)


def _plan_field(scene: PlanContext, name: str, said: Sourced[str | Position], draft: PlanBuilder) -> None:
    value = wire_value(scene, name, said.value, said.source)
    before, basis = _known(scene, name)
    draft.look(f"field:{name}")
    if basis != "none" and same_value(name, before, value):
        return
    still = scene.still.get(f"field:{name}", before)
    if basis != "none" and not same_value(name, before, None if still is None else str(still)):
        draft.warnings.append(left_alone(f"{scene.title}: field {name}", shown_field(name, before), still))
        return
    if name == "user_0":
        versions.require(scene.server, versions.Feature.SET_USER_0)
    shown_before = shown_field(name, before) if basis != "none" else None
    number = draft.change(
        "change", "field", name, before=shown_before, after=shown_field(name, value), source=said.source, basis=basis
    )
    expect = Expectation("field", name, value, visible=basis == "live")
    draft.send(Phase.FIELD, requests.set_field(scene.path, name, value), [number], expect)


def _known(scene: PlanContext, name: str) -> tuple[str | None, Basis]:
    """Return the value that the field has, and how we know."""
    shown = scene.asset.attributes.get(name)
    if shown is not None:
        return shown, "live"
    if scene.memory.get(f"reported:{name}") is True:
        return "", "live"  # this server showed the field of this asset before: not shown is empty
    remembered = scene.memory.get(f"field:{name}")
    return (None, "none") if remembered is None else (str(remembered), "ledger")
