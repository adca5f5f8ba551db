"""CMX3600 edit decision lists: events, locators (``* LOC:``), and the marker lists of Resolve.

Formats: events and ``* LOC:`` as Avid writes them (repository adamhawkey/EDL_tools, Marker_tools/README.md). DaVinci
Resolve, «Timeline markers to EDL», writes ``note |C:ResolveColorBlue |M:name |D:frames`` below an event of one frame
(repository 2072/TimeCode-MagiKs).

What no EDL can hold is written a second time as JSON in ``* MSAUTO:`` comments, which other programs ignore.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from msauto.timelines.clock import TimelineClock
from msauto.timelines.colors import COLORS, color_of
from msauto.timelines.extra_values import extra_values, with_extra_values
from msauto.timelines.timeline import (
    EditMarker,
    EditSegment,
    EditTimeline,
    TimelineError,
    WrittenTimeline,
    one_line,
)

_TC = r"\d{1,4}[:;]\d{2}[:;]\d{2}[:;]\d{2,3}"
_EVENT = re.compile(
    rf"(?P<number>\d{{1,6}})\s+(?P<reel>.*?)\s+(?P<track>\S+)\s+(?P<edit>C|D|W\d*|K\S*)\s+(?:\d{{1,4}}\s+)?"
    rf"{_TC}\s+{_TC}\s+(?P<start>{_TC})\s+(?P<end>{_TC})(?:\s.*)?"
)
_LIKE_TC = r"\d{1,4}[:;.,]\d{2}[:;.,]\d{2}[:;.,]\d{2}"
_LIKE_EVENT = re.compile(rf"\d{{3,6}}\s.*{_LIKE_TC}\s+{_LIKE_TC}")
_LOCATOR = re.compile(r"\*\s*LOC:\s*(?P<at>\S+)(?:\s+(?P<color>\S+))?(?:\s+(?P<text>.*))?")
_RESOLVE = re.compile(r"(?P<note>.*?)\s*\|C:(?P<color>\S*)\s*\|M:(?P<name>.*?)\s*\|D:(?P<duration>\d+)")
_CLIP_NAME = re.compile(r"\*\s*(?P<which>FROM|TO) CLIP NAME:\s*(?P<name>.*)")
_EXTRA = re.compile(r"\*\s*MSAUTO:\s?(?P<json>.*)")
_NO_NAME = re.compile(r"AX|BL|\d*")
_LONGEST_TEXT = 200
"""Characters of a text in a written line. CMX3600 has lines of 80; exports of Avid have longer locators."""
_EXTRA_PART = re.compile(r".{0,159}\S|.+")
"""A line of further values; a space at its end would be lost."""


def is_edl(text: str) -> bool:
    """Return whether a text looks like an EDL."""
    return any(re.match(r"TITLE:|FCM:|\*\s*LOC:", line) or _EVENT.fullmatch(line.strip()) for line in text.splitlines())


# Reading -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Event:
    """An event, with the lines below it."""

    line: int
    match: re.Match[str]
    drop: bool
    names: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    marker: re.Match[str] | None = None
    extra: str = ""

    @property
    def is_video(self) -> bool:
        return "V" in self.match["track"] or self.match["track"] == "B"

    @property
    def title(self) -> str:
        """The clip that the event shows; of a transition, the one that it leads to."""
        which = "FROM" if self.match["edit"] == "C" else "TO"
        named = self.names.get(which) or self.names.get("FROM", "")
        reel = self.match["reel"]
        return named or ("" if _NO_NAME.fullmatch(reel) else reel)


@dataclass(slots=True)
class _Locator:
    line: int
    match: re.Match[str]
    drop: bool
    extra: str = ""


def read_edl(text: str, clock: TimelineClock) -> EditTimeline:
    """Read events as segments, and locators and the markers of Resolve as markers."""
    timeline = EditTimeline()
    items = list(_items(text, timeline))
    if not items and not is_edl(text):
        raise TimelineError("no event and no locator found", "export it as a CMX3600 EDL")
    video = any(isinstance(each, _Event) and each.is_video for each in items)
    for each in items:
        if isinstance(each, _Locator):
            timeline.markers.append(_locator(each, clock))
        elif each.marker is not None:
            _add_resolve_marker(timeline, each, each.marker, clock)
        elif (each.is_video or not video) and each.match["reel"] != "BL":
            timeline.segments += _segments(each, clock)
    return timeline


def _items(text: str, timeline: EditTimeline) -> Iterator[_Event | _Locator]:
    """Yield events and locators; each is complete once the next one is asked for."""
    drop = False
    event: _Event | None = None
    last: _Event | _Locator | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if line.startswith("FCM:"):
            drop = line.removeprefix("FCM:").strip().upper().startswith("DROP")
        elif line.startswith("TITLE:"):
            timeline.title = line.removeprefix("TITLE:").strip()
        elif found := _EVENT.fullmatch(line):
            event = last = _Event(number, found, drop)
            yield event
        elif _LIKE_EVENT.match(line):
            raise TimelineError(f"invalid event: {line[:60]!r}", "export the EDL again as CMX3600", number)
        elif re.match(r"\*\s*LOC:", line):
            last = _Locator(number, _locator_line(line, number), drop)
            yield last
        elif (found := _EXTRA.fullmatch(line)) and last is not None:
            last.extra += found["json"]
        elif event is not None:
            _add_line(event, line)


def _locator_line(line: str, number: int) -> re.Match[str]:
    found = _LOCATOR.fullmatch(line)
    if found is None:
        raise TimelineError(f"the locator has no time code: {line!r}", "write * LOC: 01:00:00:00 RED text", number)
    return found


def _add_line(event: _Event, line: str) -> None:
    if found := _CLIP_NAME.fullmatch(line):
        event.names[found["which"]] = found["name"].strip()
    elif found := _RESOLVE.fullmatch(line):
        event.marker = found
    elif line and event.marker is None and not line.startswith(("*", "M2", ">")):
        event.notes.append(line)


def _locator(locator: _Locator, clock: TimelineClock) -> EditMarker:
    color, text = locator.match["color"] or "", locator.match["text"] or ""
    if color.casefold() not in COLORS:
        color, text = "", f"{color} {text}".strip()
    frame = clock.position(locator.match["at"], locator.line, drop=locator.drop)
    marker = EditMarker(frame, text, color=color)
    return with_extra_values(marker, locator.extra, _marker_text, locator.line)


def _add_resolve_marker(timeline: EditTimeline, event: _Event, found: re.Match[str], clock: TimelineClock) -> None:
    frame = clock.position(event.match["start"], event.line, drop=event.drop)
    notes = "\n".join(filter(None, (*event.notes, found["note"])))
    frames = int(found["duration"])
    color = found["color"].removeprefix("ResolveColor")
    timeline.add(EditMarker(frame, found["name"], notes, color=color), frames if frames > 1 else 0)


def _segments(event: _Event, clock: TimelineClock) -> Iterator[EditSegment]:
    start = clock.position(event.match["start"], event.line, drop=event.drop)
    end = clock.position(event.match["end"], event.line, drop=event.drop)
    if end < start:
        raise TimelineError("the event ends before it starts", "correct the record time codes", event.line)
    if end > start:  # the outgoing side of a transition has no length
        segment = EditSegment(start, end - start, event.title)
        yield with_extra_values(segment, event.extra, _segment_text, event.line)


# Writing -------------------------------------------------------------------------------------------------------


def write_edl(timeline: EditTimeline, clock: TimelineClock) -> WrittenTimeline:
    """Write segments as events and markers as locators below the event that they are in, else above all events."""
    lines = [f"TITLE: {_shortened(timeline.title)}", f"FCM: {'DROP' if clock.drop else 'NON-DROP'} FRAME", ""]
    waiting = sorted(timeline.markers, key=lambda marker: marker.frame)
    segments = sorted(timeline.segments, key=lambda segment: segment.start)
    inside: list[list[EditMarker]] = [[] for _ in segments]
    for marker in waiting:
        at = _segment_at(segments, marker.frame)
        if at is None:
            lines += _locator_lines(marker, clock)
        else:
            inside[at].append(marker)
    lines += [""] if lines[-1] else []
    for number, (segment, markers) in enumerate(zip(segments, inside, strict=True), 1):
        lines += _event_lines(number, segment, clock)
        for marker in markers:
            lines += _locator_lines(marker, clock)
        lines.append("")
    return WrittenTimeline("\n".join(lines).rstrip("\n") + "\n", tuple(_warnings(timeline)))


def _segment_at(segments: list[EditSegment], frame: int) -> int | None:
    inside = (at for at, each in enumerate(segments) if each.start <= frame < each.start + each.duration)
    return next(inside, None)


def _event_lines(number: int, segment: EditSegment, clock: TimelineClock) -> Iterator[str]:
    times = f"{clock.show(segment.start)} {clock.show(segment.start + segment.duration)}"
    yield f"{number:03}  AX       V     C        {times} {times}"
    text = _segment_text(segment)
    if text:
        yield f"* FROM CLIP NAME: {text}"
    yield from _extra_lines(extra_values(segment, text))


def _locator_lines(marker: EditMarker, clock: TimelineClock) -> Iterator[str]:
    text = _marker_text(marker)
    yield f"* LOC: {clock.show(marker.frame)} {color_of(marker.track).upper():7} {text}".rstrip()
    yield from _extra_lines(extra_values(marker, text))


def _extra_lines(values: str) -> Iterator[str]:
    for part in _EXTRA_PART.findall(values):
        yield f"* MSAUTO: {part}"


def _marker_text(marker: EditMarker) -> str:
    return _shortened(marker.title or marker.comment)


def _segment_text(segment: EditSegment) -> str:
    return _shortened(segment.title)


def _shortened(text: str) -> str:
    flat = one_line(text)
    return flat if len(flat) <= _LONGEST_TEXT else f"{flat[: _LONGEST_TEXT - 3].rstrip()}..."


def _warnings(timeline: EditTimeline) -> Iterator[str]:
    texts = [marker.title or marker.comment for marker in timeline.markers]
    texts += [segment.title for segment in timeline.segments]
    if cut := sum(len(one_line(text)) > _LONGEST_TEXT for text in texts):
        yield f"{cut} of its texts are longer than {_LONGEST_TEXT} characters: other programs see the beginning"
    if any(marker.title and marker.comment for marker in timeline.markers):
        yield "a locator has one text: other programs see the title of a marker, not its comment"
