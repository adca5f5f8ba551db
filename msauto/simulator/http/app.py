"""The ASGI application: log, authentication, faults, and the work."""

from __future__ import annotations

import asyncio
import base64
import hmac
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from msauto.simulator.dialect import SimDialect
from msauto.simulator.faults import Fault, FaultedRequest, Faults
from msauto.simulator.http.answers import HttpAnswer, text_answer
from msauto.simulator.http.asgi import HttpExchange, Receive, Scope, Send
from msauto.simulator.http.log import RequestLog
from msauto.simulator.http.wire import HttpRequest
from msauto.simulator.resources.routes import Reply, Routes


@dataclass(slots=True)
class App:
    """One simulated server as an ASGI application."""

    routes: Routes
    faults: Faults
    log: RequestLog
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
        entry = self.log.open(request.method, request.target)
        entry.body = request.body
        taken = self.faults.take(entry.line)
        entry.fault = " ".join(each.kind for each in taken)
        hooks = [each for each in taken if each.change]
        self._change(hooks, "before")
        exchange.on_answer = partial(self._change, hooks, "after")
        fault = next((each for each in taken if not each.change), None)
        if fault is not None:
            work, pretend = partial(self._work, request), partial(self._pretend, request)
            await FaultedRequest(fault, exchange, entry, work, pretend, self._run_in_background).apply()
            self.log.write(entry)
            return
        answer = await self._work(request)
        if hooks:
            answer.whole_body()
        entry.status, entry.done = answer.status, answer.done
        self.log.write(entry)
        await exchange.send_answer(answer)

    async def _work(self, request: HttpRequest) -> HttpAnswer:
        before = self.routes.writes
        answer = unauthorized(request, self.routes.dialect) or await _finished(self.routes.answer(request))
        if self.routes.writes != before:
            self.on_write()
        return answer

    def _change(self, hooks: list[Fault], when: str) -> None:
        for hook in hooks:
            if hook.change and hook.kind.startswith(when):
                hook.change(self.routes.state)
                self.on_write()

    async def _pretend(self, request: HttpRequest) -> HttpAnswer:
        return unauthorized(request, self.routes.dialect) or await _finished(self.routes.pretend(request))

    def _run_in_background(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self, requests: Iterable[asyncio.Task[None]]) -> None:
        """Cancel the open requests and the background work."""
        self._stopping = True
        tasks = [*requests, *self._tasks]
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
