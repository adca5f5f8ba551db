"""The application: log, authentication, faults, and the work."""

from __future__ import annotations

import asyncio
import base64
import hmac
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from msauto.simulator.dialect import SimDialect
from msauto.simulator.faults import FaultedRequest, Faults
from msauto.simulator.http.answers import HttpAnswer, text_answer
from msauto.simulator.http.exchange import HttpExchange, read_request
from msauto.simulator.http.log import RequestLog
from msauto.simulator.http.wire import HttpRequest
from msauto.simulator.resources.routes import Reply, Routes


@dataclass(slots=True)
class App:
    """One simulated server: it answers the requests of each connection, one after the other."""

    routes: Routes
    faults: Faults
    log: RequestLog
    on_write: Callable[[], None] = lambda: None
    _tasks: set[asyncio.Future[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection until either side closes it."""
        # asyncio sets it only for sockets with a protocol number; without it an answer in two writes takes 40 ms.
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.run_in_background(self._serve(reader, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while not writer.is_closing():
                request = await read_request(reader, writer)
                if request is None:
                    return
                exchange = HttpExchange(request, writer)
                await self._answer(exchange)
                if exchange.is_last:
                    return
        except ConnectionError:
            pass  # the client closed the connection
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        finally:
            writer.close()

    async def _answer(self, exchange: HttpExchange) -> None:
        request = exchange.request
        entry = self.log.open(request.method, request.target)
        entry.body = request.body
        fault = self.faults.take(entry.line)
        if fault is not None:
            entry.fault = fault.kind
            work, pretend = partial(self._work, request), partial(self._pretend, request)
            await FaultedRequest(fault, exchange, entry, work, pretend, self.run_in_background).apply()
            self.log.write(entry)
            return
        answer = await self._work(request)
        entry.status, entry.done = answer.status, answer.done
        self.log.write(entry)
        await exchange.send_answer(answer)

    async def _work(self, request: HttpRequest) -> HttpAnswer:
        before = self.routes.writes
        answer = unauthorized(request, self.routes.dialect) or await _finished(self.routes.answer(request))
        if self.routes.writes != before:
            self.on_write()
        return answer

    async def _pretend(self, request: HttpRequest) -> HttpAnswer:
        return unauthorized(request, self.routes.dialect) or await _finished(self.routes.pretend(request))

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run what `stop` cancels: a connection, or work that outlives it."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Close every connection, and cancel the open requests and the background work."""
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _finished(reply: Reply) -> HttpAnswer:
    return reply if isinstance(reply, HttpAnswer) else await reply


def unauthorized(request: HttpRequest, dialect: SimDialect) -> HttpAnswer | None:
    """Return a 401 for a request without the right credentials, else None (interface "Authentication": not shown)."""
    if dialect.auth == "none":
        return None
    pair = base64.b64encode(f"{dialect.auth_user}:{dialect.auth_password}".encode()).decode()
    header, desired = {
        "basic": ("authorization", f"Basic {pair}"),
        "bearer": ("authorization", f"Bearer {dialect.auth_token}"),
        "header": (dialect.auth_header.lower(), dialect.auth_token),
    }[dialect.auth]
    if hmac.compare_digest(request.headers.get(header, "").encode("latin-1"), desired.encode()):
        return None
    answer = text_answer("Error: authentication required", 401, done=False)
    challenge = {"basic": b'Basic realm="media"', "bearer": b"Bearer"}.get(dialect.auth)
    if challenge:
        answer.headers.append((b"www-authenticate", challenge))
    return answer
