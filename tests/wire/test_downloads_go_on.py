"""A download that breaks off is resumed where it stopped; with any answer, two files are never joined."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest

from msauto.errors import InDoubtError, RejectedError, ServerError, UnreadableError
from msauto.server.downloads.fetching import FetchResult
from tests.wire.film_desk import CUT, HALF, OLD, WHOLE, alone, fetch, old_file, ranges, small_sizes
from tests.wire.film_server import DATE, FILM, OLDER, OTHER, Film, Notes
from tests.wire.raw_server import Exchange, Handler, answer, cut, raw
from tests.wire.time_limit import silence


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    small_sizes(monkeypatch)


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    return old_file(tmp_path)


# In one run ----------------------------------------------------------------------------------------------------


def test_it_goes_on_where_it_broke_off(dest: Path) -> None:
    fetched, server = fetch(dest, HALF, WHOLE)
    assert dest.read_bytes() == FILM
    assert fetched == FetchResult(len(FILM), hashlib.sha256(FILM).hexdigest())
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


@pytest.mark.parametrize(("last", "most", "cut"), [(59_999, 10_000, None), (102_399, None, 10_000)])
def test_a_part_of_a_file_whose_length_nobody_tells_is_not_taken_for_its_end(
    dest: Path, last: int, most: int | None, cut: int | None
) -> None:
    """It may be a shorter part than was asked for, or cut short where only the end of the connection ends it."""
    chunked = Film(length=False)
    told = f'HTTP/1.1 206 Some\r\nContent-Type: video/mp4\r\nETag: "one"\r\nContent-Range: bytes {CUT}-{last}/*\r\n'
    part = f"{told}Connection: close\r\n\r\n".encode() + FILM[CUT:][: most or cut]
    _, server = fetch(dest, chunked.but(cut=CUT), raw(part), chunked)
    assert dest.read_bytes() == FILM
    assert ranges(server) == [None, f"bytes={CUT}-", None]


def test_an_unpacked_body_is_not_gone_on_with(dest: Path) -> None:
    packed = gzip.compress(FILM)
    told = f'Content-Type: video/mp4\r\nETag: "one"\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}'
    whole = f"HTTP/1.1 200 OK\r\n{told}\r\n\r\n".encode() + packed
    _, server = fetch(dest, raw(whole[:-200]), raw(whole))
    assert ranges(server) == [None, None]
    assert dest.read_bytes() == FILM


def test_a_part_that_nobody_asked_for_is_no_file(dest: Path) -> None:
    part = answer(206, FILM[:100], 'ETag: "one"\r\nContent-Type: video/mp4\r\nContent-Range: bytes 0-99/102400\r\n')
    with pytest.raises(UnreadableError, match="206, not that of a complete file"):
        fetch(dest, part)
    assert dest.read_bytes() == OLD
    assert alone(dest)


def test_tries_that_bring_it_on_are_not_counted(dest: Path) -> None:
    _, server = fetch(dest, *[Film(cut=12_000)] * 8, WHOLE)
    assert len(server.exchanges) == 9
    assert dest.read_bytes() == FILM


def test_tries_that_bring_little_are_bounded(dest: Path) -> None:
    with pytest.raises(InDoubtError):
        fetch(dest, Film(cut=10))
    assert dest.read_bytes() == OLD
    assert alone(dest)


def test_a_server_without_parts_that_always_breaks_off_is_given_up(dest: Path) -> None:
    for film in (Film(cut=CUT, parts=False), Film(cut=CUT, tag="")):
        with pytest.raises(InDoubtError):
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
    watch = Notes(keeps=False)

    async def half_then_silence(exchange: Exchange) -> bool:
        await HALF.but(watch=watch)(exchange)
        return await silence(6)(exchange)

    _, server = fetch(dest, half_then_silence, WHOLE, watch=watch)
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
