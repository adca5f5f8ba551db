"""The ``rss`` module: validated arguments to :class:`DesiredChannel`."""

from __future__ import annotations

from msauto.documents.document import SourceNode
from msauto.interface.rss_files import default_file
from msauto.model.desired import ABSENT, DesiredChannel, DesiredRssItem, Sourced, TaskSource
from msauto.playbook.schema.rss import RssArgs, RssBody, RssItemArgs


def desired_channel(args: RssArgs, node: SourceNode, task: str) -> DesiredChannel:
    """Return the desired state of a channel, each item with its place."""
    items = tuple(
        Sourced(_item(item), TaskSource.at(node.child("items", index).place, task))
        for index, item in enumerate(args.items or [])
    )
    exactly = TaskSource.at(node.child("exactly").key_place, task) if args.exactly else None
    return DesiredChannel(TaskSource.at(node.place, task), items, exactly)


def _item(args: RssItemArgs) -> DesiredRssItem:
    present = args.state != "absent"
    return DesiredRssItem(
        guid=args.guid or "",
        file=file_name(args) if present else args.file or "",
        text=ABSENT if args.text is None else args.text,
        item=ABSENT if args.item is None else body_texts(args.item),
        present=present,
    )


def file_name(args: RssItemArgs) -> str:
    """Return the name of the file in which an item is put."""
    return args.file or default_file(args.guid or "", text=args.item is None)


def body_texts(body: RssBody) -> dict[str, str]:
    """Return the texts of an item's document by their names in RSS."""
    named = {"title": body.title, "description": body.description, "link": body.link, "pubDate": body.pub_date}
    return {name: value for name, value in named.items() if value is not None}
