"""Every verb of the client against the simulator, and what the client refuses before anything leaves."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

import msauto
from msauto import AsyncMediaServer, MediaServer
from msauto.errors import (
    AddressError,
    InDoubtError,
    MsautoError,
    NotFoundError,
    NotSentError,
    RefusedError,
    RejectedError,
    UnreachableError,
    UnreadableError,
    UnsupportedError,
)
from msauto.model.plan import Address, Request
from msauto.model.server import Auth, Dialect, Secret, ServerSpec, Tls
from msauto.plugins.simulator.embedded import SimDialect, Simulator, state_from_seed
from msauto.server.access import spec_of
from msauto.server.http_client import HttpClient
from tests.tables import table

TITLE = "Back\\Slash / Film: 50% @ night?"
VALUE = "a & b + c, 50% \\ / ?\nnew line “Ё”"


def files(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator(state_from_seed("sample")) as running:
        yield running


@pytest.fixture
def server(simulator: Simulator) -> Iterator[MediaServer]:
    with MediaServer(simulator.url) as client:
        yield client


def test_every_command_does_what_it_says(simulator: Simulator, server: MediaServer) -> None:
    server.set_field("NEWS", TITLE, "comment", VALUE)
    server.set_user_fields("NEWS", TITLE, {"dc:subject": ["a & b", "в"], "dc:creator": []})
    server.create_segment("NEWS", TITLE, 1, 0, 100, title=VALUE, keywords="k l")
    server.create_segment("NEWS", TITLE, 2, 100, 100)
    server.delete_segment("NEWS", TITLE, 2)
    server.create_marker("NEWS", TITLE, frame=25, track="Cue Point", fields={"title": VALUE})
    server.create_marker("NEWS", TITLE, frame=50)
    uids = [marker.uid for marker in server.asset("NEWS", TITLE).markers]
    server.create_marker("NEWS", TITLE, uids[0], frame=30, track="General", fields={"title": "T"})
    server.delete_marker("NEWS", TITLE, uids[1])
    server.copy_link("NEWS", TITLE, "Link: of / it", "Playout/Tonight")

    clip = server.asset("NEWS", TITLE)
    assert clip.attributes["comment"] == VALUE
    assert [(s.number, s.start, s.duration, s.titles, s.keywords) for s in clip.segments] == [
        (1, 0, 100, (VALUE,), "k l")
    ]
    assert [(m.uid, m.frame, m.track, m.fields["title"]) for m in clip.markers] == [
        (uids[0], 30, "General", "T")
    ]
    xmp = server.xmp("NEWS", TITLE)
    assert xmp
    assert xmp["dc:subject"] == ("a & b", "в")
    assert "Link: of / it" in [
        entry.title for entry in server.list("NEWS", "Playout/Tonight").entries
    ]
    assert len(simulator.writes()) == 10

    server.create_segmentation("NEWS", TITLE, 1000, title="Part")
    assert len(server.asset("NEWS", TITLE).segments) >= 3
    server.delete("NEWS", TITLE)
    with pytest.raises(NotFoundError, match="Object not found"):
        server.asset("NEWS", TITLE)


def test_reads_are_typed(server: MediaServer, tmp_path: Path) -> None:
    databases = server.databases()
    assert [database.name for database in databases] == ["NEWS", "ARCHIVE"]
    for database in databases:
        assert database.listing
        assert database.listing.entries
    folders = server.list_folders("NEWS")
    assert ("Raw", "2026") in folders.folders
    assert folders.entries == ()
    assert TITLE in [asset.title for asset in server.list_mam("NEWS")]
    assert [asset.folder for asset in server.list_mam("NEWS", ("Films",))] == [("Films",)]
    new = server.list("NEWS", "Raw", created_after="2026-11-20T00:00:00", mimetype="AudioVideo")
    for entry in new.entries:
        assert entry.attributes["create_time"] > "2026-11-20"
    assert server.thumbnail("NEWS", "Long Film", pos=5, w=64, h=36).startswith(b"\x89PNG")
    film = tmp_path / "deep" / "film.mp4"
    size = server.download_proxy("NEWS", "Long Film", "WP1", film)
    assert film.stat().st_size == size > 1000
    assert files(film.parent) == ["film.mp4"]


def test_channels(server: MediaServer) -> None:
    assert "ticker" in server.channels()
    server.put_rss("ticker", "new.txt", "Заголовок")
    server.put_rss("ticker", "n-9.xml", "<item><guid>n-9</guid><title>A &amp; B</title></item>")
    items = {item.guid: item.title for item in server.channel("ticker").items}
    assert items["n-9"] == "A & B"
    server.delete_rss("ticker", "n-9")
    assert "n-9" not in {item.guid for item in server.channel("ticker").items}
    with pytest.raises(NotFoundError):
        server.channel("no such")


def test_unknown_profile_leaves_no_file(server: MediaServer, tmp_path: Path) -> None:
    dest = tmp_path / "film.mp4"
    dest.write_bytes(b"old")
    with pytest.raises(NotFoundError):
        server.download_proxy("NEWS", "no such", "WP1", dest)
    assert dest.read_bytes() == b"old"
    assert files(tmp_path) == ["film.mp4"]


@pytest.mark.parametrize("switch", ["errors=200_text", "errors=200_xml", "errors=status"])
def test_refused_command_is_an_error_however_it_is_told(
    simulator: Simulator, server: MediaServer, switch: str
) -> None:
    simulator.dialect = SimDialect.parse([switch])
    with pytest.raises(RejectedError) as caught:
        server.delete_marker("NEWS", "Long Film", 999)
    assert "server 127.0.0.1: POST /storage/NEWS@Long%20Film?command=DELETEMARKER" in str(
        caught.value
    )


@pytest.mark.parametrize("body", ["empty", "ok_text", "ok_xml", "clip", "garbage"])
def test_body_of_a_command_is_not_relied_on(
    simulator: Simulator, server: MediaServer, body: str
) -> None:
    simulator.dialect = SimDialect.parse([f"command_body={body}"])
    server.set_field("NEWS", "Long Film", "comment", "Error: not really")
    assert server.asset("NEWS", "Long Film").attributes["comment"] == "Error: not really"


@pytest.mark.parametrize(
    ("switch", "auth"),
    [
        ("auth=basic", Auth(username="ops", password=Secret("secret"))),
        ("auth=bearer", Auth(bearer=Secret("secret"))),
        ("auth=header", Auth(headers=(("X-Auth-Token", Secret("secret")),))),
    ],
)
def test_authentication(simulator: Simulator, switch: str, auth: Auth) -> None:
    simulator.dialect = SimDialect.parse([switch])
    with MediaServer(ServerSpec("sim", simulator.url, auth=auth)) as known:
        assert known.channels()
    with MediaServer(simulator.url) as stranger, pytest.raises(RejectedError) as caught:
        stranger.channels()
    assert caught.value.status == 401
    assert "`auth`" in caught.value.remedy


def test_read_only_client_sends_no_write(simulator: Simulator) -> None:
    with MediaServer(simulator.url, read_only=True) as server:
        assert server.channels()
        writes: list[Callable[[], object]] = [
            lambda: server.set_field("NEWS", "Long Film", "comment", "x"),
            lambda: server.delete("NEWS", "Long Film"),
            lambda: server.put_rss("ticker", "x.txt", "x"),
            lambda: server.load_xmp("NEWS", "TRAFFIC", b"x"),
        ]
        for write in writes:
            with pytest.raises(RefusedError, match="read-only"):
                write()
    assert simulator.writes() == []


def test_what_is_asked_as_a_read_is_no_write(simulator: Simulator) -> None:
    async def ask() -> None:
        async with AsyncMediaServer(simulator.url) as server:
            await server.ask(Request("DELETE", f"/storage/NEWS@{TITLE}"))

    with pytest.raises(ValueError, match="DELETE is not a read"):
        asyncio.run(ask())
    assert simulator.log == []


def test_line_that_is_too_long_is_not_sent(simulator: Simulator, server: MediaServer) -> None:
    server.set_field("NEWS", "Long Film", "comment", "x" * 7800)
    with pytest.raises(NotSentError, match=r"more than the limit of 8000") as caught:
        server.set_field("NEWS", "Long Film", "comment", "x" * 8000)
    assert len(str(caught.value)) < 600
    assert len(simulator.writes()) == 1


@table("server/calls_of_later_versions", "version", "call", "args", "more")
def test_what_the_version_lacks_is_not_sent(
    simulator: Simulator, version: str, call: str, args: list[Any], more: dict[str, Any] | None
) -> None:
    numbers = tuple(map(int, version.split(".")))
    with (
        MediaServer(ServerSpec("old", simulator.url, version=numbers)) as server,
        pytest.raises(UnsupportedError),
    ):
        getattr(server, call)(*args, **(more or {}))
    assert simulator.log == []


def test_a_version_without_ids_is_not_asked_by_one(simulator: Simulator) -> None:
    with (
        MediaServer(ServerSpec("old", simulator.url, version=(2, 9, 68))) as server,
        pytest.raises(UnsupportedError),
    ):
        server.asset("NEWS", Address("1", "handle"))
    assert simulator.log == []


def test_html_from_something_else_is_told() -> None:
    async def page(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, html="<html><title>Router</title></html>")

    async def main() -> None:
        async with AsyncMediaServer("http://x", transport=httpx2.MockTransport(page)) as server:
            with pytest.raises(UnreadableError, match="HTML page titled 'Router'"):
                await server.asset("NEWS", "x")
            with pytest.raises(UnreadableError, match="not a PNG"):
                await server.thumbnail("NEWS", "x")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("status", "headers"),
    [(206, {}), (206, {"Content-Range": "bytes 0-9/20"}), (200, {"Content-Range": "bytes 0-9/20"})],
)
def test_a_part_of_an_answer_is_told(status: int, headers: dict[str, str]) -> None:
    async def part(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, headers=headers, text='<Clip link_id="1"/>')

    async def main() -> None:
        async with AsyncMediaServer("http://x", transport=httpx2.MockTransport(part)) as server:
            for read in (server.asset, server.xmp, server.thumbnail):
                with pytest.raises(RejectedError, match="a part of the answer"):
                    await read("NEWS", "x")
            with pytest.raises(RejectedError, match="a part of the answer"):
                await server.list("NEWS")

    asyncio.run(main())


def test_login_page_in_place_of_an_answer_leaves_a_write_unknown(
    simulator: Simulator, server: MediaServer
) -> None:
    simulator.faults.add("html@POST .*")
    with pytest.raises(InDoubtError, match="web page"):
        server.export_version("NEWS", "Long Film")


# Addresses, secrets ---------------------------------------------------------------------------------------------


@table("addresses/urls", "url", "name", "expected")
def test_url(url: str, name: str, expected: str) -> None:
    spec = spec_of(url)
    assert (spec.name, spec.url) == (name, expected)


def test_https_to_a_server_without_tls_names_the_scheme(simulator: Simulator) -> None:
    with (
        MediaServer(simulator.url.replace("http:", "https:")) as client,
        pytest.raises(UnreachableError, match="does not answer with TLS") as caught,
    ):
        client.asset("NEWS", TITLE)
    assert "http://" in caught.value.remedy


def test_token_in_url_never_shows() -> None:
    with pytest.raises(AddressError) as caught:
        spec_of("http://server:7901/?token=geheim")
    assert "geheim" not in str(caught.value)


def test_password_in_url_never_shows() -> None:
    spec = spec_of("http://ops:geh%40im@studio-a")
    assert spec.auth.password
    assert spec.auth.password.reveal() == "geh@im"
    assert "geh" not in repr(spec)


@table("addresses/urls_of_no_server", "url")
def test_urls_of_no_server(url: str) -> None:
    with pytest.raises(AddressError) as caught:
        spec_of(url)
    assert "http://host:7901" in caught.value.remedy


def test_secret_with_line_end_is_told_without_showing_it() -> None:
    with pytest.raises(MsautoError, match="line end") as caught:
        AsyncMediaServer(ServerSpec("a", "http://a", auth=Auth(bearer=Secret("geheim\n"))))
    assert "geheim" not in str(caught.value)


def test_tls_files_that_are_not_there(tmp_path: Path) -> None:
    spec = ServerSpec("a", "https://a", tls=Tls(ca=str(tmp_path / "no.pem")))
    with pytest.raises(NotSentError, match="TLS files"):
        AsyncMediaServer(spec)


def test_created_after_with_zone_is_refused(server: MediaServer) -> None:
    with pytest.raises(ValueError, match="zone"):
        server.list("NEWS", created_after=datetime(2026, 1, 1, tzinfo=UTC))


# Downloads ------------------------------------------------------------------------------------------------------


def test_cut_proxy_is_asked_for_again(
    simulator: Simulator, server: MediaServer, tmp_path: Path
) -> None:
    simulator.faults.add("truncate@GET .*/WP1*1")
    size = server.download_proxy("NEWS", "Long Film", "WP1", tmp_path / "film.mp4")
    assert (tmp_path / "film.mp4").stat().st_size == size
    assert len(simulator.log) == 2
    assert files(tmp_path) == ["film.mp4"]


# Without asyncio ------------------------------------------------------------------------------------------------


def test_blocking_client_has_every_method_of_the_async_one() -> None:
    names = {
        name
        for owner in (HttpClient, AsyncMediaServer)
        for name, member in vars(owner).items()
        if not name.startswith("_") and inspect.iscoroutinefunction(member)
    } - {"aclose", "ask", "read", "read_listing", "fetch", "fetch_file", "permit", "write"}
    blocking = {
        name for name, member in vars(MediaServer).items() if hasattr(member, "__wrapped__")
    }
    assert names == blocking
    assert "frame: 'Position | None' = None" in str(inspect.signature(MediaServer.create_marker))
    assert MediaServer.asset.__doc__ == AsyncMediaServer.asset.__doc__
    assert not inspect.iscoroutinefunction(MediaServer.asset)


def test_what_sends_is_a_coroutine_function() -> None:
    """So help() shows what it returns, and a mock of a client is awaited."""
    plain = []
    for name, member in inspect.getmembers(AsyncMediaServer, inspect.isfunction):
        if not name.startswith("_") and not inspect.iscoroutinefunction(member):
            plain.append(name)
    assert plain == ["hide", "path"]


def test_thread_ends_with_the_client_and_unused_client_has_none(simulator: Simulator) -> None:
    before = threading.active_count()
    with MediaServer(simulator.url) as unused:
        assert threading.active_count() == before
    with MediaServer(simulator.url) as used:
        used.channels()
        assert threading.active_count() > before
    assert threading.active_count() == before
    for closed in (unused, used):
        closed.close()
        with pytest.raises(NotSentError, match="closed"):
            closed.channels()


def test_several_threads_may_share_a_client(server: MediaServer) -> None:
    titles: list[str | None] = []
    threads = [
        threading.Thread(target=lambda: titles.append(server.asset("NEWS", "Long Film").title))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert titles == ["Long Film"] * 8


def test_dialect_reaches_the_requests(simulator: Simulator) -> None:
    simulator.state.add_clip("Film: part 1", "Films")
    spec = ServerSpec("a", simulator.url, dialect=Dialect(title_address="ns", list_separator=";"))
    with MediaServer(spec) as server:
        server.set_user_fields("NEWS", "Long Film", {"x:y": ["a", "b"]})
        server.set_field("NEWS", "Film: part 1", "comment", "x")
    assert [entry.target.partition("?") for entry in simulator.writes()] == [
        ("/storage/NEWS@Long%20Film", "?", "command=SETUSERFIELDS&x%3Ay=a%3Bb"),
        ("/storage/NEWS@title:Film%3A%20part%201", "?", "command=SETFIELD&name=comment&val=x"),
    ]


def test_public_names() -> None:
    for name in msauto.__all__:
        assert getattr(msauto, name) is not None
    assert set(msauto.__all__) <= set(dir(msauto))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        msauto.nothing  # noqa: B018


def test_send_of_a_read_is_tried_again(simulator: Simulator, server: MediaServer) -> None:
    simulator.faults.add("status:503@GET .*/rss*1")
    assert server.send(Request("GET", "/rss")).status == 200
    assert [entry.status for entry in simulator.log] == [503, 200]


# What callers give ----------------------------------------------------------------------------------------------


def test_positions_take_the_forms_of_playbooks(simulator: Simulator, server: MediaServer) -> None:
    server.create_marker("NEWS", "Long Film", frame="00:00:10:00")
    server.create_segment("NEWS", "Long Film", 1, "00:00:01.5", 50)
    server.create_segmentation("NEWS", "Long Film", "00:10:00:00")
    server.set_field("NEWS", "Long Film", "icon_pos", "00:00:02:00")
    server.set_field("NEWS", "Long Film", "icon_pos", "")
    server.thumbnail("NEWS", "Long Film", pos="00:00:04:00")
    sent = [
        entry.target.partition("?")[2]
        for entry in simulator.log
        if entry.method == "POST" or "ICON" in entry.target
    ]
    assert sent == [
        "command=CREATEMARKER&uid=-1&frame=250",
        "command=CREATESEGMENT&seg_num=1&start_frame=38&duration=50",
        "command=CREATESEGMENTATION&duration=15000",
        "command=SETFIELD&name=icon_pos&val=50",
        "command=SETFIELD&name=icon_pos&val=",
        "pos=100",
    ]


def test_marker_by_frames_costs_no_read(simulator: Simulator, server: MediaServer) -> None:
    server.create_marker("NEWS", "Long Film", frame=250, fields={"title": "T", "rating": 3})
    assert [entry.method for entry in simulator.log] == ["POST"]
    assert server.asset("NEWS", "Long Film").markers[-1].fields["rating"] == "3"


@table("server/refused_calls", "call", "args", "more", "words")
def test_what_no_server_accepts_is_not_sent(
    simulator: Simulator,
    server: MediaServer,
    call: str,
    args: list[Any],
    more: dict[str, Any] | None,
    words: str,
) -> None:
    with pytest.raises(AddressError, match=f"(?s){words}") as caught:
        getattr(server, call)(*args, **(more or {}))
    assert caught.value.remedy
    assert not simulator.log


def test_one_text_is_one_value_of_an_xmp_field(server: MediaServer) -> None:
    server.set_user_fields("NEWS", "Long Film", {"dc:subject": "news"})
    assert (server.xmp("NEWS", "Long Film") or {})["dc:subject"] == ("news",)


def test_folder_is_listed_without_what_is_below_unless_recursive(server: MediaServer) -> None:
    folders = {entry.folder for entry in server.list("NEWS", "Raw").entries}
    deep = {entry.folder for entry in server.list("NEWS", "Raw", recursive=True).entries}
    assert folders == {("Raw",)} < deep
    assert deep < {entry.folder for entry in server.list("NEWS").entries}
    assert server.list_folders("NEWS", "Raw").folders == (("Raw", "2026"),)
    assert {each.folder for each in server.list_mam("NEWS", "Raw")} == {("Raw",)}


def test_times_and_rates_of_an_asset_are_typed(server: MediaServer) -> None:
    clip = server.asset("NEWS", "Long Film")
    assert (clip.fps, clip.duration, clip.create_time) == (
        25,
        6500.0,
        datetime.fromisoformat("2026-10-02T12:00"),
    )
    entry = next(entry for entry in server.list("NEWS").entries if entry.title == "Long Film")
    assert (entry.fps, entry.duration) == (25, 6500.0)


@pytest.mark.parametrize(
    "given",
    [
        {"server": 3}, {"auth": "geheim"}, {"auth": ("ops", "geheim", "x")}, {"auth": ("ops", 3)}, {"timeout": "5"},
        {"verify": 3}, {"transport": "x"}, {"server": ServerSpec(name="a", url="http://a", connections=0)},
    ],
)  # fmt: skip
def test_a_wrong_parameter_of_the_client_is_named_and_shows_no_password(
    given: dict[str, Any],
) -> None:
    (name,) = given
    if isinstance(given[name], ServerSpec):
        name = "connections"
    with pytest.raises(AddressError, match=f"^{name} must be") as failure:
        MediaServer(**{"server": "studio-a", **given})
    assert failure.value.remedy
    assert "geheim" not in str(failure.value)


def test_credentials_time_outs_and_tls_as_parameters() -> None:
    with MediaServer("studio-a", auth=("ops", "geheim"), timeout=7, verify=False) as server:
        assert server.spec.url == "http://studio-a:7901"
        assert server.spec.auth == Auth(username="ops", password=Secret("geheim"))
        assert (server.spec.timeouts.connect, server.spec.timeouts.listing) == (7, 7)
        assert server.spec.tls == Tls(verify=False)
        assert "geheim" not in repr(server.spec)
    with pytest.raises(AddressError, match="more than 0"):
        MediaServer("studio-a", timeout=0)


@pytest.mark.parametrize("kind", [httpx2.AsyncBaseTransport, httpx2.BaseTransport])
def test_any_transport_of_httpx(kind: type) -> None:
    class OneClip(kind):  # type: ignore[misc]
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            assert request.extensions["target"] == b"/storage/NEWS@Film"
            return httpx2.Response(
                200, text='<Clip link_id="1"><Attr name="title">Film</Attr></Clip>'
            )

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            return self.handle_request(request)

    with MediaServer("studio-a", transport=OneClip()) as server:
        assert server.asset("NEWS", "Film").title == "Film"


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_client_works_inside_an_event_loop_and_not_after_a_fork(server: MediaServer) -> None:
    async def main() -> str | None:
        return server.asset("NEWS", "Long Film").title

    assert asyncio.run(main()) == "Long Film"
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            server.asset("NEWS", "Long Film")
        except NotSentError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        assert "forked\n  → open a new one here" in answer.read()
