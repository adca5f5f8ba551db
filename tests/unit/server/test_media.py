"""How a download must begin, by its ending."""

from __future__ import annotations

import pytest

from msauto.file_access import MEDIA_ENDINGS
from msauto.server.media import HEAD, why_not_media

KEY = bytes.fromhex("060e2b34020501010d010201010204")
PACKET = b"\x47" + bytes(187)
MEDIA = [
    (".png", b"\x89PNG\r\n\x1a\n\0"),
    (".PNG", b"\x89PNG\r\n\x1a\n\0"),
    (".jpg", b"\xff\xd8\xff\xe0"),
    (".mp4", b"\0\0\0\x18ftypisom"),
    (".mp4", b"\0\0\0\x18moof"),
    (".m4s", b"\0\0\0\x18styp"),
    (".mov", b"\0\0\0\x08wide"),
    (".mov", b"\0\0\x10\x08moov"),
    (".mxf", KEY),
    (".mxf", bytes(65536) + KEY),
    (".ts", PACKET * 2),
    (".ts", PACKET),
    (".ts", (b"\0\0\0\0" + PACKET) * 2),
    (".m3u8", b"#EXTM3U\n#EXTINF"),
    (".m3u8", b"\xef\xbb\xbf#EXTM3U\r\n"),
    (".webm", b"\x1a\x45\xdf\xa3"),
    (".gxf", b"anything that an administrator allows"),
]
OTHERS = [
    b"all:\n  hosts: {}\n",
    b'{"server": 1}',
    b"<html>",
    b"",
    b"G" + b"x" * 400,
    b"#!/bin/sh\n",
    b"PK\x03\x04",
]


@pytest.mark.parametrize(("ending", "head"), MEDIA)
def test_media(ending: str, head: bytes) -> None:
    assert why_not_media(ending, head[:HEAD]) == ""


@pytest.mark.parametrize("ending", sorted(MEDIA_ENDINGS))
def test_what_is_none(ending: str) -> None:
    for head in OTHERS:
        assert "does not begin like" in why_not_media(ending, head), head
