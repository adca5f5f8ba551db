"""Positions and durations of commands: frames, time codes, seconds. All calculations are exact.

Source: interface "Asset commands", CREATESEGMENT: HH:MM:SS[:;]FF or HH:MM:SS.ss, or a frame number.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_CODE = re.compile(r"(\d+):([0-5]\d):([0-5]\d)(?:([:;])(\d+)|\.(\d+))?")
_DROPPING = (Fraction(30000, 1001), Fraction(60000, 1001))


def parse_frames(text: str, rate: Fraction) -> int:
    """A position or duration → frames at this rate; ValueError for an invalid one."""
    if re.fullmatch(r"\d+", text, re.ASCII):
        return int(text)
    match = _CODE.fullmatch(text)
    if match is None:
        raise ValueError(f"not a valid position: {text!r}")
    hours, minutes, seconds = (int(part) for part in match.group(1, 2, 3))
    if match[4] is None:
        whole = Fraction((hours * 60 + minutes) * 60 + seconds) + Fraction(f"0.{match[6] or 0}")
        return round(whole * rate)
    return _code_frames((hours * 60 + minutes, seconds, int(match[5])), rate, match[4] == ";")


def _code_frames(code: tuple[int, int, int], rate: Fraction, drop: bool) -> int:
    minutes, seconds, frame = code
    nominal = -(-rate.numerator // rate.denominator)
    if frame >= nominal:
        raise ValueError(f"frame {frame} is out of range at {nominal} frames per second")
    count = (minutes * 60 + seconds) * nominal + frame
    if not drop:
        return count
    if rate not in _DROPPING:
        raise ValueError("this rate does not support drop frame")
    skipped = nominal // 15
    if minutes % 10 and seconds == 0 and frame < skipped:
        raise ValueError("drop frame skips this time code")
    return count - skipped * (minutes - minutes // 10)


def format_frames(frames: int, rate: Fraction) -> str:
    """Frames → non-drop `HH:MM:SS:FF`; the hours can exceed 24."""
    nominal = -(-rate.numerator // rate.denominator)
    seconds, frame = divmod(frames, nominal)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}:{frame:02d}"


def format_length(frames: int, rate: Fraction) -> str:
    """Frames → real time `HH:MM:SS.sss`, without a fraction of 0 (the mam shape)."""
    millis = round(frames / rate * 1000)
    seconds, rest = divmod(millis, 1000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{rest:03d}" if rest else text


@lru_cache(maxsize=64)
def frame_time(rate: Fraction) -> str:
    """Return the duration of a frame in seconds with ten decimals, `0.0400000000`."""
    ticks = round(10**10 / rate)
    return f"{ticks // 10**10}.{ticks % 10**10:010d}"
