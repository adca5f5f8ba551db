"""Checks of an ``asset`` task that need no server. Templates that are still pending are left alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

from msauto.errors import Problem
from msauto.model.timecode import Timecode
from msauto.playbook.schema.asset import (
    AssetArgs,
    ExactlyArgs,
    LinkArgs,
    MarkerArgs,
    MarkersExactly,
    SegmentArgs,
)
from msauto.playbook.schema.values import UnrenderedTemplate
from msauto.playbook.yaml.document import SourceNode


def check_asset(args: AssetArgs, node: SourceNode) -> Iterator[Problem]:
    """Yield all that is wrong with the arguments of an asset, each at its place."""
    yield from _segments(args, node)
    yield from _markers(args, node)
    yield from _links(args, node)
    yield from _exactly(args, node)
    yield from _select(args, node)


def _known(items: Any, kind: type[Any]) -> Iterator[tuple[int, Any]]:
    for index, item in enumerate(items if isinstance(items, list) else []):
        if isinstance(item, kind):
            yield index, item


def _segments(args: AssetArgs, node: SourceNode) -> Iterator[Problem]:
    here = node.child("segments")
    items = list(_known(args.segments, SegmentArgs))
    for index, item in items:
        if item.state != "absent" and _zero(item.duration):
            yield here.child(index, "duration").problem("a segment cannot be 0 long")
    yield from _twice(items, here, lambda item: item.number, "number", "the segment number")


def _zero(position: Any) -> bool:
    return isinstance(position, Timecode) and not (position.frames or position.seconds or position.fraction)


def _markers(args: AssetArgs, node: SourceNode) -> Iterator[Problem]:
    here = node.child("markers")
    items = list(_known(args.markers, MarkerArgs))
    yield from _twice(items, here, lambda item: item.uid, "uid", "the marker uid")
    without = [(index, item) for index, item in items if item.uid is None]
    yield from _twice(without, here, _track_and_position, "at", "a marker of this track and position")


def _track_and_position(item: Any) -> Hashable:
    if isinstance(item.at, UnrenderedTemplate) or isinstance(item.track, UnrenderedTemplate) or item.at is None:
        return None
    return item.track, item.at


def _links(args: AssetArgs, node: SourceNode) -> Iterator[Problem]:
    here = node.child("links")
    items = list(_known(args.links, LinkArgs))
    yield from _twice(items, here, _folder_and_title, "folder", "a link of this folder and title")


def _folder_and_title(item: Any) -> Hashable:
    return (
        None
        if isinstance(item.folder, UnrenderedTemplate) or isinstance(item.title, UnrenderedTemplate)
        else (item.folder, item.title)
    )


def _twice(
    items: list[tuple[int, Any]], node: SourceNode, name_of: Callable[[Any], Hashable], key: str, words: str
) -> Iterator[Problem]:
    """Find items of one list that name the same thing."""
    seen: dict[Hashable, int] = {}
    for index, item in items:
        name = name_of(item)
        if name is None or isinstance(name, UnrenderedTemplate):
            continue
        if name in seen:
            first = node.child(seen[name]).place.line
            shown = f" {name}" if isinstance(name, int) else ""
            yield node.child(index, key).problem(
                f"{words}{shown} stands twice (first in line {first})", "leave one out"
            )
        else:
            seen[name] = index


def _exactly(args: AssetArgs, node: SourceNode) -> Iterator[Problem]:
    here = node.child("exactly")
    narrowed = args.exactly.markers if isinstance(args.exactly, ExactlyArgs) else None
    if isinstance(narrowed, MarkersExactly) and not narrowed.tracks:
        yield here.child("markers", "tracks").problem("tracks is empty, so nothing could be removed", "name a track")


def _select(args: AssetArgs, node: SourceNode) -> Iterator[Problem]:
    expect = getattr(args.select, "expect", None)
    low, high = getattr(expect, "min", None), getattr(expect, "max", None)
    if isinstance(low, int) and isinstance(high, int) and low > high:
        yield node.child("select", "expect").problem(f"min {low} is more than max {high}")
