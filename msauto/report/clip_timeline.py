"""What a clip looks like before and after the changes of a plan: its segments, markers and points, in frames.

The timelines of the terminal, of Markdown and of the HTML page are drawn from it, and pictures are chosen by it. Texts
are safe to show. Frames count from the first one of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from msauto.aspects import ASPECTS
from msauto.aspects.aspect import SEGMENTS, TimelineItem, TimelinePlace
from msauto.model.plan import Target
from msauto.report.sanitizing import show


@dataclass(frozen=True, slots=True)
class ClipTimeline:
    """A clip of ``frames`` frames (``None``: not reported), some of whose items change."""

    frames: int | None
    rate: Fraction | None
    items: tuple[TimelineItem, ...]


def clip_timeline(target: Target) -> ClipTimeline | None:
    """Return the clip before and after its changes; ``None`` if no change has a position."""
    found = (item for change in target.changes for item in ASPECTS[change.aspect].timeline(change, target))
    items = [_shown(item) for item in found if item.before or item.after]
    if not items:
        return None
    unchanged = map(_shown, _unchanged(target))
    return ClipTimeline(target.context.frames if target.context else None, target.rate, (*items, *unchanged))


def _unchanged(target: Target) -> Iterator[TimelineItem]:
    for segment in target.context.segments if target.context else ():
        place = TimelinePlace(SEGMENTS, segment.start, segment.duration, segment.title)
        yield TimelineItem(None, str(segment.number), place, place)
    for marker in target.context.markers if target.context else ():
        place = TimelinePlace(marker.track, marker.frame, 0, marker.title)
        yield TimelineItem(None, f"uid {marker.uid}", place, place)


def _shown(item: TimelineItem) -> TimelineItem:
    """Return an item whose texts are safe to show."""
    before, after = (
        place and place._replace(lane=show(place.lane), title=show(place.title) if place.title else "")
        for place in (item.before, item.after)
    )
    return TimelineItem(item.action, show(item.name), before, after)
