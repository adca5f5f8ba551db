"""The state of the simulated server: databases, folders, clips, their entries, RSS channels.

A clip lives in one place, its home entry; every further entry is a link to it (interface "Link").
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any

from msauto.simulator.http.wire import FolderPath, folder_of_text

MIME_TYPES = {
    "Audio": 1,
    "Video": 2,
    "AudioVideo": 3,
    "StillImage": 4,
    "Text": 5,
    "Complex": 6,
    "Tape": 7,
    "Stream": 8,
    "Note": 9,
    "Graphics": 10,  # the only number the interface gives: "a graphic template has the value 10"
}


@dataclass(slots=True)
class SimMarker:
    """A key frame marker; `fields` holds user, title, comment, track, keywords, rating and any other."""

    uid: int
    pos: int
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class SimSegment:
    """A segment; its positions are frames of the file."""

    number: int
    start: int
    duration: int
    titles: list[str] = field(default_factory=list)
    name: str = ""
    track: str = ""
    rating: int = 0
    keywords: str = ""


@dataclass(slots=True, eq=False)
class SimClip:
    """One asset. `file` is where its high-resolution file is when it is on disk, see `hires`.

    `untold` names attributes that answers leave out, as `frame_time` of what has no frames.
    """

    rate: Fraction = Fraction(25)
    frames: int = 250
    mime_type: int = 3
    width: int = 1920
    height: int = 1080
    channels: int = 2
    sample_rate: int = 48000
    bps: int = 16
    orig_name: str = ""
    orig_type: str = "MXF"
    derived_from: str = ""
    create_time: str = "2026-11-13T10:00:00"
    rec_time: str = "2026-11-13T09:00:00"
    file: str = ""
    proxy: str = ""
    archive: str = ""
    online: bool = True
    online_at: float | None = None
    finalized: bool = True
    recording_since: float | None = None
    markers: list[SimMarker] = field(default_factory=list)
    segments: list[SimSegment] = field(default_factory=list)
    xmp: dict[str, list[str]] = field(default_factory=dict)
    params: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    partner: tuple[dict[str, str], ...] = ()
    entries: list[SimEntry] = field(default_factory=list)

    @property
    def home(self) -> SimEntry:
        """Where the clip lives."""
        return self.entries[0]

    @property
    def title(self) -> str:
        """The title of its home entry."""
        return self.entries[0].title

    @property
    def hires(self) -> str:
        """The path of the high-resolution file, empty while it is in the archive only."""
        restored = self.online_at is not None and time.time() >= self.online_at
        return self.file if self.online or restored else ""

    @property
    def length(self) -> int:
        """Its frames now: a clip that is being recorded grows."""
        if self.recording_since is None:
            return self.frames
        return self.frames + int(max(0.0, time.time() - self.recording_since) * self.rate)

    def segment(self, number: int) -> SimSegment | None:
        """The first segment with this number."""
        return next((segment for segment in self.segments if segment.number == number), None)

    def marker(self, uid: int) -> SimMarker | None:
        """The marker with this uid."""
        return next((marker for marker in self.markers if marker.uid == uid), None)

    def new_uid(self) -> int:
        """A uid that no marker of the clip has."""
        return max((marker.uid for marker in self.markers), default=0) + 1


_CLIP_FIELDS = {entry.name for entry in fields(SimClip)} - {"entries"}


@dataclass(slots=True, eq=False)
class SimEntry:
    """A clip's place in a folder; `fields` holds the link fields that were ever set (SETFIELD)."""

    link_id: int
    folder: FolderPath
    title: str
    clip: SimClip
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def is_home(self) -> bool:
        """Whether the clip lives here; otherwise this is a link."""
        return self.clip.entries[0] is self

    @property
    def first_frame(self) -> int:
        """The IN point, frames of the file."""
        return int(self.fields.get("first_frame") or 0)

    @property
    def last_frame(self) -> int:
        """The last frame shown, frames of the file."""
        return int(self.fields.get("last_frame") or max(0, self.clip.length - 1))


@dataclass(slots=True, eq=False)
class Folder:
    """A folder: the folders and entries in it, in the order they came."""

    name: str
    folders: dict[str, Folder] = field(default_factory=dict)
    entries: dict[int, SimEntry] = field(default_factory=dict)

    def walk(self) -> Iterator[SimEntry]:
        """All entries of the folder and of those below it."""
        yield from list(self.entries.values())
        for folder in list(self.folders.values()):
            yield from folder.walk()


@dataclass(slots=True, eq=False)
class SimDatabase:
    """A media database. `connectors` maps the configured metadata connectors to the bodies they were sent."""

    name: str
    root: Folder = field(default_factory=lambda: Folder(""))
    by_title: dict[str, list[SimEntry]] = field(default_factory=dict)
    connectors: dict[str, list[bytes]] = field(default_factory=dict)
    profiles: dict[str, tuple[int, int]] = field(default_factory=lambda: {"WP1": (320, 180), "WP2": (160, 90)})
    partner: bool = True
    next_link_id: int = 1

    def folder(self, path: str | FolderPath) -> Folder | None:
        """The folder at a path, or None."""
        folder: Folder | None = self.root
        for name in _path(path):
            folder = folder.folders.get(name) if folder else None
        return folder

    def make_folder(self, path: str | FolderPath) -> Folder:
        """The folder at a path, made with all above it where missing."""
        folder = self.root
        for name in _path(path):
            folder = folder.folders.setdefault(name, Folder(name))
        return folder

    def add_clip(self, title: str, folder: str | FolderPath = (), **attributes: Any) -> SimClip:
        """Add a clip in a folder (made where missing); attributes are those of Clip, `rate` also an int."""
        unknown = attributes.keys() - _CLIP_FIELDS
        if unknown:
            raise TypeError(f"not an attribute of a clip: {', '.join(sorted(unknown))}")
        attributes["rate"] = Fraction(attributes.get("rate", 25))
        clip = SimClip(**attributes)
        clip.file = clip.file or f"$(video_path)/{self.name}/{self.next_link_id:08d}.mxf"
        clip.orig_name = clip.orig_name or title
        self.add_entry(clip, folder, title)
        return clip

    def add_entry(self, clip: SimClip, folder: str | FolderPath, title: str, link_id: int | None = None) -> SimEntry:
        """Put a clip in a folder: its home when it is the first entry, a link otherwise."""
        path = _path(folder)
        entry = SimEntry(self.next_link_id if link_id is None else link_id, path, title, clip)
        self.next_link_id = max(self.next_link_id, entry.link_id) + 1
        clip.entries.append(entry)
        self._show(entry)
        return entry

    def remove_entry(self, entry: SimEntry) -> None:
        """Take one entry away; the home takes the whole clip."""
        if entry.is_home:
            self.remove_clip(entry.clip)
        else:
            self._hide(entry)
            entry.clip.entries.remove(entry)

    def remove_clip(self, clip: SimClip) -> None:
        """Take all entries of a clip out of the tree; who has it open by a handle still reads it."""
        for entry in clip.entries:
            self._hide(entry)

    def rename(self, entry: SimEntry, title: str) -> None:
        """Give an entry another title; the home entry's title is the clip's."""
        shown = self._hide(entry)
        entry.title = title
        if shown:
            self._show(entry)

    def move(self, entry: SimEntry, folder: str | FolderPath) -> None:
        """Move an entry to another folder, made where missing."""
        shown = self._hide(entry)
        entry.folder = _path(folder)
        if shown:
            self._show(entry)

    def find(self, title: str, any_case: bool = False) -> SimEntry | None:
        """The entry with a title; homes win over links (a title names the clip before its shortcuts)."""
        candidates = self.by_title.get(title.casefold(), ())
        matching = candidates if any_case else [entry for entry in candidates if entry.title == title]
        return next((entry for entry in matching if entry.is_home), next(iter(matching), None))

    def clip(self, title: str) -> SimClip:
        """The clip with a title; KeyError when there is none."""
        entry = self.find(title)
        if entry is None:
            raise KeyError(title)
        return entry.clip

    def clips(self) -> Iterator[SimClip]:
        """Every clip once."""
        return (entry.clip for entry in self.root.walk() if entry.is_home)

    def _show(self, entry: SimEntry) -> None:
        self.make_folder(entry.folder).entries[entry.link_id] = entry
        self.by_title.setdefault(entry.title.casefold(), []).append(entry)

    def _hide(self, entry: SimEntry) -> bool:
        """Take an entry out of the tree; False when it was not there, as a deleted clip read by its handle."""
        folder = self.folder(entry.folder)
        if folder is None or folder.entries.pop(entry.link_id, None) is None:
            return False
        key = entry.title.casefold()
        self.by_title[key].remove(entry)
        if not self.by_title[key]:
            del self.by_title[key]
        return True


@dataclass(slots=True)
class Item:
    """One data item of a channel: the file it came in, and what it says."""

    file: str
    body: bytes
    guid: str
    title: str = ""
    description: str = ""
    link: str = ""
    pub_date: str = ""


@dataclass(slots=True)
class SimChannel:
    """An RSS channel: a folder of files, shown in order."""

    name: str
    title: str = ""
    items: list[Item] = field(default_factory=list)


@dataclass(slots=True)
class ProgramCard:
    """A program card of the partner system: the folder linked with it, and its XMP fields."""

    folder: FolderPath
    xmp: dict[str, list[str]] = field(default_factory=dict)


@dataclass(slots=True)
class ServerState:
    """All that the server holds. `handles` maps identifiers of open files to clips, for `handle:<n>`."""

    databases: dict[str, SimDatabase] = field(default_factory=dict)
    channels: dict[str, SimChannel] = field(default_factory=dict)
    cards: dict[str, ProgramCard] = field(default_factory=dict)
    handles: dict[str, SimClip] = field(default_factory=dict)

    def add_database(self, name: str) -> SimDatabase:
        """The database of this name, made where missing."""
        return self.databases.setdefault(name, SimDatabase(name))

    def add_channel(self, name: str, title: str = "") -> SimChannel:
        """The channel of this name, made where missing."""
        return self.channels.setdefault(name, SimChannel(name, title or name))

    def add_clip(
        self, title: str, folder: str | FolderPath = (), *, database: str = "NEWS", **attributes: Any
    ) -> SimClip:
        """Add a clip to a database (made where missing); see Database.add_clip."""
        return self.add_database(database).add_clip(title, folder, **attributes)

    def size(self) -> int:
        """How many titles there are in all databases."""
        return sum(len(database.by_title) for database in self.databases.values())

    def clip(self, title: str, database: str = "NEWS") -> SimClip:
        """The clip with a title; KeyError when there is none."""
        return self.databases[database].clip(title)


def _path(folder: str | FolderPath) -> FolderPath:
    return folder_of_text(folder) if isinstance(folder, str) else folder
