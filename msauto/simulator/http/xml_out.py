"""XML by joining strings: escaping, and the frame of a document by the dialect."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator

from msauto.simulator.dialect import SimDialect

NAMESPACE = "urn:media-storage:1"
# XML 1.0 cannot contain these characters, not even as references.
_IMPOSSIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_SPECIAL = re.compile('[&<>"\r\n\t\x00-\x1f\ufffe\uffff\ud800-\udfff]')
_ROOT = re.compile(r"<[\w:.-]+")


def escape_text(value: str) -> str:
    """Escape character data; a character that is not valid in XML becomes U+FFFD."""
    if _SPECIAL.search(value) is None:
        return value
    value = _IMPOSSIBLE.sub("\ufffd", value)
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")


def escape_attribute(value: str) -> str:
    """Escape an attribute's value, without the quotes; line ends and tabs become references."""
    if _SPECIAL.search(value) is None:
        return value
    return escape_text(value).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")


def element(name: str, content: str) -> str:
    """Return `<name>content</name>`, the content escaped."""
    return f"<{name}>{escape_text(content)}</{name}>"


def attr_element(name: str, content: str) -> str:
    """Return `<Attr name="...">content</Attr>`."""
    return f'<Attr name="{escape_attribute(name)}">{escape_text(content)}</Attr>'


def document(root: str, dialect: SimDialect) -> bytes:
    """Return the document of a root element."""
    return b"".join(stream((root,), dialect))


def stream(parts: Iterable[str], dialect: SimDialect) -> Iterator[bytes]:
    """Encode a document whose root is in parts; the first part contains the root's start tag."""
    encoder = codecs.getincrementalencoder(dialect.xml_encoding)("xmlcharrefreplace")
    for part in _framed(parts, dialect):
        yield encoder.encode(part.replace("\n", "\r\n") if dialect.xml_newline == "crlf" else part)


def _framed(parts: Iterable[str], dialect: SimDialect) -> Iterator[str]:
    head = f'<?xml version="1.0" encoding="{dialect.xml_encoding}"?>\n'
    if dialect.xml_wrapper == "xml":
        head += "<xml>\n"
    for number, part in enumerate(parts):
        yield head + _in_namespace(part, dialect) if number == 0 else part
    if dialect.xml_wrapper != "none":
        yield "\n</xml>"


def _in_namespace(start: str, dialect: SimDialect) -> str:
    if dialect.xml_namespace == "none" or " xmlns=" in start[: start.find(">")]:
        return start  # RSS and Atom roots have a namespace already
    return _ROOT.sub(lambda match: f'{match[0]} xmlns="{NAMESPACE}"', start, count=1)


def chunked(parts: Iterable[str], size: int = 65536) -> Iterator[str]:
    """Join small parts into pieces of about `size` characters."""
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
