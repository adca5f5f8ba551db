"""What the raw bytes of an answer show of a server's habits: wrapping, encoding, shapes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msauto.errors import UnreadableError
from msauto.model.live import Folder
from msauto.server.parsers.answers import RawAnswer
from msauto.server.parsers.failure import Failure, parse_failure
from msauto.server.parsers.xml import Element, attributes, children, decode_text, local, parse_document, unwrap

_DECLARED = re.compile(r"""<\?xml\s[^>]*?encoding\s*=\s*["']([\w.:-]+)["']""", re.IGNORECASE)
_START = re.compile(r"<([A-Za-z_][^\s/>]*)([^>]*)>")
_STRAY = re.compile(r"</xml\s*>\s*\Z", re.IGNORECASE)
_FILE_ENDING = re.compile(r"[^/\\:]+\.(?:txt|xml)", re.IGNORECASE)


def failure_of(reply: RawAnswer) -> Failure | None:
    """Return what the body says if it is an error text or an error document."""
    return parse_failure(reply.data, reply.charset)


def how_not_found(reply: RawAnswer) -> str:
    """Tell how an answer says "not found": ``status``, ``text``, ``both``, or empty where it does not."""
    failure = failure_of(reply)
    by_text = failure is not None and failure.not_found
    if reply.status == 404:
        return "both" if by_text else "status"
    return "text" if by_text else ""


def describe_wrapping(reply: RawAnswer) -> str:
    """Tell what is around the root: ``none``, ``xml element``, ``stray end``."""
    text = decode_text(reply.data, reply.charset)
    root = _START.search(text)
    if root is not None and root[1].lower() == "xml":
        return "xml element"
    return "stray end" if _STRAY.search(text) else "none"


def describe_encoding(reply: RawAnswer) -> str:
    """Tell the declared encoding, that of HTTP, and a byte order mark: ``utf-8``, ``windows-1251 (HTTP: …)``."""
    text = decode_text(reply.data, reply.charset)
    declared = match[1].lower() if (match := _DECLARED.search(text[:512])) else ""
    told = (reply.charset or "").lower()
    if declared and told and declared != told:
        return f"{declared} (HTTP says {told})"
    return declared or (f"{told} (HTTP alone says so)" if told else "not declared")


def describe_lines(reply: RawAnswer) -> str:
    """Tell how lines end: ``lf``, ``crlf``, or ``one line``."""
    text = decode_text(reply.data, reply.charset)
    return "crlf" if "\r\n" in text else "lf" if "\n" in text.strip() else "one line"


def describe_namespace(reply: RawAnswer) -> str:
    """Return the namespace of the root, or ``none``."""
    uri = str(unwrap(parse_document(reply.data, reply.charset)).tag).rpartition("}")[0].removeprefix("{")
    return uri or "none"


def describe_tree(reply: RawAnswer, asked: Folder) -> str:
    """Tell where the asked folder stands in a StoredTree: ``absolute``, ``named``, ``relative``, ``bare``."""
    root = parse_document(reply.data, reply.charset)
    tree = next((each for each in root.iter() if local(each) == "StoredTree"), None)
    names: list[str] = []
    while tree is not None:
        below = [child for child in children(tree) if local(child) == "Folder"]
        tree = below[0] if len(below) == 1 else None
        names += [attributes(below[0]).get("name", "")] if len(below) == 1 else []
    plain = tuple(names[1:] if names[:1] == [""] else names)
    if asked and plain[: len(asked)] == asked and len(asked) > 1:
        return "absolute"
    if asked and names[:1] == [asked[-1]]:
        return "named"
    if asked and plain[: len(asked)] == asked:
        return "absolute"
    return "relative" if names[:1] == [""] else "bare"


def describe_xmp(reply: RawAnswer) -> str:
    """Tell the shape of XMP fields that can be read: ``lines``, ``<Attr name=…>``, ``<Field name=…> with <Bag>``."""
    text = decode_text(reply.data, reply.charset).lstrip("\ufeff").strip()
    if not text.startswith("<"):
        return "lines" if text else "empty"
    try:
        root = unwrap(parse_document(reply.data, reply.charset))
    except UnreadableError:
        return "unreadable"
    first = next(iter(children(root)), None)
    return "empty" if first is None else _field_shape(first)


def _field_shape(element: Element) -> str:
    keys = [key for key in ("name", "field", "key", "id") if key in attributes(element)]
    shown = local(element) if keys else f"{element.prefix}:…" if element.prefix else "field's name"
    named = f"<{shown} {keys[0]}=…>" if keys else f"<{shown}>"
    inside = next(iter(children(element)), None)
    return named if inside is None else f"{named} with <{local(inside)}>"


def describe_channel(reply: RawAnswer) -> str:
    """Return the root's name of a channel: ``rss``, ``feed``, ``channel``."""
    root = unwrap(parse_document(reply.data, reply.charset))
    namespace = describe_namespace(reply)
    return local(root) + ("" if namespace == "none" else f" in {namespace}")


def guess_guids(guids: Iterable[str]) -> str:
    """Tell what guids are, as far as they show it: ``file`` (all look like file names), or empty.

    A guid without an ending may be the file's stem as well as the item's own, and an address may be made by the server
    from either: nothing can be concluded from those.
    """
    shown = [guid for guid in guids if guid]
    return "file" if shown and all(_FILE_ENDING.fullmatch(guid) for guid in shown) else ""
