"""The StoredTree as it arrives: folders, and in each its clips, packed (interface, «Asset (clip)»)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msauto.server.parsers.attrs import read_flag, read_integer
from msauto.server.parsers.entries import EntryPacker, PackedClips
from msauto.server.parsers.xml import MOST_ATTRIBUTES, has_dtd, name_of, plain_value, too_many_attributes, unreadable

_MOST_DEEP: Final = 256
_MOST_TEXT: Final = 10_000_000
_MOST_ATTRS: Final = 10_000
_MOST_CLIPS: Final = 5_000_000
_MOST_FOLDERS: Final = 1_000_000  # each takes some 300 bytes of memory, and nine of an answer
"""Bounds far beyond any honest listing; the first two are libxml2's own, which it keeps where it builds a tree."""


class Node:
    """A Folder element, or the StoredTree itself (no parent)."""

    __slots__ = ("clips", "folders", "name", "parent")

    def __init__(self, name: str, parent: Node | None = None) -> None:
        self.name = name
        self.parent = parent
        self.folders: list[Node] = []
        self.clips = PackedClips()


class StoredTree:
    """Takes the events of a document, and keeps its first StoredTree as ``tree``.

    Elements that the interface does not know are left out with all that is in them, and so is what is called Clip or
    Folder inside them. Of a clip its attributes and its named texts are kept.
    """

    def __init__(self) -> None:
        self.tree: Node | None = None
        self.whole = False
        self.data: Callable[[str], object]
        self._texts: list[str] = []
        self.data = self._texts.append
        self._here: Node | None = None
        self._depth = 0
        self._hidden = 0  # depth inside elements that the interface does not know
        self._clip = 0  # depth inside a clip
        self._count = 0
        self._folders = 0
        self._packer = EntryPacker()
        self._own: Mapping[str, str] = {}
        self._found: dict[str, str] = {}
        self._tag = ""  # of the clip's child, and its attributes
        self._attributes: Mapping[str, str] = {}
        self._leaf = True

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Take the start of an element."""
        if len(attributes) > MOST_ATTRIBUTES:
            raise too_many_attributes()
        if self._clip:  # first, and short: nearly all elements are texts of a clip
            self._clip += 1
            if self._clip == 2:
                self._tag, self._attributes, self._leaf = tag, attributes, True
                self._texts.clear()
            else:
                self._leaf = False
                self._check_depth(self._depth + self._clip)
            return
        self._depth += 1
        self._check_depth(self._depth)
        if self._hidden:
            self._hidden += 1
        else:
            self._start(name_of(tag), attributes)

    def end(self, _: str) -> None:
        """Take the end of an element."""
        if self._clip > 1:
            self._clip -= 1
            if self._clip == 1:
                self._end_child()
            return
        self._depth -= 1
        self.whole = not self._depth
        if self._clip:
            self._clip = 0
            self._end_clip()
        elif self._hidden:
            self._hidden -= 1
        elif self._here is not None:
            self._here = self._here.parent

    def doctype(self, *_: object) -> None:
        """Refuse a DTD that stands so far behind that it was not seen before."""
        raise has_dtd()

    def close(self) -> None:
        """Nothing is left to do."""

    def check_text(self) -> None:
        """Join the text that came so far, and raise where it is more than any honest one."""
        if len(self._texts) > 1:
            self._texts[:] = ["".join(self._texts)]
        if self._texts and len(self._texts[0]) > _MOST_TEXT:
            raise unreadable(f"a text in the answer is longer than {_MOST_TEXT} signs")

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._texts.clear()
        if self._here is None:
            if self.tree is None and name == "StoredTree":
                self.tree = self._here = Node("")
        elif name == "Folder":
            self._counted_folder()
            folder = Node(attributes_of(attributes).get("name", ""), self._here)
            self._here.folders.append(folder)
            self._here = folder
        elif name == "Clip":
            self._counted()
            self._clip, self._own, self._found = 1, attributes, {}
        else:
            self._hidden = 1

    @staticmethod
    def _check_depth(depth: int) -> None:
        if depth > _MOST_DEEP:
            raise unreadable(f"the elements of the answer stand in each other to a depth of more than {_MOST_DEEP}")

    def _counted(self) -> None:
        self._count += 1
        if self._count > _MOST_CLIPS:
            raise unreadable(
                f"the answer lists more than {_MOST_CLIPS} clips and folders", "list single folders instead"
            )

    def _counted_folder(self) -> None:
        self._counted()
        self._folders += 1
        if self._folders > _MOST_FOLDERS:
            raise unreadable(f"the answer lists more than {_MOST_FOLDERS} folders", "list single folders instead")

    def _end_child(self) -> None:
        """Keep a named text: as :func:`msauto.server.parsers.attrs.read_attrs`, but of events."""
        tag, own = self._tag, self._attributes
        text = "".join(self._texts)
        if tag == "Attr" and self._leaf and (name := own.get("name")) is not None:
            # As the interface has it: nearly always, and fast.
            self._found[plain_value(name)] = text or plain_value(own.get("value") or "")
        else:
            self._end_other(name_of(tag), attributes_of(own), text)
        if len(self._found) > _MOST_ATTRS:
            raise unreadable(f"a clip of the answer has more than {_MOST_ATTRS} attributes")

    def _end_other(self, kind: str, own: Mapping[str, str], text: str) -> None:
        if kind.lower() == "attr" and "name" in own:
            self._found[own["name"]] = text or own.get("value", "")
        elif self._leaf:
            self._found.setdefault(kind, text or own.get("value", ""))

    def _end_clip(self) -> None:
        own = attributes_of(self._own)
        link_id, finalized = read_integer(own.pop("link_id", None)), read_flag(own.pop("finalized", None))
        packed = self._packer.pack(link_id, finalized, own | self._found if own else self._found)
        if self._here is not None:
            self._here.clips.add(*packed)


def attributes_of(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return attributes by local name, their values as they are meant."""
    return {name_of(name): plain_value(value) for name, value in attributes.items()}
