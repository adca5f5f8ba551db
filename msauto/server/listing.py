"""Listings: StoredTree and folderlist, mam, and the list of databases (interface, «Asset (clip)»)."""

from __future__ import annotations

import asyncio
import unicodedata
from collections import Counter
from collections.abc import Awaitable, Callable, ItemsView, Iterator, Mapping
from typing import Final

from msgspec import structs

from msauto.errors import UnreadableError
from msauto.model.live import Database, Entry, Folder, Listing, MamAsset, parse_folder, whole
from msauto.server.parsers import read_attrs, read_flag
from msauto.server.xml import (
    MAX_LISTED_NODES,
    PIECE,
    Element,
    StreamedDocument,
    attributes,
    find_roots,
    local,
    parse_document,
    text_of,
    unreadable,
)

_ERROR_BYTES: Final = 2**20
_MOST_PARTS: Final = 10_000
_MOST_CLIPS: Final = 5_000_000
_MOST_OTHERS: Final = 2_000_000  # each takes some 4 µs, and eight bytes of an answer
_MOST_FOLDERS: Final = 1_000_000  # each takes some 300 bytes of memory, and nine of an answer
_TITLES: Final = ("title", "clip_name", "name")


class FolderNode:
    """A folder of a StoredTree, or the StoredTree itself; its clips in order, whose folders are not known yet."""

    __slots__ = ("clips", "folders", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.folders: list[FolderNode] = []
        self.clips: list[Entry] = []


class ListingReading:
    """Reads a StoredTree (or a folderlist) while it arrives; all folders become absolute.

    ``asked`` is the folder of the request. Folders and clips are taken from the tree of elements, and removed from it,
    as soon as they have ended. Unknown elements are skipped with their content. ``piece`` is the number of bytes parsed
    in one step.
    """

    def __init__(self, database: str, asked: Folder, charset: str | None = None, *, piece: int = PIECE) -> None:
        self._database = database
        self._asked = asked
        self._packer = AttributePacker()
        self._document = StreamedDocument(self._take_ended, charset, piece=piece)
        self._tree: FolderNode | None = None
        self._open: dict[Element, FolderNode] = {}  # the StoredTree and its folders, begun and perhaps not ended
        self._counts = Counter[str]()

    def feed(self, data: bytes) -> None:
        """Take the next bytes. Raises ``UnreadableError``."""
        self._document.feed(data)

    def close(self) -> Listing:
        """Return the listing. Raises ``UnreadableError``, also for an answer that ended too early."""
        return self.of_element(self._document.close())

    def of_element(self, root: Element) -> Listing:
        """Return the listing in a complete element. Raises ``UnreadableError``."""
        self._take(root, None, ended=True)
        if self._tree is None:
            raise unreadable("the answer is not a listing: it has no <StoredTree>")
        return _collected(_asked_node(self._tree, self._database, self._asked), self._asked)

    def _take_ended(self, root: Element) -> None:
        self._take(root, None, ended=False)

    def _take(self, element: Element, parent: FolderNode | None, *, ended: bool) -> None:
        """Take what has ended of an element that is not a clip, or all of it. ``parent`` is the node around it."""
        node = self._open.get(element)
        if node is None and (node := self._begin(element, parent)) is not None:
            self._open[element] = node
        below = list(element)
        for child in below if ended else below[:-1]:
            self._take_child(child, node, ended=True)
        if ended:
            self._open.pop(element, None)
            return
        del element[:-1]
        for child in element:  # the last: it may be open
            self._take_child(child, node, ended=False)

    def _take_child(self, child: Element, node: FolderNode | None, *, ended: bool) -> None:
        kind = local(child)
        if node is None or kind != "Clip":
            if ended and kind != "Folder":
                self._count("elements that are neither clip nor folder", _MOST_OTHERS)
            self._take(child, node, ended=ended)
        elif ended:
            self._count("clips and folders", _MOST_CLIPS)
            own = attributes(child)
            link_id, finalized = whole(own.pop("link_id", None)), read_flag(own.pop("finalized", None))
            texts = own | read_attrs(child)
            title = next((texts[name] for name in _TITLES if name in texts), "")
            node.clips.append(Entry((), title, link_id, finalized, self._packer.pack(texts)))
        elif sum(1 + len(each.attrib) for each in child.iter()) > _MOST_PARTS:
            raise unreadable(f"a clip of the answer has more than {_MOST_PARTS} elements and attributes")

    def _begin(self, element: Element, parent: FolderNode | None) -> FolderNode | None:
        """Return a new node for the start of an element: a Folder in a known node, or the first StoredTree."""
        kind = local(element)
        if parent is not None and kind == "Folder":
            self._count("clips and folders", _MOST_CLIPS)
            self._count("folders", _MOST_FOLDERS)
            folder = FolderNode(attributes(element).get("name", ""))
            parent.folders.append(folder)
            return folder
        if self._tree is None and kind == "StoredTree":
            self._tree = FolderNode("")
            return self._tree
        return None

    def _count(self, what: str, most: int) -> None:
        self._counts[what] += 1
        if self._counts[what] > most:
            raise unreadable(f"the answer lists more than {most} {what}", "list single folders instead")


# Folders of the tree -------------------------------------------------------------------------------------------
#
# The interface does not define where the requested folder is in the tree. Seen: the nameless top Folder (or the
# StoredTree itself) is the requested folder; the top Folder has its name; the complete chain from the root leads to it.


def _asked_node(tree: FolderNode, database: str, asked: Folder) -> FolderNode:
    root = _only(tree, "") or tree
    by_chain = _descend(root, asked)
    if by_chain is not None:
        return by_chain
    if root is not tree:
        return root
    named = asked[-1] if asked else database
    return _only(tree, named) or tree


def _descend(node: FolderNode, names: Folder) -> FolderNode | None:
    for name in names:
        below = _only(node, name)
        if below is None:
            return None
        node = below
    return node if names else None


def _only(node: FolderNode, name: str) -> FolderNode | None:
    """Return the only child, if it is a folder of this name."""
    if node.clips or len(node.folders) != 1 or _fold(node.folders[0].name) != _fold(name):
        return None
    return node.folders[0]


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _collected(top: FolderNode, asked: Folder) -> Listing:
    entries: list[Entry] = []
    folders: list[Folder] = []
    waiting = [(top, asked)]
    while waiting:
        node, path = waiting.pop()
        entries += [structs.replace(clip, folder=path) for clip in node.clips] if path else node.clips
        node.clips = []
        below = [(child, (*path, child.name) if child.name else path) for child in node.folders]
        folders.extend(child_path for child, child_path in below if child.name)
        waiting.extend(reversed(below))
    return Listing(asked, tuple(entries), tuple(folders))


# Other answers -------------------------------------------------------------------------------------------------


def parse_mam(data: bytes, charset: str | None = None) -> tuple[MamAsset, ...]:
    """Read a linear asset list (format=mam)."""
    root, *_ = find_roots(parse_document(data, charset, most=MAX_LISTED_NODES), "mam", "a linear asset list")
    return tuple(_mam_asset(child) for child in root if local(child) == "asset")


def _mam_asset(element: Element) -> MamAsset:
    texts = read_attrs(element)
    return MamAsset(
        title=texts.get("id", ""),
        folder=parse_folder(texts.get("dir", "")),
        length=texts.get("length", "").strip(),
        hires=texts.get("hires", ""),
        proxy=texts.get("proxy"),
    )


def parse_databases(data: bytes, charset: str | None = None) -> tuple[Database, ...]:
    """Read the list of databases. The interface does not show its format, so any named element is one."""
    root = parse_document(data, charset, most=MAX_LISTED_NODES)
    found = [element for element in root.iter() if local(element).lower() in {"database", "db", "storage"}]
    named = [element for element in found if _name(element)]
    if not named:
        named = [element for element in root if _name(element)]
    if not named and local(root).lower() not in {"databases", "storage", "xml", "list"}:
        raise unreadable(f"the answer is not a list of databases: its root is <{local(root)}>")
    return tuple(_database(element) for element in named)


def _name(element: Element) -> str:
    own = attributes(element)
    return own.get("name") or own.get("title") or ("" if len(element) else text_of(element).strip())


def _database(element: Element) -> Database:
    name = _name(element)
    tree = next((child for child in element if local(child) == "StoredTree"), None)
    return Database(name, ListingReading(name, ()).of_element(tree) if tree is not None else None)


async def read_arriving(
    read: Callable[[], Awaitable[bytes]], reading: ListingReading, judge: Callable[[bytes], None]
) -> Listing:
    """Parse a listing while it arrives, in pieces between which other tasks run. ``read`` returns the next bytes.

    If it is not a listing, ``judge`` gets the beginning of the answer and raises if that is an error text.
    """
    head = bytearray()
    try:
        while chunk := await read():
            head += chunk[: max(0, _ERROR_BYTES - len(head))]
            for start in range(0, len(chunk), PIECE):
                reading.feed(chunk[start : start + PIECE])
                await asyncio.sleep(0)
        return reading.close()
    except UnreadableError:
        while len(head) < _ERROR_BYTES and (chunk := await read()):
            head += chunk
        judge(bytes(head[:_ERROR_BYTES]))
        raise


# Attributes in compact form: a large database has 300,000 entries. A mapping of the attributes of one takes about 3 KB;
# packed into bytes they take their texts and about 100 bytes.

_SEPARATOR: Final = "\0"  # the one character that XML cannot contain
_MOST_NAMES: Final = 1_000_000
"""The limit of attribute names in all sets of names: clips normally share a few sets."""

Names = Mapping[str, int]
"""The names of attributes, each with its position among the packed texts; similar entries share one object."""


class PackedAttributes(Mapping[str, str]):
    """The attributes of one entry, unpacked at each access."""

    __slots__ = ("_names", "_packed")

    def __init__(self, names: Names, packed: bytes) -> None:
        self._names = names
        self._packed = packed

    def __getitem__(self, name: str) -> str:
        place = self._names[name]
        return self._packed.split(b"\0", place + 1)[place].decode()

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def items(self) -> ItemsView[str, str]:
        """Return the items, unpacked together."""
        return dict(zip(self._names, self._packed.decode().split(_SEPARATOR), strict=False)).items()

    def __repr__(self) -> str:
        return repr(dict(self.items()))


class AttributePacker:
    """Packs attributes; equal sets of names are stored once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], Names] = {}
        self._count = 0

    def pack(self, texts: Mapping[str, str]) -> PackedAttributes:
        """Return the attributes in compact form. Raises ``UnreadableError`` for too many names."""
        key = tuple(texts)
        names = self._known.get(key)
        if names is None:
            self._count += len(key)
            if self._count > _MOST_NAMES:
                raise unreadable(f"the clips of the answer have more than {_MOST_NAMES} names of attributes")
            names = self._known[key] = {name: place for place, name in enumerate(key)}
        return PackedAttributes(names, _SEPARATOR.join(texts.values()).encode())
