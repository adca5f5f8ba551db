"""Whatever the cuts, the changes and the lies: the file is one that the server has, byte for byte, or as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from msauto.errors import ServerError
from msauto.model.plan import Request
from msauto.model.server import ServerSpec, Timeouts
from msauto.server.client import AsyncMediaServer
from msauto.server.downloads import fetching
from msauto.server.downloads.part_file import part_name
from tests.examples import examples
from tests.wire.film_server import FILM, OLDER, OTHER, Film, Notes
from tests.wire.raw_server import Handler, RawServer, answer, cut, raw
from tests.wire.time_limit import NoWait, run_patiently

OLD = b"what was there before"
ONE, TWO = FILM[:8000], OTHER[:9000]
GET = Request("GET", "/storage/N@x/WP1")


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, size in {"WORTH": 1, "CHECKPOINT": 2000, "_PIECE": 700, "_PROGRESS": 1000}.items():
            patch.setattr(fetching, name, size)
        yield


# A server that says of two files that they are one is believed: only that nobody can see.
CONTENTS = st.sampled_from([(ONE, '"one"'), (TWO, '"two"'), (TWO[:3000], '"three"')])
SPANS = st.none() | st.builds(
    "Content-Range: bytes {}-{}/{}\r\n".format,
    st.integers(0, 9000),
    st.integers(0, 9000),
    st.sampled_from([8000, "*", 9000]),
)


@st.composite
def films(draw: st.DrawFn) -> Film:
    content, tag = draw(CONTENTS)
    film = Film(
        content,
        draw(st.sampled_from([tag, tag, tag, f"W/{tag}", ""])),
        draw(st.sampled_from(["", OLDER])) if tag == '"one"' else "",
        cut=draw(st.none() | st.integers(0, 9000)),
        parts=draw(st.sampled_from([True, True, True, False])),
        status=draw(st.sampled_from([206, 206, 206, 416, 400])),
        most=draw(st.none() | st.integers(1, 5000)),
        length=draw(st.booleans()),
        conditional=draw(st.booleans()),
        piece=draw(st.sampled_from([None, 1100])),
    )
    lie = draw(SPANS)
    # What it holds must not be what it says, or it would be no lie.
    return film if lie is None else film.but(instead=lie, shift=draw(st.sampled_from([-500, 400])), status=206)


FAULTS: list[Handler] = [
    cut,
    raw(b"HTTP/1.1 200 OK\r\nContent-Le"),
    answer(503, b"busy"),
    answer(404, b"Object not found"),
]


@settings(deadline=None, max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(films() | st.sampled_from(FAULTS), min_size=1, max_size=6), min_size=1, max_size=3))
def test_the_file_is_the_servers_or_as_it_was(runs: list[list[Film | Handler]]) -> None:
    """Several runs, each with its own server's moods, each going on from what the one before has left."""
    with TemporaryDirectory() as folder:
        dest = Path(folder) / "film.mp4"
        dest.write_bytes(OLD)
        left, good = None, {OLD}
        for moods in runs:
            watch = Notes(left)
            fetched = run_patiently(fetch(dest, moods, watch))
            if fetched:
                good = {ONE, TWO, TWO[:3000]}
                assert watch.left is None
                assert [path.name for path in dest.parent.iterdir()] == [dest.name]
            assert dest.read_bytes() in good
            good = {dest.read_bytes()}
            left = watch.left
            names = {dest.name, part_name(dest.name)} if left else {dest.name}
            assert {path.name for path in dest.parent.iterdir()} == names
            event(f"{'fetched' if fetched else 'failed'} after {'some' if any(watch.begun) else 'no'} going on")


async def fetch(dest: Path, moods: list[Film | Handler], watch: Notes) -> bool:
    told = [each.but(watch=watch) if isinstance(each, Film) else each for each in moods]
    async with RawServer(*told) as server:
        spec = ServerSpec("raw", server.url, timeouts=Timeouts(5, 5, 5, 5))
        async with AsyncMediaServer(spec, clock=NoWait()) as client:
            try:
                await client.fetch_file(GET, dest, watch)
            except ServerError:
                return False
    return True
