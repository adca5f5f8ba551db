"""CMX3600 edit decision lists: events, locators (``* LOC:``), and the marker lists of Resolve.

Formats: events and ``* LOC:`` as Avid writes them (repository adamhawkey/EDL_tools, Marker_tools/README.md). DaVinci
Resolve, "Timeline markers to EDL", writes ``note |C:ResolveColorBlue |M:name |D:frames`` below an event of one frame
(repository 2072/TimeCode-MagiKs).

What no EDL can hold is written a second time as JSON in ``* MSAUTO:`` comments, which other programs ignore.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct, field

from msauto.timelines.timeline import (
    COLORS,
    EditMarker,
    EditSegment,
    EditTimeline,
    TimelineClock,
    TimelineError,
    WrittenTimeline,
    color_of,
    extra_values,
    one_line,
    shown_text,
    with_extra_values,
)

_TC = r"\d{1,4}[:;]\d{2}[:;]\d{2}[:;]\d{2,3}"
_EVENT = re.compile(
    rf"(?P<number>\d{{1,6}})\s+(?P<reel>.*?)\s+(?P<track>\S+)\s+(?P<edit>C|D|W\d*|K\S*)\s+(?:\d{{1,4}}\s+)?"
    rf"{_TC}\s+{_TC}\s+(?P<start>{_TC})\s+(?P<end>{_TC})(?:\s.*)?"
)
_LIKE_TC = r"\d{1,4}[:;.,]\d{2}[:;.,]\d{2}[:;.,]\d{2}"
_LIKE_EVENT = re.compile(rf"\d{{3,6}}\s.*{_LIKE_TC}\s+{_LIKE_TC}")
_LOCATOR = re.compile(r"\*\s*LOC:\s*(?P<at>\S+)(?:\s+(?P<color>\S+))?(?:\s+(?P<text>.*))?")
_RESOLVE = re.compile(r"(?P<note>.*?)\s*\|C:(?P<color>\S*)\s*\|M:(?P<name>.*?)\s*\|D:(?P<duration>[0-9]{1,9})")
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


class _EditLine(Struct):
    """An event with the lines below it, or a locator."""

    line: int
    match: re.Match[str]
    drop: bool
    names: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    marker: re.Match[str] | None = None
    extra: str = ""

    @property
    def is_locator(self) -> bool:
        return self.match.re is _LOCATOR

    @property
    def is_video(self) -> bool:
        return not self.is_locator and ("V" in self.match["track"] or self.match["track"] == "B")

    @property
    def title(self) -> str:
        """The clip that the event shows; of a transition, the one that it leads to."""
        which = "FROM" if self.match["edit"] == "C" else "TO"
        reel = self.match["reel"]
        return self.names.get(which) or self.names.get("FROM", "") or ("" if _NO_NAME.fullmatch(reel) else reel)


def read_edl(text: str, clock: TimelineClock) -> EditTimeline:
    """Read events as segments, and locators and the markers of Resolve as markers."""
    timeline = EditTimeline()
    entries = _entries(text, timeline)
    if not entries and not is_edl(text):
        raise TimelineError("no event and no locator found", "export it as a CMX3600 EDL")
    video = any(each.is_video for each in entries)
    for entry in entries:
        if entry.is_locator:
            color, words = entry.match["color"] or "", entry.match["text"] or ""
            if color.casefold() not in COLORS:
                color, words = "", f"{color} {words}".strip()
            frame = clock.position(entry.match["at"], entry.line, drop=entry.drop)
            marker = EditMarker(frame, words, color=color)
            timeline.markers.append(with_extra_values(marker, entry.extra, _text, entry.line))
        elif (resolve := entry.marker) is not None:
            start = clock.position(entry.match["start"], entry.line, drop=entry.drop)
            notes = "\n".join(filter(None, (*entry.notes, resolve["note"])))
            marker = EditMarker(start, resolve["name"], notes, color=resolve["color"].removeprefix("ResolveColor"))
            frames = int(resolve["duration"])
            timeline.add(marker, frames if frames > 1 else 0)
        elif (entry.is_video or not video) and entry.match["reel"] != "BL":
            start, end = (clock.position(entry.match[at], entry.line, drop=entry.drop) for at in ("start", "end"))
            if end < start:
                raise TimelineError("the event ends before it starts", "correct the record time codes", entry.line)
            if end > start:  # the outgoing side of a transition has no length
                segment = EditSegment(start, end - start, entry.title)
                timeline.segments.append(with_extra_values(segment, entry.extra, _text, entry.line))
    return timeline


def _entries(text: str, timeline: EditTimeline) -> list[_EditLine]:
    """Return events and locators in their order; set the title of the timeline."""
    drop = False
    event: _EditLine | None = None
    entries: list[_EditLine] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if line.startswith("FCM:"):
            drop = line.removeprefix("FCM:").strip().upper().startswith("DROP")
        elif line.startswith("TITLE:"):
            timeline.title = line.removeprefix("TITLE:").strip()
        elif match := _EVENT.fullmatch(line):
            event = _EditLine(number, match, drop)
            entries.append(event)
        elif _LIKE_EVENT.match(line):
            raise TimelineError(f"invalid event: {line[:60]!r}", "export the EDL again as CMX3600", number)
        elif re.match(r"\*\s*LOC:", line):
            match = _LOCATOR.fullmatch(line)
            if match is None:
                remedy = "write * LOC: 01:00:00:00 RED text"
                raise TimelineError(f"the locator has no time code: {line!r}", remedy, number)
            entries.append(_EditLine(number, match, drop))
        elif (match := _EXTRA.fullmatch(line)) and entries:
            entries[-1].extra += match["json"]
        elif event is None:
            continue
        elif match := _CLIP_NAME.fullmatch(line):
            event.names[match["which"]] = match["name"].strip()
        elif match := _RESOLVE.fullmatch(line):
            event.marker = match
        elif line and event.marker is None and not line.startswith(("*", "M2", ">")):
            event.notes.append(line)
    return entries


# Writing -------------------------------------------------------------------------------------------------------


def write_edl(timeline: EditTimeline, clock: TimelineClock) -> WrittenTimeline:
    """Write segments as events and markers as locators below the event that they are in, else above all events."""
    segments = sorted(timeline.segments, key=lambda segment: segment.start)
    locators: list[list[str]] = [[] for _ in (None, *segments)]  # above all events, then below each of them
    for marker in sorted(timeline.markers, key=lambda marker: marker.frame):
        inside = (at for at, each in enumerate(segments, 1) if each.start <= marker.frame < each.start + each.duration)
        text = _text(marker)
        line = f"* LOC: {clock.show(marker.frame)} {color_of(marker.track).upper():7} {text}".rstrip()
        locators[next(inside, 0)] += [line, *_extra_lines(extra_values(marker, text))]
    lines = [f"TITLE: {_shortened(timeline.title)}", f"FCM: {'DROP' if clock.drop else 'NON-DROP'} FRAME", ""]
    lines += [*locators[0], ""] if locators[0] else []
    for number, (segment, below) in enumerate(zip(segments, locators[1:], strict=True), 1):
        times = f"{clock.show(segment.start)} {clock.show(segment.start + segment.duration)}"
        lines.append(f"{number:03}  AX       V     C        {times} {times}")
        text = _text(segment)
        lines += [f"* FROM CLIP NAME: {text}"] if text else []
        lines += [*_extra_lines(extra_values(segment, text)), *below, ""]
    return WrittenTimeline("\n".join(lines).rstrip("\n") + "\n", tuple(_warnings(timeline)))


def _extra_lines(values: str) -> list[str]:
    return [f"* MSAUTO: {part}" for part in _EXTRA_PART.findall(values)]


def _text(item: EditMarker | EditSegment) -> str:
    return _shortened(shown_text(item))


def _shortened(text: str) -> str:
    flat = one_line(text)
    return flat if len(flat) <= _LONGEST_TEXT else f"{flat[: _LONGEST_TEXT - 3].rstrip()}..."


def _warnings(timeline: EditTimeline) -> Iterator[str]:
    texts = [*map(shown_text, timeline.markers), *map(shown_text, timeline.segments)]
    if cut := sum(len(text) > _LONGEST_TEXT for text in texts):
        yield f"{cut} of its texts are longer than {_LONGEST_TEXT} characters: other programs see the beginning"
    if any(marker.title and marker.comment for marker in timeline.markers):
        yield "a locator has one text: other programs see the title of a marker, not its comment"
