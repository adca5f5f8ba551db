"""The state of the simulated server: databases, folders, clips, their entries, RSS channels.

The first entry of a clip is its home. Every further entry is a link to it (interface, «Link»).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any
from unicodedata import normalize

from msgspec import Struct, field

from msauto.plugins.simulator.embedded.dialect import SimDialect
from msauto.plugins.simulator.embedded.wire import FolderPath, ResourceNotFoundError, folder_of_text

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
    "Graphics": 10,  # the only number that the interface gives (interface, «Asset»)
}

# The link fields that a clip's XML shows; True: SETFIELD takes only a number.
LINK_FIELDS = {"type": False, "comment": False, "layer": True, "icon_pos": True}
LINK_FIELDS |= {f"user_{number}": False for number in range(8)}
_DEFAULT = SimDialect()
_KEY_ATTRIBUTES = (
    "orig_name",
    "orig_type",
    "derived_from",
    "create_time",
    "rec_time",
    "hires",
    "proxy",
    "archive",
)


class SimMarker(Struct):
    """A key frame marker; `fields` contains user, title, comment, track, keywords, rating and unknown fields."""

    uid: int
    pos: int
    fields: dict[str, str] = {}


class SimSegment(Struct):
    """A segment; its positions are frames of the file."""

    number: int
    start: int
    duration: int
    titles: list[str] = []
    name: str = ""
    track: str = ""
    rating: int = 0
    keywords: str = ""


class SimClip(Struct, eq=False):
    """One asset. `file` is the path of its high-resolution file while that is on disk, see `hires`.

    `omitted` names attributes that answers leave out, such as `frame_time` if there are no frames. `shown` has texts
    that answers hold in place of the true ones; `listed` has those of listings alone, which can lag.
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
    markers: list[SimMarker] = []
    segments: list[SimSegment] = []
    xmp: dict[str, list[str]] = {}
    params: tuple[str, ...] = ()
    omitted: tuple[str, ...] = ()
    shown: dict[str, str] = {}
    listed: dict[str, str] = {}
    partner: tuple[dict[str, str], ...] = ()
    entries: list[SimEntry] = []

    @property
    def home(self) -> SimEntry:
        """The entry of the clip itself; all others are links."""
        return self.entries[0]

    @property
    def title(self) -> str:
        """The title of its home entry."""
        return self.entries[0].title

    @property
    def hires(self) -> str:
        """The path of the high-resolution file; empty while only the archive has it."""
        restored = self.online_at is not None and time.time() >= self.online_at
        return self.file if self.online or restored else ""

    @property
    def length(self) -> int:
        """The current number of frames: a clip that is being recorded grows."""
        if self.recording_since is None:
            return self.frames
        return self.frames + int(max(0.0, time.time() - self.recording_since) * self.rate)

    def segment(self, number: int) -> SimSegment | None:
        """Return the first segment with this number."""
        for segment in self.segments:
            if segment.number == number:
                return segment
        return None

    def marker(self, uid: int) -> SimMarker | None:
        """Return the marker with this uid."""
        for marker in self.markers:
            if marker.uid == uid:
                return marker
        return None

    def new_uid(self, rule: str = "above") -> int:
        """Return a uid that no marker has, by the dialect's `marker_uid`."""
        uids = {marker.uid for marker in self.markers}
        uid = 1
        if rule == "above":
            uid = max(uids, default=0) + 1
        while uid in uids:
            uid += 1
        return uid


class SimEntry(Struct, eq=False):
    """A clip in a folder; `fields` contains the link fields that were set (SETFIELD)."""

    link_id: int
    folder: FolderPath
    title: str
    clip: SimClip
    fields: dict[str, str] = {}

    @property
    def is_home(self) -> bool:
        """Whether this is the clip itself and not a link."""
        return self.clip.entries[0] is self

    @property
    def first_frame(self) -> int:
        """The IN point, frames of the file."""
        return int(self.fields.get("first_frame") or 0)

    @property
    def last_frame(self) -> int:
        """The last frame shown, frames of the file."""
        return int(self.fields.get("last_frame") or max(0, self.clip.length - 1))


class Folder(Struct, eq=False):
    """A folder: the folders and entries in it, in the order of their creation."""

    name: str
    folders: dict[str, Folder] = {}
    entries: dict[int, SimEntry] = {}

    def walk(self) -> Iterator[SimEntry]:
        """Yield all entries of the folder and of its subfolders."""
        yield from list(self.entries.values())
        for folder in list(self.folders.values()):
            yield from folder.walk()


class SimDatabase(Struct, eq=False):
    """A media database. `connectors` maps each configured metadata connector to the bodies it received."""

    name: str
    root: Folder = field(default_factory=lambda: Folder(""))
    by_title: dict[str, list[SimEntry]] = {}
    connectors: dict[str, list[bytes]] = {}
    profiles: list[str] = field(default_factory=lambda: ["WP1", "WP2"])
    partner: bool = True
    next_link_id: int = 1

    def folder(self, path: str | FolderPath) -> Folder | None:
        """Return the folder at a path, or None."""
        folder: Folder | None = self.root
        for name in _path(path):
            folder = folder.folders.get(name) if folder else None
        return folder

    def make_folder(self, path: str | FolderPath) -> Folder:
        """Return the folder at a path; missing folders are created."""
        folder = self.root
        for name in _path(path):
            folder = folder.folders.setdefault(name, Folder(name))
        return folder

    def add_clip(self, title: str, folder: str | FolderPath = (), **attributes: Any) -> SimClip:
        """Add a clip in a folder, created if missing; the attributes are those of SimClip, `rate` also an int."""
        clip = SimClip(**attributes)
        clip.rate = Fraction(clip.rate)
        clip.orig_name = clip.orig_name or title
        return self.put_clip(clip, folder, title)

    def put_clip(
        self, clip: SimClip, folder: str | FolderPath, title: str, link_id: int | None = None
    ) -> SimClip:
        """Put a clip without entries in its home, and give it a file if it has none."""
        clip.file = clip.file or f"$(video_path)/{self.name}/{self.next_link_id:08d}.mxf"
        self.add_entry(clip, folder, title, link_id)
        return clip

    def add_entry(
        self, clip: SimClip, folder: str | FolderPath, title: str, link_id: int | None = None
    ) -> SimEntry:
        """Put a clip in a folder. The first entry of a clip is its home, a further one is a link."""
        number = self.next_link_id if link_id is None else link_id
        entry = SimEntry(number, _path(folder), title, clip)
        self.next_link_id = max(self.next_link_id, number) + 1
        clip.entries.append(entry)
        self._show(entry)
        return entry

    def remove_link(self, entry: SimEntry) -> None:
        """Remove a link; the clip stays."""
        self._hide(entry)
        entry.clip.entries.remove(entry)

    def remove_clip(self, clip: SimClip) -> None:
        """Remove all entries of a clip from the tree; a handle still reads it (interface, «States»)."""
        for entry in clip.entries:
            self._hide(entry)

    def change_entry(
        self, entry: SimEntry, title: str | None = None, folder: FolderPath | None = None
    ) -> None:
        """Rename or move an entry; a missing folder is created."""
        shown = self._hide(entry)
        if title is not None:
            entry.title = title
        if folder is not None:
            entry.folder = folder
        if shown:
            self._show(entry)

    def find(self, title: str) -> SimEntry | None:
        """Return the entry with a title, or None; a clip wins over a link."""
        return next(iter(self.find_all(title)), None)

    def find_all(self, title: str, dialect: SimDialect = _DEFAULT) -> list[SimEntry]:
        """Return the entries that a title finds by the dialect: clips, then links."""
        clips: list[SimEntry] = []
        links: list[SimEntry] = []
        for entry in self.by_title.get(_folded(title), ()):
            if not _is_title(entry.title, title, dialect.title_case):
                continue
            if entry.is_home:
                clips.append(entry)
            else:
                links += self._found_by_link(entry, dialect.link_titles)
        return clips + links

    def _found_by_link(self, link: SimEntry, rule: str) -> list[SimEntry]:
        """Return what the title of a link finds, by the dialect's `link_titles`."""
        match rule:
            case "found":
                return [link]
            case "clip":
                return [link.clip.home]
            case "other":
                return [clip.home for clip in self.clips() if clip is not link.clip][:1]
        return []

    def clip(self, title: str) -> SimClip:
        """Return the clip with a title; KeyError if it does not exist."""
        entry = self.find(title)
        if entry is None:
            raise KeyError(title)
        return entry.clip

    def clips(self) -> Iterator[SimClip]:
        """Yield every clip once."""
        for entry in self.root.walk():
            if entry.is_home:
                yield entry.clip

    def _show(self, entry: SimEntry) -> None:
        self.make_folder(entry.folder).entries[entry.link_id] = entry
        self.by_title.setdefault(_folded(entry.title), []).append(entry)

    def _hide(self, entry: SimEntry) -> bool:
        """Remove an entry from the tree; False if it was not in the tree, such as a deleted clip read by a handle."""
        folder = self.folder(entry.folder)
        if folder is None or folder.entries.pop(entry.link_id, None) is None:
            return False
        key = _folded(entry.title)
        self.by_title[key].remove(entry)
        if not self.by_title[key]:
            del self.by_title[key]
        return True


class Item(Struct):
    """One item of a channel: its file, and the content of the file."""

    file: str
    body: bytes
    guid: str
    title: str = ""
    description: str = ""
    link: str = ""
    pub_date: str = ""


class SimChannel(Struct):
    """An RSS channel: a folder of files, shown in order."""

    name: str
    title: str = ""
    items: list[Item] = []


class ProgramCard(Struct):
    """A program card of the partner system: the folder linked with it, and its XMP fields."""

    folder: FolderPath
    xmp: dict[str, list[str]] = {}


class ServerState(Struct):
    """The whole content of the server. `handles` maps identifiers of open files to clips, for `handle:<n>`."""

    databases: dict[str, SimDatabase] = {}
    channels: dict[str, SimChannel] = {}
    cards: dict[str, ProgramCard] = {}
    handles: dict[str, SimClip] = {}

    def add_database(self, name: str) -> SimDatabase:
        """Return the database with this name; created if missing."""
        return self.databases.setdefault(name, SimDatabase(name))

    def add_channel(self, name: str, title: str = "") -> SimChannel:
        """Return the channel with this name; created if missing."""
        return self.channels.setdefault(name, SimChannel(name, title or name))

    def add_clip(
        self,
        title: str,
        folder: str | FolderPath = (),
        *,
        database: str = "NEWS",
        **attributes: Any,
    ) -> SimClip:
        """Add a clip to a database, which is created if missing; see SimDatabase.add_clip."""
        return self.add_database(database).add_clip(title, folder, **attributes)

    def find(
        self, database: SimDatabase, namespace: str | None, identifier: str, dialect: SimDialect
    ) -> list[SimEntry]:
        """Return the entries of a title, a handle, a link id or a unique value of a key field (interface, «Addresses»).

        The first is the one that the request means. Raises ResourceNotFoundError.
        """
        entries: list[SimEntry] = []
        if namespace is None or namespace == "title":
            entries = database.find_all(identifier, dialect)
        elif namespace == "handle":
            if identifier in self.handles:
                entries = [self.handles[identifier].home]
        elif namespace == "link_id":
            entries = [entry for entry in database.root.walk() if str(entry.link_id) == identifier]
        else:
            entries = [
                clip.home for clip in database.clips() if _has_key(clip, namespace, identifier)
            ]
        if not entries:
            raise ResourceNotFoundError
        return entries

    def clip(self, title: str, database: str = "NEWS") -> SimClip:
        """Return the clip with a title; KeyError if it does not exist."""
        return self.databases[database].clip(title)


def _is_title(shown: str, asked: str, title_case: str) -> bool:
    """Whether a title finds a clip whose folded title is the same, by the dialect."""
    if title_case == "exact":
        return shown == asked
    return title_case == "folded" or normalize("NFC", shown) == normalize("NFC", asked)


def _folded(title: str) -> str:
    return normalize("NFC", title).casefold()


def _has_key(clip: SimClip, key: str, value: str) -> bool:
    if key in _KEY_ATTRIBUTES:
        return bool(getattr(clip, key) == value)
    return value in clip.xmp.get(key, ()) or clip.home.fields.get(key) == value


def _path(folder: str | FolderPath) -> FolderPath:
    return folder_of_text(folder) if isinstance(folder, str) else folder
