"""The timeline of a clip on one line of text, before and after the changes of a plan.

:func:`timeline_of` is the geometry, in frames from the first frame of the file; :func:`draw_timeline` draws it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from msauto.model.plan import Action, Change, Json, Target
from msauto.report.value_texts import show_frames

_ON_THE_TIMELINE: Final = frozenset({"segment", "segmentation", "marker"})
_STRENGTH: Final[Mapping[Action | None, int]] = {None: 0, "run": 0, "add": 1, "change": 2, "delete": 3}
"""Of several markers in one column the sign of the strongest change is drawn."""


class TimelineSegment(NamedTuple):
    """A segment; ``action`` is what happens to it, ``None`` where it stays as it is."""

    number: str
    start: int
    duration: int
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
    frames = target.context.frames if target.context else None
    changes = [change for change in target.changes if change.aspect in _ON_THE_TIMELINE]
    if target.context is None or not frames or not changes:
        return None
    segments = tuple(TimelineSegment(str(each.number), each.start, each.duration) for each in target.context.segments)
    markers = tuple(TimelineMarker(each.frame) for each in target.context.markers)
    before, after = ([*_changed(changes, frames, after=after)] for after in (False, True))
    return Timeline(
        frames,
        show_frames(frames, target.rate).partition(" ")[0] if target.rate else show_frames(frames, None),
        _side(before, segments, markers),
        _side(after, segments, markers),
    )


def timeline_of_all(targets: Sequence[Target]) -> Timeline | None:
    """Return the timeline that all targets have; ``None`` where they differ."""
    timeline = timeline_of(targets[0])
    return timeline if all(timeline_of(target) == timeline for target in targets[1:]) else None


def _side(
    changed: Iterable[TimelineSegment | TimelineMarker],
    segments: tuple[TimelineSegment, ...],
    markers: tuple[TimelineMarker, ...],
) -> TimelineSide:
    items = [*segments, *markers, *changed]
    return TimelineSide(
        tuple(sorted(each for each in items if isinstance(each, TimelineSegment))),
        tuple(sorted((each for each in items if isinstance(each, TimelineMarker)), key=lambda each: each.frame)),
    )


def _changed(changes: Iterable[Change], frames: int, *, after: bool) -> Iterator[TimelineSegment | TimelineMarker]:
    """Yield what changes: as it is before, or as it is after."""
    for change in changes:
        value = change.after if after else change.before
        if change.aspect == "segmentation" and after:
            yield from _pieces(value, frames)
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                shown = _marker(item, change.action) if change.aspect == "marker" else _segment(item, change)
                yield from [shown] if shown is not None else []


def _pieces(grid: Json, frames: int) -> Iterator[TimelineSegment]:
    """Yield the segments of a segmentation: pieces of equal length, the last one shorter."""
    duration = _number(grid.get("duration")) if isinstance(grid, dict) else None
    starts = range(0, frames, duration) if duration else ()
    for number, start in enumerate(starts, 1):
        yield TimelineSegment(str(number), start, min(duration or 0, frames - start), "add")


def _segment(item: Mapping[str, Json], change: Change) -> TimelineSegment | None:
    start, duration = _number(item.get("start")), _number(item.get("duration"))
    if start is None or duration is None:
        return None
    return TimelineSegment(str(item.get("number", change.key)), start, duration, change.action)


def _marker(item: Mapping[str, Json], action: Action) -> TimelineMarker | None:
    frame = _number(item.get("frame"))
    return None if frame is None else TimelineMarker(frame, action)


def _number(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


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
