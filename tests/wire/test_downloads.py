"""A file appears complete, byte for byte, or stays as it was, and nothing is left beside it."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from msauto.errors import DownloadError, InDoubtError, RejectedError, ServerError, UnreadableError
from msauto.model.plan import Request
from msauto.model.server import ServerSpec, Timeouts
from msauto.server import downloads
from msauto.server.client import AsyncMediaServer
from msauto.server.downloads import FetchResult
from tests.wire.raw_server import Exchange, Handler, RawServer, answer, cut, hang, raw
from tests.wire.time_limit import NoWait, run_patiently, silence

GET = Request("GET", "/storage/N@x/WP1")
FILM = bytes(range(256)) * 400
OLD = b"what was there before"


class Notes:
    """An observer that records its calls."""

    def __init__(self) -> None:
        self.begun: list[float] = []
        self.sizes: list[int] = []
        self.totals: set[int | None] = set()
        self.is_half = asyncio.Event()

    def asked(self, seconds: float) -> None:
        self.begun.append(seconds)

    def received(self, size: int, total: int | None) -> None:
        self.sizes.append(size)
        self.totals.add(total)
        if size >= 50_000:
            self.is_half.set()


@pytest.fixture
def dest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(downloads, "_PIECE", 4096)
    file = tmp_path / "film.mp4"
    file.write_bytes(OLD)
    return file


def film(
    content: bytes = FILM, *, status: int = 200, sent: int | None = None, more: str = ""
) -> Handler:
    """Answer with a film; of ``sent`` bytes of it the connection ends."""
    head = f"HTTP/1.1 {status} Some\r\nContent-Type: video/mp4\r\nContent-Length: {len(content)}\r\n{more}\r\n"
    return raw(head.encode() + content[:sent])


def unmeasured(content: bytes) -> Handler:
    """Answer with a film whose end is that of the connection."""
    return raw(b"HTTP/1.0 200 OK\r\nContent-Type: video/mp4\r\n\r\n" + content)


def fetch(
    dest: Path, *behaviors: Handler, watch: Notes | None = None
) -> tuple[FetchResult, RawServer]:
    async def main() -> tuple[FetchResult, RawServer]:
        async with RawServer(*behaviors) as server:
            spec = ServerSpec("raw", server.url, timeouts=Timeouts(5, 5, 5, 5))
            async with AsyncMediaServer(spec, clock=NoWait()) as client:
                return await client.fetch_file(GET, dest, watch or Notes()), server

    return run_patiently(main())


def alone(dest: Path) -> bool:
    return [path.name for path in dest.parent.iterdir()] == [dest.name]


def test_a_whole_file_takes_the_place_of_the_old_one(dest: Path) -> None:
    fetched, server = fetch(dest, film())
    assert dest.read_bytes() == FILM
    assert fetched == FetchResult(len(FILM), hashlib.sha256(FILM).hexdigest())
    assert [exchange.headers["accept-encoding"] for exchange in server.exchanges] == ["identity"]
    assert alone(dest)


@pytest.mark.parametrize("sent", [0, 10, 50_000, len(FILM) - 1])
@pytest.mark.parametrize(
    "between", [(), (cut,), (answer(503, b"busy"),), (raw(b"HTTP/1.1 200 OK\r\n"),)]
)
def test_one_that_breaks_off_is_fetched_again_from_its_start(
    dest: Path, sent: int, between: tuple[Handler, ...]
) -> None:
    _, server = fetch(dest, film(bytes(reversed(FILM)), sent=sent), *between, film())
    assert dest.read_bytes() == FILM
    assert all("range" not in exchange.headers for exchange in server.exchanges)
    assert alone(dest)


def test_silence_in_the_middle_is_an_interruption(dest: Path) -> None:
    async def half_then_silence(exchange: Exchange) -> bool:
        await film(sent=50_000)(exchange)
        return await silence(6)(exchange)

    fetch(dest, half_then_silence, film())
    assert dest.read_bytes() == FILM


@pytest.mark.parametrize(
    ("behavior", "error"),
    [
        (film(sent=50_000), InDoubtError),
        (film(sent=0), InDoubtError),
        (film(b""), UnreadableError),
        (unmeasured(b""), UnreadableError),
        (
            film(FILM[:100], status=206, more="Content-Range: bytes 0-99/102400\r\n"),
            RejectedError,
        ),
        (answer(404, b"Object not found"), RejectedError),
        (answer(200, b"<html><form/></html>", "Content-Type: text/html\r\n"), UnreadableError),
    ],
)
def test_what_is_not_a_whole_file_leaves_the_old_one(
    dest: Path, behavior: Handler, error: type[ServerError]
) -> None:
    with pytest.raises(error):
        fetch(dest, behavior)
    assert dest.read_bytes() == OLD
    assert alone(dest)


def test_an_error_after_an_interruption_leaves_nothing(dest: Path) -> None:
    with pytest.raises(RejectedError):
        fetch(dest, film(sent=50_000), answer(404, b"Object not found"))
    assert dest.read_bytes() == OLD
    assert alone(dest)


def test_a_file_without_a_length_ends_with_the_connection(dest: Path) -> None:
    watch = Notes()
    fetch(dest, unmeasured(FILM), watch=watch)
    assert dest.read_bytes() == FILM
    assert watch.totals == {None}


def test_the_length_of_a_compressed_body_is_not_that_of_the_file(dest: Path) -> None:
    packed = gzip.compress(FILM)
    fetch(dest, film(packed, sent=len(packed) - 200, more="Content-Encoding: gzip\r\n"),
          film(packed, more="Content-Encoding: gzip\r\n"))  # fmt: skip
    assert dest.read_bytes() == FILM


def test_an_observer_is_told_of_each_attempt_and_of_all_bytes(dest: Path) -> None:
    watch = Notes()
    fetch(dest, film(sent=50_000), film(), watch=watch)
    assert watch.begun == [5, 5]
    assert watch.sizes[-1] == len(FILM)
    assert watch.totals == {len(FILM)}


def test_a_cancelled_download_leaves_nothing(dest: Path) -> None:
    watch = Notes()

    async def half_then_nothing(exchange: Exchange) -> bool:
        await film(sent=50_000)(exchange)
        return await hang(exchange)

    async def main() -> None:
        async with (
            RawServer(half_then_nothing) as server,
            AsyncMediaServer(ServerSpec("raw", server.url), clock=NoWait()) as client,
        ):
            task = asyncio.ensure_future(client.fetch_file(GET, dest, watch))
            await asyncio.wait_for(watch.is_half.wait(), 30)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert dest.read_bytes() == OLD
    assert alone(dest)


def test_what_a_killed_run_left_is_removed_after_a_day(dest: Path) -> None:
    left, fresh = (dest.with_name(f".msauto-{'0' * 15}{number}.part") for number in (1, 2))
    precious = dest.with_name("precious")
    for path in (left, fresh, precious):
        path.write_bytes(b"x")
    a_link = dest.with_name(".msauto-link.part")
    a_link.symlink_to(precious)
    for path in (left, a_link):
        os.utime(path, (time.time() - 25 * 3600,) * 2, follow_symlinks=False)
    fetch(dest, film())
    assert {path.name for path in dest.parent.iterdir()} == {dest.name, fresh.name, precious.name}
    assert precious.read_bytes() == b"x"


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_not_a_file_is_not_replaced(tmp_path: Path, make: Callable[[Path], None]) -> None:
    dest = tmp_path / "film.mp4"
    make(dest)
    with pytest.raises(DownloadError, match="is not a file") as caught:
        fetch(dest, film())
    assert caught.value.remedy == "choose another path"
    assert alone(dest)


@pytest.mark.parametrize("name", ["ф" * 120 + ".mp4", "🎬" * 62 + ".mp4", "x" * 251 + ".mp4"])
def test_names_as_long_as_a_name_may_be(tmp_path: Path, name: str) -> None:
    fetch(tmp_path / name, film())
    assert (tmp_path / name).read_bytes() == FILM


def test_a_link_is_replaced_and_not_followed(dest: Path) -> None:
    link = dest.with_name("link.mp4")
    link.symlink_to(dest)
    fetch(link, film())
    assert (link.is_symlink(), link.read_bytes(), dest.read_bytes()) == (False, FILM, OLD)


def fetch_planned(dest: Path, *behaviors: Handler) -> FetchResult:
    async def main() -> FetchResult:
        async with RawServer(*behaviors) as server:
            spec = ServerSpec("raw", server.url, timeouts=Timeouts(5, 5, 5, 5))
            async with AsyncMediaServer(spec, clock=NoWait()) as client:
                return await client.fetch_file(GET, dest, None, planned=dest)

    return run_patiently(main())


def test_a_planned_file_begins_as_its_ending_asks(dest: Path) -> None:
    with pytest.raises(DownloadError, match="does not begin like an MP4 file"):
        fetch_planned(dest, film(b"all:\n  hosts: {}\n" * 10_000))
    assert (dest.read_bytes(), alone(dest)) == (OLD, True)
    media = b"\0\0\0\x18ftypisom" + FILM
    assert fetch_planned(dest, film(media)).size == len(media)


def test_a_folder_that_has_become_a_link_is_not_written_to(dest: Path) -> None:
    elsewhere = dest.parent / "elsewhere"
    elsewhere.mkdir()
    (dest.parent / "out").symlink_to(elsewhere)
    with pytest.raises(DownloadError, match="is now a link"):
        fetch_planned(dest.parent / "out" / "film.mp4", film(b"\0\0\0\x18ftypisom" + FILM))
    assert list(elsewhere.iterdir()) == []
