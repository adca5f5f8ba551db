"""Viewing copies (interface, «Web proxy»). Asking makes the server work: never while planning."""

from __future__ import annotations

from msauto.aspects.aspect import Aspect
from msauto.aspects.plan_builder import TASK, PlanContext, Trigger
from msauto.model import requests
from msauto.model.desired import DesiredProxy
from msauto.model.plan import Json


def plan_proxy(context: PlanContext, desired: DesiredProxy, cause: Trigger = TASK) -> None:
    """Fetch the copy, unless the file on disk was fetched from this clip with the same profile."""
    asked: dict[str, Json] = {"profile": desired.profile}
    if not context.has_file(desired, asked, cause):
        request = requests.get_proxy(context.path, desired.profile)
        context.fetch(desired, asked, request, cause)


ASPECT = Aspect(name="proxy", run=plan_proxy, is_file=True, for_good="the file stays where it was saved")
