"""Listings: StoredTree and folderlist, mam, and the list of databases (interface, «List assets and folders»)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from msgspec import Struct, structs

from msauto.errors import UnreadableError
from msauto.model.live import Database, Entry, Folder, Listing, MamAsset, parse_folder
from msauto.primitives.decimals import MOST_LONG, read_whole
from msauto.primitives.normal_form import normal_form
from msauto.server import xml
from msauto.server.error_answers import ERROR_BYTES
from msauto.server.parsers import read_attrs, read_finalized

_DEEPEST_FOLDER: Final = 32  # each folder has the names of those above it
_MOST_BYTES: Final = 9 * 2**20  # libxml2 takes texts of 10 MB
_MOST_PARTS: Final = 10_000
_MOST_CLIPS: Final = 2_000_000  # each takes some 150 bytes of memory, and seven of an answer
_MOST_OTHERS: Final = 2_000_000  # each takes some 4 µs, and eight bytes of an answer
_MOST_FOLDERS: Final = 300_000  # each takes some 600 bytes of memory, and nine of an answer
_MOST_NAMES: Final = 1_000_000  # in all sets of names: clips normally share a few sets


class FolderNode(Struct):
    """A folder of a StoredTree, or the StoredTree itself; its clips in order, whose folders are not known yet."""

    name: str
    folders: list[FolderNode] = []
    clips: list[Entry] = []


class ListingReading(xml.StreamedDocument):
    """Reads a StoredTree (or a folderlist) while it arrives; all folders become absolute.

    ``asked`` is the folder of the request. ``piece`` is the number of bytes parsed in one step. Unknown elements are
    skipped with their content.
    """

    def __init__(
        self, database: str, asked: Folder, charset: str | None = None, *, piece: int = xml.PIECE
    ) -> None:
        super().__init__(charset, piece=piece)
        self._database = database
        self._asked = asked
        self._top: FolderNode | None = None
        self._open: dict[xml.Element, FolderNode | None] = {}  # what has begun, and not ended
        self._size = 0  # the bytes since anything began or ended
        self._counts = Counter[str]()
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}

    def close(self) -> Listing:
        """Return the listing. Raises ``UnreadableError``, also for an answer that ended too early."""
        self.end()
        return self.listing()

    def listing(self) -> Listing:
        """Return what has been read, after the end of the document."""
        if self._top is None:
            raise xml.unreadable("the answer is not a listing: it has no <StoredTree>")
        return _collected(_node_of_folder(self._top, self._database, self._asked), self._asked)

    def take(self, root: xml.Element, size: int, *, has_ended: bool) -> None:
        """Take what has arrived with the next ``size`` bytes, and bound what has not ended."""
        self._size += size
        self._take(root, None, 0, has_ended=has_ended)
        if self._size > _MOST_BYTES:
            most = f"{_MOST_BYTES // 2**20} MiB"
            raise xml.unreadable(f"a clip, a text or a comment of the answer is larger than {most}")

    def _take(
        self, element: xml.Element, parent: FolderNode | None, above: int, *, has_ended: bool
    ) -> None:
        """Take an element, and forget what is in it and has ended. ``above`` is the number of folders around it."""
        is_clip = parent is not None and xml.local(element) == "Clip"
        if element not in self._open:
            self._size = 0
            self._open[element] = None if is_clip else self._begin_node(element, parent, above)
        node = self._open[element]
        if has_ended:
            self._size = 0
            del self._open[element]
        if parent is not None and is_clip:
            if has_ended:
                self._add(element, parent)
            elif len(element) > _MOST_PARTS:
                raise xml.unreadable(f"a clip of the answer has more than {_MOST_PARTS} elements")
            return
        inner = list(element)
        for child in inner:
            child_has_ended = has_ended or child is not inner[-1]
            self._take(child, node, above + (node is not None), has_ended=child_has_ended)
        if not has_ended:
            del element[:-1]

    def _begin_node(
        self, element: xml.Element, parent: FolderNode | None, above: int
    ) -> FolderNode | None:
        """Return the node of an element around clips; ``None`` for an unknown element, whose content is skipped."""
        kind = xml.local(element)
        if parent is not None and kind == "Folder":
            self._count("clips and folders", _MOST_CLIPS)
            self._count("folders", _MOST_FOLDERS)
            if above > _DEEPEST_FOLDER + 1:  # the StoredTree, and perhaps a nameless top
                raise xml.too_deep("folders", _DEEPEST_FOLDER)
            node = FolderNode(xml.attributes(element).get("name", ""))
            parent.folders.append(node)
            return node
        if self._top is None and kind == "StoredTree":
            self._top = FolderNode("")
            return self._top
        self._count("elements that are neither clip nor folder", _MOST_OTHERS)
        return None

    def _add(self, clip: xml.Element, folder: FolderNode) -> None:
        """Add a clip that has ended to its folder."""
        self._count("clips and folders", _MOST_CLIPS)
        own = xml.attributes(clip)
        link_id = read_whole(own.pop("link_id", None), MOST_LONG)
        finalized = read_finalized(own.pop("finalized", None))
        texts = own | read_attrs(clip)
        key = tuple(texts)
        names = self._names.get(key)
        if names is None:
            self._count("names of attributes", _MOST_NAMES, len(key))
            names = self._names[key] = key
        packed = "\0".join(texts.values()).encode()
        folder.clips.append(Entry((), link_id, finalized, names, packed))

    def _count(self, what: str, most: int, number: int = 1) -> None:
        self._counts[what] += number
        if self._counts[what] > most:
            raise xml.unreadable(
                f"the answer lists more than {most} {what}", "list single folders instead"
            )


# Folders of the tree -------------------------------------------------------------------------------------------
#
# The interface does not define where the requested folder is in the tree. Seen: the nameless top Folder (or the
# StoredTree itself) is the requested folder; the top Folder has its name; the complete chain from the root leads to it.


def _node_of_folder(tree: FolderNode, database: str, folder: Folder) -> FolderNode:
    nameless = _single_child(tree, "")
    end_of_chain: FolderNode | None = nameless or tree
    for name in folder:
        end_of_chain = end_of_chain and _single_child(end_of_chain, name)
    if folder and end_of_chain is not None:
        return end_of_chain
    if nameless is not None:
        return nameless
    top_name = folder[-1] if folder else database
    return _single_child(tree, top_name) or tree


def _single_child(node: FolderNode, name: str) -> FolderNode | None:
    """Return the only child, if it is a folder of this name."""
    if node.clips or len(node.folders) != 1 or _fold(node.folders[0].name) != _fold(name):
        return None
    return node.folders[0]


def _fold(name: str) -> str:
    return normal_form(name).casefold()


def _collected(top: FolderNode, asked: Folder) -> Listing:
    entries = []
    folders = []
    waiting = [(top, asked)]
    while waiting:
        node, path = waiting.pop()
        if path:
            entries += [structs.replace(clip, folder=path) for clip in node.clips]
        else:
            entries += node.clips
        node.clips = []
        below = []
        for child in node.folders:
            child_path = path
            if child.name:
                child_path = (*path, child.name)
                folders.append(child_path)
            below.append((child, child_path))
        waiting += reversed(below)
    return Listing(asked, tuple(entries), tuple(folders))


# Other answers -------------------------------------------------------------------------------------------------


def parse_mam(data: bytes, charset: str | None = None) -> tuple[MamAsset, ...]:
    """Read a linear asset list (format=mam)."""
    document = xml.parse_document(data, charset, most=xml.MAX_LISTED_NODES)
    root, *_ = xml.find_roots(document, "mam", "a linear asset list")
    assets = []
    for child in root:
        if xml.local(child) == "asset":
            assets.append(_mam_asset(read_attrs(child)))
    return tuple(assets)


def _mam_asset(texts: Mapping[str, str]) -> MamAsset:
    return MamAsset(
        title=texts.get("id", ""),
        folder=parse_folder(texts.get("dir", "")),
        length=texts.get("length", "").strip(),
        hires=texts.get("hires", ""),
        proxy=texts.get("proxy"),
    )


def parse_databases(data: bytes, charset: str | None = None) -> tuple[Database, ...]:
    """Read the list of databases. The interface does not show its format, so any named element is one."""
    root = xml.parse_document(data, charset)
    described = [element for element in root.iter() if xml.local(element).lower() in _DATABASES]
    named = list(filter(_name, described)) or list(filter(_name, root))
    if not named and xml.local(root).lower() not in _DATABASE_LISTS:
        raise xml.unreadable(
            f"the answer is not a list of databases: its root is <{xml.local(root)}>"
        )
    return tuple(map(_database, named))


_DATABASES: Final = frozenset({"database", "db", "storage"})

_DATABASE_LISTS: Final = frozenset({"databases", "storage", "xml", "list"})


def _name(element: xml.Element) -> str:
    own = xml.attributes(element)
    name = own.get("name") or own.get("title")
    if name or len(element):
        return name or ""
    return xml.text_of(element).strip()


def _database(element: xml.Element) -> Database:
    name = _name(element)
    is_inside_another = any(xml.local(above) == "StoredTree" for above in element.iterancestors())
    if is_inside_another:
        return Database(name)
    for child in element:
        if xml.local(child) == "StoredTree":
            reading = ListingReading(name, ())
            reading.feed(xml.serialized(child))
            return Database(name, reading.close())
    return Database(name)


async def read_arriving(
    read: Callable[[], Awaitable[bytes]], reading: ListingReading, judge: Callable[[bytes], None]
) -> Listing:
    """Parse a listing while it arrives, in pieces between which other tasks run. ``read`` returns the next bytes.

    If it is not a listing, ``judge`` gets the beginning of the answer and raises if that is an error text.
    """
    head = bytearray()
    try:
        while chunk := await read():
            head += chunk[: max(0, ERROR_BYTES - len(head))]
            for start in range(0, len(chunk), xml.PIECE):
                reading.feed(chunk[start : start + xml.PIECE])
                await asyncio.sleep(0)
        reading.end()  # here: a tree of lxml that grows in two threads destroys the memory of the process
        return await asyncio.to_thread(reading.listing)  # of 900,000 entries, that takes a second
    except UnreadableError:
        while len(head) < ERROR_BYTES and (chunk := await read()):
            head += chunk
        judge(bytes(head[:ERROR_BYTES]))
        raise
