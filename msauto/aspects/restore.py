"""Restore: the high-resolution file is on disk (RESTORE). It takes minutes: verification waits for it."""

from typing import Annotated, ClassVar

from msauto.aspects.arguments import TaskArguments, asset_key
from msauto.aspects.aspect import Aspect, Detail
from msauto.aspects.plan_builder import Phase, PlanContext, refuse
from msauto.documents.strict_model import Model, key
from msauto.documents.value_types import IF_MAP, Else, Opt, Span, Then
from msauto.model import requests
from msauto.model.desired import Sourced
from msauto.model.plan import Expectation

DEFAULT_WAIT = 1800.0
"""Seconds that verification waits for a file from the archive, by default."""


class RestoreArgs(Model):
    """How long to wait for a file from the archive."""

    shorthand: ClassVar = "wait"

    wait: Opt[Span] = key("how long verification waits for the file: 90s, 30m, 2h; default 30m")


def _declare(task: TaskArguments) -> Sourced[float] | None:
    args = task.args.restore
    if args is None or args is False:
        return None
    wait = args.wait if isinstance(args, RestoreArgs) else None
    return Sourced(DEFAULT_WAIT if wait is None else wait.total_seconds(), task.source("restore"))


def plan_restore(context: PlanContext, wait: Sourced[float]) -> None:
    """Bring the file back where it is not on disk; the value is how many seconds verification may wait."""
    context.builder.look("hires")
    if context.asset.hires:
        return
    if context.asset.archive == "":
        raise refuse(
            "the high-resolution file is not on disk, and the server reports no archive copy of it",
            wait.source,
            "archive it first, or leave `restore` out for this asset",
        )
    requests.require(context.server, requests.Feature.RESTORE)
    number = context.builder.change("run", "restore", "hires", context.asset.hires, True, wait.source, reversible=False)
    context.builder.send(
        Phase.RESTORE, requests.restore(context.path), [number], Expectation("restore", "hires", desired=True)
    )
    context.builder.wait = max(context.builder.wait, wait.value)


ASPECT = Aspect(
    name="restore",
    keys={
        "restore": asset_key(
            Annotated[Then[RestoreArgs] | Else[bool], IF_MAP],
            "the high-resolution file is on disk; if not, restore it from the archive",
        )
    },
    declare=_declare,
    merge=lambda _, parts: max(parts, key=lambda sourced: sourced.value),
    plan=plan_restore,
    looks={"hires": lambda asset, *_: bool(asset.hires)},
    holds=lambda _, live: bool(live.asset and live.asset.hires),
    show=lambda _, live: live.asset.hires if live.asset else None,
    is_slow=True,
    alters=lambda *_: {"files"},
    details=lambda _, target: (Detail("waits up to", target.wait, "wait"),) if target.wait else (),
    for_good="the restored file stays on disk",
)
