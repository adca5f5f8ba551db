"""The state at the start: realistic and always the same, empty, large for benchmarks, or what a test gives in YAML."""

from __future__ import annotations

import gc
import json
import os
import re
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from msgspec import Struct, ValidationError, convert, structs, to_builtins

from msauto.plugins.simulator.embedded.dialect import SimDialect
from msauto.plugins.simulator.embedded.rss import read_item
from msauto.plugins.simulator.embedded.state import (
    Folder,
    Item,
    ProgramCard,
    ServerState,
    SimChannel,
    SimClip,
    SimDatabase,
    SimMarker,
    SimSegment,
)
from msauto.plugins.simulator.embedded.wire import parse_frames

_COUNT = re.compile(r"[0-9]{1,7}")  # ten million clips do not fit in memory


def state_from_seed(seed: str) -> ServerState:
    """Return the state of a seed: `sample`, `empty` or `bulk:N`; ValueError for another text."""
    if seed in ("sample", "empty"):
        return sample_state() if seed == "sample" else empty_state()
    name, _, number = seed.partition(":")
    if name == "bulk" and _COUNT.fullmatch(number):
        return bulk_state(int(number))
    raise ValueError(f"a seed is one of sample, empty, bulk:N, not {seed!r}")


def empty_state() -> ServerState:
    """Return databases NEWS and ARCHIVE without clips, with the connector TRAFFIC, and no channel."""
    state = ServerState()
    for name in ("NEWS", "ARCHIVE"):
        state.add_database(name).connectors["TRAFFIC"] = []
    return state


def bulk_state(count: int) -> ServerState:
    """Return NEWS with this many clips, from `Bulk 000000`, a thousand in each folder of `Bulk`."""
    state = empty_state()
    database = state.add_database("NEWS")
    was_enabled = gc.isenabled()
    gc.disable()  # the collector would visit all clips again and again, which triples the time
    try:
        for number in range(count):
            folder = ("Bulk", f"{number // 1000:03d}")
            when = f"2026-11-{number % 28 + 1:02d}T{number % 24:02d}:00:00"
            database.add_clip(
                f"Bulk {number:06d}", folder, frames=250 + number % 5000, create_time=when
            )
    finally:
        if was_enabled:
            gc.enable()
    return state


def sample_state() -> ServerState:
    """Return the state of a newsroom: some 200 clips in NEWS and ARCHIVE, two channels, a program card."""
    state = load_state(Path(__file__).with_name("sample.json"))
    state.clip("Studio A live").recording_since = time.time()
    return state


FORMAT = "msauto-simulator-house"  # the name in the state files of earlier versions


def state_to_json(state: ServerState) -> dict[str, Any]:
    """Return the state as plain JSON values."""
    return {
        "format": FORMAT,
        "version": 1,
        "databases": [_database_to_json(database, state) for database in state.databases.values()],
        "channels": to_builtins(list(state.channels.values())),
        "cards": to_builtins(state.cards),
    }


def _database_to_json(database: SimDatabase, state: ServerState) -> dict[str, Any]:
    clips = list(database.clips())
    places = {id(clip): clip.home.link_id for clip in clips}
    handles = {}
    for number, clip in state.handles.items():
        if id(clip) in places:
            handles[number] = places[id(clip)]
    names = ("name", "connectors", "profiles", "partner", "next_link_id")
    kept = to_builtins({name: getattr(database, name) for name in names})
    folders = list(_folders(database.root, ()))
    return {
        **kept,
        "handles": handles,
        "folders": folders,
        "clips": list(map(_clip_to_json, clips)),
    }


def _clip_to_json(clip: SimClip) -> dict[str, Any]:
    entries = []
    for entry in clip.entries:
        shown = {name: getattr(entry, name) for name in ("link_id", "folder", "title", "fields")}
        entries.append(shown)
    # A rate becomes "25".
    return {
        **to_builtins(structs.replace(clip, entries=[]), enc_hook=str),
        "entries": entries,
    }


def _folders(folder: Folder, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if path:
        yield path
    for child in folder.folders.values():
        yield from _folders(child, (*path, child.name))


def state_from_json(data: dict[str, Any]) -> ServerState:
    """Return the state of `state_to_json`; ValueError for JSON that is not a state."""
    if data.get("format") != FORMAT or data.get("version") != 1:
        raise ValueError("not a state file of the simulator")
    state = ServerState()
    for given in data["databases"]:
        database = state.add_database(given["name"])
        database.partner = given["partner"]
        database.profiles = list(given["profiles"])
        database.connectors = convert(given["connectors"], dict[str, list[bytes]])
        for path in given["folders"]:
            database.make_folder(tuple(path))
        clips = [_add_clip(database, clip) for clip in given["clips"]]
        by_place = {clip.home.link_id: clip for clip in clips}
        for number, link_id in given["handles"].items():
            state.handles[number] = by_place[link_id]
        database.next_link_id = given["next_link_id"]
    for channel in convert(data["channels"], list[SimChannel]):
        state.channels[channel.name] = channel
    state.cards = convert(data["cards"], dict[str, ProgramCard])
    return state


def _add_clip(database: SimDatabase, data: dict[str, Any]) -> SimClip:
    # A rate was "25".
    clip = convert({**data, "entries": []}, SimClip, dec_hook=lambda kind, text: kind(text))
    for entry in data["entries"]:
        added = database.add_entry(clip, tuple(entry["folder"]), entry["title"], entry["link_id"])
        added.fields = entry.get("fields", {})
    return clip


def load_state(path: Path) -> ServerState:
    """Read a state file; ValueError names the file if its content is not a state."""
    try:
        return state_from_json(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError, ValidationError) as problem:
        raise ValueError(f"{path}: {problem}") from problem


def save_state(state: ServerState, path: Path) -> None:
    """Replace the file atomically."""
    temporary = path.with_name(path.name + ".new")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(state_to_json(state), file, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


_Position = int | str


class _Given(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A part of the content; what it does not name has the default."""


class GivenMarker(_Given):
    """A marker: its position, and what a playbook may declare; ``more`` are other texts that it shows."""

    at: _Position
    uid: int | None = None
    track: str = "General"
    title: str = ""
    comment: str = ""
    user: str = ""
    keywords: str = ""
    rating: int | None = None
    more: dict[str, str] = {}


class GivenSegment(_Given):
    """A segment; ``titles`` after the first, ``name``, ``track`` and ``rating`` are what the interface cannot write."""

    number: int
    start: _Position
    duration: _Position
    title: str = ""
    keywords: str = ""
    titles: list[str] = []
    name: str = ""
    track: str = ""
    rating: int = 0


class GivenLink(_Given):
    """A further entry of a clip; without a title it has that of the clip."""

    folder: str
    title: str | None = None
    link_id: int | None = None
    fields: dict[str, str] = {}


class GivenClip(_Given):
    """A clip. ``fps`` is a number or a text such as ``30000/1001``.

    ``archived``: its file is not on disk. ``hires`` and ``archive`` are paths, made up if not given; without an archive
    copy, ``archive`` is null. ``hidden`` are attributes that its answers leave out.
    """

    title: str
    folder: str = ""
    link_id: int | None = None
    frames: int = 250
    fps: int | str = 25
    create_time: str = "2026-11-13T10:00:00"
    finalized: bool = True
    archived: bool = False
    mime_type: int = 3
    hires: str = ""
    proxy: str = ""
    archive: str | None = ""
    orig_name: str = ""
    orig_type: str = "MXF"
    derived_from: str = ""
    rec_time: str = "2026-11-13T09:00:00"
    width: int = 1920
    height: int = 1080
    channels: int = 2
    sample_rate: int = 48000
    bps: int = 16
    params: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    fields: dict[str, str] = {}
    xmp: dict[str, str | list[str]] = {}
    segments: list[GivenSegment] = []
    markers: list[GivenMarker] = []
    links: list[GivenLink] = []


class GivenItem(_Given):
    """An RSS item: a text in a file, or the fields of an item document; ``guid`` is that of its file if not given."""

    file: str
    text: str = ""
    guid: str | None = None
    item: dict[str, str] = {}


class GivenContent(_Given):
    """The whole content: clips by database, items by channel, and folders by database, for those without clips."""

    databases: dict[str, list[GivenClip] | None] = {}
    channels: dict[str, list[GivenItem] | None] = {}
    folders: dict[str, list[str] | None] = {}


def state_from_content(data: Any) -> ServerState:
    """Return the state of a server with this content, as YAML gives it; ValueError names what is wrong."""
    try:
        content = convert({} if data is None else data, GivenContent)
    except ValidationError as error:
        raise ValueError(f"not the content of a media server: {error}") from error
    state = empty_state()
    for name, paths in content.folders.items():
        for path in paths or []:
            state.add_database(name).make_folder(path)
    for name, clips in content.databases.items():
        _fill(state.add_database(name), clips or [])
    for name, items in content.channels.items():
        state.add_channel(name).items.extend(map(item_from_content, items or []))
    return state


def _fill(database: SimDatabase, clips: list[GivenClip]) -> None:
    """Add clips; ValueError for one that is wrong, and for two entries of one number."""
    numbers = set[int]()
    for clip in clips:
        for number in (clip.link_id, *[link.link_id for link in clip.links]):
            if number in numbers:
                raise ValueError(f"two entries of {database.name} have the link_id {number}")
            if number is not None:
                numbers.add(number)
    database.next_link_id = max(numbers, default=0) + 1
    for clip in clips:
        try:
            clip_from_content(database, clip)
        except (ValueError, ZeroDivisionError) as error:
            raise ValueError(f"{database.name}: {clip.title}: {error}") from None


def _frames(given: _Position, rate: Fraction) -> int:
    """Return a position in frames; a server may show one before the first frame."""
    return given if isinstance(given, int) else parse_frames(given, rate)


def item_from_content(given: GivenItem) -> Item:
    """Return an item of a channel."""
    item = read_item(given.file, given.text.encode(), SimDialect(rss_body="text"))
    if given.item:
        texts = [given.item.get(name, "") for name in ("title", "description", "link", "pubDate")]
        item = Item(given.file, b"", item.guid, *texts)
    return item if given.guid is None else structs.replace(item, guid=given.guid)


_SLOWEST_BROADCAST = 23
_FPS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,12}|/[1-9][0-9]{0,8})?")
_SAME_IN_BOTH = (
    "frames", "mime_type", "width", "height", "channels", "sample_rate", "bps", "orig_type", "derived_from",
    "create_time", "rec_time", "proxy", "finalized", "params",
)  # fmt: skip
"""What content and state hold of a clip alike."""


def clip_from_content(database: SimDatabase, given: GivenClip) -> SimClip:
    """Add a clip with its links; ValueError names what is wrong."""
    if not _FPS.fullmatch(str(given.fps)):
        raise ValueError(
            f"fps must be a number such as 25 or 30000/1001, not {str(given.fps)[:40]}"
        )
    rate = Fraction(str(given.fps))
    broadcast = Fraction(round(rate) * 1000, 1001)
    if abs(broadcast - rate) < Fraction(1, 200) and rate > _SLOWEST_BROADCAST:
        rate = broadcast  # 29.97 is 30000/1001
    if not 1 <= rate <= 1000:
        raise ValueError(f"fps must be 1 to 1000, not {given.fps}")
    xmp = {}
    for name, texts in given.xmp.items():
        xmp[name] = [texts] if isinstance(texts, str) else texts
    same = {name: getattr(given, name) for name in _SAME_IN_BOTH}
    clip = SimClip(
        rate=rate,
        file=given.hires,
        online=not given.archived,
        omitted=given.hidden,
        archive=given.archive or "",
        orig_name=given.orig_name or given.title,
        xmp=xmp,
        segments=[_segment(segment, rate) for segment in given.segments],
        **same,
    )
    if given.archived and given.archive == "":
        clip.archive = f"$(archive_path)/{database.name}/{given.title}.mxf"
    database.put_clip(clip, given.folder, given.title, given.link_id)
    clip.home.fields = dict(given.fields)
    for marker in given.markers:
        uid = clip.new_uid() if marker.uid is None else marker.uid
        clip.markers.append(SimMarker(uid, _frames(marker.at, rate), _marker_texts(marker)))
    for link in given.links:
        entry = database.add_entry(clip, link.folder, link.title or given.title, link.link_id)
        entry.fields = dict(link.fields)
    return clip


def _segment(given: GivenSegment, rate: Fraction) -> SimSegment:
    titles = given.titles
    if given.title and not titles:
        titles = [given.title]
    start, duration = _frames(given.start, rate), _frames(given.duration, rate)
    return SimSegment(
        given.number, start, duration, titles, given.name, given.track, given.rating, given.keywords
    )


def _marker_texts(given: GivenMarker) -> dict[str, str]:
    texts = {
        name: getattr(given, name) for name in ("track", "title", "comment", "user", "keywords")
    }
    texts |= given.more
    for name in [name for name, text in texts.items() if not text]:
        del texts[name]
    if given.rating is not None:
        texts["rating"] = str(given.rating)
    return texts
