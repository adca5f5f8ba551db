"""A web server of this machine that records what is sent to it, and answers, fails or hangs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread


@dataclass
class Recorder:
    """``status``: what it answers; 302: a redirect to itself; 0: it hangs until the end of the test."""

    port: int = 0
    status: int = 200
    requests: list[tuple[str, str]] = field(default_factory=list)
    authorization: list[str | None] = field(default_factory=list)
    end: Event = field(default_factory=Event)

    def url(self, path: str = "", scheme: str = "http") -> str:
        return f"{scheme}://127.0.0.1:{self.port}/{path}"

    @property
    def paths(self) -> list[str]:
        return [path.partition("?")[0] for path, _ in self.requests]


@contextmanager
def recording(status: int = 200) -> Iterator[Recorder]:
    recorder = Recorder(status=status)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            recorder.requests.append((self.path, body))
            recorder.authorization.append(self.headers.get("Authorization"))
            if recorder.status == 0:
                recorder.end.wait()
                return
            self.send_response(recorder.status)
            self.send_header("Content-Length", "0")
            if recorder.status == 302:
                self.send_header("Location", recorder.url("elsewhere"))
            self.end_headers()

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: object) -> None:  # a client that gave up
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        recorder.port = server.server_address[1]
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield recorder
        finally:
            recorder.end.set()
            server.shutdown()
            thread.join()
