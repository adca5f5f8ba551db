"""The ``rss`` module: arguments to :class:`RssWanted`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msauto.errors import InputError, Problem
from msauto.model.wanted import ABSENT, ChannelRef, RssItemWanted, RssWanted, Said, Source
from msauto.playbook.document import Spot
from msauto.playbook.schema import read_as
from msauto.playbook.schema_rss import RssArgs, RssBody, RssItemArgs
from msauto.playbook.schema_values import Pending


def check_rss(args: RssArgs, spot: Spot) -> Iterator[Problem]:
    """Yield all that is wrong with the arguments of a channel; pending templates are left alone."""
    seen: dict[str, int] = {}
    items: Any = args.items  # still a template, perhaps
    for index, item in enumerate(items if isinstance(items, list) else []):
        if not isinstance(item, RssItemArgs) or isinstance(item.guid, Pending):
            continue
        if item.guid in seen:
            first = spot.child("items", seen[item.guid]).place.line
            yield spot.child("items", index, "guid").problem(
                f"the guid {item.guid!r} stands twice (first in line {first})", "leave one out"
            )
        seen.setdefault(item.guid, index)
        yield from _file(item, spot.child("items", index))


def _file(item: Any, spot: Spot) -> Iterator[Problem]:
    if item.file is None or isinstance(item.file, Pending):
        return
    if "/" in item.file or "\\" in item.file:
        yield spot.child("file").problem("the file is a name, not a path", "leave the folder out")


def rss_wanted(data: Any, spot: Spot, task: str) -> RssWanted:
    """Return what the rendered arguments want; raises :class:`InputError` with all that is wrong."""
    args = read_as(RssArgs, data, spot)
    problems = list(check_rss(args, spot))
    if problems:
        raise InputError(problems)
    items = tuple(
        Said(_item(item), Source(spot.child("items", index).place, task)) for index, item in enumerate(args.items or [])
    )
    exactly = Source(spot.child("exactly").key_place, task) if args.exactly else None
    return RssWanted(Source(spot.place, task), items, exactly)


def rss_ref(channel: str) -> ChannelRef:
    """Return which channel is meant."""
    return ChannelRef(channel)


def _item(args: RssItemArgs) -> RssItemWanted:
    present = args.state != "absent"
    ending = ".xml" if args.item is not None else ".txt"
    return RssItemWanted(
        guid=args.guid,
        file=(args.file or args.guid + ending) if present else "",
        text=ABSENT if args.text is None else args.text,
        item=ABSENT if args.item is None else _body(args.item),
        present=present,
    )


def _body(body: RssBody) -> dict[str, str]:
    named = {"title": body.title, "description": body.description, "link": body.link, "pubDate": body.pub_date}
    return {name: value for name, value in named.items() if value is not None}
