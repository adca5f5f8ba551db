"""How positions and durations may be written, and what each comes to at two rates."""

from __future__ import annotations

from fractions import Fraction

from msauto.model.timecode import Timecode, TimecodeError, show_rate
from msauto.playbook.reference.entries import ReferenceEntry

_RATES = (Fraction(25), Fraction(30000, 1001))
_FORMS = (
    ("frames", "a whole number: frames, whatever the rate", "1800"),
    ("HH:MM:SS:FF", "a time code; hours may run past 24", "00:01:00:02"),
    ("HH:MM:SS;FF", "drop frame, at 29.97 and 59.94 only: some time codes do not exist", "00:01:00;02"),
    ("HH:MM:SS.ss", "seconds, rounded to the nearest frame", "00:01:00.08"),
)


def positions() -> list[ReferenceEntry]:
    """Return the forms of a position, each with an example and the frames that it stands for."""
    return [ReferenceEntry(name, words, example, _results(example)) for name, words, example in _FORMS]


def _results(text: str) -> str:
    return ", ".join(f"{_frames(text, rate)} at {show_rate(rate)}" for rate in _RATES)


def _frames(text: str, rate: Fraction) -> str:
    try:
        return f"frame {Timecode.parse(text).to_frames(rate)}"
    except TimecodeError:
        return "an error"
