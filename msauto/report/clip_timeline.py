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
from itertools import groupby, pairwise
from operator import itemgetter
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
    live = {each.thing: each.before for request in reversed(target.requests) for each in reversed(request.effects)}
    changing = (item for change in target.changes for item in ASPECTS[change.aspect].timeline(change, target, live))
    items = [_shown(item) for item in changing if item.before or item.after]
    if not items:
        return None
    context = target.context
    for each in context.items if context else ():
        place = TimelinePlace(each.lane, each.start, each.duration, each.title)
        items.append(_shown(TimelineItem(None, each.name, place, place)))
    return ClipTimeline(context.frames if context else None, target.rate, tuple(items))


def _shown(item: TimelineItem) -> TimelineItem:
    """Return an item whose texts are safe to show."""
    before, after = (
        place and place._replace(lane=show(place.lane), title=show(place.title) if place.title else "")
        for place in (item.before, item.after)
    )
    return TimelineItem(item.action, show(item.name), before, after)


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
    goes: tuple[Action, ...] = ("delete",)
    comes: tuple[Action, ...] = ("add", "change")
    sides = (("before", timeline.before, goes), ("after", timeline.after, comes))
    rows = []
    for label, side, heavy in sides[1:] if timeline.only_adds else sides:
        cells = [("├", None), *_draw(side, timeline.frames, width - 2, heavy), ("┤", None)]
        runs = (("".join(sign for sign, _ in run), action) for action, run in groupby(cells, key=itemgetter(1)))
        rows.append(TimelineRow(label, tuple(runs)))
    return rows


def legend_of(rows: Sequence[TimelineRow]) -> list[TimelineRun]:
    """Return what each sign in drawings means, and the change that it shows."""
    drawn = " ".join(str(row)[1:-1] for row in rows)
    goes = " (before: removed)" if any(row.label == "before" for row in rows) else ""
    meanings: Sequence[tuple[Sequence[str], str, Action | None]] = (
        (_EMPTY, "no segment", None),
        (_THIN, "segment", None),
        (_HEAVY, f"new or changed segment{goes}", None),
        (_MARKERS[None], "marker", None),
        *((_MARKERS[action], meaning, action) for action, meaning in _CHANGED.items()),
        (re.findall(f"[{''.join(_MARKERS.values())}]\\d+", drawn)[:1], "so many in one column", None),
        (_SEVERAL, "several in one column", None),
    )
    used = (("".join(sign for sign in each if sign in drawn), meaning, action) for each, meaning, action in meanings)
    return [(f"{sign} {meaning}", action) for sign, meaning, action in used if sign]


_CHANGED: Final[Mapping[Action, str]] = {"add": "new", "change": "changed", "delete": "removed"}


def _draw(side: Sequence[TimelineMark], frames: int, columns: int, heavy: Collection[Action]) -> list[TimelineRun]:
    """Return a cell for each column: how far the segments reach, and what begins where."""
    cells: list[TimelineRun] = [(_EMPTY, None)] * columns
    begun_at: dict[int, list[TimelineMark]] = {}
    for each in side:
        start = max(0, min(columns - 1, each.start * columns // frames))
        begun_at.setdefault(start, []).append(each)
        if each.number is not None:
            end = min(columns, max(start + 1, -(-(each.start + each.duration) * columns // frames)))
            cells[start:end] = [((_HEAVY if each.action in heavy else _THIN)[0], each.action)] * (end - start)
    starts = sorted(begun_at)
    for start, end in pairwise((*starts, columns)):
        segments = [each for each in begun_at[start] if each.number is not None]
        borders = [((_HEAVY if each.action in heavy else _THIN)[1], each.action) for each in segments]
        number = [(sign, each.action) for each in segments for sign in each.number or ""] if len(segments) == 1 else []
        if start == 0 and number and cells[min(len(number), columns - 1)][0] != _EMPTY:
            borders = []  # the end of the clip is the border
        begun = _begun(borders, number, Counter(each.action for each in begun_at[start] if each.number is None))
        shown = next(way for way in begun if len(way) <= end - start)
        cells[start : start + len(shown)] = shown
    return cells


def _begun(
    borders: list[TimelineRun], number: list[TimelineRun], markers: Mapping[Action | None, int]
) -> list[list[TimelineRun]]:
    """Return the ways to draw what begins in one column, the best first: side by side, counted, a sign for several.

    Of markers, those that change come first: removed, changed, new.
    """
    ranked = [(sign, action, markers[action]) for action, sign in _MARKERS.items() if markers[action]]
    counted = [(sign, action) for first, action, count in ranked for sign in f"{first}{count if count > 1 else ''}"]
    each = [(sign, action) for sign, action, count in ranked for _ in range(count)]
    if len(each) > _SIDE_BY_SIDE:
        each = counted
    actions = {action for _, action in (*borders, *number, *each)}
    several = [(_SEVERAL, next(action for action in _MARKERS if action in actions))]
    return [[*borders, *number, *each], [*borders, *number, *counted], [*borders, *each], [*borders, *counted], several]


class StillPlace(NamedTuple):
    """A frame of a target, which is named by its index in the plan.

    The frame counts from the first one of the file; ``None`` is the picture that the server chooses.
    """

    target: int
    frame: int | None


Stills = Mapping[StillPlace, bytes]
"""Pictures as PNG."""
NO_STILLS: Final[Stills] = {}
