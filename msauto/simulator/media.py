"""Thumbnails (PNG) and web proxies (MP4) over HTTP (interface "PNG thumbnail", "Web proxy")."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from fractions import Fraction

from msauto.simulator.answers import HttpAnswer, text_answer
from msauto.simulator.positions import format_frames
from msauto.simulator.state import SimClip, SimDatabase, SimEntry
from msauto.simulator.wire import HttpRequest, RefusalError

_SIZE_LIMIT = 4096
_PROXY_SECONDS = 2
_BAR = 8  # pixels
_MATRIX = struct.pack(">9I", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)  # neither moved, scaled nor turned


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
    size, clip = database.profiles.get(profile), entry.clip
    if size is None:
        return text_answer(f"Error: the profile {profile} is not configured", 500, done=False)
    view = "/PVW/" in request.target
    headers = {"Content-Disposition": "inline" if view else f'attachment; filename="{entry.link_id}-{profile}.mp4"'}
    return HttpAnswer(200, make_film(entry.title, clip.rate, clip.length, size), "video/mp4", headers)


def draw_png(texts: Mapping[str, str], size: tuple[int, int], progress: float = 0.0) -> bytes:
    """Return a PNG with a bar at the bottom. Its color depends on the texts, and its text chunks contain them."""
    width, height = size
    color = zlib.crc32("\0".join(texts.values()).encode()).to_bytes(4)[:3]
    row = -(-width // 8) * 8  # a bit for each pixel
    filled = int(width * progress)
    bar = b"\0" + (((1 << filled) - 1) << (row - filled)).to_bytes(row // 8)
    thick = min(_BAR, height)
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 3, 0, 0, 0)),
        (b"PLTE", color + b"\xff\xff\xff"),
        *((b"iTXt", f"{name}\0\0\0\0\0{text}".encode()) for name, text in texts.items()),
        (b"IDAT", zlib.compress(bytes(1 + row // 8) * (height - thick) + bar * thick, 1)),
        (b"IEND", b""),
    ]
    packed = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def make_film(title: str, rate: Fraction, frames: int, size: tuple[int, int]) -> bytes:
    """Return at most two seconds of the clip as MP4, at its own rate; each frame is a PNG."""
    count = max(1, min(frames, int(_PROXY_SECONDS * rate)))
    pictures = [draw_png({"Title": title}, size, (number + 1) / count) for number in range(count)]
    scale, duration = rate.numerator, count * rate.denominator
    width, height = size
    picture = struct.pack(">HHIIIH32sHh", width, height, 72 << 16, 72 << 16, 0, 1, b"", 24, -1)
    kind = _box("ftyp", b"isom", 512, b"isomiso2mp41")
    table = _box(
        "stbl",
        _box("stsd", 0, 1, _box("png ", 0, 1, bytes(16), picture)),
        _box("stts", 0, 1, count, rate.denominator),
        _box("stsc", 0, 1, 1, count, 1),
        _box("stsz", 0, 0, count, *map(len, pictures)),
        _box("stco", 0, 1, len(kind) + 8),
    )
    references = _box("dinf", _box("dref", 0, 1, _box("url ", 1)))
    media = _box(
        "mdia",
        _box("mdhd", 0, 0, 0, scale, duration, 0x55C4 << 16),
        _box("hdlr", 0, 0, b"vide", bytes(13)),
        _box("minf", _box("vmhd", 1, bytes(8)), references, table),
    )
    header = _box("tkhd", 3, 0, 0, 1, 0, duration, bytes(16), _MATRIX, width << 16, height << 16)
    movie = _box("mvhd", 0, 0, 0, scale, duration, 1 << 16, 1 << 24, bytes(8), _MATRIX, bytes(24), 2)
    return kind + _box("mdat", *pictures) + _box("moov", movie, _box("trak", header, media))


def _box(kind: str, *content: int | bytes) -> bytes:
    """Return a box of an MP4; a number takes four bytes."""
    body = b"".join(part if isinstance(part, bytes) else part.to_bytes(4) for part in content)
    return (8 + len(body)).to_bytes(4) + kind.encode() + body


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
