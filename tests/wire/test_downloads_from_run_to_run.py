"""What a run leaves of a download is gone on with by the next; nothing else is ever taken for it, or written on."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from msauto.errors import DownloadError, ServerError
from msauto.model.ports import PartialDownload
from msauto.model.server import ServerSpec
from msauto.server.client import AsyncMediaServer
from msauto.server.downloads.part_file import open_part, part_name
from tests.wire.film_desk import CUT, GET, HALF, OLD, WHOLE, alone, fetch, left_of, old_file, put, ranges, small_sizes
from tests.wire.film_server import FILM, OTHER, Film, Notes
from tests.wire.raw_server import Exchange, RawServer, answer, cut, hang
from tests.wire.time_limit import NoWait


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    small_sizes(monkeypatch)


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    return old_file(tmp_path)


# From run to run -----------------------------------------------------------------------------------------------


def broken(dest: Path, film: Film = HALF) -> PartialDownload:
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
    """The last byte is requested again: only then the server confirms that the file is still the same."""
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
    _, server = fetch(dest, WHOLE, watch=Notes(PartialDownload(left.name, "/storage/N@x/WP2", *_rest(left))))
    assert ranges(server) == [None]
    assert dest.read_bytes() == FILM
    assert alone(dest), "the old beginning is in nobody's way"


def _rest(part: PartialDownload) -> tuple[int, str, str, int | None]:
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
        _, server = fetch(dest, WHOLE, watch=Notes(PartialDownload(name, GET.path, *_rest(part))))
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


@pytest.mark.parametrize("piece", [None, 5000])
def test_what_grows_beside_the_usual_place_is_not_left_behind(dest: Path, piece: int | None) -> None:
    """No run would find it again: each run that breaks off would leave another half of a film."""
    other, watch = open_part(dest), Notes()
    with pytest.raises(ServerError):
        fetch(dest, Film(cut=CUT, piece=piece), answer(404, b"Object not found"), watch=watch)
    assert watch.left is None
    other.drop()
    assert alone(dest)


def test_a_beginning_that_somebody_moved_away(dest: Path) -> None:
    file = open_part(dest)
    file.append(FILM, 0)
    file.path.unlink()
    file.path.write_bytes(b"somebody else's")
    with pytest.raises(DownloadError, match="another process moved"):
        file.finish()
    file.drop()
    assert dest.read_bytes() == OLD
    assert file.path.read_bytes() == b"somebody else's"
    with pytest.raises(DownloadError, match="was cancelled"):
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
            task = asyncio.ensure_future(client.fetch_file(GET, dest, watch))
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
