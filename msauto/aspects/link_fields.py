"""Link fields of an asset, or of one of its links: their values in requests and plans, and what is known of them.

A field that the server does not report is compared with the value that we last wrote. If none is recorded, the field
is written once (field notes, «fields that the Clip XML does not report»). That holds only while an answer shows none of
the fields: one that shows others, and not this one, shows that this one is not set.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from msauto.aspects.arguments import with_attributes
from msauto.aspects.aspect import Item
from msauto.aspects.comparison import as_number, same_value
from msauto.aspects.plan_builder import PlanContext, left_alone, refuse
from msauto.aspects.positions import beyond, to_frames
from msauto.documents.strict_model import Model
from msauto.model.desired import Position, TaskSource
from msauto.model.fields import FIELDS_OF_EVERY_CLIP, LINK_FIELD, LINK_FIELDS, NUMBERS
from msauto.model.live import Asset
from msauto.model.plan import Basis, Json
from msauto.model.timecode import Timecode, TimecodeError


@with_attributes(LINK_FIELDS)
class FieldsArgs(Model):
    """Link fields, set by SETFIELD. clip_name is not among them: that is title and was."""

    hints: ClassVar = {
        "clip_name": ("clip_name cannot be set here", "use title: (the new name) and was: (the old name)")
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
    if asset.frames is not None and frame > (asset.frames if field.end else asset.frames - 1):
        raise beyond(f"{name} {position} (frame {frame}) lies beyond the end", asset, source)
    return str(frame)


def shown_field(name: str, text: str) -> Json:
    """Return a field's value as plans show it: a number where the field is one."""
    number = as_number(text) if name in NUMBERS else None
    return text if number is None else number


def compare_field(
    context: PlanContext, name: str, value: str, attributes: Mapping[str, str], what: str, link: str = ""
) -> tuple[Json, Basis] | None:
    """Return the value that a field has, as plans show it, and how we know; ``None`` where it is not to be written.

    ``link`` is the key of the link that the field belongs to, ``what`` names the field in a warning.
    """
    item = f"link-field:{link}#{name}" if link else f"field:{name}"
    context.builder.look(item)
    before, remembered = attributes.get(name), context.memory.get(item)
    basis: Basis = "live"
    if before is None and context.memory.get(item.replace("field:", "reported:", 1)) is True:
        before = ""  # this server showed the field before: not shown is empty
    elif before is None:
        if remembered is None:
            return None, "none"
        lost = _is_set(name, str(remembered)) and _shows_fields(attributes)
        before, basis = ("", "live") if lost else (str(remembered), "ledger")
    if same_value(name, before, value):
        return None
    still = context.still.get(item, before)
    if not same_value(name, before, None if still is None else str(still)):
        context.builder.warnings.append(left_alone(what, shown_field(name, before), still))
        return None
    return shown_field(name, before), basis


def _shows_fields(attributes: Mapping[str, str]) -> bool:
    """Return whether an answer shows a field that was set."""
    settable = (field.name for field in LINK_FIELDS if field.name not in FIELDS_OF_EVERY_CLIP)
    return any(_is_set(name, attributes.get(name, "")) for name in settable)


def _is_set(name: str, value: str) -> bool:
    """Return whether a field with this value differs from one that was never set."""
    return value != "" and not (name in NUMBERS and as_number(value) == 0)


def field_holds(name: str, value: str, attributes: Mapping[str, str], *, visible: bool) -> bool | None:
    """Return whether a field has the value; ``None``: reading cannot show it. ``visible``: it was shown before."""
    shown = attributes.get(name)
    if shown is None and not visible:
        return False if _is_set(name, value) and _shows_fields(attributes) else None
    return same_value(name, shown, value)


def remember_field(item: str, value: Json, *, reported: bool) -> Iterator[Item]:
    """Keep a value that the server does not report, of an item ``field:…`` or ``link-field:…``."""
    if reported:
        yield item.replace("field:", "reported:", 1), True
    yield item, None if reported else value
