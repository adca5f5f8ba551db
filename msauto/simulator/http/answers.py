"""Answers, the two kinds of refusal, and partial downloads."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime

from msauto.simulator.dialect import SimDialect
from msauto.simulator.http.wire import HttpRequest, RefusalError
from msauto.simulator.http.xml_out import document, element

PLAIN = "text/plain; charset=utf-8"
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


@dataclass(slots=True)
class HttpAnswer:
    """A response. `done`: whether the work was done. `chunks`: a body that is made while it is sent."""

    status: int = 200
    body: bytes = b""
    content_type: str = PLAIN
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    done: bool = True
    chunks: Iterator[bytes] | None = None

    def whole_body(self) -> bytes:
        """Return the whole body."""
        if self.chunks is not None:
            self.body += b"".join(self.chunks)
            self.chunks = None
        return self.body


def text_answer(text: str, status: int = 200, done: bool = True) -> HttpAnswer:
    """Return an answer in plain text."""
    return HttpAnswer(status, text.encode(), done=done)


def xml_answer(root: str, dialect: SimDialect, status: int = 200, done: bool = True) -> HttpAnswer:
    """Return an XML document with this root element, in the encoding and frame of the dialect."""
    return HttpAnswer(status, document(root, dialect), f"text/xml; charset={dialect.xml_encoding}", done=done)


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


def success_answer(dialect: SimDialect, clip_xml: str | None, seed: int) -> HttpAnswer:
    """Return the answer for a successful command (interface: "Response bodies of all commands: not shown")."""
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
    """Return bytes that are not text in any encoding; the same seed gives the same bytes."""
    return b"\x00\xff\xfe<" + random.Random(seed).randbytes(60)


def file_answer(
    request: HttpRequest, content: bytes, content_type: str, made: datetime, dialect: SimDialect
) -> HttpAnswer:
    """Return the file or the requested part (RFC 9110, 13.1.5 and 14); `made` is its last modification (UTC).

    The interface does not describe partial downloads: `ranges` of the dialect decides.
    """
    headers = _validators(content, made, dialect)
    desired = _RANGE.fullmatch(request.headers.get("range", "")) if _may_be_partial(request, headers, dialect) else None
    if desired is None or desired.group(1, 2) == ("", ""):
        return HttpAnswer(200, content, content_type, headers)
    first, last = desired.group(1, 2)
    start = int(first) if first else max(0, len(content) - int(last))
    end = min(int(last), len(content) - 1) if first and last else len(content) - 1
    if start > end:
        return HttpAnswer(416, b"", content_type, [(b"content-range", b"bytes */%d" % len(content))], done=False)
    headers.append((b"content-range", b"bytes %d-%d/%d" % (start, end, len(content))))
    return HttpAnswer(206, content[start : end + 1], content_type, headers)


def _validators(content: bytes, made: datetime, dialect: SimDialect) -> list[tuple[bytes, bytes]]:
    if dialect.ranges == "no":
        return []
    headers = [] if dialect.ranges == "ignore" else [(b"accept-ranges", b"bytes")]
    if dialect.ranges == "date":
        return [*headers, (b"last-modified", format_datetime(made, usegmt=True).encode())]
    tag = b'"%s"' % hashlib.sha256(content).hexdigest()[:16].encode()
    return [*headers, (b"etag", b"W/" + tag if dialect.ranges == "weak" else tag)]


def _may_be_partial(request: HttpRequest, headers: list[tuple[bytes, bytes]], dialect: SimDialect) -> bool:
    """Whether `If-Range` holds; a weak validator never holds."""
    if dialect.ranges in ("no", "ignore"):
        return False
    condition = request.headers.get("if-range")
    validators = [value.decode() for name, value in headers if name != b"accept-ranges"]
    return condition is None or (condition in validators and not condition.startswith("W/"))
