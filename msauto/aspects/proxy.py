"""Viewing copies (interface, «Web proxy»). Asking makes the server work: never while planning."""

from __future__ import annotations

from msauto.diffing.builder import TASK, PlanBuilder, PlanContext, Trigger
from msauto.interface import requests
from msauto.model.desired import DesiredProxy
from msauto.model.plan import Expectation, Json


def plan_proxy(scene: PlanContext, wanted: DesiredProxy, draft: PlanBuilder, cause: Trigger = TASK) -> None:
    """Fetch the copy, unless the file on disk is the one that was fetched of this very clip in this profile."""
    asked: dict[str, Json] = {"profile": wanted.profile}
    if draft.has_file("proxy", wanted.dest, asked, scene, cause):
        return
    number = draft.run("proxy", wanted.dest, asked, wanted.source, cause)
    request = requests.get_proxy(scene.path, wanted.profile)
    expect = Expectation("proxy", wanted.dest, scene.made_from(asked), visible=False)
    draft.fetch(cause.phase, request, wanted.dest, [number], expect)
