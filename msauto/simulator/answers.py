"""Answers: their XML by joining strings, in the encoding and frame of the dialect, and the two kinds of refusal."""

from __future__ import annotations

import codecs
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Self

from msauto.simulator.dialect import SimDialect
from msauto.simulator.wire import RefusalError

PLAIN = "text/plain; charset=utf-8"
NAMESPACE = "urn:media-storage:1"
GARBAGE = b"\x00\xff\xfe<" + random.Random(1).randbytes(60)  # no text in any encoding
_CHUNK = 65536  # characters
# XML 1.0 cannot contain these characters, not even as references.
_IMPOSSIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_SPECIAL = re.compile('[&<>"\r\n\t\x00-\x1f\ufffe\uffff\ud800-\udfff]')
_ROOT = re.compile(r"<[\w:.-]+")


@dataclass(slots=True)
class HttpAnswer:
    """A response; `status` 0 closes the connection without one. `done`: whether the work was done.

    `parts`: a body that is made while it is sent, with a `pause` after each part.
    `length`: the Content-Length of `parts`; without it they are sent chunked. `cut`: close the connection at the end.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = PLAIN
    headers: dict[str, str] = field(default_factory=dict)
    done: bool = True
    parts: Iterator[bytes] | None = None
    pause: float = 0.0
    length: int | None = None
    cut: bool = False

    def whole_body(self) -> bytes:
        """Return the whole body."""
        if self.parts is not None:
            self.body += b"".join(self.parts)
            self.parts = None
        return self.body

    def slowly(self, seconds: float) -> Self:
        """Send the body in ten parts over the seconds."""
        body, self.length, self.pause = self.whole_body(), len(self.body), seconds / 10
        step = max(1, -(-len(body) // 10))
        self.parts = (body[place : place + step] for place in range(0, len(body), step))
        return self

    def cut_at(self, most: int, seconds: float = 0.0) -> Self:
        """Send at most so many bytes of the body, wait, and close the connection."""
        body = self.whole_body()
        # If the whole body is sent, the Content-Length is one byte too large.
        self.parts, self.length = iter([body[:most]]), max(len(body), most + 1)
        self.pause, self.cut = seconds, True
        return self


def text_answer(text: str, status: int = 200, done: bool = True) -> HttpAnswer:
    """Return an answer in plain text."""
    return HttpAnswer(status, text.encode(), done=done)


def xml_answer(root: str | Iterable[str], dialect: SimDialect, done: bool = True) -> HttpAnswer:
    """Return an XML document with this root element; one in parts, the first with the start tag, is made while sent."""
    texts = iter(["".join(_framed((root,), dialect))]) if isinstance(root, str) else _joined(_framed(root, dialect))
    encoder = codecs.getincrementalencoder(dialect.xml_encoding)("xmlcharrefreplace")
    pieces = map(encoder.encode, texts)
    answer = HttpAnswer(200, next(pieces), f"text/xml; charset={dialect.xml_encoding}", done=done)
    if (second := next(pieces, None)) is not None:
        answer.body, answer.parts = b"", chain((answer.body, second), pieces)
    return answer


def _framed(parts: Iterable[str], dialect: SimDialect) -> Iterator[str]:
    yield f'<?xml version="1.0" encoding="{dialect.xml_encoding}"?>\n'
    if dialect.xml_wrapper == "xml":
        yield "<xml>\n"
    parts = iter(parts)
    start = next(parts)
    # RSS and Atom roots have a namespace already.
    if dialect.xml_namespace == "default" and " xmlns=" not in start[: start.find(">")]:
        start = _ROOT.sub(lambda match: f'{match[0]} xmlns="{NAMESPACE}"', start, count=1)
    yield start
    yield from parts
    if dialect.xml_wrapper != "none":
        yield "\n</xml>"


def _joined(parts: Iterable[str]) -> Iterator[str]:
    """Join small parts into pieces of about `_CHUNK` characters."""
    piece: list[str] = []
    length = 0
    for part in parts:
        piece.append(part)
        length += len(part)
        if length >= _CHUNK:
            yield "".join(piece)
            piece, length = [], 0
    yield "".join(piece)


def not_found_answer(dialect: SimDialect) -> HttpAnswer:
    """Return the answer for an object that does not exist (interface "Errors")."""
    message = "Object not found"
    if dialect.not_found == "200_xml":
        return xml_answer(element("error", message), dialect, done=False)
    status, _, form = dialect.not_found.partition("_")
    return text_answer("" if form == "empty" else message, int(status), done=False)


def refusal_answer(refusal: RefusalError, dialect: SimDialect) -> HttpAnswer:
    """Return the answer for a refusal (interface "Errors": error body format not shown)."""
    if dialect.errors == "200_text":
        return text_answer(f"Error: {refusal.text}", done=False)
    if dialect.errors == "200_xml":
        inner = element("code", str(refusal.status)) + element("message", refusal.text)
        return xml_answer(f"<error>{inner}</error>", dialect, done=False)
    return text_answer(f"Error: {refusal.text}", refusal.status, done=False)


def success_answer(dialect: SimDialect, clip_xml: str | None) -> HttpAnswer:
    """Return the answer for a successful command (interface: "Response bodies of all commands: not shown")."""
    match dialect.command_body:
        case "ok_text":
            return text_answer("OK")
        case "ok_xml":
            return xml_answer(element("result", "OK"), dialect)
        case "clip":
            return xml_answer(clip_xml or element("result", "OK"), dialect)
        case "garbage":
            return HttpAnswer(200, GARBAGE, "application/octet-stream")
        case _:
            return HttpAnswer()


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
