"""The context of a target: the length of its clip, and the segments and markers that the plan leaves as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msauto.aspects.comparison import mapping, track_of
from msauto.aspects.positions import in_point
from msauto.model.live import Asset
from msauto.model.plan import Change, Json, ShownMarker, ShownSegment, TargetContext
from msauto.model.server import ServerSpec

_ON_THE_TIMELINE = frozenset({"segment", "segmentation", "marker"})


def shown_context(asset: Asset, server: ServerSpec, changes: Sequence[Change]) -> TargetContext:
    """Return what surrounds the changes of an asset; positions are frames from the first frame of the file."""
    if not any(change.aspect in _ON_THE_TIMELINE for change in changes):
        return TargetContext(asset.frames)
    origin = in_point(asset, server.dialect)
    numbers = {*_values(changes, "segment", "number"), *_values(changes, "segmentation", "number")}
    uids = {*_values(changes, "marker", "uid")}
    segments = (
        ShownSegment(segment.number, segment.start + origin, segment.duration, segment.title)
        for segment in asset.segments
        if segment.number not in numbers
    )
    markers = (
        ShownMarker(marker.uid, marker.frame + origin, track_of(marker), marker.fields.get("title", ""))
        for marker in asset.markers
        if marker.uid not in uids
    )
    return TargetContext(asset.frames, tuple(segments), tuple(markers))


def _values(changes: Iterable[Change], aspect: str, name: str) -> Iterator[Json]:
    """Yield an attribute of all live items that changes of an aspect concern."""
    for change in changes:
        if change.aspect == aspect and change.before is not None:
            for item in change.before if isinstance(change.before, list) else [change.before]:
                yield mapping(item).get(name)
