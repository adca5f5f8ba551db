"""What the formats have in common: markers and segments, time codes and frames, colors and tracks, further values.

Positions are frames from the first frame of the clip. Names of colors: the eight locator colors of Avid Media Composer
(as in ``* LOC:`` lines, repository adamhawkey/EDL_tools), those of OpenTimelineIO
(``opentimelineio.schema.MarkerColor``), and the marker types of Premiere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from fractions import Fraction
from math import floor
from typing import Any, Final, TypeVar

from msgspec import Struct, structs

from msauto.codec import parse_json
from msauto.documents.text_files import TextFileError
from msauto.model.fields import (
    DEFAULT_TRACK,
    MARKER_ATTRIBUTES,
    SEGMENT_NAMES,
    TRACKS,
    track_named,
)
from msauto.model.fields import names as attribute_names
from msauto.model.timecode import (
    DROP_FRAME_RATES,
    Timecode,
    TimecodeError,
    show_rate,
    show_timecode,
)


class TimelineError(TextFileError):
    """A file that is not a valid timeline."""


@dataclass(frozen=True, slots=True)
class EditMarker:
    """A point. ``color`` is the color, or the type, that a file shows; ``track`` the type of an ``asset`` task.

    ``line`` is where the file has it, for messages.
    """

    start: int
    title: str = ""
    comment: str = ""
    user: str = ""
    keywords: str = ""
    rating: int = 0
    track: str = ""
    color: str = ""
    line: int = field(default=0, compare=False)

    @property
    def place(self) -> Hashable:
        """What no other marker of a clip has."""
        return self.start, self.track or DEFAULT_TRACK

    def as_item(self) -> dict[str, Any]:
        """Return the item of ``markers:`` in an ``asset`` task, without empty values."""
        return {"at": self.start, **_filled(self, ("track", "rating", *MARKER_TEXTS))}


@dataclass(frozen=True, slots=True)
class EditSegment:
    """A range; ``number`` only where the file numbers segments."""

    start: int
    duration: int
    title: str = ""
    keywords: str = ""
    number: int | None = None
    line: int = field(default=0, compare=False)

    @property
    def place(self) -> Hashable:
        """What no other segment of a clip has."""
        return self.start, self.duration, self.number

    def as_item(self) -> dict[str, Any]:
        """Return the item of ``segments:`` in an ``asset`` task, without empty values."""
        item = {"start": self.start, "duration": self.duration, **_filled(self, SEGMENT_TEXTS)}
        return item if self.number is None else {"number": self.number, **item}


MARKER_TEXTS: Final = attribute_names(MARKER_ATTRIBUTES, "text")
"""The attributes of a marker that a timeline holds, besides rating and track."""
SEGMENT_TEXTS: Final = SEGMENT_NAMES
"""The attributes of a segment that a timeline holds."""


def _filled(item: EditMarker | EditSegment, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in asdict(item).items() if name in names and value}


class EditTimeline(Struct):
    """The markers and segments of a clip, and what of a file is not understood. ``title``: of a clip to write."""

    markers: list[EditMarker] = []
    segments: list[EditSegment] = []
    title: str = ""
    problems: list[TimelineError] = []

    def add(
        self,
        point: EditMarker,
        duration: int,
        number: int | None = None,
        further: str = "",
    ) -> None:
        """Add a marker; what lasts more than one frame, or has a number, is a segment, which has no comment.

        ``further``: its values as :func:`with_extra_values` takes them.
        """
        if duration <= 1 and number is None and '"number":' not in further:
            self.markers.append(with_extra_values(point, further))
            return
        title = point.title or one_line(point.comment)
        segment = EditSegment(
            point.start, duration, title, point.keywords, number=number, line=point.line
        )
        self.segments.append(with_extra_values(segment, further))

    def items(self) -> list[EditMarker | EditSegment]:
        """Return the segments and markers by their start."""
        return sorted([*self.segments, *self.markers], key=lambda item: item.start)

    def unknown(self, line: int, text: str, remedy: str) -> None:
        """Note a line that is not understood; raises :class:`TimelineError` for one too many."""
        self.problems.append(
            TimelineError(f"the line is not understood: {text[:60]!r}", remedy, line)
        )
        if len(self.problems) > _MOST_PROBLEMS:
            self.check_understood()

    def check_understood(self) -> None:
        """Raise :class:`TimelineError` for what is not understood: the first line, and the numbers of the others."""
        if not self.problems:
            return
        first, *others = self.problems
        lines = ", ".join(str(problem.line) for problem in others)
        more = lines and f"; nor are lines {lines}"
        raise TimelineError(f"{first}{more}", first.remedy, first.line)


def joined(items: Iterable[Item]) -> list[Item]:
    """Return one item for each place, with the texts of all: a clip has no more of them."""
    places: dict[Hashable, list[Item]] = {}
    for item in items:
        places.setdefault(item.place, []).append(item)
    items_joined = []
    for first, *others in places.values():
        values: dict[str, Any] = {}
        for name in MARKER_TEXTS if others else ():
            separator = "\n" if name == "comment" else " / "
            texts = dict.fromkeys(getattr(item, name, "") for item in (first, *others))
            if any(texts):
                values[name] = separator.join(filter(None, texts))
        if isinstance(first, EditMarker):
            values["rating"] = max(marker.rating for marker in (first, *others))
        items_joined.append(replace(first, **values))
    return items_joined


class WrittenTimeline(Struct, frozen=True):
    """A file for another program; ``warnings``: what that program does not see."""

    text: str
    warnings: tuple[str, ...] = ()


def one_line(text: str) -> str:
    r"""Return a text without line breaks and repeated spaces.

    >>> one_line("two\nlines ")
    'two lines'
    """
    return " ".join(text.split())


def shown_text(item: EditMarker | EditSegment) -> str:
    """Return the one text that a file without other places shows of an item: its title, else its comment."""
    return one_line(item.title or getattr(item, "comment", ""))


LONGEST_TEXT: Final = 200
"""Characters of a text in a line of an EDL. CMX3600 has lines of 80; exports of Avid have longer locators."""


def shortened(text: str) -> str:
    """Return the text that an EDL shows of a line."""
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[: LONGEST_TEXT - 3].rstrip()}..."


_MOST_PROBLEMS: Final = 100
_KINDS: Final = {
    "drop": "drop frame",
    "non_drop": "non-drop frame",
    "seconds": "in seconds",
    "frames": "frames",
}
_EXAMPLES: Final = {"drop": "10:00:00;00", "non_drop": "10:00:00:00", "seconds": "10:00:00.0"}
_CLOCK_TIME = re.compile(
    r"(?:(\d{1,6})[:;])?(\d{1,2})[:;](\d{2})(?:([:;])(\d{2,3})|[.,](\d{1,12}))?", re.ASCII
)


def show_clock(units: int, digits: int) -> str:
    """Return a time as ``HH:MM:SS`` and ``digits`` decimals, of which it counts ``units``."""
    seconds, decimals = divmod(units, 10**digits)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{decimals:0{digits}}"


def parse_origin(text: str | int) -> Timecode:
    """Return the time code of the first frame of a clip; raises :class:`TimelineError`."""
    try:
        return _parse(str(text))
    except TimecodeError as error:
        remedy = "write the time code of the first frame: origin='10:00:00:00'"
        raise TimelineError(f"origin: {error}", remedy) from error


class TimelineClock(Struct, frozen=True):
    """The rate of a clip, and the time code of its first frame; ``None``: that of the file, else 0."""

    rate: Fraction
    origin: Timecode | None = None
    colons_drop: bool = False

    def of_drop_colons(self) -> TimelineClock:
        """Return the clock for a file whose time codes are drop frame, although they have colons."""
        origin = self.origin and _parse(str(self.origin), drop=True)
        return structs.replace(self, origin=origin, colons_drop=True)

    @property
    def first(self) -> int:
        """The time code of the first frame, in frames."""
        return 0 if self.origin is None else self.origin.to_frames(self.rate)

    @property
    def drop(self) -> bool:
        """Whether written time codes are drop frame: where the rate has it, unless the origin is non-drop."""
        other = self.origin is not None and self.origin.kind == "non_drop" and self.first != 0
        return self.rate in DROP_FRAME_RATES and not other

    def position(self, text: str, line: int) -> int:
        """Return the frame of the clip at a time code."""
        with self._on(line):
            timecode = _parse(text, drop=self.colons_drop)
            frame = timecode.to_frames(self.rate)
        if timecode.kind == "frames":
            return frame
        origin = self.origin
        counts_from_origin = self.rate.denominator != 1 and self.first != 0
        if origin is not None and counts_from_origin and origin.kind != timecode.kind:
            # The same digits are seconds apart.
            example = _EXAMPLES[timecode.kind]
            raise TimelineError(
                f"{timecode} is {_KINDS[timecode.kind]}, but origin {origin} is {_KINDS[origin.kind]}",
                f"write origin= as the file does, for example {example!r}",
                line,
            )
        frame -= self.first
        if frame < 0:
            raise TimelineError(
                f"{text} is before the first frame of the clip, {origin or '00:00:00:00'}",
                "set origin= to the time code of the first frame",
                line,
            )
        return frame

    def lasting(self, start: str, end: str, line: int) -> tuple[int, int]:
        """Return the frame and the duration up to an end, if there is one; raises if it is before the start."""
        frame = self.position(start, line)
        duration = self.position(end.strip() or start, line) - frame
        if duration < 0:
            raise TimelineError("it ends before it starts", "correct its time codes", line)
        return frame, duration

    def frames(self, seconds: Fraction) -> int:
        """Return a time in frames of the clip: the nearest, halves up."""
        return floor(seconds * self.rate + Fraction(1, 2))

    def duration(self, text: str, line: int) -> int:
        """Return a duration in frames; a number is frames."""
        with self._on(line):
            return _parse(text).to_frames(self.rate)

    def show(self, frame: int) -> str:
        """Return the time code of a frame of the clip."""
        return show_timecode(self.first + frame, self.rate, drop=self.drop)

    @contextmanager
    def _on(self, line: int) -> Iterator[None]:
        try:
            yield
        except TimecodeError as error:
            remedy = f"correct the time code, or check rate= ({show_rate(self.rate)})"
            raise TimelineError(str(error), remedy, line) from error


def _parse(text: str, *, drop: bool = False) -> Timecode:
    """Parse the forms that other programs write: ``1:00:00:00``, ``01;00;00;00``, ``00:00:01,500``, ``10:00:05``."""
    match = _CLOCK_TIME.fullmatch(text.strip())
    if match is None:
        return Timecode.parse(text)
    hours, minutes, seconds, separator, frames, decimals = match.groups(default="")
    clock = f"{hours or '0':0>2}:{minutes:0>2}:{seconds}"
    if not frames:
        return Timecode.parse(f"{clock}.{decimals or '0'}")
    if not hours:
        return Timecode.parse(text)  # MM:SS:FF is ambiguous: raises, with the valid forms
    if drop:
        separator = ";"
    return Timecode.parse(f"{clock}{separator}{frames}")


TRACK_OF_COLOR: Final[Mapping[str, str]] = {
    "blue": "General",
    "red": "Cue Point",
    "green": "Secondary Event",
    "magenta": "Goto Cue",
    "yellow": "Game Time",
    "cyan": "Icon",
    "white": "Picture",
    "black": "Profanity Start",
    "pink": "Profanity End",
    "flash cue point": "Cue Point",
}
"""The track of a color; any other color is General."""
COLOR_OF_TRACK: Final = {
    track: color for color, track in TRACK_OF_COLOR.items() if " " not in color
}
_MORE = "orange purple fuchsia rose lavender sky mint lemon sand cocoa cream"
COLORS: Final = frozenset({*COLOR_OF_TRACK.values(), *_MORE.split()})
"""The colors of Avid and Resolve."""
OTHERS: Final = "*"
"""The key of ``tracks=`` for markers without a color of their own in it."""


def color_of(track: str) -> str:
    """Return the color of a track, as :data:`TRACK_OF_COLOR` has it."""
    return COLOR_OF_TRACK.get(track, COLOR_OF_TRACK[DEFAULT_TRACK])


def check_tracks(tracks: Mapping[str, str]) -> dict[str, str]:
    """Return the tracks that a lookup sets by color, with the color in lower case; raises :class:`TimelineError`."""
    checked = {}
    for color, track in tracks.items():
        checked[str(color).casefold()] = _known_track(str(track), f"tracks: {color!r} has the ")
    return checked


def _known_track(name: str, place: str, line: int | None = None) -> str:
    track = track_named(name)
    if track not in TRACKS:
        raise TimelineError(f"{place}unknown track {name!r}", line=line, unknown=(name, TRACKS))
    return track


def with_track(marker: EditMarker, tracks: Mapping[str, str]) -> EditMarker:
    """Return a marker with its track: by name, else by color; raises :class:`TimelineError` for an unknown name."""
    named = marker.track
    if named:
        set_track = tracks.get(named.casefold())
        return replace(marker, track=set_track or _known_track(named, "", marker.line or None))
    color = marker.color.casefold()
    usual = DEFAULT_TRACK if color else ""
    of_others = tracks.get(OTHERS) or TRACK_OF_COLOR.get(color, usual)
    return replace(marker, track=tracks.get(color, of_others))


Item = TypeVar("Item", EditMarker, EditSegment)
_NATIVE = frozenset({"start", "duration", "color", "line"})
"""What every format holds; ``color`` follows from the track."""


def extra_values(item: EditMarker | EditSegment, shown: str, *, colored: bool = True) -> str:
    """Return the values of an item that its position and the text that is shown do not hold, as JSON.

    ``colored``: the file shows the color of its track.
    """
    further: dict[str, Any] = {}
    for name, value in asdict(item).items():
        is_numbered_zero = name == "number" and value == 0
        if name not in _NATIVE and (value or is_numbered_zero):
            further[name] = value
    if item.title == shown:
        further.pop("title", None)
    elif shown:
        further["title"] = item.title
    track = further.get("track", "")
    if colored and TRACK_OF_COLOR[color_of(track)] == track:
        further.pop("track", None)
    if not further:
        return ""
    return json.dumps(further, separators=(",", ":")).replace(">", "\\u003e")


def with_extra_values(item: Item, text: str) -> Item:
    """Return an item with its further values; a title that was edited in the file wins over the further ones."""
    if not text:
        return item
    try:
        values = parse_json(text)
        _check_values(item, values)
        changed = replace(item, **values)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        remedy = "remove the MSAUTO values, or export again"
        raise TimelineError(
            "the MSAUTO values are not as msauto writes them", remedy, item.line
        ) from error
    shown = shown_text(changed)
    if item.title in {shown, shortened(shown)}:
        return changed
    return replace(changed, title=item.title)


def _check_values(item: EditMarker | EditSegment, values: dict[str, Any]) -> None:
    names = {attribute.name for attribute in fields(item)} - _NATIVE
    for name, value in values.items():
        kind = int if name in {"rating", "number"} else str
        if name not in names or not isinstance(value, kind):
            raise TypeError(name)
        str(value).encode()  # refuses half of a character
