"""Segments: the number is the identity; without numbers the same start and duration, else the same title."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from msgspec import structs

from msauto.aspects.aspect import SEGMENTS, TimelinePlace, UndoContext, frames_of, part_of
from msauto.aspects.comparison import Attributes, Item, Items, mapping, same_value, text_of
from msauto.aspects.list_aspect import LeftItem, by_key, each_of, unread_items
from msauto.aspects.matching import ListItem, Matching
from msauto.aspects.plan_builder import LEFT, MADE, SHIFTED, PlanContext, length_of, refuse
from msauto.aspects.positions import beyond, position_at, to_frames
from msauto.aspects.segment_arguments import (
    DesiredSegment,
    DesiredSegments,
    SegmentArguments,
    attributes,
)
from msauto.aspects.segment_frames import (
    TITLE_BEGINS,
    UNREPORTED,
    SegmentRequests,
    gaps_and_overlaps,
    span_of,
)
from msauto.aspects.segmentation import plan_segmentation
from msauto.model.desired import ABSENT, Sourced
from msauto.model.fields import SEGMENT_NAMES
from msauto.model.identity import plain
from msauto.model.plan import Change
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
        if live.asset is None:
            return None
        ordered = sorted(live.asset.segments, key=lambda segment: segment.number)
        items = [(str(segment.number), attributes(segment)) for segment in ordered]
        return by_key([*items, *unread_items(live.asset, self.name)])

    def place(self, value: Any) -> Hashable:
        """Return start and duration."""
        at = mapping(value)
        return at.get("start"), at.get("duration")

    def handles(self, value: Attributes) -> Sequence[Hashable]:
        """Return its place if that is known, then its title: an empty one identifies nothing."""
        handles: list[Hashable] = []
        if "start" in value and "duration" in value:
            handles.append(self.place(value))
        title = plain(text_of(value.get("title")))
        if title:
            handles.append(title)
        return handles

    def same(self, name: str, one: Json, other: Json) -> bool:
        """Compare texts as texts; what is named as ``None`` may be anything."""
        if name == TITLE_BEGINS:
            return plain(text_of(other)).startswith(plain(text_of(one)))
        if one is None:
            return True
        return isinstance(one, str) and same_value(name, one, text_of(other))

    def misses(self, named: Json, shown: Json) -> Sequence[str]:
        """Compare the named attributes; a server may number the titles of a segmentation.

        So of a piece, also of one that the prediction shows, the beginning of its title alone is known.
        """
        one, other = mapping(named), mapping(shown)
        if TITLE_BEGINS in other:
            named = {name: value for name, value in one.items() if name != "title"}
        if TITLE_BEGINS in one:
            shown = {**other, TITLE_BEGINS: other.get("title")}
        return super().misses(named, shown)

    def hidden(self, named: Json, shown: Json) -> Sequence[str]:
        """Return the named attributes, empty ones too, that the server does not report of this segment."""
        one = mapping(named)
        other = mapping(shown)
        return [name for name in self.unreported if name in one and name not in other]

    # Planning --------------------------------------------------------------------------------------------------------

    def plan(self, context: PlanContext, part: DesiredSegments) -> None:
        """Make the segments as desired, one by one or as a segmentation."""
        if context.memory and context.server.dialect.numbers_by_start:
            self._follow_numbers(context)
        if part.segmentation is not None:
            if not self.unseen(context, self.live(context)):
                plan_segmentation(self, context, part)
            return
        has_no_number = any(sourced.value.number is ABSENT for sourced in part.items)
        if has_no_number or context.server.dialect.numbers_by_start:
            context.builder.look(self.name)  # which segment is meant, and which numbers are free
        super().plan(context, part)

    def _follow_numbers(self, context: PlanContext) -> None:
        """Give what is remembered of segments the numbers that their starts have now; others may have shifted them."""
        left = self.left(context)
        start_of: dict[str, Json] = {}
        for number, value in part_of(self, context.live).items():
            start_of[number] = each_of(value)[0].get("start")
        number_at = {start: number for number, start in start_of.items()}
        memory = context.memory
        builder = context.builder
        known: Item = {}
        for number, (was, run) in left.items():
            start = was.get("start")
            now = number_at.get(start, f"at {start}")  # else no segment is there
            if number == now or start_of.get(number) == start:
                continue
            for prefix in (LEFT, MADE, ""):
                item = f"{prefix}{self.name}:{number}"
                if item in memory:
                    known[f"{prefix}{self.name}:{now}"] = memory.pop(item)
                    builder.settle(item)
            shifted = f"{SHIFTED}{self.name}:{number}"
            if number.isdecimal() and shifted not in memory:
                known[shifted] = [was, run]
        memory.update(known)
        for item, value in known.items():
            builder.settle(item, value)

    def left_by_key(
        self, context: PlanContext, left: Mapping[str, LeftItem]
    ) -> Mapping[str, LeftItem]:
        """Implement the number that a segment had, also where runs have kept what others shifted."""
        left_by_key = dict(left)
        for number, (was, run) in self.left(context, SHIFTED).items():
            now, _ = left.get(number, ({}, ""))
            if now.get("start") != was.get("start"):
                left_by_key[number] = was, run
        return left_by_key

    def without_kept(self, context: PlanContext, matching: Matching) -> Matching:
        """Spare what tasks want by a number that others gave away; forget what had a number that a task gets."""
        remaining = super().without_kept(context, matching)
        shifted = self.left(context, SHIFTED)
        if not shifted:
            return remaining
        written = {item.key for item, _ in remaining.present} | remaining.removed.keys()
        for number in shifted.keys() & written:
            context.builder.settled.append((f"{SHIFTED}{self.name}:{number}", None, ""))
        spared_starts: list[Json] = []
        for item, _ in matching.present:
            if item.key in shifted and item.key not in written:
                was, _ = shifted[item.key]
                spared_starts.append(was.get("start"))
        surplus = dict(remaining.surplus)
        for key in remaining.surplus:
            if matching.live[key].get("start") in spared_starts:
                del surplus[key]
        return structs.replace(remaining, surplus=surplus)

    def resolve(
        self, context: PlanContext, sourced: Sourced[DesiredSegment], live: Items
    ) -> ListItem:
        """Return a segment in frames, and check that it is within the clip."""
        value = sourced.value
        source = sourced.source
        named: Item = {}
        for name, at in (("start", value.start), ("duration", value.duration)):
            if at is not ABSENT:
                named[name] = to_frames(at, context.asset, source)
        named.update(value.fields)
        key = None if value.number is ABSENT else str(value.number)
        handles = tuple(self.handles(named))
        item = ListItem(
            key, key or str(named), named, source, handles, value.present, value.keys_before
        )
        if value.present:
            self._check_place(context, item)
        return item

    def _check_place(self, context: PlanContext, item: ListItem) -> None:
        """Check that a segment has a length, and is within the clip."""
        asset = context.asset
        source = item.source
        named = item.named
        if "start" not in named and "duration" not in named:
            return
        context.builder.look(*length_of(asset))
        start, end = span_of(named)
        if named.get("duration") == 0:
            raise refuse(
                f"segment {item.label} has no length", source, "give it a duration above 0"
            )
        length = asset.frames
        if length is not None and end > length:
            raise beyond(f"segment {item.label} ends at frame {end}, beyond the end", asset, source)
        if "start" in named and "duration" in named:
            last = end - 1
            called = f"segment {item.key}" if item.key else "segment"
            what = f"{called} (frames {start} to {last})"
            context.builder.placed.append((what, start, last, source))

    def write(self, context: PlanContext, matching: Matching) -> None:
        """Add the changes and their requests, and warn of what is odd about the list that they leave."""
        names = {
            str(segment.number): segment.name
            for segment in context.asset.segments
            if not segment.titles
        }
        for item, key in matching.pairs:
            name = names.get(key)
            if name and item.named.get("title") == "":
                context.warn(
                    f"segment {key} shows the name {name!r} and no title; "
                    'if the server generates names, `title: ""` never matches: omit `title`'
                )
        todo = SegmentRequests(self, context, matching.live)
        todo.write(matching)
        if todo.send():
            for odd in gaps_and_overlaps(todo.segments):
                context.warn(odd)

    # Undo ------------------------------------------------------------------------------------------------------------

    def undo(self, context: UndoContext) -> DesiredSegments | None:
        """Return the segments as they were; a segmentation is undone segment by segment."""
        for change in (*context.of("segment"), *context.of("segmentation")):
            if not change.reversible:
                lost = _lost(change)
                context.notes.append(f"{change.aspect} {change.key} comes back without {lost}")
        if context.spec.dialect.numbers_by_start:
            return self._undo_by_start(context)
        undone = super().undo(context)
        if undone is None:
            return None
        # A piece of a segmentation may have the number of one that was there before: that is written in its place.
        back = {item.value.number for item in undone.items if item.value.present}
        items = []
        for item in undone.items:
            if item.value.present or item.value.number not in back:
                items.append(item)
        return DesiredSegments(tuple(items))

    def _undo_by_start(self, context: UndoContext) -> DesiredSegments | None:
        """Return what the run made as absent, and what it removed: the other segments changed numbers alone."""
        things = context.things.get(self.name, {})
        left = [context.left((self.name, key)) for key in things]
        if None in left:
            context.notes.append(
                "the segments are left alone: it is not known how the run left them"
            )
            return None
        gone = [effect.before for effect in things.values() if effect.before is not None]
        items: list[DesiredSegment] = []
        for key, value in filter(None, left):
            same = next((segment for segment in gone if is_equal(segment, value, self)), None)
            if same is not None:
                gone.remove(same)
            elif value is not None:
                context.required_live[f"{self.name}:{key}"] = value
                items.append(self.absent(key))
        for segment in gone:
            items.append(self.former("", mapping(segment), frozenset()))
        return DesiredSegments(tuple(map(context.sourced, items)))

    def former(
        self, key: str, value: Attributes, keys_before: frozenset[str] | None
    ) -> DesiredSegment:
        """Return a segment as it was; without a key, one more beside all others."""
        fields = {name: text_of(value[name]) for name in SEGMENT_NAMES if name in value}
        start = position_at(value["start"])
        duration = position_at(value["duration"])
        if key:
            return DesiredSegment(int(key), start, duration, fields)
        return DesiredSegment(ABSENT, start, duration, fields, keys_before=keys_before)

    def absent(self, key: str) -> DesiredSegment:
        """Return the segment of a number as one to be removed."""
        return DesiredSegment(int(key), present=False)

    # Shown -----------------------------------------------------------------------------------------------------------

    def timeline_place(self, value: Attributes) -> TimelinePlace | None:
        """Return its start and duration."""
        start = frames_of(value.get("start"))
        duration = frames_of(value.get("duration"))
        if duration is None:
            return None
        return TimelinePlace(SEGMENTS, start or 0, duration, text_of(value.get("title")))


def _lost(change: Change) -> str:
    """Return what undo does not bring back of a segment."""
    was = change.before
    if isinstance(was, list):
        was = was[0]
    before = mapping(was)
    after = mapping(change.after)
    for name in UNREPORTED:
        if name in after and name not in before:
            return "its keywords, which were never known"
    return "what cannot be written"
