"""Any name through escaping, the raw path, a real server and back, against two decoders that share nothing with it."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from msauto import MediaServer
from msauto.errors import NotSentError
from msauto.model.fields import unreportable
from msauto.model.plan import Address
from msauto.plugins.simulator.embedded import ServerState, Simulator
from tests.examples import examples
from tests.tables import table

NAMES = st.text(
    st.one_of(st.characters(codec="utf-8"), st.sampled_from("/\\@:%?#&+=;. \t\n'\"")),
    min_size=1,
    max_size=40,
)


def unquoted(target: str) -> str:
    """A second decoder of percent-escapes, byte by byte; nothing of it is from a library."""
    raw, at = bytearray(), 0
    while at < len(target):
        if target[at] == "%":
            raw.append(int(target[at + 1 : at + 3], 16))
            at += 3
        else:
            raw.append(ord(target[at]))
            at += 1
    return raw.decode("utf-8")


def decoded(target: str) -> str:
    """A second decoder of names: percent-escapes, then the backslash rule (interface, «Addresses»)."""
    plain, escaped = [], False
    for sign in unquoted(target):
        if escaped or sign != "\\":
            plain.append(sign)
        escaped = sign == "\\" and not escaped
    return "".join(plain)


@pytest.fixture(scope="module")
def sim() -> Iterator[Simulator]:
    with Simulator(ServerState()) as running:
        yield running


@pytest.fixture(scope="module")
def server(sim: Simulator) -> Iterator[MediaServer]:
    with MediaServer(sim.url) as client:
        yield client


def put(sim: Simulator, title: str, database: str = "NEWS", folder: tuple[str, ...] = ()) -> None:
    sim.state = ServerState()
    news = sim.state.add_database(database)
    news.add_clip("decoy", frames=1)
    news.add_clip(title, folder, frames=777)
    sim.clear_log()


@settings(max_examples=examples(150))
@given(NAMES, NAMES, st.lists(NAMES, max_size=3).map(tuple))
def test_any_name_finds_its_clip(
    sim: Simulator, server: MediaServer, title: str, database: str, folder: tuple[str, ...]
) -> None:
    check(sim, server, title, database, folder)


@table("addresses/awkward_names", "name")
def test_awkward_names_find_their_clip(sim: Simulator, server: MediaServer, name: str) -> None:
    check(sim, server, name, name, (name, name))


def check(
    sim: Simulator, server: MediaServer, title: str, database: str, folder: tuple[str, ...]
) -> None:
    put(sim, title, database, folder)
    for address in (title, Address(title, "title")):
        assert server.asset(database, address).frames == 777
    *_, listed = filter(attrgetter("title"), server.list(database, folder).entries)
    assert listed.attributes["frames"] == "777"
    comment = "x"
    if unreportable(title) is None:
        comment = title
    server.set_field(database, title, "comment", comment)
    home = sim.state.databases[database].clip(title).home
    assert home.fields["comment"] == comment
    path, by_key, listing, write = (entry.target for entry in sim.log)
    before, _, after = path.removeprefix("/storage/").partition("@")
    assert unquoted(before) == database
    assert decoded(after) == title
    _, _, key = by_key.partition("@title:")
    assert decoded(key) == title
    _, _, _, *names = listing.split("/")
    assert tuple(map(decoded, names)) == folder
    assert write.startswith(f"{path}?command=SETFIELD&")


@settings(max_examples=examples(60))
@given(NAMES, st.lists(NAMES, min_size=1, max_size=3).map(tuple), NAMES)
@example("a", ("..", "."), "..")
def test_any_name_can_be_given(
    sim: Simulator, server: MediaServer, title: str, folder: tuple[str, ...], file: str
) -> None:
    put(sim, "clip")
    sim.state.databases["NEWS"].make_folder(folder)
    sim.state.add_channel(file)
    server.copy_link("NEWS", "clip", title, folder)
    entries = sim.state.databases["NEWS"].clip("clip").entries
    assert title in {entry.title for entry in entries}
    assert folder in {entry.folder for entry in entries}
    server.put_rss(file, file, "text", "text/plain")
    channel = sim.state.channels[file]
    (item,) = channel.items
    assert item.file == file
    server.delete_rss(file, item.guid)
    assert channel.items == []


def test_longest_title_that_fits_and_one_more(sim: Simulator, server: MediaServer) -> None:
    around = len("GET /storage/NEWS@ HTTP/1.1\r\n")
    fits = "ж" * ((8000 - around) // 6)
    put(sim, fits)
    assert server.asset("NEWS", fits).frames == 777
    put(sim, fits + "ж")
    with pytest.raises(NotSentError, match="more than the limit of 8000") as caught:
        server.asset("NEWS", fits + "ж")
    assert len(str(caught.value)) < 700
    assert sim.log == []
