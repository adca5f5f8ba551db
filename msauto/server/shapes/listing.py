"""Listings: StoredTree and folderlist, mam, and the list of databases (interface, «Asset (clip)»)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from msauto.model.live import Database, Entry, Folder, Listing, MamAsset, parse_folder
from msauto.server.shapes.attrs import read_attrs, read_flag, read_integer
from msauto.server.xml import (
    Element,
    attributes,
    children,
    find_root,
    local,
    parse_document,
    text_of,
    unreadable,
    walk_document,
)

Events = Iterator[tuple[Literal["start", "end"], Element]]


@dataclass(slots=True, eq=False)
class _Node:
    """A Folder element, or the StoredTree itself (no parent)."""

    name: str
    parent: _Node | None = None
    folders: list[_Node] = field(default_factory=list)
    clips: list[Entry] = field(default_factory=list)


def parse_listing(data: bytes, database: str, asked: Folder, charset: str | None = None) -> Listing:
    """Read a StoredTree (or a folderlist); all folders become absolute, whichever way the server shows them.

    ``asked`` is the folder of the request. Raises ``UnreadableError``.
    """
    root = walk_document(data, charset, _read_tree, "xml", "StoredTree", "Folder", "Clip")
    return _listing(root, database, asked)


def _read_tree(events: Events) -> _Node:
    tree: _Node | None = None
    here: _Node | None = None
    hidden = 0  # depth inside elements that the interface does not know
    for event, element in events:
        if here is None:
            if tree is None and event == "start" and local(element) == "StoredTree":
                tree = here = _Node("")
        elif hidden or not _belongs(element):
            hidden += 1 if event == "start" else -1
        elif event == "start":
            here = _start(here, element)
        else:
            here = _end(here, element)
    if tree is None:
        raise unreadable("the answer is no listing: it has no <StoredTree>")
    return tree


def _belongs(element: Element) -> bool:
    parent = element.getparent()
    return local(element) == "StoredTree" or (parent is not None and local(parent) in {"StoredTree", "Folder"})


def _start(here: _Node, element: Element) -> _Node:
    if local(element) != "Folder":
        return here
    child = _Node(attributes(element).get("name", ""), here)
    here.folders.append(child)
    return child


def _end(here: _Node, element: Element) -> _Node | None:
    if local(element) == "Clip":
        here.clips.append(_entry(element))
        _forget_before(element)
        return here
    return here.parent


def _forget_before(element: Element) -> None:
    """Drop what has been read, so that the listing of a big house is never held as a tree."""
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def _entry(element: Element) -> Entry:
    own = attributes(element)
    texts = {name: value for name, value in own.items() if name not in {"link_id", "finalized"}} | read_attrs(element)
    title = texts.get("title", texts.get("clip_name", texts.get("name", "")))
    return Entry((), title, read_integer(own.get("link_id")), read_flag(own.get("finalized")), texts)


# Where the folders stand ---------------------------------------------------------------------------------------
#
# The interface does not say where the asked folder stands in the tree. Seen: the nameless top Folder (or the
# StoredTree itself) is the asked folder; the top Folder bears its name; the whole chain from the root leads to it.


def _listing(tree: _Node, database: str, asked: Folder) -> Listing:
    top = _asked_node(tree, database, asked)
    entries: list[Entry] = []
    folders: list[Folder] = []
    _collect(top, asked, entries, folders)
    return Listing(asked, tuple(entries), tuple(folders))


def _asked_node(tree: _Node, database: str, asked: Folder) -> _Node:
    root = _only(tree, "") or tree
    by_chain = _descend(root, asked)
    if by_chain is not None:
        return by_chain
    if root is not tree:
        return root
    named = asked[-1] if asked else database
    return _only(tree, named) or tree


def _descend(node: _Node, names: Folder) -> _Node | None:
    for name in names:
        below = _only(node, name)
        if below is None:
            return None
        node = below
    return node if names else None


def _only(node: _Node, name: str) -> _Node | None:
    """Return the single folder below, if it bears this name and there is nothing beside it."""
    if node.clips or len(node.folders) != 1 or _fold(node.folders[0].name) != _fold(name):
        return None
    return node.folders[0]


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _collect(top: _Node, asked: Folder, entries: list[Entry], folders: list[Folder]) -> None:
    waiting = [(top, asked)]
    while waiting:
        node, path = waiting.pop()
        entries.extend(Entry(path, clip.title, clip.link_id, clip.finalized, clip.attributes) for clip in node.clips)
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
    return Database(name, _listing(_node_of(tree), name, ()) if tree is not None else None)


def _node_of(element: Element) -> _Node:
    node = _Node(attributes(element).get("name", "") if local(element) == "Folder" else "")
    for child in children(element):
        if local(child) == "Folder":
            below = _node_of(child)
            below.parent = node
            node.folders.append(below)
        elif local(child) == "Clip":
            node.clips.append(_entry(child))
    return node
