"""What the formats have in common: markers and segments, time codes and frames, colors and tracks, further values.

Positions are frames from the first frame of the clip. Names of colors: the eight locator colors of Avid Media Composer
(as in ``* LOC:`` lines, repository adamhawkey/EDL_tools), those of OpenTimelineIO
(``opentimelineio.schema.MarkerColor``), and the marker types of Premiere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, Final, TypeVar

from msauto.codec import parse_json
from msauto.documents.text_files import TextFileError
from msauto.model import fields as registry
from msauto.model.fields import DEFAULT_TRACK, TRACKS, track_named
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

    frame: int
    title: str = ""
    comment: str = ""
    user: str = ""
    keywords: str = ""
    rating: int = 0
    track: str = ""
    color: str = ""
    line: int = field(default=0, compare=False)

    def as_item(self) -> dict[str, Any]:
        """Return the item of ``markers:`` in an ``asset`` task, without empty values."""
        return {"at": self.frame, **_filled(self, ("track", "rating", *MARKER_TEXTS))}


@dataclass(frozen=True, slots=True)
class EditSegment:
    """A range; ``number`` only where the file numbers segments."""

    start: int
    duration: int
    title: str = ""
    keywords: str = ""
    number: int | None = None

    def as_item(self) -> dict[str, Any]:
        """Return the item of ``segments:`` in an ``asset`` task, without empty values."""
        item = {"start": self.start, "duration": self.duration, **_filled(self, SEGMENT_TEXTS)}
        return item if self.number is None else {"number": self.number, **item}


def _texts(kind: type, attributes: tuple[registry.Attribute, ...]) -> tuple[str, ...]:
    held = {attribute.name for attribute in fields(kind)}
    return tuple(name for name in registry.names(attributes, "text") if name in held)


MARKER_TEXTS = _texts(EditMarker, registry.MARKER_ATTRIBUTES)
"""The attributes of a marker that a timeline holds, besides rating and track."""
SEGMENT_TEXTS = _texts(EditSegment, registry.SEGMENT_ATTRIBUTES)
"""The attributes of a segment that a timeline holds."""


def _filled(item: EditMarker | EditSegment, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in asdict(item).items() if name in names and value}


@dataclass(slots=True)
class EditTimeline:
    """The markers and segments of a clip. ``title``: the title of the clip."""

    markers: list[EditMarker] = field(default_factory=list)
    segments: list[EditSegment] = field(default_factory=list)
    title: str = ""

    def add(self, marker: EditMarker, duration: int, number: int | None = None) -> None:
        """Add a marker; with a duration, as a segment, which has no comment."""
        if duration <= 0:
            self.markers.append(marker)
            return
        title = marker.title or one_line(marker.comment)
        self.segments.append(EditSegment(marker.frame, duration, title, marker.keywords, number))

    def add_lasting(self, marker: EditMarker, duration: int) -> None:
        """Add a marker of a program whose markers last one frame at least."""
        if duration == 1:
            duration = 0
        self.add(marker, duration)


def joined(markers: Iterable[EditMarker]) -> list[EditMarker]:
    """Return one marker for each frame and track, with the texts of all: a clip has no more of them."""
    places: dict[tuple[int, str], list[EditMarker]] = {}
    for marker in markers:
        place = (marker.frame, marker.track or DEFAULT_TRACK)
        places.setdefault(place, []).append(marker)
    markers_joined = []
    for together in places.values():
        texts: dict[str, Any] = {}
        for name in MARKER_TEXTS:
            separator = "\n" if name == "comment" else " / "
            values = dict.fromkeys(getattr(marker, name) for marker in together)
            texts[name] = separator.join(filter(None, values))
        rating = max(marker.rating for marker in together)
        markers_joined.append(replace(together[0], **texts, rating=rating))
    return markers_joined


@dataclass(frozen=True, slots=True)
class WrittenTimeline:
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


T = TypeVar("T")
_LONGEST_LINE = 10_000
_KINDS: Final = {
    "drop": "drop frame",
    "non_drop": "non-drop frame",
    "seconds": "in seconds",
    "frames": "frames",
}
_EXAMPLES: Final = {"drop": "10:00:00;00", "non_drop": "10:00:00:00", "seconds": "10:00:00.0"}
_MOST_LINES = 250_000
MOST_CHARACTERS = 16 * 2**20
"""The longest text of a timeline but OTIO, which has many words for each item."""
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


@dataclass(frozen=True, slots=True)
class TimelineClock:
    """The rate of a clip, and the time code of its first frame; ``None``: that of the file, else 0."""

    rate: Fraction
    origin: Timecode | None = None

    @property
    def first(self) -> int:
        """The time code of the first frame, in frames."""
        return 0 if self.origin is None else self.origin.to_frames(self.rate)

    @property
    def drop(self) -> bool:
        """Whether written time codes are drop frame: where the rate has it, unless the origin is non-drop."""
        other = self.origin is not None and self.origin.kind == "non_drop" and self.first != 0
        return self.rate in DROP_FRAME_RATES and not other

    def position(self, text: str, line: int, *, drop: bool = False) -> int:
        """Return the frame of the clip at a time code; ``drop``: in this file, colons mean drop frame."""
        timecode = self._on_line(lambda: _parse(text, drop=drop), line)
        if timecode.kind == "frames":
            return timecode.frames
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
        frame = self._on_line(lambda: timecode.to_frames(self.rate), line) - self.first
        if frame < 0:
            raise TimelineError(
                f"{text} is before the first frame of the clip, {origin or '00:00:00:00'}",
                "set origin= to the time code of the first frame",
                line,
            )
        return frame

    def duration(self, text: str, line: int) -> int:
        """Return a duration in frames; a number is frames."""
        return self._on_line(lambda: _parse(text).to_frames(self.rate), line)

    def show(self, frame: int) -> str:
        """Return the time code of a frame of the clip."""
        return show_timecode(self.first + frame, self.rate, drop=self.drop)

    def show_duration(self, frames: int) -> str:
        """Return a duration as a time code."""
        return show_timecode(frames, self.rate, drop=self.drop)

    def _on_line(self, function: Callable[[], T], line: int) -> T:
        try:
            return function()
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
    checked = {str(color).casefold(): track_named(str(track)) for color, track in tracks.items()}
    for color, track in checked.items():
        if track not in TRACKS:
            why = f"tracks: {color!r} has the unknown track {track!r}"
            raise TimelineError(why, unknown=(track, TRACKS))
    return checked


def with_track(marker: EditMarker, tracks: Mapping[str, str]) -> EditMarker:
    """Return a marker with its track: by name, else by color; raises :class:`TimelineError` for an unknown name."""
    named = marker.track
    if named and named.casefold() in tracks:
        return replace(marker, track=tracks[named.casefold()])
    if named:
        track = track_named(named)
        if track not in TRACKS:
            line = marker.line or None
            raise TimelineError(f"unknown track {named!r}", line=line, unknown=(named, TRACKS))
        return replace(marker, track=track)
    color = marker.color.casefold()
    usual = DEFAULT_TRACK if color else ""
    of_others = tracks.get(OTHERS) or TRACK_OF_COLOR.get(color, usual)
    return replace(marker, track=tracks.get(color, of_others))


Item = TypeVar("Item", EditMarker, EditSegment)
_NATIVE = frozenset({"frame", "start", "duration", "color", "line"})
"""What every format holds; ``color`` follows from the track."""


def check_lines(text: str) -> None:
    """Raise :class:`TimelineError` for too many lines, and for one that is too long; cells of tables may be longer."""
    for number, line in enumerate(text.splitlines(), 1):
        if number > _MOST_LINES:
            raise TimelineError(
                f"the file has more than {_MOST_LINES:,} lines", "split the timeline", number
            )
        if len(line) > _LONGEST_LINE:
            why = f"the line has {len(line):,} characters, more than {_LONGEST_LINE:,}"
            raise TimelineError(why, "export the timeline again, or shorten its texts", number)


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


def with_extra_values(item: Item, text: str, show: Callable[[Item], str], line: int) -> Item:
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
            "the MSAUTO values are not as msauto writes them", remedy, line
        ) from error
    if show(changed) == item.title:
        return changed
    return replace(changed, title=item.title)


def _check_values(item: EditMarker | EditSegment, values: dict[str, Any]) -> None:
    names = {attribute.name for attribute in fields(item)} - _NATIVE
    for name, value in values.items():
        kind = int if name in {"rating", "number"} else str
        if name not in names or not isinstance(value, kind):
            raise TypeError(name)
        str(value).encode()  # refuses half of a character
