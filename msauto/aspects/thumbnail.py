"""Stills (interface, «PNG thumbnail»): a file that is fetched if it is missing or differs from what was fetched.

Positions count from the clip's first frame, as everywhere in a playbook; GETICON counts from the in point.
"""

from __future__ import annotations

from msauto.diffing.aspect_definition import Aspect
from msauto.diffing.plan_builder import TASK, PlanBuilder, PlanContext, Trigger, refuse
from msauto.diffing.positions import to_frames, to_point, to_wire
from msauto.interface import requests, versions
from msauto.model.desired import DesiredThumbnail, Position
from msauto.model.live import whole
from msauto.model.plan import Expectation, Json


def plan_thumbnail(
    context: PlanContext, desired: DesiredThumbnail, builder: PlanBuilder, cause: Trigger = TASK
) -> None:
    """Fetch the still, unless the file on disk was fetched from this clip with the same parameters."""
    pos, dur = _point(context, desired), _frames(context, desired.dur, desired)
    asked: dict[str, Json] = {"pos": pos, "dur": dur, "w": desired.w, "h": desired.h, "params": dict(desired.params)}
    asked = {name: value for name, value in asked.items() if value not in (None, {})}
    _check_elements(context, desired)
    if builder.has_file("thumbnail", desired.dest, asked, context, cause):
        return
    versions.require(context.server, versions.Feature.THUMBNAIL)
    number = builder.run("thumbnail", desired.dest, asked, desired.source, cause)
    request = requests.get_thumbnail(
        context.path,
        pos=_wire(context, pos, desired, builder),
        dur=dur,
        w=desired.w,
        h=desired.h,
        params=dict(desired.params),
    )
    expect = Expectation("thumbnail", desired.dest, context.made_from(asked), visible=False)
    builder.fetch(cause.phase, request, desired.dest, [number], expect)


def _point(context: PlanContext, desired: DesiredThumbnail) -> int | None:
    if desired.pos is None:
        return None
    if context.asset.frames:
        return to_point(desired.pos, context.asset, desired.source)
    return to_frames(desired.pos, context.asset, desired.source)


def _frames(context: PlanContext, position: Position | None, desired: DesiredThumbnail) -> int | None:
    return None if position is None else to_frames(position, context.asset, desired.source)


def _wire(context: PlanContext, pos: int | None, desired: DesiredThumbnail, builder: PlanBuilder) -> int | None:
    """Return the position as GETICON counts it: from the in point that the clip has by then."""
    if pos is None:
        return None
    moved = (str(change.after) for change in builder.changes if (change.aspect, change.key) == ("field", "first_frame"))
    in_point = whole(next(moved, context.asset.attributes.get("first_frame"))) or 0
    return to_wire(pos, in_point, desired.source)


def _check_elements(context: PlanContext, desired: DesiredThumbnail) -> None:
    """Refuse a parameter that the graphic template does not have, where the server names those that it has."""
    known = context.asset.parameters
    for name, _ in desired.params if known else ():
        if name not in known:
            raise refuse(
                f"the graphic template {context.title!r} has no element {name!r}",
                desired.source,
                "it has: " + ", ".join(sorted(known)),
            )


ASPECT = Aspect(name="thumbnail", for_good="the file stays where it was saved")
