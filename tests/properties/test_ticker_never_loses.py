"""`exactly` removes nothing from a channel in which a wanted item cannot be recognised (field notes)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from msauto.simulator import Simulator, empty_house
from tests.stage import Stage

TASK: dict[str, Any] = {
    "name": "The ticker",
    "rss": {"channel": "ticker", "items": [{"guid": "n-1", "text": "Storm warning"}], "exactly": True},
}


class HashedGuids(BaseHTTPRequestHandler):
    """A channel whose guids are hashes of the file's name: nobody can recognise an item by its guid."""

    files: ClassVar[dict[str, str]] = {}
    writes: ClassVar[list[str]] = []

    def log_message(self, *args: Any) -> None:
        del args

    def answer(self, text: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        items = "".join(
            f"<item><guid>{hashlib.sha1(name.encode()).hexdigest()}</guid><title>{text}</title></item>"
            for name, text in self.files.items()
        )
        self.answer(f"<rss><channel><title>ticker</title>{items}</channel></rss>")

    def do_PUT(self) -> None:
        name = unquote(urlsplit(self.path).path.rpartition("/")[2])
        self.writes.append(f"PUT {name}")
        self.files[name] = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.answer("")

    def do_DELETE(self) -> None:
        guid = parse_qs(urlsplit(self.path).query)["guid"][0]
        self.writes.append(f"DELETE {guid}")
        for name in [name for name in self.files if hashlib.sha1(name.encode()).hexdigest() == guid]:
            del self.files[name]
        self.answer("")


class Other:
    """Stands where the stage has its simulator."""

    def __init__(self, url: str) -> None:
        self.url = url


@pytest.fixture
def other() -> Iterator[Any]:
    HashedGuids.files, HashedGuids.writes = {}, []
    with ThreadingHTTPServer(("127.0.0.1", 0), HashedGuids) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield Other(f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
        thread.join()


def test_an_item_that_cannot_be_recognised_is_not_removed_as_a_stranger(other: Any, tmp_path: Path) -> None:
    HashedGuids.files = {"n-1.txt": "Sunny", "n-0.txt": "Old"}
    stage = Stage(other, tmp_path)
    result = stage.apply(TASK)
    assert HashedGuids.files["n-1.txt"] == "Storm warning"
    assert HashedGuids.writes == ["PUT n-1.txt"], "what may be ours was deleted"
    (target,) = result.targets
    assert target.outcome == "failed"
    assert "n-1" in target.message


def test_an_item_that_is_recognised_lets_the_others_go(tmp_path: Path) -> None:
    house = empty_house()
    house.add_channel("ticker")
    with Simulator(house=house) as sim:
        stage = Stage(sim, tmp_path)
        assert stage.apply({**TASK, "rss": {**TASK["rss"], "items": [{"guid": "n-0", "text": "Old"}]}}).ok
        sim.clear_log()
        assert stage.apply(TASK).ok
        assert [entry.method for entry in stage.sent()] == ["PUT", "DELETE"]
        assert stage.plan(TASK).requests == 0
