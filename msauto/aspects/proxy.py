"""Viewing copies (interface, «Web proxy»). Asking makes the server work: never while planning."""

from __future__ import annotations

from msauto.diffing.aspect_definition import Aspect
from msauto.diffing.plan_builder import TASK, PlanBuilder, PlanContext, Trigger
from msauto.interface import requests
from msauto.model.desired import DesiredProxy
from msauto.model.plan import Expectation, Json


def plan_proxy(context: PlanContext, desired: DesiredProxy, builder: PlanBuilder, cause: Trigger = TASK) -> None:
    """Fetch the copy, unless the file on disk was fetched from this clip with the same profile."""
    asked: dict[str, Json] = {"profile": desired.profile}
    if builder.has_file("proxy", desired.dest, asked, context, cause):
        return
    number = builder.run("proxy", desired.dest, asked, desired.source, cause)
    request = requests.get_proxy(context.path, desired.profile)
    expect = Expectation("proxy", desired.dest, context.made_from(asked), visible=False)
    builder.fetch(cause.phase, request, desired.dest, [number], expect)


ASPECT = Aspect(name="proxy", for_good="the file stays where it was saved")
