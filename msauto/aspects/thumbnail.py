"""Stills (interface, «PNG thumbnail»): a file that is fetched where it is not there yet, or is not what was fetched.

Positions count from the clip's first frame, as everywhere in a playbook; GETICON counts from the in point.
"""

from __future__ import annotations

from msauto.diffing.builder import TASK, PlanBuilder, PlanContext, Trigger, refuse
from msauto.diffing.positions import to_frames, to_point, to_wire
from msauto.interface import requests, versions
from msauto.model.desired import DesiredThumbnail, Position
from msauto.model.live import whole
from msauto.model.plan import Expectation, Json


def plan_thumbnail(scene: PlanContext, wanted: DesiredThumbnail, draft: PlanBuilder, cause: Trigger = TASK) -> None:
    """Fetch the still, unless the file on disk is the one that was fetched of this very clip with these parameters."""
    pos, dur = _point(scene, wanted), _frames(scene, wanted.dur, wanted)
    asked: dict[str, Json] = {"pos": pos, "dur": dur, "w": wanted.w, "h": wanted.h, "params": dict(wanted.params)}
    asked = {name: value for name, value in asked.items() if value not in (None, {})}
    _check_elements(scene, wanted)
    if draft.has_file("thumbnail", wanted.dest, asked, scene, cause):
        return
    versions.require(scene.server, versions.Feature.THUMBNAIL)
    number = draft.run("thumbnail", wanted.dest, asked, wanted.source, cause)
    request = requests.get_thumbnail(
        scene.path, pos=_wire(scene, pos, wanted, draft), dur=dur, w=wanted.w, h=wanted.h, params=dict(wanted.params)
    )
    expect = Expectation("thumbnail", wanted.dest, scene.made_from(asked), visible=False)
    draft.fetch(cause.phase, request, wanted.dest, [number], expect)


def _point(scene: PlanContext, wanted: DesiredThumbnail) -> int | None:
    if wanted.pos is None:
        return None
    if scene.asset.frames:
        return to_point(wanted.pos, scene.asset, wanted.source)
    return to_frames(wanted.pos, scene.asset, wanted.source)


def _frames(scene: PlanContext, position: Position | None, wanted: DesiredThumbnail) -> int | None:
    return None if position is None else to_frames(position, scene.asset, wanted.source)


def _wire(scene: PlanContext, pos: int | None, wanted: DesiredThumbnail, draft: PlanBuilder) -> int | None:
    """Return the position as GETICON counts it: from the in point that the clip has by then."""
    if pos is None:
        return None
    moved = (str(change.after) for change in draft.changes if (change.aspect, change.key) == ("field", "first_frame"))
    in_point = whole(next(moved, scene.asset.attributes.get("first_frame"))) or 0
    return to_wire(pos, in_point, wanted.source)


def _check_elements(scene: PlanContext, wanted: DesiredThumbnail) -> None:
    """Refuse a parameter that the graphic template does not have, where the server names those that it has."""
    known = scene.asset.parameters
    for name, _ in wanted.params if known else ():
        if name not in known:
            raise refuse(
                f"the graphic template {scene.title!r} has no element {name!r}",
                wanted.source,
                "it has: " + ", ".join(sorted(known)),
            )
