"""A live RSS channel to the task that describes it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msauto.documents.writer import CommentedValue
from msauto.interface.rss_files import bad_character, default_file, ending_of, file_key, form_of, stem_of
from msauto.model.live import RssChannel, RssItem

_FIELDS = ("title", "description", "link", "pubDate")


def channel_task(channel: RssChannel, rss_guid: str) -> dict[str, Any]:
    """Return the task that describes all items of a channel; ``rss_guid`` is the server's dialect."""
    items: list[Any] = []
    taken: dict[str, str] = {}
    counts = Counter(item.guid for item in channel.items)
    for guid in dict.fromkeys(item.guid for item in channel.items):
        item = next(each for each in channel.items if each.guid == guid)
        sourced = _item(item, rss_guid)
        why = _unfit(item, counts[guid], rss_guid) or _taken(sourced, taken, rss_guid)
        items.append(sourced if why is None else CommentedValue((f"an item is left out: {why}",)))
    sourced = {"channel": channel.name, "items": items}
    if not any(isinstance(item, CommentedValue) for item in items):
        sourced["exactly"] = True
    if all(isinstance(item, CommentedValue) for item in items):
        sourced["items"] = CommentedValue(tuple(note for item in items for note in item.notes), [])
    return {"name": channel.name, "rss": sourced}


def _unfit(item: RssItem, count: int, rss_guid: str) -> str | None:
    guid = item.guid
    if not guid:
        return "it has no guid"
    if count > 1:
        return f"{count} items have the guid {guid}"
    if rss_guid == "file" and not _is_file(guid):
        return f"its guid {guid} is a file name on this server, and no file can be called so"
    if bad_character(guid, line=True):
        return f"its guid {guid!r} holds a character that no playbook can name"
    return None


def _taken(sourced: dict[str, Any], taken: dict[str, str], rss_guid: str) -> str | None:
    """Return why an item conflicts with those before it: the channel may show both under one name."""
    file = sourced.get("file") or default_file(sourced["guid"], text="text" in sourced)
    shown = (sourced["guid"], file, stem_of(file)) if rss_guid == "auto" else (file,)
    names = {file_key(name) for name in shown}
    other = next((taken[name] for name in names if name in taken), None)
    if other is not None:
        return f"{sourced['guid']} may be the same file as the item {other}; `rss_guid` of the dialect decides that"
    taken |= dict.fromkeys(names, sourced["guid"])
    return None


def _item(item: RssItem, rss_guid: str) -> dict[str, Any]:
    """Return an item as a text if it came as one, else by its fields; empty ones are left out."""
    fields = dict(zip(_FIELDS, (item.title, item.description, item.link, item.pub_date), strict=True))
    sourced = {name: text for name, text in fields.items() if text and text.strip()}
    ending = ending_of(item.guid).lower() if rss_guid in {"auto", "file"} and _is_file(item.guid) else ""
    named = rss_guid == "file" or ending in {".txt", ".xml"}
    head = {"guid": item.guid} | ({"file": item.guid} if named else {})
    form = "item" if ending == ".xml" else form_of(item)
    if form == "item" and not (ending == ".txt" and not sourced.keys() & {"link", "pubDate"}):
        return head | {"item": sourced}
    return head | {"text": _text(sourced)}


def _text(sourced: dict[str, str]) -> str:
    """Return the text of an item: the description if it begins with the title, else the title and the description."""
    title, description = sourced.get("title", ""), sourced.get("description", "")
    if description.strip() == title.strip() or description.replace("\r\n", "\n").startswith(f"{title}\n"):
        return description
    return "\n".join(part for part in (title, description) if part)


def _is_file(guid: str) -> bool:
    return "/" not in guid and "\\" not in guid
