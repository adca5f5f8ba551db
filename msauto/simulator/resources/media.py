"""Thumbnails and web proxies over HTTP (interface "PNG thumbnail", "Web proxy"); a thread makes both."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime

from msauto.simulator.dialect import SimDialect
from msauto.simulator.http.answers import HttpAnswer, file_answer, text_answer
from msauto.simulator.http.wire import HttpRequest, RefusalError
from msauto.simulator.positions import format_frames
from msauto.simulator.state.state import SimClip, SimDatabase, SimEntry

_SIZE_LIMIT = 4096


async def thumbnail_answer(request: HttpRequest, entry: SimEntry, dialect: SimDialect) -> HttpAnswer:
    """GET .../GETICON."""
    clip = entry.clip
    try:
        pos, _ = _number(request, "pos", 0), _number(request, "dur", 0)
        size = (_size(request, "w", clip.width or 640), _size(request, "h", clip.height or 360))
        lines = tuple(_parameter(value, clip) for value in request.all_params("param"))
    except RefusalError as refusal:
        return text_answer(f"Error: {refusal.text}", refusal.status, done=False)
    # Interface: "thumbnail position in frames from the asset start (IN point)".
    code = format_frames(entry.first_frame + pos, clip.rate)
    png = await asyncio.to_thread(_draw, entry.title, code, lines, size)
    made = datetime.fromisoformat(clip.create_time).replace(tzinfo=UTC, microsecond=0)
    return file_answer(request, png, "image/png", made, dialect)


@dataclass(slots=True)
class ProxyFile:
    """A web proxy of a clip, and when it was made (UTC)."""

    content: bytes
    made: datetime


@dataclass(slots=True)
class Media:
    """The web proxies that were made, by clip and profile; a proxy is kept."""

    proxies: dict[tuple[int, str], asyncio.Task[ProxyFile]] = field(default_factory=dict)

    async def answer(
        self,
        request: HttpRequest,
        database: SimDatabase,
        entry: SimEntry,
        profile: str,
        seconds: float,
        dialect: SimDialect,
        *,
        view: bool,
    ) -> HttpAnswer:
        """GET .../[PVW/]WPN: the first request makes the proxy; an unknown profile is a 500 in any dialect."""
        size = database.profiles.get(profile)
        if size is None:
            return text_answer(f"Error: the profile {profile} is not configured", 500, done=False)
        key = (id(entry.clip), profile)
        if key not in self.proxies:
            self.proxies[key] = asyncio.ensure_future(_make(entry, size, seconds))
        try:
            # Shielded: other requests wait for the proxy too.
            proxy = await asyncio.shield(self.proxies[key])
        except BaseException:
            self.proxies.pop(key, None)
            raise
        answer = file_answer(request, proxy.content, "video/mp4", proxy.made, dialect)
        disposition = b"inline" if view else b'attachment; filename="%d-%s.mp4"' % (entry.link_id, profile.encode())
        answer.headers.append((b"content-disposition", disposition))
        return answer


def _draw(title: str, code: str, lines: tuple[str, ...], size: tuple[int, int]) -> bytes:
    # Pillow and PyAV take long to import: only in the thread, and only where they are needed.
    from msauto.simulator.resources.pictures import ThumbnailCard, draw_png

    return draw_png(ThumbnailCard(title, code, lines), size)


async def _make(entry: SimEntry, size: tuple[int, int], seconds: float) -> ProxyFile:
    await asyncio.sleep(seconds)
    content = await asyncio.to_thread(_encode, entry.title, entry.clip, size)
    return ProxyFile(content, datetime.now(UTC).replace(microsecond=0))


def _encode(title: str, clip: SimClip, size: tuple[int, int]) -> bytes:
    from msauto.simulator.resources.pictures import make_proxy

    return make_proxy(title, clip.rate, clip.length, size)


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
