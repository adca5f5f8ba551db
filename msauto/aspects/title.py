"""The asset's title: SETFIELD ``clip_name`` (interface, «Link»), addressed by the title that it still has."""

from __future__ import annotations

from msauto.diffing.builder import PlanBuilder, PlanContext
from msauto.diffing.comparison import same_text
from msauto.diffing.order import Phase
from msauto.interface import requests, versions
from msauto.model.desired import Sourced
from msauto.model.plan import Address, Expectation


def plan_title(scene: PlanContext, live_title: str, wanted: Sourced[str], draft: PlanBuilder) -> None:
    """Rename the asset where it is called otherwise."""
    draft.look("title")
    if same_text(live_title, wanted.value):
        return
    if not scene.address.namespace:
        versions.require_address(scene.server, Address(wanted.value))  # by that title it is read again
    number = draft.change("change", "title", "title", before=live_title, after=wanted.value, source=wanted.source)
    request = requests.set_field(scene.path_before, "clip_name", wanted.value)
    draft.send(Phase.RENAME, request, [number], Expectation("title", "title", wanted.value))
