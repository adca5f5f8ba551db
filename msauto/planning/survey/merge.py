"""What tasks say of one asset or channel, united before it is compared; lists too.

The same said twice is fine. Different values for one thing, or one task removing what another wants, is an error
that names both places.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

from msauto.diffing.builder import refuse
from msauto.diffing.comparison import as_number, plain, same_list, same_value, track_of
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
from msauto.model.live import Asset
from msauto.model.timecode import TimecodeError

T = TypeVar("T")
V = TypeVar("V", DesiredSegment, DesiredMarker, DesiredLink, DesiredRssItem)


def merge_desired(wanteds: Sequence[DesiredAsset], asset: Asset, title: str) -> DesiredAsset:
    """Return what all tasks want of one asset; ``title`` is what it is called after the run.

    Raises ``PlanningError`` naming both places of a contradiction.
    """
    _check_presence(wanteds)
    if len(wanteds) == 1 and not _has_lists(wanteds[0]):
        return wanteds[0]
    keys = _MergeKeys(asset, title)
    _check_exactly(wanteds, keys)
    return DesiredAsset(
        source=wanteds[0].source,
        present=wanteds[0].present,
        missing="error" if any(w.missing == "error" for w in wanteds) else "skip",
        unfinalized=min((w.unfinalized for w in wanteds), key=("error", "skip", "allow").index),
        lossy=any(w.lossy for w in wanteds),
        with_links=any(w.with_links for w in wanteds),
        folder=_one("the folder", [w.folder for w in wanteds], keys.plainly),
        title=_one("the title", [w.title for w in wanteds], keys.plainly),
        fields=_mapping("the field", [w.fields for w in wanteds], keys.field),
        xmp=_xmp(wanteds),
        xmp_lists=frozenset().union(*(w.xmp_lists for w in wanteds)),
        segments=_list("segment", [w.segments for w in wanteds], keys.segment, keys),
        segmentation=_one("the segmentation", [w.segmentation for w in wanteds], keys.segmentation),
        markers=_list("marker", [w.markers for w in wanteds], keys.marker, keys),
        links=_list("link", [w.links for w in wanteds], keys.link, keys),
        exactly=_exactly([w.exactly for w in wanteds]),
        still={name: value for w in wanteds for name, value in w.still.items()},
        notes=tuple(note for w in wanteds for note in w.notes),
        restore=max((w.restore for w in wanteds if w.restore), key=lambda sourced: sourced.value, default=None),
    )


def unite_channel(wanteds: Sequence[DesiredChannel]) -> DesiredChannel:
    """Return what all tasks want of one channel."""
    for one in (w for w in wanteds if w.exactly):
        named = {plain(sourced.value.guid) for sourced in one.items}
        for other in (w for w in wanteds if w is not one):
            for sourced in other.items:
                if sourced.value.present and plain(sourced.value.guid) not in named:
                    raise _removed_and_wanted(f"item {sourced.value.guid}", one.exactly, sourced.source)
    items: dict[str, Sourced[DesiredRssItem]] = {}
    for sourced in (sourced for desired in wanteds for sourced in desired.items):
        earlier = items.setdefault(plain(sourced.value.guid), sourced)
        if earlier.value.present != sourced.value.present:
            gone, kept = (earlier, sourced) if sourced.value.present else (sourced, earlier)
            raise _removed_and_wanted(f"item {sourced.value.guid}", gone.source, kept.source)
        if replace(earlier.value, guid=sourced.value.guid) != sourced.value:
            raise _contradiction(f"item {sourced.value.guid}", earlier, sourced)
    return DesiredChannel(
        wanteds[0].source,
        tuple(items.values()),
        next((w.exactly for w in wanteds if w.exactly), None),
        still={guid: value for w in wanteds for guid, value in w.still.items()},
        notes=tuple(note for w in wanteds for note in w.notes),
    )


def _has_lists(desired: DesiredAsset) -> bool:
    return len(desired.segments) > 1 or len(desired.markers) > 1 or len(desired.links) > 1


def _check_presence(wanteds: Sequence[DesiredAsset]) -> None:
    gone = next((w for w in wanteds if not w.present), None)
    kept = next((w for w in wanteds if w.present), None)
    if gone and kept:
        raise _removed_and_wanted("the asset", gone.source, kept.source)


def _removed_and_wanted(what: str, gone: TaskSource | None, desired: TaskSource) -> Exception:
    removing = gone.description if gone else "one task"
    return refuse(
        f"{what} is removed by {removing} and wanted by {desired.description}",
        desired,
        "let one of the two tasks go, or let both say the same",
    )


def _contradiction(what: str, one: Sourced[T], other: Sourced[T]) -> Exception:
    return refuse(
        f"{what}: two tasks want different values: {_show(one.value)} is wanted by {one.source.description}, "
        f"{_show(other.value)} by {other.source.description}",
        other.source,
        "let both say the same",
    )


def _show(value: object) -> str:
    if isinstance(value, DesiredSegmentation):
        return f"pieces of {value.duration}"
    if isinstance(value, DesiredRssItem):
        return f"{value.text!r} in {value.file}" if value.item is ABSENT else f"{dict(value.item)} in {value.file}"
    if isinstance(value, tuple):
        return repr(value[0] if len(value) == 1 else list(value))
    return str(value) if isinstance(value, Position) else repr(value)


# Keys: what is the same thing, and the same value ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _MergeKeys:
    """What makes two wanted things the same one, seen from this asset."""

    asset: Asset
    title: str

    def plainly(self, value: object) -> Hashable:
        if isinstance(value, str):
            return plain(value)
        if isinstance(value, tuple):
            return tuple(map(self.plainly, value))
        if isinstance(value, Position):
            return self.frames(value)
        return repr(value)

    def frames(self, position: Position) -> Hashable:
        """Frames where they can be told; else the text, and the error comes where the position is used."""
        rate = self.asset.rate or (Fraction(1) if position.timecode.kind == "frames" else None)
        try:
            return position.to_frames(rate) if rate else str(position)
        except TimecodeError:
            return str(position)

    def field(self, name: str, value: object) -> Hashable:
        number = as_number(value) if isinstance(value, str) else None
        if isinstance(value, str) and number is not None and same_value(name, value, str(number)):
            return number
        return self.plainly(value)

    def segment(self, value: DesiredSegment) -> Hashable:
        if value.number is not ABSENT:
            return value.number
        place = (self.plainly(value.start), self.plainly(value.duration))
        title = value.fields.get("title")
        return (*place, plain(title)) if value.start is ABSENT and title is not None else place

    def segmentation(self, value: object) -> Hashable:
        if not isinstance(value, DesiredSegmentation):
            return None
        return self.frames(value.duration), self.plainly(value.title)

    def marker(self, value: DesiredMarker) -> Hashable:
        if value.uid is not ABSENT:
            return value.uid
        if value.anew:
            return ("anew", value.anew)
        return (DEFAULT_TRACK if value.track is ABSENT else value.track, self.plainly(value.at))

    def link(self, value: DesiredLink) -> Hashable:
        title = self.title if value.title is ABSENT else value.title
        return (*map(plain, value.folder), plain(title))

    def track(self, value: DesiredMarker) -> str:
        """Return the track that a wanted marker is on: its own, that of its uid, General."""
        if value.track is not ABSENT:
            return value.track
        live = (m for m in self.asset.markers if m.uid == value.uid)
        return next(map(track_of, live), DEFAULT_TRACK)


# Uniting -------------------------------------------------------------------------------------------------------


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
    united: dict[str, Sourced[T]] = {}
    for name, other in ((name, other) for fields in sourced for name, other in fields.items()):
        first = united.setdefault(name, other)
        if key(name, first.value) != key(name, other.value):
            raise _contradiction(f"{what} {name}", first, other)
    return united


def _xmp(wanteds: Sequence[DesiredAsset]) -> dict[str, Sourced[tuple[str, ...]]]:
    """Unite XMP fields: lists of one field become one list, in the order of the tasks, each value once.

    A field that one task clears or sets to a single text has just that value: other values are a contradiction.
    """
    united: dict[str, Sourced[tuple[str, ...]]] = {}
    whole: set[str] = set()
    for desired in wanteds:
        for name, sourced in desired.xmp.items():
            first = united.setdefault(name, sourced)
            if name not in desired.xmp_lists or not sourced.value:
                whole.add(name)
            if first is sourced or same_list(first.value, sourced.value):
                continue
            if name in whole:
                raise _contradiction(f"the XMP field {name}", first, sourced)
            united[name] = replace(first, value=_joined(first.value, sourced.value), also=(*first.also, sourced.source))
    return united


def _joined(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    found = list(one)
    for value in other:
        if not any(same_list([value], [each]) for each in found):
            found.append(value)
    return tuple(found)


def _list(
    what: str, lists: Iterable[Sequence[Sourced[V]]], identity: Callable[[V], Hashable], keys: _MergeKeys
) -> tuple[Sourced[V], ...]:
    united: dict[Hashable, Sourced[V]] = {}
    for sourced in (sourced for items in lists for sourced in items):
        key = identity(sourced.value)
        first = united.get(key)
        united[key] = sourced if first is None else _merge(f"{what} {_show_key(key)}", first, sourced, keys)
    return tuple(united.values())


def _show_key(key: Hashable) -> str:
    return " ".join(map(str, key)) if isinstance(key, tuple) else str(key)


_ATTRIBUTES: Mapping[type, tuple[str, ...]] = {
    DesiredSegment: ("start", "duration"),
    DesiredMarker: ("at", "track"),
    DesiredLink: (),
}


def _merge(what: str, one: Sourced[V], other: Sourced[V], keys: _MergeKeys) -> Sourced[V]:
    """Unite two wants of one item: each attribute that both name must be the same."""
    if one.value.present != other.value.present:
        gone, kept = (one, other) if other.value.present else (other, one)
        raise _removed_and_wanted(what, gone.source, kept.source)
    named: dict[str, Any] = {}
    for name in _ATTRIBUTES[type(one.value)]:
        values = [Sourced(getattr(sourced.value, name), sourced.source) for sourced in (one, other)]
        told = [sourced for sourced in values if sourced.value is not ABSENT]
        if len(told) == 2 and keys.plainly(told[0].value) != keys.plainly(told[1].value):
            raise _contradiction(f"{name} of {what}", *told)
        if told:
            named[name] = told[0].value
    fields = [_own_fields(sourced.value, sourced.source) for sourced in (one, other)]
    if any(fields):
        united = _mapping(f"{what}:", fields, keys.field)
        named["fields"] = {name: sourced.value for name, sourced in united.items()}
    united_value = replace(one.value, **named)
    more: tuple[TaskSource, ...] = () if united_value == one.value else (other.source,)
    return replace(one, value=united_value, also=(*one.also, *more))


def _own_fields(value: object, source: TaskSource) -> dict[str, Sourced[str | Position]]:
    fields: Mapping[str, str | Position] = (
        value.fields if isinstance(value, DesiredSegment | DesiredMarker | DesiredLink) else {}
    )
    return {name: Sourced(text, source) for name, text in fields.items()}


# Exactly -------------------------------------------------------------------------------------------------------


def _exactly(all_of: Sequence[CompleteLists]) -> CompleteLists:
    narrowed = [exactly for exactly in all_of if exactly.markers]
    tracks: frozenset[str] | None = None
    if narrowed and all(exactly.tracks is not None for exactly in narrowed):
        tracks = frozenset().union(*(exactly.tracks or () for exactly in narrowed))
    return CompleteLists(
        segments=next((e.segments for e in all_of if e.segments), None),
        markers=next((e.markers for e in all_of if e.markers), None),
        links=next((e.links for e in all_of if e.links), None),
        tracks=tracks,
    )


def _check_exactly(wanteds: Sequence[DesiredAsset], keys: _MergeKeys) -> None:
    """Refuse what one task wants and another removes by ``exactly``, for its list does not name it."""
    for one in (w for w in wanteds if w.exactly.segments or w.exactly.markers or w.exactly.links):
        for other in (desired for desired in wanteds if desired is not one):
            _check_list("segment", one.exactly.segments, one.segments, other.segments, keys.segment)
            _check_list("link", one.exactly.links, one.links, other.links, keys.link)
            covered = [sourced for sourced in other.markers if _covers(one.exactly, keys.track(sourced.value))]
            _check_list("marker", one.exactly.markers, one.markers, covered, keys.marker)


def _covers(exactly: CompleteLists, track: str) -> bool:
    return exactly.tracks is None or track in exactly.tracks


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
            raise _removed_and_wanted(f"{what} {_show_key(identity(sourced.value))}", exactly, sourced.source)
