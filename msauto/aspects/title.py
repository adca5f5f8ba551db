"""The asset's title: SETFIELD ``clip_name`` (interface, «Link»), addressed by the title that it still has."""

from __future__ import annotations

from msauto.diffing.builder import PlanBuilder, PlanContext
from msauto.diffing.comparison import same_text
from msauto.diffing.order import Phase
from msauto.interface import requests, versions
from msauto.model.desired import Sourced
from msauto.model.plan import Address, Expectation


def plan_title(context: PlanContext, live_title: str, desired: Sourced[str], builder: PlanBuilder) -> None:
    """Rename the asset where it is called otherwise."""
    builder.look("title")
    if same_text(live_title, desired.value):
        return
    if not context.address.namespace:
        versions.require_address(context.server, Address(desired.value))  # by that title it is read again
    number = builder.change("change", "title", "title", before=live_title, after=desired.value, source=desired.source)
    request = requests.set_field(context.path_before, "clip_name", desired.value)
    builder.send(Phase.RENAME, request, [number], Expectation("title", "title", desired.value))
