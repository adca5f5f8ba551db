"""An independent model of the server: what a request means, applied to plain dicts, and read back by the real reader.

Nothing of msauto's planning is used here: it is the oracle that plans are checked against.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, unquote
from xml.etree import ElementTree as ET

from msauto.applying.target_memory import download_items, run_items
from msauto.applying.verification import (
    Guard,
    SharedReads,
    guard,
    held_things,
    read_again,
    things_to_verify,
    verify,
)
from msauto.errors import AnotherClipError
from msauto.model.desired import Intent, SelectRef
from msauto.model.identity import ClipEntries
from msauto.model.live import (
    Asset,
    Entry,
    Folder,
    Link,
    Listing,
    RssChannel,
    Xmp,
    parse_folder,
    show_folder,
)
from msauto.model.plan import Address, Request, Target
from msauto.model.ports import LiveTarget, NamedKind, Reader
from msauto.model.result import Difference, RequestResult
from msauto.model.server import Dialect, ServerSpec
from msauto.planning.asset_survey import SurveyContext
from msauto.planning.survey import Survey, survey
from msauto.planning.target_reading import why_title_is_taken
from msauto.secrets.redaction import Secrets
from msauto.server.client import AsyncMediaServer
from msauto.server.reader import ServerReader
from tests.small_ports import DictDisk, DictMemory
from tests.unit.planning.feed_model import drop_items, take_file
from tests.unit.planning.model_answers import (
    Answers,
    Found,
    add_marker,
    add_segment,
    channel_element,
    clip_element,
    named,
    place_of,
    stored_tree,
    user_fields,
)

URL = "http://127.0.0.1:7901"


@dataclass
class Clip:
    """One clip. ``fields`` are the Attrs; ``hidden`` fields are kept but never reported."""

    title: str
    folder: str | None = ""
    frames: int | None = 250
    frame_time: str | None = "0.0400000000"
    create_time: str = "2026-11-20T08:00:00"
    link_id: int | None = 1
    finalized: bool | None = True
    hires: str | None = "$(video_path)/{title}.mxf"
    archive: str | None = None
    fields: dict[str, str] = field(default_factory=dict)
    hidden: dict[str, str] = field(default_factory=dict)
    markers: list[dict[str, Any]] = field(default_factory=list)
    segments: dict[int, dict[str, Any]] = field(default_factory=dict)
    twins: list[dict[str, Any]] = field(default_factory=list)  # more segments of numbers above
    xmp: dict[str, list[str]] | None = field(default_factory=dict)
    links: list[str] = field(default_factory=list)  # folder/title
    numbers_of_links: dict[str, int] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    orig_name: str = ""
    last_uid: int = 99

    def __post_init__(self) -> None:
        self.orig_name = self.orig_name or self.title


@dataclass
class Server:
    """A media server: its truth, and how it behaves where the interface is silent (``dialect``)."""

    clips: dict[str, Clip] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    channels: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    dialect: Dialect = field(default_factory=Dialect)
    databases: set[str] = field(default_factory=lambda: {"NEWS"})
    reported: frozenset[str] | None = None  # fields that the Clip XML shows; None: all
    reports_keywords: bool = True
    reports_names: bool = True  # orig_name
    finds_links: bool = True  # by their titles
    reuses_uids: bool = True  # a new marker may get the uid of one that was deleted
    rss_delete: str = "all"  # what DELETE takes of several items of one guid: all, first
    rss_guid: str = "item"  # what the feed service makes of a file: item, file, stem, other
    sent: list[str] = field(default_factory=list)
    batches: list[str] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)  # "ns:id" to title

    # What a request means ------------------------------------------------------------------------------------

    def apply(self, request: Request) -> None:
        self.sent.append(f"{request.method} {request.path}")
        path, _, text = request.path.partition("?")
        query = dict(parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text)))
        if request.method == "PUT" and path.startswith("/storage/"):
            assert request.body is not None
            self.batches.append(f"{query['connector']}: {request.body.content.decode()}")
            return
        if path.startswith("/rss/"):
            self._feed(request, path, query)
            return
        title = self._title(path)
        if request.method == "DELETE":
            self._delete(title)
            return
        assert request.method == "POST"
        clip = self.clips[title]
        name = query.pop("command")
        handler = getattr(self, f"_{name.lower()}", None)
        if handler is None:
            clip.ran.append(name)
            return
        handler(clip, query)

    def _title(self, path: str) -> str:
        name = unquote(path.partition("@")[2])
        title = name.replace("\\/", "/").replace("\\\\", "\\")
        raw = path.partition("@")[2]
        return self.ids[unquote(raw)] if ":" in raw and unquote(raw) in self.ids else title

    def _delete(self, title: str) -> None:
        if title in self.clips:
            del self.clips[title]
            return
        for clip in self.clips.values():  # the dialect link_delete: by_title
            clip.links = [link for link in clip.links if parse_folder(link)[-1] != title]

    def _setfield(self, clip: Clip, query: dict[str, str]) -> None:
        name, value = query["name"], query["val"]
        if name == "clip_name":
            self.clips[value] = self.clips.pop(clip.title)
            clip.title = value
        elif self.reported is None or name in self.reported:
            clip.fields[name] = value
        else:
            clip.hidden[name] = value

    def _setuserfields(self, clip: Clip, query: dict[str, str]) -> None:
        assert clip.xmp is not None
        for name, value in query.items():
            clip.xmp[name] = value.split(self.dialect.list_separator) if value else []

    def _restore(self, clip: Clip, query: dict[str, str]) -> None:
        assert not query
        clip.hires = "$(video_path)/restored.mxf"

    def _copylink(self, clip: Clip, query: dict[str, str]) -> None:
        assert query["folder"] in self.folders or self.dialect.folder_missing == "create"
        self.folders.add(query["folder"])
        clip.links.append(show_folder((*parse_folder(query["folder"]), query["title"])))

    def _createsegment(self, clip: Clip, query: dict[str, str]) -> None:
        number = int(query["seg_num"])
        made: dict[str, Any] = {
            "start": int(query["start_frame"]),
            "duration": int(query["duration"]),
        }
        made |= {name: query[name] for name in ("title", "keywords") if name in query}
        if self.dialect.segment_update == "recreate":
            assert number not in clip.segments, f"segment {number} is there already"
            clip.segments[number] = made
        else:
            clip.segments.setdefault(number, {}).update(made)
        self.renumber(clip)

    def renumber(self, clip: Clip) -> None:
        if self.dialect.numbers_by_start:
            clip.segments = dict(
                enumerate(sorted(clip.segments.values(), key=lambda each: each["start"]), 1)
            )

    def _createsegmentation(self, clip: Clip, query: dict[str, str]) -> None:
        assert not clip.segments, "a grid over segments that are there"
        duration = int(query["duration"])
        for number, start in enumerate(range(0, clip.frames or 0, duration), 1):
            piece = {"start": start, "duration": min(duration, (clip.frames or 0) - start)}
            clip.segments[number] = piece | (
                {"title": f"{query['title']} {number}"} if "title" in query else {}
            )

    def _deletesegment(self, clip: Clip, query: dict[str, str]) -> None:
        number = int(query["seg_num"])
        twin = next((each for each in clip.twins if each["number"] == number), None)
        if twin is not None:
            clip.twins.remove(twin)
            return
        del clip.segments[number]
        self.renumber(clip)

    def _createmarker(self, clip: Clip, query: dict[str, str]) -> None:
        uid, frame = int(query.pop("uid")), query.pop("frame", None)
        if uid == -1:
            uid = (
                max(
                    [
                        0 if self.reuses_uids else clip.last_uid,
                        *(marker["uid"] for marker in clip.markers),
                    ]
                )
                + 1
            )
            clip.last_uid = uid
            assert frame is not None
            clip.markers.append({"uid": uid, "frame": int(frame), **query})
            return
        (marker,) = (marker for marker in clip.markers if marker["uid"] == uid)
        kept = {"uid": uid, "frame": int(frame) if frame is not None else marker["frame"]}
        if self.dialect.marker_update == "changed":
            kept = {**marker, **kept}
        marker.clear()  # under `full` the server forgets what is not sent
        marker.update({**kept, **query})

    def _deletemarker(self, clip: Clip, query: dict[str, str]) -> None:
        uid = int(query["uid"])
        clip.markers.remove(next(marker for marker in clip.markers if marker["uid"] == uid))

    def _feed(self, request: Request, path: str, query: dict[str, str]) -> None:
        _, _, channel, *file = map(unquote, path.split("/"))
        items = self.channels[channel]
        if request.method == "DELETE":
            drop_items(items, query["guid"], self.rss_delete)
            return
        assert request.method == "PUT"
        assert request.body is not None
        take_file(items, file[0], request.body.content.decode(), self.rss_guid)

    # Reading ---------------------------------------------------------------------------------------------------

    def answer(self, path: str, field: str) -> Found:
        """The answer to a read, as a document; ``field`` is the one of GETUSERFIELDS."""
        if path.startswith("/rss"):
            return self._channel(unquote(path.removeprefix("/rss").removeprefix("/")))
        if path == "/storage":
            return named("Database", self.databases)
        asked_for_xmp = path.endswith("/GETUSERFIELDS")
        path = path.removesuffix("/GETUSERFIELDS")
        database, folder, asset = place_of(path)
        if database not in self.databases:
            return None
        if asset is None:
            return self._listing(folder)
        title = self._title(path)
        if asked_for_xmp:
            return self._xmp(self.clips[title], field)
        return self._clip_or_link(title)

    def _channel(self, name: str) -> Found:
        if not name:
            return named("channel", self.channels)
        items = self.channels.get(name)
        return None if items is None else channel_element(items)

    def _xmp(self, clip: Clip, field: str) -> Found:
        return (
            "<html>it cannot be read</html>" if clip.xmp is None else user_fields(clip.xmp, field)
        )

    def _listing(self, folder: Folder) -> Found:
        if folder and show_folder(folder) not in self.folders:
            return None
        entries: list[tuple[Folder, ET.Element]] = []
        for clip in self.clips.values():
            home = parse_folder(clip.folder or "")
            entries.append((home, self._entry(clip, clip.title, clip.link_id)))
            for link in clip.links:
                *above, title = parse_folder(link)
                entry = self._entry(clip, title, _link_id(clip, link))
                entries.append((tuple(above), entry))
        folders = map(parse_folder, self.folders)
        return stored_tree(folder, folders, entries)

    def _entry(self, clip: Clip, title: str, link_id: int | None) -> ET.Element:
        own = {"link_id": _text(link_id), "finalized": _text(clip.finalized)}
        return clip_element(own, {**self._attributes(clip), "title": title})

    def _clip_or_link(self, title: str) -> ET.Element | None:
        """The answer to a title: a clip's own, else that of a link."""
        if title in self.clips:
            clip = self.clips[title]
            return self._asset(clip, title, clip.link_id)
        for clip in self.clips.values() if self.finds_links else ():
            for link in clip.links:
                if parse_folder(link)[-1] == title:
                    return self._asset(clip, title, _link_id(clip, link))
        return None

    def _asset(self, clip: Clip, title: str, link_id: int | None) -> ET.Element:
        own = {
            "folder": clip.folder,
            "hires": clip.hires and clip.hires.format(title=clip.orig_name),
            "archive": clip.archive,
            "link_id": _text(link_id),
            "finalized": _text(clip.finalized),
        }
        element = clip_element(own, {**self._attributes(clip), "title": title})
        for marker in clip.markers:
            add_marker(element, marker)
        for number, segment in clip.segments.items():
            add_segment(element, number, segment, with_keywords=self.reports_keywords)
        for twin in clip.twins:
            add_segment(element, twin["number"], twin, with_keywords=self.reports_keywords)
        return element

    def _attributes(self, clip: Clip) -> dict[str, str]:
        attributes = {**clip.fields, "create_time": clip.create_time}
        if self.reports_names:
            attributes["orig_name"] = clip.orig_name
        if clip.frames is not None:
            attributes["frames"] = str(clip.frames)
        if clip.frame_time is not None:
            attributes["frame_time"] = clip.frame_time
        return attributes


def _link_id(clip: Clip, link: str) -> int | None:
    """The link_id of one link of a clip: its own, also after others have gone."""
    number = clip.numbers_of_links.setdefault(link, len(clip.numbers_of_links) + 1)
    return None if clip.link_id is None else 1000 * number + clip.link_id


def _text(value: bool | int | None) -> str | None:
    return None if value is None else str(value).lower()


class WorldReader:
    """The real reader over the model's answers; ``asked`` records what was read."""

    def __init__(self, server: Server, spec: ServerSpec | None = None) -> None:
        self.server = server
        self.asked: list[str] = []
        self._spec = spec or ServerSpec("studio-a", URL, dialect=server.dialect)
        answered = replace(self._spec, transport=Answers(server.answer))
        self._reader = ServerReader(AsyncMediaServer(answered))

    @property
    def reads(self) -> int:
        return len(self.asked)

    @property
    def whole(self) -> Collection[str]:
        return self._reader.whole

    async def read_asset(self, database: str, address: Address) -> Asset | None:
        name = f"{address.namespace}:{address.name}" if address.namespace else address.name
        self.asked.append(f"asset {name}")
        await asyncio.sleep(0)
        return await self._reader.read_asset(database, address)

    async def read_xmp(self, database: str, address: Address, names: frozenset[str]) -> Xmp | None:
        self.asked.append(f"xmp {address.name}")
        return await self._reader.read_xmp(database, address, names)

    async def read_folder(self, database: str, folder: Folder) -> Listing | None:
        self.asked.append(f"folder {show_folder(folder)}")
        return await self._reader.read_folder(database, folder)

    async def read_select(self, select: SelectRef) -> Sequence[Entry] | None:
        self.asked.append(f"select {show_folder(select.folder)}")
        return await self._reader.read_select(select)

    async def read_links(self, database: str, asset: Asset) -> tuple[Link, ...]:
        self.asked.append(f"links {asset.title}")
        return await self._reader.read_links(database, asset)

    async def read_entries(
        self, database: str, asset: Asset, *, in_doubt: bool = False
    ) -> ClipEntries:
        self.asked.append("entries")
        return await self._reader.read_entries(database, asset, in_doubt=in_doubt)

    async def read_channel(self, name: str) -> RssChannel | None:
        self.asked.append(f"channel {name}")
        return await self._reader.read_channel(name)

    async def has_database(self, name: str) -> bool:
        self.asked.append(f"database {name}")
        return await self._reader.has_database(name)

    async def read_names(self, kind: NamedKind, database: str = "") -> tuple[str, ...] | None:
        self.asked.append(f"names of {kind}s")
        return await self._reader.read_names(kind, database)

    def fresh(self, *, homes: bool = False) -> WorldReader:
        return WorldReader(self.server, self._spec)


def read_after(target: Target, reader: Reader) -> LiveTarget:
    """Read a target after its run, as verification does."""
    effects = [effect for request in target.effects for effect in request]
    things = things_to_verify(target, effects)
    return asyncio.run(
        read_again(reader.fresh(homes=True), SharedReads(), target, len(target.requests), things)
    )


def why_not(target: Target, reader: Reader, index: int = 0, secrets: Secrets | None = None) -> str:
    """Return why a request must not be sent any more; empty: it may be."""
    effects = [effect for request in target.effects[index:] for effect in request]
    touched = [effect.thing for effect in effects]
    things = (*target.depends_on.things, *touched, *held_things(target, effects))
    fresh = reader.fresh(homes=True)
    try:
        live = asyncio.run(read_again(fresh, SharedReads(), target, index, things))
    except AnotherClipError as error:
        return error.message
    if target.kind == "asset" and live.asset is None:
        return "it no longer exists"
    if live.asset is not None:
        why = asyncio.run(why_title_is_taken(target, fresh, live.asset))
        if why is not None:
            return why
    found: Guard = guard(target, index, live, secrets or Secrets())
    return found.why


@dataclass
class Stage:
    """A server, its inventory entry and a ledger: plan, apply and verify as the whole product does."""

    server: Server
    spec: ServerSpec
    memory: DictMemory = field(default_factory=DictMemory)
    reader: WorldReader = field(init=False)
    disk: DictDisk = field(default_factory=lambda: DictDisk())

    def __post_init__(self) -> None:
        self.reader = WorldReader(self.server, self.spec)

    def plan(self, *intents: Intent, forks: int = 4, **options: Any) -> Survey:
        """Plan; ``options`` are parts of the context."""
        self.reader = WorldReader(self.server, self.spec)
        context = SurveyContext(self.spec, self.reader, self.memory, self.disk.sha256, **options)
        return asyncio.run(survey(intents, context, forks=forks))

    def asset(self, title: str) -> Asset | None:
        """Read a clip of the server as it is now."""
        reader = WorldReader(self.server, self.spec)
        return asyncio.run(reader.read_asset("NEWS", Address(title)))

    def apply(self, found: Survey) -> list[Difference]:
        """Send all requests; return what is not as desired when it is read again."""
        differences: list[Difference] = []
        for target in found.targets:
            assert target.error is None, target.error
            for index, request in enumerate(target.requests):
                if target.kind == "asset":
                    assert why_not(target, self.reader, index) == ""
                self._send(target, index, request)
            results = [RequestResult("done", 200)] * len(target.requests)
            verified = verify(target, results, read_after(target, self.reader))
            self.memory.remember(target.id, verified.remembered)
            differences += verified.differences
        return differences

    def _send(self, target: Target, index: int, request: Request) -> None:
        if request.dest is None:
            self.server.apply(request)
            self.memory.remember(target.id, run_items(request))
            return
        self.disk.files[request.dest] = "0" * 64
        self.memory.remember(target.id, download_items(target, index, "0" * 64))


def stage(
    *clips: Clip,
    dialect: Dialect | None = None,
    version: tuple[int, ...] | None = None,
    **server: Any,
) -> Stage:
    made = Server({clip.title: clip for clip in clips}, dialect=dialect or Dialect(), **server)
    spec = ServerSpec("studio-a", URL, version=version, dialect=made.dialect)
    return Stage(made, spec)
