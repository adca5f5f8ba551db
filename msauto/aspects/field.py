"""Link fields: one SETFIELD for each that differs (interface, «Link»)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

from msgspec import UNSET

from msauto.aspects.arguments import ExportedPart, TaskArguments, asset_key, exported_position
from msauto.aspects.aspect import POINTS, Live, TimelineItem, TimelinePlace, UndoContext, Value, frames_of, part_of
from msauto.aspects.comparison import same_value, text_of
from msauto.aspects.link_fields import FieldsArgs, is_set, same_field, shown_field, shown_fields, wire_value
from msauto.aspects.merging import Merging
from msauto.aspects.plan_builder import Phase, PlanContext, refuse
from msauto.aspects.positions import InAndOut
from msauto.documents.writer import CommentedValue
from msauto.model import requests
from msauto.model.desired import Position, Sourced
from msauto.model.fields import LINK_FIELDS, Attribute
from msauto.model.live import Asset, AssetSnapshot
from msauto.model.plan import Basis, Change, Target
from msauto.model.ports import LiveTarget
from msauto.model.server import Dialect
from msauto.model.snapshot import Effect, Json, Part, Snapshot
from msauto.model.timecode import TimecodeError

Fields = Mapping[str, Sourced[str | Position]]
"""Link fields by name: texts, or positions for first_frame, last_frame and icon_pos."""

_IN_AND_OUT = frozenset({"first_frame", "last_frame"})
_POINTS = {"first_frame": "In", "last_frame": "Out", "icon_pos": "Icon"}
"""Fields that are positions of the clip, and how the timeline names them."""


class LinkFields(Value):
    """The link fields of an asset, by name."""

    name = "field"
    per_entry = True
    keys: ClassVar = {"fields": asset_key(FieldsArgs, "link fields")}
    missing = UNSET

    # Playbooks -------------------------------------------------------------------------------------------------------

    def declare(self, task: TaskArguments) -> Fields | None:
        """Return the fields that a task names."""
        fields = task.link_fields(task.args.fields) if task.args.fields else {}
        return {name: Sourced(value, task.source("fields", name)) for name, value in fields.items()} or None

    def merge(self, merging: Merging, parts: Sequence[Fields]) -> Fields:
        """Return the fields of several tasks."""
        return merging.mapping("the field", parts)

    def for_clip(self, part: Fields, asset: Asset, title: str | None) -> Fields:
        """Return the fields that another entry of the clip does not have yet: the others need no request."""
        missing: dict[str, Sourced[str | Position]] = {}
        for name, sourced in part.items():
            live, value = asset.attributes.get(name), sourced.value
            with suppress(TimecodeError):  # a position that is invalid is reported where it is used
                text = str(
                    value.to_frames(asset.rate or Fraction(1)) if live and isinstance(value, Position) else value
                )
                if live is not None and same_value(name, live, text):
                    continue
            missing[name] = sourced
        return missing

    def export(self, snapshot: AssetSnapshot, dialect: Dialect) -> ExportedPart:
        """Return the fields that are set; a position as a time code."""
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

    # Planning --------------------------------------------------------------------------------------------------------

    def plan(self, context: PlanContext, part: Fields) -> None:
        """Write each field that differs."""
        shown, builder = part_of(self, context.live) or {}, context.builder
        for name, sourced in part.items():
            value = wire_value(context.asset, name, sourced.value, sourced.source)
            desired, (before, basis) = shown_field(name, value), self._known(context, name, shown)
            effect = Effect(self.name, name, shown.get(name, ""), desired, visible=basis == "live")
            if not self.is_due(context, effect, before, basis, f"field {name}", sourced.source):
                continue
            requests.require_field(context.server, name)
            number = builder.change("change", self.name, name, before, desired, sourced.source, basis=basis)
            builder.send(Phase.FIELD, requests.set_field(context.path, name, value), [number], effect)
            if name in _IN_AND_OUT:
                builder.altered.add("frames")
        moved = [each for each in builder.changes if each.aspect == self.name and each.key in _IN_AND_OUT]
        if moved:
            builder.checks.append(partial(_reversed_points, part, moved))

    def _known(self, context: PlanContext, name: str, shown: Part) -> tuple[Json, Basis]:
        """Return the value that a field has, and how we know."""
        remembered = context.memory.get(f"{self.name}:{name}")
        value = None if remembered is None else shown_field(name, str(remembered))
        if self.hidden(value, shown.get(name)):
            return value, "ledger"
        if name in context.asset.attributes:
            return shown[name], "live"
        if context.memory.get(f"reported:{name}") is True:
            return "", "live"  # this server showed the field before: not shown is empty
        if value is None:
            return None, "none"
        return ("", "live") if is_set(value) and name in shown else (value, "ledger")

    # The snapshot ----------------------------------------------------------------------------------------------------

    def things(self, live: LiveTarget) -> Part | None:
        """Return the fields that the answer shows, or shows to be empty."""
        return None if live.asset is None else shown_fields(live.asset.attributes)

    def misses(self, named: Json, shown: Json) -> Sequence[str]:
        """Compare two values."""
        return () if same_field(named, shown) or self.hidden(named, shown) else ("",)

    def hidden(self, named: Json, shown: Json) -> Sequence[str]:
        """Return whether the value is a number 0, which an answer may leave out: then the ledger holds it."""
        return ("",) if named == 0 and shown == "" else ()

    # Undo, shown -----------------------------------------------------------------------------------------------------

    def former(self, change: Change, context: UndoContext) -> str:
        """Return the value before."""
        return text_of(change.before)

    def timeline(self, change: Change, target: Target, live: Live) -> Iterator[TimelineItem]:
        """Yield a point of the clip before and after."""

        def place(value: Json) -> TimelinePlace | None:
            frame = frames_of(value)
            return None if frame is None else TimelinePlace(POINTS, frame, 0, _POINTS[change.key])

        if change.key in _POINTS:
            yield TimelineItem(change.action, change.key, place(change.before), place(change.after))


def _reversed_points(
    part: Fields, moved: Sequence[Change], context: PlanContext, after: Callable[[], Snapshot]
) -> Iterator[str]:
    """Check the in point before the out point; where tasks name both, it is an error."""
    span = InAndOut.of(context.asset, after())
    if not span.is_reversed:
        return
    message = f"the IN point (first_frame, frame {span.first}) lies after the OUT point (last_frame, frame {span.last})"
    if part.keys() >= _IN_AND_OUT and not context.still:  # undo brings back what there was
        raise refuse(message, moved[0].source, "let first_frame be at most last_frame")
    yield f"{message} ({moved[0].source.place})"


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
