"""Segmentation: the grid of equal pieces that CREATESEGMENTATION makes (interface, «Commands»).

One request makes the whole grid where nothing is in its way; missing pieces are created one by one where that takes
fewer requests, or where other segments must stay. What its requests do is done to segments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msauto.aspects.aspect import SEGMENTS, Aspect, Detail, Live, Shown, TimelineItem, TimelinePlace, frames_of
from msauto.aspects.comparison import mapping, text_of
from msauto.aspects.list_aspect import Item, ListAspect, each_of
from msauto.aspects.matching import ListItem, match
from msauto.aspects.plan_builder import Phase, PlanContext, length_of, refuse
from msauto.aspects.positions import check_in_point_stays, show_length, to_frames
from msauto.aspects.segment_arguments import DesiredSegments, cannot_write_back
from msauto.aspects.segment_frames import NOT_SENT, TITLE_BEGINS, UNREPORTED, SegmentRequests, show, span_of
from msauto.model import requests
from msauto.model.desired import ABSENT, TaskSource
from msauto.model.plan import Change, Target
from msauto.model.snapshot import TWINS

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
        grid = Detail(f"in {made['pieces']} pieces of", made["duration"], "duration")
        titles = [Detail("title", made["title"], "title")] if made.get("title") else []
        return [grid, *titles, *(Detail(name, "(unknown) → (nothing)") for name in made if made[name] is None)]

    def timeline(self, change: Change, target: Target, live: Live) -> Iterator[TimelineItem]:
        """Yield the segments that a segmentation replaces, and those that it makes."""
        for each in map(mapping, change.before if isinstance(change.before, list) else ()):
            start, end = span_of(each)
            place = TimelinePlace(SEGMENTS, start, end - start, text_of(each.get("title")))
            yield TimelineItem("delete", text_of(each.get("number")), place, None)
        made, length = mapping(change.after), (target.context and target.context.frames) or 0
        duration = frames_of(made.get("duration"))
        for number, start in enumerate(range(0, length, duration) if duration else (), 1):
            place = TimelinePlace(SEGMENTS, start, min(duration or 0, length - start), text_of(made.get("title")))
            yield TimelineItem("add", str(number), None, place)


def plan_segmentation(rule: ListAspect, context: PlanContext, desired: DesiredSegments) -> None:
    """Divide the clip into equal pieces, the last one shorter; with ``exactly`` nothing else stays."""
    exactly = desired.exactly
    check_in_point_stays(context)
    context.builder.look(rule.name, *length_of(context.asset))
    if exactly:
        context.builder.unwanted.append((rule.name, {}))
    duration, pieces = _pieces(rule, context, desired)
    live = rule.live(context)
    pieces = rule.with_keys_of_ours(context, pieces, live)
    twins = rule.twins(context, live, pieces, desired)
    matching = match(pieces, {k: v for k, v in live.items() if TWINS not in v}, rule.handles, rule.differs)
    surplus = {**(dict.fromkeys(matching.others, exactly) if exactly else {}), **twins}
    matching, surplus = rule.without_kept(context, matching, live, surplus)
    todo = SegmentRequests(rule, context, live)
    renamed = {key for item, key in matching.kept if rule.differs(item.named, live[key])}
    again = sorted((key for _, key in matching.kept), key=renamed.__contains__)
    # One request makes all where that takes fewer, none must stay, and none loses what is known of it.
    segments, extra = (sum(len(each_of(live[key])) for key in keys) for keys in (live, surplus))
    singly = len(matching.created) + (2 if todo.recreates else 1) * len(renamed) + extra
    loses = any(cannot_write_back(live[key]) or any(map(live[key].get, UNREPORTED)) for key in again)
    may_go = len(again) + len(surplus) == len(live) and (context.lossy or not loses)
    if singly and (not live or (may_go and segments + 1 < singly)):
        _plan_whole(todo, duration, pieces, again, surplus)
    else:
        todo.write(matching, surplus)
        todo.send()


def _pieces(rule: ListAspect, context: PlanContext, desired: DesiredSegments) -> tuple[int, list[ListItem]]:
    segmentation, length = desired.segmentation, context.asset.frames
    assert segmentation is not None
    value, source = segmentation.value, segmentation.source
    if desired.items:
        first = desired.items[0].source
        raise refuse(
            f"segments are desired one by one ({first.place}) and as a segmentation ({source.place})",
            first,
            "use one of the two",
        )
    if length is None:
        raise refuse("a segmentation needs the clip's length, and the clip reports none", source, "use segments")
    duration = to_frames(value.duration, context.asset, source)
    if duration == 0:
        raise refuse(f"a segmentation into pieces of 0 frames: {show_length(context.asset)}", source, "above 0")
    count = -(-length // duration)
    if count > _MOST_PIECES:
        raise refuse(
            f"a segmentation into {count} pieces, more than {_MOST_PIECES}: {show_length(context.asset)}",
            source,
            "write a longer duration",
        )
    title = None if value.title is ABSENT else value.title
    pieces = []
    for start in range(0, length, duration):
        place: Item = {"start": start, "duration": min(duration, length - start)}
        named = place if title is None else {**place, TITLE_BEGINS: title}
        pieces.append(ListItem(None, f"the piece at frame {start}", named, source, (rule.place(place),), present=True))
    return duration, pieces


def _plan_whole(
    todo: SegmentRequests,
    duration: int,
    pieces: Sequence[ListItem],
    again: Sequence[str],
    surplus: Mapping[str, TaskSource],
) -> None:
    """Delete all segments, and make the grid by one request: the server gives the pieces their numbers."""
    rule, builder, live, key = todo.rule, todo.context.builder, todo.live, str(duration)
    unknown = {name for number in again for name in todo.unknown(number)}
    source, title = pieces[0].source, pieces[0].named.get(TITLE_BEGINS)
    named: Item = {} if title is None else {"title": title}
    outside = [each for (aspect, _), each in builder.outside.items() if aspect == rule.name]
    if outside:
        builder.outside["segmentation", key] = outside[0]
    change = builder.change(
        "change" if again else "add",
        "segmentation",
        key,
        [show(number, live[number]) for number in again] or None,
        {"duration": duration, "pieces": len(pieces), **named, **dict.fromkeys(unknown)},
        source,
        reversible=not unknown and not any(cannot_write_back(live[number]) for number in again),
        losses=len(again),
    )
    builder.warn_of_blanks(f"the title of segmentation {key!r}", "", text_of(title), source)
    for number in again:
        todo.gone[int(number)].append(change)
    for number, exactly in surplus.items():
        todo.delete(number, exactly, exactly=True)
    todo.send()
    effects = [rule.effect(rule.new_key(todo.context), None, {**NOT_SENT, **piece.named}) for piece in pieces]
    request = requests.create_segmentation(todo.context.path, duration, None if title is None else str(title))
    builder.send(Phase.SEGMENT_CREATE, request, [change], *effects)
