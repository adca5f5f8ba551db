"""Link fields: one SETFIELD for each that differs (interface, «Link»)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any

from msgspec import structs

from msauto.aspects.arguments import ExportedPart, TaskArguments, asset_key, exported_position
from msauto.aspects.aspect import POINTS, Aspect, Item, TimelineItem, TimelinePlace, UndoContext, frames_of
from msauto.aspects.comparison import same_value, text_of
from msauto.aspects.link_fields import FieldsArgs, compare_field, field_holds, remember_field, shown_field, wire_value
from msauto.aspects.plan_builder import Phase, PlanContext, refuse
from msauto.aspects.positions import InAndOut
from msauto.documents.writer import CommentedValue
from msauto.model import requests
from msauto.model.desired import Position, Sourced
from msauto.model.fields import LINK_FIELDS, Attribute
from msauto.model.live import Asset, AssetSnapshot
from msauto.model.plan import Change, Expectation, Json, Target
from msauto.model.ports import LiveTarget
from msauto.model.server import Dialect
from msauto.model.timecode import TimecodeError

Fields = Mapping[str, Sourced[str | Position]]
"""Link fields by name: texts, or positions for first_frame, last_frame and icon_pos."""


def _declare(task: TaskArguments) -> Fields | None:
    fields = task.link_fields(task.args.fields) if task.args.fields else {}
    return {name: Sourced(value, task.source("fields", name)) for name, value in fields.items()} or None


def plan_fields(context: PlanContext, fields: Fields) -> None:
    """Write each field that differs."""
    for name, sourced in fields.items():
        value = wire_value(context.asset, name, sourced.value, sourced.source)
        known = compare_field(context, name, value, context.asset.attributes, f"{context.title}: field {name}")
        if known is None:
            context.builder.holding.append(Expectation("field", name, value))
            continue
        requests.require_field(context.server, name)
        before, basis = known
        after = shown_field(name, value)
        number = context.builder.change("change", "field", name, before, after, sourced.source, basis=basis)
        expect = Expectation("field", name, value, visible=basis == "live")
        context.builder.send(Phase.FIELD, requests.set_field(context.path, name, value), [number], expect)


def _not_yet(fields: Fields, entry: Asset, _: str | None) -> Fields:
    """Return the link fields that another entry of the clip does not have yet: the others need no request."""
    missing: dict[str, Sourced[str | Position]] = {}
    for name, sourced in fields.items():
        live, value = entry.attributes.get(name), sourced.value
        with suppress(TimecodeError):  # a position that is invalid is reported where it is used
            text = str(value.to_frames(entry.rate or Fraction(1)) if live and isinstance(value, Position) else value)
            if live is not None and same_value(name, live, text):
                continue
        missing[name] = sourced
    return missing


def _warn(context: PlanContext, fields: Fields, after: Callable[[], Asset]) -> Iterator[str]:
    """Check the in point before the out point; where tasks name both, it is an error."""
    points = {"first_frame", "last_frame"}
    moved = [change for change in context.builder.changes if change.aspect == ASPECT.name and change.key in points]
    if not moved:
        return
    span = InAndOut.of(after())
    if not span.is_reversed:
        return
    message = f"the IN point (first_frame, frame {span.first}) lies after the OUT point (last_frame, frame {span.last})"
    if points <= fields.keys() and not context.still:  # undo brings back what there was
        raise refuse(message, moved[0].source, "let first_frame be at most last_frame")
    yield f"{message} ({moved[0].source.place})"


def _leaves(asset: Asset, expect: Expectation) -> Asset:
    return structs.replace(asset, attributes={**asset.attributes, expect.key: str(expect.desired)})


def _holds(expect: Expectation, live: LiveTarget) -> bool | None:
    attributes = live.asset.attributes if live.asset else {}
    return field_holds(expect.key, str(expect.desired), attributes, visible=expect.visible)


def _remember(expect: Expectation, live: LiveTarget) -> Iterator[Item]:
    reported = expect.visible or (live.asset is not None and expect.key in live.asset.attributes)
    return remember_field(f"field:{expect.key}", expect.desired, reported=reported)


def _undo(context: UndoContext) -> Fields:
    changes = [one.change for one in context.of("field")]
    context.still.update({f"field:{change.key}": change.after for change in changes})
    return {change.key: context.sourced(text_of(change.before)) for change in changes}


_POINTS = {"first_frame": "In", "last_frame": "Out", "icon_pos": "Icon"}
"""Fields that are positions of the clip, and how the timeline names them."""


def _timeline(change: Change, _: Target) -> Iterator[TimelineItem]:
    def place(value: Json) -> TimelinePlace | None:
        frame = frames_of(value)
        return None if frame is None else TimelinePlace(POINTS, frame, 0, _POINTS[change.key])

    if change.key in _POINTS:
        yield TimelineItem(change.action, change.key, place(change.before), place(change.after))


# Export ------------------------------------------------------------------------------------------------------------


def _export(snapshot: AssetSnapshot, _: Dialect) -> ExportedPart:
    asset, fields = snapshot.asset, dict[str, Any]()
    for each in LINK_FIELDS:
        value = asset.attributes.get(each.name)
        if not value:
            continue
        if each.kind != "position":
            fields[each.name] = value
        elif (why := _unfit(each, value, asset)) is not None:
            fields[each.name] = CommentedValue((f"{each.name} is left out: {why}",))
        else:
            fields[each.name] = exported_position(int(value), asset.rate)
    return ExportedPart(fields)


def _unfit(attribute: Attribute, value: str, asset: Asset) -> str | None:
    """Return why a field cannot be written as a position; ``None`` if it can."""
    if not (value.strip().isascii() and value.strip().isdecimal()):
        return f"{value!r} is not a valid position for a task"
    if attribute.end and asset.finalized is False:
        return "it grows while the clip is being recorded"
    end = asset.frames
    if end is not None and int(value) > (end if attribute.end else end - 1):
        return f"frame {value} is beyond the end of the clip ({end} frames)"
    return None


ASPECT = Aspect(
    name="field",
    belongs_to_entry=True,
    keys={"fields": asset_key(FieldsArgs, "link fields")},
    declare=_declare,
    export=_export,
    merge=lambda merging, parts: merging.mapping("the field", parts),
    of_entry=_not_yet,
    plan=plan_fields,
    looks={"field": lambda asset, _, name: asset.attributes.get(name)},
    holds=_holds,
    show=lambda expect, live: live.asset.attributes.get(expect.key) if live.asset else None,
    alters=lambda change, _: {"frames"} if change.key in {"first_frame", "last_frame"} else (),
    leaves=_leaves,
    warn=_warn,
    remember=_remember,
    value_items=lambda name: (f"field:{name}",),
    is_value=True,
    subject=lambda change: change.key,
    timeline=_timeline,
    undo=_undo,
)
