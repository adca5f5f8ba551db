"""The asset as a whole: deletion (interface, «Delete asset»). The plan shows its folder, length and creation."""

from __future__ import annotations

from msauto.aspects.aspect import Aspect
from msauto.aspects.plan_builder import Phase, PlanContext
from msauto.interface import requests
from msauto.model.desired import TaskSource
from msauto.model.identity import ClipIdentity
from msauto.model.live import show_folder
from msauto.model.plan import Expectation, Json


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
    for_good="a deleted asset does not come back",
)
