"""What an answer shows: a clip, XMP fields, RSS channels. The interface shows the format of few of them."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal

from msgspec import structs

from msauto.errors import UnreadableError
from msauto.model.fields import NAMES, NUMBER_OF_CLIP
from msauto.model.live import (
    Asset,
    Folder,
    Link,
    Marker,
    RssChannel,
    RssItem,
    Segment,
    UnreadItem,
    UnreadNumber,
    Xmp,
    parse_folder,
)
from msauto.primitives.decimals import MOST, MOST_LONG, is_plain_whole, read_whole
from msauto.primitives.normal_form import unindented
from msauto.server import xml
from msauto.server.error_answers import is_error_document, parse_failure

_ROOT = frozenset({"folder", "hires", "proxy", "archive", "link_id", "finalized"})
_SEGMENT_TEXTS = ("track", "rating", "keywords")
_PARTS = {name: name for name in ("marker", "segment", "link", "param")} | {
    "parameter": "param",
    **dict.fromkeys(
        ("markers", "segments", "links", "attrs", "attributes", "params", "parameters"), "container"
    ),
}
"""The kinds of the children of a clip that hold more than a text, by their names in lower case."""
Parts = defaultdict[str, list[xml.Element]]
Shown = dict[str, int | str]
"""The attributes of an item that could be read."""
UnreadKind = Literal["marker", "segment"]

_MOST_DESCRIBED = 5
_UNREAD_KEY = "?"
"""How the key of an item begins whose own key cannot be read: no other item has such a key."""
_KEPT = 100  # characters of a number that cannot be read
_MOST_UNREAD = 1000
"""Each number that cannot be read is a warning."""
_LONE = re.compile(r"\\(?![/\\])")


def parse_clip(data: bytes, charset: str | None = None, *, database: str = "") -> Asset:
    """Read the Clip XML; unknown attributes and plain children are kept among ``attributes``.

    A number that cannot be read, or is out of range, counts as not reported. A marker or a segment without its number
    or its place is among ``unread_items``.

    ``database`` is the database asked, which some servers put in front of the folder: ``folder_otherwise`` includes it.
    Raises ``UnreadableError`` for anything else, and for several clips.
    """
    clips = xml.find_roots(xml.parse_document(data, charset), "Clip", "the description of an asset")
    if len(clips) > 1:
        shown = "; ".join(map(_describe, clips[:_MOST_DESCRIBED]))
        raise xml.unreadable(
            f"the answer holds {len(clips)} clips instead of one: {shown}",
            "address the clip by a key field with `id:`, or rename all but one of them",
        )
    (clip,) = clips
    own = xml.attributes(clip)
    parts: Parts = defaultdict(list)
    texts = {name: text for name, text in own.items() if name not in _ROOT}
    texts |= read_attrs(clip, parts)
    holders = tuple(parts["container"])
    for holder in holders:
        texts |= read_attrs(holder, parts)
    numbers = _Numbers()
    links = [_link(element, numbers) for element in parts["link"]]
    markers = [_marker(element, numbers) for element in parts["marker"]]
    segments = [_segment(element, numbers) for element in parts["segment"]]
    shows_links = bool(links) or any(xml.local(holder).lower() == "links" for holder in holders)
    folder, folder_otherwise = _folders(own.get("folder"), database)
    return Asset(
        title=texts.get("title", texts.get("clip_name")),
        folder=folder,
        hires=own.get("hires"),
        proxy=own.get("proxy"),
        archive=own.get("archive"),
        link_id=numbers.read("link_id", own.get("link_id"), MOST_LONG),
        finalized=read_finalized(own.get("finalized")),
        attributes=numbers.readable(texts),
        markers=tuple(filter(None, markers)),
        segments=_titled(tuple(filter(None, segments))),
        links=tuple(links) if shows_links else None,
        parameters=tuple(map(_parameter, parts["param"])),
        folder_otherwise=folder_otherwise,
        unread=tuple(numbers.unread),
        unread_items=tuple(numbers.unread_items),
    )


def _folders(text: str | None, database: str) -> tuple[Folder | None, Folder | None]:
    """Return the folder of a clip, and the same with the database in front, if the answer has it there.

    The interface does not specify its form. Without a slash, a backslash that escapes nothing is the separator.
    """
    if text is None:
        return None, None
    if "/" not in text and _LONE.search(text.replace("\\\\", "")):
        text = text.replace("\\", "/")
    folder = parse_folder(text)
    if folder[:1] == (database,):
        return folder[1:], folder
    return folder, None


def _parameter(element: xml.Element) -> str:
    return xml.attributes(element).get("name") or xml.text_of(element).strip()


class _Numbers:
    """Reads the numbers of one answer; ``unread`` are those that it cannot read and that belong to no unread item."""

    def __init__(self) -> None:
        self.unread: list[UnreadNumber] = []
        self.unread_items: list[UnreadItem] = []
        self._count = 0

    def read(self, name: str, text: str | None, most: int = MOST) -> int | None:
        """Read a whole number; ``None`` where it is not reported, or cannot be read."""
        number = read_whole(text, most)
        if number is None and text is not None and text.strip():
            self.unread.append(self.cannot_read(name, text))
        return number

    def readable(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Return the attributes of a clip without the numbers that cannot be read."""
        readable = dict(texts)
        for name, text in texts.items():
            number = NUMBER_OF_CLIP.get(name)
            if number is None or is_plain_whole(text) or not text.strip():
                continue
            if number.read(text) is None:
                self.unread.append(self.cannot_read(name, text))
                del readable[name]
        return readable

    def cannot_read(self, name: str, text: str | None) -> UnreadNumber:
        """Return a number that cannot be read, or is missing. Raises ``UnreadableError`` for one of too many."""
        self._count += 1
        if self._count > _MOST_UNREAD:
            raise xml.unreadable(
                f"more than {_MOST_UNREAD:,} numbers of the answer cannot be read, the last is {name}"
            )
        return UnreadNumber(name, (text or "")[:_KEPT])

    def cannot_place(
        self, kind: UnreadKind, number: int | None, name: str, text: str | None, shown: Shown
    ) -> None:
        """Note an item without its number, or without a number of its place; ``name`` is what that number is."""
        item = f"a {kind}" if number is None else f"{kind} {number}"
        unread = self.cannot_read(f"the {name} of {item}", text)
        key = f"{_UNREAD_KEY}{unread.text}" if number is None else str(number)
        self.unread_items.append(UnreadItem(kind, key, unread, shown))


def _describe(clip: xml.Element) -> str:
    """Return what distinguishes a clip from another one, as far as it is shown."""
    texts = xml.attributes(clip) | read_attrs(clip)
    title = repr(texts.get("title", texts.get("clip_name", "a clip without a title")))
    shown = [
        f"{name} {texts[name]}" for name in ("folder", "link_id", "create_time") if texts.get(name)
    ]
    return f"{title} ({', '.join(shown)})" if shown else title


def _marker(element: xml.Element, numbers: _Numbers) -> Marker | None:
    """Read a marker; ``None``: it is among the unread items."""
    own = xml.attributes(element)
    uid_text = own.pop("uid", None)
    position = own.pop("pos", None)
    fields = own | read_attrs(element)
    uid = read_whole(uid_text, MOST_LONG)
    frame = read_whole(position)
    if uid is None or frame is None:
        shown: Shown = {**fields}
        shown.pop("frame", None)  # a name that others may give an attribute
        if frame is not None:
            shown["frame"] = frame
        if uid is None:
            numbers.cannot_place("marker", None, "uid", uid_text, shown)
        else:
            numbers.cannot_place("marker", uid, "position", position, shown)
        return None
    numbers.read(f"the rating of marker {uid}", fields.get("rating"))
    return Marker(uid, frame, fields)


def _segment(element: xml.Element, numbers: _Numbers) -> Segment | None:
    """Read a segment; ``None``: it is among the unread items."""
    own = xml.attributes(element)
    name = own.pop("seg_name", None)
    number_text = own.pop("seg_num", None)
    start_text = own.pop("start_frame", None)
    duration_text = own.pop("duration", None)
    titles: list[str] = []
    for child in element:
        kind = xml.local(child)
        if kind.lower() == "attr":
            kind = xml.attributes(child).get("name", "")
        if kind == "title":
            titles.append(xml.text_of(child) or _value(child))
    number = read_whole(number_text, MOST_LONG)
    start = read_whole(start_text)
    duration = read_whole(duration_text, least=0)
    texts = read_attrs(element)
    if number is None or start is None or duration is None:
        title = titles[0] if titles else name or ""
        shown: Shown = {"title": title}
        if start is not None:
            shown["start"] = start
        if duration is not None:
            shown["duration"] = duration
        if number is None:
            numbers.cannot_place("segment", None, "number", number_text, shown)
        elif start is None:
            numbers.cannot_place("segment", number, "start", start_text, shown)
        else:
            numbers.cannot_place("segment", number, "duration", duration_text, shown)
        return None
    extra = own | texts
    for known in ("title", *_SEGMENT_TEXTS):
        extra.pop(known, None)
    rating = texts.get("rating")
    if rating:
        numbers.read(f"the rating of segment {number}", rating)
    return Segment(
        number=number,
        start=start,
        duration=duration,
        name=name,
        titles=tuple(titles),
        track=texts.get("track"),
        rating=rating,
        keywords=texts.get("keywords"),
        extra=extra,
    )


def _titled(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """Give an empty title to a segment without one, if other segments of the clip have a title child.

    On such a server a title is a child (interface, «Segment»), and the server generates the name of a segment without
    one. If no segment has the child, the name may be the title that was sent.
    """
    if not any(segment.titles for segment in segments):
        return segments
    return tuple(structs.replace(segment, titles=segment.titles or ("",)) for segment in segments)


def _value(element: xml.Element) -> str:
    return xml.attributes(element).get("value", "")


def _link(element: xml.Element, numbers: _Numbers) -> Link:
    texts = xml.attributes(element) | read_attrs(element)
    title = texts.get("title", texts.get("clip_name", texts.get("name", "")))
    link_id = numbers.read("the link_id of a link", texts.get("link_id"), MOST_LONG)
    return Link(parse_folder(texts.get("folder", "")), title, link_id)


# Named texts: ``<Attr name="…">…</Attr>``, and its variants ------------------------------------------------------

_KNOWN = {name: name for name in NAMES}
"""The names of the interface, interned: otherwise they would be nearly half of the memory of an asset."""


def read_attrs(element: xml.Element, parts: Parts | None = None) -> dict[str, str]:
    """Return the named texts of an element: ``Attr`` children, and plain children by their own name.

    With ``parts``, children that hold more than a text are added there, by their kind.
    """
    texts = {}
    for child in element:
        if child.tag == "Attr" and (name := child.get("name")) is not None and not len(child):
            # The documented form, nearly always, and fast.
            text = child.text or child.get("value") or ""
            if "" < text[:1] <= " ":
                text = unindented(text)
            texts[_KNOWN.get(name, name)] = text
            continue
        kind = xml.local(child)
        part = _PARTS.get(kind.lower())
        if parts is not None and part is not None:
            parts[part].append(child)
            continue
        named = None
        if kind.lower() == "attr":
            named = xml.attributes(child).get("name")
        if named is not None:
            texts[named] = xml.text_of(child) or _value(child)
        elif not len(child):
            texts.setdefault(kind, xml.text_of(child) or _value(child))
    return texts


def read_finalized(text: str | None) -> bool | None:
    """Read whether a recording has ended; ``None`` if the answer does not report it.

    The interface shows only ``true`` (interface, «States»): any other text counts as still being recorded.
    """
    return None if text is None else text.strip().lower() == "true"


_PREFIXES = {
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://ns.adobe.com/xap/1.0/": "xmp",
    "http://ns.adobe.com/xap/1.0/rights/": "xmpRights",
    "http://ns.adobe.com/xap/1.0/mm/": "xmpMM",
    "http://ns.adobe.com/xmp/1.0/DynamicMedia/": "xmpDM",
    "http://ns.adobe.com/photoshop/1.0/": "photoshop",
    "http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/": "Iptc4xmpCore",
    "http://iptc.org/std/Iptc4xmpExt/2008-02-29/": "Iptc4xmpExt",
}
_VALUES = frozenset({"li", "value", "val", "bag", "seq", "alt", "values", "list", "item"})
_NAMED = frozenset({"attr", "field", "userfield", "property", "xmp", "item", "param"})
_NAME_KEYS = ("name", "field", "key", "id")
_LONGEST_VALUE = 2**20
_LINE_END = re.compile(r"\r\n|\r|\n")
_LINE = re.compile(r"\s*+([^\s=<>{}\"']++)\s*+=(.*)")
_NAME = re.compile(r"[\w.-]+:[\w.-]+")

Fields = dict[str, list[list[str]]]
"""By name, the values of each occurrence of a field; a single text is not split yet."""


def parse_xmp(
    data: bytes, separator: str = ",", charset: str | None = None, *, asked: str | None = None
) -> Xmp | None:
    """Read XMP fields: each a tuple of values, empty for an empty field. ``None``: the answer cannot be read.

    A field with one text is split at ``separator``; a field with several values is not.
    ``asked`` is the field of the request, under which a value without a name is kept.
    """
    if xml.looks_like_html(data):
        return None
    text = xml.decode_text(data, charset).lstrip("\ufeff").strip()
    if not text:
        return {}
    has_control = any(sign < " " and sign not in "\t\r\n" for sign in text)
    if has_control or _is_json(text):
        return None
    try:
        if text.startswith("<"):
            fields = _fields_in_xml(data, charset, asked)
        else:
            fields = _fields_in_lines(text, asked)
    except UnreadableError:
        return None
    if fields is None:
        return None
    return {name: _values(shown, separator) for name, shown in fields.items()}


def _is_json(text: str) -> bool:
    """Return whether this is a JSON document, which is not a format of the interface, or a value in braces."""
    if not (text.startswith("{") and text.endswith("}")):
        return False
    if len(text) > _LONGEST_VALUE:
        return True
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _values(shown: list[list[str]], separator: str) -> tuple[str, ...]:
    flat = []
    for values in shown:
        flat += values
        if not values and len(shown) > 1:
            flat.append("")  # an empty field that occurs once has no value; of several, each is one
    if len(flat) != 1:
        return tuple(flat)
    parts = flat[0].split(separator) if separator else flat
    stripped = [part.strip() for part in parts]
    return () if stripped == [""] else tuple(stripped)


def _fields_in_lines(text: str, asked: str | None) -> Fields | None:
    found: Fields = {}  # the lines of each value
    last: list[str] | None = None
    for line in _LINE_END.split(text):  # other line separators, such as U+2028, are part of a value
        match = _LINE.fullmatch(line)
        if match is not None:
            last = [match[2]]
            found.setdefault(match[1], []).append(last)
        elif last is not None:
            last.append(line)  # a value of several lines
        elif line.strip() and not line.lstrip().startswith("="):  # else a value without a name
            return _field_in_text(text, asked)
    if found and asked:
        own = {asked, asked.rpartition(":")[2]}
        if not any(name in own or _NAME.fullmatch(name) for name in found):
            return _field_in_text(text, asked)  # a bare value may contain a ``=`` as well
    return {name: [["\n".join(lines).strip()] for lines in shown] for name, shown in found.items()}


def _field_in_text(text: str, asked: str | None) -> Fields | None:
    """Read a bare text as the value of the field that was asked for."""
    if asked and parse_failure(text.encode()) is None:
        return {asked: [[text]]}
    return None


def _fields_in_xml(data: bytes, charset: str | None, asked: str | None) -> Fields | None:
    root = xml.unwrap(xml.parse_document(data, charset))
    if is_error_document(root):
        return None
    fields: Fields = {}
    _read(root, "", fields, top=True)
    if not asked or asked in fields:
        return fields
    # It is that of the only value without a name, or without its namespace.
    local = asked.rpartition(":")[2]
    same = [name for name in fields if name.rpartition(":")[2] == local]
    if len(same) == 1:
        fields[asked] = fields.pop(same[0])
    elif not fields and (shown := _nested(root)):
        fields[asked] = [shown]
    return fields


def _read(element: xml.Element, prefix: str, fields: Fields, *, top: bool = False) -> None:
    name = _named(element, prefix)
    below = list(element)
    has_named = any(_named(child, "") is not None for child in below)
    is_description = xml.local(element) == "Description" and element.prefix == "rdf"
    if is_description:
        _read_properties(element, fields)
    if name is not None and not has_named:
        fields.setdefault(name, []).append(_nested(element))
        return
    if below:
        is_field = not has_named and all(_is_value(child) for child in below)
    else:
        is_field = not is_description and not _is_value(element)
    if is_field and not top:
        fields.setdefault(_qualified(element), []).append(_nested(element))
        return
    if name is not None and ":" not in name:
        prefix = f"{name}:"
    for child in below:
        _read(child, prefix, fields)


def _read_properties(element: xml.Element, fields: Fields) -> None:
    """Read simple properties, which RDF writes as attributes of a description."""
    prefixes: dict[str, str] = {}
    for prefix, uri in element.nsmap.items():
        if prefix:
            prefixes.setdefault(uri, prefix)
    for key, value in element.attrib.items():
        uri = _namespace(key)
        prefix = prefixes.get(uri)
        if uri and prefix not in {None, "rdf", "xml"}:
            fields.setdefault(f"{prefix}:{xml.name_of(str(key))}", []).append([str(value)])


def _is_value(element: xml.Element) -> bool:
    return xml.local(element).lower() in _VALUES


def _named(element: xml.Element, prefix: str) -> str | None:
    """Return the name of a field that has it in an attribute or in a child."""
    own = xml.attributes(element)
    is_generic = xml.local(element).lower() in _NAMED
    if element.prefix and not (is_generic and own.get("name")):
        return None  # <dc:subject>: the element itself is the name
    name = own.get("name") or None
    if is_generic and name is None:
        name = _generic_name(element, own)
    if name is None or ":" in name:
        return name
    space = own.get("ns") or own.get("namespace") or prefix.rstrip(":")
    return f"{space}:{name}" if space else name


def _generic_name(element: xml.Element, own: Mapping[str, str]) -> str | None:
    for key in _NAME_KEYS:
        if own.get(key):
            return own[key]
    for child in element:
        if xml.local(child) in _NAME_KEYS:
            return xml.text_of(child).strip()
    return None


def _qualified(element: xml.Element) -> str:
    name = xml.local(element)
    prefix = element.prefix or _PREFIXES.get(_namespace(element.tag))
    return f"{prefix}:{name}" if prefix else name


def _nested(element: xml.Element) -> list[str]:
    below = [child for child in element if xml.local(child) not in _NAME_KEYS]
    if below:
        return [value for child in below for value in _nested(child)]
    text = "" if len(element) else xml.text_of(element)
    value = text or _value(element)
    is_kept = value.strip() or xml.local(element).lower() in {"li", "value"}
    return [value] if is_kept else []


_ROOTS = frozenset({"rss", "rdf", "feed", "channel", "items", "entries", "item", "entry", "data"})
_ITEMS = frozenset({"item", "entry"})
_OWN = frozenset(
    {
        "guid",
        "title",
        "description",
        "link",
        "pubDate",
        "id",
        "summary",
        "content",
        "updated",
        "published",
    }
)
_RESERVED = frozenset({"file", "text", "twins"}) | _OWN
"""What an item has besides what is shown of it, and what it shows once."""
_DATE = "{http://purl.org/dc/elements/1.1/}date"
"""The date of RSS 1.0, which has none of its own."""


def parse_channel(
    data: bytes, name: str, charset: str | None = None, *, dated: Callable[[str], str] = str
) -> RssChannel:
    """Read a channel; its items in the order shown. Raises ``UnreadableError`` for anything else.

    ``dated`` returns a date with a time zone, where it has none.
    """
    root = xml.parse_document(data, charset)
    inner = xml.unwrap(root)
    kind = xml.local(inner).lower()
    kinds_below = [xml.local(child).lower() for child in inner]
    has_items = len(kinds_below) > 1 and not _ITEMS.isdisjoint(kinds_below)
    is_empty = kind == "xml" and not kinds_below
    is_channel = kind in _ROOTS or has_items or is_empty
    if not is_channel:
        raise xml.unreadable(f"the answer is not an RSS channel: its root is <{xml.local(root)}>")
    items = [_item(element, dated) for element in xml.outermost(inner, _ITEMS)]
    return RssChannel(name, tuple(items))


def parse_channels(data: bytes, charset: str | None = None) -> tuple[str, ...]:
    """Read the names of the channels: of elements with a ``name``, of an OPML, or the texts of a plain list."""
    root = xml.parse_document(data, charset)
    names = filter(None, map(_channel_name, root.iterdescendants()))
    return tuple(dict.fromkeys(names))


def _channel_name(element: xml.Element) -> str:
    own = xml.attributes(element)
    if "name" in own:
        return own["name"]
    if xml.local(element).lower() in {"channel", "name", "rss"} and not len(element):
        return xml.text_of(element).strip()
    return ""


def _item(element: xml.Element, dated: Callable[[str], str]) -> RssItem:
    """Read an item by the elements of its own namespace, or of none; all others are ``extra``."""
    spaces = {_namespace(element.tag), ""}
    texts: dict[str, str] = {}
    others: dict[str, list[xml.Element]] = {}
    for child in element:
        name = xml.local(child)
        is_own = _namespace(child.tag) in spaces
        is_new = name in _OWN and name not in texts
        if is_own and is_new and child.get("rel", "alternate") == "alternate":
            texts[name] = _text(child)
            continue
        if not is_own and child.prefix:
            name = f"{child.prefix}:{name}"
        others.setdefault(name, []).append(child)
    about = xml.attributes(element).get("about", "")
    date = _first(texts, "pubDate", "published", "updated") or element.findtext(_DATE)
    return RssItem(
        guid=(texts.get("guid") or texts.get("id") or about).strip(),
        title=texts.get("title"),
        description=_first(texts, "description", "summary", "content"),
        link=texts.get("link"),
        pub_date=dated(date) if date else date,
        extra=_extra(others, spaces),
    )


def _extra(by_name: Mapping[str, Sequence[xml.Element]], spaces: Collection[str]) -> dict[str, str]:
    """Return the other elements of an item; what is more than one plain text of it is ``<name>``, with its XML."""
    extra = {}
    for name, elements in by_name.items():
        first = elements[0]
        is_alone = len(elements) == 1 and name not in _RESERVED
        is_text = not len(first) and not first.attrib
        if is_alone and is_text and _namespace(first.tag) in spaces:
            extra[name] = _text(first)
        else:
            extra[f"<{name}>"] = "".join(xml.serialized(element).decode() for element in elements)
    return extra


def _namespace(qualified: object) -> str:
    """Return the namespace of the qualified name of an element or attribute; empty without one."""
    return str(qualified).rpartition("}")[0].removeprefix("{")


def _text(element: xml.Element) -> str:
    own = xml.attributes(element)
    if xml.local(element) == "link" and "href" in own:
        return own["href"]
    # A byte order mark of the file is not part of the text.
    return xml.text_of(element).lstrip("\ufeff")


def _first(texts: dict[str, str], *names: str) -> str | None:
    for name in names:
        if name in texts:
            return texts[name]
    return None
