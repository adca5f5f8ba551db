"""Link fields of an asset, or of one of its links: their values in requests, plans and snapshots.

A field that the server does not report is compared with the value that we last wrote. If none is recorded, the field
is written once (dialect, «What is assumed»). That holds only while an answer shows none of the fields: one that shows
others, and not this one, shows that this one is not set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from msauto.aspects.arguments import with_attributes
from msauto.aspects.plan_builder import refuse
from msauto.aspects.positions import beyond, to_frames
from msauto.documents.strict_model import Model
from msauto.model.desired import Position, TaskSource
from msauto.model.fields import FIELDS_OF_EVERY_CLIP, LINK_FIELD, LINK_FIELDS, NUMBERS
from msauto.model.identity import same_text
from msauto.model.live import Asset
from msauto.model.snapshot import Json
from msauto.model.timecode import Timecode, TimecodeError
from msauto.primitives.decimals import read_whole


@with_attributes(LINK_FIELDS)
class FieldsArgs(Model):
    """Link fields, set by SETFIELD. clip_name is not among them: that is title and was."""

    hints: ClassVar = {
        "clip_name": (
            "clip_name cannot be set here",
            "use title: (the new name) and was: (the old name)",
        )
    }


def wire_value(asset: Asset, name: str, value: str | Position, source: TaskSource) -> str:
    """Return what SETFIELD sends for a field; positions are frames. Raises ``PlanningError`` beyond the clip."""
    field = LINK_FIELD[name]
    if field.kind != "position" or value == "":
        return str(value)
    try:
        position = value if isinstance(value, Position) else Position(Timecode.parse(value))
    except TimecodeError as error:
        raise refuse(str(error), source, "write frames or a time code") from error
    frame = to_frames(position, asset, source)
    # The last frame may be given as the frame after it, because the interface does not define which of the two it is.
    end = frame if field.end else frame + 1
    if asset.frames is not None and end > asset.frames:
        raise beyond(f"{name} {position} (frame {frame}) lies beyond the end", asset, source)
    return str(frame)


def shown_field(name: str, text: str) -> Json:
    """Return a field's value as plans and snapshots have it: a number where the field is one."""
    number = read_whole(text) if name in NUMBERS else None
    return text if number is None else number


_NEVER_SET: Final = (None, "", 0)
_SETTABLE = LINK_FIELD.keys() - set(FIELDS_OF_EVERY_CLIP)


def shown_fields(attributes: Mapping[str, str]) -> dict[str, Json]:
    """Return the fields that an answer shows; where one of them was set, those that it does not show are empty."""
    shown: dict[str, Json] = {}
    some_is_set = False
    for name, text in attributes.items():
        if name not in LINK_FIELD:
            continue
        value: Json = read_whole(text) if name in NUMBERS else None
        if value is None:
            value = text
        if value not in _NEVER_SET and name in _SETTABLE:
            some_is_set = True
        shown[name] = value
    if not some_is_set:
        return shown
    return {**dict.fromkeys(LINK_FIELD, ""), **shown}


def is_set(value: Json) -> bool:
    """Return whether a field with this value differs from one that was never set; ``None`` is not shown."""
    return value not in _NEVER_SET


def same_field(one: Json, other: Json) -> bool:
    """Return whether two values of a field are the same: numbers, or texts."""
    return one == other or (
        isinstance(one, str) and isinstance(other, str) and same_text(one, other)
    )
