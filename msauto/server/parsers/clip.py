"""The detailed shape of one asset, root ``Clip`` (interface, «Asset (clip)»)."""

from __future__ import annotations

import re
from dataclasses import replace

from msauto.model.live import Asset, Folder, Link, Marker, Segment, parse_folder
from msauto.server.parsers.attrs import need_integer, read_attrs, read_flag, read_integer
from msauto.server.parsers.xml import Element, attributes, children, find_root, local, parse_document, text_of

_ROOT = frozenset({"folder", "hires", "proxy", "archive", "link_id", "finalized"})
_SEGMENT = frozenset({"seg_num", "seg_name", "start_frame", "duration"})
_SEGMENT_TEXTS = ("track", "rating", "keywords")
_CONTAINERS = frozenset({"markers", "segments", "links", "attrs", "attributes", "params", "parameters"})
_LONE = re.compile(r"\\(?![/\\])")
_PARAMETERS = frozenset({"param", "parameter"})
_NO_ATTRIBUTE = _CONTAINERS | _PARAMETERS | {"marker", "segment", "link"}


def parse_clip(data: bytes, charset: str | None = None, *, database: str = "") -> Asset:
    """Read the Clip XML; unknown attributes and plain children are kept among ``attributes``.

    ``database`` is the one asked, which some servers put in front of the folder: ``folder_otherwise`` is with it.
    Raises ``UnreadableError`` for anything else, and for a marker or segment that cannot be told from another.
    """
    clip = find_root(parse_document(data, charset), "Clip", "description of an asset")
    own = attributes(clip)
    parts = _parts(clip)
    texts = {name: value for name, value in own.items() if name not in _ROOT}
    for holder in _holders(clip):
        texts |= read_attrs(holder, skip=_NO_ATTRIBUTE)
    folder = _home(own["folder"]) if "folder" in own else None
    in_front = folder is not None and folder[:1] == (database,)
    return Asset(
        title=texts.get("title", texts.get("clip_name")),
        folder=folder[1:] if folder and in_front else folder,
        hires=own.get("hires"),
        proxy=own.get("proxy"),
        archive=own.get("archive"),
        link_id=read_integer(own.get("link_id")),
        finalized=read_flag(own.get("finalized")),
        attributes=texts,
        markers=tuple(_marker(part) for part in parts if local(part).lower() == "marker"),
        segments=_titled(tuple(_segment(part) for part in parts if local(part).lower() == "segment")),
        links=_links(clip, parts),
        parameters=_parameters(parts),
        folder_otherwise=folder if in_front else None,
    )


def _home(text: str) -> Folder:
    """Read the folder of a clip: the interface says no more of it than «folder of the asset».

    A backslash that escapes nothing separates, where no slash does.
    """
    separates = "/" not in text and _LONE.search(text.replace("\\\\", ""))
    return parse_folder(text.replace("\\", "/") if separates else text)


def _holders(clip: Element) -> list[Element]:
    return [clip, *(child for child in children(clip) if local(child).lower() in _CONTAINERS)]


def _parts(clip: Element) -> list[Element]:
    return [child for holder in _holders(clip) for child in children(holder)]


def _marker(element: Element) -> Marker:
    own = attributes(element)
    fields = {name: value for name, value in own.items() if name not in {"uid", "pos"}} | read_attrs(element)
    uid = need_integer(own.get("uid"), "the uid of a marker")
    return Marker(uid, need_integer(own.get("pos"), f"the position of marker {uid}"), fields)


def _segment(element: Element) -> Segment:
    own = attributes(element)
    number = need_integer(own.get("seg_num"), "the number of a segment")
    texts = read_attrs(element)
    titles = [_plain(child) for child in children(element) if _name(child) == "title"]
    extra = {name: value for name, value in own.items() if name not in _SEGMENT} | texts
    return Segment(
        number=number,
        start=need_integer(own.get("start_frame"), f"the start of segment {number}"),
        duration=need_integer(own.get("duration"), f"the duration of segment {number}"),
        name=own.get("seg_name"),
        titles=tuple(titles),
        **{name: texts.get(name) for name in _SEGMENT_TEXTS},
        extra={name: value for name, value in extra.items() if name not in {*_SEGMENT_TEXTS, "title"}},
    )


def _titled(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """Give an empty title to a segment without one, where others of the clip show theirs as the interface has it.

    On such a server a title is a child («Segment»: «title (child)»), and the name of one without is no title of
    anybody's: servers make one up. Where no segment shows a child, the name may be what was sent as the title.
    """
    if not any(segment.titles for segment in segments):
        return segments
    return tuple(segment if segment.titles else replace(segment, titles=("",)) for segment in segments)


def _name(element: Element) -> str:
    return attributes(element).get("name", "") if local(element).lower() == "attr" else local(element)


def _plain(element: Element) -> str:
    return text_of(element) or attributes(element).get("value", "")


def _links(clip: Element, parts: list[Element]) -> tuple[Link, ...] | None:
    found = [part for part in parts if local(part).lower() == "link"]
    listed = any(local(child).lower() == "links" for child in children(clip))
    return tuple(_link(part) for part in found) if found or listed else None


def _link(element: Element) -> Link:
    texts = attributes(element) | read_attrs(element)
    title = texts.get("title", texts.get("clip_name", texts.get("name", "")))
    return Link(parse_folder(texts.get("folder", "")), title, read_integer(texts.get("link_id")))


def _parameters(parts: list[Element]) -> tuple[str, ...]:
    found = [part for part in parts if local(part).lower() in _PARAMETERS]
    return tuple(attributes(part).get("name", "") or text_of(part).strip() for part in found)
