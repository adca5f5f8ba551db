"""What the reader asks, how often, and what it makes of the answers: against a scripted transport."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import date, datetime, timedelta

import httpx2
import pytest

from msauto.errors import InDoubtError, RejectedError, UnreadableError
from msauto.model.desired import SelectRef
from msauto.model.live import Asset, Link
from msauto.model.plan import Address
from msauto.model.server import Dialect, ServerSpec
from msauto.server.client import AsyncMediaServer
from msauto.server.reader import ServerReader
from tests.unit.server.noon import Noon


class Script(httpx2.AsyncBaseTransport):
    """Answers by request target; keeps what was asked."""

    def __init__(self, answers: dict[str, bytes | tuple[int, bytes]]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        target = request.extensions["target"].decode()
        self.asked.append(target)
        await asyncio.sleep(0)
        answer = self.answers.get(target, (404, b"Object not found"))
        status, body = (200, answer) if isinstance(answer, bytes) else answer
        return httpx2.Response(status, content=body)


Work = Callable[[ServerReader], Awaitable[None]]


def with_reader(
    work: Work, answers: dict[str, bytes | tuple[int, bytes]], **spec: object
) -> Script:
    script = Script(answers)

    async def main() -> None:
        server = ServerSpec("studio-a", "http://studio-a:7901", **spec)  # type: ignore[arg-type]
        async with AsyncMediaServer(server, transport=script, clock=Noon()) as client:
            await work(ServerReader(client, clock=Noon()))

    asyncio.run(main())
    return script


def clip(title: str = "x", **attributes: str) -> bytes:
    attrs = "".join(
        f'<Attr name="{name}">{text}</Attr>'
        for name, text in {"title": title, **attributes}.items()
    )
    return f'<Clip link_id="1" finalized="true">{attrs}</Clip>'.encode()


def tree(content: str) -> bytes:
    return f'<StoredTree><Folder name="">{content}</Folder></StoredTree>'.encode()


X = Address("x")
NOON_OF_14TH = datetime.fromisoformat("2026-11-14T12:00:00")


def test_concurrent_askers_share_one_request_and_fresh_asks_again() -> None:
    async def work(reader: ServerReader) -> None:
        found = await asyncio.gather(*(reader.read_asset("N", X) for _ in range(10)))
        assert {asset.title for asset in found if asset} == {"x"}
        assert await reader.read_asset("N", Address("gone")) is None
        assert await reader.read_asset("N", Address("gone")) is None
        assert reader.reads == 2
        again = reader.fresh()
        assert again.reads == 0
        assert await again.read_asset("N", X)

    assert with_reader(work, {"/storage/N@x": clip()}).asked == [
        "/storage/N@x",
        "/storage/N@gone",
        "/storage/N@x",
    ]


def test_errors_are_shared_as_well() -> None:
    async def work(reader: ServerReader) -> None:
        results = await asyncio.gather(
            *(reader.read_asset("N", X) for _ in range(3)), return_exceptions=True
        )
        assert all(isinstance(result, RejectedError) for result in results)

    assert with_reader(work, {"/storage/N@x": (500, b"no")}).asked == ["/storage/N@x"]


def test_asker_that_is_cancelled_does_not_take_the_others_along() -> None:
    async def work(reader: ServerReader) -> None:
        first = asyncio.ensure_future(reader.read_asset("N", X))
        second = asyncio.ensure_future(reader.read_asset("N", X))
        await asyncio.sleep(0)
        first.cancel()
        asset = await second
        assert asset
        assert first.cancelled()

    with_reader(work, {"/storage/N@x": clip()})


def test_other_title_is_never_taken() -> None:
    async def work(reader: ServerReader) -> None:
        with pytest.raises(
            UnreadableError, match="asked for 'x', the server answered with 'X'"
        ) as caught:
            await reader.read_asset("N", X)
        assert "studio-a" in str(caught.value)

    with_reader(work, {"/storage/N@x": clip("X")})


def test_accents_may_be_composed_either_way_and_ids_have_other_titles() -> None:
    async def work(reader: ServerReader) -> None:
        assert await reader.read_asset("N", Address("é"))
        assert await reader.read_asset("N", Address("4711", "handle"))
        with pytest.raises(UnreadableError):
            await reader.read_asset("N", Address("y", "title"))

    answers = {
        "/storage/N@%C3%A9": clip("e\u0301"),
        "/storage/N@handle:4711": clip(),
        "/storage/N@title:y": clip(),
    }
    with_reader(work, {**answers})


def test_xmp_of_all_fields_is_one_request() -> None:
    async def work(reader: ServerReader) -> None:
        for names in (
            frozenset({"dc:subject"}),
            frozenset({"dc:title", "no:thing"}),
            frozenset[str](),
        ):
            answer = await reader.read_xmp("N", X, names)
            assert answer == {"dc:subject": ("a", "b"), "dc:title": ("t",)}

    body = b'<U><Attr name="dc:subject">a,b</Attr><Attr name="dc:title">t</Attr></U>'
    assert with_reader(work, {"/storage/N@x/GETUSERFIELDS": body}).asked == [
        "/storage/N@x/GETUSERFIELDS"
    ]


def test_server_that_wants_names_is_asked_by_name_from_then_on() -> None:
    async def work(reader: ServerReader) -> None:
        names = frozenset({"dc:subject", "dc:title"})
        assert await reader.read_xmp("N", X, names) == {"dc:subject": ("a",)}
        assert await reader.fresh().read_xmp("N", X, frozenset({"dc:subject"})) == {
            "dc:subject": ("a",)
        }

    subject = "/storage/N@x/GETUSERFIELDS?field=dc%3Asubject"
    script = with_reader(
        work,
        {"/storage/N@x/GETUSERFIELDS": (400, b"field is missing"), subject: b"<value>a</value>"},
    )
    title = "/storage/N@x/GETUSERFIELDS?field=dc%3Atitle"
    assert script.asked == ["/storage/N@x/GETUSERFIELDS", subject, title, subject]


@pytest.mark.parametrize("status", [401, 403])
def test_xmp_that_may_not_be_read_is_an_error_and_no_empty_state(status: int) -> None:
    async def work(reader: ServerReader) -> None:
        with pytest.raises(RejectedError):
            await reader.read_xmp("N", X, frozenset({"a:b"}))

    with_reader(work, {"/storage/N@x/GETUSERFIELDS": (status, b"no")})


def test_xmp_is_not_asked_for_where_the_dialect_says_never() -> None:
    async def work(reader: ServerReader) -> None:
        assert await reader.read_xmp("N", X, frozenset({"a:b"})) is None
        assert reader.reads == 0

    assert with_reader(work, {}, dialect=Dialect(xmp_read="never")).asked == []


def test_select_asks_for_each_mimetype_and_takes_no_entry_twice() -> None:
    created = '<Attr name="create_time">2026-11-20T10:00:00</Attr>'
    one = f'<Clip link_id="1"><Attr name="title">a</Attr>{created}</Clip>'
    two = f'<Clip link_id="2"><Attr name="title">b</Attr>{created}</Clip>'

    async def work(reader: ServerReader) -> None:
        select = SelectRef(
            "N", ("Raw",), created_within=timedelta(days=3), mimetypes=("Video", "Audio")
        )
        found = await reader.read_select(select)
        assert [entry.title for entry in found or ()] == ["a", "b"]
        await reader.read_select(select)

    when = "datetime=2026-11-17T13%3A00%3A00"  # noon in UTC is one o'clock in Oslo
    paths = [f"/storage/N/Raw?{when}&mimetype=Video", f"/storage/N/Raw?{when}&mimetype=Audio"]
    answers: dict[str, bytes | tuple[int, bytes]] = {paths[0]: tree(one), paths[1]: tree(one + two)}
    assert with_reader(work, answers, timezone="Europe/Oslo").asked == paths


CREATED = {
    "early": "2026-11-12T23:59:59",
    "at": "2026-11-13T00:00:00",
    "in": "2026-11-14T11:59:59",
    "late": "2026-11-14T12:00:00",
    "unknown": "",
    "unreadable": "yesterday",
    "early in UTC": "2026-11-12T23:00:00Z",  # midnight in Oslo
    "in in UTC": "2026-11-14T10:59:59Z",
    "late in UTC": "2026-11-14T11:00:00Z",
    "in elsewhere": "2026-11-14T22:00:00+12:00",
    "late elsewhere": "2026-11-14T08:00:00-05:00",
    "beyond all clocks": "0001-01-01T00:00:00+14:00",
    "after now": "2026-11-20T13:00:01",
}


@pytest.mark.parametrize(
    ("select", "titles"),
    [
        (
            SelectRef("N", created_after=date(2026, 11, 13), created_before=NOON_OF_14TH),
            ["in", "in in UTC", "in elsewhere"],
        ),
        (
            SelectRef("N", created_within=timedelta(days=6)),
            ["late elsewhere"],
        ),  # noon in UTC is 13:00 in Oslo
        (SelectRef("N"), list(CREATED)),
    ],
)
def test_times_are_compared_once_more_on_our_side(select: SelectRef, titles: list[str]) -> None:
    """A time with a zone is taken with it, another one is on the server's clock; an unknown one is never within."""

    async def work(reader: ServerReader) -> None:
        found = await reader.read_select(select)
        assert [entry.title for entry in found or ()] == titles

    body = tree(
        "".join(
            f'<Clip><Attr name="title">{title}</Attr><Attr name="create_time">{created}</Attr></Clip>'
            for title, created in CREATED.items()
        )
    )
    paths = (
        "/storage/N?datetime=2026-11-13",
        "/storage/N?datetime=2026-11-14T13%3A00%3A00",
        "/storage/N",
    )
    assert len(with_reader(work, dict.fromkeys(paths, body), timezone="Europe/Oslo").asked) == 1


SHALLOW: dict[str, bytes | tuple[int, bytes]] = {
    "/storage/N": tree('<Folder name="A"/><Folder name="B"/>'),
    "/storage/N/A": tree('<Folder name="C"/><Clip><Attr name="title">a</Attr></Clip>'),
    "/storage/N/A/C": tree('<Clip><Attr name="title">c</Attr></Clip>'),
    "/storage/N/B": tree(""),
}


def test_shallow_listings_are_followed_down() -> None:
    async def work(reader: ServerReader) -> None:
        found = await reader.read_select(SelectRef("N", recursive=True))
        assert [entry.title for entry in found or ()] == ["a", "c"]
        assert [entry.folder for entry in found or ()] == [("A",), ("A", "C")]

    assert len(with_reader(work, SHALLOW).asked) == 4


def test_deep_listings_are_not_followed() -> None:
    async def work(reader: ServerReader) -> None:
        assert len(await reader.read_select(SelectRef("N", recursive=True)) or ()) == 1
        assert len(await reader.read_select(SelectRef("N", ("E",), recursive=True)) or ()) == 0

    deep = tree(
        '<Folder name="A"><Clip><Attr name="title">a</Attr></Clip></Folder><Folder name="B"/>'
    )
    answers: dict[str, bytes | tuple[int, bytes]] = {
        "/storage/N": deep,
        "/storage/N/E": tree('<Folder name="F"/>'),
    }
    assert with_reader(work, answers).asked == ["/storage/N", "/storage/N/E"]


def test_links_by_title_and_by_identity_and_from_the_clip_itself() -> None:
    same = '<Attr name="orig_name">o</Attr><Attr name="create_time">t</Attr><Attr name="frames">5</Attr>'
    clips = (
        f'<Folder name="Home"><Clip link_id="1"><Attr name="title">x</Attr>{same}</Clip></Folder>'
        f'<Folder name="Air"><Clip link_id="2"><Attr name="title">other name</Attr>{same}</Clip>'
        '<Clip link_id="3"><Attr name="title">stranger</Attr><Attr name="orig_name">o</Attr></Clip></Folder>'
        '<Folder name="Late"><Clip link_id="4"><Attr name="title">x</Attr></Clip></Folder>'
    )

    async def work(reader: ServerReader) -> None:
        attributes = {"orig_name": "o", "create_time": "t", "frames": "5"}
        asset = Asset("x", ("Home",), link_id=1, attributes=attributes)
        assert await reader.read_links("N", asset) == (
            Link(("Air",), "other name", 2),
            Link(("Late",), "x", 4),
        )
        assert await reader.read_links("N", asset)
        own = (Link(("Q",), "q"),)
        assert await reader.read_links("N", Asset("x", links=own)) == own

    assert with_reader(work, {"/storage/N": tree(clips)}).asked == ["/storage/N"]


def test_database_is_asked_for_without_the_list_of_all() -> None:
    async def work(reader: ServerReader) -> None:
        assert await reader.has_database("N")
        assert not await reader.has_database("M")

    new = with_reader(work, {"/storage/N?format=folderlist": tree("")})
    assert new.asked == ["/storage/N?format=folderlist", "/storage/M?format=folderlist"]
    old = with_reader(work, {"/storage/N": tree("")}, version=(2, 3, 89))
    assert old.asked == ["/storage/N", "/storage/M"]


@pytest.mark.parametrize("answer", [(400, b"unknown format"), b"Error: unknown format", b"<mam/>"])
def test_older_server_than_thought_is_asked_for_a_plain_listing(
    answer: bytes | tuple[int, bytes],
) -> None:
    async def work(reader: ServerReader) -> None:
        assert await reader.has_database("N")

    answers = {"/storage/N?format=folderlist": answer, "/storage/N": tree("")}
    assert with_reader(work, answers).asked == ["/storage/N?format=folderlist", "/storage/N"]


def test_busy_server_is_no_older_server() -> None:
    async def work(reader: ServerReader) -> None:
        with pytest.raises(RejectedError):
            await reader.has_database("N")

    assert set(with_reader(work, {"/storage/N?format=folderlist": (503, b"")}).asked) == {
        "/storage/N?format=folderlist"
    }


def test_server_that_cannot_be_reached_is_no_missing_database() -> None:
    class Broken(Script):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            raise httpx2.ConnectError("no")

    async def main() -> None:
        async with AsyncMediaServer("http://x", transport=Broken({}), clock=Noon()) as client:
            with pytest.raises(InDoubtError):
                await ServerReader(client).has_database("N")

    asyncio.run(main())
