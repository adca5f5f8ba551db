"""Filters of the field: ``timecode``, ``frames``, ``seconds``, ``shift``. Exact: no float touches a position."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, cast

from jinja2 import pass_context
from jinja2.runtime import Context, Undefined

from msauto.model.timecode import Timecode, nominal_rate, show_timecode


def _rate(context: Context, fps: Any) -> Fraction:
    """The rate as given, or that of the asset: 25, ``29.97``, ``30000/1001``."""
    if fps is None:
        fps = context.environment.getattr(context.resolve("asset"), "fps")
        if isinstance(fps, Undefined):
            str(fps)  # raises: the asset tells no rate
    exact = Fraction(str(fps)) if isinstance(fps, str | float) else Fraction(fps)
    if exact.denominator not in {1, 1001}:
        nominal = nominal_rate(exact)
        ntsc = Fraction(nominal * 1000, 1001)
        exact = ntsc if abs(ntsc - exact) < Fraction(1, 100) else exact
    if not 0 < exact <= 1000:
        raise ValueError(f"{fps} is no frame rate")
    return exact


def _frames_of(value: Any, rate: Fraction) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError("a position is a whole number of frames or a time code")
    text = str(value).strip()
    if text.startswith("-"):
        return -Timecode.parse(text[1:]).to_frames(rate)
    return Timecode.parse(text if isinstance(value, str) else value).to_frames(rate)


@pass_context
def _frames(context: Context, value: Any, fps: Any = None) -> int:
    """A time code as frames: ``"00:00:10:00" | frames(25)``."""
    return _frames_of(value, _rate(context, fps))


@pass_context
def _timecode(context: Context, value: Any, fps: Any = None, drop: bool = False) -> str:
    """Frames as a time code: ``asset.frames | timecode``."""
    rate = _rate(context, fps)
    return show_timecode(_frames_of(value, rate), rate, drop=drop)


@pass_context
def _seconds(context: Context, value: Any, fps: Any = None) -> int | float:
    """A position in seconds."""
    rate = _rate(context, fps)
    exact = _frames_of(value, rate) / rate
    return exact.numerator if exact.denominator == 1 else float(exact)


@pass_context
def _shift(context: Context, value: Any, by: Any, fps: Any = None) -> Any:
    """A position moved by frames or a time code (``-`` in front: earlier), in the notation that it has."""
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


TIMECODE_FILTERS: dict[str, Callable[..., Any]] = {
    "timecode": cast("Callable[..., Any]", _timecode),
    "frames": cast("Callable[..., Any]", _frames),
    "seconds": cast("Callable[..., Any]", _seconds),
    "shift": cast("Callable[..., Any]", _shift),
}
