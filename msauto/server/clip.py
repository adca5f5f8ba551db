"""The description of one asset, root ``Clip`` (interface, «Asset (clip)»)."""

from __future__ import annotations

import re
from collections import defaultdict

from msgspec import structs

from msauto.model.fields import NAMES
from msauto.model.live import Asset, Folder, Link, Marker, Segment, parse_folder, whole
from msauto.server.xml import (
    Element,
    attributes,
    find_roots,
    local,
    parse_document,
    text_of,
    unreadable,
)

_ROOT = frozenset({"folder", "hires", "proxy", "archive", "link_id", "finalized"})
_SEGMENT = frozenset({"seg_num", "seg_name", "start_frame", "duration"})
_SEGMENT_TEXTS = ("track", "rating", "keywords")
_PARTS = {name: name for name in ("marker", "segment", "link", "param")} | {
    "parameter": "param",
    **dict.fromkeys(("markers", "segments", "links", "attrs", "attributes", "params", "parameters"), "container"),
}
"""The kinds of the children of a clip that hold more than a text, by their names in lower case."""
Parts = defaultdict[str, list[Element]]

_MOST_DESCRIBED = 5
_LONE = re.compile(r"\\(?![/\\])")


def parse_clip(data: bytes, charset: str | None = None, *, database: str = "") -> Asset:
    """Read the Clip XML; unknown attributes and plain children are kept among ``attributes``.

    ``database`` is the database asked, which some servers put in front of the folder: ``folder_otherwise`` includes it.
    Raises ``UnreadableError`` for anything else, for several clips, and for a marker or segment without its key.
    """
    clip, *others = find_roots(parse_document(data, charset), "Clip", "the description of an asset")
    if others:
        shown = [_describe(each) for each in (clip, *others[: _MOST_DESCRIBED - 1])]
        raise unreadable(
            f"the answer holds {len(others) + 1} clips instead of one: {'; '.join(shown)}",
            "address the clip by a key field with `id:`, or rename all but one of them",
        )
    own = attributes(clip)
    parts: Parts = defaultdict(list)
    texts = {name: value for name, value in own.items() if name not in _ROOT} | read_attrs(clip, parts)
    holders = tuple(parts["container"])
    for holder in holders:
        texts |= read_attrs(holder, parts)
    folder = _home(own["folder"]) if "folder" in own else None
    links = tuple(map(_link, parts["link"]))
    in_front = folder is not None and folder[:1] == (database,)
    return Asset(
        title=texts.get("title", texts.get("clip_name")),
        folder=folder[1:] if folder and in_front else folder,
        hires=own.get("hires"),
        proxy=own.get("proxy"),
        archive=own.get("archive"),
        link_id=whole(own.get("link_id")),
        finalized=read_flag(own.get("finalized")),
        attributes=texts,
        markers=tuple(map(_marker, parts["marker"])),
        segments=_titled(tuple(map(_segment, parts["segment"]))),
        links=links if links or any(local(each).lower() == "links" for each in holders) else None,
        parameters=tuple(attributes(each).get("name", "") or text_of(each).strip() for each in parts["param"]),
        folder_otherwise=folder if in_front else None,
    )


def _describe(clip: Element) -> str:
    """Return what distinguishes a clip from another one, as far as it is shown."""
    texts = attributes(clip) | read_attrs(clip)
    title = repr(texts.get("title", texts.get("clip_name", "a clip without a title")))
    known = [f"{name} {texts[name]}" for name in ("folder", "link_id", "create_time") if texts.get(name)]
    return f"{title} ({', '.join(known)})" if known else title


def _home(text: str) -> Folder:
    """Read the folder of a clip, which the interface describes only as «folder of the asset».

    Without a slash, a backslash that escapes nothing is the separator.
    """
    separates = "/" not in text and _LONE.search(text.replace("\\\\", ""))
    return parse_folder(text.replace("\\", "/") if separates else text)


def _marker(element: Element) -> Marker:
    own = attributes(element)
    fields = {name: value for name, value in own.items() if name not in {"uid", "pos"}} | read_attrs(element)
    uid = need_integer(own.get("uid"), "the uid of a marker")
    return Marker(uid, need_integer(own.get("pos"), f"the position of marker {uid}"), fields)


def _segment(element: Element) -> Segment:
    own = attributes(element)
    number = need_integer(own.get("seg_num"), "the number of a segment")
    texts = read_attrs(element)
    titles = [text_of(each) or attributes(each).get("value", "") for each in element if _name(each) == "title"]
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
    """Give an empty title to a segment without one, if other segments of the clip have a title child.

    On such a server a title is a child («Segment»: «title (child)»), and the name of a segment without one is generated
    by the server. If no segment has the child, the name may be the title that was sent.
    """
    if not any(segment.titles for segment in segments):
        return segments
    return tuple(segment if segment.titles else structs.replace(segment, titles=("",)) for segment in segments)


def _name(element: Element) -> str:
    return attributes(element).get("name", "") if local(element).lower() == "attr" else local(element)


def _link(element: Element) -> Link:
    texts = attributes(element) | read_attrs(element)
    title = texts.get("title", texts.get("clip_name", texts.get("name", "")))
    return Link(parse_folder(texts.get("folder", "")), title, whole(texts.get("link_id")))


# Named texts: ``<Attr name="…">…</Attr>``, and its variants ------------------------------------------------------

_TRUE = frozenset({"true", "1", "yes"})
_FALSE = frozenset({"false", "0", "no"})
_KNOWN = {name: name for name in NAMES}
"""The names of the interface, interned: otherwise they would be nearly half of the memory of an asset."""


def read_attrs(element: Element, parts: Parts | None = None) -> dict[str, str]:
    """Return the named texts of an element: ``Attr`` children, and plain children by their own name.

    With ``parts``, children that hold more than a text are added there, by their kind.
    """
    found: dict[str, str] = {}
    for child in element:
        if child.tag == "Attr" and (name := child.get("name")) is not None and not len(child):
            # The documented form, nearly always, and fast.
            found[_KNOWN.get(name, name)] = child.text or child.get("value") or ""
            continue
        kind = local(child)
        if parts is not None and (part := _PARTS.get(kind.lower())) is not None:
            parts[part].append(child)
            continue
        own = attributes(child)
        if kind.lower() == "attr" and "name" in own:
            found[own["name"]] = text_of(child) or own.get("value", "")
        elif not len(child):
            found.setdefault(kind, text_of(child) or own.get("value", ""))
    return found


def read_flag(text: str | None) -> bool | None:
    """Read a boolean; the interface shows only ``true`` («States and transitions»)."""
    word = (text or "").strip().lower()
    return True if word in _TRUE else False if word in _FALSE else None


def need_integer(text: str | None, what: str) -> int:
    """Read a whole number that is required. Raises ``UnreadableError``."""
    number = whole(text)
    if number is None:
        shown = "is missing" if text is None else f"is {text[:40]!r}, not a whole number"
        raise unreadable(f"{what} {shown}")
    return number
