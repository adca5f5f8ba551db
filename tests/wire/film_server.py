"""One file on a raw socket: how a server gives it, breaks off, or lies about it."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from msauto.model.ports import PartialDownload
from tests.wire.raw_server import Exchange

DATE = "Fri, 20 Nov 2026 12:00:00 GMT"
OLDER = "Fri, 20 Nov 2026 11:00:00 GMT"
FILM = bytes(range(256)) * 400
"""102,400 bytes in which every place differs from its neighbors."""
OTHER = bytes(reversed(FILM))


@dataclass(frozen=True)
class Film:
    """Answers as RFC 9110 requires, except for these parameters.

    ``cut``: so many bytes of the body, then the connection ends. ``parts`` ``False``: always the whole. ``instead``:
    header lines of a part, in place of the true ones; ``shift`` moves what it holds. ``length`` ``False``: chunked.
    ``piece``: so many bytes at a time. ``watch``: the connection ends only once these bytes are reported, because an
    HTTP library loses what it has not handed over by then.
    """

    content: bytes = FILM
    tag: str = '"one"'
    modified: str = ""
    cut: int | None = None
    parts: bool = True
    status: int = 206
    instead: str | None = None
    shift: int = 0
    most: int | None = None
    length: bool = True
    conditional: bool = True
    watch: Notes | None = None
    piece: int | None = None

    def but(self, **values: Any) -> Film:
        return replace(self, **values)

    async def __call__(self, exchange: Exchange) -> bool:
        answer, end = self._answer(exchange.headers)
        if self.piece is not None and self.watch is not None and end:
            answer = await self._give(exchange, answer, end, self.watch)
        exchange.writer.write(answer)
        await exchange.writer.drain()
        if self.cut is not None and self.watch is not None and end:
            with suppress(TimeoutError):  # where it does not want them
                await asyncio.wait_for(self.watch.reached(end), 5)
        return self.cut is None

    async def _give(self, exchange: Exchange, answer: bytes, end: int, watch: Notes) -> bytes:
        """Give piece after piece, each once the one before has come; return the last one."""
        head, _, body = answer.partition(b"\r\n\r\n")
        exchange.writer.write(head + b"\r\n\r\n")
        piece = self.piece if self.piece and self.length else len(body) + 1
        for start in range(0, len(body) - piece, piece):
            exchange.writer.write(body[start : start + piece])
            await watch.reached(end - len(body) + start + piece)
        return body[(len(body) - 1) // piece * piece :] if body else b""

    def _answer(self, asked: dict[str, str]) -> tuple[bytes, int]:
        """Return the answer, and how many bytes of the file are there once it has come; 0 where no caller needs it."""
        found = re.fullmatch(r"bytes=(\d+)-", asked.get("range", ""))
        condition = asked.get("if-range")
        same = not self.conditional or condition is None or condition in {self.tag, self.modified}
        if found is None or not self.parts or not same:
            return self._told(200, self.content, ""), len(self.content[: self.cut])
        first = int(found[1])
        if self.status != 206:
            return self._told(self.status, b"", f"Content-Range: bytes */{len(self.content)}\r\n"), 0
        if first >= len(self.content):
            return self._told(416, b"", f"Content-Range: bytes */{len(self.content)}\r\n"), 0
        body = self.content[max(0, first + self.shift) :][: self.most]
        span = f"Content-Range: bytes {first}-{first + len(body) - 1}/{len(self.content)}\r\n"
        desired = self.instead is None and self.tag in {"", condition}
        return self._told(206, body, span if self.instead is None else self.instead), first + len(
            body[: self.cut]
        ) if desired else 0

    def _told(self, status: int, body: bytes, more: str) -> bytes:
        head = f"HTTP/1.1 {status} Some\r\nContent-Type: video/mp4\r\nDate: {DATE}\r\n{more}"
        head += f"ETag: {self.tag}\r\n" if self.tag and "ETag" not in more else ""
        head += f"Last-Modified: {self.modified}\r\n" if self.modified else ""
        sent = body[: self.cut]
        if self.length:
            return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + sent
        end = b"0\r\n\r\n" if self.cut is None else b""
        chunk = b"%x\r\n%s\r\n" % (len(sent), sent) if sent else b""
        return f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunk + end


class Notes:
    """A watch that records its calls."""

    def __init__(self, part: PartialDownload | None = None, *, keeps: bool = True) -> None:
        self.part = part
        self.keeps = keeps
        self._more = asyncio.Event()
        self.kept: list[PartialDownload | None] = []
        self.begun: list[int] = []
        self.sizes: list[int] = []
        self.totals: set[int | None] = set()

    @property
    def left(self) -> PartialDownload | None:
        """What the next run is given."""
        return self.kept[-1] if self.kept else self.part

    def keep(self, part: PartialDownload | None) -> None:
        self.kept.append(part)

    def asked(self, received: int, seconds: float) -> None:
        self.begun.append(received)

    def received(self, size: int, total: int | None) -> None:
        self.sizes.append(size)
        self._more.set()
        self.totals.add(total)

    async def reached(self, size: int) -> None:
        """Wait until so many bytes are there."""
        while not self.sizes or self.sizes[-1] < size:
            self._more.clear()
            await self._more.wait()
