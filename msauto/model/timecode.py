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
_LONGEST = 100
_MOST_SHOWN = 3


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
        # The first of ten minutes omits none.
        in_rest = max(0, rest - per_minute) // (60 * nominal - per_minute)
        frames += per_minute * (9 * tens + in_rest)
        separator = ";"
    seconds, frame = divmod(frames, nominal)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours:02}:{minute:02}:{second:02}{separator}{frame:0{max(2, len(str(nominal - 1)))}}"


# Rates ---------------------------------------------------------------------------------------------------------

_WHOLE_RATES = [Fraction(nominal) for nominal in (24, 25, 30, 48, 50, 60, 100, 120)]
_NTSC_RATES = [Fraction(nominal * 1000, 1001) for nominal in (24, 30, 48, 60, 120)]
KNOWN_RATES: Final = tuple(sorted([*_WHOLE_RATES, *_NTSC_RATES]))
MOST_FRAMES_PER_SECOND: Final = 1000

FrameRates = tuple[tuple[str, Fraction], ...]
"""The rates that an inventory declares where digits leave them open: by ``frame_time``, or for all under ``""``."""


def rate_of(frame_time: str, given: FrameRates = ()) -> Fraction:
    """Return the rate that a ``frame_time`` (decimal seconds per frame) stands for.

    The digits leave one known rate, or ``given`` declares which. Raises :class:`TimecodeError`, whose message follows
    *the clip reports*.

    >>> rate_of("0.0333666667"), rate_of("0.0333", (("", Fraction(30)),))
    (Fraction(30000, 1001), Fraction(30, 1))
    """
    # A longer text is not a decimal number either.
    return _rate_of(frame_time.strip()[:_LONGEST], given)


@lru_cache(maxsize=64)
def _rate_of(frame_time: str, given: FrameRates) -> Fraction:
    text = _as_decimal(frame_time)
    said = dict(given)
    if text in said:
        return said[text]
    possible = possible_rates(text)
    if len(possible) == 1:
        return possible[0]
    of_server = said.get("")
    if of_server is not None and _stands_for(text, 1 / of_server):
        return of_server
    shown = f"frame_time {show_cut(frame_time)}"
    if read_decimal(text) is None:
        raise TimecodeError(f"{shown}, which is not a decimal number")
    which = "is not one of the known rates"
    if possible:
        which = f"may be {' or '.join(map(show_rate, possible))}"
    if len(possible) > _MOST_SHOWN:
        which = f"may be {show_rate(possible[0])} to {show_rate(possible[-1])}"
    raise TimecodeError(f"{shown}, which {which}: set `frame_rate` of the server")


def _as_decimal(text: str) -> str:
    """Return a decimal with a point."""
    return text.strip().replace(",", ".")


def possible_rates(frame_time: str) -> tuple[Fraction, ...]:
    """Return the known rates that the digits of a ``frame_time`` can stand for.

    >>> possible_rates("0.0416"), possible_rates("0.0333")
    ((Fraction(24, 1),), (Fraction(30000, 1001), Fraction(30, 1)))
    """
    text = _as_decimal(frame_time)
    return tuple([rate for rate in KNOWN_RATES if _stands_for(text, 1 / rate)])


def _stands_for(text: str, exact: Fraction) -> bool:
    """Return whether the digits of a decimal are those of an exact number, rounded or cut."""
    written = read_decimal(text)
    if written is None:
        return False
    unit = Fraction(1, 10 ** len(text.partition(".")[2]))
    missing = exact - written
    return 0 <= missing < unit or abs(missing) <= unit / 2


def frame_rates(value: object) -> FrameRates:
    """Return what an inventory declares of rates: one, or a mapping of each ``frame_time`` to one."""
    given = value if isinstance(value, dict) else {"": value}
    rates: dict[str, Fraction] = {}
    for frame_time, rate in given.items():
        text = _as_decimal(str(frame_time))
        if text and read_decimal(text) is None:
            what = f"{show_cut(text)} is not a frame_time"
            raise TimecodeError(what, 'write the decimal that the server reports, such as "0.0333"')
        rates[text] = parse_rate(rate)
    return tuple(rates.items())


def parse_rate(value: object) -> Fraction:
    """Return frames per second, exact; 29.97 and the like are the known rate whose digits they are.

    >>> parse_rate("29.97"), parse_rate(25)
    (Fraction(30000, 1001), Fraction(25, 1))
    """
    rate = exact_rate(value)
    if rate is None or not 1 <= rate <= MOST_FRAMES_PER_SECOND:
        remedy = "write 25, '29.97' or '30000/1001'; of a clip: asset.rate"
        raise TimecodeError(f"{str(value)[:40]!r} is not a frame rate", remedy)
    return rate


def exact_rate(value: object) -> Fraction | None:
    """Return the rate that a written one stands for: the known one with its digits, else itself; ``None``: no number.

    >>> exact_rate("23.98"), exact_rate(48000)
    (Fraction(24000, 1001), Fraction(48000, 1))
    """
    written = f"{value:.12f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    text = _as_decimal(written.strip().removesuffix("fps"))
    rate = read_ratio(text)
    if rate is None or rate.denominator == 1 or "/" in text:
        return rate
    for known in KNOWN_RATES:
        if _stands_for(text, known):
            return known
    return rate
