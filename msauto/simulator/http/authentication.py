"""Who may ask (interface "Authentication": not shown): nobody, basic, bearer or a header of one's own."""

from __future__ import annotations

import base64
import hmac

from msauto.simulator.dialect import SimDialect
from msauto.simulator.http.answers import HttpAnswer, text_answer
from msauto.simulator.http.wire import HttpRequest


def refuse_stranger(request: HttpRequest, dialect: SimDialect) -> HttpAnswer | None:
    """A 401 for a request without the right credentials, else None."""
    if dialect.auth == "none":
        return None
    header, desired = _wanted(dialect)
    given = request.headers.get(header, "")
    if hmac.compare_digest(given.encode("latin-1"), desired.encode("utf-8")):
        return None
    answer = text_answer("Error: who are you?", 401, done=False)
    challenge = {"basic": b'Basic realm="media"', "bearer": b"Bearer"}.get(dialect.auth)
    if challenge:
        answer.headers.append((b"www-authenticate", challenge))
    return answer


def _wanted(dialect: SimDialect) -> tuple[str, str]:
    if dialect.auth == "basic":
        pair = f"{dialect.auth_user}:{dialect.auth_password}".encode()
        return "authorization", f"Basic {base64.b64encode(pair).decode()}"
    if dialect.auth == "bearer":
        return "authorization", f"Bearer {dialect.auth_token}"
    return dialect.auth_header.lower(), dialect.auth_token
