"""Segmentation: the grid of equal pieces that CREATESEGMENTATION makes (interface, «Asset commands»).

One request makes the whole grid where nothing is in its way; missing pieces are created one by one where that takes
fewer requests, or where other segments must stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from msauto.aspects.live_segments import (
    NewSegment,
    cannot_write_back,
    check_lossy,
    keywords_of,
    live_segments,
    recreates,
    remake,
    send_create,
    send_delete,
    show,
    show_change,
)
from msauto.diffing.builder import PlanBuilder, PlanContext, refuse
from msauto.diffing.comparison import piece_matches
from msauto.diffing.order import Phase
from msauto.diffing.positions import in_point, show_length, to_frames
from msauto.interface import requests
from msauto.model.desired import ABSENT, DesiredSegmentation, Sourced, TaskSource
from msauto.model.live import Segment
from msauto.model.plan import Action, Expectation, Json

Piece = tuple[int, int]
"""Start and duration in frames of the file."""


@dataclass(frozen=True, slots=True)
class _Grid:
    """How live segments stand to the grid."""

    pieces: tuple[Piece, ...]
    duration: int
    title: str | None
    fitting: tuple[Segment, ...]
    renamed: tuple[Segment, ...]  # at the place of a piece, under another title
    missing: tuple[Piece, ...]
    others: tuple[Segment, ...]


def plan_segmentation(
    scene: PlanContext, wanted: Sourced[DesiredSegmentation], exactly: TaskSource | None, draft: PlanBuilder
) -> None:
    """Divide the clip into equal pieces, the last one shorter; with ``exactly`` nothing else stays."""
    draft.look("segments", "length")
    grid = _grid(scene, wanted)
    extra = grid.others if exactly else ()
    if not grid.renamed and not grid.missing and not extra:
        return
    update = 2 if recreates(scene) else 1
    singly = len(grid.missing) + update * len(grid.renamed) + len(extra)
    whole = len(scene.asset.segments) + 1
    if not scene.asset.segments or (whole < singly and _may_go(scene, grid, exactly)):
        _plan_whole(scene, grid, wanted.source, exactly, draft)
    else:
        _plan_singly(scene, grid, wanted.source, exactly, draft)


def _grid(scene: PlanContext, wanted: Sourced[DesiredSegmentation]) -> _Grid:
    frames = scene.asset.frames
    if frames is None:
        raise refuse("a segmentation needs the clip's length, and the clip tells none", wanted.source, "use segments")
    duration = to_frames(wanted.value.duration, scene.asset, wanted.source)
    if duration == 0:
        raise refuse(f"a segmentation into pieces of 0 frames: {show_length(scene.asset)}", wanted.source, "above 0")
    title = None if wanted.value.title is ABSENT else wanted.value.title
    pieces = tuple((start, min(duration, frames - start)) for start in range(0, frames, duration))
    return _sort(scene, pieces, duration, title)


def _sort(scene: PlanContext, pieces: tuple[Piece, ...], duration: int, title: str | None) -> _Grid:
    others = list(live_segments(scene))
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


def _may_go(scene: PlanContext, grid: _Grid, exactly: TaskSource | None) -> bool:
    """Tell whether all live segments may be deleted first: none must stay, and none loses what cannot be written."""
    if grid.others and not exactly:
        return False
    again = (*grid.fitting, *grid.renamed)
    return scene.lossy or not any(cannot_write_back(segment) or keywords_of(scene, segment) for segment in again)


def _plan_whole(
    scene: PlanContext, grid: _Grid, source: TaskSource, exactly: TaskSource | None, draft: PlanBuilder
) -> None:
    again = (*grid.fitting, *grid.renamed)
    before: Json = [show(scene, segment) for segment in again] if again else None
    after: dict[str, Json] = {"duration": grid.duration, "pieces": len(grid.pieces)}
    after |= {"title": grid.title} if grid.title is not None else {}
    action: Action = "change" if again else "add"
    number = draft.change(
        action,
        "segmentation",
        str(grid.duration),
        before=before,
        after=after,
        source=source,
        reversible=not any(map(cannot_write_back, again)),
    )
    for segment in again:
        send_delete(scene, segment.number, [number], draft)
    _delete_others(scene, grid, exactly, draft)
    origin = in_point(scene.asset, scene.server.dialect)
    seen: Json = [{"start": start - origin, "duration": duration} for start, duration in grid.pieces]
    expect = Expectation("segmentation", str(grid.duration), {"pieces": seen, "title": grid.title})
    draft.send(
        Phase.SEGMENT_CREATE, requests.create_segmentation(scene.path, grid.duration, grid.title), [number], expect
    )


def _plan_singly(
    scene: PlanContext, grid: _Grid, source: TaskSource, exactly: TaskSource | None, draft: PlanBuilder
) -> None:
    for segment in grid.renamed:
        check_lossy(scene, segment, source)
        new = remake(scene, segment, segment.number, title=grid.title)
        before, after = show_change(scene, segment, new)
        number = draft.change(
            "change",
            "segment",
            str(segment.number),
            before=before,
            after=after,
            source=source,
            reversible=not cannot_write_back(segment),
        )
        if recreates(scene):
            send_delete(scene, segment.number, [number], draft)
        send_create(scene, new, [number], source, draft)
    over = _over(scene, grid, exactly)
    _delete_others(scene, grid, exactly, draft, spared=over)
    _create_missing(scene, grid, source, exactly, draft, over)


def _over(scene: PlanContext, grid: _Grid, exactly: TaskSource | None) -> list[Segment]:
    """Return the surplus segments that missing pieces are written over: one request instead of two."""
    if not exactly or recreates(scene):
        return []
    return list(grid.others[: len(grid.missing)])


def _create_missing(
    scene: PlanContext,
    grid: _Grid,
    source: TaskSource,
    exactly: TaskSource | None,
    draft: PlanBuilder,
    over: Sequence[Segment],
) -> None:
    staying = (*grid.fitting, *grid.renamed, *(over if exactly else grid.others))
    taken = {segment.number for segment in staying}
    numbers = (number for number in count(1) if number not in taken)
    for index, piece in enumerate(grid.missing):
        instead = over[index] if index < len(over) else None
        title = grid.title if grid.title is not None or instead is None else ""
        new = NewSegment(instead.number if instead else next(numbers), *piece, title)
        change = draft.change(
            "change" if instead else "add",
            "segment",
            str(new.number),
            before=show(scene, instead) if instead else None,
            after=new.shown(),
            source=source,
        )
        send_create(scene, new, [change], source, draft)


def _delete_others(
    scene: PlanContext, grid: _Grid, exactly: TaskSource | None, draft: PlanBuilder, spared: Sequence[Segment] = ()
) -> None:
    if exactly is None:
        return
    for segment in (s for s in grid.others if s not in spared):
        shown = show(scene, segment)
        change = draft.change(
            "delete",
            "segment",
            str(segment.number),
            before=shown,
            after=None,
            source=exactly,
            exactly=True,
            reversible=not cannot_write_back(segment),
        )
        send_delete(scene, segment.number, [change], draft)
