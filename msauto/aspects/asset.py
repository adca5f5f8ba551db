"""The asset as a whole: deletion (interface, «Delete asset»). The plan shows its folder, length and creation."""

from __future__ import annotations

from typing import Any

from msauto.diffing.aspect_definition import Aspect
from msauto.diffing.plan_builder import PlanContext
from msauto.diffing.request_order import Phase
from msauto.interface import requests
from msauto.model.desired import TaskSource
from msauto.model.live import Asset, show_folder
from msauto.model.plan import Expectation, Json
from msauto.model.ports import LiveTarget


def plan_deletion(context: PlanContext, source: TaskSource) -> None:
    """Delete the asset. This cannot be undone."""
    context.builder.look("asset", "folder", "length", "links")
    number = context.builder.change("delete", "asset", context.title, _shown(context), None, source, reversible=False)
    gone = [
        Expectation("asset", context.title, None),
        *(Expectation("link", show_folder(place), None) for place in context.places),
    ]
    context.builder.send(Phase.ASSET_DELETE, requests.delete_asset(context.path), [number], *gone)


def _shown(context: PlanContext) -> dict[str, Json]:
    asset = context.asset
    folder = show_folder(asset.folder) if asset.folder is not None else None
    shown: dict[str, Json] = {
        "folder": folder,
        "frames": asset.frames,
        "create_time": asset.attributes.get("create_time"),
    }
    return shown | ({"links": [show_folder(place) for place in context.places]} if context.places else {})


def _holds(expect: Expectation, live: LiveTarget) -> bool:
    return (live.asset is None) == (expect.desired is None)


def _length(asset: Asset, *_: Any) -> Json:
    return [asset.frames, asset.attributes.get("frame_time"), asset.attributes.get("create_time")]


ASPECT = Aspect(
    name="asset",
    looks={
        "asset": lambda *_: True,
        "folder": lambda asset, *_: asset.folder,
        "finalized": lambda asset, *_: asset.finalized,
        "create_time": lambda asset, *_: asset.attributes.get("create_time"),
        "length": _length,
    },
    holds=_holds,
    show=lambda _, live: live.asset.title if live.asset else None,
    survives_deletion=True,
    for_good="a deleted asset does not come back",
)
