"""A download that breaks off goes on where it stopped; whatever the server says, two files are never glued."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from msauto.errors import DownloadError, FateUnknownError, RejectedError, ServerError, UnreadableError
from msauto.model.plan import Request
from msauto.model.ports import Part
from msauto.model.spec import ServerSpec, Timeouts
from msauto.server import fetching
from msauto.server.client import AsyncMediaServer
from msauto.server.download import open_part, part_name
from msauto.server.fetching import Fetched
from tests.wire.film_server import DATE, FILM, OLDER, OTHER, Film, Notes
from tests.wire.patience import NoWait
from tests.wire.raw_server import Exchange, Handler, RawServer, answer, cut, hang, raw

GET = Request("GET", "/storage/N@x/WP1")
CUT = 50_000
HALF = Film(cut=CUT)
WHOLE = Film()
OLD = b"what was there before"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes for a film of 100 KB."""
    monkeypatch.setattr(fetching, "WORTH", 1000)
    monkeypatch.setattr(fetching, "CHECKPOINT", 20_000)
    monkeypatch.setattr(fetching, "_PIECE", 4096)
    monkeypatch.setattr(fetching, "_PROGRESS", 10_000)


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    file = tmp_path / "film.mp4"
    file.write_bytes(OLD)
    return file


def fetch(
    dest: Path, *behaviours: Handler, watch: Notes | None = None, seconds: float = 5.0
) -> tuple[Fetched, RawServer]:
    looked = watch or Notes(keeps=False)
    told = [each.but(watch=looked) if isinstance(each, Film) else each for each in behaviours]

    async def main() -> tuple[Fetched, RawServer]:
        async with RawServer(*told) as server:
            spec = ServerSpec("raw", server.url, timeouts=Timeouts(seconds, seconds, seconds, seconds))
            async with AsyncMediaServer(spec, clock=NoWait()) as client:
                return await client.fetch(GET, dest, looked), server

    return asyncio.run(main())


def ranges(server: RawServer) -> list[str | None]:
    return [exchange.headers.get("range") for exchange in server.exchanges]


def alone(dest: Path) -> bool:
    return [path.name for path in dest.parent.iterdir()] == [dest.name]


def left_of(size: int = CUT, *, content: bytes = FILM, tag: str = '"one"', total: int | None = len(FILM)) -> Part:
    digest = hashlib.sha256(content[:size]).hexdigest()
    return Part(part_name("film.mp4"), GET.path, size, digest, tag, total)


def put(dest: Path, part: Part, content: bytes = FILM) -> Path:
    path = dest.with_name(part.name)
    path.write_bytes(content[: part.size])
    return path


# In one run ----------------------------------------------------------------------------------------------------


def test_it_goes_on_where_it_broke_off(dest: Path) -> None:
    fetched, server = fetch(dest, HALF, WHOLE)
    assert dest.read_bytes() == FILM
    assert fetched == Fetched(len(FILM), hashlib.sha256(FILM).hexdigest())
    assert ranges(server) == [None, f"bytes={CUT}-"]
    assert server.exchanges[1].headers["if-range"] == '"one"'
    assert {exchange.headers["accept-encoding"] for exchange in server.exchanges} == {"identity"}
    assert alone(dest)


def test_it_goes_on_by_a_date_that_is_old_enough(dest: Path) -> None:
    film = Film(tag="", modified=OLDER)
    assert ranges(fetch(dest, film.but(cut=CUT), film)[1]) == [None, f"bytes={CUT}-"]
    assert dest.read_bytes() == FILM


@pytest.mark.parametrize(
    "film",
    [
        Film(tag=""),
        Film(tag='W/"one"'),
        Film(tag="one"),
        Film(tag='"on\x7fe"'),
        Film(tag="", modified=DATE),
        Film(tag="", modified="yesterday"),
        Film(tag="", modified=OLDER.replace("2026", "9" * 30)),
    ],
)
def test_without_a_word_for_the_content_it_begins_again(dest: Path, film: Film) -> None:
    assert ranges(fetch(dest, film.but(cut=CUT), film)[1]) == [None, None]
    assert dest.read_bytes() == FILM


@pytest.mark.parametrize(
    ("second", "asked"),
    [
        (WHOLE.but(parts=False), 2),
        (WHOLE.but(content=OTHER, tag='"two"'), 2),
        (WHOLE.but(content=OTHER[:70_000], tag='"two"'), 2),
        (WHOLE.but(content=OTHER[:10], tag='"two"'), 2),
        (WHOLE.but(content=OTHER, tag='"two"', conditional=False), 3),
        (WHOLE.but(content=OTHER, tag="", conditional=False), 3),
        (WHOLE.but(content=FILM + b"x", conditional=False), 3),
        (WHOLE.but(content=FILM[:-1], conditional=False), 3),
        (WHOLE.but(content=FILM[: CUT - 1], conditional=False), 3),
        (WHOLE.but(shift=-1, instead="Content-Range: bytes 49999-102399/102400\r\n"), 3),
        (WHOLE.but(shift=5, instead="Content-Range: bytes 50005-102399/102400\r\n"), 3),
        (WHOLE.but(shift=-CUT, instead="Content-Range: bytes 0-102399/102400\r\n"), 3),
        (WHOLE.but(shift=-CUT), 3),
        (WHOLE.but(instead=""), 3),
        (WHOLE.but(instead="Content-Range: bytes 50000-102399/90000\r\n"), 3),
        (WHOLE.but(instead="Content-Range: bytes 50000-49999/102400\r\n"), 3),
        (WHOLE.but(instead=f"Content-Range: bytes 50000-{'9' * 5000}/*\r\n"), 3),
        (WHOLE.but(instead="Content-Range: frames 50000-102399/102400\r\n"), 3),
        (WHOLE.but(status=416), 3),
        (WHOLE.but(status=400), 3),
        (WHOLE.but(status=501), 3),
        (WHOLE.but(status=412), 3),
    ],
)
def test_whatever_it_answers_to_a_range(dest: Path, second: Film, asked: int) -> None:
    """A server may have another file by now, or lie; the third request is for the whole."""
    third = second.but(parts=False)
    fetched, server = fetch(dest, HALF, second, third)
    assert dest.read_bytes() == second.content
    assert fetched.size == len(second.content)
    assert ranges(server) == [None, f"bytes={CUT}-", None][:asked]
    assert alone(dest)


def test_a_part_that_is_shorter_than_asked_for_is_gone_on_from(dest: Path) -> None:
    parts = Film(most=20_000)
    assert ranges(fetch(dest, HALF, parts)[1])[1:] == [f"bytes={size}-" for size in (50_000, 70_000, 90_000)]
    assert dest.read_bytes() == FILM


def test_a_length_that_nobody_told(dest: Path) -> None:
    chunked = Film(length=False)
    assert ranges(fetch(dest, chunked.but(cut=CUT), chunked)[1]) == [None, f"bytes={CUT}-"]
    assert dest.read_bytes() == FILM
    any_total = chunked.but(instead="Content-Range: bytes 50000-102399/*\r\n")
    fetch(dest, chunked.but(cut=CUT), any_total)
    assert dest.read_bytes() == FILM


def test_an_unpacked_body_is_not_gone_on_with(dest: Path) -> None:
    packed = gzip.compress(FILM)
    told = f'Content-Type: video/mp4\r\nETag: "one"\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}'
    whole = f"HTTP/1.1 200 OK\r\n{told}\r\n\r\n".encode() + packed
    _, server = fetch(dest, raw(whole[:-200]), raw(whole))
    assert ranges(server) == [None, None]
    assert dest.read_bytes() == FILM


def test_a_part_that_nobody_asked_for_is_no_file(dest: Path) -> None:
    part = answer(206, FILM[:100], 'ETag: "one"\r\nContent-Type: video/mp4\r\nContent-Range: bytes 0-99/102400\r\n')
    with pytest.raises(UnreadableError, match="206, and is no whole file"):
        fetch(dest, part)
    assert dest.read_bytes() == OLD
    assert alone(dest)


def test_tries_that_bring_it_on_are_not_counted(dest: Path) -> None:
    _, server = fetch(dest, *[Film(cut=12_000)] * 8, WHOLE)
    assert len(server.exchanges) == 9
    assert dest.read_bytes() == FILM


def test_tries_that_bring_little_are_bounded(dest: Path) -> None:
    with pytest.raises(FateUnknownError):
        fetch(dest, Film(cut=10))
    assert dest.read_bytes() == OLD
    assert alone(dest)


def test_a_server_without_parts_that_always_breaks_off_is_given_up(dest: Path) -> None:
    for film in (Film(cut=CUT, parts=False), Film(cut=CUT, tag="")):
        with pytest.raises(FateUnknownError):
            fetch(dest, film)
        assert dest.read_bytes() == OLD


def test_a_server_that_lies_and_breaks_off_is_given_up(dest: Path) -> None:
    with pytest.raises(ServerError):
        fetch(dest, HALF, HALF.but(shift=-1, instead="Content-Range: bytes 49999-102399/102400\r\n"))
    assert dest.read_bytes() == OLD
    assert alone(dest)


@pytest.mark.parametrize("fault", [cut, answer(503, b"busy"), raw(b"HTTP/1.1 200 OK\r\n")])
def test_what_stands_between_does_not_lose_what_is_there(dest: Path, fault: Handler) -> None:
    _, server = fetch(dest, HALF, fault, WHOLE)
    assert ranges(server) == [None, f"bytes={CUT}-", f"bytes={CUT}-"]
    assert dest.read_bytes() == FILM


def test_silence_in_the_middle(dest: Path) -> None:
    async def half_then_silence(exchange: Exchange) -> bool:
        await HALF(exchange)
        return await hang(exchange)

    _, server = fetch(dest, half_then_silence, WHOLE, seconds=0.3)
    assert ranges(server) == [None, f"bytes={CUT}-"]
    assert dest.read_bytes() == FILM


def test_an_error_ends_it(dest: Path) -> None:
    with pytest.raises(RejectedError):
        fetch(dest, HALF, answer(404, b"Object not found"))
    assert dest.read_bytes() == OLD
    assert alone(dest), "nobody keeps it"


def test_what_is_told_while_it_goes_on(dest: Path) -> None:
    watch = Notes()
    fetch(dest, HALF, WHOLE, watch=watch)
    assert watch.begun == [0, CUT]
    assert watch.sizes == sorted(watch.sizes)
    assert watch.sizes[-1] == len(FILM)
    assert watch.totals == {len(FILM)}


# From run to run -----------------------------------------------------------------------------------------------


def broken(dest: Path, film: Film = HALF) -> Part:
    """Return what a run leaves that had no more luck."""
    watch = Notes()
    with pytest.raises(ServerError):
        fetch(dest, film, answer(404, b"Object not found"), watch=watch)
    assert dest.read_bytes() == OLD
    assert watch.left is not None
    return watch.left


def test_the_next_run_goes_on(dest: Path) -> None:
    left = broken(dest)
    assert left == left_of()
    assert dest.with_name(left.name).read_bytes() == FILM[:CUT]
    watch = Notes(left)
    _, server = fetch(dest, WHOLE, watch=watch)
    assert ranges(server) == [f"bytes={CUT}-"]
    assert dest.read_bytes() == FILM
    assert watch.left is None
    assert alone(dest)


def test_what_is_hardly_anything_is_not_kept(dest: Path) -> None:
    watch = Notes()
    with pytest.raises(ServerError):
        fetch(dest, Film(cut=999), answer(404, b"Object not found"), watch=watch)
    assert watch.left is None
    assert alone(dest)


@pytest.mark.parametrize("film", [Film(cut=CUT, tag=""), Film(cut=CUT, tag='W/"one"')])
def test_what_nobody_can_go_on_with_is_not_kept(dest: Path, film: Film) -> None:
    watch = Notes()
    with pytest.raises(ServerError):
        fetch(dest, film, answer(404, b"Object not found"), watch=watch)
    assert watch.left is None
    assert alone(dest)


def test_a_run_that_is_killed_leaves_its_last_checkpoint(dest: Path) -> None:
    """Killed: nothing of ours runs after the last checkpoint, and more bytes may be in the file."""
    watch = Notes()
    fetch(dest, Film(piece=5000), watch=watch)
    point = next(part for part in watch.kept if part is not None)
    assert point.size == 20_000
    assert point == left_of(point.size)
    put(dest, point).write_bytes(FILM[: point.size + 3000])
    dest.write_bytes(OLD)
    _, server = fetch(dest, WHOLE, watch=Notes(point))
    assert ranges(server) == [f"bytes={point.size}-"]
    assert dest.read_bytes() == FILM


def test_all_of_it_was_there_already(dest: Path) -> None:
    """The last byte is asked for again: only so the server says that the file is still the same."""
    left = left_of(len(FILM))
    put(dest, left)
    _, server = fetch(dest, WHOLE, watch=Notes(left))
    assert ranges(server) == [f"bytes={len(FILM) - 1}-"]
    assert dest.read_bytes() == FILM
    put(dest, left)
    fetch(dest, WHOLE.but(content=OTHER, tag='"two"'), watch=Notes(left))
    assert dest.read_bytes() == OTHER


def test_another_file_by_then(dest: Path) -> None:
    left = broken(dest)
    watch = Notes(left)
    fetch(dest, WHOLE.but(content=OTHER, tag='"two"'), watch=watch)
    assert dest.read_bytes() == OTHER
    assert watch.left is None
    assert alone(dest)


def test_a_run_that_comes_no_further_keeps_what_there_was(dest: Path) -> None:
    watch = Notes(broken(dest))
    with pytest.raises(ServerError):
        fetch(dest, cut, watch=watch)
    assert watch.left == left_of()
    fetch(dest, WHOLE, watch=Notes(watch.left))
    assert dest.read_bytes() == FILM


def test_another_request_takes_nothing_over(dest: Path) -> None:
    left = broken(dest)
    _, server = fetch(dest, WHOLE, watch=Notes(Part(left.name, "/storage/N@x/WP2", *_rest(left))))
    assert ranges(server) == [None]
    assert dest.read_bytes() == FILM
    assert alone(dest), "the old beginning is in nobody's way"


def _rest(part: Part) -> tuple[int, str, str, int | None]:
    return part.size, part.sha256, part.validator, part.total


# Hostile files -------------------------------------------------------------------------------------------------


def forged(path: Path, _: Path) -> None:
    path.write_bytes(b"x" * CUT)


def shorter(path: Path, _: Path) -> None:
    path.write_bytes(FILM[: CUT - 1])


def a_link(path: Path, precious: Path) -> None:
    path.symlink_to(precious)


def a_hard_link(path: Path, precious: Path) -> None:
    os.link(precious, path)


def a_folder(path: Path, _: Path) -> None:
    path.mkdir()


def a_pipe(path: Path, _: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path, _: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(path))


def nothing(path: Path, _: Path) -> None:
    assert not path.exists()


@pytest.mark.parametrize("make", [forged, shorter, a_link, a_hard_link, a_folder, a_pipe, a_socket, nothing])
@pytest.mark.parametrize("known", [True, False])
def test_what_lies_in_the_way(
    dest: Path, make: Callable[[Path, Path], None], known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither followed nor written on, even where it holds what we remember; and the file is the server's."""
    monkeypatch.chdir(dest.parent)
    precious = dest.parent / "precious"
    precious.write_bytes(FILM[:CUT])
    make(dest.with_name(part_name(dest.name)), precious)
    _, server = fetch(dest, WHOLE, watch=Notes(left_of() if known else None))
    assert ranges(server) == [None]
    assert dest.read_bytes() == FILM
    assert precious.read_bytes() == FILM[:CUT]


def test_names_that_lead_elsewhere(dest: Path) -> None:
    precious = dest.parent / "precious"
    precious.write_bytes(FILM[:CUT])
    for name in ("precious", "../precious", str(precious)):
        part = left_of()
        _, server = fetch(dest, WHOLE, watch=Notes(Part(name, GET.path, *_rest(part))))
        assert ranges(server) == [None]
    assert precious.read_bytes() == FILM[:CUT]


def test_two_at_a_time_do_not_write_into_each_other(dest: Path) -> None:
    other = open_part(dest)
    other.append(b"the other's", 0)
    fetch(dest, WHOLE, watch=Notes(left_of()))
    assert dest.read_bytes() == FILM
    other.finish()
    assert dest.read_bytes() == b"the other's"
    assert alone(dest)


def test_a_beginning_that_somebody_moved_away(dest: Path) -> None:
    file = open_part(dest)
    file.append(FILM, 0)
    file.path.unlink()
    file.path.write_bytes(b"somebody else's")
    with pytest.raises(DownloadError, match="somebody has moved"):
        file.finish()
    file.drop()
    assert dest.read_bytes() == OLD
    assert file.path.read_bytes() == b"somebody else's"
    with pytest.raises(DownloadError, match="given up"):
        file.append(b"x", 0)


@pytest.mark.parametrize("name", ["ф" * 120 + ".mp4", "🎬" * 62 + ".mp4", "x" * 251 + ".mp4"])
def test_names_as_long_as_a_name_may_be(tmp_path: Path, name: str) -> None:
    dest = tmp_path / name
    fetch(dest, HALF, WHOLE)
    assert dest.read_bytes() == FILM
    assert alone(dest)


def test_being_stopped_at_once_keeps_what_came(dest: Path) -> None:
    watch = Notes()

    async def main() -> None:
        async def half_then_silence(exchange: Exchange) -> bool:
            await HALF(exchange)
            return await hang(exchange)

        async with (
            RawServer(half_then_silence) as server,
            AsyncMediaServer(ServerSpec("raw", server.url), clock=NoWait()) as client,
        ):
            task = asyncio.ensure_future(client.fetch(GET, dest, watch))
            await watch.reached(CUT)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert watch.left is not None
    assert watch.left == left_of(), "what was being written is written"
    assert dest.read_bytes() == OLD
    fetch(dest, WHOLE, watch=Notes(watch.left))
    assert dest.read_bytes() == FILM
    assert alone(dest)
