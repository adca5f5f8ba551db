"""Live state to playbooks that plan to nothing, to timelines for other programs, and to the content of a test server.

What a task cannot express is a comment beside it: a segment's track, a marker of an unknown type, a value that holds
the list separator. If an entry of a list is left out, ``exactly`` does not name the list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, to_builtins

from msauto.aspects import ASPECTS
from msauto.aspects.list_aspect import ListAspect
from msauto.documents.loader import load_yaml, plain
from msauto.documents.writer import CommentedValue, FlowStyle, comment, verbatim, yaml_lines
from msauto.errors import InputError
from msauto.model import fields as registry
from msauto.model import live
from msauto.model.requests import RSS_FIELDS, bad_character, default_file, file_key, form_of, stem_of, text_of
from msauto.model.server import Dialect
from msauto.model.timecode import Timecode
from msauto.simulator.seed import GivenClip, GivenItem, GivenLink, GivenMarker, GivenSegment, state_from_content
from msauto.simulator.state import ServerState
from msauto.timelines import timeline as timelines
from msauto.timelines.formats import WRITERS

HEADER = "Exported by msauto"
"""How the first line of every exported file begins, after ``#``: such a file may be replaced."""


# Playbooks -----------------------------------------------------------------------------------------------------


def header_lines(about: str) -> Iterator[str]:
    """Yield the first lines of an exported playbook."""
    yield comment(f"{HEADER}: {about}.")
    yield comment("On the server that it came from it plans to nothing. What is empty is left out.")


def play_lines(name: str, hosts: str, database: str | None = None) -> Iterator[str]:
    """Yield the head of a play; its tasks follow, by :func:`task_lines`."""
    head = {"name": name, "hosts": hosts} | ({} if database is None else {"database": database})
    yield from yaml_lines([head])
    yield "  tasks:"


def task_lines(snapshot: live.AssetSnapshot | live.RssChannel | live.SkippedEntry, dialect: Dialect) -> Iterator[str]:
    """Yield the lines of one task, or the comment on what was left out."""
    if isinstance(snapshot, live.SkippedEntry):
        yield f"    {comment(f'{live.show_folder((*snapshot.folder, snapshot.title))}: {snapshot.why}.')}"
    elif isinstance(snapshot, live.AssetSnapshot):
        yield from yaml_lines([asset_task(snapshot, dialect)], 4)
    else:
        yield from yaml_lines([channel_task(snapshot, dialect.rss_guid)], 4)


# Assets --------------------------------------------------------------------------------------------------------


def asset_task(snapshot: live.AssetSnapshot, dialect: Dialect) -> dict[str, Any]:
    """Return the task that describes an asset, as far as a task can."""
    asset = snapshot.asset
    args: dict[str, Any] = {"title": asset.title or snapshot.title}
    if asset.folder is not None and asset.folder_otherwise is None:
        args["folder"] = live.show_folder(asset.folder) or "/"
    if asset.finalized is False:
        args["unfinalized"] = "allow"
    complete = []
    for aspect in filter(attrgetter("keys"), ASPECTS.values()):
        name, part = next(iter(aspect.keys)), aspect.export(snapshot, dialect)
        _put(args, name, part.items)
        if isinstance(aspect, ListAspect) and aspect.exactly and part.complete and _has_values(part.items):
            complete.append(name)
    if complete:
        args["exactly"] = FlowStyle(complete)
    return {"name": asset.title or snapshot.title, "asset": args}


def _has_values(items: Iterable[Any]) -> bool:
    """Return whether anything but comments is there."""
    return any(not isinstance(item, CommentedValue) or item.value is not None for item in items)


def _put(args: dict[str, Any], name: str, written: Any) -> None:
    """Add a value; of a mapping or list that has only comments, the comments."""
    if not isinstance(written, Mapping | list):
        args[name] = written
        return
    items = written.values() if isinstance(written, Mapping) else written
    if _has_values(items):
        args[name] = written
    elif written:
        args[name] = CommentedValue(tuple(f"{name}: {note}" for item in items for note in item.notes))


def channel_task(channel: live.RssChannel, rss_guid: str) -> dict[str, Any]:
    """Return the task that describes all items of a channel; ``rss_guid`` is the server's dialect."""
    items: list[Any] = []
    taken: dict[str, str] = {}
    counts = Counter(item.guid for item in channel.items)
    for guid in dict.fromkeys(item.guid for item in channel.items):
        item = next(each for each in channel.items if each.guid == guid)
        sourced = rss_item(item, rss_guid)
        why = _unfit_item(item, counts[guid], rss_guid) or _taken(sourced, taken, rss_guid)
        items.append(sourced if why is None else CommentedValue((f"an item is left out: {why}",)))
    sourced = {"channel": channel.name, "items": items}
    if not any(isinstance(item, CommentedValue) for item in items):
        sourced["exactly"] = True
    if all(isinstance(item, CommentedValue) for item in items):
        sourced["items"] = CommentedValue(tuple(note for item in items for note in item.notes), [])
    return {"name": channel.name, "rss": sourced}


def _unfit_item(item: live.RssItem, count: int, rss_guid: str) -> str | None:
    guid = item.guid
    if not guid:
        return "it has no guid"
    if count > 1:
        return f"{count} items have the guid {guid}"
    if rss_guid == "file" and not _is_file(guid):
        return f"its guid {guid} is a file name on this server, and no file can be called so"
    if bad_character(guid, line=True):
        return f"its guid {guid!r} holds a character that no playbook can name"
    if not (item.title or "").strip() and not (item.description or "").strip():
        return f"the item {guid!r} has neither a title nor a description"
    return None


def _taken(sourced: dict[str, Any], taken: dict[str, str], rss_guid: str) -> str | None:
    """Return why an item conflicts with those before it: the channel may show both under one name."""
    file = sourced.get("file") or default_file(sourced["guid"], text="text" in sourced)
    shown = (sourced["guid"], file, stem_of(file)) if rss_guid == "item" else (file,)
    names = {file_key(name) for name in shown}
    other = next((taken[name] for name in names if name in taken), None)
    if other is not None:
        return f"{sourced['guid']} may be the same file as the item {other}; `rss_guid` of the dialect decides that"
    taken |= dict.fromkeys(names, sourced["guid"])
    return None


def rss_item(item: live.RssItem, rss_guid: str) -> dict[str, Any]:
    """Return an item as a text if it came as one, else by its fields; empty ones are left out."""
    sourced: dict[str, Any] = {n: text for n, text in item.fields.items() if n in RSS_FIELDS and text.strip()}
    ending = item.guid[-4:].lower() if rss_guid == "file" and _is_file(item.guid) else ""
    head = {"guid": item.guid} | ({"file": item.guid} if rss_guid == "file" else {})
    form = "item" if ending == ".xml" else form_of(sourced)
    if form == "item" and not (ending == ".txt" and not sourced.keys() & {"link", "pubDate"}):
        return head | {"item": sourced}
    return head | {"text": text_of(sourced)}


def _is_file(guid: str) -> bool:
    return "/" not in guid and "\\" not in guid


_HELD = frozenset({*timelines.MARKER_TEXTS, "rating", "track"})


class TimelineForm(Struct, frozen=True):
    """The format to write, by its ending, and the time code of the first frame, if it is not 0."""

    ending: str
    origin: Timecode | None = None

    def write(self, snapshot: live.AssetSnapshot) -> timelines.WrittenTimeline:
        """Write an asset; raises :class:`TimelineError` if it has no frame rate."""
        rate = snapshot.asset.rate
        if rate is None:
            raise timelines.TimelineError(live.why_no_rate(snapshot.asset))
        timeline, warnings = timeline_of(snapshot)
        written = WRITERS[self.ending](timeline, timelines.TimelineClock(rate, self.origin))
        return replace(written, warnings=(*warnings, *written.warnings))


def timeline_of(snapshot: live.AssetSnapshot) -> tuple[timelines.EditTimeline, tuple[str, ...]]:
    """Return the markers and segments of an asset, and what a timeline cannot hold."""
    asset = snapshot.asset
    timeline = timelines.EditTimeline(title=asset.title or snapshot.title)
    warnings = []
    for marker in asset.markers:
        frame = marker.frame
        if frame < 0 or (asset.frames is not None and frame >= asset.frames):
            warnings.append(f"marker {marker.uid} is left out: it lies outside the clip, at frame {frame}")
            continue
        texts: dict[str, Any] = {name: marker.fields.get(name, "") for name in timelines.MARKER_TEXTS}
        track, rating = registry.track_named(marker.track), live.whole(marker.fields.get("rating")) or 0
        known = track if track in registry.TRACKS else registry.DEFAULT_TRACK
        timeline.markers.append(timelines.EditMarker(frame, **texts, rating=rating, track=known))
        if known != track:
            warnings.append(f"track of marker {marker.uid}, which no task can set: {marker.track}")
        others = [name for name, text in marker.fields.items() if text and name not in _HELD]
        if others:
            warnings.append(f"marker {marker.uid} has attributes that no timeline holds: {', '.join(sorted(others))}")
    for segment in asset.segments:
        start = segment.start
        if start < 0 or segment.duration <= 0:
            length = f"it starts at frame {start} and is {segment.duration} frames long"
            warnings.append(f"segment {segment.number} is left out: {length}")
            continue
        texts = {name: segment.text(name) or "" for name in timelines.SEGMENT_TEXTS}
        number = segment.number if segment.number >= 0 else None
        timeline.segments.append(timelines.EditSegment(start, segment.duration, **texts, number=number))
    return timeline, tuple(warnings)


# The content of a server: what ``msauto simulate --state`` and the pytest fixture take --------------------------

_NUMBERS: Final = ("frames", "mime_type", "width", "height", "channels", "sample_rate", "bps")
_TEXTS: Final = ("create_time", "orig_name", "orig_type", "derived_from", "rec_time")
_MARKER_TEXTS: Final = registry.names(registry.MARKER_ATTRIBUTES, "text")


def load_content(path: Path) -> ServerState:
    """Return the content of a file; raises ``OSError``, ``InputError``, or ``ValueError`` for another content."""
    document = load_yaml(path.read_bytes(), str(path))
    if document.flaws:
        raise InputError(document.flaws)
    try:
        return state_from_content(plain(document.data))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def clip_content(snapshot: live.AssetSnapshot) -> GivenClip:
    """Return an asset as content: all that its answers show."""
    asset, texts = snapshot.asset, snapshot.asset.attributes
    title, is_gone = asset.title or snapshot.title, asset.hires == ""
    texts = {name: text for name, text in texts.items() if text or name != "orig_name"}
    own: dict[str, Any] = {name: texts[name] for name in _TEXTS if name in texts}
    own |= {"orig_name": ""} if own.get("orig_name") == title else {}  # the default
    own |= {name: number for name in _NUMBERS if (number := live.whole(texts.get(name))) is not None}
    own |= {} if asset.rate is None else {"fps": asset.fps if isinstance(asset.fps, int) else str(asset.fps)}
    return GivenClip(
        title,
        live.show_folder(asset.folder or ()),
        asset.link_id,
        finalized=asset.finalized is not False,
        archived=is_gone,
        hires=asset.hires or "",
        proxy=asset.proxy or "",
        archive=asset.archive or (None if is_gone else ""),
        params=asset.parameters,
        hidden=tuple(name for name in ("frame_time", *_NUMBERS, *_TEXTS) if name not in texts),
        fields=entry_fields(texts),
        xmp={name: [*values] if values[1:] else values[0] for name, values in (snapshot.xmp or {}).items() if values},
        segments=list(map(_segment, asset.segments)),
        markers=list(map(_marker, asset.markers)),
        links=[GivenLink(live.show_folder(each.folder), each.title, each.link_id) for each in snapshot.links or ()],
        **own,
    )


def entry_fields(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return the link fields that an entry shows; but not an in point or out point at the ends of the clip."""
    ends = {"first_frame": 0, "last_frame": (live.whole(attributes.get("frames")) or 0) - 1}
    kept = {name: text for name, text in attributes.items() if name in registry.LINK_FIELD and text}
    return {name: text for name, text in kept.items() if name not in ends or live.whole(text) != ends[name]}


def _segment(segment: live.Segment) -> GivenSegment:
    titles, rating = [*segment.titles], live.whole(segment.rating) or 0
    given: dict[str, Any] = {name: getattr(segment, name) or "" for name in ("keywords", "name", "track")}
    given |= {"titles": titles} if titles[1:] else {"title": "".join(titles)}
    return GivenSegment(segment.number, segment.start, segment.duration, rating=rating, **given)


def _marker(marker: live.Marker) -> GivenMarker:
    texts = {name: marker.fields.get(name, "") for name in _MARKER_TEXTS}
    more = {name: text for name, text in marker.fields.items() if text and name not in {*texts, "track", "rating"}}
    rating = live.whole(marker.fields.get("rating"))
    return GivenMarker(marker.frame, marker.uid, marker.track, rating=rating, more=more, **texts)


def channel_content(channel: live.RssChannel, rss_guid: str) -> Iterator[GivenItem]:
    """Yield the items of a channel as content."""
    for item in channel.items:
        shown = rss_item(item, rss_guid)
        usual = default_file(item.guid, text="text" in shown) if item.guid else "item.txt"
        yield GivenItem(**{"file": usual, **shown})


def content_lines(contents: Iterable[Any]) -> Iterator[str]:
    """Yield the lines of clips, items or names of folders, as items of a list; no text of them is a template."""
    for each in contents:
        shown = verbatim(to_builtins(each))
        for name, value in shown.items() if isinstance(shown, dict) else ():
            if isinstance(value, list | tuple | dict):
                lists = isinstance(value, list) and isinstance(value[0], dict)
                shown[name] = [FlowStyle(item) for item in value] if lists else FlowStyle(value)
        yield from yaml_lines([shown], 4)
