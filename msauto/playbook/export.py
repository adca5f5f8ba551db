"""Live state to playbooks that plan to nothing, and to timelines for other programs: pure functions of live values.

What a task cannot express is a comment beside it: a segment's track, a marker of an unknown type, a value that holds
the list separator. If an entry of a list is left out, ``exactly`` does not name the list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from pydantic import TypeAdapter, ValidationError

from msauto.aspects.marker_arguments import AttributeName
from msauto.documents.value_types import NsName
from msauto.documents.writer import CommentedValue, FlowStyle, comment, yaml_lines
from msauto.interface import fields as registry
from msauto.interface.rss_files import bad_character, default_file, ending_of, file_key, form_of, stem_of
from msauto.model.live import Asset, Marker, RssChannel, RssItem, Segment, Xmp, show_folder, whole
from msauto.model.snapshot import AssetSnapshot, ChannelSnapshot, SkippedEntry
from msauto.model.timecode import Timecode, TimecodeError, show_timecode
from msauto.timelines.formats import WRITERS
from msauto.timelines.timeline import (
    MARKER_TEXTS,
    SEGMENT_TEXTS,
    EditMarker,
    EditSegment,
    EditTimeline,
    TimelineClock,
    TimelineError,
    WrittenTimeline,
)

HEADER = "Exported by msauto"
"""How the first line of every exported file begins, after ``#``: such a file may be replaced."""

_MARKER_OWN = frozenset({*registry.names(registry.MARKER_ATTRIBUTES), "track"})
_NS_NAME: TypeAdapter[str] = TypeAdapter(NsName)
_ATTRIBUTE_NAME: TypeAdapter[str] = TypeAdapter(AttributeName)


@dataclass(frozen=True, slots=True)
class WriterOptions:
    """What writing needs to know of the server: its list separator, what identifies its RSS items, what it removes.

    Where links cannot be removed, ``exactly`` never names them: a link made by hand would stop every later run.
    """

    separator: str = ","
    rss_guid: str = "auto"
    removes_links: bool = False


@dataclass(slots=True)
class _Part:
    """One list or mapping of a task: what a task can express, comments on the rest, and whether it is complete."""

    items: list[Any] = field(default_factory=list)
    complete: bool = True

    def leave_out(self, why: str) -> None:
        """Add a comment on what a task cannot express."""
        self.items.append(CommentedValue((why,)))
        self.complete = False


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


def task_lines(snapshot: AssetSnapshot | ChannelSnapshot | SkippedEntry, writing: WriterOptions) -> Iterator[str]:
    """Yield the lines of one task, or the comment on what was left out."""
    if isinstance(snapshot, SkippedEntry):
        yield f"    {comment(f'{show_folder((*snapshot.folder, snapshot.title))}: {snapshot.why}.')}"
    elif isinstance(snapshot, AssetSnapshot):
        yield from yaml_lines([asset_task(snapshot, writing)], 4)
    else:
        yield from yaml_lines([channel_task(snapshot.channel, writing.rss_guid)], 4)


# Assets --------------------------------------------------------------------------------------------------------


def asset_task(snapshot: AssetSnapshot, writing: WriterOptions) -> dict[str, Any]:
    """Return the task that describes an asset, as far as a task can."""
    asset = snapshot.asset
    args: dict[str, Any] = {"title": asset.title or snapshot.title}
    if asset.folder is not None and asset.folder_otherwise is None:
        args["folder"] = show_folder(asset.folder) or "/"
    if asset.finalized is False:
        args["unfinalized"] = "allow"
    _put(args, "fields", dict(_fields(asset)))
    _put(args, "xmp", dict(_xmp(snapshot.xmp or {}, writing.separator)))
    lists = {"segments": _segments(snapshot), "markers": _markers(snapshot), "links": _links(snapshot)}
    for name, part in lists.items():
        _put(args, name, part.items)
    removable = [name for name in lists if name != "links" or writing.removes_links]
    complete = [name for name in removable if _has_values(lists[name].items) and lists[name].complete]
    if complete:
        args["exactly"] = FlowStyle(complete)
    return {"name": asset.title or snapshot.title, "asset": args}


def _has_values(items: Iterable[Any]) -> bool:
    """Return whether anything but comments is there."""
    return any(not isinstance(item, CommentedValue) or item.value is not None for item in items)


def _put(args: dict[str, Any], name: str, written: Mapping[str, Any] | list[Any]) -> None:
    """Add a mapping or list that has values; if it has only comments, add the comments."""
    items = written.values() if isinstance(written, Mapping) else written
    if _has_values(items):
        args[name] = written
    elif written:
        args[name] = CommentedValue(tuple(f"{name}: {note}" for item in items for note in item.notes))


def _position(frames: int, rate: Fraction | None) -> str | int:
    """Return a time code for exactly these frames, else the frames."""
    if rate is None:
        return frames
    text = show_timecode(frames, rate)
    try:
        same = Timecode.parse(text).to_frames(rate) == frames
    except TimecodeError:
        return frames
    return text if same else frames


def _fields(asset: Asset) -> Iterator[tuple[str, Any]]:
    for each in registry.LINK_FIELDS:
        value = asset.attributes.get(each.name)
        if not value:
            continue
        if each.kind != "position":
            yield each.name, value
        elif (why := _unfit(each, value, asset)) is not None:
            yield each.name, CommentedValue((f"{each.name} is left out: {why}",))
        else:
            yield each.name, _position(int(value), asset.rate)


def _unfit(attribute: registry.Attribute, value: str, asset: Asset) -> str | None:
    """Return why a field cannot be written as a position; ``None`` if it can."""
    if not (value.strip().isascii() and value.strip().isdecimal()):
        return f"{value!r} is not a valid position for a task"
    if attribute.end and asset.finalized is False:
        return "it grows while the clip is being recorded"
    end = asset.frames
    if end is not None and int(value) > (end if attribute.end else end - 1):
        return f"frame {value} is beyond the end of the clip ({end} frames)"
    return None


def _xmp(fields: Xmp, separator: str) -> Iterator[tuple[str, Any]]:
    for name, values in sorted(fields.items()):
        if not any(values) and len(values) < 2:
            continue
        if not _is_valid(_NS_NAME, name):
            yield name, CommentedValue((f"{name} is shown without its namespace: a task needs ns:name",))
        elif any(separator in value for value in values):
            yield name, CommentedValue((f"{name} has a value that holds {separator!r}, which separates values",))
        else:
            yield name, values[0] if len(values) == 1 else FlowStyle(values)


def _is_valid(kind: TypeAdapter[str], text: str) -> bool:
    try:
        kind.validate_python(text)
    except ValidationError:
        return False
    return True


# Segments ------------------------------------------------------------------------------------------------------


def _segments(snapshot: AssetSnapshot) -> _Part:
    part = _Part()
    asset = snapshot.asset
    twins = _twins(segment.number for segment in asset.segments)
    for number in sorted(twins):
        part.leave_out(f"several segments have the number {number}: none of them can be named")
    for segment in sorted(asset.segments, key=lambda segment: segment.number):
        if segment.number in twins:
            continue
        start = segment.start + snapshot.origin
        why = _unfit_segment(segment.number, start, segment.duration, asset.frames)
        if why is not None:
            part.leave_out(f"segment {segment.number} is left out: {why}")
            continue
        item = FlowStyle(_segment(segment, start, asset.rate))
        notes = tuple(_lossy(segment))
        part.items.append(CommentedValue(notes, item) if notes else item)
    return part


def _twins(identities: Iterable[Any]) -> list[Any]:
    return [each for each, count in Counter(identities).items() if count > 1]


def _unfit_segment(number: int, start: int, duration: int, frames: int | None) -> str | None:
    if number < 0:
        return "its number is negative"
    if start < 0 or duration <= 0:
        return f"it starts at frame {start} and is {duration} frames long"
    if frames is not None and start + duration > frames:
        return f"it ends at frame {start + duration}, beyond the end of the clip ({frames} frames)"
    return None


def _segment(segment: Segment, start: int, rate: Fraction | None) -> dict[str, Any]:
    sourced: dict[str, Any] = {
        "number": segment.number,
        "start": _position(start, rate),
        "duration": _position(segment.duration, rate),
    }
    return sourced | {
        name: text for name in registry.names(registry.SEGMENT_ATTRIBUTES) if (text := segment.text(name))
    }


def _lossy(segment: Segment) -> Iterator[str]:
    """Yield the parts of a segment that the interface cannot write (interface, «Asset commands»: CREATESEGMENT)."""
    if segment.track:
        yield f"track of segment {segment.number}, which no task can set: {segment.track}"
    if segment.rating and segment.rating.strip() != "0":
        yield f"rating of segment {segment.number}, which no task can set: {segment.rating}"
    for title in segment.titles[1:]:
        yield f"further title of segment {segment.number}, which no task can set: {title}"


# Markers -------------------------------------------------------------------------------------------------------


def _markers(snapshot: AssetSnapshot) -> _Part:
    part = _Part()
    asset = snapshot.asset
    markers = {marker.uid: marker for marker in asset.markers}
    for uid in _twins(marker.uid for marker in asset.markers):
        part.leave_out(f"several markers have uid {uid}: only one of them can be exported")
    places = Counter(_place(marker) for marker in markers.values())
    for marker in sorted(markers.values(), key=lambda marker: (*_place(marker), marker.uid)):
        alone = places[_place(marker)] == 1
        _add_marker(part, marker, marker.frame + snapshot.origin, asset, by_uid=not alone)
    return part


def _place(marker: Marker) -> tuple[int, str]:
    return marker.frame, registry.track_named(marker.track)


def _add_marker(part: _Part, marker: Marker, frame: int, asset: Asset, *, by_uid: bool) -> None:
    """Add a marker: by its place, or by its uid if that is not valid in a task or another marker has it too."""
    inside = frame >= 0 and (asset.frames is None or frame < asset.frames)
    track = registry.track_named(marker.track)
    known = track in registry.TRACKS
    by_uid = by_uid or not inside or not known
    if by_uid and marker.uid < 0:
        part.leave_out(f"marker {marker.uid} at frame {frame} is left out: its uid is negative")
        return
    sourced: dict[str, Any] = {"uid": marker.uid} if by_uid else {}
    sourced |= {"at": _position(frame, asset.rate)} if inside else {}
    sourced |= {"track": track} if known else {}
    sourced |= {
        name: text for name in registry.names(registry.MARKER_ATTRIBUTES, "text") if (text := marker.fields.get(name))
    }
    others = {name: text for name, text in marker.fields.items() if text and name not in _MARKER_OWN}
    further = {name: text for name, text in others.items() if _is_valid(_ATTRIBUTE_NAME, name)}
    notes = [] if inside else [f"marker {marker.uid} lies outside the clip, at frame {frame}"]
    notes += [] if known else [f"track of marker {marker.uid}, which no task can set: {marker.track}"]
    notes += [
        f"attribute of marker {marker.uid}, which no task can name: {name!r}" for name in others if name not in further
    ]
    for name in registry.names(registry.MARKER_ATTRIBUTES, "integer"):
        text = marker.fields.get(name, "").strip()
        try:
            sourced |= {name: number} if (number := int(text or "0")) else {}
        except ValueError:
            notes.append(f"{name} of marker {marker.uid}, which no task can set: {text}")
    sourced |= {"attributes": further} if further else {}
    part.items.append(CommentedValue(tuple(notes), FlowStyle(sourced)) if notes else FlowStyle(sourced))


# Links ---------------------------------------------------------------------------------------------------------


def _links(snapshot: AssetSnapshot) -> _Part:
    part = _Part()
    title = snapshot.asset.title or snapshot.title
    for stranger in snapshot.strangers:
        place = show_folder((*stranger.folder, stranger.title))
        part.leave_out(f"another clip is at {place}: no link, though it has the same title")
    home = (snapshot.asset.folder, title)
    places = sorted({(link.folder, link.title) for link in snapshot.links or ()} - {home})
    for folder, name in places:
        if name.strip():
            sourced = {"folder": show_folder(folder) or "/"} | ({} if name == title else {"title": name})
            part.items.append(FlowStyle(sourced))
        else:
            part.leave_out(f"a link without a title in {show_folder(folder) or '/'}")
    return part


_RSS_FIELDS = ("title", "description", "link", "pubDate")


def channel_task(channel: RssChannel, rss_guid: str) -> dict[str, Any]:
    """Return the task that describes all items of a channel; ``rss_guid`` is the server's dialect."""
    items: list[Any] = []
    taken: dict[str, str] = {}
    counts = Counter(item.guid for item in channel.items)
    for guid in dict.fromkeys(item.guid for item in channel.items):
        item = next(each for each in channel.items if each.guid == guid)
        sourced = _rss_item(item, rss_guid)
        why = _unfit_item(item, counts[guid], rss_guid) or _taken(sourced, taken, rss_guid)
        items.append(sourced if why is None else CommentedValue((f"an item is left out: {why}",)))
    sourced = {"channel": channel.name, "items": items}
    if not any(isinstance(item, CommentedValue) for item in items):
        sourced["exactly"] = True
    if all(isinstance(item, CommentedValue) for item in items):
        sourced["items"] = CommentedValue(tuple(note for item in items for note in item.notes), [])
    return {"name": channel.name, "rss": sourced}


def _unfit_item(item: RssItem, count: int, rss_guid: str) -> str | None:
    guid = item.guid
    if not guid:
        return "it has no guid"
    if count > 1:
        return f"{count} items have the guid {guid}"
    if rss_guid == "file" and not _is_file(guid):
        return f"its guid {guid} is a file name on this server, and no file can be called so"
    if bad_character(guid, line=True):
        return f"its guid {guid!r} holds a character that no playbook can name"
    return None


def _taken(sourced: dict[str, Any], taken: dict[str, str], rss_guid: str) -> str | None:
    """Return why an item conflicts with those before it: the channel may show both under one name."""
    file = sourced.get("file") or default_file(sourced["guid"], text="text" in sourced)
    shown = (sourced["guid"], file, stem_of(file)) if rss_guid == "auto" else (file,)
    names = {file_key(name) for name in shown}
    other = next((taken[name] for name in names if name in taken), None)
    if other is not None:
        return f"{sourced['guid']} may be the same file as the item {other}; `rss_guid` of the dialect decides that"
    taken |= dict.fromkeys(names, sourced["guid"])
    return None


def _rss_item(item: RssItem, rss_guid: str) -> dict[str, Any]:
    """Return an item as a text if it came as one, else by its fields; empty ones are left out."""
    fields = dict(zip(_RSS_FIELDS, (item.title, item.description, item.link, item.pub_date), strict=True))
    sourced = {name: text for name, text in fields.items() if text and text.strip()}
    ending = ending_of(item.guid).lower() if rss_guid in {"auto", "file"} and _is_file(item.guid) else ""
    named = rss_guid == "file" or ending in {".txt", ".xml"}
    head = {"guid": item.guid} | ({"file": item.guid} if named else {})
    form = "item" if ending == ".xml" else form_of(item)
    if form == "item" and not (ending == ".txt" and not sourced.keys() & {"link", "pubDate"}):
        return head | {"item": sourced}
    return head | {"text": _rss_text(sourced)}


def _rss_text(sourced: dict[str, str]) -> str:
    """Return the text of an item: the description if it begins with the title, else the title and the description."""
    title, description = sourced.get("title", ""), sourced.get("description", "")
    if description.strip() == title.strip() or description.replace("\r\n", "\n").startswith(f"{title}\n"):
        return description
    return "\n".join(part for part in (title, description) if part)


def _is_file(guid: str) -> bool:
    return "/" not in guid and "\\" not in guid


_HELD = frozenset({*MARKER_TEXTS, "rating", "track"})


@dataclass(frozen=True, slots=True)
class TimelineForm:
    """The format to write, by its ending, and the time code of the first frame, if it is not 0."""

    ending: str
    origin: Timecode | None = None

    def write(self, snapshot: AssetSnapshot) -> WrittenTimeline:
        """Write an asset; raises :class:`TimelineError` if it has no frame rate."""
        rate = snapshot.asset.rate
        if rate is None:
            raise TimelineError("the server reports no frame rate of it")
        timeline, warnings = timeline_of(snapshot)
        written = WRITERS[self.ending](timeline, TimelineClock(rate, self.origin))
        return replace(written, warnings=(*warnings, *written.warnings))


def timeline_of(snapshot: AssetSnapshot) -> tuple[EditTimeline, tuple[str, ...]]:
    """Return the markers and segments of an asset, and what a timeline cannot hold."""
    asset = snapshot.asset
    timeline = EditTimeline(title=asset.title or snapshot.title)
    warnings = []
    for marker in asset.markers:
        frame = marker.frame + snapshot.origin
        if frame < 0 or (asset.frames is not None and frame >= asset.frames):
            warnings.append(f"marker {marker.uid} is left out: it lies outside the clip, at frame {frame}")
            continue
        timeline.markers.append(_edit_marker(marker, frame))
        warnings += _not_held(marker)
    for segment in asset.segments:
        start = segment.start + snapshot.origin
        if start < 0 or segment.duration <= 0:
            length = f"it starts at frame {start} and is {segment.duration} frames long"
            warnings.append(f"segment {segment.number} is left out: {length}")
            continue
        timeline.segments.append(_edit_segment(segment, start))
    return timeline, tuple(warnings)


def _edit_marker(marker: Marker, frame: int) -> EditMarker:
    texts: dict[str, Any] = {name: marker.fields.get(name, "") for name in MARKER_TEXTS}
    track = registry.track_named(marker.track)
    return EditMarker(
        frame,
        **texts,
        rating=whole(marker.fields.get("rating")) or 0,
        track=track if track in registry.TRACKS else registry.DEFAULT_TRACK,
    )


def _not_held(marker: Marker) -> Iterator[str]:
    if registry.track_named(marker.track) not in registry.TRACKS:
        yield f"track of marker {marker.uid}, which no task can set: {marker.track}"
    others = [name for name, text in marker.fields.items() if text and name not in _HELD]
    if others:
        yield f"marker {marker.uid} has attributes that no timeline holds: {', '.join(sorted(others))}"


def _edit_segment(segment: Segment, start: int) -> EditSegment:
    texts = {name: segment.text(name) or "" for name in SEGMENT_TEXTS}
    number = segment.number if segment.number >= 0 else None
    return EditSegment(start, segment.duration, **texts, number=number)
