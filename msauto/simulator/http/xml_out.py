"""XML by joining strings: escaping, and the frame around a document that the dialect chooses."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator

from msauto.simulator.dialect import SimDialect

NAMESPACE = "urn:media-storage:1"
# XML 1.0 cannot carry these at all, not even as references.
_IMPOSSIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_SPECIAL = re.compile('[&<>"\r\n\t\x00-\x1f\ufffe\uffff\ud800-\udfff]')
_ROOT = re.compile(r"<[\w:.-]+")


def text(value: str) -> str:
    """Escape character data; what XML cannot carry becomes U+FFFD."""
    if _SPECIAL.search(value) is None:
        return value
    value = _IMPOSSIBLE.sub("\ufffd", value)
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")


def attribute(value: str) -> str:
    """Escape an attribute's value, without the quotes; line ends and tabs survive as references."""
    if _SPECIAL.search(value) is None:
        return value
    return text(value).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")


def element(name: str, content: str) -> str:
    """`<name>content</name>`, the content escaped."""
    return f"<{name}>{text(content)}</{name}>"


def attr(name: str, content: str) -> str:
    """`<Attr name="...">content</Attr>`: how the interface gives named values."""
    return f'<Attr name="{attribute(name)}">{text(content)}</Attr>'


def document(root: str, dialect: SimDialect) -> bytes:
    """A whole document around its root element."""
    return b"".join(stream((root,), dialect))


def stream(parts: Iterable[str], dialect: SimDialect) -> Iterator[bytes]:
    """A document whose root comes in parts (the first holds the root's start tag), encoded part by part."""
    encoder = codecs.getincrementalencoder(dialect.xml_encoding)("xmlcharrefreplace")
    for part in _framed(parts, dialect):
        yield encoder.encode(part.replace("\n", "\r\n") if dialect.xml_newline == "crlf" else part)


def _framed(parts: Iterable[str], dialect: SimDialect) -> Iterator[str]:
    head = ""
    if dialect.xml_declaration == "yes":
        head = f'<?xml version="1.0" encoding="{dialect.xml_encoding}"?>\n'
    if dialect.xml_wrapper == "xml":
        head += "<xml>\n"
    for number, part in enumerate(parts):
        yield head + _in_namespace(part, dialect) if number == 0 else part
    if dialect.xml_wrapper != "none":
        yield "\n</xml>"


def _in_namespace(start: str, dialect: SimDialect) -> str:
    if dialect.xml_namespace == "none" or " xmlns=" in start[: start.find(">")]:
        return start  # a root that has a namespace of its own (RSS, Atom) keeps it
    return _ROOT.sub(lambda match: f'{match[0]} xmlns="{NAMESPACE}"', start, count=1)


def chunked(parts: Iterable[str], size: int = 65536) -> Iterator[str]:
    """Join small parts to pieces of about `size` characters."""
    piece: list[str] = []
    length = 0
    for part in parts:
        piece.append(part)
        length += len(part)
        if length >= size:
            yield "".join(piece)
            piece, length = [], 0
    if piece:
        yield "".join(piece)
