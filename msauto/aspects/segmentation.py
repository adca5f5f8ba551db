"""Segmentation: the grid of equal pieces that CREATESEGMENTATION makes (interface, «Asset commands»).

One request makes the whole grid where nothing is in its way; missing pieces are created one by one where that takes
fewer requests, or where other segments must stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from msauto.diffing.aspect_definition import Aspect
from msauto.diffing.comparison import mapping
from msauto.diffing.plan_builder import PlanBuilder, PlanContext, refuse
from msauto.diffing.positions import in_point, show_length, to_frames
from msauto.diffing.request_order import Phase
from msauto.diffing.segment_frames import (
    NewSegment,
    cannot_write_back,
    check_lossy,
    known_texts,
    live_segments,
    piece_matches,
    recreates,
    remake,
    send_create,
    send_delete,
    show,
    show_change,
    show_segment,
)
from msauto.interface import requests
from msauto.interface.fields import SEGMENT_NAMES
from msauto.model.desired import ABSENT, DesiredAsset, DesiredSegmentation, Sourced, TaskSource
from msauto.model.live import Segment
from msauto.model.plan import Action, Expectation, Json
from msauto.model.ports import LiveTarget

Piece = tuple[int, int]
"""Start and duration in frames of the file."""


@dataclass(frozen=True, slots=True)
class _Grid:
    """Live segments compared with the grid."""

    pieces: tuple[Piece, ...]
    duration: int
    title: str | None
    fitting: tuple[Segment, ...]
    renamed: tuple[Segment, ...]  # at the place of a piece, under another title
    missing: tuple[Piece, ...]
    others: tuple[Segment, ...]


def plan_segmentation(context: PlanContext, desired: DesiredAsset, builder: PlanBuilder) -> None:
    """Divide the clip into equal pieces, the last one shorter; with ``exactly`` nothing else stays."""
    segmentation, exactly = desired.segmentation, desired.exactly.segments
    if segmentation is None:
        return
    _check_either(desired, segmentation)
    builder.look("segments", "length")
    grid = _grid(context, segmentation)
    extra = grid.others if exactly else ()
    if not grid.renamed and not grid.missing and not extra:
        return
    update = 2 if recreates(context) else 1
    singly = len(grid.missing) + update * len(grid.renamed) + len(extra)
    whole = len(context.asset.segments) + 1
    if not context.asset.segments or (whole < singly and _may_go(context, grid, exactly)):
        _plan_whole(context, grid, segmentation.source, exactly, builder)
    else:
        _plan_singly(context, grid, segmentation.source, exactly, builder)


def _check_either(desired: DesiredAsset, segmentation: Sourced[DesiredSegmentation]) -> None:
    if desired.segments:
        raise refuse(
            f"segments are desired one by one ({desired.segments[0].source.place}) and as a segmentation "
            f"({segmentation.source.place})",
            desired.segments[0].source,
            "use one of the two",
        )


def _grid(context: PlanContext, desired: Sourced[DesiredSegmentation]) -> _Grid:
    frames = context.asset.frames
    if frames is None:
        raise refuse(
            "a segmentation needs the clip's length, and the clip reports none", desired.source, "use segments"
        )
    duration = to_frames(desired.value.duration, context.asset, desired.source)
    if duration == 0:
        raise refuse(f"a segmentation into pieces of 0 frames: {show_length(context.asset)}", desired.source, "above 0")
    title = None if desired.value.title is ABSENT else desired.value.title
    pieces = tuple((start, min(duration, frames - start)) for start in range(0, frames, duration))
    return _sort(context, pieces, duration, title)


def _sort(context: PlanContext, pieces: tuple[Piece, ...], duration: int, title: str | None) -> _Grid:
    others = list(live_segments(context))
    fitting, renamed, missing = list[Segment](), list[Segment](), list[Piece]()
    for piece in pieces:
        at_place = [s for s in others if (s.start, s.duration) == piece]
        named = [s for s in at_place if piece_matches(_want(piece, title), s)]
        if not at_place:
            missing.append(piece)
            continue
        found = (named or at_place)[0]
        (fitting if named else renamed).append(found)
        others.remove(found)
    return _Grid(pieces, duration, title, tuple(fitting), tuple(renamed), tuple(missing), tuple(others))


def _want(piece: Piece, title: str | None) -> dict[str, Json]:
    return {"start": piece[0], "duration": piece[1], "title": title}


def _may_go(context: PlanContext, grid: _Grid, exactly: TaskSource | None) -> bool:
    """Return whether all live segments may be deleted first: none must stay, and none loses what cannot be written."""
    if grid.others and not exactly:
        return False
    again = (*grid.fitting, *grid.renamed)
    return context.lossy or not any(
        cannot_write_back(segment) or any(known_texts(context, segment).values()) for segment in again
    )


def _plan_whole(
    context: PlanContext, grid: _Grid, source: TaskSource, exactly: TaskSource | None, builder: PlanBuilder
) -> None:
    again = (*grid.fitting, *grid.renamed)
    before: Json = [show(context, segment) for segment in again] if again else None
    after: dict[str, Json] = {"duration": grid.duration, "pieces": len(grid.pieces)}
    after |= {"title": grid.title} if grid.title is not None else {}
    action: Action = "change" if again else "add"
    number = builder.change(
        action,
        "segmentation",
        str(grid.duration),
        before=before,
        after=after,
        source=source,
        reversible=not any(map(cannot_write_back, again)),
    )
    for segment in again:
        send_delete(context, segment.number, [number], builder)
    _delete_others(context, grid, exactly, builder)
    origin = in_point(context.asset, context.server.dialect)
    seen: Json = [{"start": start - origin, "duration": duration} for start, duration in grid.pieces]
    expect = Expectation("segmentation", str(grid.duration), {"pieces": seen, "title": grid.title})
    builder.send(
        Phase.SEGMENT_CREATE, requests.create_segmentation(context.path, grid.duration, grid.title), [number], expect
    )


def _plan_singly(
    context: PlanContext, grid: _Grid, source: TaskSource, exactly: TaskSource | None, builder: PlanBuilder
) -> None:
    for segment in grid.renamed:
        check_lossy(context, segment, source)
        new = remake(context, segment, segment.number, title=grid.title)
        before, after = show_change(context, segment, new)
        number = builder.change(
            "change",
            "segment",
            str(segment.number),
            before=before,
            after=after,
            source=source,
            reversible=not cannot_write_back(segment),
        )
        if recreates(context):
            send_delete(context, segment.number, [number], builder)
        send_create(context, new, [number], source, builder)
    over = _over(context, grid, exactly)
    _delete_others(context, grid, exactly, builder, spared=over)
    _create_missing(context, grid, source, exactly, builder, over)


def _over(context: PlanContext, grid: _Grid, exactly: TaskSource | None) -> list[Segment]:
    """Return the surplus segments that missing pieces are written over: one request instead of two."""
    if not exactly or recreates(context):
        return []
    return list(grid.others[: len(grid.missing)])


def _create_missing(
    context: PlanContext,
    grid: _Grid,
    source: TaskSource,
    exactly: TaskSource | None,
    builder: PlanBuilder,
    over: Sequence[Segment],
) -> None:
    staying = (*grid.fitting, *grid.renamed, *(over if exactly else grid.others))
    taken = {segment.number for segment in staying}
    numbers = (number for number in count(1) if number not in taken)
    for index, piece in enumerate(grid.missing):
        instead = over[index] if index < len(over) else None
        title = grid.title if grid.title is not None or instead is None else ""
        new = NewSegment(
            instead.number if instead else next(numbers), *piece, {} if title is None else {"title": title}
        )
        change = builder.change(
            "change" if instead else "add",
            "segment",
            str(new.number),
            before=show(context, instead) if instead else None,
            after=new.shown(),
            source=source,
        )
        send_create(context, new, [change], source, builder)


def _delete_others(
    context: PlanContext, grid: _Grid, exactly: TaskSource | None, builder: PlanBuilder, spared: Sequence[Segment] = ()
) -> None:
    if exactly is None:
        return
    for segment in (s for s in grid.others if s not in spared):
        shown = show(context, segment)
        change = builder.change(
            "delete",
            "segment",
            str(segment.number),
            before=shown,
            after=None,
            source=exactly,
            exactly=True,
            reversible=not cannot_write_back(segment),
        )
        send_delete(context, segment.number, [change], builder)


def _holds(expect: Expectation, live: LiveTarget) -> bool:
    expected = mapping(expect.desired)
    pieces = expected.get("pieces")
    segments = live.asset.segments if live.asset else ()
    return isinstance(pieces, list) and all(
        any(piece_matches({**mapping(piece), "title": expected.get("title")}, segment) for segment in segments)
        for piece in pieces
    )


ASPECT = Aspect(
    name="segmentation",
    plan=plan_segmentation,
    holds=_holds,
    show=lambda _, live: [show_segment(segment) for segment in live.asset.segments] if live.asset else None,
    value_items=lambda _: tuple(f"segment-{name}:*" for name in SEGMENT_NAMES[1:]),
    commands={
        "CREATESEGMENTATION": frozenset({"add", "change"}),
        "DELETESEGMENT": frozenset({"change"}),
    },
)
