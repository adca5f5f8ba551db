"""A live RSS channel to the task that says it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msauto.model.live import RssChannel, RssItem
from msauto.playbook.yamltext import Noted


def channel_task(channel: RssChannel, rss_guid: str) -> dict[str, Any]:
    """Return the task that says all items of a channel; ``rss_guid`` is the server's dialect."""
    items: list[Any] = []
    complete = True
    counts = Counter(item.guid for item in channel.items)
    for guid in dict.fromkeys(item.guid for item in channel.items):
        item = next(each for each in channel.items if each.guid == guid)
        why = _unfit(guid, counts[guid], rss_guid)
        complete = complete and why is None
        items.append(_item(item, rss_guid) if why is None else Noted((f"an item is left out: {why}",)))
    said: dict[str, Any] = {"channel": channel.name, "items": items}
    if complete:
        said["exactly"] = True
    if all(isinstance(item, Noted) for item in items):
        said["items"] = Noted(tuple(note for item in items for note in item.notes), [])
    return {"name": channel.name, "rss": said}


def _unfit(guid: str, count: int, rss_guid: str) -> str | None:
    if not guid.strip():
        return "it has no guid"
    if count > 1:
        return f"{count} items have the guid {guid}"
    if rss_guid == "file" and ("/" in guid or "\\" in guid):
        return f"its guid {guid} is a file name on this server, and no file can be called so"
    return None


def _item(item: RssItem, rss_guid: str) -> dict[str, Any]:
    """Say an item as a text where that is all it shows, else by its fields; empty ones are not said."""
    fields = {"title": item.title, "description": item.description, "link": item.link, "pubDate": item.pub_date}
    said = {name: text for name, text in fields.items() if text and text.strip()}
    ending = item.guid.rpartition(".")[2].lower()
    plain = ending != "xml" and not said.keys() & {"link", "pubDate"}
    named = rss_guid == "file" or (rss_guid == "auto" and ending in {"txt", "xml"} and _is_file(item.guid))
    head = {"guid": item.guid} | ({"file": item.guid} if named else {})
    if plain:
        return head | {
            "text": "\n".join(dict.fromkeys(said[name] for name in ("title", "description") if name in said))
        }
    return head | {"item": said}


def _is_file(guid: str) -> bool:
    return "/" not in guid and "\\" not in guid
