"""Checks of a task's validated arguments beyond their models. Templates that are not rendered yet are skipped."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any, Final

from msauto.aspects import ASPECTS
from msauto.aspects.arguments import duplicates, known_items
from msauto.documents.document import SourceNode
from msauto.documents.strict_model import Model
from msauto.documents.value_types import UnrenderedTemplate
from msauto.errors import Problem
from msauto.interface.rss_files import bad_character, file_key
from msauto.playbook.schema.asset import AssetArgs
from msauto.playbook.schema.rss import RssArgs, RssBody, RssItemArgs
from msauto.playbook.tasks.rss_module import body_texts, file_name

_ONE_LINE: Final = frozenset({"guid", "file"})
"""The texts of an RSS item that cannot hold a line end."""


def check_arguments(args: Model, node: SourceNode) -> Iterator[Problem]:
    """Yield what is wrong with the arguments of a task, each at its place."""
    if isinstance(args, AssetArgs):
        for aspect in ASPECTS.values():
            yield from aspect.check(args, node)
    elif isinstance(args, RssArgs):
        yield from _rss(args, node)
    expect = getattr(getattr(args, "select", None), "expect", None)
    low, high = getattr(expect, "min", None), getattr(expect, "max", None)
    if isinstance(low, int) and isinstance(high, int) and low > high:
        yield node.child("select", "expect").problem(f"min {low} is greater than max {high}")


# rss -----------------------------------------------------------------------------------------------------------


def _rss(args: RssArgs, node: SourceNode) -> Iterator[Problem]:
    here = node.child("items")
    items = known_items(args.items, RssItemArgs)
    for index, item in items:
        yield from _characters(item, here.child(index))
        yield from _file(item, here.child(index))
    yield from duplicates(items, here, _guid, "guid", "guid")
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
