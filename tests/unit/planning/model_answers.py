"""The answers of the model of a server to reads: XML as the interface shows it, for the real reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qs, unquote
from xml.etree import ElementTree as ET

import httpx2

from msauto.model.live import Folder, parse_folder

Given = Mapping[str, Any]
Found = ET.Element | str | None
"""An answer: a document, a text, or that nothing is there."""


class Answers(httpx2.AsyncBaseTransport):
    """Gives the model's answer to each request target."""

    def __init__(self, answer: Callable[[str, str], Found]) -> None:
        self._answer = answer

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        path, _, text = request.extensions["target"].decode().partition("?")
        field = parse_qs(text).get("field", [""])[0]
        found = self._answer(path, field)
        if found is None:
            return httpx2.Response(404, content=b"Object not found")
        if isinstance(found, str):
            return httpx2.Response(200, content=found.encode())
        return httpx2.Response(200, content=ET.tostring(found))


def clip_element(own: Mapping[str, str | None], attributes: Mapping[str, str]) -> ET.Element:
    """``Clip`` with its attributes; ``None`` is not shown."""
    clip = ET.Element("Clip", {name: text for name, text in own.items() if text is not None})
    for name, text in attributes.items():
        ET.SubElement(clip, "Attr", name=name).text = text
    return clip


def add_marker(clip: ET.Element, marker: Given) -> None:
    element = ET.SubElement(clip, "Marker", uid=str(marker["uid"]), pos=str(marker["frame"]))
    for name, value in marker.items():
        if name not in {"uid", "frame"}:
            ET.SubElement(element, "Attr", name=name).text = str(value)


def add_segment(clip: ET.Element, number: int, segment: Given, *, with_keywords: bool) -> None:
    element = ET.SubElement(
        clip,
        "Segment",
        seg_num=str(number),
        start_frame=str(segment["start"]),
        duration=str(segment["duration"]),
    )
    if "name" in segment:
        element.set("seg_name", segment["name"])
    title = segment.get("title")
    for text in segment.get("titles") or filter(None, [title]):
        ET.SubElement(element, "title").text = text
    shown = ("track", "rating", "keywords") if with_keywords else ("track", "rating")
    for name in shown:
        if segment.get(name) is not None:
            ET.SubElement(element, name).text = str(segment[name])


def user_fields(xmp: Mapping[str, list[str]], field: str) -> ET.Element:
    """The XMP fields, or one of them."""
    root = ET.Element("UserFields")
    for name, values in xmp.items():
        if field not in {"", name}:
            continue
        bag = ET.SubElement(ET.SubElement(root, "Field", name=name), "Bag")
        for value in values:
            ET.SubElement(bag, "li").text = value
    return root


def stored_tree(
    top: Folder, folders: Iterable[Folder], entries: Iterable[tuple[Folder, ET.Element]]
) -> ET.Element:
    """A listing of a folder, with all that is below it."""
    root = ET.Element("StoredTree")
    elements = {top: ET.SubElement(root, "Folder", name="")}

    def at(folder: Folder) -> ET.Element:
        if folder not in elements:
            elements[folder] = ET.SubElement(at(folder[:-1]), "Folder", name=folder[-1])
        return elements[folder]

    depth = len(top)
    for folder in sorted(folders):
        if folder[:depth] == top:
            at(folder)
    for folder, clip in entries:
        if folder[:depth] == top:
            at(folder).append(clip)
    return root


def channel_element(items: Iterable[Given]) -> ET.Element:
    root = ET.Element("rss")
    channel = ET.SubElement(root, "channel")
    for item in items:
        element = ET.SubElement(channel, "item")
        for name in ("guid", "title", "description", "link", "pubDate"):
            if item.get(name) is not None:
                ET.SubElement(element, name).text = item[name]
        for name, text in item.get("extra", {}).items():
            if name.startswith("<"):
                element.extend(ET.fromstring(f"<several>{text}</several>"))
            else:
                ET.SubElement(element, name).text = text
    return root


def named(kind: str, names: Iterable[str]) -> ET.Element:
    """A list of databases, or of channels."""
    root = ET.Element(f"{kind}s")
    for name in names:
        ET.SubElement(root, kind, name=name)
    return root


def place_of(path: str) -> tuple[str, Folder, str | None]:
    """Database, folder and asset of a path below ``/storage/``; the asset as it is addressed, escaped."""
    rest = path.removeprefix("/storage/")
    at, sign, asset = rest.partition("@")
    database, _, folder = at.partition("/")
    return unquote(database), parse_folder(unquote(folder)), asset if sign else None
