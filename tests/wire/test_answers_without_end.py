"""Answers that never end, come a byte at a time, or are bombs: bounded memory, bounded time, and a clear error."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from msauto.errors import InDoubtError, RejectedError, ServerError, UnreadableError
from msauto.model.plan import Request
from msauto.model.server import ServerSpec, Timeouts
from msauto.server.client import AsyncMediaServer
from msauto.server.http_client import ANSWER_BYTES
from msauto.server.transport import TooSlowError
from tests.tables import table
from tests.wire.raw_server import Exchange, Handler, RawServer, answer
from tests.wire.time_limit import NoWait

pytestmark = pytest.mark.scale

MIB = 2**20
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def endless(head: bytes, piece: bytes, *, pause: float | None = None) -> Handler:
    """The head, then the same piece for ever, or until the client stops reading."""

    async def handler(exchange: Exchange) -> bool:
        exchange.writer.write(head)
        while not exchange.writer.transport.is_closing():
            exchange.writer.write(piece)
            await exchange.writer.drain()
            await asyncio.sleep(pause or 0)
        return False

    return handler


def bomb(size: int) -> bytes:
    """Zeros, packed a thousandfold, with gzip's head."""
    packer, zeros = zlib.compressobj(9, wbits=31), bytes(MIB)
    return b"".join(packer.compress(zeros) for _ in range(size // MIB)) + packer.flush()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


# Memory --------------------------------------------------------------------------------------------------------

CHILD = """
import asyncio, resource, sys
from pathlib import Path
from msauto.errors import MsautoError
from msauto.model.plan import Request
from msauto.model.server import ServerSpec, Timeouts
from msauto.server.client import AsyncMediaServer

async def main(url, how):
    async with AsyncMediaServer(ServerSpec("raw", url, timeouts=Timeouts(5, 5, 60, 5))) as client:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            if how == "asset":
                await client.asset("N", "x")
            elif how == "listing":
                await client.list("N")
            elif how == "write":
                await client.send(Request("POST", "/storage/N@x?command=RESTORE"))
            else:
                await client.download(Request("GET", "/storage/N@x/WP1"), Path("film.mp4"))
        except MsautoError as error:
            print(type(error).__name__, str(error).replace("\\n", " "))
        else:
            print("fine")
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)

asyncio.run(main(*sys.argv[1:]))
"""


def measure(folder: Path, how: str, handler: Handler) -> tuple[str, float, int]:
    """Return the output of a separate process, its largest growth of memory in MiB, and the number of its requests."""

    async def main() -> tuple[bytes, int]:
        async with RawServer(handler) as server:
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-c", CHILD, server.url, how, stdout=subprocess.PIPE, cwd=folder
            )
            out, _ = await child.communicate()
            return out, len(server.exchanges)

    out, asked = asyncio.run(main())
    told, grown = out.decode().splitlines()
    return told, int(grown) / 1024, asked


WHOLE = 64  # MiB: what an answer may have
MARGIN = 24.0  # MiB: buffers on the way, and what an interpreter allocates beside


@pytest.mark.parametrize(
    ("how", "handler", "says", "most"),
    [
        (
            "asset",
            lambda: answer(200, bomb(256 * MIB), "Content-Encoding: gzip\r\n"),
            "larger than 64 MiB",
            WHOLE,
        ),
        ("asset", lambda: endless(CHUNKED, chunk(b"x" * 60_000)), "larger than 64 MiB", WHOLE),
        ("asset", lambda: answer(200, b"x" * (65 * MIB)), "larger than 64 MiB", 0),
        (
            "asset",
            lambda: endless(OK + b"Content-Length: 999999999999999999999\r\n\r\n", b"x"),
            "not valid HTTP",
            0,
        ),
        ("write", lambda: endless(CHUNKED, chunk(b"x" * 60_000)), "InDoubtError", WHOLE),
        (
            "asset",
            lambda: endless(CHUNKED.replace(b"200 OK", b"404 No"), chunk(b"x" * 60_000)),
            "NotFoundError",
            3,
        ),
        (
            "write",
            lambda: endless(CHUNKED.replace(b"200 OK", b"500 No"), chunk(b"x" * 60_000)),
            "RejectedError",
            3,
        ),
        ("file", lambda: endless(CHUNKED, chunk(b"x" * 60_000)), "larger than 1 MiB", 3),
        (
            "asset",
            lambda: endless(b"HTTP/1.1 200 OK\r\n", b"X-A: " + b"b" * 5000 + b"\r\n"),
            "not valid HTTP",
            3,
        ),
        ("asset", lambda: endless(b"HTTP/1.1 200 OK\r\nX-A: ", b"b" * 9000), "not valid HTTP", 3),
        ("asset", lambda: endless(b"HTTP/1.1 200 ", b"b" * 9000), "not valid HTTP", 3),
        (
            "asset",
            lambda: endless(CHUNKED + b"5\r\nhello\r\n0\r\n", b"X-A: b\r\n" * 900),
            "InDoubtError",
            3,
        ),
    ],
)
def test_memory_stays_within_the_cap(
    tmp_path: Path, how: str, handler: Callable[[], Handler], says: str, most: float
) -> None:
    told, grown, _ = measure(tmp_path, how, handler())
    assert says in told
    assert "server raw" in told, "it names the server"
    assert "/storage/N@x" in told, "and the request"
    assert grown < most + MARGIN, told


def test_a_packed_film_is_unpacked_piece_by_piece(tmp_path: Path) -> None:
    """The file was not requested in compressed form; it is written decompressed."""
    packed = answer(200, bomb(256 * MIB), "Content-Encoding: gzip\r\nContent-Type: video/mp4\r\n")
    told, grown, _ = measure(tmp_path, "file", packed)
    assert told == "fine"
    assert (tmp_path / "film.mp4").stat().st_size == 256 * MIB
    assert grown < MARGIN


LISTED = b"<StoredTree><Folder name='A'>"
ENDLESS = {
    "blanks": (b"", b" "),
    "a comment": (LISTED + b"<!--", b"x"),
    "blanks inside": (LISTED, b" "),
    "clips": (LISTED, b"<Clip/>"),
    "unknown": (LISTED, b"<Thing/>"),
    "blanks behind": (LISTED + b"</Folder></StoredTree>", b"\n"),
}


@pytest.mark.parametrize("kind", list(ENDLESS))
@pytest.mark.parametrize("packed", [False, True])
def test_a_listing_without_end_is_given_up_by_its_bytes(
    kind: str, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes count as they are unpacked; it is not asked for again."""
    monkeypatch.setattr("msauto.server.xml.MAX_BYTES", 2 * MIB)
    head, unit = ENDLESS[kind]
    piece = unit * (60_000 // len(unit))
    handler = endless(CHUNKED + chunk(head) if head else CHUNKED, chunk(piece))
    if packed:
        whole = zlib.compressobj(9, wbits=31)
        data = whole.compress(head + piece * 80) + whole.flush()
        handler = answer(200, data, "Content-Type: text/xml\r\nContent-Encoding: gzip\r\n")
    error, asked = ask(handler, listing, seconds=20)
    assert isinstance(error, UnreadableError)
    assert "the answer is larger than" in str(error)
    assert asked == 1


@table("server/endless_listings", "kind", "says", "most")
def test_a_listing_without_end_stays_within_its_cap(
    tmp_path: Path, kind: str, says: str, most: float
) -> None:
    """With the true cap, in a process of its own."""
    head, unit = ENDLESS[kind]
    piece = chunk(unit * (60_000 // len(unit)))
    told, grown, asked = measure(tmp_path, "listing", endless(CHUNKED + chunk(head or b" "), piece))
    assert says in told
    assert asked == 1
    assert grown < most + MARGIN, told


# Time ----------------------------------------------------------------------------------------------------------

Work = Callable[[AsyncMediaServer], Awaitable[object]]
SECONDS = 2.0  # between bytes, which come a hundred times as often


def ask(handler: Handler, work: Work, *, seconds: float = SECONDS) -> tuple[ServerError, int]:
    async def main() -> tuple[ServerError, int]:
        async with RawServer(handler) as server:
            spec = ServerSpec(
                "raw", server.url, timeouts=Timeouts(seconds, seconds, seconds, seconds)
            )
            async with AsyncMediaServer(spec, clock=NoWait()) as client:
                with pytest.raises(ServerError) as caught:
                    await work(client)
                return caught.value, len(server.exchanges)

    return asyncio.run(main())


def post(client: AsyncMediaServer) -> Awaitable[object]:
    return client.send(Request("POST", "/storage/N@x?command=RESTORE"))


def asset(client: AsyncMediaServer) -> Awaitable[object]:
    return client.asset("N", "x")


def listing(client: AsyncMediaServer) -> Awaitable[object]:
    return client.list("N")


TRICKLES = [
    endless(CHUNKED, chunk(b" "), pause=SECONDS / 100),
    endless(OK + b"Content-Length: 1000000\r\n\r\n", b" ", pause=SECONDS / 100),
    endless(b"HTTP/1.1 200 OK\r\nX-A: ", b"b", pause=SECONDS / 100),
    endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n", pause=SECONDS / 100),
    endless(CHUNKED + b"5;x=", b"b", pause=SECONDS / 100),
]


@pytest.mark.parametrize("work", [asset, listing, post])
@pytest.mark.parametrize("trickle", TRICKLES)
def test_a_byte_at_a_time_is_given_up_and_not_asked_for_again(
    trickle: Handler, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "msauto.server.http_client._WHOLE", 0.1
    )  # in place of ten: nobody waits for that long
    error, asked = ask(trickle, work)
    assert isinstance(error, TooSlowError)
    assert "the answer was incomplete after 0.2 s" in str(error)
    assert "timeouts" in error.remedy
    assert asked == 1


@pytest.mark.parametrize("trickle", TRICKLES)
def test_a_film_a_byte_at_a_time(tmp_path: Path, trickle: Handler) -> None:
    request = Request("GET", "/storage/N@x/WP1")
    error, asked = ask(trickle, lambda client: client.download(request, tmp_path / "film.mp4"))
    assert isinstance(error, (TooSlowError, UnreadableError))
    assert asked == 1
    assert not list(tmp_path.iterdir())


def test_a_film_that_moves_may_take_as_long_as_it_likes(tmp_path: Path) -> None:
    """Ten times the time-out, but 64 KiB within each."""
    piece = b"x" * 70_000

    async def film(exchange: Exchange) -> bool:
        exchange.writer.write(CHUNKED.replace(b"text/xml", b"video/mp4"))
        for _ in range(10):
            exchange.writer.write(chunk(piece))
            await exchange.writer.drain()
            await asyncio.sleep(0.2)
        exchange.writer.write(b"0\r\n\r\n")
        return True

    async def main() -> int:
        async with RawServer(film) as server:
            spec = ServerSpec("raw", server.url, timeouts=Timeouts(1, 1, 1, 1))
            async with AsyncMediaServer(spec, clock=NoWait()) as client:
                return await client.download(
                    Request("GET", "/storage/N@x/WP1"), tmp_path / "film.mp4"
                )

    assert asyncio.run(main()) == 10 * len(piece)


def test_a_long_error_is_told_by_its_beginning() -> None:
    error, _ = ask(answer(500, b"Error: the disk is full" + b"!" * 2 * MIB), post, seconds=5)
    assert isinstance(error, RejectedError)
    assert "the disk is full" in str(error)


def test_an_answer_as_large_as_it_may_be_is_read() -> None:
    async def main() -> int:
        whole = answer(200, b" " * ANSWER_BYTES)
        async with (
            RawServer(whole) as server,
            AsyncMediaServer(ServerSpec("raw", server.url)) as client,
        ):
            return await client.read(Request("GET", "/rss"), lambda reply: len(reply.data))

    assert asyncio.run(main()) == ANSWER_BYTES


def test_a_write_whose_answer_is_too_large_has_an_unknown_fate() -> None:
    error, asked = ask(endless(CHUNKED, chunk(b"x" * MIB)), post, seconds=5)
    assert isinstance(error, InDoubtError)
    assert asked == 1
