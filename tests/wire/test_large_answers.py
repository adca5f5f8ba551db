"""Large answers of one server are read one at a time, and let go: each may take hundreds of MiB."""

from __future__ import annotations

import asyncio
import threading
import time
import traceback

import pytest

from msauto.errors import UnreadableError
from msauto.model.plan import Request
from msauto.model.server import ServerSpec
from msauto.server.client import AsyncMediaServer
from msauto.server.error_answers import RawAnswer
from tests.wire.raw_server import RawServer, answer


class Parser:
    """Notes the most answers that it is given at once."""

    def __init__(self) -> None:
        self.most = 0
        self._inside = 0
        self._lock = threading.Lock()

    def __call__(self, reply: RawAnswer) -> int:
        with self._lock:
            self._inside += 1
            self.most = max(self.most, self._inside)
        time.sleep(0.1)
        with self._lock:
            self._inside -= 1
        return len(reply.data)


def test_large_answers_of_a_server_are_parsed_one_at_a_time() -> None:
    parser = Parser()
    size = 2**18

    async def main() -> list[int]:
        async with (
            RawServer(answer(200, b" " * size)) as server,
            AsyncMediaServer(ServerSpec("raw", server.url)) as client,
        ):
            reads = [client.read(Request("GET", "/rss"), parser) for _ in range(4)]
            return await asyncio.gather(*reads)

    assert asyncio.run(main()) == [size] * 4
    assert parser.most == 1


def test_an_error_does_not_hold_the_answer() -> None:
    async def main() -> UnreadableError:
        async with (
            RawServer(answer(200, b"<Clip><a>")) as server,
            AsyncMediaServer(ServerSpec("raw", server.url)) as raw,
        ):
            with pytest.raises(UnreadableError) as caught:
                await raw.asset("NEWS", "Film")
            return caught.value

    error = asyncio.run(main())
    assert error.__context__ is None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        assert "data" not in frame.f_locals
        assert "reply" not in frame.f_locals
