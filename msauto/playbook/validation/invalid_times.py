"""Time codes that exist at no frame rate. Planning reports the others, with the length of the clip."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msauto.errors import Problem
from msauto.model.desired import (
    DesiredAsset,
    DesiredMarker,
    DesiredSegment,
    Position,
    ServerIntents,
    Sourced,
    TaskSource,
)
from msauto.model.timecode import DROP_FRAME_RATES, Timecode
from msauto.playbook.validation.contradictions import constant_of

_ALWAYS_SKIPPED = min(DROP_FRAME_RATES.values())


def impossible_positions(work: Sequence[ServerIntents]) -> Iterator[Problem]:
    """Yield the drop frame time codes that every drop-frame rate skips, each at its place."""
    for intent in (intent for each in work for intent in each.intents):
        desired = constant_of(intent)
        for position, source in _positions(desired) if isinstance(desired, DesiredAsset) else ():
            for code in (position.timecode, position.origin):
                if code is not None and _is_skipped(code):
                    message = f"{code} does not exist: drop-frame time codes skip it"
                    yield Problem(message, source.place, f"use {_next(code)}")


def _is_skipped(code: Timecode) -> bool:
    minute, second = divmod(code.seconds, 60)
    return code.kind == "drop" and second == 0 and minute % 10 != 0 and code.frames < _ALWAYS_SKIPPED


def _next(code: Timecode) -> str:
    return f"{code.text.partition(';')[0]};{_ALWAYS_SKIPPED:02} (29.97 fps)"


def _positions(desired: DesiredAsset) -> Iterator[tuple[Position, TaskSource]]:
    named: list[tuple[object, TaskSource]] = [(sourced.value, sourced.source) for sourced in desired.fields.values()]
    if desired.segmentation is not None:
        named.append((desired.segmentation.value.duration, desired.segmentation.source))
    for segment in desired.segments:
        named += _of(segment, segment.value.start, segment.value.duration)
    for marker in desired.markers:
        named += _of(marker, marker.value.at)
    for link in desired.links:
        named += [(value, link.source) for value in link.value.fields.values()]
    yield from ((value, source) for value, source in named if isinstance(value, Position))


def _of(sourced: Sourced[DesiredSegment] | Sourced[DesiredMarker], *values: object) -> list[tuple[object, TaskSource]]:
    return [(value, sourced.source) for value in values]
