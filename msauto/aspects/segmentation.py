"""Segmentation: the grid of equal pieces that CREATESEGMENTATION makes (interface, «Asset commands»).

One request makes the whole grid where nothing is in its way; missing pieces are created one by one where that takes
fewer requests, or where other segments must stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count, repeat

from msgspec import Struct, field

from msauto.aspects import segment_frames as frames
from msauto.aspects.aspect import SEGMENTS, Aspect, Item, TimelineItem, TimelinePlace, frames_of, titles_of_item
from msauto.aspects.comparison import mapping
from msauto.aspects.plan_builder import Phase, PlanContext, refuse
from msauto.aspects.positions import in_point, show_length, to_frames
from msauto.aspects.segment_arguments import DesiredSegmentation, DesiredSegments
from msauto.model import requests
from msauto.model.desired import ABSENT, Sourced, TaskSource
from msauto.model.fields import SEGMENT_NAMES
from msauto.model.live import Segment
from msauto.model.plan import Action, Change, Expectation, Json, Target
from msauto.model.ports import LiveTarget

Piece = tuple[int, int]
"""Start and duration in frames of the file."""


class _Grid(Struct):
    """Live segments compared with the grid; ``renamed`` are at the place of a piece, under another title."""

    duration: int
    title: str | None
    pieces: list[Piece] = field(default_factory=list)
    fitting: list[Segment] = field(default_factory=list)
    renamed: list[Segment] = field(default_factory=list)
    missing: list[Piece] = field(default_factory=list)
    others: list[Segment] = field(default_factory=list)


def plan_segmentation(context: PlanContext, desired: DesiredSegments) -> None:
    """Divide the clip into equal pieces, the last one shorter; with ``exactly`` nothing else stays."""
    segmentation, exactly = desired.segmentation, desired.exactly
    if segmentation is None:
        return
    if desired.items:
        first = desired.items[0].source
        raise refuse(
            f"segments are desired one by one ({first.place}) and as a segmentation ({segmentation.source.place})",
            first,
            "use one of the two",
        )
    context.builder.look("segments", "length")
    grid = _grid(context, segmentation)
    extra = grid.others if exactly else ()
    if _twins_go(context, grid, segmentation.source, exactly):
        _plan_whole(context, grid, segmentation.source, exactly)
        return
    if not grid.renamed and not grid.missing and not extra:
        return
    update = 2 if frames.recreates(context) else 1
    singly = len(grid.missing) + update * len(grid.renamed) + len(extra)
    whole = len(context.asset.segments) + 1
    if not context.asset.segments or (whole < singly and _may_go(context, grid, exactly)):
        _plan_whole(context, grid, segmentation.source, exactly)
    else:
        _plan_singly(context, grid, segmentation.source, exactly)


def _grid(context: PlanContext, desired: Sourced[DesiredSegmentation]) -> _Grid:
    length = context.asset.frames
    if length is None:
        raise refuse(
            "a segmentation needs the clip's length, and the clip reports none", desired.source, "use segments"
        )
    duration = to_frames(desired.value.duration, context.asset, desired.source)
    if duration == 0:
        raise refuse(f"a segmentation into pieces of 0 frames: {show_length(context.asset)}", desired.source, "above 0")
    title = None if desired.value.title is ABSENT else desired.value.title
    grid = _Grid(duration, title, others=list(frames.live_segments(context)))
    for start in range(0, length, duration):
        piece = (start, min(duration, length - start))
        grid.pieces.append(piece)
        at_place = [s for s in grid.others if (s.start, s.duration) == piece]
        named = [
            s for s in at_place if frames.piece_matches({"start": piece[0], "duration": piece[1], "title": title}, s)
        ]
        if at_place:
            found = (named or at_place)[0]
            (grid.fitting if named else grid.renamed).append(found)
            grid.others.remove(found)
        else:
            grid.missing.append(piece)
    return grid


def _twins_go(context: PlanContext, grid: _Grid, source: TaskSource, exactly: TaskSource | None) -> bool:
    """Return whether segments share a number and all segments go; else warn of those that it does not concern."""
    concerned = {segment.number for segment in (*grid.fitting, *grid.renamed, *(grid.others if exactly else ()))}
    for number, same in frames.twins_of(frames.live_segments(context)).items():
        if number not in concerned:
            context.builder.warnings.append(f"{context.title}: {frames.describe_twins(number, same)}")
        elif exactly and context.lossy:
            return True
        else:
            raise frames.refuse_twins(number, same, source, "" if exactly else "remove or renumber one by hand")
    return False


def _may_go(context: PlanContext, grid: _Grid, exactly: TaskSource | None) -> bool:
    """Return whether all live segments may be deleted first: none must stay, and none loses what cannot be written."""
    if grid.others and not exactly:
        return False
    return context.lossy or not any(
        frames.cannot_write_back(segment) or any(frames.known_texts(context, segment).values())
        for segment in (*grid.fitting, *grid.renamed)
    )


def _plan_whole(context: PlanContext, grid: _Grid, source: TaskSource, exactly: TaskSource | None) -> None:
    again = (*grid.fitting, *grid.renamed)
    before: Json = [frames.show(context, segment) for segment in again] or None
    after: dict[str, Json] = {"duration": grid.duration, "pieces": len(grid.pieces)}
    after |= {"title": grid.title} if grid.title is not None else {}
    action: Action = "change" if again else "add"
    reversible = not any(map(frames.cannot_write_back, again))
    key = str(grid.duration)
    number = context.builder.change(
        action, "segmentation", key, before, after, source, reversible=reversible, losses=len(again)
    )
    for segment in again:
        frames.send_delete(context, segment.number, number)
    if exactly:
        for segment in grid.others:
            frames.delete_segment(context, segment, exactly, exactly=True)
    origin = in_point(context.asset, context.server.dialect)
    seen: Json = [{"start": start - origin, "duration": duration} for start, duration in grid.pieces]
    expect = Expectation("segmentation", key, {"pieces": seen, "title": grid.title})
    request = requests.create_segmentation(context.path, grid.duration, grid.title)
    context.builder.send(Phase.SEGMENT_CREATE, request, [number], expect)


def _plan_singly(context: PlanContext, grid: _Grid, source: TaskSource, exactly: TaskSource | None) -> None:
    """Rename and create pieces one by one; missing ones are written over surplus segments where that is possible."""
    for segment in grid.renamed:
        frames.rewrite_segment(context, segment, frames.remake(context, segment, title=grid.title), source, named=False)
    over = grid.others[: len(grid.missing)] if exactly and not frames.recreates(context) else []
    if exactly:
        for segment in grid.others[len(over) :]:
            frames.delete_segment(context, segment, exactly, exactly=True)
    taken = {segment.number for segment in (*grid.fitting, *grid.renamed, *(over if exactly else grid.others))}
    numbers = (number for number in count(1) if number not in taken)
    for piece, instead in zip(grid.missing, chain(over, repeat(None)), strict=False):
        title = grid.title if grid.title is not None or instead is None else ""
        number = instead.number if instead else next(numbers)
        new = frames.NewSegment(number, *piece, {} if title is None else {"title": title})
        frames.create_segment(context, new, instead, source)


def _holds(expect: Expectation, live: LiveTarget) -> bool:
    segments = live.asset.segments if live.asset else ()
    made = (any(frames.piece_matches(piece, each) for each in segments) for piece in frames.pieces_of(expect))
    return not frames.twins_of(segments) and all(made)


def _learn(expect: Expectation, live: LiveTarget) -> Iterator[Item]:
    """Keep the pieces as they were after our write: undo sees what others changed since."""
    if live.asset is not None and _holds(expect, live):
        grid = frames.pieces_of(expect)
        left = [s for s in live.asset.segments if any(frames.piece_matches(piece, s) for piece in grid)]
        yield f"segmentation:{expect.key}", list(map(frames.show_segment, left))


def _timeline(change: Change, target: Target) -> Iterator[TimelineItem]:
    """Yield the segments that a segmentation replaces, and those that it makes."""
    for segment in change.before if isinstance(change.before, list) else ():
        yield TimelineItem("delete", str(mapping(segment).get("number", "")), frames.timeline_place(segment), None)
    made, length = mapping(change.after), target.context.frames if target.context else None
    duration = frames_of(made.get("duration"))
    if not length or not duration:
        return
    for number, start in enumerate(range(0, length, duration), 1):
        place = TimelinePlace(SEGMENTS, start, min(duration, length - start), str(made.get("title") or ""))
        yield TimelineItem("add", str(number), None, place)


ASPECT = Aspect(
    name="segmentation",
    holds=_holds,
    show=lambda _, live: [frames.show_segment(segment) for segment in live.asset.segments] if live.asset else None,
    learn=_learn,
    in_frames=True,
    is_on_timeline=True,
    timeline=_timeline,
    titles=titles_of_item,
    value_items=lambda _: tuple(f"segment-{name}:*" for name in SEGMENT_NAMES[1:]),
)
