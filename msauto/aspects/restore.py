"""Restore: the high-resolution file is on disk (RESTORE). It takes minutes: the proof waits for it."""

from __future__ import annotations

from msauto.diffing.builder import PlanBuilder, PlanContext, refuse
from msauto.diffing.order import Phase
from msauto.interface import requests, versions
from msauto.model.desired import Sourced
from msauto.model.plan import Expectation


def plan_restore(scene: PlanContext, wanted: Sourced[float], draft: PlanBuilder) -> None:
    """Bring the file back where it is not on disk; ``wanted`` is how many seconds the proof may wait."""
    draft.look("hires")
    if scene.asset.hires:
        return
    if scene.asset.archive == "":
        raise refuse(
            "the high-resolution file is not on disk, and the server reports no archive copy of it",
            wanted.source,
            "archive it first, or leave `restore` out for this asset",
        )
    versions.require(scene.server, versions.Feature.RESTORE)
    number = draft.change(
        "run", "restore", "hires", before=scene.asset.hires, after=True, source=wanted.source, reversible=False
    )
    draft.send(Phase.RESTORE, requests.restore(scene.path), [number], Expectation("restore", "hires", desired=True))
    draft.wait = max(draft.wait, wanted.value)
