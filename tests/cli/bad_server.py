"""A media server as raw as a socket: it answers every request with the same bytes, or with none."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class BadServer:
    """Listens on loopback; ``answer`` is what it sends before it closes, ``None``: it keeps silent."""

    def __init__(self, answer: bytes | None) -> None:
        self.answer = answer
        self.requests: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            chunk = connection.recv(65536)
            if not chunk:
                connection.close()
                return
            head += chunk
        self.requests.append(head.split(b"\r\n", 1)[0].decode("latin-1"))
        if self.answer is None:
            self._open.append(connection)
            return
        connection.sendall(self.answer)
        connection.close()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            connection.close()
        self._thread.join(timeout=5)


@contextmanager
def bad_server(answer: bytes | None) -> Iterator[BadServer]:
    server = BadServer(answer)
    try:
        yield server
    finally:
        server.close()


def http(body: bytes, status: str = "200 OK", kind: str = "text/xml", *, length: int | None = None) -> bytes:
    """Return an answer; ``length`` is the declared length, if that is wrong."""
    size = len(body) if length is None else length
    return b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (
        status.encode(), kind.encode(), size, body,
    )  # fmt: skip
