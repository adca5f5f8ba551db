"""What a clip looks like before and after the changes of a plan: its segments, markers and points, in frames.

The timelines of the terminal, of Markdown and of the HTML page are drawn from it, and pictures are chosen by it. Texts
are safe to show. Frames count from the first one of the file. :func:`timeline_of` reduces the clip to what one line of
text can show; :func:`draw_timeline` draws it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

from msauto.aspects import ASPECTS
from msauto.aspects.aspect import POINTS, SEGMENTS, TimelineItem, TimelinePlace
from msauto.model.plan import Action, Target
from msauto.report.sanitizing import show
from msauto.report.texts import show_frames


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


_STRENGTH: Final[Mapping[Action | None, int]] = {None: 0, "run": 0, "add": 1, "change": 2, "delete": 3}
"""Of several markers in one column the sign of the strongest change is drawn."""


class TimelineMark(NamedTuple):
    """A segment with its number, or a marker (``None``); ``action`` is ``None`` where it stays as it is."""

    start: int
    duration: int
    number: str | None
    action: Action | None


@dataclass(frozen=True, slots=True)
class Timeline:
    """A clip of ``frames`` frames, whose segments or markers change. ``length`` is its length as a time code."""

    frames: int
    length: str
    before: tuple[TimelineMark, ...]
    after: tuple[TimelineMark, ...]

    @property
    def only_adds(self) -> bool:
        """Whether nothing on it is moved, changed or removed."""
        return all(each.action is None for each in self.before)


def timeline_of(target: Target) -> Timeline | None:
    """Return the timeline of an asset; ``None`` where no segment or marker changes, or the length is not known."""
    clip = clip_timeline(target)
    if clip is None or not clip.frames:
        return None
    changed = {place.lane for item in clip.items if item.action for place in (item.before, item.after) if place}
    if not changed - {POINTS}:
        return None
    length = show_frames(clip.frames, clip.rate)
    return Timeline(
        clip.frames,
        length.partition(" ")[0] if clip.rate else length,
        before=_side((item.before, item) for item in clip.items),
        after=_side((item.after, item) for item in clip.items),
    )


def _side(items: Iterable[tuple[TimelinePlace | None, TimelineItem]]) -> tuple[TimelineMark, ...]:
    """Return what is on one side in its order; points are not drawn."""
    marks = (
        TimelineMark(place.start, place.duration, item.name if place.lane == SEGMENTS else None, item.action)
        for place, item in items
        if place is not None and place.lane != POINTS
    )
    return tuple(sorted(marks, key=lambda each: each.start))


# Drawing -------------------------------------------------------------------------------------------------------


class TimelineSigns(NamedTuple):
    """The signs of a drawing, each one column wide."""

    left: str
    right: str
    empty: str
    kept: str
    changed: str
    border: str
    markers: Mapping[Action | None, str]


UNICODE: Final = TimelineSigns("├", "┤", "┄", "─", "━", "┬", {None: "•", "add": "+", "change": "~", "delete": "×"})
ASCII: Final = TimelineSigns("[", "]", ".", "-", "=", "|", {None: "o", "add": "+", "change": "~", "delete": "x"})


def draw_timeline(timeline: Timeline, width: int, signs: TimelineSigns) -> list[tuple[str, str]]:
    """Return the rows as label and drawing: *after*, and above it *before* where something there changes or goes.

    ``width``: columns of a drawing, its two ends included, at least 12.
    """
    sides = [("before", timeline.before), ("after", timeline.after)]
    return [
        (label, f"{signs.left}{_draw(side, timeline.frames, width - 2, signs)}{signs.right}")
        for label, side in (sides[1:] if timeline.only_adds else sides)
    ]


def legend_of(drawn: Collection[str], signs: TimelineSigns) -> str:
    """Return what the signs in drawings mean; empty if none of them needs to be explained."""
    meanings = {
        signs.kept: "segment",
        signs.changed: "new or changed segment",
        signs.markers[None]: "marker",
        signs.markers["add"]: "new",
        signs.markers["change"]: "changed",
        signs.markers["delete"]: "removed",
    }
    used = [f"{sign} {meaning}" for sign, meaning in meanings.items() if sign in drawn]
    return f"Timeline: {', '.join(used)}" if used else ""


def _draw(side: Sequence[TimelineMark], frames: int, columns: int, signs: TimelineSigns) -> str:
    cells = [signs.empty] * columns

    def column(frame: int) -> int:
        return max(0, min(columns - 1, frame * columns // frames))

    segments = [(column(each.start), each) for each in side if each.number is not None]
    for start, segment in segments:
        end = max(start + 1, -(-(segment.start + segment.duration) * columns // frames))
        for place in range(start, min(end, columns)):
            cells[place] = signs.kept if segment.action is None else signs.changed
    ends = [start for start, _ in segments[1:]]
    for (start, segment), end in zip(segments, (*ends, columns), strict=False):
        border = signs.border if start else ""
        shown = f"{border}{segment.number}"
        for place, sign in enumerate(shown if len(shown) < end - start else border, start):
            cells[place] = sign
    marks: dict[int, Action | None] = {}
    for marker in side:
        if marker.number is None:
            place = column(marker.start)
            marks[place] = max(marks.get(place), marker.action, key=lambda action: _STRENGTH[action])
    for place, action in marks.items():
        cells[place] = signs.markers[action]
    return "".join(cells)


class StillPlace(NamedTuple):
    """A frame of a target, which is named by its index in the plan.

    The frame counts from the first one of the file; ``None`` is the picture that the server chooses.
    """

    target: int
    frame: int | None


Stills = Mapping[StillPlace, bytes]
"""Pictures as PNG."""
NO_STILLS: Final[Stills] = {}
