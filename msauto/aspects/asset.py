"""The asset as a whole: deletion (interface, «Delete asset»). The plan shows its folder, length and creation."""

from __future__ import annotations

from collections.abc import Iterator

from msauto.aspects.aspect import Aspect, Detail
from msauto.aspects.comparison import mapping
from msauto.aspects.plan_builder import Phase, PlanContext
from msauto.model import requests
from msauto.model.desired import TaskSource
from msauto.model.identity import ClipIdentity
from msauto.model.live import show_folder
from msauto.model.plan import Change, Expectation, Json, Target


def plan_deletion(context: PlanContext, source: TaskSource) -> None:
    """Delete the asset. This cannot be undone."""
    context.builder.look("asset", "folder", "length", "links")
    asset, places = context.asset, [show_folder(place) for place in context.places]
    folder = show_folder(asset.folder) if asset.folder is not None else None
    created = asset.attributes.get("create_time")
    shown: dict[str, Json] = {"folder": folder, "frames": asset.frames, "create_time": created}
    shown |= {"links": list(places)} if places else {}
    number = context.builder.change("delete", "asset", context.title, shown, None, source, reversible=False)
    gone = [Expectation("asset", context.title, None), *(Expectation("link", place, None) for place in places)]
    context.builder.send(Phase.ASSET_DELETE, requests.delete_asset(context.path), [number], *gone)


def _details(change: Change, target: Target) -> Iterator[Detail]:
    """Yield what is lost with a deleted clip: folder, length, creation time, and the entries that show it."""
    lost = mapping(change.before)
    folder = target.folder if lost.get("folder") is None else str(lost["folder"])
    if folder is not None:
        yield Detail("in", folder or "the root folder")
    if lost.get("frames") is not None:
        yield Detail("length", lost["frames"], "frames")
    created = lost.get("create_time") or target.clip.create_time
    if created is not None:
        yield Detail("created", created)
    if target.places:
        yield Detail("also shown as", list(target.places))


ASPECT = Aspect(
    name="asset",
    looks={
        "asset": lambda *_: True,
        "folder": lambda asset, *_: asset.folder,
        "finalized": lambda asset, *_: asset.finalized,
        "create_time": lambda asset, *_: asset.attributes.get("create_time"),
        "length": lambda asset, *_: [
            ClipIdentity.of(asset).frames,
            *map(asset.attributes.get, ("frame_time", "create_time")),
        ],
    },
    holds=lambda expect, live: (live.asset is None) == (expect.desired is None),
    show=lambda _, live: live.asset.title if live.asset else None,
    needs_asset=False,
    survives_deletion=True,
    deletes_target=True,
    details=lambda change, target: tuple(_details(change, target)),
    for_good="a deleted asset does not come back",
)
