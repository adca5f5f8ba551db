"""uvicorn, bent a little: the transport in the scope, a stop that does not wait for anybody."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from msauto.simulator.http.app import App
from msauto.simulator.http.asgi import TRANSPORT


class CuttableProtocol(HttpToolsProtocol):
    """Puts the connection's transport into each scope, so that a fault can truly close the connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection."""
        super().connection_made(transport)
        # asyncio does so only for sockets that name their protocol; without it an answer in two writes takes 40 ms.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        cast("dict[str, object]", self.scope)[TRANSPORT] = self.transport


class Listener(uvicorn.Server):
    """A server that starts and stops at once; it leaves signals to whoever runs it."""

    def __init__(self, app: App, on_start: Callable[[], object]) -> None:
        config = uvicorn.Config(
            app,
            http=CuttableProtocol,
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            date_header=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=600,
        )
        super().__init__(config)
        self._app = app
        self._on_start = on_start
        self._stopping = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take no signals."""
        yield

    async def main_loop(self) -> None:
        """Tell that it answers, and wait for `stop` instead of looking ten times a second."""
        self._on_start()
        await self._stopping.wait()

    def stop(self) -> None:
        """End the main loop; from another thread, through `call_soon_threadsafe`."""
        self._stopping.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close everything now: kept-alive connections and requests in flight do not hold the stop up."""
        for server in self.servers:
            server.close()
        for listening in sockets or []:
            listening.close()
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # lets uvicorn hear of the lost connections: nothing is sent on them any more
        await self._app.stop(self.server_state.tasks)
