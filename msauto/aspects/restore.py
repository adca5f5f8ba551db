"""Restore: the high-resolution file is on disk (RESTORE). It takes minutes: the proof waits for it."""

from __future__ import annotations

from msauto.diffing.builder import PlanBuilder, PlanContext, refuse
from msauto.diffing.order import Phase
from msauto.interface import requests, versions
from msauto.model.desired import Sourced
from msauto.model.plan import Expectation


def plan_restore(context: PlanContext, desired: Sourced[float], builder: PlanBuilder) -> None:
    """Bring the file back where it is not on disk; ``wanted`` is how many seconds the proof may wait."""
    builder.look("hires")
    if context.asset.hires:
        return
    if context.asset.archive == "":
        raise refuse(
            "the high-resolution file is not on disk, and the server reports no archive copy of it",
            desired.source,
            "archive it first, or leave `restore` out for this asset",
        )
    versions.require(context.server, versions.Feature.RESTORE)
    number = builder.change(
        "run", "restore", "hires", before=context.asset.hires, after=True, source=desired.source, reversible=False
    )
    builder.send(Phase.RESTORE, requests.restore(context.path), [number], Expectation("restore", "hires", desired=True))
    builder.wait = max(builder.wait, desired.value)
