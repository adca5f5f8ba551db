"""Segmentation: the grid of equal pieces that CREATESEGMENTATION makes (interface, «Commands»).

One request makes the whole grid where nothing is in its way; missing pieces are created one by one where that takes
fewer requests, or where other segments must stay. What its requests do is done to segments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msauto.aspects.aspect import (
    SEGMENTS,
    Aspect,
    Detail,
    Live,
    Shown,
    TimelineItem,
    TimelinePlace,
    frames_of,
)
from msauto.aspects.comparison import Item, mapping, text_of
from msauto.aspects.list_aspect import ListAspect, each_of
from msauto.aspects.matching import ListItem, Matching
from msauto.aspects.plan_builder import Phase, PlanContext, length_of, refuse
from msauto.aspects.positions import check_in_point_stays, show_length, to_frames
from msauto.aspects.segment_arguments import DesiredSegments, cannot_write_back
from msauto.aspects.segment_frames import (
    NOT_SENT,
    TITLE_BEGINS,
    UNREPORTED,
    SegmentRequests,
    show,
    span_of,
)
from msauto.model import requests
from msauto.model.desired import ABSENT, TaskSource
from msauto.model.plan import Change, Target
from msauto.model.snapshot import Json

_MOST_PIECES: Final = 10_000


class Segmentation(Aspect):
    """What a segmentation changes as a whole."""

    name = "segmentation"

    def shown(self, change: Change) -> Shown:
        """Return a change without its key, which only repeats the duration."""
        return Shown("", "", change)

    def details(self, change: Change, target: Target) -> Sequence[Detail]:
        """Return into how many pieces the clip is divided, their title, and what is lost and was never known."""
        made = mapping(change.after)
        details = [Detail(f"in {made['pieces']} pieces of", made["duration"], "duration")]
        if made.get("title"):
            details.append(Detail("title", made["title"], "title"))
        for name, value in made.items():
            if value is None:
                details.append(Detail(name, "(unknown) → (nothing)"))
        return details

    def timeline(self, change: Change, target: Target, live: Live) -> Iterator[TimelineItem]:
        """Yield the segments that a segmentation replaces, and those that it makes."""
        before = change.before if isinstance(change.before, list) else ()
        for segment in map(mapping, before):
            start, end = span_of(segment)
            place = TimelinePlace(SEGMENTS, start, end - start, text_of(segment.get("title")))
            yield TimelineItem("delete", text_of(segment.get("number")), place, None)
        made = mapping(change.after)
        duration = frames_of(made.get("duration"))
        if not duration or target.context is None:
            return
        title = text_of(made.get("title"))
        length = target.context.frames or 0
        for number, start in enumerate(range(0, length, duration), 1):
            place = TimelinePlace(SEGMENTS, start, min(duration, length - start), title)
            yield TimelineItem("add", str(number), None, place)


def plan_segmentation(rule: ListAspect, context: PlanContext, desired: DesiredSegments) -> None:
    """Divide the clip into equal pieces, the last one shorter; with ``exactly`` nothing else stays."""
    exactly = desired.exactly
    check_in_point_stays(context)
    context.builder.look(rule.name, *length_of(context.asset))
    if exactly:
        context.builder.exclude_others(rule.name, ({},), exactly)
    duration, made = _pieces(rule, context, desired)
    live = rule.live(context)
    pieces = rule.with_keys_of_ours(context, made, live)
    matching = rule.matched(context, desired, pieces, live)
    matching = rule.without_kept(context, matching)
    rule.mind_surplus(context, matching)
    todo = SegmentRequests(rule, context, live)
    as_desired: list[str] = []
    renamed: list[str] = []
    for item, key in matching.pairs:
        keys = renamed if rule.differs(item.named, live[key]) else as_desired
        keys.append(key)
    remade = [*as_desired, *renamed]
    if _is_one_request_better(todo, matching, remade, len(renamed)):
        _plan_one_request(todo, duration, pieces, remade, matching.surplus)
    else:
        todo.write(matching)
        todo.send()


def _is_one_request_better(
    todo: SegmentRequests, matching: Matching, remade: Sequence[str], renamed: int
) -> bool:
    """Return whether one request makes all: that takes fewer, none must stay, none loses what is known of it."""
    live = matching.live
    singly = len(matching.created) + renamed
    if todo.recreates:
        singly += renamed
    for key in matching.surplus:
        singly += len(each_of(live[key]))
    if not live:
        return singly > 0
    if len(remade) + len(matching.surplus) != len(live):
        return False
    for key in remade:
        loses = cannot_write_back(live[key]) or any(map(live[key].get, UNREPORTED))
        if loses and not todo.context.lossy:
            return False
    deletions = sum(len(each_of(value)) for value in live.values())
    return deletions + 1 < singly


def _pieces(
    rule: ListAspect, context: PlanContext, desired: DesiredSegments
) -> tuple[int, list[ListItem]]:
    """Return how long the pieces are, and the pieces."""
    segmentation = desired.segmentation
    length = context.asset.frames
    assert segmentation is not None
    value = segmentation.value
    source = segmentation.source
    if desired.items:
        first = desired.items[0].source
        raise refuse(
            f"segments are desired one by one ({first.place}) and as a segmentation ({source.place})",
            first,
            "use one of the two",
        )
    if length is None:
        raise refuse(
            "a segmentation needs the clip's length, and the clip reports none",
            source,
            "use segments",
        )
    duration = to_frames(value.duration, context.asset, source)
    if duration == 0:
        raise refuse(
            f"a segmentation into pieces of 0 frames: {show_length(context.asset)}",
            source,
            "write a duration of at least one frame",
        )
    count = -(-length // duration)
    if count > _MOST_PIECES:
        raise refuse(
            f"a segmentation into {count} pieces, more than {_MOST_PIECES}: {show_length(context.asset)}",
            source,
            "write a longer duration",
        )
    pieces = []
    for start in range(0, length, duration):
        named: Item = {"start": start, "duration": min(duration, length - start)}
        place = rule.place(named)
        if value.title is not ABSENT:
            named[TITLE_BEGINS] = value.title
        pieces.append(
            ListItem(None, f"the piece at frame {start}", named, source, (place,), present=True)
        )
    return duration, pieces


def _plan_one_request(
    todo: SegmentRequests,
    duration: int,
    pieces: Sequence[ListItem],
    remade: Sequence[str],
    surplus: Mapping[str, TaskSource],
) -> None:
    """Delete all segments, and make the grid by one request: the server gives the pieces their numbers."""
    rule = todo.rule
    context = todo.context
    title: str | None = None
    grid: Item = {"duration": duration, "pieces": len(pieces)}
    if TITLE_BEGINS in pieces[0].named:
        title = str(pieces[0].named[TITLE_BEGINS])
        grid["title"] = title
    change = _change_to(grid, todo, remade, pieces[0].source)
    for number in remade:
        todo.gone[int(number)].append(change)
    for number, exactly in surplus.items():
        todo.delete(number, exactly, exactly=True)
    todo.send()
    effects = []
    for piece in pieces:
        effects.append(rule.effect(rule.new_key(context), None, {**NOT_SENT, **piece.named}))
    request = requests.create_segmentation(context.path, duration, title)
    context.builder.send(Phase.SEGMENT_CREATE, request, [change], *effects)


def _change_to(grid: Item, todo: SegmentRequests, remade: Sequence[str], source: TaskSource) -> int:
    """Add the change to a grid, and return its number; what it loses and was never known is ``None`` afterwards."""
    builder = todo.context.builder
    key = str(grid["duration"])
    before: list[Json] = [show(number, todo.live[number]) for number in remade]
    unknown: set[str] = set()
    is_reversible = True
    for number in remade:
        unknown.update(todo.unknown(number))
        is_reversible = is_reversible and not cannot_write_back(todo.live[number])
    for (aspect, _), outside in builder.outside.items():
        if aspect == todo.rule.name:  # the change shows the first of them
            builder.outside["segmentation", key] = outside
            break
    change = builder.change(
        "change" if remade else "add",
        "segmentation",
        key,
        before or None,
        {**grid, **dict.fromkeys(sorted(unknown))},
        source,
        reversible=is_reversible and not unknown,
        losses=len(remade),
    )
    title = text_of(grid.get("title"))
    builder.warn_of_blanks(f"the title of segmentation {key!r}", "", title, source)
    return change
