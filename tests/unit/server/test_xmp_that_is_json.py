"""XMP fields as JSON: no shape of the interface, hence unreadable; read as a text it would never be as wanted."""

from __future__ import annotations

import pytest

from msauto.server.parsers.user_fields import parse_xmp


@pytest.mark.parametrize("asked", [None, "dc:subject"])
@pytest.mark.parametrize("data", [b'{"dc:subject": ["news", "evening"]}', b'\xef\xbb\xbf {"a": "x=1"}\r\n', b"{}"])
def test_json_cannot_be_read(data: bytes, asked: str | None) -> None:
    assert parse_xmp(data, asked=asked) is None


def test_a_value_in_braces_is_a_value() -> None:
    assert parse_xmp(b"{draft}", asked="dc:title") == {"dc:title": ("{draft}",)}
    assert parse_xmp(b"{" * 100_000 + b"}", asked="dc:title") == {"dc:title": ("{" * 100_000 + "}",)}
