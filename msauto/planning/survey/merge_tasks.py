"""Merge what tasks declare for one asset or channel, lists included, before it is compared.

Equal declarations are fine. Different values for one thing are an error that names both places; so is a thing that
one task removes and another declares.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any, TypeVar

from msgspec import structs

from msauto.diffing.comparison import as_number, same_list, same_value, track_of
from msauto.diffing.plan_builder import refuse
from msauto.interface.fields import DEFAULT_TRACK
from msauto.model.desired import (
    ABSENT,
    CompleteLists,
    DesiredAsset,
    DesiredChannel,
    DesiredLink,
    DesiredMarker,
    DesiredRssItem,
    DesiredSegment,
    DesiredSegmentation,
    Position,
    Sourced,
    TaskSource,
)
from msauto.model.identity import plain
from msauto.model.live import Asset
from msauto.model.timecode import TimecodeError

T = TypeVar("T")
V = TypeVar("V", DesiredSegment, DesiredMarker, DesiredLink, DesiredRssItem)


def merge_desired(declared: Sequence[DesiredAsset], asset: Asset, title: str) -> DesiredAsset:
    """Return what all tasks declare for one asset; ``title`` is its current title.

    Raises ``PlanningError`` that names both places of a contradiction.
    """
    absent = next((w for w in declared if not w.present), None)
    present = next((w for w in declared if w.present), None)
    if absent and present:
        raise _removed_and_declared("the asset", absent.source, present.source)
    has_lists = max(map(len, (declared[0].segments, declared[0].markers, declared[0].links))) > 1
    if len(declared) == 1 and not has_lists:
        return declared[0]
    keys = _MergeKeys(asset, next((each.title.value for each in declared if each.title), title))
    _check_exactly(declared, keys)
    return DesiredAsset(
        source=declared[0].source,
        present=declared[0].present,
        missing="error" if any(w.missing == "error" for w in declared) else "skip",
        unfinalized=min((w.unfinalized for w in declared), key=("error", "skip", "allow").index),
        lossy=any(w.lossy for w in declared),
        with_links=any(w.with_links for w in declared),
        folder=_one("the folder", [w.folder for w in declared], keys.comparable),
        title=_one("the title", [w.title for w in declared], keys.comparable),
        fields=_mapping("the field", [w.fields for w in declared], keys.field),
        xmp=_xmp(declared),
        xmp_lists=frozenset().union(*(w.xmp_lists for w in declared)),
        segments=_list("segment", [w.segments for w in declared], keys.segment, keys),
        segmentation=_one("the segmentation", [w.segmentation for w in declared], keys.comparable),
        markers=_list("marker", [w.markers for w in declared], keys.marker, keys),
        links=_list("link", [w.links for w in declared], keys.link, keys),
        exactly=_exactly([w.exactly for w in declared]),
        still={name: value for w in declared for name, value in w.still.items()},
        notes=tuple(note for w in declared for note in w.notes),
        restore=max((w.restore for w in declared if w.restore), key=lambda sourced: sourced.value, default=None),
    )


def merge_channels(declared: Sequence[DesiredChannel]) -> DesiredChannel:
    """Return what all tasks declare for one channel."""
    for one in (w for w in declared if w.exactly):
        named = {plain(sourced.value.guid) for sourced in one.items}
        for other in (w for w in declared if w is not one):
            for sourced in other.items:
                if sourced.value.present and plain(sourced.value.guid) not in named:
                    raise _removed_and_declared(f"item {sourced.value.guid}", one.exactly, sourced.source)
    items: dict[str, Sourced[DesiredRssItem]] = {}
    for sourced in (sourced for desired in declared for sourced in desired.items):
        earlier = items.setdefault(plain(sourced.value.guid), sourced)
        if earlier.value.present != sourced.value.present:
            absent, present = (earlier, sourced) if sourced.value.present else (sourced, earlier)
            raise _removed_and_declared(f"item {sourced.value.guid}", absent.source, present.source)
        if structs.replace(earlier.value, guid=sourced.value.guid) != sourced.value:
            raise _contradiction(f"item {sourced.value.guid}", earlier, sourced)
    return DesiredChannel(
        declared[0].source,
        tuple(items.values()),
        next((w.exactly for w in declared if w.exactly), None),
        still={guid: value for w in declared for guid, value in w.still.items()},
        notes=tuple(note for w in declared for note in w.notes),
    )


def _removed_and_declared(what: str, absent: TaskSource | None, desired: TaskSource) -> Exception:
    removing = absent.description if absent else "one task"
    return refuse(
        f"{what} is removed by {removing} and declared by {desired.description}",
        desired,
        "remove one of the two tasks, or declare the same in both",
    )


def _contradiction(what: str, one: Sourced[T], other: Sourced[T]) -> Exception:
    return refuse(
        f"{what}: two tasks declare different values: {_show(one.value)} by {one.source.description}, "
        f"{_show(other.value)} by {other.source.description}",
        other.source,
        "declare the same value in both",
    )


def _show(value: object) -> str:
    if isinstance(value, DesiredSegmentation):
        return f"pieces of {value.duration}"
    if isinstance(value, DesiredRssItem):
        return f"{value.text!r} in {value.file}" if value.item is ABSENT else f"{dict(value.item)} in {value.file}"
    if isinstance(value, tuple):
        return repr(value[0] if len(value) == 1 else list(value))
    return str(value) if isinstance(value, Position) else repr(value)


# Keys: equal keys mean the same thing, or the same value --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _MergeKeys:
    """The keys of desired things of one asset."""

    asset: Asset
    title: str

    def comparable(self, value: object) -> Hashable:
        if isinstance(value, str):
            return plain(value)
        if isinstance(value, tuple):
            return tuple(map(self.comparable, value))
        if isinstance(value, DesiredSegmentation):
            return self.comparable(value.duration), self.comparable(value.title)
        if not isinstance(value, Position):
            return repr(value)
        # An error of a position is raised where it is used.
        rate = self.asset.rate or (Fraction(1) if value.timecode.kind == "frames" else None)
        try:
            return value.to_frames(rate) if rate else str(value)
        except TimecodeError:
            return str(value)

    def field(self, name: str, value: object) -> Hashable:
        number = as_number(value) if isinstance(value, str) else None
        if isinstance(value, str) and number is not None and same_value(name, value, str(number)):
            return number
        return self.comparable(value)

    def segment(self, value: DesiredSegment) -> Hashable:
        if value.number is not ABSENT:
            return value.number
        place = (self.comparable(value.start), self.comparable(value.duration))
        title = value.fields.get("title")
        return (*place, plain(title)) if value.start is ABSENT and title is not None else place

    def marker(self, value: DesiredMarker) -> Hashable:
        if value.uid is not ABSENT:
            return value.uid
        if value.anew:
            return ("anew", value.anew)
        return (DEFAULT_TRACK if value.track is ABSENT else value.track, self.comparable(value.at))

    def link(self, value: DesiredLink) -> Hashable:
        title = self.title if value.title is ABSENT else value.title
        return (*map(plain, value.folder), plain(title))

    def track(self, value: DesiredMarker) -> str:
        """Return the track of a desired marker: its own, that of its uid, General."""
        if value.track is not ABSENT:
            return value.track
        live = (m for m in self.asset.markers if m.uid == value.uid)
        return next(map(track_of, live), DEFAULT_TRACK)


# Merging -------------------------------------------------------------------------------------------------------


def _one(what: str, sourced: Iterable[Sourced[T] | None], key: Callable[[object], Hashable]) -> Sourced[T] | None:
    first: Sourced[T] | None = None
    for other in (s for s in sourced if s is not None):
        if first is None:
            first = other
        elif key(first.value) != key(other.value):
            raise _contradiction(what, first, other)
    return first


def _mapping(
    what: str, sourced: Iterable[Mapping[str, Sourced[T]]], key: Callable[[str, object], Hashable]
) -> dict[str, Sourced[T]]:
    merged: dict[str, Sourced[T]] = {}
    for name, other in chain.from_iterable(fields.items() for fields in sourced):
        first = merged.setdefault(name, other)
        if key(name, first.value) != key(name, other.value):
            raise _contradiction(f"{what} {name}", first, other)
    return merged


def _xmp(declared: Sequence[DesiredAsset]) -> dict[str, Sourced[tuple[str, ...]]]:
    """Merge XMP fields: lists of one field become one list, in the order of the tasks, each value once.

    A field that one task clears or sets to a single text has only that value: other values are a contradiction.
    """
    merged: dict[str, Sourced[tuple[str, ...]]] = {}
    whole: set[str] = set()
    for desired in declared:
        for name, sourced in desired.xmp.items():
            first = merged.setdefault(name, sourced)
            if name not in desired.xmp_lists or not sourced.value:
                whole.add(name)
            if first is sourced or same_list(first.value, sourced.value):
                continue
            if name in whole:
                raise _contradiction(f"the XMP field {name}", first, sourced)
            values = list(first.value)
            for value in sourced.value:
                if not any(same_list([value], [each]) for each in values):
                    values.append(value)
            merged[name] = structs.replace(first, value=tuple(values), also=(*first.also, sourced.source))
    return merged


def _list(
    what: str, lists: Iterable[Sequence[Sourced[V]]], identity: Callable[[V], Hashable], keys: _MergeKeys
) -> tuple[Sourced[V], ...]:
    merged: dict[Hashable, Sourced[V]] = {}
    for sourced in chain.from_iterable(lists):
        key = identity(sourced.value)
        first = merged.get(key)
        merged[key] = sourced if first is None else _merge(f"{what} {_show_key(key)}", first, sourced, keys)
    return tuple(merged.values())


def _show_key(key: Hashable) -> str:
    return " ".join(map(str, key)) if isinstance(key, tuple) else str(key)


_ATTRIBUTES: Mapping[type, tuple[str, ...]] = {
    DesiredSegment: ("start", "duration"),
    DesiredMarker: ("at", "track"),
    DesiredLink: (),
}


def _merge(what: str, one: Sourced[V], other: Sourced[V], keys: _MergeKeys) -> Sourced[V]:
    """Merge two declarations of one item: an attribute that both name must be equal."""
    if one.value.present != other.value.present:
        absent, present = (one, other) if other.value.present else (other, one)
        raise _removed_and_declared(what, absent.source, present.source)
    named: dict[str, Any] = {}
    for name in _ATTRIBUTES[type(one.value)]:
        values = [Sourced(getattr(sourced.value, name), sourced.source) for sourced in (one, other)]
        given = [sourced for sourced in values if sourced.value is not ABSENT]
        if len(given) == 2 and keys.comparable(given[0].value) != keys.comparable(given[1].value):
            raise _contradiction(f"{name} of {what}", *given)
        if given:
            named[name] = given[0].value
    fields: list[dict[str, Sourced[str | Position]]] = [
        {name: Sourced(text, sourced.source) for name, text in getattr(sourced.value, "fields", {}).items()}
        for sourced in (one, other)
    ]
    if any(fields):
        merged = _mapping(f"{what}:", fields, keys.field)
        named["fields"] = {name: sourced.value for name, sourced in merged.items()}
    value = structs.replace(one.value, **named)
    more: tuple[TaskSource, ...] = () if value == one.value else (other.source,)
    return structs.replace(one, value=value, also=(*one.also, *more))


# Exactly -------------------------------------------------------------------------------------------------------


def _exactly(all_of: Sequence[CompleteLists]) -> CompleteLists:
    narrowed = [exactly.tracks for exactly in all_of if exactly.markers]
    tracks = frozenset[str]().union(*(each for each in narrowed if each is not None))
    return CompleteLists(
        segments=next((e.segments for e in all_of if e.segments), None),
        markers=next((e.markers for e in all_of if e.markers), None),
        links=next((e.links for e in all_of if e.links), None),
        tracks=tracks if narrowed and None not in narrowed else None,
    )


def _check_exactly(declared: Sequence[DesiredAsset], keys: _MergeKeys) -> None:
    """Refuse what one task declares and another removes by ``exactly``, because its list does not name it."""
    for one in (w for w in declared if w.exactly != CompleteLists()):
        exactly = one.exactly
        for other in (desired for desired in declared if desired is not one):
            _check_list("segment", exactly.segments, one.segments, other.segments, keys.segment)
            _check_list("link", exactly.links, one.links, other.links, keys.link)
            covered = [s for s in other.markers if exactly.tracks is None or keys.track(s.value) in exactly.tracks]
            _check_list("marker", exactly.markers, one.markers, covered, keys.marker)


def _check_list(
    what: str,
    exactly: TaskSource | None,
    complete: Sequence[Sourced[V]],
    others: Sequence[Sourced[V]],
    identity: Callable[[V], Hashable],
) -> None:
    if exactly is None:
        return
    named = {identity(sourced.value) for sourced in complete}
    for sourced in others:
        if sourced.value.present and identity(sourced.value) not in named:
            raise _removed_and_declared(f"{what} {_show_key(identity(sourced.value))}", exactly, sourced.source)
