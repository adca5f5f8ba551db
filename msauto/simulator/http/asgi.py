"""One ASGI exchange: the raw request in, an answer out, or the connection cut.

uvicorn decodes and normalises the path that most applications use; `raw_path` is what was on the wire.
The listener puts the connection's transport into the scope, so that it can truly be closed.
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
    """A request being answered."""

    scope: Scope
    receive: Receive
    send: Send

    def request(self) -> HttpRequest:
        """The request's head; parameters are decoded by whoever knows the dialect."""
        scope = self.scope
        path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
        target = f"{path}?{query}" if query else path
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        return HttpRequest(scope["method"], target, path, query, headers)

    async def read_body(self) -> bytes | None:
        """The whole body, or None when the client went away before it was sent."""
        body = b""
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                return None
            body += bytes(message.get("body", b""))
            if not message.get("more_body"):
                return body

    async def deliver(self, answer: HttpAnswer) -> None:
        """Send the answer; a body in several chunks goes out while it is made."""
        if answer.chunks is not None:
            await self._deliver_chunks(answer)
            return
        await self.start(answer, len(answer.body))
        await self.send({"type": "http.response.body", "body": answer.body})

    async def _deliver_chunks(self, answer: HttpAnswer) -> None:
        chunks = answer.chunks or iter(())
        first, second = next(chunks, b""), next(chunks, None)
        if second is None:
            answer.body, answer.chunks = first, None
            await self.deliver(answer)
            return
        await self.start(answer, None)
        await self.send({"type": "http.response.body", "body": first + second, "more_body": True})
        for chunk in chunks:
            await self.send({"type": "http.response.body", "body": chunk, "more_body": True})
            await asyncio.sleep(0)  # other requests get their turn during a long listing
        await self.send({"type": "http.response.body", "body": b""})

    async def start(self, answer: HttpAnswer, length: int | None) -> None:
        """Send the status and headers."""
        headers = [(b"content-type", answer.content_type.encode()), *answer.headers]
        if length is not None:
            headers.append((b"content-length", b"%d" % length))
        await self.send({"type": "http.response.start", "status": answer.status, "headers": headers})

    async def cut(self) -> None:
        """Close the connection at once, whatever was promised, and wait until it is closed."""
        self.scope[TRANSPORT].abort()
        await self._gone()

    async def cut_after_sending(self) -> None:
        """Close the connection once what was handed over is sent."""
        self.scope[TRANSPORT].close()
        await self._gone()

    async def _gone(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass
