"""The timeline of a clip on one line of text, before and after the changes of a plan.

:func:`timeline_of` reduces the clip to what one line can show; :func:`draw_timeline` draws it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from msauto.aspects.aspect import POINTS, SEGMENTS, TimelineItem, TimelinePlace
from msauto.model.plan import Action, Target
from msauto.report.clip_timeline import clip_timeline
from msauto.report.value_texts import show_frames

_STRENGTH: Final[Mapping[Action | None, int]] = {None: 0, "run": 0, "add": 1, "change": 2, "delete": 3}
"""Of several markers in one column the sign of the strongest change is drawn."""


class TimelineSegment(NamedTuple):
    """A segment; ``action`` is what happens to it, ``None`` where it stays as it is."""

    start: int
    duration: int
    number: str
    action: Action | None = None


class TimelineMarker(NamedTuple):
    """A marker; ``action`` is what happens to it, ``None`` where it stays as it is."""

    frame: int
    action: Action | None = None


@dataclass(frozen=True, slots=True)
class TimelineSide:
    """What is on a clip, before the changes or after them."""

    segments: tuple[TimelineSegment, ...]
    markers: tuple[TimelineMarker, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """A clip of ``frames`` frames, whose segments or markers change. ``length`` is its length as a time code."""

    frames: int
    length: str
    before: TimelineSide
    after: TimelineSide

    @property
    def only_adds(self) -> bool:
        """Whether nothing on it is moved, changed or removed."""
        return all(each.action is None for items in (self.before.segments, self.before.markers) for each in items)


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


def timeline_of_all(targets: Sequence[Target]) -> Timeline | None:
    """Return the timeline that all targets have; ``None`` where they differ."""
    timeline = timeline_of(targets[0])
    return timeline if all(timeline_of(target) == timeline for target in targets[1:]) else None


def _side(items: Iterable[tuple[TimelinePlace | None, TimelineItem]]) -> TimelineSide:
    segments, markers = [], []
    for place, item in items:
        if place is not None and place.lane == SEGMENTS:
            segments.append(TimelineSegment(place.start, place.duration, item.name, item.action))
        elif place is not None and place.lane != POINTS:
            markers.append(TimelineMarker(place.start, item.action))
    return TimelineSide(
        tuple(sorted(segments, key=lambda each: each.start)), tuple(sorted(markers, key=lambda each: each.frame))
    )


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


def _draw(side: TimelineSide, frames: int, columns: int, signs: TimelineSigns) -> str:
    cells = [signs.empty] * columns

    def column(frame: int) -> int:
        return max(0, min(columns - 1, frame * columns // frames))

    for segment in side.segments:
        end = max(column(segment.start) + 1, -(-(segment.start + segment.duration) * columns // frames))
        fill = signs.kept if segment.action is None else signs.changed
        for place in range(column(segment.start), min(end, columns)):
            cells[place] = fill
    starts = [column(segment.start) for segment in side.segments]
    for segment, start, end in zip(side.segments, starts, (*starts[1:], columns), strict=False):
        border = signs.border if start else ""
        shown = border + segment.number
        for place, sign in enumerate(shown if len(shown) < end - start else border, start):
            cells[place] = sign
    marks: dict[int, Action | None] = {}
    for marker in side.markers:
        place = column(marker.frame)
        marks[place] = max(marks.get(place), marker.action, key=lambda action: _STRENGTH[action])
    for place, action in marks.items():
        cells[place] = signs.markers[action]
    return "".join(cells)
