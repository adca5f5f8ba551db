"""XMP fields as JSON: unreadable, because the interface does not define it; as a text it would never match."""

from __future__ import annotations

import pytest

from msauto.server.xmp import parse_xmp


@pytest.mark.parametrize("asked", [None, "dc:subject"])
@pytest.mark.parametrize("data", [b'{"dc:subject": ["news", "evening"]}', b'\xef\xbb\xbf {"a": "x=1"}\r\n', b"{}"])
def test_json_cannot_be_read(data: bytes, asked: str | None) -> None:
    assert parse_xmp(data, asked=asked) is None


def test_a_value_in_braces_is_a_value() -> None:
    assert parse_xmp(b"{draft}", asked="dc:title") == {"dc:title": ("{draft}",)}
    assert parse_xmp(b"{" * 100_000 + b"}", asked="dc:title") == {"dc:title": ("{" * 100_000 + "}",)}
