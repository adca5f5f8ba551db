"""RSS items as files: the file name of a guid, and the form of a reported item (field notes, «feed service»).

A feed service turns a folder of ``.txt`` and ``.xml`` files into a channel. The channel shows no file names.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final, Literal

from msauto.model.live import RssItem

_FORBIDDEN: Final = re.compile(r'[<>:"/\\|?*]')
_DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
_DERIVED: Final = re.compile(r".*~[0-9a-f]{16}", re.DOTALL)
_LONGEST: Final = 200
"""The limit in bytes of a guid that is used as a file name: most file systems allow 255, with the ending."""
_DROPPED: Final = re.compile("\\A\ufeff")
_NOT_IN_A_NAME: Final = re.compile("[\x00-\x1f\x7f\ufeff]")


def default_file(guid: str, *, text: bool) -> str:
    """Return the file name of an item without one: the guid with an ending, if that is a safe file name.

    A guid that is not a safe file name, such as a URL, gives a readable part and a digest. No two guids give the same
    name: a guid that has the form of such a name gets a digest as well.

    >>> default_file("n-1", text=True), default_file("http://example.com/4711", text=False)
    ('n-1.txt', 'http-example.com-4711~582040e373ad51a1.xml')
    """
    stem = guid
    if not is_file_name(guid):
        exact = unicodedata.normalize("NFC", guid)
        readable = re.sub(r"[^\w.]+", "-", exact).strip("-._")[:40].rstrip("-._")
        stem = f"{readable}~{hashlib.sha256(exact.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
    return stem + (".txt" if text else ".xml")


def is_file_name(guid: str) -> bool:
    """Return whether a guid can be (the stem of) a file name on every file system."""
    return (
        guid.isprintable()
        and guid == guid.strip(" .")
        and 0 < len(guid.encode()) <= _LONGEST
        and not _FORBIDDEN.search(guid)
        and not _DEVICE.fullmatch(guid)
        and not _DERIVED.fullmatch(guid)
    )


def stem_of(file: str) -> str:
    """Return a file name without its ending."""
    return file.rpartition(".")[0] or file


def ending_of(file: str) -> str:
    """Return the ending of a file name, with its dot; empty if it has none."""
    return file[len(stem_of(file)) :]


def feed_stem(guid: str) -> str:
    """Return a guid without the ending of a feed's file; all other guids as they are."""
    return stem_of(guid) if guid.lower().endswith((".txt", ".xml")) else guid


def file_key(file: str) -> str:
    """Return a key that is equal for names of one file: some file systems ignore case and Unicode normalization."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", file).casefold())


def form_of(item: RssItem) -> Literal["text", "item"] | None:
    """Return whether an item came in a text or in an item document; ``None`` if it may be either.

    In a text, the description is the whole text and the title its first line. Only a document can have a link, a date,
    or a description that does not begin with the title.
    """
    if (item.link or "").strip() or (item.pub_date or "").strip():
        return "item"
    title, description = ((text or "").replace("\r\n", "\n").strip() for text in (item.title, item.description))
    if not title or not description:
        return None
    return "text" if description == title or description.startswith(f"{title}\n") else "item"


def bad_character(text: str, *, line: bool = False) -> tuple[int, str] | None:
    """Return the place (from 1) and the name of the first character that a channel drops; ``None`` without one.

    A byte order mark at the beginning is read as the encoding of the file. ``line``: a name of one line, without tabs
    and line ends. Characters that XML cannot represent: :mod:`msauto.interface.fields`.
    """
    found = (_NOT_IN_A_NAME if line else _DROPPED).search(text)
    return None if found is None else (found.start() + 1, f"U+{ord(found[0]):04X}")
