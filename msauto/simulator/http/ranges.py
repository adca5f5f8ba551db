"""Parts of a file: `Range`, `If-Range` and the validators that make them safe (RFC 9110, 13.1.5 and 14).

The interface shows none of it: `ranges` of the dialect says what this server does.
"""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from email.utils import format_datetime

from msauto.simulator.dialect import SimDialect
from msauto.simulator.http.answers import HttpAnswer
from msauto.simulator.http.wire import HttpRequest

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_Headers = list[tuple[bytes, bytes]]


def file_answer(
    request: HttpRequest, content: bytes, content_type: str, made: datetime, dialect: SimDialect
) -> HttpAnswer:
    """The file, or the part of it that the request asks for; `made` is when it became what it is (UTC)."""
    headers = _validators(content, made, dialect)
    desired = _RANGE.fullmatch(request.headers.get("range", "")) if _may_part(request, headers, dialect) else None
    if desired is None or desired.group(1, 2) == ("", ""):
        return HttpAnswer(200, content, content_type, headers)
    first, last = desired.group(1, 2)
    start = int(first) if first else max(0, len(content) - int(last))
    end = min(int(last), len(content) - 1) if first and last else len(content) - 1
    if start > end:
        return HttpAnswer(416, b"", content_type, [(b"content-range", b"bytes */%d" % len(content))], done=False)
    headers.append((b"content-range", b"bytes %d-%d/%d" % (start, end, len(content))))
    return HttpAnswer(206, content[start : end + 1], content_type, headers)


def _validators(content: bytes, made: datetime, dialect: SimDialect) -> _Headers:
    if dialect.ranges == "no":
        return []
    headers: _Headers = [] if dialect.ranges == "ignore" else [(b"accept-ranges", b"bytes")]
    if dialect.ranges == "date":
        return [*headers, (b"last-modified", format_datetime(made, usegmt=True).encode())]
    tag = b'"%s"' % hashlib.sha256(content).hexdigest()[:16].encode()
    return [*headers, (b"etag", b"W/" + tag if dialect.ranges == "weak" else tag)]


def _may_part(request: HttpRequest, headers: _Headers, dialect: SimDialect) -> bool:
    """A condition that does not hold makes the answer whole; a weak tag holds for no part."""
    if dialect.ranges in ("no", "ignore"):
        return False
    condition = request.headers.get("if-range")
    strong = [value.decode() for name, value in headers if name in (b"etag", b"last-modified")]
    return condition is None or (condition in strong and not condition.startswith("W/"))
