"""Each call of the interface as bytes."""

from __future__ import annotations

from typing import Any

import pytest

from msauto.errors import AddressError
from msauto.model import requests
from msauto.model.plan import Body
from tests.tables import table

A = "/storage/NEWS@x"
BODY = Body.of(b"<a/>", "text/xml")


@table("server/requests", "name", "args", "more", "method", "path")
def test_call(name: str, args: list[Any], more: dict[str, Any] | None, method: str, path: str) -> None:
    given = [{"$A": A, "$BODY": BODY}.get(each, each) if isinstance(each, str) else each for each in args]
    request = getattr(requests, name)(*given, **(more or {}))
    assert (request.method, request.path) == (method, path)


def test_bodies() -> None:
    assert requests.put_rss("t", "f", BODY).body is BODY
    assert requests.load_xmp("N", "c", BODY).body is BODY


@pytest.mark.parametrize(
    "make",
    [
        lambda: requests.set_user_fields(A, {"command": ["x"]}),
        lambda: requests.create_marker(A, -1, 5, "General", {"track": "x"}),
        lambda: requests.create_marker(A, -1, fields={"uid": "x"}),
        lambda: requests.set_user_fields(A, {}),
        lambda: requests.get_proxy(A, "WP9"),
        lambda: requests.load_xmp("N", "", BODY),
        lambda: requests.delete_rss("t", ""),
    ],
)
def test_what_cannot_be_said(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(AddressError):
        make()


def test_request_line_counts_what_is_sent() -> None:
    assert requests.request_line_length(requests.get_channels()) == len(b"GET /rss HTTP/1.1\r\n")
