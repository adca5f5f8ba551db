"""The asset's title: SETFIELD ``clip_name`` (interface, «Link»), addressed by the title that it still has."""

from __future__ import annotations

from collections.abc import Sequence

from msauto.aspects.arguments import TaskArguments
from msauto.aspects.aspect import Aspect, UndoContext, changed_outside
from msauto.aspects.merging import Merging
from msauto.aspects.plan_builder import Phase, PlanContext, is_kept, left_alone, refuse
from msauto.model import requests
from msauto.model.desired import Sourced
from msauto.model.identity import same_text
from msauto.model.plan import Address
from msauto.model.ports import LiveTarget
from msauto.model.snapshot import Effect, Json, Part


class Title(Aspect):
    """The title, under the key ``""``. One that an answer does not report may be any."""

    name = "title"

    def declare(self, task: TaskArguments) -> Sourced[str] | None:
        """Return the title that a task names."""
        return None if task.args.title is None else Sourced(task.args.title, task.source("title"))

    def merge(self, merging: Merging, parts: Sequence[Sourced[str]]) -> Sourced[str] | None:
        """Return the title of several tasks."""
        return merging.one("the title", parts)

    def plan(self, context: PlanContext, part: Sourced[str]) -> None:
        """Rename the asset where it has another title."""
        live = context.live_title
        title = part.value
        source = part.source
        builder = context.builder
        effect = Effect(self.name, "", live, title)
        if same_text(live, title):
            builder.hold(effect)
            return
        required_live = context.required_live.get(f"{self.name}:", live)
        if not same_text(live, str(required_live)):
            context.keep(left_alone("the title", live, required_live))
            return
        outside = changed_outside(self, context, "", live)
        if outside is not None and is_kept(
            context, (self.name, self.name), outside, live, source, title
        ):
            what = f"{context.title}: the title was changed outside, and the task that keeps it names the clip by it"
            raise refuse(what, source, f"write `title: {live}`, or `outside: overwrite`")
        if not context.address.namespace:
            # By that title it is read again.
            requests.wire_address(context.server, Address(title))
        number = builder.change("change", self.name, self.name, live, title, source)
        request = requests.set_field(context.path_before, "clip_name", title)
        builder.send(Phase.RENAME, request, [number], effect)
        builder.altered |= {"files", "orig_name"}
        builder.warn_of_blanks(f"{context.title}: the title", live, title, source)
        if context.asset.folder is not None:
            builder.claimed_places.append(((*context.asset.folder, title), source))

    def things(self, live: LiveTarget) -> Part | None:
        """Return the title."""
        return None if live.asset is None else {"": live.asset.title or ""}

    def misses(self, named: Json, shown: Json) -> Sequence[str]:
        """Compare two titles, where both are known."""
        if not named or not shown:
            return ()
        return () if same_text(str(named), str(shown)) else ("",)

    def undo(self, context: UndoContext) -> Sourced[str] | None:
        """Return the former title of an asset that is found by its id; one found by title is renamed by that."""
        done = context.things.get(self.name, {}).get("")
        if done is None or not context.record.target.address.namespace:
            return None
        context.required_live[f"{self.name}:"] = done.after
        return context.sourced(str(done.before))
