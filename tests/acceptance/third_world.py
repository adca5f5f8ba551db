"""What the third media server holds, and what its commands make of it; written from the interface's text alone.

The second server differs in the form of its answers, this one in what it does. Writes show late, are ignored or cut.
Names are looked up without regard to case. The server chooses the names of items.
"""

from __future__ import annotations

import hashlib
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, field

Folder = tuple[str, ...]


@dataclass(frozen=True)
class Ways:
    """One choice for each thing that the interface does not show."""

    close: str = "silent"  # silent: a kept connection is dropped without a word; told
    missing: tuple[int, str] = (404, "")
    accepted: tuple[int, str] = (200, "")
    late: float = 0.0  # seconds until a write shows
    swallow: str = ""  # a command that is accepted and does nothing
    most: int = 0  # letters of a field that are kept
    casefold: bool = False
    trim: bool = False
    keys: bool = True  # NS:ID, the colon encoded or not
    uids: int = 1  # how far apart new ones are
    marker_keeps: bool = True
    segment_again: str = "overwrite"  # refuse, twin
    copy_again: str = "twin"  # same, refuse
    separator: str = ","
    xmp_values: bool = True  # each in an element of its own
    rss: str = "rss"  # atom, rdf
    guid: str = "file"  # item, stem, hash, link, none
    rss_again: str = "replace"  # twin
    channels: str = "names"  # text, html


class NoError(Exception):
    """The server will not."""


class MissingError(NoError):
    """There is no such thing."""


@dataclass
class Clip:
    frames: int
    markers: dict[int, dict[str, str]] = field(default_factory=dict)
    segments: list[tuple[int, int, int, str]] = field(default_factory=list)
    xmp: dict[str, list[str]] = field(default_factory=dict)
    hires: str = "$(video_path)/a.mxf"
    archive: str = ""
    exports: int = 0


@dataclass
class Entry:
    """A clip in a folder: its home, or a link."""

    link_id: int
    folder: Folder
    clip: Clip
    fields: dict[str, str]
    home: bool = True


@dataclass
class World:
    """One database, NEWS, and one channel, ticker."""

    ways: Ways
    folders: set[Folder] = field(default_factory=lambda: {()})
    entries: list[Entry] = field(default_factory=list)
    items: list[dict[str, str]] = field(default_factory=list)
    ids: int = 700
    uid: int = 40

    def folder(self, path: str) -> Folder:
        names = tuple(path.split("/"))
        self.folders |= {names[:end] for end in range(1, len(names) + 1)}
        return names

    def clip(self, title: str, folder: str, frames: int = 25000) -> Clip:
        clip = Clip(frames)
        fields = {"clip_name": title, "first_frame": "0", "last_frame": str(frames - 1)}
        self.entries.append(Entry(self._id(), self.folder(folder), clip, fields))
        return clip

    def find(self, name: str) -> Entry:
        desired = self._key(name)
        if self.ways.keys and name.startswith("title:"):
            desired = self._key(name.removeprefix("title:"))
        found = next((entry for entry in self.entries if self._key(entry.fields["clip_name"]) == desired), None)
        if found is None:
            raise MissingError("Object not found")
        return found

    def _key(self, title: str) -> str:
        title = title.strip() if self.ways.trim else title
        return title.casefold() if self.ways.casefold else title

    def _id(self) -> int:
        self.ids += 7
        return self.ids

    def _kept(self, text: str) -> str:
        text = text.strip() if self.ways.trim else text
        return text[: self.ways.most] if self.ways.most else text

    # Commands on assets ----------------------------------------------------------------------------------------

    def run(self, name: str, given: dict[str, str]) -> None:
        entry = self.find(name)
        command = given.pop("command")
        if command != self.ways.swallow:
            _COMMANDS[command](self, entry, given)

    def restore(self, entry: Entry, _: Mapping[str, str]) -> None:
        entry.clip.hires = "$(video_path)/back.mxf"

    def copy_link(self, entry: Entry, given: Mapping[str, str]) -> None:
        folder = tuple(given["folder"].split("/"))
        if folder not in self.folders:
            raise MissingError("no such folder")
        title = self._kept(given["title"])
        there = any(each.folder == folder and each.fields["clip_name"] == title for each in self.entries)
        if there and self.ways.copy_again == "refuse":
            raise NoError("already there")
        if not there or self.ways.copy_again == "twin":
            fields = entry.fields | {"clip_name": title}
            self.entries.append(Entry(self._id(), folder, entry.clip, fields, home=False))

    def set_field(self, entry: Entry, given: Mapping[str, str]) -> None:
        entry.fields[given["name"]] = self._kept(given["val"])

    def set_user_fields(self, entry: Entry, given: Mapping[str, str]) -> None:
        for name, value in given.items():
            entry.clip.xmp[name] = value.split(self.ways.separator) if value else []

    def create_segment(self, entry: Entry, given: Mapping[str, str]) -> None:
        number = int(given["seg_num"])
        there = any(segment[0] == number for segment in entry.clip.segments)
        if there and self.ways.segment_again == "refuse":
            raise NoError("there is a segment of this number")
        if there and self.ways.segment_again == "overwrite":
            self.delete_segment(entry, given)
        made = (number, int(given["start_frame"]), int(given["duration"]), given.get("title", ""))
        entry.clip.segments.append(made)

    def create_segmentation(self, entry: Entry, given: Mapping[str, str]) -> None:
        step, frames = int(given["duration"]), entry.clip.frames
        starts = enumerate(range(0, frames, step), 1)
        title = given.get("title", "")
        entry.clip.segments = [(number, at, min(step, frames - at), title) for number, at in starts]

    def delete_segment(self, entry: Entry, given: Mapping[str, str]) -> None:
        left = [segment for segment in entry.clip.segments if segment[0] != int(given["seg_num"])]
        if left == entry.clip.segments:
            raise MissingError("no such segment")
        entry.clip.segments = left

    def create_marker(self, entry: Entry, given: dict[str, str]) -> None:
        uid = int(given.pop("uid"))
        if "frame" in given:
            given["pos"] = given.pop("frame")
        if uid == -1:
            self.uid += self.ways.uids
            uid, old = self.uid, {}
        elif uid in entry.clip.markers:
            old = entry.clip.markers[uid] if self.ways.marker_keeps else {}
        else:
            raise MissingError("no such marker")
        entry.clip.markers[uid] = {"pos": "0", "track": "General"} | old | given

    def delete_marker(self, entry: Entry, given: Mapping[str, str]) -> None:
        if entry.clip.markers.pop(int(given["uid"]), None) is None:
            raise MissingError("no such marker")

    def export(self, entry: Entry, _: Mapping[str, str]) -> None:
        entry.clip.exports += 1

    def delete(self, name: str) -> None:
        gone = self.find(name)
        self.entries = [
            each for each in self.entries if each is not gone and not (gone.home and each.clip is gone.clip)
        ]

    # The channel -----------------------------------------------------------------------------------------------

    def put_item(self, file: str, body: bytes) -> None:
        item = {"file": file, "title": body.decode()}
        if file.endswith(".xml"):
            item |= {child.tag: child.text or "" for child in ET.fromstring(body).iter()}
        stem = file.rpartition(".")[0]
        item["guid"] = {
            "item": item.get("guid") or stem,
            "file": file,
            "stem": stem,
            "hash": hashlib.sha256(file.encode()).hexdigest()[:32],
            "link": f"http://feed/{stem}",
            "none": "",
        }[self.ways.guid]
        if self.ways.rss_again == "replace":
            self.items = [each for each in self.items if each["file"] != file]
        self.items.insert(0, item)

    def delete_item(self, guid: str) -> None:
        left = [each for each in self.items if each["guid"] != guid]
        if left == self.items:
            raise MissingError("no such item")
        self.items = left


_COMMANDS = {
    "RESTORE": World.restore,
    "COPYLINK": World.copy_link,
    "SETFIELD": World.set_field,
    "SETUSERFIELDS": World.set_user_fields,
    "CREATESEGMENT": World.create_segment,
    "CREATESEGMENTATION": World.create_segmentation,
    "DELETESEGMENT": World.delete_segment,
    "CREATEMARKER": World.create_marker,
    "DELETEMARKER": World.delete_marker,
    "PARTNER_EXPORT_VERSION": World.export,
}
