"""Merge what tasks declare for one asset or channel, lists included, before it is compared.

Equal declarations are fine. Different values for one thing are an error that names both places; so is a thing that
one task removes and another declares.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from typing import Any, TypeVar

from msgspec import structs

from msauto.aspects.comparison import as_number, same_list, same_value, track_of
from msauto.aspects.plan_builder import refuse
from msauto.errors import PlanningError
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
from msauto.model.live import Asset, show_folder
from msauto.model.timecode import TimecodeError

T = TypeVar("T")
V = TypeVar("V", DesiredSegment, DesiredMarker, DesiredLink, DesiredRssItem)


def merge_desired(declared: Sequence[DesiredAsset], asset: Asset, title: str) -> DesiredAsset:
    """Return what all tasks declare for one asset; ``title`` is its current title.

    Raises ``PlanningError`` that names both places of a contradiction.
    """
    merger = _Merger(asset, title)
    merged = merger.assets(declared)
    merger.check()
    return merged


def merge_channels(declared: Sequence[DesiredChannel]) -> DesiredChannel:
    """Return what all tasks declare for one channel; raises as :func:`merge_desired`."""
    merger = _Merger(None, "")
    merged = merger.channels(declared)
    merger.check()
    return merged


def contradictions(declared: Sequence[DesiredAsset | DesiredChannel], title: str) -> list[PlanningError]:
    """Return what contradicts whatever the server shows: two positions must differ at every frame rate.

    What ``exactly`` removes depends on positions in frames, so only planning finds it.
    """
    merger = _Merger(None, title)
    assets = [each for each in declared if isinstance(each, DesiredAsset)]
    channels = [each for each in declared if isinstance(each, DesiredChannel)]
    if assets:
        merger.assets(assets)
    if channels:
        merger.channels(channels)
    return merger.found


def _show(value: object) -> str:
    if isinstance(value, DesiredSegmentation):
        return f"pieces of {value.duration}"
    if isinstance(value, DesiredRssItem):
        return f"{value.text!r} in {value.file}" if value.item is ABSENT else f"{dict(value.item)} in {value.file}"
    if isinstance(value, tuple):
        return repr(value[0] if len(value) == 1 else list(value))
    return str(value) if isinstance(value, Position) else repr(value)


@dataclass(slots=True)
class _Merger:
    """Merges what tasks declare for one target. Equal keys mean the same thing, or the same value.

    ``asset`` is ``None`` before the server is asked; then its frame rate is unknown. ``found`` collects contradictions.
    """

    asset: Asset | None
    title: str
    found: list[PlanningError] = field(default_factory=list)

    def check(self) -> None:
        """Raise the first contradiction."""
        if self.found:
            raise self.found[0]

    def assets(self, declared: Sequence[DesiredAsset]) -> DesiredAsset:
        absent = next((w for w in declared if not w.present), None)
        present = next((w for w in declared if w.present), None)
        has_lists = max(map(len, (declared[0].segments, declared[0].markers, declared[0].links))) > 1
        if absent and present:
            self._removed("the asset", absent.source, present.source)
        if (absent and present) or (len(declared) == 1 and not has_lists):
            return declared[0]
        self.title = next((each.title.value for each in declared if each.title), self.title)
        if self.asset is not None:
            self._check_exactly(declared)
        return DesiredAsset(
            source=declared[0].source,
            present=declared[0].present,
            missing="error" if any(w.missing == "error" for w in declared) else "skip",
            unfinalized=min((w.unfinalized for w in declared), key=("error", "skip", "allow").index),
            lossy=any(w.lossy for w in declared),
            with_links=any(w.with_links for w in declared),
            folder=self._one("the folder", [w.folder for w in declared], show_folder),
            title=self._one("the title", [w.title for w in declared]),
            fields=self._mapping("the field", [w.fields for w in declared]),
            xmp=self._xmp(declared),
            xmp_lists=frozenset().union(*(w.xmp_lists for w in declared)),
            segments=self._list([w.segments for w in declared], self._segment),
            segmentation=self._one("the segmentation", [w.segmentation for w in declared]),
            markers=self._list([w.markers for w in declared], self._marker),
            links=self._list([w.links for w in declared], self._link),
            exactly=_exactly([w.exactly for w in declared]),
            still={name: value for w in declared for name, value in w.still.items()},
            notes=tuple(note for w in declared for note in w.notes),
            restore=max((w.restore for w in declared if w.restore), key=lambda sourced: sourced.value, default=None),
        )

    def channels(self, declared: Sequence[DesiredChannel]) -> DesiredChannel:
        for one in (w for w in declared if w.exactly):
            named = {plain(sourced.value.guid) for sourced in one.items}
            for sourced in (sourced for other in declared if other is not one for sourced in other.items):
                if sourced.value.present and plain(sourced.value.guid) not in named:
                    self._removed(f"item {sourced.value.guid}", one.exactly, sourced.source)
        items: dict[str, Sourced[DesiredRssItem]] = {}
        for sourced in (sourced for desired in declared for sourced in desired.items):
            earlier = items.setdefault(plain(sourced.value.guid), sourced)
            if earlier.value.present != sourced.value.present:
                absent, present = (earlier, sourced) if sourced.value.present else (sourced, earlier)
                self._removed(f"item {sourced.value.guid}", absent.source, present.source)
            elif structs.replace(earlier.value, guid=sourced.value.guid) != sourced.value:
                self._differ(f"item {sourced.value.guid}", earlier, sourced)
        return DesiredChannel(
            declared[0].source,
            tuple(items.values()),
            next((w.exactly for w in declared if w.exactly), None),
            still={guid: value for w in declared for guid, value in w.still.items()},
            notes=tuple(note for w in declared for note in w.notes),
        )

    def _removed(self, what: str, absent: TaskSource | None, desired: TaskSource) -> None:
        removing = absent.description if absent else "one task"
        message = f"{what} is removed by {removing} and declared by {desired.description}"
        self.found.append(refuse(message, desired, "remove one of the two tasks, or declare the same in both"))

    def _differ(self, what: str, one: Sourced[T], other: Sourced[T]) -> None:
        both = f"{_show(one.value)} by {one.source.description}, {_show(other.value)} by {other.source.description}"
        message = f"{what}: two tasks declare different values: {both}"
        self.found.append(refuse(message, other.source, "declare the same value in both"))

    # Keys ------------------------------------------------------------------------------------------------------

    def _comparable(self, value: object, name: str = "") -> Hashable:
        """Return the key of a value; ``name`` is that of its field."""
        if isinstance(value, str):
            number = as_number(value)
            return number if number is not None and same_value(name, value, str(number)) else plain(value)
        if isinstance(value, tuple):
            return tuple(map(self._comparable, value))
        if isinstance(value, DesiredSegmentation):
            return self._comparable(value.duration), self._comparable(value.title)
        if not isinstance(value, Position):
            return repr(value)
        code, origin = value.timecode, None if value.timecode.kind == "frames" else value.origin
        if self.asset is None:
            return code.kind, code.seconds, code.frames, code.fraction, origin
        # An error of a position is raised where it is used.
        rate = self.asset.rate or (Fraction(1) if code.kind == "frames" else None)
        try:
            return value.to_frames(rate) if rate else str(value)
        except TimecodeError:
            return str(value)

    def _same(self, one: object, other: object, name: str = "") -> bool:
        """Return whether two values are the same, or may be at some frame rate."""
        if isinstance(one, DesiredSegmentation) and isinstance(other, DesiredSegmentation):
            return self._same(one.duration, other.duration) and self._same(one.title, other.title)
        if self.asset is None and isinstance(one, Position) and isinstance(other, Position):
            kinds = {one.timecode.kind, other.timecode.kind}
            if len(kinds) > 1 or "seconds" in kinds or ("frames" not in kinds and one.origin != other.origin):
                return True
        return self._comparable(one, name) == self._comparable(other, name)

    def _segment(self, value: DesiredSegment) -> Hashable:
        if value.number is not ABSENT:
            return value.number
        place = (self._comparable(value.start), self._comparable(value.duration))
        title = value.fields.get("title")
        return (*place, plain(title)) if value.start is ABSENT and title is not None else place

    def _marker(self, value: DesiredMarker) -> Hashable:
        if value.uid is not ABSENT:
            return value.uid
        if value.anew:
            return ("anew", value.anew)
        return (DEFAULT_TRACK if value.track is ABSENT else value.track, self._comparable(value.at))

    def _link(self, value: DesiredLink) -> Hashable:
        title = self.title if value.title is ABSENT else value.title
        return (*map(plain, value.folder), plain(title))

    def _track(self, value: DesiredMarker) -> str:
        """Return the track of a desired marker: its own, that of its uid, General."""
        if value.track is not ABSENT:
            return value.track
        live = (m for m in (self.asset.markers if self.asset else ()) if m.uid == value.uid)
        return next(map(track_of, live), DEFAULT_TRACK)

    # Merging ---------------------------------------------------------------------------------------------------

    def _one(
        self, what: str, sourced: Iterable[Sourced[T] | None], show: Callable[[T], object] = lambda value: value
    ) -> Sourced[T] | None:
        first: Sourced[T] | None = None
        for other in (s for s in sourced if s is not None):
            first = first or other
            if not self._same(first.value, other.value):
                self._differ(what, *(structs.replace(each, value=show(each.value)) for each in (first, other)))
        return first

    def _mapping(self, what: str, sourced: Iterable[Mapping[str, Sourced[T]]], of: str = "") -> dict[str, Sourced[T]]:
        merged: dict[str, Sourced[T]] = {}
        for name, other in chain.from_iterable(fields.items() for fields in sourced):
            first = merged.setdefault(name, other)
            if not self._same(first.value, other.value, name):
                self._differ(f"{what} {name}{of}", first, other)
        return merged

    def _xmp(self, declared: Sequence[DesiredAsset]) -> dict[str, Sourced[tuple[str, ...]]]:
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
                    self._differ(f"the XMP field {name}", first, sourced)
                    continue
                values = list(first.value)
                for value in sourced.value:
                    if not any(same_list([value], [each]) for each in values):
                        values.append(value)
                merged[name] = structs.replace(first, value=tuple(values), also=(*first.also, sourced.source))
        return merged

    def _list(self, lists: Iterable[Sequence[Sourced[V]]], identity: Callable[[V], Hashable]) -> tuple[Sourced[V], ...]:
        merged: dict[Hashable, Sourced[V]] = {}
        for sourced in chain.from_iterable(lists):
            key = identity(sourced.value)
            first = merged.get(key)
            merged[key] = sourced if first is None else self._merge(first, sourced)
        return tuple(merged.values())

    def _merge(self, one: Sourced[V], other: Sourced[V]) -> Sourced[V]:
        """Merge two declarations of one item: an attribute that both name must be equal."""
        what = _name(one.value)
        if one.value.present != other.value.present:
            absent, present = (one, other) if other.value.present else (other, one)
            self._removed(what, absent.source, present.source)
            return one
        named: dict[str, Any] = {}
        for name in _ATTRIBUTES[type(one.value)]:
            values = [Sourced(getattr(sourced.value, name), sourced.source) for sourced in (one, other)]
            given = [sourced for sourced in values if sourced.value is not ABSENT]
            if given:
                named[name] = given[0].value
                if not self._same(given[0].value, given[-1].value):
                    self._differ(f"the {name} of {what}", *given)
        fields: list[dict[str, Sourced[str | Position]]] = [
            {name: Sourced(text, sourced.source) for name, text in getattr(sourced.value, "fields", {}).items()}
            for sourced in (one, other)
        ]
        if any(fields):
            merged = self._mapping("the", fields, f" of {what}")
            named["fields"] = {name: sourced.value for name, sourced in merged.items()}
        value = structs.replace(one.value, **named)
        more: tuple[TaskSource, ...] = () if value == one.value else (other.source,)
        return structs.replace(one, value=value, also=(*one.also, *more))

    # Exactly ---------------------------------------------------------------------------------------------------

    def _check_exactly(self, declared: Sequence[DesiredAsset]) -> None:
        """Refuse what one task declares and another removes by ``exactly``, because its list does not name it."""
        for one in (w for w in declared if w.exactly != CompleteLists()):
            exactly = one.exactly
            for other in (desired for desired in declared if desired is not one):
                self._check_list(exactly.segments, one.segments, other.segments, self._segment)
                self._check_list(exactly.links, one.links, other.links, self._link)
                covered = [s for s in other.markers if exactly.tracks is None or self._track(s.value) in exactly.tracks]
                self._check_list(exactly.markers, one.markers, covered, self._marker)

    def _check_list(
        self,
        exactly: TaskSource | None,
        complete: Sequence[Sourced[V]],
        others: Sequence[Sourced[V]],
        identity: Callable[[V], Hashable],
    ) -> None:
        named = {identity(sourced.value) for sourced in complete}
        for sourced in others if exactly is not None else ():
            if sourced.value.present and identity(sourced.value) not in named:
                self._removed(_name(sourced.value), exactly, sourced.source)


_ATTRIBUTES: Mapping[type, tuple[str, ...]] = {
    DesiredSegment: ("start", "duration"),
    DesiredMarker: ("at", "track"),
    DesiredLink: (),
}


def _name(value: DesiredSegment | DesiredMarker | DesiredLink | DesiredRssItem) -> str:
    """Return how messages name a desired item."""
    match value:
        case DesiredSegment(number=number) if number is not ABSENT:
            return f"segment {number}"
        case DesiredSegment(start=start) if start is not ABSENT:
            return f"the segment at {start}"
        case DesiredSegment():
            return f"segment {value.fields.get('title')!r}"
        case DesiredMarker(uid=uid) if uid is not ABSENT:
            return f"marker {uid}"
        case DesiredMarker():
            return f"the marker at {value.at} ({DEFAULT_TRACK if value.track is ABSENT else value.track})"
        case DesiredLink():
            return f"the link {'/'.join((*value.folder, *([] if value.title is ABSENT else [value.title])))}"
    return f"item {value.guid}"


def _exactly(all_of: Sequence[CompleteLists]) -> CompleteLists:
    narrowed = [exactly.tracks for exactly in all_of if exactly.markers]
    tracks = frozenset[str]().union(*(each for each in narrowed if each is not None))
    return CompleteLists(
        segments=next((e.segments for e in all_of if e.segments), None),
        markers=next((e.markers for e in all_of if e.markers), None),
        links=next((e.links for e in all_of if e.links), None),
        tracks=tracks if narrowed and None not in narrowed else None,
    )
