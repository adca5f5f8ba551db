"""What goes back to the client, and the two ways in which a request is told no."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from msauto.simulator.dialect import SimDialect
from msauto.simulator.http.xml_out import document, element

PLAIN = "text/plain; charset=utf-8"


class RefusalError(Exception):
    """The server will not do it; `status` is how the `errors=status` dialect tells it."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class ResourceNotFoundError(Exception):
    """There is no such object (interface "Errors": the error text Object not found)."""


@dataclass(slots=True)
class HttpAnswer:
    """A response. `done` tells whether the work behind it was done; `chunks` is a body made while it is sent."""

    status: int = 200
    body: bytes = b""
    content_type: str = PLAIN
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    done: bool = True
    chunks: Iterator[bytes] | None = None

    def whole_body(self) -> bytes:
        """The body in one piece."""
        if self.chunks is not None:
            self.body += b"".join(self.chunks)
            self.chunks = None
        return self.body


def text_answer(text: str, status: int = 200, done: bool = True) -> HttpAnswer:
    """Plain text."""
    return HttpAnswer(status, text.encode(), done=done)


def xml_answer(root: str, dialect: SimDialect, status: int = 200, done: bool = True) -> HttpAnswer:
    """An XML document around a root element, in the dialect's encoding and wrapping."""
    return HttpAnswer(status, document(root, dialect), f"text/xml; charset={dialect.xml_encoding}", done=done)


def not_found_answer(dialect: SimDialect) -> HttpAnswer:
    """How this server says that something is not there (interface "Errors")."""
    words = "Object not found"
    match dialect.not_found:
        case "404_empty":
            return HttpAnswer(404, done=False)
        case "200_text":
            return text_answer(words, done=False)
        case "200_xml":
            return xml_answer(element("error", words), dialect, done=False)
        case "500_text":
            return text_answer(words, 500, done=False)
        case _:
            return text_answer(words, 404, done=False)


def refusal_answer(refusal: RefusalError, dialect: SimDialect) -> HttpAnswer:
    """How this server says no (interface "Errors": error body format not shown)."""
    if dialect.errors == "200_text":
        return text_answer(f"Error: {refusal.text}", done=False)
    if dialect.errors == "200_xml":
        inner = element("code", str(refusal.status)) + element("message", refusal.text)
        return xml_answer(f"<error>{inner}</error>", dialect, done=False)
    return text_answer(f"Error: {refusal.text}", refusal.status, done=False)


def success_answer(dialect: SimDialect, clip_xml: str | None, seed: int) -> HttpAnswer:
    """What a command that worked answers (interface: "Response bodies of all commands: not shown")."""
    match dialect.command_body:
        case "ok_text":
            return text_answer("OK")
        case "ok_xml":
            return xml_answer(element("result", "OK"), dialect)
        case "clip":
            return xml_answer(clip_xml or element("result", "OK"), dialect)
        case "garbage":
            return HttpAnswer(200, garbage(seed), "application/octet-stream")
        case _:
            return HttpAnswer()


def garbage(seed: int) -> bytes:
    """Bytes that are no text in any encoding, the same for the same seed."""
    return b"\x00\xff\xfe<" + random.Random(seed).randbytes(60)
