"""The asset's title: SETFIELD ``clip_name`` (interface, «Link»), addressed by the title that it still has."""

from __future__ import annotations

from msauto.aspects.aspect import Aspect, UndoContext
from msauto.aspects.plan_builder import Phase, PlanContext
from msauto.model import requests
from msauto.model.desired import Sourced
from msauto.model.identity import same_text
from msauto.model.live import parse_folder
from msauto.model.plan import Address, Expectation
from msauto.model.ports import LiveTarget


def plan_title(context: PlanContext, title: Sourced[str]) -> None:
    """Rename the asset where it has another title."""
    live_title = context.live_title
    context.builder.look("title")
    if same_text(live_title, title.value):
        return
    if not context.address.namespace:
        requests.require_address(context.server, Address(title.value))  # by that title it is read again
    number = context.builder.change("change", "title", "title", live_title, title.value, title.source)
    request = requests.set_field(context.path_before, "clip_name", title.value)
    context.builder.send(Phase.RENAME, request, [number], Expectation("title", "title", title.value))


def _holds(expect: Expectation, live: LiveTarget) -> bool:
    title = live.asset.title if live.asset else None
    return title is None or same_text(title, str(expect.desired))


def _undo(context: UndoContext) -> Sourced[str] | None:
    """Return the former title of an asset that is found by its id; one found by title is renamed by that."""
    title = context.asset.title
    for one in context.of("title") if context.record.target.address.namespace else ():
        before, after = str(one.change.before), str(one.change.after)
        if title is None or same_text(title, after):
            return context.sourced(before)
        if not same_text(title, before):
            context.notes.append(f"the title is left alone: it is {title!r} now, and the run wrote {after!r}")
    return None


ASPECT = Aspect(
    name="title",
    declare=lambda task: None if task.args.title is None else Sourced(task.args.title, task.source("title")),
    merge=lambda merging, parts: merging.one("the title", parts),
    plan=plan_title,
    looks={"title": lambda asset, *_: asset.title},
    holds=_holds,
    show=lambda _, live: live.asset.title if live.asset else None,
    alters=lambda *_: {"files", "orig_name"},
    is_rename=True,
    titles=lambda change: ("the title", str(change.before), str(change.after)),
    takes=lambda change, target: None if target.folder is None else (*parse_folder(target.folder), str(change.after)),
    undo=_undo,
)
