"""Canaries: secrets in every place of a playbook that may hold one, and the search for them everywhere else."""

from __future__ import annotations

import base64
import http.server
import json
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.tables import CASES

NASTY = " <&\"'ü%41 x"
"""What is coded one way in a path, another in JSON, XML, HTML and Markdown."""
PLACES = (
    "comment", "derived", "xmp", "xmplist", "segment", "keywords", "marker", "mcomment", "text", "rsstitle", "rssdesc",
    "command", "handler", "thumb", "loop", "extra", "host", "filevar", "literal", "lookup", "once", "unseen",
)  # fmt: skip


def core(place: str) -> str:
    """The part of a canary that no coding of texts changes."""
    return f"kx7{place}Zq4wertz9"


def canary(place: str) -> str:
    return core(place) + NASTY


def traces(place: str) -> Iterator[str]:
    """What would be seen of a canary: its core, as it is, in capitals, backwards, in base 64 wherever it begins."""
    text = core(place)
    yield from (text, text.upper(), text[::-1])
    for whole in (text, text.upper()):
        for before in range(3):
            coded = base64.b64encode(b"x" * before + whole.encode()).decode()
            yield coded[4 : len(coded) - 4]


def leaks(*texts: str | bytes) -> list[str]:
    """The canaries that any of these texts or bytes reveals."""
    whole = [
        text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text for text in texts
    ]
    told = [
        place
        for place in PLACES
        for trace in traces(place)
        if any(trace.encode() in text for text in whole)
    ]
    return sorted(set(told))


def bytes_below(folder: Path) -> dict[str, bytes]:
    """All that is on disk: the ledger with its log beside it, downloads, plan files."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


PLAY = (CASES / "security/canaries.yml").read_text(encoding="utf-8")
SECRETS = 'from_file: {user: ops, token: !secret "{{ env.FILEVAR }}"}\n'


def environment() -> dict[str, str]:
    return {place.upper(): canary(place) for place in PLACES if place not in {"literal", "lookup"}}


def write_play(folder: Path, url: str, server: Mapping[str, Any] | None = None) -> list[str]:
    """Write the playbook and all that it needs; return the arguments that name them."""
    literal = canary("literal").replace("\\", "\\\\").replace('"', '\\"')
    (folder / "play.yml").write_text(PLAY.replace("LITERAL", literal), encoding="utf-8")
    (folder / "secrets.yml").write_text(SECRETS, encoding="utf-8")
    (folder / "lookup.txt").write_text(canary("lookup"), encoding="utf-8")
    (folder / "extra.yml").write_text('extra: !secret "{{ env.EXTRA }}"\n', encoding="utf-8")
    block = json.dumps({"url": url, **(server or {})})
    host = f'{{server: {block}, database: NEWS, host_token: !secret "{{{{ env.HOST }}}}"}}'
    (folder / "inventory.yml").write_text(
        f"all: {{hosts: {{studio-a: {host}}}}}\n", encoding="utf-8"
    )
    return ["-i", "inventory.yml", "-e", "@extra.yml", "--state-dir", "state"]


OURS = frozenset({"play.yml", "lookup.txt", "bad.yml", "out.png"})
"""The files that hold canaries because a test wrote them there; the last is the picture that was asked for."""


class Parrot:
    """A server in front of another that answers each write with an error which repeats all that it was sent."""

    def __init__(self, url: str) -> None:
        parrot = self
        self.heard: list[str] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if "/GETICON" in self.path:
                    return self.repeat()
                with urllib.request.urlopen(url + self.path) as answer:
                    return self.reply(answer.status, answer.read(), answer.headers["Content-Type"])

            def repeat(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                parrot.heard.append(self.path)
                plain = unquote(self.path)
                told = f"Error: I was sent {plain} that is {escape(plain)} or {self.path} or {plain!r} with {body}"
                self.reply(400, told.encode(), "text/plain; charset=utf-8")

            do_POST = do_PUT = do_DELETE = repeat  # noqa: N815 - http.server names them

            def reply(self, status: int, data: bytes, kind: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Keep silent."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Parrot:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def parrot(url: str) -> Iterator[Parrot]:
    with Parrot(url) as server:
        yield server
