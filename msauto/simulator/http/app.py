"""The bare ASGI application: log, authentication, faults, and the work between them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from msauto.simulator.faulted_requests import FaultedRequest, strike
from msauto.simulator.faults import Fault, Faults
from msauto.simulator.http.answers import HttpAnswer
from msauto.simulator.http.asgi import HttpExchange, Receive, Scope, Send
from msauto.simulator.http.authentication import refuse_stranger
from msauto.simulator.http.control import CONTROL_PREFIX, Control
from msauto.simulator.http.log import LogEntry, RequestLog
from msauto.simulator.http.wire import HttpRequest
from msauto.simulator.resources.routes import Reply, Routes


@dataclass(slots=True)
class App:
    """One simulated server, as an ASGI application."""

    routes: Routes
    faults: Faults
    log: RequestLog
    control: Control
    on_write: Callable[[], None] = lambda: None
    _tasks: set[asyncio.Future[None]] = field(default_factory=set)
    _stopping: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            await self._answer(HttpExchange(scope, receive, send))
        except asyncio.CancelledError:
            # uvicorn takes a cancelled request for a failure of the application.
            if not self._stopping:
                raise

    async def _answer(self, exchange: HttpExchange) -> None:
        request = exchange.request()
        if request.method not in ("GET", "HEAD"):
            body = await exchange.read_body()
            if body is None:
                return
            request.body = body
        if request.raw_path.startswith(CONTROL_PREFIX):
            await exchange.deliver(self.control.answer(request))
            return
        await self._serve(exchange, request)

    async def _serve(self, exchange: HttpExchange, request: HttpRequest) -> None:
        entry = self.log.open(request.method, request.target)
        entry.body = request.body
        fault = self.faults.take(entry.line)
        if fault is not None:
            entry.fault = fault.kind
            await self._strike(fault, exchange, request, entry)
            self.log.settle(entry)
            return
        answer = await self._work(request)
        entry.status, entry.done = answer.status, answer.done
        self.log.settle(entry)
        await exchange.deliver(answer)

    async def _strike(self, fault: Fault, exchange: HttpExchange, request: HttpRequest, entry: LogEntry) -> None:
        async def work() -> HttpAnswer:
            return await self._work(request)

        async def pretend() -> HttpAnswer:
            return await _settled(refuse_stranger(request, self.routes.dialect) or self.routes.pretend(request))

        await strike(FaultedRequest(fault, exchange, entry, work, pretend, self._background))

    async def _work(self, request: HttpRequest) -> HttpAnswer:
        stranger = refuse_stranger(request, self.routes.dialect)
        if stranger is not None:
            return stranger
        before = self.routes.writes
        answer = await _settled(self.routes.answer(request))
        if self.routes.writes != before:
            self.on_write()
        return answer

    def _background(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self, requests: Iterable[asyncio.Task[None]]) -> None:
        """Cancel the requests in flight and what runs on behind closed connections."""
        self._stopping = True
        tasks = [*requests, *self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _settled(reply: Reply) -> HttpAnswer:
    return reply if isinstance(reply, HttpAnswer) else await reply
