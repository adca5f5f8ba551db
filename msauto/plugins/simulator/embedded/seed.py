"""The state at the start: realistic and always the same, empty, large for benchmarks, or what a test gives in YAML."""

from __future__ import annotations

import gc
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from msgspec import Struct, ValidationError, convert, to_builtins

from msauto.plugins.simulator.embedded.dialect import SimDialect
from msauto.plugins.simulator.embedded.rss import put_item, read_item
from msauto.plugins.simulator.embedded.state import (
    MIME_TYPES,
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

RATES = (
    *map(Fraction, (24, 25, 30, 50, 60)),
    *(Fraction(rate, 1001) for rate in (24000, 30000, 60000)),
)
_COUNT = re.compile(r"[0-9]{1,7}")  # ten million clips do not fit in memory
_DEFAULT = SimDialect()


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
    state = empty_state()
    news, archive = state.databases["NEWS"], state.databases["ARCHIVE"]
    for folder in (
        "Playout/Tonight",
        "Playout/Tomorrow",
        "Master/Films",
        "Raw/2026/11",
        r"A\/B Tests",
    ):
        news.make_folder(folder)
    _story(news)
    _awkward(news)
    _series(news)
    live = news.add_clip(
        "Studio A live", "Raw/2026", frames=1500, create_time="2026-11-20T18:00:00"
    )
    live.finalized, live.recording_since = False, time.time()
    _archive(news, archive)
    _channels(state)
    state.cards["1001"] = ProgramCard(
        ("Playout", "Tonight"), {"dc:title": ["Evening News"], "dc:subject": ["news"]}
    )
    return state


def _story(news: SimDatabase) -> None:
    """Add the clips of the examples and of the demo."""
    raw = news.add_clip(
        "Evening News raw", "Raw/2026", frames=45000, create_time="2026-11-20T17:40:00"
    )
    raw.segments = [
        SimSegment(1, 0, 9000, ["Wrong part"]),
        SimSegment(7, 40000, 1000, ["Leftover"]),
    ]
    raw.xmp = {"dc:title": ["Evening News"], "dc:subject": ["raw"]}
    raw.proxy = "$(video_path)/proxy/evening-news.mp4"
    news.add_clip("Long Film", "Films", frames=162500, create_time="2026-10-02T12:00:00")
    for number in (1, 2):
        promo = news.add_clip(
            f"Promo {number}", "Promos", frames=750, create_time="2026-09-01T08:30:00"
        )
        news.add_entry(promo, "Playout/Tonight", f"Promo {number} tonight")
    master = news.add_clip("Master Film", "Master/Films", frames=135000, rate=24)
    master.segments = [
        SimSegment(1, 0, 67500, ["Reel 1"], "Reel 1", "Program", 3),
        SimSegment(2, 67500, 67500),
    ]
    master.markers = [
        SimMarker(1, 0, {"title": "Head", "track": "General", "rating": "5", "user": "anna"}),
        SimMarker(
            2,
            67500,
            {"title": "Ad break", "track": "Cue Point", "comment": "two minutes", "keywords": "ad"},
        ),
    ]


def _awkward(news: SimDatabase) -> None:
    titles = (
        r"Back\Slash / Film: 50% @ night?",
        "Новости дня",
        'The "Best" of Rock & Roll + More #1',
        "L'été, c'est (presque) fini!",
        "A=B; C&D [final] $100",
        "Ёлка & огни: выпуск №5",
        "Line 50%25 literal",
        "日本のニュース",
    )
    for number, title in enumerate(titles):
        clip = news.add_clip(title, ("A/B Tests",), rate=RATES[number], frames=3000 + number)
        clip.xmp = {"dc:title": [title], "dc:creator": ["Ольга", "Per & Kari"]}
    news.add_entry(news.clip("Новости дня"), ("Архив", "Новости"), "Новости дня")


def _series(news: SimDatabase) -> None:
    for number in range(1, 13):
        when = f"2026-11-{number + 8:02d}T06:00:00"
        frames = 36000 + 25 * number
        clip = news.add_clip(f"EP{number:03d}", "Raw", frames=frames, create_time=when)
        clip.xmp = {"dc:identifier": [f"EP-{number:03d}"]}
    for number in range(100):
        title = f"Story {number:03d}"
        rate = RATES[number % len(RATES)]
        frames = 500 + 37 * number
        when = f"2026-11-{number % 28 + 1:02d}T{number % 24:02d}:15:00"
        news.add_clip(title, "Raw/2026/11", rate=rate, frames=frames, create_time=when)
    for number in range(30):
        folder = f"Sport/Round {number // 10 + 1}"
        frames = (5400 + 60 * number) * 50
        when = f"2026-08-{number + 1:02d}T18:00:00"
        news.add_clip(f"Match {number + 1}", folder, rate=50, frames=frames, create_time=when)
    _other_kinds(news)


def _other_kinds(news: SimDatabase) -> None:
    """Add a very long clip, and what is not a film."""
    news.add_clip(
        "Parliament, whole day",
        "Raw/2026",
        frames=25 * 3600 * 26,
        create_time="2026-11-18T07:00:00",
    )
    news.add_clip(
        "Studio sound", "Sound", mime_type=MIME_TYPES["Audio"], width=0, height=0, frames=7500
    )
    news.add_clip(
        "Harbour at dawn", "Stills", mime_type=MIME_TYPES["StillImage"], frames=1, orig_type="JPEG"
    )
    kind = MIME_TYPES["Graphics"]
    news.add_clip(
        "Lower Third", "Graphics", mime_type=kind, params=("headline", "subline"), frames=125
    )
    news.add_clip("Ticker", "Graphics", mime_type=kind, params=("feed", "speed"), frames=250)
    news.add_clip("Заставка", "Graphics", mime_type=kind, params=("заголовок",), frames=100)


def _archive(news: SimDatabase, archive: SimDatabase) -> None:
    film = news.add_clip(
        "Documentary 1987", "Archive", frames=78000, create_time="1987-05-04T20:00:00"
    )
    film.archive, film.online = "$(archive_path)/1987/documentary.mxf", False
    for number in range(24):
        year = 1990 + number
        clip = archive.add_clip(
            f"Новости {year}", "Архив/Новости", frames=45000, create_time=f"{year}-06-01T12:00:00"
        )
        if number % 2:
            clip.archive, clip.online = f"$(archive_path)/{year}/news.mxf", False
    archive.add_clip("Jubilee 1999", "Galas", frames=150000, create_time="1999-12-31T20:00:00")


def _channels(state: ServerState) -> None:
    ticker = state.add_channel("ticker", "News ticker")
    put_item(ticker, "n-0.txt", b"Yesterday's headline", _DEFAULT)
    put_item(ticker, "n-1.txt", b"An outdated headline", _DEFAULT)
    weather = state.add_channel("weather", "Погода")
    body = "<item><guid>oslo</guid><title>Oslo</title><description>−4 °C, snø</description></item>"
    weather.items.append(read_item("oslo.xml", body.encode(), _DEFAULT))
    put_item(weather, "moscow.txt", "Москва: −7".encode(), _DEFAULT)


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
        **to_builtins(replace(clip, entries=[]), enc_hook=str),
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


class GivenMarker(Struct, forbid_unknown_fields=True, omit_defaults=True):
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


class GivenSegment(Struct, forbid_unknown_fields=True, omit_defaults=True):
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


class GivenLink(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A further entry of a clip; without a title it has that of the clip."""

    folder: str
    title: str | None = None
    link_id: int | None = None
    fields: dict[str, str] = {}


class GivenClip(Struct, forbid_unknown_fields=True, omit_defaults=True):
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


class GivenItem(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An RSS item: a text in a file, or the fields of an item document; ``guid`` is that of its file if not given."""

    file: str
    text: str = ""
    guid: str | None = None
    item: dict[str, str] = {}


class GivenContent(Struct, forbid_unknown_fields=True, omit_defaults=True):
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
    return item if given.guid is None else replace(item, guid=given.guid)


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
