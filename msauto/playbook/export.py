"""Live state to playbooks that plan to nothing.

What a task cannot express is a comment beside it: a segment's track, a marker of an unknown type, a value that holds
the list separator. If an entry of a list is left out, ``exactly`` does not name the list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any

from msauto.aspects import ASPECTS
from msauto.aspects.list_aspect import ListAspect
from msauto.documents.writer import CommentedValue, FlowStyle, comment, yaml_lines
from msauto.model import live
from msauto.model.requests import (
    RSS_FIELDS,
    bad_character,
    default_file,
    file_key,
    form_of,
    is_file_name,
    text_of,
)
from msauto.model.server import Dialect
from msauto.primitives.feed_times import parse_feed_time

HEADER = "Exported by msauto"
"""How the first line of every exported file begins, after ``#``: such a file may be replaced."""


# Playbooks -----------------------------------------------------------------------------------------------------


def header_lines(about: str) -> Iterator[str]:
    """Yield the first lines of an exported playbook."""
    yield comment(f"{HEADER}: {about}.")
    yield comment("On the server that it came from it plans to nothing. What is empty is left out.")


def play_lines(name: str, hosts: str, database: str | None = None) -> Iterator[str]:
    """Yield the head of a play; its tasks follow, by :func:`task_lines`."""
    head = {"name": name, "hosts": hosts}
    if database is not None:
        head["database"] = database
    yield from yaml_lines([head])
    yield "  tasks:"


def task_lines(
    snapshot: live.AssetSnapshot | live.RssChannel | live.SkippedEntry, dialect: Dialect
) -> Iterator[str]:
    """Yield the lines of one task, or the comment on what was left out."""
    if isinstance(snapshot, live.SkippedEntry):
        yield f"    {comment(f'{live.show_folder((*snapshot.folder, snapshot.title))}: {snapshot.why}.')}"
    elif isinstance(snapshot, live.AssetSnapshot):
        yield from yaml_lines([asset_task(snapshot, dialect)], 4)
    else:
        yield from yaml_lines([channel_task(snapshot, dialect.rss_guid)], 4)


# Assets --------------------------------------------------------------------------------------------------------


def asset_task(snapshot: live.AssetSnapshot, dialect: Dialect) -> dict[str, Any]:
    """Return the task that describes an asset, as far as a task can."""
    asset = snapshot.asset
    args: dict[str, Any] = {"title": asset.title or snapshot.title}
    if asset.folder is not None and asset.folder_otherwise is None:
        args["folder"] = live.show_folder(asset.folder) or "/"
    if asset.finalized is False:
        args["unfinalized"] = "allow"
    complete = []
    for aspect in filter(attrgetter("keys"), ASPECTS.values()):
        name = next(iter(aspect.keys))
        part = aspect.export(snapshot, dialect)
        _put(args, name, part.items)
        has_exactly = isinstance(aspect, ListAspect) and aspect.exactly
        if has_exactly and part.complete and _has_values(part.items):
            complete.append(name)
    if complete:
        args["exactly"] = FlowStyle(complete)
    return {"name": asset.title or snapshot.title, "asset": args}


def _has_values(items: Iterable[Any]) -> bool:
    """Return whether anything but comments is there."""
    return any(not isinstance(item, CommentedValue) or item.value is not None for item in items)


def _put(args: dict[str, Any], name: str, written: Any) -> None:
    """Add a value; of a mapping or list that has only comments, the comments."""
    if not isinstance(written, Mapping | list):
        args[name] = written
        return
    items = written.values() if isinstance(written, Mapping) else written
    if _has_values(items):
        args[name] = written
    elif written:
        args[name] = CommentedValue(
            tuple(f"{name}: {note}" for item in items for note in item.notes)
        )


def channel_task(channel: live.RssChannel, rss_guid: str) -> dict[str, Any]:
    """Return the task that describes all items of a channel; ``rss_guid`` is the server's dialect."""
    items: list[Any] = []
    notes: list[str] = []
    guid_of_file: dict[str, str] = {}
    counts = Counter(item.guid for item in channel.items)
    first_items = {item.guid: item for item in reversed(channel.items)}
    for guid in counts:
        item = first_items[guid]
        written = rss_item(item, rss_guid)
        why = _unfit_item(item, counts[guid], rss_guid) or _conflict(written, guid_of_file)
        if why is None:
            items.append(written)
            continue
        notes.append(f"an item is left out: {why}")
        items.append(CommentedValue((notes[-1],)))
    args: dict[str, Any] = {"channel": channel.name, "items": items}
    if not notes:
        args["exactly"] = True
    if len(notes) == len(items):
        args["items"] = CommentedValue(tuple(notes), [])
    return {"name": channel.name, "rss": args}


def _unfit_item(item: live.RssItem, count: int, rss_guid: str) -> str | None:
    guid = item.guid
    if not guid:
        return "it has no guid"
    if count > 1:
        return f"{count} items have the guid {guid}"
    if rss_guid != "item" and not _is_file(guid):
        return f"its guid {guid} is a file name on this server, and no file can be called so"
    if bad_character(guid, line=True):
        return f"its guid {guid!r} holds a character that no playbook can name"
    if (item.pub_date or "").strip() and parse_feed_time(item.pub_date or "") is None:
        return f"the pubDate of {guid}, {item.pub_date!r}, is not a date that a playbook can name"
    if not (item.title or "").strip() and not (item.description or "").strip():
        return f"the item {guid!r} has neither a title nor a description"
    return None


def _conflict(written: dict[str, Any], guid_of_file: dict[str, str]) -> str | None:
    """Return why an item conflicts with those before it: both would be written as one file."""
    guid = written["guid"]
    file = written.get("file") or default_file(guid, text="text" in written)
    other = guid_of_file.setdefault(file_key(file), guid)
    if other != guid:
        return f"{guid} would be written as the same file as the item {other}"
    return None


def rss_item(item: live.RssItem, rss_guid: str) -> dict[str, Any]:
    """Return an item as a text if it came as one, else by its fields; empty ones are left out."""
    fields: dict[str, Any] = {}
    for name, text in item.fields.items():
        if name in RSS_FIELDS and text.strip():
            fields[name] = text
    head = {"guid": item.guid}
    form = form_of(fields)
    if rss_guid == "file":
        head["file"] = item.guid
        ending = item.guid[-4:].lower() if _is_file(item.guid) else ""
        if ending == ".xml":
            form = "item"
        elif ending == ".txt" and fields.keys().isdisjoint({"link", "pubDate"}):
            form = "text"
    elif item.guid and not is_file_name(item.guid):
        if rss_guid == "stem":
            head["file"] = item.guid + (".xml" if form == "item" else ".txt")
        else:
            form = "item"  # a text does not hold its guid
    if form == "item":
        return head | {"item": fields}
    return head | {"text": text_of(fields)}


def _is_file(guid: str) -> bool:
    return "/" not in guid and "\\" not in guid
