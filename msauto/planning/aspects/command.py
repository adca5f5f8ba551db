"""Commands that are run rather than compared (interface, «Asset commands»): what they did cannot be seen by reading."""

from __future__ import annotations

from msauto.model.plan import Expect, Json
from msauto.model.wanted import CommandWanted
from msauto.planning.draft import Draft, Scene
from msauto.planning.order import Phase
from msauto.server import requests, versions


def plan_command(scene: Scene, wanted: CommandWanted, draft: Draft) -> None:
    """Run a command: always, once in the life of the asset, or where the asset changes in this run."""
    key = " ".join([wanted.name, *(f"{name}={value}" for name, value in wanted.params)])
    if wanted.run == "once" and scene.memory.get(f"command:{key}"):
        return
    if wanted.run == "changed" and not draft.changes:
        return
    feature = versions.feature_of_command(wanted.name)
    if feature is not None:
        versions.require(scene.server, feature)
    after: Json = dict(wanted.params)
    number = draft.change("run", "command", key, before=None, after=after, source=wanted.source, reversible=False)
    request = requests.command(scene.path, wanted.name, wanted.params)
    draft.send(Phase.RUN, request, [number], Expect("command", key, wanted.run, visible=False))
