"""Listings: StoredTree and folderlist, mam, and the list of databases (interface, «Asset (clip)»)."""

from __future__ import annotations

import unicodedata

from msauto.model.live import Database, Folder, Listing, MamAsset, parse_folder
from msauto.server.parsers.attrs import read_attrs, read_flag, read_integer
from msauto.server.parsers.entries import EntryPacker, Names, PackedEntries
from msauto.server.parsers.streaming import PIECE, StreamingDocument
from msauto.server.parsers.tree import Node, StoredTree
from msauto.server.parsers.xml import (
    Element,
    attributes,
    children,
    find_root,
    local,
    parse_document,
    text_of,
    unreadable,
)


class ListingReading:
    """Reads a StoredTree (or a folderlist) while it arrives: see :func:`parse_listing`.

    ``piece`` bytes are parsed in one go.
    """

    def __init__(self, database: str, asked: Folder, charset: str | None = None, *, piece: int = PIECE) -> None:
        self._database = database
        self._asked = asked
        self._tree = StoredTree()
        self._document = StreamingDocument(self._tree, charset, piece=piece)

    def feed(self, data: bytes) -> None:
        """Take the next bytes. Raises ``UnreadableError``."""
        self._document.feed(data)

    def close(self) -> Listing:
        """Return the listing. Raises ``UnreadableError``, also where the answer ended too early."""
        self._document.close()
        if self._tree.tree is None:
            raise unreadable("the answer is no listing: it has no <StoredTree>")
        return _listing(self._tree.tree, self._database, self._asked)


def parse_listing(data: bytes, database: str, asked: Folder, charset: str | None = None) -> Listing:
    """Read a StoredTree (or a folderlist); all folders become absolute, whichever way the server shows them.

    ``asked`` is the folder of the request. Raises ``UnreadableError``.
    """
    reading = ListingReading(database, asked, charset)
    reading.feed(data)
    return reading.close()


# Where the folders stand ---------------------------------------------------------------------------------------
#
# The interface does not say where the asked folder stands in the tree. Seen: the nameless top Folder (or the
# StoredTree itself) is the asked folder; the top Folder bears its name; the whole chain from the root leads to it.


def _listing(tree: Node, database: str, asked: Folder) -> Listing:
    top = _asked_node(tree, database, asked)
    entries = PackedEntries()
    folders: list[Folder] = []
    _collect(top, asked, entries, folders)
    return Listing(asked, entries, tuple(folders))


def _asked_node(tree: Node, database: str, asked: Folder) -> Node:
    root = _only(tree, "") or tree
    by_chain = _descend(root, asked)
    if by_chain is not None:
        return by_chain
    if root is not tree:
        return root
    named = asked[-1] if asked else database
    return _only(tree, named) or tree


def _descend(node: Node, names: Folder) -> Node | None:
    for name in names:
        below = _only(node, name)
        if below is None:
            return None
        node = below
    return node if names else None


def _only(node: Node, name: str) -> Node | None:
    """Return the single folder below, if it bears this name and there is nothing beside it."""
    if node.clips or len(node.folders) != 1 or _fold(node.folders[0].name) != _fold(name):
        return None
    return node.folders[0]


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _collect(top: Node, asked: Folder, entries: PackedEntries, folders: list[Folder]) -> None:
    waiting = [(top, asked)]
    while waiting:
        node, path = waiting.pop()
        entries.extend(path, node.clips)
        below = [(child, (*path, child.name) if child.name else path) for child in node.folders]
        folders.extend(child_path for child, child_path in below if child.name)
        waiting.extend(reversed(below))


# The other shapes ----------------------------------------------------------------------------------------------


def parse_mam(data: bytes, charset: str | None = None) -> tuple[MamAsset, ...]:
    """Read a linear asset list (format=mam)."""
    root = find_root(parse_document(data, charset), "mam", "linear asset list")
    return tuple(_mam_asset(child) for child in children(root) if local(child) == "asset")


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
    """Read the list of databases; its shape is not shown, so anything named below the root is one."""
    root = parse_document(data, charset)
    found = [element for element in root.iter() if local(element).lower() in {"database", "db", "storage"}]
    named = [element for element in found if _name(element)]
    if not named:
        named = [element for element in children(root) if _name(element)]
    if not named and local(root).lower() not in {"databases", "storage", "xml", "list"}:
        raise unreadable(f"the answer is no list of databases: its root is <{local(root)}>")
    return tuple(_database(element) for element in named)


def _name(element: Element) -> str:
    own = attributes(element)
    return own.get("name") or own.get("title") or ("" if len(element) else text_of(element).strip())


def _database(element: Element) -> Database:
    name = _name(element)
    tree = next((child for child in children(element) if local(child) == "StoredTree"), None)
    return Database(name, _listing(_node_of(tree, EntryPacker()), name, ()) if tree is not None else None)


def _node_of(element: Element, packer: EntryPacker) -> Node:
    node = Node(attributes(element).get("name", "") if local(element) == "Folder" else "")
    for child in children(element):
        if local(child) == "Folder":
            below = _node_of(child, packer)
            below.parent = node
            node.folders.append(below)
        elif local(child) == "Clip":
            node.clips.add(*_packed(child, packer))
    return node


def _packed(element: Element, packer: EntryPacker) -> tuple[Names, bytes]:
    own = attributes(element)
    link_id, finalized = read_integer(own.pop("link_id", None)), read_flag(own.pop("finalized", None))
    return packer.pack(link_id, finalized, own | read_attrs(element))
