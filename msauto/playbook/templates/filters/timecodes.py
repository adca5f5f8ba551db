"""Filters of positions. Exact: no float touches a position."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context, Undefined

from msauto.model.timecode import Timecode, nominal_rate, show_timecode
from msauto.playbook.templates.registry import template_filter


def _rate(context: Context, fps: Any) -> Fraction:
    """Return the given rate, or that of the asset: 25, ``29.97``, ``30000/1001``."""
    if fps is None:
        fps = context.environment.getattr(context.resolve("asset"), "fps")
        if isinstance(fps, Undefined):
            str(fps)  # raises: the asset has no rate
    exact = Fraction(str(fps)) if isinstance(fps, str | float) else Fraction(fps)
    if exact.denominator not in {1, 1001}:
        ntsc = Fraction(nominal_rate(exact) * 1000, 1001)
        exact = ntsc if abs(ntsc - exact) < Fraction(1, 100) else exact
    if not 0 < exact <= 1000:
        raise ValueError(f"{fps} is not a valid frame rate")
    return exact


def _frames_of(value: Any, rate: Fraction) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError("a position is a whole number of frames or a time code")
    text = str(value).strip()
    if text.startswith("-"):
        return -Timecode.parse(text[1:]).to_frames(rate)
    return Timecode.parse(text if isinstance(value, str) else value).to_frames(rate)


@template_filter
@pass_context
def frames(context: Context, value: Any, fps: Any = None) -> int:
    """A position in frames; the rate is the asset's unless given.

    Example: '00:00:10:05' | frames(25)
    """
    return _frames_of(value, _rate(context, fps))


@template_filter
@pass_context
def timecode(context: Context, value: Any, fps: Any = None, drop: bool = False) -> str:
    """Frames as a time code; the rate is the asset's unless given; drop=true for drop frame.

    Example: 1800 | timecode('30000/1001', drop=true)
    """
    rate = _rate(context, fps)
    return show_timecode(_frames_of(value, rate), rate, drop=drop)


@template_filter
@pass_context
def seconds(context: Context, value: Any, fps: Any = None) -> int | float:
    """A position in seconds; the rate is the asset's unless given.

    Example: '00:00:10:05' | seconds(25)
    """
    rate = _rate(context, fps)
    exact = _frames_of(value, rate) / rate
    return exact.numerator if exact.denominator == 1 else float(exact)


@template_filter
@pass_context
def shift(context: Context, value: Any, by: Any, fps: Any = None) -> Any:
    """A position moved by frames or a time code, in its own notation.

    Example: '00:01:00:00' | shift(-25, 25)
    """
    if isinstance(value, int) and isinstance(by, int) and fps is None:
        return _not_before_start(value + by)
    rate = _rate(context, fps)
    step = by if isinstance(by, int) else _frames_of(by, rate)
    moved = _not_before_start(_frames_of(value, rate) + step)
    if isinstance(value, int) or str(value).strip().isdigit():
        return moved
    return show_timecode(moved, rate, drop=";" in str(value))


def _not_before_start(frames: int) -> int:
    if frames < 0:
        raise ValueError("the position would be before the start")
    return frames
