"""Listings of databases, folders and assets (interface "List databases", "List assets and folders").

The interface does not define the position of the requested folder in the tree: here it is the top Folder, unnamed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msauto.simulator.answers import element, escape_attribute
from msauto.simulator.asset_xml import attributes_xml
from msauto.simulator.dialect import SimDialect
from msauto.simulator.positions import format_length
from msauto.simulator.state import MIME_TYPES, Folder, ServerState, SimDatabase, SimEntry
from msauto.simulator.wire import FolderPath, HttpRequest, RefusalError, ResourceNotFoundError, folder_text

_DATE = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?)?")
_Keep = Callable[[SimEntry], bool]


def databases_parts(state: ServerState, dialect: SimDialect) -> Iterator[str]:
    """GET /storage: every database with its content."""
    yield "<Databases>\n"
    for database in list(state.databases.values()):
        yield f'<Database name="{escape_attribute(database.name)}">\n'
        yield from _stored_tree(database.root, (), lambda _: True, dialect)
        yield "</Database>\n"
    yield "</Databases>"


def folder_parts(database: SimDatabase, path: FolderPath, request: HttpRequest, dialect: SimDialect) -> Iterator[str]:
    """GET /storage/NAME/FOLDER...: StoredTree, mam or folderlist."""
    folder = database.folder(path)
    if folder is None:
        raise ResourceNotFoundError
    keep = _filter(request, dialect)
    match request.param("format") or "StoredTree":
        case "StoredTree":
            return _stored_tree(folder, path, keep, dialect)
        case "folderlist":
            return _stored_tree(folder, path, None, dialect)
        case "mam":
            return _mam(folder, keep)
        case unknown:
            raise RefusalError(400, f"unknown format {unknown}")


def _stored_tree(folder: Folder, path: FolderPath, keep: _Keep | None, dialect: SimDialect) -> Iterator[str]:
    yield f'<StoredTree query_root="{escape_attribute(folder_text(path))}">\n<Folder name="">\n'
    yield from _content(folder, keep, dialect)
    yield "</Folder>\n</StoredTree>"


def _content(folder: Folder, keep: _Keep | None, dialect: SimDialect) -> Iterator[str]:
    # Copies: a long listing is sent in pieces, and other requests can change the folder in between.
    for child in list(folder.folders.values()):
        yield f'<Folder name="{escape_attribute(child.name)}">\n'
        if dialect.listing_depth == "deep":
            yield from _content(child, keep, dialect)
        yield "</Folder>\n"
    if keep is not None:
        yield from (_clip(entry, dialect) for entry in list(folder.entries.values()) if keep(entry))


def _clip(entry: SimEntry, dialect: SimDialect) -> str:
    start = f'<Clip link_id="{entry.link_id}" finalized="{str(entry.clip.finalized).lower()}">\n'
    return f"{start}{attributes_xml(entry, dialect)}</Clip>\n"


def _mam(folder: Folder, keep: _Keep) -> Iterator[str]:
    yield "<mam>\n"
    for entry in folder.walk():
        if keep(entry):
            clip = entry.clip
            yield "<asset>" + element("id", entry.title) + element("dir", folder_text(entry.folder))
            yield element("length", format_length(clip.length, clip.rate)) + element("hires", clip.hires)
            yield (element("proxy", clip.proxy) if clip.proxy else "") + "</asset>\n"
    yield "</mam>"


def _filter(request: HttpRequest, dialect: SimDialect) -> _Keep:
    kinds = _mime_numbers(request.all_params("mimetype"), dialect)
    after = _after(request.param("datetime"), dialect)
    return lambda entry: (not kinds or entry.clip.mime_type in kinds) and entry.clip.create_time > after


def _mime_numbers(values: list[str], dialect: SimDialect) -> set[int]:
    names = [name for value in values for name in value.split(",")] if dialect.mimetypes == "many" else values[:1]
    unknown = [name for name in names if name not in MIME_TYPES]
    if unknown:
        raise RefusalError(400, f"unknown mimetype {unknown[0]}")
    return {MIME_TYPES[name] for name in names}


def _after(value: str | None, dialect: SimDialect) -> str:
    """Return the time as text: times of one format without a zone compare like texts."""
    if value is None or dialect.datetime_filter == "ignored":
        return ""
    if _DATE.fullmatch(value) is None:
        raise RefusalError(400, f"not a valid date-time: {value}")
    return value if "T" in value else f"{value}T00:00:00"
