"""Segments: the number is the identity; without numbers the same start and duration, else the same title."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from msauto.aspects.aspect import SEGMENTS, TimelinePlace, UndoContext, frames_of
from msauto.aspects.comparison import Attributes, mapping, same_value, text_of
from msauto.aspects.list_aspect import Item, by_key, unread_items
from msauto.aspects.matching import ListItem, Matching
from msauto.aspects.plan_builder import PlanContext, length_of, refuse
from msauto.aspects.positions import beyond, position_at, to_frames
from msauto.aspects.segment_arguments import DesiredSegment, DesiredSegments, SegmentArguments, attributes
from msauto.aspects.segment_frames import TITLE_BEGINS, UNREPORTED, SegmentRequests, gaps_and_overlaps, span_of
from msauto.aspects.segmentation import plan_segmentation
from msauto.model.desired import ABSENT, Sourced, TaskSource
from msauto.model.fields import SEGMENT_NAMES
from msauto.model.identity import plain
from msauto.model.ports import LiveTarget
from msauto.model.snapshot import Json, Part, is_equal


class Segments(SegmentArguments):
    """The segments of a clip, by their numbers."""

    name = "segment"
    called = "segment"
    key_called = "number"
    numbered, replaces = True, True
    positions = ("start",)
    moves = (frozenset({"start"}), frozenset({"duration"}))
    unreported = UNREPORTED
    dialect = ("segment_update", "segment_numbers")

    # Comparing -------------------------------------------------------------------------------------------------------

    def things(self, live: LiveTarget) -> Part | None:
        """Return the segments in the order of their numbers."""
        ordered = sorted(live.asset.segments, key=lambda each: each.number) if live.asset else ()
        items = [(str(each.number), attributes(each)) for each in ordered]
        return by_key([*items, *unread_items(live.asset, self.name)]) if live.asset else None

    def place(self, value: Any) -> Hashable:
        """Return start and duration."""
        at = mapping(value)
        return at.get("start"), at.get("duration")

    def handles(self, value: Attributes) -> Sequence[Hashable]:
        """Return its place if that is known, then its title: an empty one identifies nothing."""
        place = [self.place(value)] if {"start", "duration"} <= value.keys() else []
        title = plain(text_of(value.get("title")))
        return [*place, *([title] if title else [])]

    def same(self, name: str, one: Json, other: Json) -> bool:
        """Compare texts as texts; what is named as ``None`` may be anything."""
        if name == TITLE_BEGINS:
            return plain(text_of(other)).startswith(plain(text_of(one)))
        if one is None or one == other:
            return True
        return isinstance(one, str) and same_value(name, one, text_of(other))

    def misses(self, named: Json, shown: Json) -> Sequence[str]:
        """Compare the named attributes; a server may number the titles of a segmentation."""
        if TITLE_BEGINS in mapping(shown):
            named = {name: value for name, value in mapping(named).items() if name != "title"}
        if TITLE_BEGINS in mapping(named):
            shown = {**mapping(shown), TITLE_BEGINS: mapping(shown).get("title")}
        return super().misses(named, shown)

    def hidden(self, named: Json, shown: Json) -> Sequence[str]:
        """Return the named attributes, empty ones too, that the server does not report of this segment."""
        one, other = mapping(named), mapping(shown)
        return [name for name in self.unreported if name in one and name not in other]

    # Planning --------------------------------------------------------------------------------------------------------

    def plan(self, context: PlanContext, part: DesiredSegments) -> None:
        """Make the segments as desired, one by one or as a segmentation."""
        if part.segmentation is not None:
            plan_segmentation(self, context, part)
            return
        if context.server.dialect.numbers_by_start or any(each.value.number is ABSENT for each in part.items):
            context.builder.look(self.name)  # which segment is meant, and which numbers are free
        super().plan(context, part)

    def resolve(self, context: PlanContext, sourced: Sourced[DesiredSegment], live: Mapping[str, Item]) -> ListItem:
        """Return a segment in frames, and check that it is within the clip."""
        value, source = sourced.value, sourced.source
        places = (("start", value.start), ("duration", value.duration))
        placed: Item = {name: to_frames(at, context.asset, source) for name, at in places if at is not ABSENT}
        named = {**placed, **value.fields}
        key = None if value.number is ABSENT else str(value.number)
        label, handles = key or str(named), tuple(self.handles(named))
        if value.present and placed:
            context.builder.look(*length_of(context.asset))
            start, end = span_of(placed)
            if placed.get("duration") == 0:
                raise refuse(f"segment {label} has no length", source, "give it a duration above 0")
            if context.asset.frames is not None and end > context.asset.frames:
                raise beyond(f"segment {label} ends at frame {end}, beyond the end", context.asset, source)
            if len(placed) == len(places):
                what = f"segment {key}" if key else "segment"
                context.builder.placed.append((f"{what} (frames {start} to {end - 1})", start, end - 1, source))
        return ListItem(key, label, named, source, handles, value.present, value.besides)

    def write(
        self,
        context: PlanContext,
        matching: Matching[Item],
        live: Mapping[str, Item],
        surplus: Mapping[str, TaskSource],
    ) -> None:
        """Add the changes and their requests, and warn of what is odd about the list that they leave."""
        todo, builder = SegmentRequests(self, context, live), context.builder
        names = {str(each.number): each.name for each in context.asset.segments if not each.titles}
        for key in (key for item, key in matching.kept if item.named.get("title") == "" and names.get(key)):
            builder.warnings.append(
                f"{context.title}: segment {key} shows the name {names[key]!r} and no title; "
                'if the server generates names, `title: ""` never matches: omit `title`'
            )
        todo.write(matching, surplus)
        if todo.send():
            builder.warnings += [f"{context.title}: {odd}" for odd in gaps_and_overlaps(todo.there)]

    # Undo ------------------------------------------------------------------------------------------------------------

    def undo(self, context: UndoContext) -> DesiredSegments | None:
        """Return the segments as they were; a segmentation is undone segment by segment."""
        for change in (each for each in (*context.of("segment"), *context.of("segmentation")) if not each.reversible):
            before = mapping(change.before[0] if isinstance(change.before, list) else change.before)
            unknown = any(name in mapping(change.after) and name not in before for name in UNREPORTED)
            lost = "its keywords, which were never known" if unknown else "what cannot be written"
            context.notes.append(f"{change.aspect} {change.key} comes back without {lost}")
        if context.spec.dialect.numbers_by_start:
            return self._undo_by_start(context)
        undone = super().undo(context)
        if undone is None:
            return None
        items = undone.items
        # A piece of a segmentation may have the number of one that was there before: that is written in its place.
        back = {each.value.number for each in items if each.value.present}
        return DesiredSegments(tuple(each for each in items if each.value.present or each.value.number not in back))

    def _undo_by_start(self, context: UndoContext) -> DesiredSegments | None:
        """Return what the run made as absent, and what it removed: the other segments changed numbers alone."""
        things = context.things.get(self.name, {})
        left = [context.left((self.name, key)) for key in things]
        if None in left:
            context.notes.append("the segments are left alone: it is not known how the run left them")
            return None
        gone, items = [each.before for each in things.values() if each.before is not None], list[DesiredSegment]()
        for key, value in filter(None, left):
            same = next((each for each in gone if is_equal(each, value, self)), None)
            if same is not None:
                gone.remove(same)
            elif value is not None:
                context.still[f"{self.name}:{key}"] = value
                items.append(self.absent(key))
        items += [self.former("", mapping(each), frozenset()) for each in gone]
        return DesiredSegments(tuple(map(context.sourced, items)))

    def former(self, key: str, value: Attributes, besides: frozenset[str] | None) -> DesiredSegment:
        """Return a segment as it was; without a key, one more beside all others."""
        fields = {name: text_of(value[name]) for name in SEGMENT_NAMES if name in value}
        number, anew = (int(key), None) if key else (ABSENT, besides)
        place = position_at(value["start"]), position_at(value["duration"])
        return DesiredSegment(number, *place, fields, besides=anew)

    def absent(self, key: str) -> DesiredSegment:
        """Return the segment of a number as one to be removed."""
        return DesiredSegment(int(key), present=False)

    # Shown -----------------------------------------------------------------------------------------------------------

    def timeline_place(self, value: Attributes) -> TimelinePlace | None:
        """Return its start and duration."""
        start, duration = frames_of(value.get("start")), frames_of(value.get("duration"))
        if duration is None:
            return None
        return TimelinePlace(SEGMENTS, start or 0, duration, text_of(value.get("title")))
