"""Exact time: frame rates as fractions, positions and durations as whole frames. No float touches a position.

Source: interface, «Commands» (``HH:MM:SS[:;]FF``, ``HH:MM:SS.ss`` or a frame number); interface, «Asset»
(``frame_time``, decimal seconds per frame).
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal

from msgspec import Struct

from msauto.primitives.decimals import MOST, read_decimal, read_ratio, show_cut

DROP_FRAME_RATES = {Fraction(30000, 1001): 2, Fraction(60000, 1001): 4}
"""The frame numbers that drop frame omits at the start of each minute, except each tenth (SMPTE 12M)."""

_TIMECODE = re.compile(
    r"(?P<h>\d{2,6}):(?P<m>[0-5]\d):(?P<s>[0-5]\d)(?:(?P<sep>[:;])(?P<f>\d{2,3})|\.(?P<dec>\d{1,12}))",
    re.ASCII,
)
_PARTS = re.compile(r"\d{2,6}:(?P<minutes>\d\d):(?P<seconds>\d\d)(?:[:;.]\d{1,12})?", re.ASCII)
_FRAMES = re.compile(r"\d{1,9}", re.ASCII)
_SLOWEST, _FASTEST = 1, 1000  # frames per second
_LONGEST = 100


class TimecodeError(ValueError):
    """A time code or a rate that is invalid, or a time code that does not exist at the frame rate."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class Timecode(Struct, frozen=True, gc=False):
    """A position or a duration as written; converted to frames once the frame rate is known.

    ``kind``: ``frames`` (a number), ``non_drop`` (``HH:MM:SS:FF``), ``drop`` (``HH:MM:SS;FF``),
    ``seconds`` (``HH:MM:SS.ss``).
    """

    text: str
    kind: Literal["frames", "non_drop", "drop", "seconds"]
    seconds: int = 0
    frames: int = 0
    fraction: Fraction = Fraction(0)

    @classmethod
    def parse(cls, value: str | int) -> Timecode:
        """Parse a frame number or a time code.

        >>> Timecode.parse("00:00:10:05").to_frames(Fraction(25))
        255
        """
        if isinstance(value, int):
            if value < 0:
                raise TimecodeError("a position cannot be negative")
            if value > MOST:
                raise TimecodeError(f"a number of frames is at most {MOST}")
            return cls(str(value), "frames", frames=value)
        text = value.strip()
        if _FRAMES.fullmatch(text):
            return cls(text, "frames", frames=int(text))
        match = _TIMECODE.fullmatch(text)
        if match is None:
            raise TimecodeError(_why_invalid(text))
        whole = int(match["h"]) * 3600 + int(match["m"]) * 60 + int(match["s"])
        if match["dec"] is not None:
            digits = match["dec"]
            return cls(
                text, "seconds", seconds=whole, fraction=Fraction(int(digits), 10 ** len(digits))
            )
        kind: Literal["drop", "non_drop"] = "drop" if match["sep"] == ";" else "non_drop"
        return cls(text, kind, seconds=whole, frames=int(match["f"]))

    def to_frames(self, rate: Fraction) -> int:
        """Return whole frames at ``rate`` (frames per second); seconds are rounded to the nearest frame, halves up."""
        if self.kind == "frames":
            return self.frames
        if self.kind == "seconds":
            exact = (self.seconds + self.fraction) * rate
            return int(exact + Fraction(1, 2))
        nominal = nominal_rate(rate)
        if self.frames >= nominal:
            raise TimecodeError(
                f"{self.text} does not exist: a second has frames 00 to {nominal - 1:02} at {show_rate(rate)}"
            )
        number = self.seconds * nominal + self.frames
        return number if self.kind == "non_drop" else number - self._dropped(rate)

    def _dropped(self, rate: Fraction) -> int:
        per_minute = DROP_FRAME_RATES.get(rate)
        if per_minute is None:
            raise TimecodeError(
                f"{self.text} is drop frame (;), which {show_rate(rate)} does not have: "
                f"write {self.text.replace(';', ':')}"
            )
        if self.is_omitted(per_minute):
            raise TimecodeError(f"{self.text} does not exist: drop frame omits it")
        minutes = self.seconds // 60
        return per_minute * (minutes - minutes // 10)

    def is_omitted(self, per_minute: int) -> bool:
        """Return whether drop frame omits it, at a rate where it omits so many numbers at the start of a minute."""
        minutes, second = divmod(self.seconds, 60)
        return (
            self.kind == "drop" and second == 0 and minutes % 10 != 0 and self.frames < per_minute
        )

    def __str__(self) -> str:
        return self.text


def _why_invalid(text: str) -> str:
    """Return what is wrong with a time code: the part that is out of range, or else the forms that are valid."""
    parts = _PARTS.fullmatch(text)
    for name in ("minutes", "seconds") if parts else ():
        if parts and int(parts[name]) > 59:
            return f"{text!r} is not a valid time code: {name} must be 00 to 59, not {parts[name]}"
    return f"{text[:60]!r} is not a valid time code: HH:MM:SS:FF, HH:MM:SS;FF (drop frame), HH:MM:SS.ss or frames"


def rate_of(frame_time: str) -> Fraction:
    """Return the exact rate of a ``frame_time`` (decimal seconds per frame, ten digits).

    Raises :class:`TimecodeError`, whose message follows *the clip reports*.

    >>> rate_of("0.0333666667")
    Fraction(30000, 1001)
    """
    return _rate_of(frame_time.strip()[:_LONGEST])  # a longer text is not a decimal number either


@lru_cache(maxsize=64)
def _rate_of(frame_time: str) -> Fraction:
    period, shown = read_decimal(frame_time), f"frame_time {show_cut(frame_time)}"
    if period is None:
        raise TimecodeError(f"{shown}, which is not a decimal number")
    if period <= 0:
        raise TimecodeError(f"{shown}, which is not above 0")
    if not _SLOWEST <= 1 / period <= _FASTEST:
        raise TimecodeError(
            f"{shown}, which is not a rate of {_SLOWEST} to {_FASTEST} frames per second"
        )
    return (1 / period).limit_denominator(1001)


@lru_cache(maxsize=64)
def nominal_rate(rate: Fraction) -> int:
    """Return the frames per second that a time code counts: 30 for 30000/1001."""
    return -(-rate.numerator // rate.denominator)


def show_rate(rate: Fraction) -> str:
    """Return the rate as text, for example ``25 fps`` or ``29.97 fps``."""
    return f"{rate.numerator} fps" if rate.denominator == 1 else f"{float(rate):.2f} fps"


def show_timecode(frames: int, rate: Fraction, *, drop: bool = False) -> str:
    """Return frames as ``HH:MM:SS:FF`` (``;FF`` with ``drop``); hours continue after 24."""
    nominal = nominal_rate(rate)
    separator = ":"
    if drop:
        per_minute = DROP_FRAME_RATES.get(rate)
        if per_minute is None:
            raise TimecodeError(f"{show_rate(rate)} does not support drop frame")
        tens, rest = divmod(frames, 600 * nominal - 9 * per_minute)
        in_rest = max(0, rest - per_minute) // (
            60 * nominal - per_minute
        )  # the first of ten minutes omits none
        frames += per_minute * (9 * tens + in_rest)
        separator = ";"
    seconds, frame = divmod(frames, nominal)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours:02}:{minute:02}:{second:02}{separator}{frame:0{max(2, len(str(nominal - 1)))}}"


# Rates ---------------------------------------------------------------------------------------------------------

NTSC: Final = (24, 30, 48, 60, 120)
MOST_FRAMES_PER_SECOND: Final = 1000


def parse_rate(value: object) -> Fraction:
    """Return frames per second, exact; 29.97 and the like are 30000/1001.

    >>> parse_rate("29.97"), parse_rate(25)
    (Fraction(30000, 1001), Fraction(25, 1))
    """
    written = f"{value:.12f}" if isinstance(value, float) else str(value)
    text = written.strip().removesuffix("fps").strip()
    rate = read_ratio(text)
    if rate is None or not 1 <= rate <= MOST_FRAMES_PER_SECOND:
        remedy = "write rate=asset.rate, 25, '29.97' or '30000/1001'"
        raise TimecodeError(f"{text[:40]!r} is not a frame rate", remedy)
    return exact_rate(rate)


def exact_rate(rate: Fraction) -> Fraction:
    """Return the rate that a rounded one stands for.

    >>> exact_rate(Fraction("23.98"))
    Fraction(24000, 1001)
    """
    exact = (Fraction(nominal * 1000, 1001) for nominal in NTSC)
    return next((each for each in exact if abs(each - rate) < Fraction(1, 200)), rate)
