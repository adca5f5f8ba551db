"""How files of media begin: a download that begins like something else does not take its place."""

from __future__ import annotations

import re
from typing import Final

HEAD: Final = 2**16 + 1024
"""The bytes that decide: an MXF file may have 64 KiB before its first key (its run-in)."""

_BOXES: Final = rb"(?s:....)(?:ftyp|styp|moof|moov|mdat|sidx|free|skip|wide|pnot|emsg|prft|uuid)"
_TRANSPORT_STREAM: Final = rb"(?s:(?:.{4})?\x47.{187}(?:.{4})?(?:\x47|\Z))"
_BEGINNINGS: Final = {
    ".png": (rb"\x89PNG\r\n\x1a\n", "a PNG image"),
    ".jpg": (rb"\xff\xd8\xff", "a JPEG image"),
    ".mp4": (_BOXES, "an MP4 file"),
    ".m4s": (_BOXES, "a segment of MP4"),
    ".mov": (_BOXES, "a QuickTime file"),
    ".mxf": (
        rb"(?s:.{0,65536}?)\x06\x0e\x2b\x34\x02\x05\x01\x01\x0d\x01\x02\x01\x01",
        "an MXF file",
    ),
    ".ts": (_TRANSPORT_STREAM, "an MPEG transport stream"),
    ".m3u8": (rb"(?:\xef\xbb\xbf)?#EXTM3U(?:\r?\n|[ \t]|\Z)", "an HLS playlist"),
    ".webm": (rb"\x1a\x45\xdf\xa3", "a WebM file"),
}


def why_not_media(ending: str, head: bytes) -> str:
    r"""Return why a file that begins so does not fit its ending; empty if it does, or for another ending than of media.

    >>> why_not_media(".png", b"all:\n"), why_not_media(".txt", b"all:")
    ('it does not begin like a PNG image', '')
    """
    begins, what = _BEGINNINGS.get(ending.lower(), (b"", ""))
    return "" if re.match(begins, head) else f"it does not begin like {what}"
