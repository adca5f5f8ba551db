"""An independent model of a feed: a folder of files, each an item of the channel (interface, «RSS channel»)."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

Items = list[dict[str, Any]]
_OWN = frozenset({"guid", "title", "description", "link", "pubDate"})


def take_file(items: Items, file: str, text: str, rss_guid: str) -> None:
    """PUT: replace a file of the same name; items are in the order of a listing. ``rss_guid``: what shows as guid."""
    item = _item(file, text, rss_guid)
    at = next((i for i, other in enumerate(items) if _file(other) == file), len(items))
    items[at : at + 1] = [item]
    items.sort(key=_file)


def drop_items(items: Items, guid: str, rss_delete: str) -> None:
    """DELETE: all items of a guid, or the first one."""
    places = [at for at, item in enumerate(items) if item["guid"] == guid]
    assert places, "nothing has this guid"
    for at in reversed(places[:1] if rss_delete == "first" else places):
        del items[at]


def _item(file: str, text: str, rss_guid: str) -> dict[str, Any]:
    stem = file.rpartition(".")[0]
    guids = {"file": file, "stem": stem, "item": stem, "other": f"feed/{file}#1"}
    if not text.startswith("<?xml"):
        title = text.partition("\n")[0]
        return {"file": file, "guid": guids[rss_guid], "title": title, "description": text}
    item: dict[str, Any] = {"file": file, "guid": guids[rss_guid]}
    extra: dict[str, str] = {}
    for child in ET.fromstring(text):
        if child.tag == "guid" and rss_guid != "item":
            continue
        if child.tag in _OWN:
            item[child.tag] = child.text or ""
        elif child.attrib or child.tag.startswith("{"):
            extra[f"<{child.tag}>"] = ET.tostring(child, "unicode")
        else:
            extra[child.tag] = child.text or ""
    return {**item, "extra": extra}


def _file(item: dict[str, Any]) -> str:
    """The file of an item; if a case does not name it, the default for its guid and content."""
    guid, title, description = (
        str(item.get(name) or "") for name in ("guid", "title", "description")
    )
    is_text = (
        not item.get("link")
        and not item.get("pubDate")
        and (not description or description.startswith(title))
    )
    ending = "" if guid.endswith((".txt", ".xml")) else ".txt" if is_text else ".xml"
    return str(item.get("file") or guid + ending)
