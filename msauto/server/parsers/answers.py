"""Judging an answer: what was asked for, an error, or neither (interface, «Errors»; field notes, rules)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import SplitResult, urljoin, urlsplit

from msauto.errors import InDoubtError, NotFoundError, RejectedError, UnreadableError
from msauto.interface.dialect import Dialect
from msauto.server.parsers.failure import Failure, parse_failure, show_body
from msauto.server.parsers.xml import looks_like_login

T = TypeVar("T")

_PORTS = {"http": 80, "https": 443}
_HOUR = 3600.0
_YEAR = 365 * 24 * _HOUR
_REMEDIES = {
    401: "check `auth` in the server's inventory entry",
    403: "check `auth` in the server's inventory entry, and what this user may do",
    407: "check `proxy` in the server's inventory entry: who may use it is asked by the proxy, not by the server",
    413: "send less at once",
    414: "lower `request_line` in the server's inventory entry",
    429: "the server is asked too much: lower `connections` or `--forks`",
    503: "the server is busy or being started: try again later",
}


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """An answer as it came, with what HTTP says of it. ``retry_after`` in seconds, ``location`` of a redirect,
    ``challenge`` what a 401 says of how to get in (RFC 9110, 11.6.1), ``server`` the URL that was asked.
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
            remedy=_way_on(reply),
        )
    failure = parse_failure(reply.data, reply.charset)
    raise _error(reply, failure or Failure(show_body(reply.data, reply.charset), not_found=False), dialect)


def judge_body(reply: RawAnswer, dialect: Dialect) -> None:
    """Raise :class:`RejectedError` where a good status comes with an error text or an error document.

    Only for answers of which nothing is expected, or that were found not to be what was asked for.
    """
    failure = parse_failure(reply.data, reply.charset)
    if failure is not None:
        raise _error(reply, failure, dialect)


def judge_write(reply: RawAnswer, dialect: Dialect) -> None:
    """Raise an error where a good status does not tell that the server itself took a write.

    The body of a command is not relied on, but a login page in its place comes from something that stands between.
    """
    judge_body(reply, dialect)
    if looks_like_login(reply.data):
        raise InDoubtError(
            f"a web page with a form came in place of an answer: {show_body(reply.data, reply.charset)}",
            remedy="check `auth` and `url` of the server: a login page or a proxy answers there",
        )


def read_reply(reply: RawAnswer, dialect: Dialect, parse: Callable[[bytes, str | None], T]) -> T:
    """Parse what was asked for. What parses is never an error, whatever words are in it."""
    try:
        return parse(reply.data, reply.charset)
    except UnreadableError:
        judge_body(reply, dialect)
        raise


def read_retry_after(text: str | None, now: datetime) -> float | None:
    """Return the seconds of a ``Retry-After``, be it a number or a date (RFC 9110, 10.2.3)."""
    if not text:
        return None
    if text.strip().isdecimal():
        return float(text)
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    return max(0.0, ((when if when.tzinfo else when.replace(tzinfo=UTC)) - now).total_seconds())


def _error(reply: RawAnswer, failure: Failure, dialect: Dialect) -> RejectedError:
    told = (failure.text or _phrase(reply.status)) + _asked(reply)
    kind = NotFoundError if _is_not_found(reply, failure, dialect) else RejectedError
    status = "" if reply.status < 300 else f" {reply.status}"
    return kind(
        f"the server answered{status}: {told}",
        status=reply.status,
        retry_after=reply.retry_after,
        remedy=_remedy(reply),
    )


def _way_on(reply: RawAnswer) -> str:
    """Return what to do about a redirect: it depends on what is another one there, the server or just the path."""
    asked, there = _parts(reply.server), _parts(reply.server, reply.location)
    if not reply.location or asked is None or there is None:
        return "look at what answers at the server's address and port"
    if _origin(asked) == _origin(there):
        return (
            "that is on the same server: a login page or a gateway answers there; check `auth`, and that `url` names "
            "the port of the media server itself"
        )
    if asked.hostname == there.hostname and there.scheme == "https":
        return f"set the server's `url` to {_origin(there)} if the media server is there, and `tls` to whom to trust"
    return f"set the server's `url` to {_origin(there)} if the media server is there; if that is a login, check `auth`"


def _parts(url: str, location: str = "") -> SplitResult | None:
    try:
        parts = urlsplit(urljoin(url, location))
        return parts if parts.scheme in _PORTS and parts.hostname and parts.port != 0 else None  # the port may be none
    except ValueError:
        return None


def _origin(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{parts.port or _PORTS[parts.scheme]}"


def _asked(reply: RawAnswer) -> str:
    known = reply.status == HTTPStatus.UNAUTHORIZED and reply.challenge
    return f"; it asks for {reply.challenge}" if known else ""


def _remedy(reply: RawAnswer) -> str:
    remedy = _REMEDIES.get(reply.status, "look at the server's log" if reply.status >= 500 else "")
    if reply.status not in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE} or not reply.retry_after:
        return remedy
    return f"{remedy} (it asks to be left alone for {_span(reply.retry_after)})"


def _span(seconds: float) -> str:
    if seconds < _HOUR:
        return f"{seconds:.0f} seconds"
    return f"{seconds / _HOUR:.0f} hours" if seconds < _YEAR else "more than a year"


def _is_not_found(reply: RawAnswer, failure: Failure, dialect: Dialect) -> bool:
    by_status = reply.status == HTTPStatus.NOT_FOUND and dialect.not_found != "text"
    return by_status or (failure.not_found and dialect.not_found != "status")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "no further words"
