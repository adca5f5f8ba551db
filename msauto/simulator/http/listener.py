"""uvicorn with the transport in the scope, and with an immediate stop."""

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
    """Puts the connection's transport into each scope, so that a fault can close the connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection."""
        super().connection_made(transport)
        # asyncio sets it only for sockets with a protocol number; without it an answer in two writes takes 40 ms.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        cast("dict[str, object]", self.scope)[TRANSPORT] = self.transport


class Listener(uvicorn.Server):
    """A server that starts and stops immediately, and does not handle signals."""

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
        """Handle no signals."""
        yield

    async def main_loop(self) -> None:
        """Report the start, and wait for `stop` instead of polling ten times a second."""
        self._on_start()
        await self._stopping.wait()

    def stop(self) -> None:
        """End the main loop; another thread uses `call_soon_threadsafe`."""
        self._stopping.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close everything now, also idle connections and open requests."""
        for server in self.servers:
            server.close()
        for listening in sockets or []:
            listening.close()
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # uvicorn notices the lost connections and sends nothing on them
        await self._app.stop(self.server_state.tasks)
