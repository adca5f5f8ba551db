"""Checks of a task's validated arguments beyond their models. Templates that are not rendered yet are skipped."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final

from msauto.documents.document import SourceNode
from msauto.documents.strict_model import Model
from msauto.documents.value_types import UnrenderedTemplate, as_list
from msauto.errors import Problem
from msauto.interface.rss_files import bad_character, file_key
from msauto.model.timecode import Timecode
from msauto.playbook.schema import asset as schema
from msauto.playbook.schema.rss import RssArgs, RssBody, RssItemArgs
from msauto.playbook.tasks.rss_module import body_texts, file_name

_ONE_LINE: Final = frozenset({"guid", "file"})
"""The texts of an RSS item that cannot hold a line end."""


def check_arguments(args: Model, node: SourceNode) -> Iterator[Problem]:
    """Yield what is wrong with the arguments of a task, each at its place."""
    if isinstance(args, schema.AssetArgs):
        yield from _asset(args, node)
    elif isinstance(args, RssArgs):
        yield from _rss(args, node)
    expect = getattr(getattr(args, "select", None), "expect", None)
    low, high = getattr(expect, "min", None), getattr(expect, "max", None)
    if isinstance(low, int) and isinstance(high, int) and low > high:
        yield node.child("select", "expect").problem(f"min {low} is greater than max {high}")


# asset ---------------------------------------------------------------------------------------------------------


def _asset(args: schema.AssetArgs, node: SourceNode) -> Iterator[Problem]:
    segments, here = _known(args.segments, schema.SegmentArgs), node.child("segments")
    for index, item in segments:
        if item.state != "absent" and _is_zero(item.duration):
            yield here.child(index, "duration").problem("the duration of a segment cannot be 0")
    yield from _twice(segments, here, lambda item: item.number, "number", "segment number")
    markers, here = _known(args.markers, schema.MarkerArgs), node.child("markers")
    yield from _twice(markers, here, lambda item: item.uid, "uid", "marker uid")
    without = [(index, item) for index, item in markers if item.uid is None and item.at is not None]
    yield from _twice(without, here, lambda item: (item.track, item.at), "at", "marker with this track and position")
    links, here = _known(args.links, schema.LinkArgs), node.child("links")
    yield from _twice(links, here, lambda item: (item.folder, item.title), "folder", "link with this folder and title")
    narrowed = args.exactly.markers if isinstance(args.exactly, schema.ExactlyArgs) else None
    if isinstance(narrowed, schema.MarkersExactly) and not narrowed.tracks:
        here = node.child("exactly", "markers", "tracks")
        yield here.problem("tracks is empty, so no marker can be removed", "name a track")


def _known(items: Any, kind: type[Any]) -> list[tuple[int, Any]]:
    numbered = enumerate(items if isinstance(items, list) else [])
    return [(index, item) for index, item in numbered if isinstance(item, kind)]


def _is_zero(position: Any) -> bool:
    return isinstance(position, Timecode) and not (position.frames or position.seconds or position.fraction)


def _twice(
    items: list[tuple[int, Any]], node: SourceNode, identity: Callable[[Any], Hashable], key: str, what: str
) -> Iterator[Problem]:
    """Yield a problem for each item with the identity of an earlier one."""
    seen: dict[Hashable, int] = {}
    for index, item in items:
        name = identity(item)
        parts = name if isinstance(name, tuple) else (name,)
        if name is None or any(isinstance(part, UnrenderedTemplate) for part in parts):
            continue
        first = seen.setdefault(name, index)
        if first != index:
            shown = "" if isinstance(name, tuple) else f" {name!r}"
            why = f"duplicate {what}{shown} (first on line {node.child(first).place.line})"
            yield node.child(index, key).problem(why, "remove one of them")


def check_separators(args: schema.AssetArgs, node: SourceNode, separator: str) -> Iterator[Problem]:
    """Yield a problem for each XMP value that holds the list separator of the server."""
    fields: Any = args.xmp  # may be a template
    for name, values in fields.items() if isinstance(fields, dict) else ():
        for index, value in enumerate(as_list(values)):
            if separator in value and not isinstance(value, UnrenderedTemplate):
                why = f"the value contains {separator!r}, which separates the values of an XMP field on this server"
                remedy = "remove it, or set dialect: {list_separator: ...} to the separator of the server"
                yield node.child("xmp", name, index).problem(why, remedy)


# rss -----------------------------------------------------------------------------------------------------------


def _rss(args: RssArgs, node: SourceNode) -> Iterator[Problem]:
    here = node.child("items")
    items = _known(args.items, RssItemArgs)
    for index, item in items:
        yield from _characters(item, here.child(index))
        yield from _file(item, here.child(index))
    yield from _twice(items, here, _guid, "guid", "guid")
    yield from _shared_files(items, here)


def _guid(item: RssItemArgs) -> str | None:
    if item.guid is None or isinstance(item.guid, UnrenderedTemplate):
        return item.guid
    return unicodedata.normalize("NFC", item.guid)


def _shared_files(items: list[tuple[int, RssItemArgs]], node: SourceNode) -> Iterator[Problem]:
    """Yield a problem for each item in the file of another: the later PUT would replace the earlier item."""
    seen: dict[str, tuple[int, RssItemArgs]] = {}
    for index, item in items:
        if item.state == "absent" or any(isinstance(each, UnrenderedTemplate) for each in (item.guid, item.file)):
            continue
        first, other = seen.setdefault(file_key(file_name(item)), (index, item))
        if first != index and (item.guid is None or _guid(other) != _guid(item)):
            line, names = node.child(first).place.line, [each.guid or each.file for each in (item, other)]
            why = f"item {names[0]!r} uses the file {file_name(item)} of item {names[1]!r} (line {line})"
            at = node.child(index, "guid" if item.file is None else "file")
            yield at.problem(why, "give each item its own `file:`")


def _characters(item: RssItemArgs, node: SourceNode) -> Iterator[Problem]:
    """Yield a problem for each character that no channel shows as it is sent: it would be sent again in every run."""
    body: Any = item.item
    texts: dict[tuple[str, ...], Any] = {("guid",): item.guid, ("file",): item.file, ("text",): item.text}
    if isinstance(body, RssBody):
        texts |= {("item", name): text for name, text in body_texts(body).items()}
    for path, text in texts.items():
        if not isinstance(text, str) or isinstance(text, UnrenderedTemplate):
            continue
        found = bad_character(text, line=path[-1] in _ONE_LINE)
        if found is not None:
            why = f"the {path[-1]} contains {found[1]} as character {found[0]}, which no RSS channel reports"
            yield node.child(*path).problem(why, "remove it in the source, or with the filter `regex_replace`")


def _file(item: RssItemArgs, node: SourceNode) -> Iterator[Problem]:
    if item.file is None or isinstance(item.file, UnrenderedTemplate):
        return
    if "/" in item.file or "\\" in item.file:
        yield node.child("file").problem("file must be a name, not a path", "remove the folder")
    if item.file in {".", ".."}:
        why = f"{item.file!r} is a folder, not a file name"
        yield node.child("file").problem(why, "use a file name such as n-1.txt")
