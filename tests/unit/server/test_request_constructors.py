"""Each call of the interface as bytes."""

from __future__ import annotations

from typing import Any

import pytest

from msauto.errors import AddressError
from msauto.model import requests
from msauto.model.plan import Body, Request
from tests.tables import table

A = "/storage/NEWS@x"
BODY = Body.of(b"<a/>", "text/xml")


@table("server/requests", "name", "args", "more", "method", "path")
def test_call(
    name: str, args: list[Any], more: dict[str, Any] | None, method: str, path: str
) -> None:
    request = made(name, args, more)
    assert (request.method, request.path) == (method, path)


def made(name: str, args: list[Any], more: dict[str, Any] | None) -> Request:
    given = [
        {"$A": A, "$BODY": BODY}.get(each, each) if isinstance(each, str) else each for each in args
    ]
    request: Request = getattr(requests, name)(*given, **(more or {}))
    return request


def test_bodies() -> None:
    assert requests.put_rss("t", "f", BODY).body is BODY
    assert requests.load_xmp("N", "c", BODY).body is BODY


@table("server/requests_that_cannot_be_made", "name", "args", "more")
def test_what_cannot_be_said(name: str, args: list[Any], more: dict[str, Any] | None) -> None:
    with pytest.raises(AddressError):
        made(name, args, more)


def test_request_line_counts_what_is_sent() -> None:
    assert requests.request_line_length(requests.get_channels()) == len(b"GET /rss HTTP/1.1\r\n")
