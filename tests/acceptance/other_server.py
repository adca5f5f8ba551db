"""A second media server over real HTTP: ``with OtherServer(Habits(...), world) as server: server.url``."""

from __future__ import annotations

import gzip
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, unquote
from xml.sax.saxutils import escape

from tests.acceptance.other_answers import Answer, show_channel, show_clip, show_listing, show_xmp
from tests.acceptance.other_commands import drop_item, run, take_file
from tests.acceptance.other_world import Clip, Habits, Refusal, World, not_found, split_escaped, unescape


class OtherServer:
    """Serves on loopback; ``log`` holds method and raw target of each request."""

    def __init__(self, habits: Habits, world: World) -> None:
        self.habits = habits
        self.world = world
        self.log: list[tuple[str, str]] = []
        self._lock = threading.Lock()
        self._http = _Http(self)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()

    @property
    def writes(self) -> list[str]:
        """Method and target of each write so far."""
        return [f"{method} {target}" for method, target in self.log if method not in {"GET", "HEAD"}]

    @property
    def reads(self) -> list[str]:
        """Target of each read so far."""
        return [target for method, target in self.log if method in {"GET", "HEAD"}]

    def answer(self, method: str, target: str, body: bytes) -> Answer:
        """Do what is asked, one request at a time."""
        with self._lock:
            self.log.append((method, target))
            try:
                if method == "HEAD" and not self.habits.head:
                    raise Refusal(405, "no HEAD")
                return self._route("GET" if method == "HEAD" else method, target, body)
            except Refusal as refusal:
                return self._refuse(refusal)

    def _refuse(self, refusal: Refusal) -> Answer:
        text = str(refusal)
        if self.habits.errors == "html":
            page = f"<html><head><title>{refusal.status}</title></head><body><h1>{escape(text)}</h1><br></body></html>"
            return refusal.status, "text/html", page.encode()
        if self.habits.errors == "xml":
            return 200, "text/xml", f"<?xml version='1.0'?><error>{escape(text)}</error>".encode()
        if self.habits.errors == "text":
            return 200, "text/plain", (text if refusal.status == 404 else f"Error: {text}").encode()
        return refusal.status, "text/plain", text.encode()

    def _route(self, method: str, target: str, body: bytes) -> Answer:
        path, _, query_text = target.partition("?")
        query = parse_qsl(query_text, keep_blank_values=True)
        first, *rest = self._split(path)
        if first == "rss" and rest:
            return self._feed(method, rest, dict(query), body)
        if first != "storage" or not rest:
            raise not_found()
        database, at, title = rest[0].partition("@")
        if database != "NEWS":
            raise not_found(f"no database {database}")
        if at:
            return self._asset(method, self._find(title), rest[1:], query)
        if method != "GET" or dict(query).get("format") == "mam":
            raise Refusal(405, "not here")
        return show_listing(self.habits, self.world, tuple(rest[1:]), dict(query))

    def _split(self, path: str) -> list[str]:
        if self.habits.decode_first:
            return list(split_escaped(unquote(path)))
        return [unescape(unquote(part)) for part in path.strip("/").split("/")]

    def _find(self, title: str) -> Clip:
        found = self.world.find(title)
        if found is None and self.habits.link_lookup:
            linked = (clip for clip in self.world.clips if title in {link["title"] for link in clip["links"]})
            found = next(linked, None)
        if found is None:
            raise not_found()
        return found

    def _asset(self, method: str, clip: Clip, rest: list[str], query: list[tuple[str, str]]) -> Answer:
        habits = self.habits
        if method == "GET" and not rest:
            return show_clip(habits, clip)
        if method == "GET" and rest == ["GETUSERFIELDS"]:
            field = dict(query).get("field")
            if field is None and habits.xmp_ask == "field":
                raise Refusal(400, "which field?")
            return show_xmp(habits, clip, field)
        if method == "DELETE" and not rest:
            self.world.clips.remove(clip)
            return habits.delete_answer, "text/plain", b"" if habits.delete_answer == 204 else b"Object not found"
        if method != "POST" or rest or not query or query[0][0] != "command":
            raise Refusal(400, "what?")
        run(habits, self.world, clip, query[0][1], query[1:])
        return 200, "text/html", habits.bodies.encode()

    def _feed(self, method: str, rest: list[str], query: dict[str, str], body: bytes) -> Answer:
        items = self.world.rss.get(rest[0])
        if items is None:
            raise not_found()
        if method == "GET":
            return show_channel(self.habits, rest[0], items)
        if method == "PUT" and len(rest) == 2:
            take_file(self.habits, items, rest[1], body)
        elif method == "DELETE" and "guid" in query:
            drop_item(self.habits, items, query["guid"])
        else:
            raise Refusal(400, "what?")
        return 200, "text/plain", b""


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, owner: OtherServer) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Http
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.wire = self.server.owner.habits.wire
        self.protocol_version = "HTTP/1.0" if self.wire == "http10" else "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Log nothing."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, kind, data = self.server.owner.answer(self.command, self.path, body)
        self.send_response(status)
        if data and self.wire != "untyped":
            self.send_header("Content-Type", "text/html" if self.wire == "html_typed" else kind)
        if self.wire == "gzip" and data:
            data = gzip.compress(data)
            self.send_header("Content-Encoding", "gzip")
        if self.wire in {"closed", "rude"}:
            self.close_connection = True
        if self.wire == "closed":
            self.send_header("Connection", "close")
        self._send(status, data)

    def _send(self, status: int, data: bytes) -> None:
        if self.wire == "chunked" and status != 204:
            self.send_header("Transfer-Encoding", "chunked")
            parts = [data[start : start + 37] for start in range(0, len(data), 37)]
            data = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
        elif self.wire != "http10" and status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
        if self.wire == "rude":
            time.sleep(0.003)  # the next request is under way when the connection ends

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - the base class looks for these names
