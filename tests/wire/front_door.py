"""A proxy in front of the simulator: TLS, and a check of the bytes of a header. It counts the active requests."""

from __future__ import annotations

import asyncio
import ssl
import threading
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tests.wire.raw_server import Exchange, RawServer

_INSIDE = 0.01  # seconds for which each request is kept, so that others come meanwhile
_NO = b"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=studio\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno!"


class FrontDoor:
    """Serves on loopback in a thread of its own, and hands each request on to ``behind``.

    ``key`` is the header line that each request needs. ``most`` is the largest number of simultaneous requests.
    """

    def __init__(self, behind: str, *, tls: ssl.SSLContext | None = None, key: bytes = b"") -> None:
        self.heads: list[bytes] = []
        self.most: dict[str, int] = {}
        self.refused = 0
        self._inside = 0
        self._behind = urlsplit(behind).port
        self._key = key
        self._server = RawServer(self._answer, tls=tls)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def url(self) -> str:
        return self._server.url

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._server.__aenter__(), self._loop).result(10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _close(self) -> None:
        await self._server.__aexit__(None, None, None)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(
            0.02
        )  # transports that were aborted close their sockets in the turns that follow

    async def _answer(self, exchange: Exchange) -> bool:
        self.heads.append(exchange.head)
        if self._key and self._key not in exchange.head.split(b"\r\n"):
            self.refused += 1
            exchange.writer.write(_NO)
            return False
        kind = "reads" if exchange.line.startswith(b"GET ") else "writes"
        self._inside += 1
        self.most[kind] = max(self.most.get(kind, 0), self._inside)
        try:
            await asyncio.sleep(_INSIDE)
            answer = await self._hand_on(exchange)
        finally:
            self._inside -= 1
        exchange.writer.write(answer)
        await exchange.writer.drain()
        return False

    async def _hand_on(self, exchange: Exchange) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._behind)
        writer.write(exchange.head[:-2] + b"Connection: close\r\n\r\n" + exchange.body)
        try:
            return await reader.read()
        finally:
            writer.transport.abort()
