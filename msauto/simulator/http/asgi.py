"""One ASGI exchange: the raw request, and an answer or a closed connection.

uvicorn decodes and normalizes `path`; `raw_path` is the path on the wire.
The listener puts the connection's transport into the scope, so that a fault can close the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from msauto.simulator.http.answers import HttpAnswer
from msauto.simulator.http.wire import HttpRequest

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

TRANSPORT = "simulator.transport"


@dataclass(slots=True)
class HttpExchange:
    """One request and its answer. `on_answer` is called once, before the answer starts or the connection is closed."""

    scope: Scope
    receive: Receive
    send: Send
    on_answer: Callable[[], None] = lambda: None

    def request(self) -> HttpRequest:
        """Return the request without its body and parameters: decoding them depends on the dialect."""
        scope = self.scope
        path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
        target = f"{path}?{query}" if query else path
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        return HttpRequest(scope["method"], target, path, query, headers)

    async def read_body(self) -> bytes | None:
        """Return the whole body, or None if the client closed the connection before."""
        body = b""
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                return None
            body += bytes(message.get("body", b""))
            if not message.get("more_body"):
                return body

    async def send_answer(self, answer: HttpAnswer) -> None:
        """Send the answer; a body in several chunks is sent while it is made."""
        first, second = answer.body, None
        if answer.chunks is not None:
            first, second = next(answer.chunks, b""), next(answer.chunks, None)
        if answer.chunks is None or second is None:
            await self.start(answer, len(first))
            await self.send_body(first, more=False)
            return
        await self.start(answer, None)
        await self.send_body(first + second)
        for chunk in answer.chunks:
            await self.send_body(chunk)
            await asyncio.sleep(0)  # serves other requests during a long listing
        await self.send_body(b"", more=False)

    async def start(self, answer: HttpAnswer, length: int | None) -> None:
        """Send the status and headers."""
        self._call_once()
        headers = [(b"content-type", answer.content_type.encode()), *answer.headers]
        if length is not None:
            headers.append((b"content-length", b"%d" % length))
        await self.send({"type": "http.response.start", "status": answer.status, "headers": headers})

    def _call_once(self) -> None:
        call, self.on_answer = self.on_answer, lambda: None
        call()

    async def send_body(self, body: bytes, *, more: bool = True) -> None:
        """Send a part of the body."""
        await self.send({"type": "http.response.body", "body": body, "more_body": more})

    async def close(self, *, after_sending: bool = False) -> None:
        """Close the connection, at once or after the sent data, and wait until it is closed."""
        self._call_once()
        transport = self.scope[TRANSPORT]
        transport.close() if after_sending else transport.abort()
        while (await self.receive())["type"] != "http.disconnect":
            pass
