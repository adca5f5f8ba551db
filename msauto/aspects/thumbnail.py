"""Stills (interface, «PNG thumbnail»): a file that is fetched if it is missing or differs from what was fetched.

Positions count from the clip's first frame, as everywhere in a playbook; GETICON counts from the in point.
"""

from __future__ import annotations

from msauto.aspects.aspect import Aspect
from msauto.aspects.plan_builder import TASK, PlanContext, Trigger, refuse
from msauto.aspects.positions import to_frames, to_point, to_wire
from msauto.model import requests
from msauto.model.desired import DesiredThumbnail
from msauto.model.live import whole
from msauto.model.plan import Json


def plan_thumbnail(context: PlanContext, desired: DesiredThumbnail, cause: Trigger = TASK) -> None:
    """Fetch the still, unless the file on disk was fetched from this clip with the same parameters."""
    asset, source = context.asset, desired.source
    find = to_point if asset.frames else to_frames
    pos = None if desired.pos is None else find(desired.pos, asset, source)
    dur = None if desired.dur is None else to_frames(desired.dur, asset, source)
    params: dict[str, Json] = dict(desired.params)
    named: dict[str, Json] = {"pos": pos, "dur": dur, "w": desired.w, "h": desired.h, "params": params}
    asked: dict[str, Json] = {name: value for name, value in named.items() if value not in (None, {})}
    for name, _ in desired.params if asset.parameters else ():
        if name not in asset.parameters:
            raise refuse(
                f"the graphic template {context.title!r} has no element {name!r}",
                source,
                "it has: " + ", ".join(sorted(asset.parameters)),
            )
    if context.has_file(desired, asked, cause):
        return
    requests.require(context.server, requests.Feature.THUMBNAIL)
    if pos is not None:
        pos = to_wire(pos, _in_point_after(context), source)
    request = requests.get_thumbnail(
        context.path, pos=pos, dur=dur, w=desired.w, h=desired.h, params=dict(desired.params)
    )
    context.fetch(desired, asked, request, cause)


def _in_point_after(context: PlanContext) -> int:
    """Return the in point that the clip has by then: GETICON counts from it."""
    changes = context.builder.changes
    moved = (str(change.after) for change in changes if change.aspect == "field" and change.key == "first_frame")
    return whole(next(moved, context.asset.attributes.get("first_frame"))) or 0


ASPECT = Aspect(
    name="thumbnail", run=plan_thumbnail, is_file=True, in_frames=True, for_good="the file stays where it was saved"
)
