"""A media server as raw as a socket: it records every byte, and misbehaves as configured."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

Handler = Callable[["Exchange"], Awaitable[bool]]
"""Answers one request; returns whether the connection stays open."""


class Exchange:
    """One request as it came, and the way to answer it."""

    def __init__(
        self, head: bytes, body: bytes, connection: int, writer: asyncio.StreamWriter
    ) -> None:
        self.head = head
        self.body = body
        self.connection = connection
        self.writer = writer

    @property
    def line(self) -> bytes:
        return self.head.split(b"\r\n", 1)[0]

    @property
    def target(self) -> bytes:
        return self.line.split(b" ")[1]

    @property
    def headers(self) -> dict[str, str]:
        lines = self.head.decode("utf-8").split("\r\n")[1:]
        return {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines if line)
        }


class RawServer:
    """Serves on loopback; request number n gets behaviour n, and the last behaviour all that follow."""

    def __init__(self, *behaviours: Handler, tls: ssl.SSLContext | None = None) -> None:
        self.behaviours = behaviours
        self.exchanges: list[Exchange] = []
        self.connections = 0
        self._tls = tls
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def lines(self) -> list[bytes]:
        return [exchange.line for exchange in self.exchanges]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = self.connections
        self._writers.add(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                exchange = Exchange(head, b"", connection, writer)
                exchange.body = await reader.readexactly(
                    int(exchange.headers.get("content-length", "0"))
                )
                self.exchanges.append(exchange)
                behaviour = self.behaviours[min(len(self.exchanges), len(self.behaviours)) - 1]
                if not await behaviour(exchange):
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            self._writers.discard(writer)
            writer.close()


@contextmanager
def beside(server: RawServer) -> Iterator[RawServer]:
    """Serve in a thread, for a client that blocks or is another process."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result()
        asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def answer(
    status: int = 200, body: bytes = b"", headers: str = "", *, stay: bool = True
) -> Handler:
    """A whole answer."""

    async def handler(exchange: Exchange) -> bool:
        head = f"HTTP/1.1 {status} Some\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
        exchange.writer.write(head.encode() + body)
        await exchange.writer.drain()
        return stay

    return handler


def raw(data: bytes) -> Handler:
    """These bytes, then the end of the connection."""

    async def handler(exchange: Exchange) -> bool:
        exchange.writer.write(data)
        await exchange.writer.drain()
        return False

    return handler


async def cut(exchange: Exchange) -> bool:
    """No answer: the request was read, then the connection ends."""
    return False


async def reset(exchange: Exchange) -> bool:
    """No answer, and a reset connection."""
    sock: socket.socket = exchange.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    exchange.writer.transport.abort()
    return False


async def hang(exchange: Exchange) -> bool:
    """No answer at all."""
    await asyncio.sleep(60)
    return False


OK = answer(200, b"OK")
