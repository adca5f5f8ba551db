"""The asset as a whole: deletion (interface, «Delete asset»). The plan shows its folder, length and creation."""

from __future__ import annotations

from collections.abc import Sequence

from msauto.aspects.aspect import Aspect, Detail, part_of
from msauto.aspects.comparison import mapping
from msauto.aspects.plan_builder import Phase, PlanContext
from msauto.model import requests
from msauto.model.desired import TaskSource
from msauto.model.live import show_folder
from msauto.model.plan import Change, Target
from msauto.model.ports import LiveTarget
from msauto.model.snapshot import Effect, Json, Part


class AssetDeletion(Aspect):
    """The clip itself, under the key ``""``, and its home. Its part is the source of the task that deletes it."""

    name = "asset"
    deletes = "asset"
    for_good = "a deleted asset does not come back"

    def plan(self, context: PlanContext, part: TaskSource) -> None:
        """Delete the asset, and with it every entry that shows it. This cannot be undone."""
        asset = context.asset
        places = [show_folder(place) for place in context.places]
        folder = None if asset.folder is None else show_folder(asset.folder)
        shown: dict[str, Json] = {
            "folder": folder,
            "frames": asset.frames,
            "create_time": asset.attributes.get("create_time"),
        }
        if places:
            shown["links"] = [*places]
        builder = context.builder
        number = builder.change(
            "delete", self.name, context.title, shown, None, part, reversible=False
        )
        gone = []
        for key, value in part_of(self, context.live).items():
            gone.append(Effect(self.name, key, value))
        for place in places:
            gone.append(Effect("link", place, {}, whole=False))
        builder.send(Phase.ASSET_DELETE, requests.delete_asset(context.path), [number], *gone)

    def things(self, live: LiveTarget) -> Part | None:
        """Return whether the clip is there, and in which folder."""
        if live.channel is not None:
            return None
        if live.asset is None:
            return {}
        part: dict[str, Json] = {"": True}
        if live.asset.folder is not None:
            part["folder"] = show_folder(live.asset.folder)
        return part

    def details(self, change: Change, target: Target) -> Sequence[Detail]:
        """Return what is lost with a deleted clip: folder, length, creation time, and the entries that show it."""
        lost = mapping(change.before)
        details = []
        folder = lost.get("folder")
        if folder is None:
            folder = target.folder
        if folder is not None:
            details.append(Detail("in", folder or "the root folder"))
        if lost.get("frames") is not None:
            details.append(Detail("length", lost["frames"], "frames"))
        created = lost.get("create_time") or target.clip.create_time
        if created is not None:
            details.append(Detail("created", created))
        if target.places:
            details.append(Detail("also shown as", list(target.places)))
        if change.outside is not None:
            details.append(Detail("changed outside", change.outside.left))
        return details
