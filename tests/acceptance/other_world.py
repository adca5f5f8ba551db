"""What the second media server holds, and how it may behave: written from the interface and the field notes alone.

It shares no code and no thought with the simulator, so that it does not share its mistakes. Each habit is one way in
which another team may read what the interface leaves open; the first value is the plainest.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Any

LINK_FIELDS = ("type", "comment", "layer", "first_frame", "last_frame", "icon_pos", *(f"user_{n}" for n in range(8)))
MARKER_FIELDS = ("user", "title", "comment", "track", "keywords", "rating")

Clip = dict[str, Any]
Folder = tuple[str, ...]


@dataclass(frozen=True)
class Habits:
    """How the server answers where the interface is silent."""

    attrs: str = "full"  # full (link fields too), documented, sparse, untitled
    listing: str = "deep"  # deep, chain, flat, level (clips of the asked folder alone), dbroot
    listing_attrs: str = "all"  # all, few
    query_root: str = "path"  # path, database, slash, none
    envelope: str = "plain"  # wrapped, stray, cp1251, crlf, namespace, bom, nodecl, prefixed, comment
    xmp: str = "attr"  # attr, named, elements, nested, lines, rdf, text
    xmp_ask: str = "any"  # any, field (400 without), field_empty (nothing without), all (ignores field)
    errors: str = "status"  # status, text (200), html, xml (200)
    bodies: str = ""  # what commands answer
    seg_title: str = "child"  # child, name, both, auto (a name of its own beside the title)
    seg_track: str = ""  # a track that every segment gets
    seg_clash: str = "refuse"  # refuse (an existing number), overwrite, overlap (refuses overlapping ones)
    keywords: bool = True  # segment keywords are shown
    marker_attrs: str = "filled"  # filled, all
    marker_unsent: str = "clear"  # clear, keep
    uid_start: int = 1
    track_case: str = "as"  # as, lower, joined
    rating_default: str = ""
    delete_answer: int = 200
    gone_answer: int = 404  # what deleting a thing that is not there answers
    twin: bool = False  # COPYLINK of what is there makes a second one
    links_id: bool = True
    link_lookup: bool = False  # a link's title finds the clip
    new_folder: bool = False  # COPYLINK makes the folder
    rss_guid: str = "item"  # item, file, stem
    rss_form: str = "rss"  # rss, atom, bare, untitled
    rss_text: str = "description"  # title, description, both
    rss_date: str = "as"  # as, rfc822
    wire: str = "kept"  # closed, rude (closes without a word), chunked, http10, untyped, gzip, html_typed
    head: bool = True
    times: str = "plain"  # plain, fraction
    numbers: str = "plain"  # plain, zeros, dot
    flag: str = "true"  # the word for finalized
    nfd: bool = False
    folder_attr: str = "plain"  # plain, slash, trailing, backslashes, database
    frame_time: int = 10  # digits
    reverse: bool = False  # attributes and children in another order
    decode_first: bool = False  # a path is decoded before it is split
    positions: str = "file"  # file, in


class Refusal(Exception):  # noqa: N818 - it becomes an answer
    """What the server refuses."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def not_found(what: str = "") -> Refusal:
    """The one error text that the interface names."""
    return Refusal(404, f"Object not found{what and ': '}{what}")


@dataclass
class World:
    """One database, ``NEWS``; a title names one clip. Channels by name."""

    clips: list[Clip] = field(default_factory=list)
    folders: set[Folder] = field(default_factory=set)
    rss: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    ids: int = 1000

    def make_folder(self, path: str) -> Folder:
        """Make a folder and all above it."""
        names = tuple(part for part in path.split("/") if part)
        self.folders |= {names[:end] for end in range(1, len(names) + 1)}
        return names

    def make_clip(self, title: str, folder: str = "Raw", *, frames: int = 45000, **more: Any) -> Clip:
        """Record a clip."""
        clip: Clip = {
            "title": title, "folder": self.make_folder(folder), "link_id": self.next_id(), "finalized": True,
            "frames": frames, "frame_time": "0.0400000000", "create_time": "2026-11-14T10:00:00", "fields": {},
            "xmp": {}, "segments": {}, "markers": {}, "links": [], "hires": "$(video_path)/x.mxf", "archive": "",
        }  # fmt: skip
        self.clips.append(clip | more)
        return self.clips[-1]

    def next_id(self) -> int:
        """Return an id that nothing has."""
        self.ids += 1
        return self.ids

    def find(self, title: str) -> Clip | None:
        """Return the clip of a title, however its accents are composed."""
        return next((clip for clip in self.clips if _nfc(clip["title"]) == _nfc(title)), None)


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def unescape(text: str) -> str:
    r"""Undo ``\/`` and ``\\`` (interface, «Folder»)."""
    return re.sub(r"\\([\\/])", r"\1", text)


def split_escaped(text: str) -> Folder:
    """Split a path at the slashes that are not part of a name."""
    return tuple(unescape(name) for name in re.findall(r"(?:[^\\/]|\\.)+", text, re.DOTALL))


def origin(habits: Habits, clip: Clip) -> int:
    """Return the frame from which the server counts positions."""
    return int(clip["fields"].get("first_frame") or 0) if habits.positions == "in" else 0
