"""What the tests of downloads share: a film of 100 KB, a server's moods one after the other, and what is left."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from msauto.model.plan import Request
from msauto.model.ports import PartialDownload
from msauto.model.server import ServerSpec, Timeouts
from msauto.server.client import AsyncMediaServer
from msauto.server.downloads import fetching
from msauto.server.downloads.fetching import FetchResult
from msauto.server.downloads.part_file import part_name
from tests.wire.film_server import FILM, Film, Notes
from tests.wire.raw_server import Handler, RawServer
from tests.wire.time_limit import NoWait, run_patiently

GET = Request("GET", "/storage/N@x/WP1")
CUT = 50_000
HALF = Film(cut=CUT)
WHOLE = Film()
OLD = b"what was there before"


def small_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes for a film of 100 KB."""
    for name, size in {"WORTH": 1000, "CHECKPOINT": 20_000, "_PIECE": 4096, "_PROGRESS": 10_000}.items():
        monkeypatch.setattr(fetching, name, size)


def old_file(folder: Path) -> Path:
    file = folder / "film.mp4"
    file.write_bytes(OLD)
    return file


def fetch(dest: Path, *behaviours: Handler, watch: Notes | None = None) -> tuple[FetchResult, RawServer]:
    looked = watch or Notes(keeps=False)
    told = [each.but(watch=looked) if isinstance(each, Film) else each for each in behaviours]

    async def main() -> tuple[FetchResult, RawServer]:
        async with RawServer(*told) as server:
            spec = ServerSpec("raw", server.url, timeouts=Timeouts(5, 5, 5, 5))
            async with AsyncMediaServer(spec, clock=NoWait()) as client:
                return await client.fetch_file(GET, dest, looked), server

    return run_patiently(main())


def ranges(server: RawServer) -> list[str | None]:
    return [exchange.headers.get("range") for exchange in server.exchanges]


def alone(dest: Path) -> bool:
    return [path.name for path in dest.parent.iterdir()] == [dest.name]


def left_of(
    size: int = CUT, *, content: bytes = FILM, tag: str = '"one"', total: int | None = len(FILM)
) -> PartialDownload:
    digest = hashlib.sha256(content[:size]).hexdigest()
    return PartialDownload(part_name("film.mp4"), GET.path, size, digest, tag, total)


def put(dest: Path, part: PartialDownload, content: bytes = FILM) -> Path:
    path = dest.with_name(part.name)
    path.write_bytes(content[: part.size])
    return path
