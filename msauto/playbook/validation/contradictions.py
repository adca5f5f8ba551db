"""Tasks that contradict each other, as far as this is known without a server.

Planning finds all contradictions. Here, both tasks must name the same title, id or channel, without facts, and two
positions differ only if they differ at every frame rate.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msauto.errors import Problem
from msauto.model import desired as model
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.identity import same_text
from msauto.playbook.templates.names import UsesAssetError


@dataclass(frozen=True, slots=True)
class _DesiredValue:
    """One value that a task desires; ``ABSENT`` means that it is removed."""

    key: tuple[Hashable, ...]
    name: str
    value: Any
    source: model.TaskSource


def contradictions(work: Sequence[model.ServerIntents]) -> Iterator[Problem]:
    """Yield a problem for each value that two tasks contradict; it names both places."""
    for each in work:
        seen: dict[tuple[Hashable, ...], _DesiredValue] = {}
        for intent in each.intents:
            target = _target(intent.ref)
            desired = constant_of(intent)
            if target is None or desired is None:
                continue
            for claim in _claims(desired):
                first = seen.setdefault((*target, *claim.key), claim)
                problem = _problem(first, claim) if first is not claim else None
                if problem is not None:
                    yield problem


def _target(ref: model.Ref) -> tuple[Hashable, ...] | None:
    if isinstance(ref, model.TitleRef):
        return "title", ref.database, ref.title
    if isinstance(ref, model.IdRef):
        return "id", ref.database, ref.namespace, ref.identifier
    return ("channel", ref.channel) if isinstance(ref, model.ChannelRef) else None


def constant_of(intent: model.Intent) -> model.DesiredAsset | model.DesiredChannel | None:
    """Return the desired state of an intent; ``None`` if it depends on facts."""
    try:
        desired = intent.evaluate(Facts())
    except (Need, NoAssetError, UsesAssetError):
        return None
    return desired if isinstance(desired, model.DesiredAsset | model.DesiredChannel) else None


def _claims(desired: model.DesiredAsset | model.DesiredChannel) -> Iterator[_DesiredValue]:
    if isinstance(desired, model.DesiredChannel):
        for item in desired.items:
            fields = item.value.item if isinstance(item.value.item, Mapping) else {}
            attributes = {"text": item.value.text, **fields}
            yield from _item(("item", item.value.guid), f"item {item.value.guid}", item, attributes)
        return
    yield _DesiredValue(("state",), "the asset", True if desired.present else model.ABSENT, desired.source)
    if desired.folder is not None:
        yield _DesiredValue(("folder",), "the folder", desired.folder.value, desired.folder.source)
    for name, sourced in desired.fields.items():
        yield _DesiredValue(("field", name), f"the field {name}", sourced.value, sourced.source)
    for name, values in desired.xmp.items():
        if name not in desired.xmp_lists:  # lists of several tasks are merged
            yield _DesiredValue(("xmp", name), f"the XMP field {name}", values.value, values.source)
    yield from _lists(desired)


def _lists(desired: model.DesiredAsset) -> Iterator[_DesiredValue]:
    if desired.segmentation is not None:
        sourced = desired.segmentation
        yield _DesiredValue(("segmentation",), "the segmentation", sourced.value.duration, sourced.source)
    for segment in desired.segments:
        if segment.value.number is not model.ABSENT:
            attributes = {"start": segment.value.start, "duration": segment.value.duration, **segment.value.fields}
            yield from _item(("segment", segment.value.number), f"segment {segment.value.number}", segment, attributes)
    for marker in desired.markers:
        yield from _marker(marker)
    for link in desired.links:
        folder = "/".join(link.value.folder)
        title = "" if link.value.title is model.ABSENT else f" named {link.value.title}"
        yield from _item(
            ("link", link.value.folder, link.value.title), f"the link in {folder}{title}", link, link.value.fields
        )


def _marker(sourced: model.Sourced[model.DesiredMarker]) -> Iterator[_DesiredValue]:
    value = sourced.value
    if value.uid is not model.ABSENT:
        attributes = {"at": value.at, "track": value.track, **value.fields}
        yield from _item(("marker", value.uid), f"the marker of uid {value.uid}", sourced, attributes)
    elif value.at is not model.ABSENT:
        track = "General" if value.track is model.ABSENT else value.track
        code, origin = value.at.timecode, None if value.at.timecode.kind == "frames" else value.at.origin
        key = ("marker", track, code.kind, code.seconds, code.frames, code.fraction, origin)
        yield from _item(key, f"the marker at {value.at} ({track})", sourced, value.fields)


def _item(
    key: tuple[Hashable, ...], name: str, sourced: model.Sourced[Any], attributes: Mapping[str, Any]
) -> Iterator[_DesiredValue]:
    yield _DesiredValue(key, name, True if sourced.value.present else model.ABSENT, sourced.source)
    for attribute, value in attributes.items() if sourced.value.present else ():
        if value is not model.ABSENT:
            yield _DesiredValue((*key, attribute), f"the {attribute} of {name}", value, sourced.source)


def _problem(one: _DesiredValue, other: _DesiredValue) -> Problem | None:
    if (one.value is model.ABSENT) != (other.value is model.ABSENT):
        gone, kept = (one, other) if one.value is model.ABSENT else (other, one)
        message = f"{one.name} is removed by {gone.source.description} and desired by {kept.source.description}"
        return Problem(message, other.source.place, "remove one of the two tasks, or make them agree", kind="conflict")
    if not _differ(one.value, other.value):
        return None
    message = (
        f"{one.name}: two tasks want different values: {_show(one.value)} is desired by {one.source.description}, "
        f"{_show(other.value)} by {other.source.description}"
    )
    return Problem(message, other.source.place, "make both tasks agree", kind="conflict")


def _show(value: Any) -> str:
    if isinstance(value, model.Position):
        return str(value)
    return repr("/".join(value) if isinstance(value, tuple) else value)


def _differ(one: Any, other: Any) -> bool:
    if isinstance(one, model.Position) and isinstance(other, model.Position):
        return _positions_differ(one, other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) != len(other) or any(_differ(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, str) and isinstance(other, str):
        return not same_text(one, other) and not _same_number(one, other)
    return type(one) is type(other) and bool(one != other)


def _positions_differ(one: model.Position, other: model.Position) -> bool:
    """Return whether two positions differ at every rate: the rate is unknown without the asset."""
    a, b = one.timecode, other.timecode
    if a.kind != b.kind or a.kind == "seconds":
        return False
    if a.kind != "frames" and one.origin != other.origin:
        return False
    return (a.seconds, a.frames) != (b.seconds, b.frames)


def _same_number(one: str, other: str) -> bool:
    return one.strip().isdecimal() and other.strip().isdecimal() and int(one) == int(other)
