"""Time codes of a file and frames of a clip, exact at its rate."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from msauto.model.timecode import DROP_FRAME_RATES, Timecode, TimecodeError, show_rate, show_timecode
from msauto.timelines.timeline import TimelineError

_Found = TypeVar("_Found")
_CLOCK_TIME = re.compile(r"(?:(\d{1,6})[:;])?(\d{1,2})[:;](\d{2})(?:([:;])(\d{2,3})|[.,](\d{1,12}))?", re.ASCII)
_NTSC = (24, 30, 48, 60, 120)
_MOST_FRAMES_PER_SECOND = 1000


def parse_rate(value: object) -> Fraction:
    """Return frames per second, exact; 29.97 and the like are 30000/1001.

    >>> parse_rate("29.97"), parse_rate(25)
    (Fraction(30000, 1001), Fraction(25, 1))
    """
    text = str(value).strip().removesuffix("fps").strip()
    try:
        rate = Fraction(text)
    except (ValueError, ZeroDivisionError):
        rate = Fraction(0)
    if not 0 < rate <= _MOST_FRAMES_PER_SECOND:
        raise TimelineError(f"{text[:40]!r} is not a frame rate", "write rate=asset.rate, 25, '29.97' or '30000/1001'")
    exact = (Fraction(nominal * 1000, 1001) for nominal in _NTSC)
    return next((each for each in exact if abs(each - rate) < Fraction(1, 200)), rate)


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
        return 0 if self.origin is None else self._frames(self.origin)

    @property
    def drop(self) -> bool:
        """Whether written time codes are drop frame: where the rate has it, unless the origin is non-drop."""
        other = self.origin is not None and self.origin.kind == "non_drop" and self.first != 0
        return self.rate in DROP_FRAME_RATES and not other

    def position(self, text: str, line: int, *, drop: bool = False) -> int:
        """Return the frame of the clip at a time code; ``drop``: in this file, colons mean drop frame."""
        timecode = self._timecode(text, line, drop=drop)
        if timecode.kind == "frames":
            return timecode.frames
        self._check_counting(timecode, line)
        frame = self._on_line(lambda: self._frames(timecode), line) - self.first
        if frame < 0:
            raise TimelineError(
                f"{text} is before the first frame of the clip, {self.origin or '00:00:00:00'}",
                "set origin= to the time code of the first frame",
                line,
            )
        return frame

    def duration(self, text: str, line: int, *, drop: bool = False) -> int:
        """Return a duration in frames; a number is frames."""
        return self._on_line(lambda: self._frames(self._timecode(text, line, drop=drop)), line)

    def show(self, frame: int) -> str:
        """Return the time code of a frame of the clip."""
        return show_timecode(self.first + frame, self.rate, drop=self.drop)

    def show_duration(self, frames: int) -> str:
        """Return a duration as a time code."""
        return show_timecode(frames, self.rate, drop=self.drop)

    def _frames(self, timecode: Timecode) -> int:
        return timecode.to_frames(self.rate)

    def _timecode(self, text: str, line: int, *, drop: bool) -> Timecode:
        return self._on_line(lambda: _parse(text, drop=drop), line)

    def _on_line(self, function: Callable[[], _Found], line: int) -> _Found:
        try:
            return function()
        except TimecodeError as error:
            remedy = f"correct the time code, or check rate= ({show_rate(self.rate)})"
            raise TimelineError(str(error), remedy, line) from error

    def _check_counting(self, timecode: Timecode, line: int) -> None:
        """Refuse an origin that is counted in another way: at 29.97 the same digits are seconds apart."""
        if self.origin is None or self.rate.denominator == 1 or self.first == 0:
            return
        if self.origin.kind != timecode.kind:
            names = {"drop": "drop frame", "non_drop": "non-drop frame", "seconds": "in seconds", "frames": "frames"}
            example = {"drop": "10:00:00;00", "non_drop": "10:00:00:00", "seconds": "10:00:00.0"}[timecode.kind]
            raise TimelineError(
                f"{timecode} is {names[timecode.kind]}, but origin {self.origin} is {names[self.origin.kind]}",
                f"write origin= as the file does, for example {example!r}",
                line,
            )


def _parse(text: str, *, drop: bool = False) -> Timecode:
    """Parse the forms that other programs write: ``1:00:00:00``, ``01;00;00;00``, ``00:00:01,500``, ``10:00:05``."""
    found = _CLOCK_TIME.fullmatch(text.strip())
    if found is None:
        return Timecode.parse(text)
    hours, minutes, seconds, separator, frames, decimals = found.groups(default="")
    clock = f"{hours or '0':0>2}:{minutes:0>2}:{seconds}"
    if not frames:
        return Timecode.parse(f"{clock}.{decimals or '0'}")
    if not hours:
        return Timecode.parse(text)  # MM:SS:FF is ambiguous: raises, with the valid forms
    return Timecode.parse(f"{clock}{';' if drop or separator == ';' else ':'}{frames}")
