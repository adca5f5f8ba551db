"""A listing is parsed while it arrives: other tasks run, a break is retried, an error document instead is reported."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

import httpx2
import pytest

from msauto.errors import InDoubtError, NotFoundError, RejectedError, ServerError, UnreadableError
from msauto.model import requests
from msauto.model.live import Listing
from msauto.server.client import AsyncMediaServer
from msauto.server.error_answers import RawAnswer
from tests.unit.server.noon import Noon

HEAD = b"<StoredTree><Folder name=''>"
TAIL = b"</Folder></StoredTree>"
CLIPS = b"<Clip><Attr name='title'>T</Attr></Clip>" * 10_000

Body = Callable[[], AsyncIterator[bytes]]


class Stream(httpx2.AsyncByteStream):
    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self.chunks = chunks

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self.chunks


class Server(httpx2.AsyncBaseTransport):
    """Answers each request with the next of these bodies, the last again and again."""

    def __init__(self, *bodies: Body, status: int = 200, content_type: str = "text/xml") -> None:
        self.bodies = list(bodies)
        self.status = status
        self.content_type = content_type
        self.asked = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        del request
        self.asked += 1
        body = self.bodies.pop(0) if len(self.bodies) > 1 else self.bodies[0]
        return httpx2.Response(
            self.status, headers={"content-type": self.content_type}, stream=Stream(body())
        )


def body(*chunks: bytes, broken: bool = False) -> Body:
    async def send() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk
        if broken:
            raise InDoubtError("the connection broke")

    return send


async def listed(server: Server, *, gives_up: bool = False) -> Listing:
    async with AsyncMediaServer(
        "http://studio-a:7901", transport=server, clock=Noon(), gives_up=gives_up
    ) as client:
        return await client.list("NEWS")


def test_what_is_one_chunk_for_the_network_is_many_turns_for_others() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def main() -> Listing:
        watching = asyncio.ensure_future(other())
        try:
            return await listed(Server(body(HEAD + CLIPS * 5 + TAIL)))  # as gzip hands it on
        finally:
            watching.cancel()

    assert len(asyncio.run(main()).entries) == 50_000
    assert turns > len(CLIPS * 5) / 2**16


@pytest.mark.parametrize("before", [b"", HEAD, HEAD + CLIPS])
def test_one_that_breaks_off_is_asked_for_again_and_nothing_of_it_is_kept(before: bytes) -> None:
    server = Server(body(before, broken=True), body(HEAD, CLIPS, TAIL))
    assert len(asyncio.run(listed(server)).entries) == 10_000
    assert server.asked == 2


@pytest.mark.parametrize("gives_up", [False, True])
@pytest.mark.parametrize(
    ("server", "error", "message"),
    [
        (Server(body(b"Object not ", b"found")), NotFoundError, "Object not found"),
        (Server(body(b"<error>", b"Object not found</error>")), NotFoundError, "Object not found"),
        (Server(body(b"<error>disk on fire</error>")), RejectedError, "disk on fire"),
        (Server(body(b"Error: ", b"x" * 3_000_000)), RejectedError, "Error: xxx"),
        (Server(body(b"nothing here"), status=404), NotFoundError, "404"),
        (
            Server(body(b"<html><title>Lo", b"gin</title>")),
            UnreadableError,
            "HTML page titled 'Login'",
        ),
        (Server(body(HEAD, CLIPS)), UnreadableError, "incomplete"),
        (Server(body(HEAD, CLIPS, b"<a></b>", TAIL)), UnreadableError, "incomplete or not XML"),
        (Server(body(b"<mam/>")), UnreadableError, "no <StoredTree>"),
        (Server(body(*[b" " * 2**20] * 513)), UnreadableError, "larger than 512 MiB"),
    ],
    ids=["text", "xml", "error", "long", "404", "html", "cut", "broken", "other", "endless"],
)
def test_what_is_no_listing_is_told(
    server: Server, error: type[ServerError], message: str, gives_up: bool
) -> None:
    with pytest.raises(error, match=message) as raised:
        asyncio.run(listed(server, gives_up=gives_up))
    assert raised.value.server == "studio-a"
    assert raised.value.request == "GET /storage/NEWS"


def test_the_charset_of_http_counts() -> None:
    data = HEAD + "<Clip><Attr name='title'>Новости</Attr></Clip>".encode("koi8-r") + TAIL
    listing = asyncio.run(listed(Server(body(data), content_type="text/xml; charset=koi8-r")))
    assert listing.entries[0].title == "Новости"


def test_a_server_that_was_given_up_is_not_asked_for_a_listing() -> None:
    server = Server(body(b"who are you?"), status=401)

    async def main() -> None:
        async with AsyncMediaServer(
            "http://studio-a:7901", gives_up=True, transport=server, clock=Noon()
        ) as client:
            for _ in range(3):
                with pytest.raises(RejectedError, match="401"):
                    await client.list("NEWS")

    asyncio.run(main())
    assert server.asked == 1


def test_other_tasks_run_while_a_large_answer_is_parsed() -> None:
    async def run() -> bool:
        loop = asyncio.get_running_loop()
        others_ran = threading.Event()

        def parse(_: RawAnswer) -> bool:
            loop.call_soon_threadsafe(others_ran.set)
            return others_ran.wait(10)

        server = Server(body(b"x" * 2**18))
        async with AsyncMediaServer(
            "http://studio-a:7901", transport=server, clock=Noon()
        ) as client:
            return await client.read(requests.get_channels(), parse)

    assert asyncio.run(run())
