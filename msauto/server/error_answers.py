"""Classifying an answer: what was asked for, an error, or neither (interface, «Errors» and «What is not specified»)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http import HTTPStatus
from http.client import responses
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

from msgspec import Struct

from msauto.circuit_breaker import BUSY_STATUSES, PARTIAL, REMEDIES
from msauto.errors import InDoubtError, NotFoundError, RejectedError, UnreadableError
from msauto.model.server import Dialect
from msauto.primitives.decimals import MOST_LONG, read_whole
from msauto.server import xml

_PORTS = {"http": 80, "https": 443}
_HOUR = 3600.0
_YEAR = 365 * 24 * _HOUR
_PLAIN_HTTP = re.compile(r"plain HTTP|HTTP request to an HTTPS", re.IGNORECASE)
_WHAT_TO_DO = {
    NotFoundError: "check the name, letter by letter: listings show what the server has",
    RejectedError: "correct what the server names",
}


class RawAnswer(Struct, frozen=True):
    """An unparsed answer with its HTTP headers; those that only explain an error are empty in other answers.

    ``retry_after`` in seconds, ``location`` of a redirect, ``challenge`` of a 401 (RFC 9110, 11.6.1), ``server`` the
    URL of the server.
    """

    status: int
    data: bytes = b""
    charset: str | None = None
    media_type: str = ""
    retry_after: float | None = None
    location: str = ""
    challenge: str = ""
    server: str = ""


def judge_status(reply: RawAnswer, dialect: Dialect) -> None:
    """Raise :class:`RejectedError` for a status of 300 and above."""
    if reply.status < 300:
        return
    if reply.status < 400:
        raise RejectedError(
            f"the server redirects to {reply.location or 'nowhere'}, and redirects are not followed",
            status=reply.status,
            remedy=_redirect_remedy(reply),
        )
    failure = parse_failure(reply.data, reply.charset)
    raise _error(
        reply, failure or Failure(show_body(reply.data, reply.charset), not_found=False), dialect
    )


def judge_range(status: int, content_range: str) -> None:
    """Raise :class:`RejectedError` for a part of an answer (RFC 9110, 14.4): no read asks for one."""
    if status == PARTIAL or (status < 300 and content_range):
        raise RejectedError(
            f"the server answered {status} with a part of the answer ({content_range or 'no range'})",
            status=PARTIAL,
            remedy="check the server, and any proxy in front of it: msauto asks for no part",
        )


def judge_body(reply: RawAnswer, dialect: Dialect) -> None:
    """Raise :class:`RejectedError` for an error text or an error document with a status below 300.

    Only for answers without expected content, or that are not what was asked for.
    """
    failure = parse_failure(reply.data, reply.charset)
    if failure is not None:
        raise _error(reply, failure, dialect)


def judge_write(reply: RawAnswer, dialect: Dialect) -> None:
    """Raise an error if a status below 300 does not mean that the server accepted a write.

    The body of a command is ignored, except that a login page comes from something between us and the server.
    """
    judge_body(reply, dialect)
    if xml.looks_like_html(reply.data) and b"<form" in reply.data[:65536].lower():
        raise InDoubtError(
            f"the answer is a web page with a form: {show_body(reply.data, reply.charset)}",
            remedy="check `auth` and `url` of the server: a login page or a proxy answers there",
        )


def read_retry_after(text: str | None, now: datetime) -> float | None:
    """Return the seconds of a ``Retry-After``, which is a number or a date (RFC 9110, 10.2.3)."""
    if not text:
        return None
    digits = text.strip()
    if digits.isascii() and digits.isdecimal():
        seconds = read_whole(digits, MOST_LONG)
        # Out of range, it asks for a long wait still.
        return float(MOST_LONG if seconds is None else seconds)
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - now).total_seconds())


@lru_cache(maxsize=64)
def charset_of(content_type: str) -> str | None:
    """Return the charset that a ``Content-Type`` declares."""
    message = Message()
    message["content-type"] = content_type.encode("ascii", "replace").decode()
    return message.get_content_charset()


def _error(reply: RawAnswer, failure: Failure, dialect: Dialect) -> RejectedError:
    text = failure.text or responses.get(reply.status, "no text")
    if reply.status == HTTPStatus.UNAUTHORIZED and reply.challenge:
        text += f"; it requires {reply.challenge}"
    by_status = reply.status == HTTPStatus.NOT_FOUND and dialect.not_found != "text"
    by_text = failure.not_found and dialect.not_found != "status"
    kind = NotFoundError if by_status or by_text else RejectedError
    usual_remedy = "check the server's log" if reply.status >= 500 else _WHAT_TO_DO[kind]
    remedy = REMEDIES.get(reply.status, usual_remedy)
    if reply.status == HTTPStatus.BAD_REQUEST and _PLAIN_HTTP.search(text):
        remedy = "write https:// in the server's `url`"
    if reply.retry_after and reply.status in BUSY_STATUSES:
        remedy += f" (it asks to wait {_show_wait(reply.retry_after)})"
    status = "" if reply.status < 300 else f" {reply.status}"
    return kind(
        f"the server answered{status}: {text}",
        status=reply.status,
        retry_after=reply.retry_after,
        remedy=remedy,
    )


def _show_wait(seconds: float) -> str:
    if seconds < _HOUR:
        return f"{seconds:.0f} seconds"
    if seconds < _YEAR:
        return f"{seconds / _HOUR:.0f} hours"
    return "more than a year"


def _redirect_remedy(reply: RawAnswer) -> str:
    """Return what to do about a redirect, by which part of the URL it changes."""
    asked = _parts(reply.server)
    leads_to = _parts(reply.server, reply.location)
    if not reply.location or asked is None or leads_to is None:
        return "check what answers at the server's address and port"
    if _origin(asked) == _origin(leads_to):
        return (
            "the redirect stays on the same server: a login page or a gateway answers there; check `auth`, and that "
            "`url` has the port of the media server itself"
        )
    moved = f"set the server's `url` to {_origin(leads_to)} if the media server is there"
    if asked.hostname == leads_to.hostname and leads_to.scheme == "https":
        return f"{moved}, and `tls` to its authority"
    return f"{moved}; if that is a login, check `auth`"


def _parts(url: str, location: str = "") -> SplitResult | None:
    try:
        parts = urlsplit(urljoin(url, location))
        # Raises for an invalid port.
        is_valid = parts.scheme in _PORTS and parts.hostname and parts.port != 0
        return parts if is_valid else None
    except ValueError:
        return None


def _origin(parts: SplitResult) -> str:
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    return f"{parts.scheme}://{host}:{parts.port or _PORTS[parts.scheme]}"


# Error texts and error documents: the interface does not specify the body of an error ---------------------------

ERROR_BYTES: Final = 2**20
"""As much of an answer is read to find an error in it."""
ERROR_ROOTS: Final = frozenset({"error", "errors", "fault", "exception", "failure"})
_SHAPES = frozenset({"clip", "storedtree", "mam", "rss", "feed", "rdf", "databases", "channels"})
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_NOT_FOUND = re.compile(r"(?:error\b[\s:]*+(?:\d++\b)?+[\s:.-]*+)?object not found", re.IGNORECASE)
_ERROR = re.compile(r"error", re.IGNORECASE)
_LENGTH = 300
_SHOWN_BYTES: Final = (
    16384  # more is never shown, and searching for missing ends of tags takes quadratic time
)


class Failure(Struct, frozen=True):
    """The text of an error answer; ``not_found`` for the one error text that the interface documents."""

    text: str
    not_found: bool


def parse_failure(data: bytes, charset: str | None = None) -> Failure | None:
    """Return the failure in a body that is an error text or an error document; else ``None``.

    Only for a body that is not what was asked for, because a clip may have the title ``Error``.
    """
    if xml.looks_like_html(data):
        return None
    text = xml.decode_text(data[:65536], charset).lstrip("\ufeff").strip()
    if not text.startswith("<"):
        return _failure_in_text(text)
    if len(data) > ERROR_BYTES:
        return None
    try:
        return _failure_in_document(xml.unwrap(xml.parse_document(data, charset)))
    except UnreadableError:
        return None


def _failure_in_text(text: str) -> Failure | None:
    if _NOT_FOUND.match(text) or _ERROR.match(text):
        return _failure([text])
    return None


def is_error_document(root: xml.Element) -> bool:
    """Return whether this is an error document, by the name of its root."""
    return xml.local(root).lower() in ERROR_ROOTS


def show_body(data: bytes, charset: str | None = None) -> str:
    """Return a body as one short line for a message: no tags, no control characters."""
    text = xml.decode_text(data[:_SHOWN_BYTES], charset)
    if "<" in text:
        text = _TAGS.sub(" ", text)
    return clean(text)


def clean(text: str) -> str:
    """Return a text of a server as one line of at most 300 characters, safe for a terminal."""
    line = " ".join(_CONTROL.sub(" ", text).split())
    return line if len(line) <= _LENGTH else f"{line[: _LENGTH - 1]}…"


def _failure_in_document(root: xml.Element) -> Failure | None:
    texts = [text for piece in root.itertext() if (text := str(piece).strip())]
    if is_error_document(root):
        for element in root.iter():
            texts += filter(str.strip, xml.attributes(element).values())
        return _failure(texts or [xml.local(root)])
    is_one_text = len(texts) == 1 and xml.local(root).lower() not in _SHAPES
    return _failure_in_text(texts[0]) if is_one_text else None


def _failure(texts: list[str]) -> Failure:
    return Failure(clean(" ".join(texts)), any(map(_NOT_FOUND.match, texts)))
