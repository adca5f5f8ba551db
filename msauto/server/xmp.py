"""XMP field values. The interface does not show their format («XMP field values»), so all likely ones are read."""

from __future__ import annotations

import json
import re

from msauto.errors import UnreadableError
from msauto.model.live import Xmp
from msauto.server.answers import is_error_document, parse_failure
from msauto.server.xml import (
    Element,
    attributes,
    decode_text,
    local,
    looks_like_html,
    name_of,
    parse_document,
    text_of,
    unwrap,
)

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
_LINE_END = re.compile(r"\r\n|\r|\n")
_LINE = re.compile(r"\s*([^\s=<>{}\"']+)\s*=(.*)")
_NAME = re.compile(r"[\w.-]+:[\w.-]+")

Fields = dict[str, list[list[str]]]
"""By name, the values of each occurrence of a field; a single text is not split yet."""


def parse_xmp(data: bytes, separator: str = ",", charset: str | None = None, *, asked: str | None = None) -> Xmp | None:
    """Read XMP fields: each a tuple of values, empty for an empty field. ``None``: the answer cannot be read.

    A field with one text is split at ``separator``; a field with several values is not.
    ``asked`` is the field of the request, under which a value without a name is kept.
    """
    if looks_like_html(data):
        return None
    text = decode_text(data, charset).lstrip("\ufeff").strip()
    if not text:
        return {}
    if any(sign < " " and sign not in "\t\r\n" for sign in text) or _is_json(text):
        return None
    try:
        fields = _of_xml(data, charset, asked) if text.startswith("<") else _of_lines(text, asked)
    except UnreadableError:
        return None
    return None if fields is None else {name: _values(shown, separator) for name, shown in fields.items()}


def _is_json(text: str) -> bool:
    """Return whether this is a JSON document, which is not a format of the interface, or a value in braces."""
    if not (text.startswith("{") and text.endswith("}")):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _values(shown: list[list[str]], separator: str) -> tuple[str, ...]:
    # An empty field that occurs once has no value. If it occurs several times, each occurrence is a value.
    flat = [value for values in shown for value in (values or [""] * (len(shown) > 1))]
    if len(flat) > 1:
        return tuple(flat)
    parts = flat[0].split(separator) if flat and separator else flat
    stripped = [part.strip() for part in parts]
    return () if stripped in ([""], []) else tuple(stripped)


def _of_lines(text: str, asked: str | None) -> Fields | None:
    fields: Fields = {}
    last: list[str] | None = None
    for line in _LINE_END.split(text):  # other line separators, such as U+2028, are part of a value
        match = _LINE.fullmatch(line)
        if match is not None:
            last = [match[2]]
            fields.setdefault(match[1], []).append(last)
        elif last is not None:
            last[0] += f"\n{line}"  # a value of several lines
        elif line.strip():
            return _of_text(text, asked)
    for values in (values for shown in fields.values() for values in shown):
        values[0] = values[0].strip()
    return fields if not asked or _are_fields(fields, asked) else _of_text(text, asked)


def _are_fields(fields: Fields, asked: str) -> bool:
    """Return whether lines are fields: a bare value may contain a ``=`` as well."""
    own = {asked, asked.rpartition(":")[2]}
    return not fields or any(name in own or _NAME.fullmatch(name) for name in fields)


def _of_text(text: str, asked: str | None) -> Fields | None:
    """Read a bare text as the value of the field that was asked for."""
    return {asked: [[text]]} if asked and parse_failure(text.encode()) is None else None


def _of_xml(data: bytes, charset: str | None, asked: str | None) -> Fields | None:
    root = unwrap(parse_document(data, charset))
    if is_error_document(root):
        return None
    fields: Fields = {}
    _read(root, "", fields, top=True)
    if asked and asked not in fields:
        _claim(fields, root, asked)
    return fields


def _claim(fields: Fields, root: Element, asked: str) -> None:
    """Give the asked name to the only value without a name, or without its namespace."""
    desired = asked.rpartition(":")[2]
    same = [name for name in fields if name.rpartition(":")[2] == desired]
    if len(same) == 1:
        fields[asked] = fields.pop(same[0])
    elif not fields and (shown := _nested(root)):
        fields[asked] = [shown]


def _read(element: Element, prefix: str, fields: Fields, *, top: bool = False) -> None:
    name = _named(element, prefix)
    below = list(element)
    named_below = any(_named(child, "") is not None for child in below)
    _read_attributes(element, fields)
    if name is not None and not named_below:
        fields.setdefault(name, []).append(_nested(element))
    elif below and not named_below and not top and all(local(child).lower() in _VALUES for child in below):
        fields.setdefault(_qualified(element), []).append(_nested(element))
    elif below:
        inside = f"{name}:" if name is not None and ":" not in name else prefix
        for child in below:
            _read(child, inside, fields)
    elif not top and local(element).lower() not in _VALUES and not _is_description(element):
        fields.setdefault(_qualified(element), []).append(_nested(element))


def _is_description(element: Element) -> bool:
    return local(element) == "Description" and element.prefix == "rdf"


def _read_attributes(element: Element, fields: Fields) -> None:
    # RDF writes simple properties as attributes of rdf:Description.
    if not _is_description(element):
        return
    attributes(element)  # raises where there are too many
    for key, value in element.attrib.items():
        uri = str(key).rpartition("}")[0].removeprefix("{")
        prefix = next((name for name, known in element.nsmap.items() if known == uri and name), "")
        if uri and prefix and prefix not in {"rdf", "xml"}:
            fields.setdefault(f"{prefix}:{name_of(str(key))}", []).append([str(value)])


def _named(element: Element, prefix: str) -> str | None:
    """Return the name of a field that has it in an attribute or in a child."""
    own = attributes(element)
    generic = local(element).lower() in _NAMED
    if element.prefix and not (generic and own.get("name")):
        return None  # <dc:subject>: the element itself is the name
    keys = _NAME_KEYS if generic else _NAME_KEYS[:1]
    name = next((own[key] for key in keys if own.get(key)), None)
    if name is None and generic:
        name = next((text_of(child).strip() for child in element if local(child) in _NAME_KEYS), None)
    if name is None or ":" in name:
        return name
    space = own.get("ns") or own.get("namespace") or prefix.rstrip(":")
    return f"{space}:{name}" if space else name


def _qualified(element: Element) -> str:
    uri = str(element.tag).rpartition("}")[0].removeprefix("{")
    prefix = element.prefix or _PREFIXES.get(uri, "")
    return f"{prefix}:{local(element)}" if prefix else local(element)


def _nested(element: Element) -> list[str]:
    below = [child for child in element if local(child) not in _NAME_KEYS]
    if below:
        return [value for child in below for value in _nested(child)]
    text = "" if len(element) else text_of(element)
    value = text or attributes(element).get("value", "")
    return [value] if value.strip() or local(element).lower() in {"li", "value"} else []
