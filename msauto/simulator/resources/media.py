"""Thumbnails and web proxies over HTTP (interface "PNG thumbnail", "Web proxy"); both are made in a thread."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime

from msauto.simulator.commands.positions import format_frames
from msauto.simulator.dialect import SimDialect
from msauto.simulator.http.answers import HttpAnswer, RefusalError, text_answer
from msauto.simulator.http.ranges import file_answer
from msauto.simulator.http.wire import HttpRequest
from msauto.simulator.state.state import SimClip, SimDatabase, SimEntry

_SIZE_LIMIT = 4096


@dataclass(slots=True)
class Media:
    """Makes pictures and films; a film is kept, as a server keeps the copy of a profile once it is there."""

    films: dict[tuple[int, str], bytes] = field(default_factory=dict)
    made: dict[tuple[int, str], datetime] = field(default_factory=dict)
    _making: dict[tuple[int, str], asyncio.Task[bytes]] = field(default_factory=dict)

    async def thumbnail(self, request: HttpRequest, entry: SimEntry, dialect: SimDialect) -> HttpAnswer:
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

    async def film(
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
        """GET .../[PVW/]WPN: made when first asked for; an unconfigured profile is a 500 in any dialect."""
        size = database.profiles.get(profile)
        if size is None:
            return text_answer(f"Error: the profile {profile} is not configured", 500, done=False)
        film = await self._film(entry, profile, size, seconds)
        made = self.made.get((id(entry.clip), profile), datetime.now(UTC))
        answer = file_answer(request, film, "video/mp4", made, dialect)
        disposition = b"inline" if view else b'attachment; filename="%d-%s.mp4"' % (entry.link_id, profile.encode())
        answer.headers.append((b"content-disposition", disposition))
        return answer

    async def _film(self, entry: SimEntry, profile: str, size: tuple[int, int], seconds: float) -> bytes:
        key = (id(entry.clip), profile)
        if key not in self.films:
            if key not in self._making:
                self._making[key] = asyncio.ensure_future(_make(entry, size, seconds))
            try:
                # Shielded: a client that goes away does not stop the film that others wait for.
                self.films[key] = await asyncio.shield(self._making[key])
                self.made.setdefault(key, datetime.now(UTC).replace(microsecond=0))
            finally:
                self._making.pop(key, None)
        return self.films[key]


def _draw(title: str, code: str, lines: tuple[str, ...], size: tuple[int, int]) -> bytes:
    from msauto.simulator.resources.pictures import ThumbnailCard, draw_png

    return draw_png(ThumbnailCard(title, code, lines), size)


async def _make(entry: SimEntry, size: tuple[int, int], seconds: float) -> bytes:
    await asyncio.sleep(seconds)
    return await asyncio.to_thread(_encode, entry.title, entry.clip, size)


def _encode(title: str, clip: SimClip, size: tuple[int, int]) -> bytes:
    # PyAV takes long to import: in the thread, and only where a film is wanted.
    from msauto.simulator.resources.videos import make_film

    return make_film(title, clip.rate, clip.length, size)


def _parameter(value: str, clip: SimClip) -> str:
    name, colon, content = value.partition(":")
    if not colon:
        raise RefusalError(400, f"param is NAME:VAL, not {value}")
    if clip.params and name not in clip.params:
        raise RefusalError(400, f"no graphic element {name}")
    return f"{name}: {content}"


def _size(request: HttpRequest, name: str, default: int) -> int:
    size = _number(request, name, default)
    if not 1 <= size <= _SIZE_LIMIT:
        raise RefusalError(400, f"{name} is out of bounds: {size}")
    return size


def _number(request: HttpRequest, name: str, default: int) -> int:
    value = request.param(name)
    if value is None:
        return default
    if not value.isascii() or not value.isdigit():
        raise RefusalError(400, f"{name} is not a number: {value}")
    return int(value)
