"""One connection: raw requests, and for each an answer or a closed connection.

The server is written on asyncio's streams, because a fault may cut an answer at any byte.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from http.client import responses
from typing import Final

from msauto.simulator.http.answers import HttpAnswer
from msauto.simulator.http.wire import HttpRequest

LONGEST_HEAD: Final = 1 << 24
"""The longest request line and headers, in bytes: the dialect decides about shorter ones."""


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> HttpRequest | None:
    """Return the next request with its body, not yet its parameters; None if it never arrives completely."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
        method, target, version = line.split(" ")
        headers = {name.strip().lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)}
        if "expect" in headers:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError):
        return None
    if version != "HTTP/1.1":
        headers["connection"] = "close"
    if not target.startswith("/"):  # through a proxy: with scheme and host
        target = "/" + target.partition("://")[2].partition("/")[2]
    path, _, query = target.removesuffix("?").partition("?")
    return HttpRequest(method, f"{path}?{query}" if query else path, path, query, headers, body)


@dataclass(slots=True)
class HttpExchange:
    """One request and its answer."""

    request: HttpRequest
    writer: asyncio.StreamWriter
    chunked: bool = False

    async def send_answer(self, answer: HttpAnswer) -> None:
        """Send the answer; a body in several chunks is sent while it is made."""
        first, second = answer.body, None
        if answer.chunks is not None:
            first, second = next(answer.chunks, b""), next(answer.chunks, None)
        if answer.chunks is None or second is None:
            self.start(answer, len(first))
            await self.send_body(first)
            return
        self.start(answer, None)
        await self.send_body(first + second)
        for chunk in answer.chunks:
            await self.send_body(chunk)
            await asyncio.sleep(0)  # serves other requests during a long listing
        self.writer.write(b"" if self.request.method == "HEAD" else b"0\r\n\r\n")
        await self.writer.drain()

    def start(self, answer: HttpAnswer, length: int | None) -> None:
        """Send the status and headers; without a length, the body is sent in chunks."""
        self.chunked = length is None
        size = (b"transfer-encoding", b"chunked") if length is None else (b"content-length", b"%d" % length)
        headers = [(b"content-type", answer.content_type.encode()), *answer.headers, size]
        if self.is_last:
            headers.append((b"connection", b"close"))
        lines = [f"HTTP/1.1 {answer.status} {responses.get(answer.status, '')}".encode(), *map(b": ".join, headers)]
        self.writer.write(b"\r\n".join([*lines, b"", b""]))

    async def send_body(self, body: bytes) -> None:
        """Send a part of the body."""
        if body and self.request.method != "HEAD":
            self.writer.write(b"%x\r\n%b\r\n" % (len(body), body) if self.chunked else body)
        await self.writer.drain()

    @property
    def is_last(self) -> bool:
        """Whether the connection is closed after this exchange."""
        return self.request.headers.get("connection", "").lower() == "close"

    def close(self, *, after_sending: bool = False) -> None:
        """Close the connection, at once or after the sent data."""
        self.writer.close() if after_sending else self.writer.transport.abort()
