"""Segments: the number is the identity; without numbers the same start and duration, else the same title."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import chain, count
from operator import itemgetter
from typing import Any

from msgspec import Struct, field, structs

from msauto.aspects import segment_frames as frames
from msauto.aspects.aspect import (
    EXACTLY,
    AppliedChange,
    Aspect,
    Item,
    Span,
    TimelineItem,
    UndoContext,
    titles_of_item,
)
from msauto.aspects.comparison import Attributes, is_as_left, mapping
from msauto.aspects.matching import ItemInFrames, Matching, match, refuse_contradiction
from msauto.aspects.plan_builder import BETWEEN, PlanContext, left_alone, refuse
from msauto.aspects.positions import beyond, check_in_point_stays, frames_if_valid, in_point, position_at, to_frames
from msauto.aspects.segment_arguments import (
    SEGMENT_KEYS,
    SEGMENT_RULES,
    SEGMENTS_EXACTLY,
    DesiredSegment,
    DesiredSegments,
    check_segments,
    declare_segments,
    export_segments,
    merge_segments,
)
from msauto.aspects.segmentation import plan_segmentation
from msauto.model.desired import ABSENT, Sourced, TaskSource
from msauto.model.fields import SEGMENT_NAMES
from msauto.model.identity import plain
from msauto.model.live import Asset, Segment
from msauto.model.plan import Basis, Change, Expectation, Json, ShownSegment, Target
from msauto.model.ports import LiveTarget

New = tuple[ItemInFrames, int, Segment | None]
"""A desired segment that does not exist, the number that it takes, and the live one that it is written over."""


def _plan(context: PlanContext, desired: DesiredSegments) -> None:
    if desired.items or desired.segmentation:
        check_in_point_stays(context)
    if desired.segmentation is not None:
        plan_segmentation(context, desired)
    elif desired.items or desired.exactly:
        plan_segments(context, desired)


def plan_segments(context: PlanContext, desired: DesiredSegments) -> None:
    """Make the segments as desired; with ``exactly`` nothing else stays."""
    exactly = desired.exactly
    context.builder.look("segments")
    items = [_resolve(context, sourced) for sourced in desired.items]
    if any(item.present and _is_placed(item) for item in items):
        context.builder.look("length")  # their ends are held against it
    _check_contradictions(items)
    everything, before = frames.live_segments(context), len(context.builder.changes)
    twins = frames.twins_of(everything)
    kept_twins = _delete_twins(context, twins, items, exactly)
    live = {segment.number: segment for segment in everything if segment.number not in twins}
    found = match(items, live, _handles, frames.segment_misses)
    surplus = found.others if exactly else []
    for item, segment in _in_order(context, found.kept):
        _change(context, item, segment)
    named = {item.number for item in items if item.number is not None}
    new = _new(context, found, live, surplus, named | kept_twins.keys())
    for number, source in found.removed.items():
        frames.delete_segment(context, live[number], source)
    for number in sorted(named - {*live, *twins, *(number for _, number, _ in new)}):  # absent already
        context.builder.holding.append(Expectation("segment", str(number), None))
    if exactly:
        _complete(context, everything, found, new, exactly)
    for each in new:
        _create(context, *each)
    if len(context.builder.changes) > before:
        staying = [live[number] for number in found.others if not exactly]
        _warn_of_gaps(context, found.kept, new, [*staying, *chain.from_iterable(kept_twins.values())])


def _complete(
    context: PlanContext,
    everything: Sequence[Segment],
    found: Matching[Segment],
    new: Sequence[New],
    exactly: TaskSource,
) -> None:
    """Delete what no task names and nothing new is written over."""
    going = {*found.others} - {instead.number for *_, instead in new if instead}
    for segment in (segment for segment in everything if segment.number in going):
        frames.delete_segment(context, segment, exactly, exactly=True)
    numbers: list[Json] = [*(segment.number for segment in everything), *(number for _, number, _ in new)]
    context.builder.holding.append(Expectation("segment", EXACTLY, numbers))
    if len(everything) > len(found.removed) and not found.kept and not new:
        context.builder.emptied.append(("segment", len(everything)))


def _warn_of_gaps(
    context: PlanContext,
    kept: Sequence[tuple[ItemInFrames, Segment]],
    new: Sequence[New],
    staying: Sequence[Segment],
) -> None:
    """Warn of overlaps and gaps of the segments that the run leaves."""
    places = [(segment.number, *_place(item, segment.start, segment.duration)) for item, segment in kept]
    places += [(number, *_place(item, 0, 0)) for item, number, _ in new]
    places += [(segment.number, segment.start, segment.duration) for segment in staying]
    context.builder.warnings += frames.editorial(context.title, places)


def _delete_twins(
    context: PlanContext,
    twins: Mapping[int, Sequence[Segment]],
    items: Sequence[ItemInFrames],
    exactly: TaskSource | None,
) -> dict[int, Sequence[Segment]]:
    """Delete all live segments of one number where a task concerns any of them; else only warn, and return them.

    Which of them a DELETESEGMENT takes is not known, so none of them counts as the desired one.
    """
    kept: dict[int, Sequence[Segment]] = {}
    for number, same in twins.items():
        named = next((item for item in items if item.number == number), None)
        handles = {handle for segment in same for handle in _handles(segment)}
        loose = next((item for item in items if item.number is None and not handles.isdisjoint(item.handles)), None)
        source = named.source if named else exactly
        if source is None and loose is not None:
            raise frames.refuse_twins(number, same, loose.source, "give the segments of the list their numbers")
        if source is None:
            context.builder.warnings.append(f"{context.title}: {frames.describe_twins(number, same)}")
            kept[number] = same
            continue
        if not context.lossy:
            raise frames.refuse_twins(number, same, source)
        for segment in same:
            frames.delete_segment(context, segment, source, exactly=named is None)
    return kept


def _resolve(context: PlanContext, sourced: Sourced[DesiredSegment]) -> ItemInFrames:
    value = sourced.value
    named: dict[str, Json] = {
        name: to_frames(position, context.asset, sourced.source)
        for name, position in (("start", value.start), ("duration", value.duration))
        if position is not ABSENT
    }
    place = [(named["start"], named["duration"])] if len(named) > 1 else []
    title = [plain(value.fields["title"])] if "title" in value.fields else []
    named |= value.fields
    number = None if value.number is ABSENT else value.number
    key = str(named if number is None else number)
    return ItemInFrames(number, key, named, sourced.source, (*place, *title), value.present)


def _handles(segment: Segment) -> Sequence[Hashable]:
    """Return by what a desired segment without a number may be this one: its place, else its title."""
    return (segment.start, segment.duration), plain(segment.title)


def _is_placed(item: ItemInFrames) -> bool:
    return "start" in item.named or "duration" in item.named


def _place(item: ItemInFrames, start: int, duration: int) -> tuple[int, int]:
    """Return start and duration as desired, else those given."""
    return int(str(item.named.get("start", start))), int(str(item.named.get("duration", duration)))


def _check_contradictions(items: Sequence[ItemInFrames]) -> None:
    for gone in (item for item in items if not item.present and item.number is None):
        for desired in items:
            if desired.present and gone.named.items() <= desired.named.items():
                raise refuse_contradiction("segment", gone, desired)


# Changes -------------------------------------------------------------------------------------------------------


def _in_order(
    context: PlanContext, matched: Sequence[tuple[ItemInFrames, Segment]]
) -> Sequence[tuple[ItemInFrames, Segment]]:
    """Order what is written over, so that no two segments overlap on the way; all else is deleted before."""
    if frames.recreates(context):
        return matched
    moves = []
    for item, live in matched:
        start, duration = _place(item, live.start, live.duration)
        moves.append(((live.start, live.start + live.duration), (start, start + duration)))
    return [matched[index] for index in frames.free_first(moves)]


def _change(context: PlanContext, item: ItemInFrames, live: Segment) -> None:
    _check_inside(context, item, live)
    known = frames.known_texts(context, live)
    if frames.segment_matches(item.named, live, dict(known)):
        start = live.start - in_point(context.asset, context.server.dialect)
        reported = {**item.named, **({"start": start} if "start" in item.named else {})}
        context.builder.holding.append(Expectation("segment", str(live.number), reported))
        return
    if item.named.get("title") == "" and live.name and not live.titles:
        context.builder.warnings.append(
            f"{context.title}: segment {live.number} shows the name {live.name!r} and no title; "
            'if the server generates names, `title: ""` never matches: omit `title`'
        )
    shown = frames.reported_part(item.named, live)
    basis: Basis = "live"
    if len(shown) < len(item.named) and frames.segment_matches(shown, live):
        basis = "ledger" if known.keys() >= item.named.keys() - shown.keys() else "none"
    # A title alone is a weak key: the segment that is moved counts as lost.
    named = item.number is not None or not _is_placed(item) or (live.start, live.duration) in item.handles
    frames.rewrite_segment(
        context, live, _named_over(item, frames.remake(context, live)), item.source, basis, named=named
    )


def _named_over(item: ItemInFrames, new: frames.NewSegment) -> frames.NewSegment:
    texts = {**new.fields, **item.named}
    fields = {name: str(texts[name]) for name in SEGMENT_NAMES if name in texts}
    return frames.NewSegment(new.number, *_place(item, new.start, new.duration), fields)


def _new(
    context: PlanContext,
    found: Matching[Segment],
    live: Mapping[int, Segment],
    surplus: Sequence[int],
    held: Collection[int],
) -> list[New]:
    """Number the new segments: over those that go where the dialect allows it, else the lowest free numbers."""
    over = [] if frames.recreates(context) else list(surplus)
    freed = {*found.removed, *surplus} - {*over}
    held = {*held, *_between(context), *(live.keys() - freed)}
    free = (number for number in count(1) if number not in held)
    new: list[New] = []
    for item in found.created:
        item = _interrupted(context, item, live)
        missing = [name for name in ("start", "duration") if name not in item.named]
        if missing:
            raise refuse(
                f"segment {item.key} does not exist, and the task does not name its {' and '.join(missing)}",
                item.source,
                "name start and duration, so that it can be created",
            )
        _check_inside(context, item, None)
        if item.number is not None:
            new.append((item, item.number, None))
        elif over:
            taken = next((n for n in over if _handles(live[n])[1] in item.handles), over[0])
            over.remove(taken)
            new.append((item, taken, live[taken]))
        else:
            new.append((item, next(free), None))
    return new


def _interrupted(context: PlanContext, item: ItemInFrames, live: Mapping[int, Segment]) -> ItemInFrames:
    """Add what a segment had that an interrupted run deleted and did not create again."""
    for number, had in _between(context).items():
        places = [(expected.get("start"), expected.get("duration")) for expected in (item.named, had)]
        if number not in live and (item.number == number or (item.number is None and places[0] == places[1])):
            return structs.replace(item, number=number, named={**had, **item.named})
    return item


def _between(context: PlanContext) -> dict[int, dict[str, Json]]:
    """Return what the ledger remembers of segments that were deleted to be created again, by number."""
    found: dict[int, dict[str, Json]] = {}
    for name, value in context.memory.items():
        if name.startswith(BETWEEN) and isinstance(value, dict):
            kept = ("start", "duration", *SEGMENT_NAMES)
            found[int(name.removeprefix(BETWEEN))] = {key: value[key] for key in kept if value.get(key) is not None}
    return found


def _check_inside(context: PlanContext, item: ItemInFrames, live: Segment | None) -> None:
    start, duration = _place(item, live.start, live.duration) if live else _place(item, 0, 0)
    if "duration" in item.named and duration == 0:
        raise refuse(f"segment {item.key} has no length", item.source, "give it a duration above 0")
    if _is_placed(item) and context.asset.frames is not None and start + duration > context.asset.frames:
        raise beyond(f"segment {item.key} ends at frame {start + duration}, beyond the end", context.asset, item.source)


def _create(context: PlanContext, item: ItemInFrames, number: int, instead: Segment | None) -> None:
    new = _named_over(item, frames.NewSegment(number, 0, 0))
    if instead is not None:
        # Another segment is overwritten: attributes of it that are not named here must not remain.
        had = {"title": instead.title, **frames.known_texts(context, instead)}
        fields = {name: new.fields.get(name, "") for name in SEGMENT_NAMES if name in new.fields or had.get(name)}
        new = structs.replace(new, fields=fields)
    frames.create_segment(context, new, instead, item.source)


# Verification, memory and saved plans --------------------------------------------------------------------------


def _alike(expect: Expectation, live: LiveTarget) -> list[str]:
    return [f"frame {each.start}" for each in frames.segments_numbered(live, expect.key)]


def _strangers(expect: Expectation, live: LiveTarget) -> list[Json]:
    """Return the segments of a list with ``exactly`` that did not exist when planned, and that no task asks for."""
    known = expect.desired if isinstance(expect.desired, list) else []
    segments = live.asset.segments if live.asset else ()
    return [frames.show_segment(each) for each in segments if each.number not in known]


def _holds(expect: Expectation, live: LiveTarget) -> bool | None:
    segments = frames.segments_numbered(live, expect.key)
    if expect.desired is None or len(segments) != 1:
        return expect.desired is None and not segments
    expected = mapping(expect.desired)
    return frames.segment_matches(expected, segments[0], remembered=expected)


def _show(expect: Expectation, live: LiveTarget) -> Json:
    shown: list[Json] = list(map(frames.show_segment, frames.segments_numbered(live, expect.key)))
    return shown if len(shown) > 1 else next(iter(shown), None)


def _learn(expect: Expectation, live: LiveTarget) -> Iterator[Item]:
    """Keep a segment as it was after our write: undo sees what others changed since."""
    if expect.desired is not None and _holds(expect, live):
        yield f"segment:{expect.key}", _show(expect, live)


def _is_partly_hidden(expect: Expectation, live: LiveTarget) -> bool:
    """Return whether an attribute is expected that the server does not report: keywords are seldom reported."""
    return any(
        mapping(expect.desired).get(name)
        for segment in frames.segments_numbered(live, expect.key)
        for name in frames.unreported(segment)
    )


def _remember(expect: Expectation, live: LiveTarget) -> Iterator[Item]:
    segment = next(iter(frames.segments_numbered(live, expect.key)), None)
    hidden = frames.unreported(segment) if segment else ()
    for name in SEGMENT_NAMES[1:]:
        yield f"segment-{name}:{expect.key}", mapping(expect.desired).get(name) if name in hidden else None
    if segment is not None and expect.desired is not None:
        yield f"{BETWEEN}{expect.key}", None


# Undo ----------------------------------------------------------------------------------------------------------


class _SegmentNumbers(Struct):
    """What a run did to segments, by number: what was there, what it wrote, which numbers it may have left empty.

    ``left`` is what verification read after the writes, where it read all that was written.
    """

    before: dict[int, Attributes] = field(default_factory=dict)
    after: dict[int, Attributes] = field(default_factory=dict)
    emptied: set[int] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)
    pieces: list[Attributes] = field(default_factory=list)
    left: dict[int, Attributes] = field(default_factory=dict)

    def add(self, one: AppliedChange, origin: int) -> None:
        if one.change.aspect == "segmentation":
            self._add_grid(one, origin)
            return
        number = int(one.change.key)
        if one.change.before is not None:
            self.before.setdefault(number, mapping(one.change.before))
        if one.change.after is not None:
            self.after[number] = mapping(one.change.after)
        if one.change.after is None or not one.whole:
            self.emptied.add(number)
        if one.change.basis == "none":
            self.unknown.add(number)

    def _add_grid(self, one: AppliedChange, origin: int) -> None:
        for shown in map(mapping, one.change.before if isinstance(one.change.before, list) else ()):
            number = int(str(shown["number"]))
            self.before[number] = shown
            self.emptied.add(number)
        for expect in (expect for expect in one.expects if expect.aspect == "segmentation"):
            for piece in frames.pieces_of(expect):
                self.pieces.append({**piece, "start": int(str(piece["start"])) + origin})

    def is_as_left(self, segment: Segment, origin: int) -> bool:
        """Return whether a live segment is still as the run left it."""
        after = self.after.get(segment.number)
        if after is not None and segment.number not in self.before:
            after = {**dict.fromkeys(SEGMENT_NAMES, ""), **after}
        ours = _same(after, segment) or any(frames.piece_matches(p, segment) for p in self.pieces)
        as_written = ours and not frames.cannot_write_back(segment)
        shown = frames.show_segment(structs.replace(segment, start=segment.start - origin))
        return is_as_left(shown, self.left.get(segment.number, {}), as_written=as_written)


def _undo(context: UndoContext) -> DesiredSegments:
    """Return the segments as they were; a segmentation is undone segment by segment."""
    made = context.of("segment", "segmentation")
    for change in (one.change for one in made if not one.change.reversible):
        lost = "its keywords, which were never known" if change.basis == "none" else "what cannot be written"
        context.notes.append(f"{change.aspect} {change.key} comes back without {lost}")
    return DesiredSegments(tuple(map(context.sourced, _former(made, context))))


def _former(made: Sequence[AppliedChange], context: UndoContext) -> Iterator[DesiredSegment]:
    """Yield the segments as they were, of those that are still as the run left them; ``notes`` name the others."""
    asset, notes = context.asset, context.notes
    origin = in_point(asset, context.spec.dialect)
    live = {segment.number: structs.replace(segment, start=segment.start + origin) for segment in asset.segments}
    twins, did = frames.twins_of(asset.segments), _SegmentNumbers()
    for one in made:
        did.add(one, origin)
        learned = context.record.learned.get(f"{one.change.aspect}:{one.change.key}")
        for shown in map(mapping, learned if isinstance(learned, list) else [learned]):
            did.left |= {int(str(shown["number"])): shown} if "number" in shown else {}
    ours = {number for number, segment in live.items() if did.is_as_left(segment, origin)}
    for number in sorted({*did.before, *did.after, *did.left, *ours}):
        segment, before = live.get(number), did.before.get(number)
        if segment is None and before is None:
            continue
        if number in twins:
            notes.append(f"segment {number} is left alone: {frames.describe_twins(number, twins[number])}")
            continue
        if segment is None and number in did.after and number not in did.emptied:
            notes.append(f"segment {number} is left alone: it no longer exists")
        elif segment is not None and number not in ours and not _same(before, segment):
            notes.append(left_alone(f"segment {number}", frames.show_segment(segment), dict(did.after.get(number, {}))))
        else:
            yield _former_segment(number, before, did)


def _same(expected: Attributes | None, segment: Segment) -> bool:
    """Return whether a live segment is as shown; what the server does not report is left to planning."""
    return expected is not None and frames.segment_matches(frames.reported_part(expected, segment), segment)


def _former_segment(number: int, before: Attributes | None, did: _SegmentNumbers) -> DesiredSegment:
    if before is None:
        return DesiredSegment(number, present=False)
    fields = {"title": str(before.get("title") or "")}
    for name in SEGMENT_NAMES[1:]:
        text = str(before.get(name) or "")
        if text or (name in did.after.get(number, {}) and number not in did.unknown):
            fields[name] = text
    return DesiredSegment(number, position_at(before["start"]), position_at(before["duration"]), fields)


# Editorial warnings --------------------------------------------------------------------------------------------


def _spans(context: PlanContext, desired: DesiredSegments) -> Iterator[Span]:
    for sourced in desired.items:
        value = sourced.value
        start, length = (frames_if_valid(each, context.asset) for each in (value.start, value.duration))
        if value.present and start is not None and length:
            name = "segment" if value.number is ABSENT else f"segment {value.number}"
            yield f"{name} (frames {start} to {start + length - 1})", start, start + length - 1, sourced.source


def _timeline(change: Change, _: Target) -> Iterator[TimelineItem]:
    place = frames.timeline_place
    yield TimelineItem(change.action, change.key, place(change.before), place(change.after))


def _staying(asset: Asset, origin: int, changes: Sequence[Change]) -> Mapping[str, Any]:
    concerned = [change.before for change in changes if change.aspect in {"segment", "segmentation"}]
    shown = chain.from_iterable(each if isinstance(each, list) else [each] for each in concerned)
    numbers = {mapping(segment).get("number") for segment in shown}
    return {
        "segments": tuple(
            ShownSegment(each.number, each.start + origin, each.duration, each.title)
            for each in asset.segments
            if each.number not in numbers
        )
    }


ASPECT = Aspect(
    name="segment",
    keys=SEGMENT_KEYS,
    rules=SEGMENT_RULES,
    exactly=("segments", SEGMENTS_EXACTLY),
    check=check_segments,
    declare=declare_segments,
    export=export_segments,
    merge=merge_segments,
    plan=_plan,
    looks={"segments": lambda asset, *_: sorted(map(structs.asdict, asset.segments), key=itemgetter("number"))},
    holds=_holds,
    alike=_alike,
    show=_show,
    strangers=_strangers,
    is_partly_hidden=_is_partly_hidden,
    is_overruled=lambda _, later: later.aspect == "segmentation",
    remember=_remember,
    learn=_learn,
    spans=_spans,
    titles=titles_of_item,
    recreates=True,
    value_items=lambda number: tuple(f"segment-{name}:{number}" for name in SEGMENT_NAMES[1:]),
    in_frames=True,
    is_on_timeline=True,
    timeline=_timeline,
    staying=_staying,
    dialect=("segment_update",),
    undo=_undo,
)
