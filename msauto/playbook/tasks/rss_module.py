"""The ``rss`` module: arguments to :class:`RssWanted`."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any, Final

from msauto.errors import InputError, Problem
from msauto.interface.rss_files import bad_character, default_file, file_key
from msauto.model.desired import ABSENT, ChannelRef, DesiredChannel, DesiredRssItem, Sourced, TaskSource
from msauto.playbook.schema.rss import RssArgs, RssBody, RssItemArgs
from msauto.playbook.schema.validation import read_as
from msauto.playbook.schema.values import UnrenderedTemplate
from msauto.playbook.yaml.document import SourceNode

_LINES: Final = frozenset({"guid", "file"})  # of one line each


def check_rss(args: RssArgs, node: SourceNode) -> Iterator[Problem]:
    """Yield all that is wrong with the arguments of a channel; pending templates are left alone."""
    seen: dict[str, int] = {}
    files: dict[str, int] = {}
    items: Any = args.items  # still a template, perhaps
    for index, item in enumerate(items if isinstance(items, list) else []):
        if not isinstance(item, RssItemArgs):
            continue
        here = node.child("items", index)
        yield from _characters(item, here)
        yield from _file(item, here)
        if isinstance(item.guid, UnrenderedTemplate):
            continue
        first = seen.setdefault(unicodedata.normalize("NFC", item.guid), index)
        if first != index:
            line = node.child("items", first).place.line
            yield here.child("guid").problem(
                f"the guid {item.guid!r} stands twice (first in line {line})", "leave one out"
            )
        elif item.state != "absent" and not isinstance(item.file, UnrenderedTemplate):
            yield from _one_file(item, files.setdefault(file_key(_file_name(item)), index), items, node, index)


def _one_file(item: RssItemArgs, first: int, items: list[Any], node: SourceNode, index: int) -> Iterator[Problem]:
    """Refuse a second item in one file: the later PUT would replace the earlier item."""
    if first == index:
        return
    place = node.child("items", index, "guid" if item.file is None else "file")
    yield place.problem(
        f"item {item.guid!r} is put as {_file_name(item)}, and so is item {items[first].guid!r} "
        f"(line {node.child('items', first).place.line})",
        "give each item a `file:` of its own",
    )


def _characters(item: RssItemArgs, node: SourceNode) -> Iterator[Problem]:
    """Refuse what no channel shows as it is sent: it would be sent again in every run."""
    body: Any = item.item
    texts: dict[tuple[str, ...], Any] = {("guid",): item.guid, ("file",): item.file, ("text",): item.text}
    if isinstance(body, RssBody):
        texts |= {("item", name): text for name, text in _fields(body).items()}
    for path, text in texts.items():
        if not isinstance(text, str) or isinstance(text, UnrenderedTemplate):
            continue
        found = bad_character(text, line=path[-1] in _LINES)
        if found is not None:
            yield node.child(*path).problem(
                f"the {path[-1]} holds {found[1]} as character {found[0]}, which no RSS channel shows",
                "take it out where it is written, or with the filter `regex_replace`",
            )


def _file(item: RssItemArgs, node: SourceNode) -> Iterator[Problem]:
    if item.file is None or isinstance(item.file, UnrenderedTemplate):
        return
    if "/" in item.file or "\\" in item.file:
        yield node.child("file").problem("the file is a name, not a path", "leave the folder out")
    if item.file in {".", ".."}:
        yield node.child("file").problem(
            f"{item.file!r} is a folder, not the name of a file", "name a file, as n-1.txt"
        )


def rss_wanted(data: Any, node: SourceNode, task: str) -> DesiredChannel:
    """Return what the rendered arguments want; raises :class:`InputError` with all that is wrong."""
    args = read_as(RssArgs, data, node)
    problems = list(check_rss(args, node))
    if problems:
        raise InputError(problems)
    items = tuple(
        Sourced(_item(item), TaskSource.at(node.child("items", index).place, task))
        for index, item in enumerate(args.items or [])
    )
    exactly = TaskSource.at(node.child("exactly").key_place, task) if args.exactly else None
    return DesiredChannel(TaskSource.at(node.place, task), items, exactly)


def rss_ref(channel: str) -> ChannelRef:
    """Return which channel is meant."""
    return ChannelRef(channel)


def _item(args: RssItemArgs) -> DesiredRssItem:
    present = args.state != "absent"
    return DesiredRssItem(
        guid=args.guid,
        file=_file_name(args) if present else "",
        text=ABSENT if args.text is None else args.text,
        item=ABSENT if args.item is None else _fields(args.item),
        present=present,
    )


def _file_name(args: RssItemArgs) -> str:
    return args.file or default_file(args.guid, text=args.item is None)


def _fields(body: RssBody) -> dict[str, str]:
    named = {"title": body.title, "description": body.description, "link": body.link, "pubDate": body.pub_date}
    return {name: value for name, value in named.items() if value is not None}
