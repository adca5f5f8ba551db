"""Heartbeats in the protocol of healthchecks: a POST to ``/start``, then to ``/<exit code>``, with one run id."""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, unquote_to_bytes, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener
from uuid import NAMESPACE_URL, uuid5

from msauto.errors import MsautoError

_MOST_BYTES = 90_000  # healthchecks keeps 100 kB of a body


class _NoRedirects(HTTPRedirectHandler):
    """Makes a redirect an error: urllib would follow it with a GET, without the body."""

    def redirect_request(self, *_: object) -> None:
        """Return no request."""


def split_heartbeat(url: str) -> SplitResult:
    """Return the parts of the URL of a heartbeat; raises :class:`MsautoError`, which does not show it."""
    with suppress(ValueError):
        parts = urlsplit(url)
        if parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0:
            return parts
    raise MsautoError("the heartbeat is not an http or https URL", remedy="use the ping URL of the check")


def send_heartbeat(url: str, signal: str, run: str, body: str, seconds: float) -> None:
    """Send ``start``, an exit code or ``log``; ``run`` is the run in the history, from which the run id is made."""
    parts = split_heartbeat(url)
    query = "&".join(filter(None, (parts.query, f"rid={uuid5(NAMESPACE_URL, run)}")))
    login, _, host = parts.netloc.rpartition("@")
    path = f"{parts.path.rstrip('/')}/{signal}"
    address = urlunsplit(parts._replace(netloc=host, path=path, query=query, fragment=""))
    data = body.encode()[-_MOST_BYTES:]
    headers = {"Content-Type": "text/plain; charset=utf-8", "User-Agent": "msauto"}
    if login:
        user, _, password = login.partition(":")
        headers["Authorization"] = f"Basic {b64encode(unquote_to_bytes(f'{user}:{password}')).decode()}"
    request = Request(address, data, headers, method="POST")  # noqa: S310 - http or https, above
    try:
        with build_opener(_NoRedirects).open(request, timeout=seconds):
            pass
    except HTTPError as error:
        error.close()
        raise MsautoError(f"the answer has the status {error.code}", remedy="check the URL") from None
    except URLError as error:
        raise MsautoError(f"it cannot be reached: {error.reason}", remedy="check the URL") from None
