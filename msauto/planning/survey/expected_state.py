"""An asset after the requests of its plan, computed from their expectations.

Exact enough for warnings: a new marker gets any free uid, and a segmentation has no effect.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from msauto.diffing.comparison import mapping, texts
from msauto.model.live import Asset, Marker, Segment, Xmp
from msauto.model.plan import Expectation, Json, Request


def asset_after(asset: Asset, requests: Iterable[Request]) -> Asset:
    """Return the asset with its fields, markers and segments as the requests leave them, as the server counts."""
    attributes = dict(asset.attributes)
    markers = {marker.uid: marker for marker in asset.markers}
    segments = {segment.number: segment for segment in asset.segments}
    for expect in _expected(requests):
        if expect.aspect == "field":
            attributes[expect.key] = str(expect.desired)
        elif expect.aspect == "marker":
            _leave_marker(markers, expect)
        elif expect.aspect == "segment":
            _leave_segment(segments, expect)
    return structs.replace(
        asset, attributes=attributes, markers=tuple(markers.values()), segments=tuple(segments.values())
    )


def xmp_after(xmp: Xmp | None, requests: Iterable[Request]) -> Xmp:
    """Return the XMP fields as the requests leave them."""
    written = {expect.key: texts(expect.desired) for expect in _expected(requests) if expect.aspect == "xmp"}
    return {**(xmp or {}), **written}


def _expected(requests: Iterable[Request]) -> Iterable[Expectation]:
    return (expect for request in requests for expect in request.expect)


def _leave_marker(markers: dict[int, Marker], expect: Expectation) -> None:
    want = mapping(expect.desired)
    if expect.desired is None:
        markers.pop(_number(expect.key.removeprefix("uid ")), None)
        return
    uid = _number(want["uid"]) if "uid" in want else max(markers, default=0) + 1
    had = markers[uid].fields if uid in markers else {}
    named = {name: str(value) for name, value in want.items() if name not in {"uid", "frame"}}
    markers[uid] = Marker(uid, _number(want["frame"]), {**had, **named})


def _leave_segment(segments: dict[int, Segment], expect: Expectation) -> None:
    number, want = _number(expect.key), mapping(expect.desired)
    segments.pop(number, None)
    if expect.desired is not None:
        titles = (str(want.get("title", "")),)
        segments[number] = Segment(number, _number(want["start"]), _number(want["duration"]), titles=titles)


def _number(value: Json) -> int:
    return int(str(value))
