"""Link fields: one SETFIELD for each that differs (interface, «Link»)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

from msgspec import UNSET

from msauto.aspects.arguments import ExportedPart, TaskArguments, asset_key, exported_position
from msauto.aspects.aspect import (
    POINTS,
    Live,
    TimelineItem,
    TimelinePlace,
    UndoContext,
    Value,
    frames_of,
    part_of,
)
from msauto.aspects.comparison import same_value, text_of
from msauto.aspects.link_fields import (
    FieldsArgs,
    is_set,
    same_field,
    shown_field,
    shown_fields,
    wire_value,
)
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
        return {
            name: Sourced(value, task.source("fields", name)) for name, value in fields.items()
        } or None

    def merge(self, merging: Merging, parts: Sequence[Fields]) -> Fields:
        """Return the fields of several tasks."""
        return merging.mapping("the field", parts)

    def for_clip(self, part: Fields, asset: Asset, title: str | None) -> Fields:
        """Return the fields that another entry of the clip does not have yet: the others need no request."""
        missing: dict[str, Sourced[str | Position]] = {}
        for name, sourced in part.items():
            live = asset.attributes.get(name)
            if live is None or not _is_shown(live, name, sourced.value, asset):
                missing[name] = sourced
        return missing

    def export(self, snapshot: AssetSnapshot, dialect: Dialect) -> ExportedPart:
        """Return the fields that are set; a position as a time code."""
        asset = snapshot.asset
        fields: dict[str, Any] = {}
        for field in LINK_FIELDS:
            value = asset.attributes.get(field.name)
            if not value:
                continue
            if field.kind != "position":
                fields[field.name] = value
                continue
            why = _unfit(field, value, asset)
            if why is None:
                fields[field.name] = exported_position(int(value), asset.rate)
            else:
                fields[field.name] = CommentedValue((f"{field.name} is left out: {why}",))
        return ExportedPart(fields)

    # Planning --------------------------------------------------------------------------------------------------------

    def plan(self, context: PlanContext, part: Fields) -> None:
        """Write each field that differs."""
        shown = part_of(self, context.live)
        builder = context.builder
        moved = []
        for name, sourced in part.items():
            value = wire_value(context.asset, name, sourced.value, sourced.source)
            source = sourced.source
            desired = shown_field(name, value)
            before, basis = self._known(context, name, shown)
            is_visible = basis == "live"
            effect = Effect(self.name, name, shown.get(name, ""), desired, visible=is_visible)
            if not self.is_due(context, effect, before, basis, f"field {name}", source):
                continue
            requests.require_field(context.server, name)
            number = builder.change("change", self.name, name, before, desired, source, basis=basis)
            request = requests.set_field(context.path, name, value)
            builder.send(Phase.FIELD, request, [number], effect)
            if name in _IN_AND_OUT:
                builder.altered.add("frames")
                moved.append(builder.changes[number])
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
        if same_field(named, shown):
            return ()
        return () if self.hidden(named, shown) else ("",)

    def hidden(self, named: Json, shown: Json) -> Sequence[str]:
        """Return whether the value is a number 0, which an answer may leave out: then the ledger holds it."""
        return ("",) if named == 0 and shown == "" else ()

    # Undo, shown -----------------------------------------------------------------------------------------------------

    def former(self, change: Change, context: UndoContext) -> str:
        """Return the value before."""
        return text_of(change.before)

    def timeline(self, change: Change, target: Target, live: Live) -> Iterator[TimelineItem]:
        """Yield a point of the clip before and after."""
        point = _POINTS.get(change.key)
        if point is not None:
            before = _point(change.before, point)
            after = _point(change.after, point)
            yield TimelineItem(change.action, change.key, before, after)


def _reversed_points(
    part: Fields, moved: Sequence[Change], context: PlanContext, after: Callable[[], Snapshot]
) -> Iterator[str]:
    """Check the in point before the out point; where tasks name both, it is an error."""
    span = InAndOut.of(context.asset, after())
    if not span.is_reversed:
        return
    message = f"the IN point (first_frame, frame {span.first}) lies after the OUT point (last_frame, frame {span.last})"
    if part.keys() >= _IN_AND_OUT and not context.required_live:  # undo brings back what there was
        raise refuse(message, moved[0].source, "let first_frame be at most last_frame")
    yield f"{message} ({moved[0].source.place})"


def _point(value: Json, title: str) -> TimelinePlace | None:
    frame = frames_of(value)
    return None if frame is None else TimelinePlace(POINTS, frame, 0, title)


def _is_shown(live: str, name: str, value: str | Position, asset: Asset) -> bool:
    """Return whether a field that is shown has a value; a position that is invalid is reported where it is used."""
    if not isinstance(value, Position):
        return same_value(name, live, value)
    try:
        frames = value.to_frames(asset.rate or Fraction(1))
    except TimecodeError:
        return False
    return same_value(name, live, str(frames))


def _unfit(field: Attribute, value: str, asset: Asset) -> str | None:
    """Return why a field cannot be written as a position; ``None`` if it can."""
    if not (value.strip().isascii() and value.strip().isdecimal()):
        return f"{value!r} is not a valid position for a task"
    if field.end and asset.finalized is False:
        return "it grows while the clip is being recorded"
    frames = asset.frames
    if frames is None:
        return None
    last = frames if field.end else frames - 1
    if int(value) > last:
        return f"frame {value} is beyond the end of the clip ({frames} frames)"
    return None
