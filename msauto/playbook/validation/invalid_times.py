"""Time codes that exist at no frame rate. Planning reports the others, with the length of the clip."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msauto.errors import Problem
from msauto.model import desired as model
from msauto.model.timecode import DROP_FRAME_RATES, Timecode
from msauto.playbook.validation.contradictions import constant_of

_ALWAYS_SKIPPED = min(DROP_FRAME_RATES.values())


def impossible_positions(work: Sequence[model.ServerIntents]) -> Iterator[Problem]:
    """Yield the drop frame time codes that every drop-frame rate skips, each at its place."""
    for intent in (intent for each in work for intent in each.intents):
        desired = constant_of(intent)
        for position, source in _positions(desired) if isinstance(desired, model.DesiredAsset) else ():
            for code in (position.timecode, position.origin):
                if code is not None and _is_skipped(code):
                    message = f"{code} does not exist: drop-frame time codes skip it"
                    following = f"{code.text.partition(';')[0]};{_ALWAYS_SKIPPED:02} (29.97 fps)"
                    yield Problem(message, source.place, f"use {following}", kind="time-code")


def _is_skipped(code: Timecode) -> bool:
    minute, second = divmod(code.seconds, 60)
    return code.kind == "drop" and second == 0 and minute % 10 != 0 and code.frames < _ALWAYS_SKIPPED


def _positions(desired: model.DesiredAsset) -> Iterator[tuple[model.Position, model.TaskSource]]:
    named: list[tuple[object, model.TaskSource]] = [(each.value, each.source) for each in desired.fields.values()]
    if desired.segmentation is not None:
        named.append((desired.segmentation.value.duration, desired.segmentation.source))
    for segment in desired.segments:
        named += [(value, segment.source) for value in (segment.value.start, segment.value.duration)]
    named += [(marker.value.at, marker.source) for marker in desired.markers]
    named += [(value, link.source) for link in desired.links for value in link.value.fields.values()]
    yield from ((value, source) for value, source in named if isinstance(value, model.Position))
