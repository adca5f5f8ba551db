"""What the aspects segment and segmentation share: live segments in frames of the file, and the two requests."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct, field, structs

from msauto.aspects.aspect import SEGMENTS, TimelinePlace, frames_of
from msauto.aspects.comparison import Attributes, as_number, mapping, same_value
from msauto.aspects.plan_builder import Phase, PlanContext, refuse
from msauto.aspects.positions import in_point, to_wire
from msauto.errors import PlanningError
from msauto.model import requests
from msauto.model.desired import TaskSource
from msauto.model.fields import SEGMENT_NAMES
from msauto.model.identity import plain
from msauto.model.live import Segment
from msauto.model.plan import Action, Basis, Expectation, Json
from msauto.model.ports import LiveTarget

_UNREPORTED = SEGMENT_NAMES[1:]
"""Attributes that the server may not report: all but the title."""


def segment_misses(
    desired: Attributes, segment: Segment, remembered: Attributes = MappingProxyType({})
) -> tuple[str, ...]:
    """Return the names of the attributes in which a segment is not as desired.

    ``remembered`` is what the ledger holds of attributes that the server does not report; what neither knows differs.
    """
    misses: list[str] = []
    for name, value in desired.items():
        if name in {"start", "duration"} and value != getattr(segment, name):
            misses.append(name)
        if name in SEGMENT_NAMES:
            reported = segment.text(name)
            known = remembered.get(name) if reported is None else reported
            if known is None or not same_value(name, str(value), str(known)):
                misses.append(name)
    return tuple(misses)


def segment_matches(desired: Attributes, segment: Segment, remembered: Attributes = MappingProxyType({})) -> bool:
    """Return whether a segment has every attribute that ``desired`` names."""
    return not segment_misses(desired, segment, remembered)


def reported_part(desired: Attributes, segment: Segment) -> Attributes:
    """Return what is desired of a segment without the attributes that the server does not report."""
    return {name: value for name, value in desired.items() if name not in unreported(segment)}


def unreported(segment: Segment) -> tuple[str, ...]:
    """Return the names of the attributes that the server does not report of a segment."""
    return tuple(name for name in _UNREPORTED if segment.text(name) is None)


def pieces_of(expect: Expectation) -> list[Attributes]:
    """Return the pieces that a CREATESEGMENTATION is expected to make, each with the title of all."""
    expected = mapping(expect.desired)
    pieces = expected["pieces"]
    return [{**mapping(piece), "title": expected.get("title")} for piece in pieces] if isinstance(pieces, list) else []


def piece_matches(desired: Attributes, segment: Segment) -> bool:
    """Return whether a segment is one of CREATESEGMENTATION: its title is the desired one, or begins with it."""
    title = desired.get("title")
    fits = desired["start"] == segment.start and desired["duration"] == segment.duration
    return fits and (title is None or plain(segment.title).startswith(plain(str(title))))


def segments_numbered(live: LiveTarget, key: str) -> tuple[Segment, ...]:
    """Return the segments of that number: more than one are never as desired."""
    segments = live.asset.segments if live.asset else ()
    return tuple(segment for segment in segments if str(segment.number) == key)


def twins_of(segments: Sequence[Segment]) -> dict[int, list[Segment]]:
    """Return the segments that share their number with others, by number."""
    by_number: dict[int, list[Segment]] = {}
    for segment in segments:
        by_number.setdefault(segment.number, []).append(segment)
    return {number: same for number, same in by_number.items() if len(same) > 1}


def describe_twins(number: int, same: Sequence[Segment]) -> str:
    """Return a sentence that names all segments of one number."""
    each = (f"{segment.title!r} (frames {segment.start} to {segment.start + segment.duration})" for segment in same)
    return f"{len(same)} live segments have the number {number}: {' and '.join(each)}"


def refuse_twins(number: int, same: Sequence[Segment], source: TaskSource, remedy: str = "") -> PlanningError:
    """Return the error of a task whose deletion of one number may take the wrong one of several segments."""
    return refuse(
        f"{describe_twins(number, same)}; DELETESEGMENT by this number may take the wrong one",
        source,
        remedy or f"remove or renumber one by hand, or set `lossy: true` in the task: then all {len(same)} are deleted",
    )


def show_segment(segment: Segment) -> dict[str, Json]:
    """Return a live segment as plans show it: frames as numbers, only what the server reports."""
    shown: dict[str, Json] = {name: getattr(segment, name) for name in ("number", "start", "duration", "title")}
    reported: dict[str, Json] = {name: segment.text(name) for name in _UNREPORTED}
    reported |= {"track": segment.track, "rating": segment.rating}
    reported["further_titles"] = list(segment.titles[1:])
    return shown | {name: value for name, value in reported.items() if value}


def timeline_place(value: Json) -> TimelinePlace | None:
    """Return where a segment, as plans show it, is on a timeline; ``None`` if it is nowhere."""
    shown = mapping(value)
    start, duration = frames_of(shown.get("start")), frames_of(shown.get("duration"))
    if start is None or duration is None:
        return None
    return TimelinePlace(SEGMENTS, start, duration, str(shown.get("title") or ""))


def recreates(context: PlanContext) -> bool:
    """Return whether a segment is changed by deleting it first; else it is written over (dialect `segment_update`)."""
    return context.server.dialect.segment_update == "recreate"


def live_segments(context: PlanContext) -> tuple[Segment, ...]:
    """Return the live segments, counted from the first frame of the file, by number."""
    origin = in_point(context.asset, context.server.dialect)
    found = [structs.replace(segment, start=segment.start + origin) for segment in context.asset.segments]
    return tuple(sorted(found, key=lambda segment: segment.number))


def show(context: PlanContext, segment: Segment) -> dict[str, Json]:
    """Return a live segment as plans show it, with the attributes that only the ledger knows."""
    return show_segment(segment) | {name: text for name, text in known_texts(context, segment).items() if text}


def known_texts(context: PlanContext, segment: Segment) -> dict[str, str]:
    """Return a segment's attributes besides its title: as reported, else as last written; not those unknown."""
    items = {name: context.memory.get(f"segment-{name}:{segment.number}") for name in unreported(segment)}
    texts = {name: items[name] if name in items else segment.text(name) for name in _UNREPORTED}
    return {name: str(text) for name, text in texts.items() if text is not None}


def cannot_write_back(segment: Segment) -> tuple[str, ...]:
    """Return what the interface cannot write again: CREATESEGMENT supports neither track nor rating."""
    losses = [f"its track {segment.track!r}"] if segment.track else []
    if segment.rating and as_number(segment.rating) != 0:
        losses.append(f"its rating {segment.rating}")
    if len(segment.titles) > 1:
        losses.append(f"its further titles {', '.join(map(repr, segment.titles[1:]))}")
    return tuple(losses)


def _check_lossy(context: PlanContext, segment: Segment, source: TaskSource) -> None:
    """Refuse to change a segment that cannot be created again as it is, unless the task sets ``lossy``.

    A server that overwrites a segment may lose what CREATESEGMENT cannot set.
    """
    losses = cannot_write_back(segment)
    if losses and not context.lossy:
        way = "deleting and creating it, which loses" if recreates(context) else "overwriting it, which may lose"
        raise refuse(
            f"segment {segment.number} can only be changed by {way} {' and '.join(losses)}",
            source,
            "set `lossy: true` in the task, or change the segment by hand",
        )


class NewSegment(Struct, frozen=True):
    """A segment to create; ``start`` counts from the first frame of the file."""

    number: int
    start: int
    duration: int
    fields: Mapping[str, str] = field(default_factory=dict)

    def shown(self) -> dict[str, Json]:
        """Return it as plans show it."""
        return {"number": self.number, "start": self.start, "duration": self.duration, **self.fields}


def remake(context: PlanContext, live: Segment, title: str | None = None) -> NewSegment:
    """Return a live segment as it would be created again, with ``title`` if that is not ``None``."""
    title = live.title or None if title is None else title
    fields = {} if title is None else {"title": title}
    return NewSegment(live.number, live.start, live.duration, fields | known_texts(context, live))


def rewrite_segment(
    context: PlanContext,
    live: Segment,
    new: NewSegment,
    source: TaskSource,
    basis: Basis = "live",
    *,
    named: bool = True,
) -> None:
    """Change a live segment; ``named``: the task means just this one.

    Its attributes that are known to be empty, and stay so, are not a difference.
    """
    _check_lossy(context, live, source)
    empty = {name: "" for name, text in known_texts(context, live).items() if text == "" == new.fields.get(name)}
    before = show(context, live) | empty
    lost = {name: None for name in ("track", "rating", "further_titles") if name in before}
    if as_number(live.rating) == 0:
        lost.pop("rating", None)  # none at all
    after, number = before | lost | new.shown(), str(live.number)
    reversible = not cannot_write_back(live)
    change = context.builder.change(
        "change",
        "segment",
        number,
        before,
        after,
        source,
        basis=basis,
        reversible=reversible,
        losses=int(not named or not reversible),
    )
    if recreates(context):
        send_delete(context, live.number, change)
    _send_create(context, new, change, source)


def delete_segment(context: PlanContext, live: Segment, source: TaskSource, *, exactly: bool = False) -> None:
    """Delete a live segment."""
    number, shown, reversible = str(live.number), show(context, live), not cannot_write_back(live)
    change = context.builder.change(
        "delete", "segment", number, shown, None, source, losses=int(exactly), reversible=reversible
    )
    send_delete(context, live.number, change)


def create_segment(context: PlanContext, new: NewSegment, instead: Segment | None, source: TaskSource) -> None:
    """Create a segment; ``instead`` is the live one that it is written over, which no task names."""
    before, losses = (show(context, instead), 1) if instead else (None, 0)
    action: Action = "change" if instead else "add"
    change = context.builder.change(action, "segment", str(new.number), before, new.shown(), source, losses=losses)
    _send_create(context, new, change, source)


def send_delete(context: PlanContext, number: int, change: int) -> None:
    """Send the deletion of a segment."""
    request = requests.delete_segment(context.path, number)
    context.builder.send(Phase.SEGMENT_DELETE, request, [change], Expectation("segment", str(number), None))


def _send_create(context: PlanContext, new: NewSegment, change: int, source: TaskSource) -> None:
    """Send the creation of a segment, which overwrites the one of that number where the dialect requires it."""
    start = to_wire(new.start, in_point(context.asset, context.server.dialect), source)
    request = requests.create_segment(context.path, new.number, start, new.duration, new.fields)
    desired: dict[str, Json] = {"start": start, "duration": new.duration, **new.fields}
    context.builder.send(Phase.SEGMENT_CREATE, request, [change], Expectation("segment", str(new.number), desired))


Span = tuple[int, int]
"""From a frame up to, not with, another."""


def free_first(moves: Sequence[tuple[Span, Span]]) -> list[int]:
    """Order segments that go from one span to another, so that each finds its new span left by the others.

    Returns indices of ``moves``; where none needs another, in their order. Those that swap places have no such order:
    they keep theirs, and a server that refuses an overlap reports it.

    >>> free_first([((0, 10), (0, 15)), ((10, 20), (15, 25))])
    [1, 0]
    """
    by_start = sorted((old, index) for index, (old, _) in enumerate(moves))
    longest = max((end - start for (start, end), _ in moves), default=0)
    ordered: dict[int, None] = {}
    begun: set[int] = set()
    for first in range(len(moves)):
        stack = [first]
        while stack:
            index = stack[-1]
            if index in begun:
                ordered.setdefault(stack.pop())
                continue
            begun.add(index)
            in_the_way = _within(by_start, moves[index][1], longest)
            stack += [other for other in reversed(in_the_way) if other not in begun]
    return list(ordered)


def _within(by_start: Sequence[tuple[Span, int]], span: Span, longest: int) -> list[int]:
    start, end = span
    low, high = (bisect_left(by_start, ((frame, 0), 0)) for frame in (start - longest, end))
    return [index for (_, old_end), index in by_start[low:high] if old_end > start]


def editorial(title: str, segments: Sequence[tuple[int, int, int]]) -> list[str]:
    """Return warnings about segments (number, start, duration) that overlap or leave gaps between them.

    Each segment is compared with the earlier one that ends last, because a short segment may be inside a long one.
    """
    warnings: list[str] = []
    furthest, reached = 0, 0
    for index, (number, start, duration) in enumerate(sorted(segments, key=lambda segment: (segment[1], segment[2]))):
        end = start + duration
        if index and start < reached:
            warnings.append(f"{title}: segments {furthest} and {number} overlap by {min(reached, end) - start} frames")
        elif index and start > reached:
            warnings.append(f"{title}: {start - reached} frames lie between segments {furthest} and {number}")
        if not index or end > reached:
            furthest, reached = number, end
    return warnings
