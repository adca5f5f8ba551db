"""Restore: the high-resolution file is on disk (RESTORE). It takes minutes: verification waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

from msauto.aspects.arguments import TaskArguments, asset_key
from msauto.aspects.aspect import Aspect, Detail
from msauto.aspects.merging import Merging
from msauto.aspects.plan_builder import (
    Phase,
    PlanContext,
    doubts_of,
    refuse,
    tell_doubt,
)
from msauto.documents.strict_model import Model, key
from msauto.documents.value_types import IF_MAP, Else, Opt, Span, Then
from msauto.model import requests
from msauto.model.desired import Sourced
from msauto.model.plan import Change, Target
from msauto.model.ports import LiveTarget
from msauto.model.snapshot import Effect, Part

DEFAULT_WAIT = 1800.0
"""Seconds that verification waits for a file from the archive, by default."""


class RestoreArgs(Model):
    """How long to wait for a file from the archive."""

    shorthand: ClassVar = "wait"

    wait: Opt[Span] = key("how long verification waits for the file: 90s, 30m, 2h; default 30m")


class Restore(Aspect):
    """Whether the file is on disk. Its part is how many seconds verification may wait."""

    name = "restore"
    keys: ClassVar = {
        "restore": asset_key(
            Annotated[Then[RestoreArgs] | Else[bool], IF_MAP],
            "the high-resolution file is on disk; if not, restore it from the archive",
        )
    }
    for_good = "the restored file stays on disk"

    def declare(self, task: TaskArguments) -> Sourced[float] | None:
        """Return how long to wait."""
        args = task.args.restore
        if args is None or args is False:
            return None
        seconds = DEFAULT_WAIT
        if isinstance(args, RestoreArgs) and args.wait is not None:
            seconds = args.wait.total_seconds()
        return Sourced(seconds, task.source("restore"))

    def merge(self, merging: Merging, parts: Sequence[Sourced[float]]) -> Sourced[float]:
        """Return the longest wait."""
        return max(parts, key=lambda sourced: sourced.value)

    def plan(self, context: PlanContext, part: Sourced[float]) -> None:
        """Bring the file back where it is not on disk."""
        is_there = bool(context.asset.hires)
        effect = Effect(self.name, "hires", is_there, True, slow=True)
        self.settle_doubts(context)
        if is_there:
            context.builder.hold(effect)
            return
        if doubts_of(context, self.name):
            return
        if context.asset.archive == "":
            raise refuse(
                "the high-resolution file is not on disk, and the server reports no archive copy of it",
                part.source,
                "archive it first, or leave `restore` out for this asset",
            )
        requests.require(context.server, requests.Feature.RESTORE)
        before = context.asset.hires
        number = context.builder.change(
            "run", self.name, "hires", before, True, part.source, reversible=False
        )
        context.builder.send(Phase.RESTORE, requests.restore(context.path), [number], effect)
        context.builder.wait = max(context.builder.wait, part.value)
        context.builder.altered.add("files")

    def settle_doubts(self, context: PlanContext) -> None:
        """Implement :meth:`~msauto.aspects.aspect.Aspect.settle_doubts`."""
        for doubt in doubts_of(context, self.name):
            if context.asset.hires:
                context.builder.settle(doubt.item)
            else:
                tell_doubt(context, "the high-resolution file", doubt, "it is not on disk")

    def things(self, live: LiveTarget) -> Part | None:
        """Return whether the file is on disk."""
        return None if live.asset is None else {"hires": bool(live.asset.hires)}

    def details(self, change: Change, target: Target) -> Sequence[Detail]:
        """Return how long verification waits."""
        return (Detail("waits up to", target.wait, "wait"),) if target.wait else ()
