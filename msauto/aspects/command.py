"""Commands that are run rather than compared (interface, «Asset commands»): what they did cannot be seen by reading.

``ns`` and ``id`` of a partner command follow the target's address: an open file that is known by its ``handle`` alone
cannot be found by the title in the path, which is what the server would fall back on.
"""

from __future__ import annotations

from msauto.diffing.builder import TASK, PlanBuilder, PlanContext, Trigger
from msauto.diffing.comparison import RUN_ASPECTS
from msauto.interface import requests, versions
from msauto.model.desired import DesiredCommand
from msauto.model.plan import Expectation, Json
from msauto.planning.survey.handlers import answer_told, certain
from msauto.verification.expectations import mapping

_WITH_CLIP = frozenset({"PARTNER_EXPORT_VERSION", "PARTNER_COPY_PROGRAM_FIELDS"})
"""Commands that take ``ns`` and ``id`` (interface, «Asset commands»)."""


def command_key(wanted: DesiredCommand) -> str:
    """Return what a command is known by: its name and parameters."""
    return " ".join([wanted.name, *(f"{name}={value}" for name, value in wanted.params)])


def plan_command(scene: PlanContext, wanted: DesiredCommand, draft: PlanBuilder, cause: Trigger = TASK) -> None:
    """Run a command: always, once in the life of the asset, or where the asset changes in this run."""
    key = command_key(wanted)
    if wanted.run == "once" and not _is_due(scene, key, draft):
        return
    if wanted.run == "changed" and not cause.handler:
        owed = _owed_by(scene, key, draft)
        if owed is None:
            return
        cause = Trigger(owed=owed)
    feature = versions.feature_of_command(wanted.name)
    if feature is not None:
        versions.require(scene.server, feature)
    params: dict[str, Json] = dict(wanted.params)
    want = "handler" if cause.handler and wanted.run == "always" else wanted.run
    number = draft.run("command", key, params, wanted.source, cause)
    request = requests.command(scene.path, wanted.name, (*wanted.params, *_clip(scene, wanted.name)))
    draft.send(cause.phase, request, [number], Expectation("command", key, want, visible=False))


def _clip(scene: PlanContext, name: str) -> tuple[tuple[str, str], ...]:
    address = scene.address
    if not address.namespace or name not in _WITH_CLIP:
        return ()  # the server's own default: the title in the path
    return ("ns", address.namespace), ("id", address.name)


def _is_due(scene: PlanContext, key: str, draft: PlanBuilder) -> bool:
    """Tell whether a command that runs once is still to run; one whose answer was lost is told, and not sent again."""
    remembered = scene.memory.get(f"command:{key}")
    run = mapping(remembered).get("unproved")
    if run is not None:
        answer = answer_told(mapping(remembered))
        draft.warnings.append(
            f"{scene.title}: the command {key} was sent by run {run} and {answer}: it may have run, and is "
            "not sent again by itself\nlook on the server; if it has run, --forget-owed ends this warning; if it has "
            "not, run it by a task with `run: always`"
        )
    return not remembered


def _owed_by(scene: PlanContext, key: str, draft: PlanBuilder) -> str | None:
    """Return whose change a command waits for: ``""`` for this run's, the run that left it undone; else ``None``."""
    owed = mapping(scene.memory.get(f"owed:command:{key}"))
    run, lost = owed.get("run"), bool(owed.get("unknown"))
    if run is not None and not lost:
        return str(run)
    changes = certain(draft.changes) if lost else draft.changes
    if any(change.aspect not in RUN_ASPECTS for change in changes):
        return ""
    if lost:
        draft.warnings.append(
            f"{scene.title}: the command {key} was sent by run {run} and {answer_told(owed)}: it may have run, and is "
            "not sent again where nothing is sure to change\nlook on the server; --forget-owed ends this warning; if "
            "it has not run, run it by a task with `run: always`"
        )
    return None
