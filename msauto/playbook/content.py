"""The content of a media server as YAML: what ``msauto simulate --state`` and the pytest fixture take.

``msauto export --content`` writes it from live values, and a rehearsal makes its embedded servers from it. What is as
the embedded server makes it up is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msauto.documents.loader import load_yaml, plain
from msauto.documents.writer import FlowStyle, verbatim, yaml_lines
from msauto.errors import InputError
from msauto.model import live
from msauto.model.fields import LINK_FIELD
from msauto.model.requests import default_file
from msauto.playbook.export import rss_item
from msauto.simulator.seed import GivenClip, GivenMarker, GivenSegment, state_from_content
from msauto.simulator.state import ServerState

_NUMBERS: Final = ("frames", "mime_type", "width", "height", "channels", "sample_rate", "bps")
_TEXTS: Final = ("create_time", "orig_name", "orig_type", "derived_from", "rec_time")
_SHOWN: Final = ("frame_time", *_NUMBERS, *_TEXTS)
_IN_AND_OUT: Final = ("first_frame", "last_frame")
_FLOW: Final = ("params", "hidden", "fields", "xmp", "segments", "markers", "links")


def load_content(path: Path) -> ServerState:
    """Return the content of a file; raises ``OSError``, ``InputError``, or ``ValueError`` for another content."""
    document = load_yaml(path.read_bytes(), str(path))
    if document.flaws:
        raise InputError(document.flaws)
    try:
        return state_from_content(plain(document.data))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def clip_content(snapshot: live.AssetSnapshot) -> dict[str, Any]:
    """Return an asset as content: all that its answers show, but for what a clip has anyway."""
    asset, origin = snapshot.asset, snapshot.origin
    texts, rate = asset.attributes, asset.fps
    title = asset.title or snapshot.title
    content: dict[str, Any] = {"title": title, "folder": live.show_folder(asset.folder or ()), "link_id": asset.link_id}
    content |= {name: live.whole(texts.get(name)) for name in _NUMBERS} | {name: texts.get(name) for name in _TEXTS}
    content |= {"fps": rate if isinstance(rate, int | None) else str(rate), "finalized": asset.finalized is not False}
    if asset.hires is not None:
        content |= {"archived": not asset.hires, "archive": asset.archive or (None if not asset.hires else "")}
    content |= {"hires": asset.hires, "proxy": asset.proxy, "params": [*asset.parameters]}
    content["hidden"] = [name for name in _SHOWN if name not in texts]
    content["fields"] = entry_fields(texts)
    xmp = {name: [*values] for name, values in (snapshot.xmp or {}).items() if values}
    content["xmp"] = {name: values if len(values) > 1 else values[0] for name, values in xmp.items()}
    content["segments"] = [_segment(each, origin) for each in asset.segments]
    content["markers"] = [_marker(each, origin) for each in asset.markers]
    links = snapshot.links or ()
    content["links"] = [
        {"folder": live.show_folder(each.folder), "title": each.title, "link_id": each.link_id} for each in links
    ]
    made_up = _defaults(GivenClip) | {"orig_name": title, "folder": None}
    return {name: value for name, value in content.items() if _is_own(name, value, made_up)}


def entry_fields(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return the link fields that an entry shows; an in point or out point at the ends of the clip is none."""
    ends = {"first_frame": 0, "last_frame": (live.whole(attributes.get("frames")) or 0) - 1}
    kept = {name: text for name, text in attributes.items() if name in LINK_FIELD and text}
    return {name: text for name, text in kept.items() if name not in ends or live.whole(text) != ends[name]}


def _segment(segment: live.Segment, origin: int) -> dict[str, Any]:
    shown: dict[str, Any] = {"number": segment.number, "start": segment.start + origin, "duration": segment.duration}
    shown |= {"titles": [*segment.titles]} if len(segment.titles) > 1 else {"title": "".join(segment.titles)}
    shown |= {"name": segment.name, "track": segment.track, "keywords": segment.keywords}
    shown["rating"] = live.whole(segment.rating)
    return {name: value for name, value in shown.items() if _is_own(name, value, _defaults(GivenSegment))}


def _marker(marker: live.Marker, origin: int) -> dict[str, Any]:
    known = {name: text for name, text in marker.fields.items() if name in GivenMarker.__struct_fields__}
    shown: dict[str, Any] = {"at": marker.frame + origin, "uid": marker.uid, "track": marker.track, **known}
    shown["rating"] = live.whole(marker.fields.get("rating"))
    shown["more"] = {name: text for name, text in marker.fields.items() if name not in known and text}
    in_order = ((name, shown.get(name)) for name in GivenMarker.__struct_fields__)
    return {name: value for name, value in in_order if _is_own(name, value, _defaults(GivenMarker))}


def _defaults(kind: Any) -> dict[str, Any]:
    return dict(zip(reversed(kind.__struct_fields__), reversed(kind.__struct_defaults__), strict=False))


def _is_own(name: str, value: Any, made_up: Mapping[str, Any]) -> bool:
    """Return whether a value must be written: it is known, and not what the embedded server makes up."""
    empty = value in ([], {}) or (value is None and name != "archive")
    return not empty and (name not in made_up or made_up[name] != value)


def channel_content(channel: live.RssChannel, rss_guid: str, files: Mapping[str, str] = {}) -> list[dict[str, Any]]:
    """Return the items of a channel as content; ``files`` are the known files of items by guid."""
    items = []
    for item in channel.items:
        shown = rss_item(item, rss_guid)
        usual = default_file(item.guid, text="text" in shown) if item.guid else "item.txt"
        items.append({"file": files.get(item.guid) or shown.pop("file", usual), **shown})
    return items


def content_lines(content: Mapping[str, Any], indent: int = 4) -> Iterator[str]:
    """Yield the lines of one clip or item, as an item of a list; no text of it is a template."""
    shown = verbatim(dict(content))
    for name in (name for name in _FLOW if name in shown):
        each = shown[name]
        shown[name] = [FlowStyle(item) for item in each] if each and isinstance(each, list) else FlowStyle(each)
    yield from yaml_lines([shown], indent)
