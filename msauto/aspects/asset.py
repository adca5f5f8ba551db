"""The asset as a whole: deletion (interface, «Delete asset»). The plan shows what goes: folder, length, creation."""

from __future__ import annotations

from msauto.diffing.builder import PlanBuilder, PlanContext
from msauto.diffing.order import Phase
from msauto.interface import requests
from msauto.model.desired import TaskSource
from msauto.model.live import show_folder
from msauto.model.plan import Expectation, Json


def plan_deletion(context: PlanContext, source: TaskSource, builder: PlanBuilder) -> None:
    """Delete the asset. Cannot be taken back."""
    builder.look("asset", "folder", "length", "links")
    number = builder.change(
        "delete", "asset", context.title, before=_shown(context), after=None, source=source, reversible=False
    )
    gone = [
        Expectation("asset", context.title, None),
        *(Expectation("link", show_folder(place), None) for place in context.places),
    ]
    builder.send(Phase.ASSET_DELETE, requests.delete_asset(context.path), [number], *gone)


def _shown(context: PlanContext) -> dict[str, Json]:
    asset = context.asset
    folder = show_folder(asset.folder) if asset.folder is not None else None
    shown: dict[str, Json] = {
        "folder": folder,
        "frames": asset.frames,
        "create_time": asset.attributes.get("create_time"),
    }
    return shown | ({"links": [show_folder(place) for place in context.places]} if context.places else {})
