"""Files that end with the connection: a truncated file is reported, if its content shows its length."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from msauto.errors import InDoubtError
from msauto.server.downloads.truncation import breaks_off
from msauto.simulator.media import draw_png
from tests.wire.film_desk import OLD, alone, fetch, old_file, ranges, small_sizes
from tests.wire.film_server import FILM
from tests.wire.raw_server import Handler, raw


def box(kind: bytes, content: bytes = b"", *, length: int | None = None) -> bytes:
    return struct.pack(">I4s", 8 + len(content) if length is None else length, kind) + content


def large_box(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I4sQ", 1, kind, 16 + len(content)) + content


PICTURE = draw_png({"Title": "Film"}, (64, 36))
MOVIE = box(b"ftyp", b"isom") + box(b"free") + large_box(b"mdat", FILM[:900]) + box(b"moov", b"m" * 50)
STREAMED = box(b"ftyp", b"isom") + box(b"moov", b"m" * 50) + box(b"moof", b"f" * 20) + box(b"mdat", FILM[:300])


def ends(content: bytes) -> bool:
    return not breaks_off(lambda place, count: content[place : place + count], len(content))


@pytest.fixture
def dest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    small_sizes(monkeypatch)
    return old_file(tmp_path)


@pytest.mark.parametrize("whole", [PICTURE, MOVIE], ids=["picture", "movie"])
def test_a_cut_at_any_byte_shows(whole: bytes) -> None:
    assert ends(whole)
    assert [size for size in range(8, len(whole)) if ends(whole[:size])] == []


def test_of_a_streamed_film_a_cut_within_a_piece_shows() -> None:
    assert ends(STREAMED)
    first = len(STREAMED) - 336
    unseen = {size for size in range(first, len(STREAMED)) if ends(STREAMED[:size])}
    assert unseen == {*range(first, first + 8), *range(first + 28, first + 36)}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"short",
        FILM,
        b"#EXTM3U\n#EXTINF:6,\n0.ts\n",
        MOVIE + b"tail",
        PICTURE + b"whatever stands behind the end",
        box(b"ftyp", b"isom") + box(b"mdat", FILM[:50], length=0),
        box(b"ftyp", b"isom") + box(b"mdat", FILM[:50], length=5),
    ],
)
def test_what_does_not_say_is_taken_as_it_is(content: bytes) -> None:
    assert ends(content)


def closing(content: bytes, more: str = "") -> Handler:
    return raw(f"HTTP/1.0 200 OK\r\nContent-Type: video/mp4\r\n{more}\r\n".encode() + content)


@pytest.mark.parametrize("whole", [PICTURE, MOVIE, FILM], ids=["picture", "movie", "unknown"])
def test_a_whole_file_without_a_length_is_saved(dest: Path, whole: bytes) -> None:
    assert ranges(fetch(dest, closing(whole))[1]) == [None]
    assert dest.read_bytes() == whole


@pytest.mark.parametrize("whole", [PICTURE, MOVIE], ids=["picture", "movie"])
def test_one_that_is_cut_short_is_asked_for_again(dest: Path, whole: bytes) -> None:
    assert ranges(fetch(dest, closing(whole[:-9]), closing(whole))[1]) == [None, None]
    assert dest.read_bytes() == whole


def test_one_that_is_always_cut_short_has_failed(dest: Path) -> None:
    with pytest.raises(
        InDoubtError, match=r"the download was interrupted: \d+ bytes arrived, and the file is incomplete"
    ):
        fetch(dest, closing(MOVIE[:-9]))
    assert dest.read_bytes() == OLD
    assert alone(dest)
