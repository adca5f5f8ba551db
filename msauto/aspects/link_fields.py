"""Link fields of a clip and of its links, as values on the wire and in plans (interface, «Link»)."""

from __future__ import annotations

from msauto.diffing.builder import PlanContext
from msauto.diffing.comparison import NUMBERS, as_number
from msauto.diffing.positions import beyond, position_of, to_frames
from msauto.model.desired import Position, TaskSource
from msauto.model.plan import Json

POSITIONS = frozenset({"first_frame", "last_frame", "icon_pos"})


def wire_value(context: PlanContext, name: str, value: str | Position, source: TaskSource) -> str:
    """Return what SETFIELD sends for a field; positions are frames. Raises ``PlanningError`` beyond the clip."""
    if name not in POSITIONS or value == "":
        return str(value)
    position = position_of(value, source)
    frame = to_frames(position, context.asset, source)
    # The last frame may be given as the frame after it: the interface does not say which of the two it is.
    end = context.asset.frames
    if end is not None and frame > (end if name == "last_frame" else end - 1):
        raise beyond(f"{name} {position} (frame {frame}) lies beyond the end", context.asset, source)
    return str(frame)


def shown_field(name: str, text: str | None) -> Json:
    """Return a field's value as plans show it: a number where the field is one."""
    number = as_number(text) if name in NUMBERS else None
    return text if number is None else number
