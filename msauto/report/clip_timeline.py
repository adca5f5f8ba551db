"""What a clip looks like before and after the changes of a plan: its segments, markers and points, in frames.

The timelines of the terminal, of Markdown and of the HTML page are drawn from it, and pictures are chosen by it. Texts
are safe to show. Frames count from the first one of the file. :func:`timeline_of` reduces the clip to what one line of
text can show; :func:`draw_timeline` draws it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import groupby, pairwise, repeat
from operator import attrgetter, itemgetter
from typing import Final, NamedTuple

from msgspec import Struct

from msauto.aspects import ASPECTS
from msauto.aspects.aspect import POINTS, SEGMENTS, TimelineItem, TimelinePlace
from msauto.model.plan import Action, Target
from msauto.report.sanitizing import show
from msauto.report.texts import show_frames


class ClipTimeline(Struct, frozen=True):
    """A clip of ``frames`` frames (``None``: not reported), some of whose items change."""

    frames: int | None
    rate: Fraction | None
    items: tuple[TimelineItem, ...]


def clip_timeline(target: Target) -> ClipTimeline | None:
    """Return the clip before and after its changes; ``None`` if no change has a position."""
    items = _items_of(target)
    if not items:
        return None
    shown = []
    for item in items:
        before, after = _shown_place(item.before), _shown_place(item.after)
        shown.append(TimelineItem(item.action, show(item.name), before, after))
    return ClipTimeline(_frames_of(target), target.rate, tuple(shown))


def _frames_of(target: Target) -> int | None:
    return target.context.frames if target.context else None


def _items_of(target: Target) -> list[TimelineItem]:
    """Return what changes, and what surrounds it; nothing if no change has a position."""
    live = {}
    for request in reversed(target.requests):
        for effect in reversed(request.effects):
            live[effect.thing] = effect.before
    items = []
    for change in target.changes:
        for item in ASPECTS[change.aspect].timeline(change, target, live):
            if item.before or item.after:
                items.append(item)
    if items and target.context:
        for unchanged in target.context.items:
            place = TimelinePlace(
                unchanged.lane, unchanged.start, unchanged.duration, unchanged.title
            )
            items.append(TimelineItem(None, unchanged.name, place, place))
    return items


def _shown_place(place: TimelinePlace | None) -> TimelinePlace | None:
    """Return a place whose texts are safe to show."""
    if place is None:
        return None
    title = show(place.title) if place.title else ""
    return place._replace(lane=show(place.lane), title=title)


class TimelineMark(NamedTuple):
    """A segment with its number, or a marker (``None``); ``action`` is ``None`` where it stays as it is."""

    start: int
    duration: int
    number: str | None
    action: Action | None


class Timeline(Struct, frozen=True):
    """A clip of ``frames`` frames, whose segments or markers change. ``length`` is its length as a time code."""

    frames: int
    length: str
    before: tuple[TimelineMark, ...]
    after: tuple[TimelineMark, ...]

    @property
    def only_adds(self) -> bool:
        """Whether nothing on it is moved, changed or removed."""
        return all(mark.action is None for mark in self.before)


def timeline_of(target: Target) -> Timeline | None:
    """Return the timeline of an asset; ``None`` where no segment or marker changes, or the length is not known."""
    items = _items_of(target)
    frames = _frames_of(target)
    if not items or not frames:
        return None
    before = _marks((item.before, item) for item in items)
    after = _marks((item.after, item) for item in items)
    if not any(mark.action for mark in (*before, *after)):
        return None
    length = show_frames(frames, target.rate)
    if target.rate:
        length = length.partition(" ")[0]
    return Timeline(frames, length, before, after)


def _marks(
    items: Iterable[tuple[TimelinePlace | None, TimelineItem]],
) -> tuple[TimelineMark, ...]:
    """Return what is on one side in its order; points are not drawn."""
    marks = []
    for place, item in items:
        if place is not None and place.lane != POINTS:
            number = show(item.name) if place.lane == SEGMENTS else None
            marks.append(TimelineMark(place.start, place.duration, number, item.action))
    marks.sort(key=attrgetter("start"))
    return tuple(marks)


# Drawing -------------------------------------------------------------------------------------------------------


_THIN, _HEAVY = "─┬", "━┳"
"""The length and the start of a segment."""
_EMPTY, _SEVERAL = "┄", "*"
_MARKERS: Final[Mapping[Action | None, str]] = {"delete": "×", "change": "~", "add": "+", None: "•"}
ASCII: Final = str.maketrans("├┤┄─┬━┳×•", "[].-|=#xo")
"""Translates a drawing for a terminal that has ASCII only: each sign is one column wide there, too."""

TimelineRun = tuple[str, Action | None]
"""Signs, and the change of what they stand for."""


_SIDE_BY_SIDE: Final = 3
"""So many markers of one column are drawn side by side where they fit; more of them are counted."""


class TimelineRow(NamedTuple):
    """One side of a timeline as it is drawn: ``label`` is ``before`` or ``after``."""

    label: str
    runs: tuple[TimelineRun, ...]

    def __str__(self) -> str:
        return "".join(signs for signs, _ in self.runs)


def draw_timeline(timeline: Timeline, width: int) -> list[TimelineRow]:
    """Return the rows: *after*, and above it *before* where something there changes or goes.

    Heavy is what is new or changed, and in *before* what goes. ``width``: columns of a drawing, its two ends included,
    at least 12.
    """
    after = _row("after", timeline, timeline.after, ("add", "change"), width)
    if timeline.only_adds:
        return [after]
    return [_row("before", timeline, timeline.before, ("delete",), width), after]


def _row(
    label: str,
    timeline: Timeline,
    marks: Sequence[TimelineMark],
    heavy: Collection[str],
    width: int,
) -> TimelineRow:
    cells = [("├", None), *_cells(marks, timeline.frames, width - 2, heavy), ("┤", None)]
    runs = []
    for action, run in groupby(cells, key=itemgetter(1)):
        runs.append(("".join(sign for sign, _ in run), action))
    return TimelineRow(label, tuple(runs))


def legend_of(rows: Sequence[TimelineRow]) -> list[TimelineRun]:
    """Return what each sign in drawings means, and the change that it shows."""
    drawn = " ".join(str(row)[1:-1] for row in rows)
    goes = ""
    if any(row.label == "before" for row in rows):
        goes = " (before: removed)"
    counted = re.search(f"[{''.join(_MARKERS.values())}]\\d+", drawn)
    meanings: Sequence[tuple[str, str, Action | None]] = (
        (_EMPTY, "no segment", None),
        (_THIN, "segment", None),
        (_HEAVY, f"new or changed segment{goes}", None),
        (_MARKERS[None], "marker", None),
        (_MARKERS["add"], "new", "add"),
        (_MARKERS["change"], "changed", "change"),
        (_MARKERS["delete"], "removed", "delete"),
        (counted[0] if counted else "", "so many in one column", None),
        (_SEVERAL, "several in one column", None),
    )
    legend = []
    for signs, meaning, action in meanings:
        used = "".join(sign for sign in signs if sign in drawn)
        if used:
            legend.append((f"{used} {meaning}", action))
    return legend


def _cells(
    marks: Sequence[TimelineMark], frames: int, columns: int, heavy: Collection[str]
) -> list[TimelineRun]:
    """Return a cell for each column: how far the segments reach, and what begins where."""
    cells: list[TimelineRun] = [(_EMPTY, None)] * columns
    begun_at: dict[int, list[TimelineMark]] = {}
    for mark in marks:
        span = _span(mark, frames, columns)
        begun_at.setdefault(span.start, []).append(mark)
        if mark.number is not None:
            line = _HEAVY if mark.action in heavy else _THIN
            for column in span:
                cells[column] = (line[0], mark.action)
    for start, end in pairwise((*sorted(begun_at), columns)):
        borders, number = _begun_segments(begun_at[start], heavy)
        after_number = min(len(number), columns - 1)
        if start == 0 and number and cells[after_number][0] != _EMPTY:
            borders = []  # the end of the clip is the border
        markers = Counter(mark.action for mark in begun_at[start] if mark.number is None)
        begun = _begun(borders, number, markers, end - start)
        cells[start : start + len(begun)] = begun
    return cells


def _span(mark: TimelineMark, frames: int, columns: int) -> range:
    """Return the columns of a mark, one at least."""
    start = max(0, min(columns - 1, mark.start * columns // frames))
    end = -(-(mark.start + mark.duration) * columns // frames)  # rounded up
    return range(start, min(columns, max(start + 1, end)))


def _begun_segments(
    marks: Iterable[TimelineMark], heavy: Collection[str]
) -> tuple[list[TimelineRun], list[TimelineRun]]:
    """Return the borders of the segments that begin in one column, and the number of one alone."""
    borders: list[TimelineRun] = []
    number: list[TimelineRun] = []
    for mark in marks:
        if mark.number is not None:
            line = _HEAVY if mark.action in heavy else _THIN
            borders.append((line[1], mark.action))
            number += zip(mark.number, repeat(mark.action))
    return borders, number if len(borders) == 1 else []


def _begun(
    borders: Sequence[TimelineRun],
    number: Sequence[TimelineRun],
    markers: Mapping[Action | None, int],
    space: int,
) -> Sequence[TimelineRun]:
    """Return what begins in one column, as it fits: side by side, counted, or a sign for several.

    Of markers, those that change come first: removed, changed, new.
    """
    side_by_side: list[TimelineRun] = []
    counted: list[TimelineRun] = []
    for action, sign in _MARKERS.items():
        count = markers[action]
        side_by_side += [(sign, action)] * count
        signs = f"{sign}{count}" if count > 1 else sign * count
        counted += zip(signs, repeat(action))
    if len(side_by_side) > _SIDE_BY_SIDE:
        side_by_side = counted
    for numbered in (number, ()):
        for shown in (side_by_side, counted):
            begun = (*borders, *numbered, *shown)
            if len(begun) <= space:
                return begun
    actions = {action for _, action in (*borders, *number, *counted)}
    return [(_SEVERAL, min(actions, key=[*_MARKERS].index))]


class StillPlace(NamedTuple):
    """A frame of a target, which is named by its index in the plan.

    The frame counts from the first one of the file; ``None`` is the picture that the server chooses.
    """

    target: int
    frame: int | None


Stills = Mapping[StillPlace, bytes]
"""Pictures as PNG."""
NO_STILLS: Final[Stills] = {}
