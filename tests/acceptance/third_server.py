"""The third media server on the wire: threads and ``http.server``, which is as plain as a server can be."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, unquote
from xml.sax.saxutils import escape, quoteattr

from tests.acceptance.third_world import Entry, Folder, MissingError, NoError, Ways, World

_CREATED = "2026-11-18T10:11:12"


class ThirdServer(ThreadingHTTPServer):
    """Serves one world; ``writes`` are the requests other than GET and HEAD."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, ways: Ways, build: Callable[[World], None]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.ways = ways
        self.world = World(ways)
        build(self.world)
        self.writes: list[str] = []
        self.lock = threading.RLock()
        self._before, self._until = self.world, 0.0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def shown(self) -> World:
        """What readers see: for a while, what was there before the last writes."""
        return self._before if time.monotonic() < self._until else self.world

    def change(self, do: Callable[[World], None]) -> None:
        if self.ways.late and time.monotonic() >= self._until:
            self._before = copy.deepcopy(self.world)
        self._until = time.monotonic() + self.ways.late
        do(self.world)

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: ThirdServer
    timeout = 20

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that http.server gives it
        pass

    def do_GET(self) -> None:
        path, query = self._target()
        self._answer(lambda: _read(self.server, path, query))

    def do_POST(self) -> None:
        path, query = self._target()
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.writes.append(f"{self.command} {self.path}")
        self._answer(lambda: _write(self.server, self.command, path, query, body))

    do_PUT = do_DELETE = do_POST  # noqa: N815 - the names that http.server asks for

    def _target(self) -> tuple[list[str], dict[str, str]]:
        path, _, query = self.path.partition("?")
        return path.split("/")[1:], dict(parse_qsl(query, keep_blank_values=True))

    def _answer(self, work: Callable[[], tuple[int, str]]) -> None:
        with self.server.lock:
            try:
                status, text = work()
            except MissingError:
                status, text = self.server.ways.missing
            except NoError as error:
                status, text = 409, f"ERROR: {error}"
        body = text.encode("utf-8")
        # Any answer ends the connection: http.server speaks HTTP/1.0, whatever the status line says.
        self.protocol_version = "HTTP/1.1" if self.server.ways.close == "silent" else "HTTP/1.0"
        self.send_response_only(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _name(text: str) -> str:
    return unquote(text).replace("\\/", "/").replace("\\\\", "\\")


def _read(server: ThirdServer, path: Sequence[str], query: dict[str, str]) -> tuple[int, str]:
    world, writer = server.shown, _Writer(server.ways)
    if path[0] == "rss":
        if len(path) > 1 and path[1] != "ticker":
            raise MissingError("no such channel")
        return 200, writer.channel(world.items) if len(path) > 1 else writer.channels()
    database, _, title = path[1].partition("@")
    if database != "NEWS":
        raise MissingError("no such database")
    if title:
        entry = world.find(_name(title))
        return 200, writer.xmp(entry, query.get("field")) if path[2:] else writer.clip(entry)
    folder = tuple(_name(each) for each in path[2:] if each)
    if folder not in world.folders:
        raise MissingError("no such folder")
    listed = [] if query.get("format") == "folderlist" else world.entries
    return 200, writer.tree(folder, world.folders, listed)


def _write(
    server: ThirdServer, method: str, path: Sequence[str], query: dict[str, str], body: bytes
) -> tuple[int, str]:
    if path[0] == "rss":
        file = _name(path[-1])
        server.change(lambda world: world.put_item(file, body) if method == "PUT" else world.delete_item(query["guid"]))
    elif "@" in path[1]:
        title = _name(path[1].partition("@")[2])
        server.change(lambda world: world.delete(title) if method == "DELETE" else world.run(title, query))
    return server.ways.accepted


class _Writer:
    def __init__(self, ways: Ways) -> None:
        self._ways = ways

    def clip(self, entry: Entry) -> str:
        clip = entry.clip
        inside = self._attributes(entry)
        for uid, marker in clip.markers.items():
            fields = "".join(_attr(name, value) for name, value in marker.items() if name != "pos")
            inside += f'<Marker pos="{marker["pos"]}" uid="{uid}">{fields}</Marker>'
        for number, start, duration, title in clip.segments:
            inside += f'<Segment duration="{duration}" start_frame="{start}" seg_num="{number}">'
            inside += f"<title>{escape(title)}</title></Segment>"
        return (
            f'<Clip finalized="true" link_id="{entry.link_id}" archive={quoteattr(clip.archive)}'
            f" hires={quoteattr(clip.hires)} folder={quoteattr('/'.join(entry.folder))}>{inside}</Clip>"
        )

    def _attributes(self, entry: Entry) -> str:
        told = {"frame_time": "0.0400000000", "frames": str(entry.clip.frames), "create_time": _CREATED}
        told |= {name: value for name, value in entry.fields.items() if name != "clip_name"}
        return "".join(_attr(name, value) for name, value in (told | {"title": entry.fields["clip_name"]}).items())

    def tree(self, folder: Folder, folders: Iterable[Folder], entries: Iterable[Entry]) -> str:
        """One level, with the folder's own name nowhere but in the root."""
        clips = "".join(
            f'<Clip link_id="{each.link_id}" finalized="true">{self._attributes(each)}</Clip>'
            for each in entries
            if each.folder == folder
        )
        below = sorted(each for each in folders if each and each[:-1] == folder)
        named = "".join(f"<Folder name={quoteattr(each[-1])}/>" for each in below)
        return f"<StoredTree query_root={quoteattr('/'.join(('NEWS', *folder)))}>{named}{clips}</StoredTree>"

    def xmp(self, entry: Entry, name: str | None) -> str:
        fields = {key: values for key, values in entry.clip.xmp.items() if name in {None, key}}
        shown = ""
        for key, values in fields.items():
            each = "".join(f"<v>{escape(value)}</v>" for value in values)
            told = each if self._ways.xmp_values else escape(self._ways.separator.join(values))
            shown += f"<Attr name={quoteattr(key)}>{told}</Attr>"
        return f"<UserFields>{shown}</UserFields>"

    def channels(self) -> str:
        return {
            "names": '<list><channel name="ticker"/></list>',
            "text": "ticker\r\n",
            "html": '<html><body><a href="/rss/ticker">ticker</a></body></html>',
        }[self._ways.channels]

    def channel(self, items: Iterable[dict[str, str]]) -> str:
        if self._ways.rss == "atom":
            names = {"guid": "id", "title": "title", "description": "summary"}
            body = "".join(f"<entry>{_elements(item, names)}</entry>" for item in items)
            return f'<feed xmlns="http://www.w3.org/2005/Atom"><title>ticker</title>{body}</feed>'
        names = {name: name for name in ("title", "description", "link", "pubDate", "guid")}
        body = "".join(f"<item>{_elements(item, names)}</item>" for item in items)
        if self._ways.rss == "rdf":
            space = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"'
            return f"<rdf:RDF {space}><channel><title>ticker</title></channel>{body}</rdf:RDF>"
        return f'<rss version="2.0"><channel><title>ticker</title>{body}</channel></rss>'


def _attr(name: str, value: str) -> str:
    return f"<Attr name={quoteattr(name)}>{escape(value)}</Attr>"


def _elements(item: dict[str, str], names: dict[str, str]) -> str:
    return "".join(f"<{shown}>{escape(item[name])}</{shown}>" for name, shown in names.items() if item.get(name))
