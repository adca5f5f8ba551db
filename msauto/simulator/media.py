"""Thumbnails (PNG) and web proxies (MP4) over HTTP (interface "PNG thumbnail", "Web proxy")."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

from msauto.simulator.answers import HttpAnswer, text_answer
from msauto.simulator.state import SimClip, SimDatabase, SimEntry
from msauto.simulator.wire import HttpRequest, RefusalError, format_frames

_SIZE_LIMIT = 4096


def thumbnail_answer(request: HttpRequest, entry: SimEntry) -> HttpAnswer:
    """GET .../GETICON: a picture of one color, which depends on the texts in its text chunks."""
    clip = entry.clip
    try:
        pos, _ = _number(request, "pos", 0), _number(request, "dur", 0)
        size = (_size(request, "w", clip.width or 640), _size(request, "h", clip.height or 360))
        params = "\n".join(_parameter(value, clip) for value in request.all_params("param"))
    except RefusalError as refusal:
        return text_answer(f"Error: {refusal.text}", refusal.status, done=False)
    # Interface: "thumbnail position in frames from the asset start (IN point)".
    code = format_frames(entry.first_frame + pos, clip.rate)
    png = draw_png({"Title": entry.title, "TimeCode": code, "Params": params}, size)
    return HttpAnswer(200, png, "image/png")


def proxy_answer(request: HttpRequest, database: SimDatabase, entry: SimEntry, profile: str) -> HttpAnswer:
    """GET .../[PVW/]WPN: the proxy, made for each request; an unknown profile is a 500 in any dialect."""
    if profile not in database.profiles:
        return text_answer(f"Error: the profile {profile} is not configured", 500, done=False)
    view = "/PVW/" in request.target
    headers = {"Content-Disposition": "inline" if view else f'attachment; filename="{entry.link_id}-{profile}.mp4"'}
    return HttpAnswer(200, make_film(f"{entry.title} in {profile}", entry.clip.length), "video/mp4", headers)


def draw_png(texts: Mapping[str, str], size: tuple[int, int]) -> bytes:
    """Return a PNG of one color that depends on the texts, which its text chunks contain."""
    width, height = size
    color = zlib.crc32("\0".join(texts.values()).encode()).to_bytes(4)[:3]
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 3, 0, 0, 0)),  # a bit for each pixel
        (b"PLTE", color),
        *((b"iTXt", f"{name}\0\0\0\0\0{text}".encode()) for name, text in texts.items()),
        (b"IDAT", zlib.compress(bytes(1 + -(-width // 8)) * height, 1)),
        (b"IEND", b""),
    ]
    packed = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def make_film(title: str, frames: int) -> bytes:
    """Return bytes that begin as an MP4 does, with a line for each of at most 1,000 frames; no player shows them."""
    lines = "".join(f"{title}, frame {number}\n" for number in range(min(frames, 1000)))
    return _box("ftyp", b"isom\0\0\2\0isomiso2mp41") + _box("mdat", lines.encode())


def _box(kind: str, content: bytes) -> bytes:
    return (8 + len(content)).to_bytes(4) + kind.encode() + content


def _parameter(value: str, clip: SimClip) -> str:
    name, colon, content = value.partition(":")
    if not colon:
        raise RefusalError(400, f"param is NAME:VAL, not {value}")
    if clip.params and name not in clip.params:
        raise RefusalError(400, f"unknown graphic element {name}")
    return f"{name}: {content}"


def _size(request: HttpRequest, name: str, default: int) -> int:
    size = _number(request, name, default)
    if not 1 <= size <= _SIZE_LIMIT:
        raise RefusalError(400, f"{name} is out of range: {size}")
    return size


def _number(request: HttpRequest, name: str, default: int) -> int:
    value = request.param(name)
    if value is None:
        return default
    if not value.isascii() or not value.isdigit():
        raise RefusalError(400, f"{name} is not a number: {value}")
    return int(value)
