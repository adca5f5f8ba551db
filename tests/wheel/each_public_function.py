"""One use of each public function and method, as a program that has only the wheel: run, and read by type checkers."""

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, assert_type

import httpx2

import msauto
from msauto import aio
from msauto.plugins.simulator.embedded import Simulator

PLAYS = [
    {
        "name": "Tonight",
        "hosts": "all",
        "database": "NEWS",
        "tasks": [{"asset": {"title": "Long Film", "fields": {"comment": "Ready"}}}],
    }
]


def use_functions(url: str, folder: Path) -> None:
    play = msauto.load(PLAYS, server=url, extra_vars={"season": 3}, state_dir=folder)
    assert_type(play, msauto.Loaded)
    plan = msauto.plan(play)
    assert_type(plan, msauto.Plan)
    assert_type(plan.to_text(), str)
    for change in plan.changes:
        assert_type(change.key, str)
    for error in plan.errors:
        assert_type(error.remedy, str)
    assert plan.summary.requests == 1
    rehearsal = msauto.rehearse(play)
    assert_type(rehearsal, msauto.Rehearsal)
    assert_type(rehearsal.ok, bool)
    assert rehearsal.ok
    result = msauto.apply(plan, allow_delete=0, observer=print)
    assert_type(result, msauto.Result)
    assert_type(result.ok, bool)
    assert [target.outcome for target in result.targets] == ["changed"]
    (run,) = msauto.history(state_dir=folder)
    assert msauto.history(run.run, state_dir=folder).summary.run == result.run
    assert msauto.undo(result.run, server=url, state_dir=folder).ok
    assert "Long Film" in msauto.export(title="Long Film", server=url, database="NEWS").text


async def use_functions_with_asyncio(url: str, folder: Path) -> None:
    play = await aio.load(PLAYS, server=url, state_dir=folder)
    plan = await aio.plan(play)
    result = await aio.apply(plan)
    assert_type(result, msauto.Result)
    assert len(await aio.history(state_dir=folder)) == 3
    assert (await aio.undo("last", server=url, state_dir=folder)).ok
    assert (await aio.export(title="Long Film", server=url, database="NEWS")).text
    async with msauto.AsyncMediaServer(url) as server:
        assert_type(await server.asset("NEWS", "Long Film"), msauto.Asset)


def read(server: msauto.MediaServer, folder: Path) -> None:
    clip = server.asset("NEWS", "Long Film")
    assert_type(clip, msauto.Asset)
    assert_type(clip.create_time, datetime | None)
    assert_type(clip.fps, int | Fraction | None)
    assert_type(server.databases(), tuple[msauto.Database, ...])
    assert_type(server.list("NEWS", "Films", recursive=True), msauto.Listing)
    assert_type(server.list_folders("NEWS"), msauto.Listing)
    assert_type(server.list_mam("NEWS"), tuple[msauto.MamAsset, ...])
    assert server.xmp("NEWS", "Long Film") is not None
    assert_type(server.thumbnail("NEWS", "Long Film", pos="00:00:10:00", w=64, h=36), bytes)
    assert server.download_proxy("NEWS", "Promo 1", "WP2", folder / "promo.mp4") > 0
    assert (
        server.download(msauto.Request("GET", "/storage/NEWS@Promo%201/WP2"), folder / "again.mp4")
        > 0
    )
    assert_type(server.channels(), tuple[str, ...])
    assert_type(server.channel("ticker"), msauto.RssChannel)


def write(server: msauto.MediaServer) -> Sequence[msauto.Answer]:
    database, title = "NEWS", "Long Film"
    clip = server.asset(database, title)
    answers = [
        server.set_field(database, title, "comment", "Ready"),
        server.set_field(database, title, "icon_pos", "00:00:10:00"),
        server.set_user_fields(
            database, title, {"dc:subject": ["film", "evening"], "dc:title": "Film"}
        ),
        server.create_segment(database, title, 1, 0, "00:10:00:00", title="Reel 1", keywords="a b"),
        server.delete_segment(database, title, 1),
        server.create_segmentation(database, title, "00:10:00:00", title="Part"),
        server.create_marker(
            database, title, frame="00:00:10:00", track="Cue Point", fields={"rating": 3}
        ),
        server.copy_link(database, title, "Tonight", "Playout/Tonight"),
        server.restore(database, "Archived Film")
        if clip.archive
        else server.send(msauto.Request("GET", "/rss")),
        server.command(database, title, "SETFIELD", {"name": "comment", "val": "Done"}),
        server.put_rss("ticker", "n-9.txt", "Headline"),
        server.delete_rss("ticker", "n-9"),
        server.load_xmp(database, "TRAFFIC", b"<xmp/>"),
        server.export_version(database, title, ns="title"),
    ]
    uid = server.asset(database, title).markers[-1].uid
    return [*answers, server.delete_marker(database, title, uid), server.delete(database, "EP010")]


def use_client(url: str, folder: Path) -> None:
    with msauto.MediaServer(url, timeout=30, read_only=True) as server:
        read(server, folder)
        try:
            server.copy_program_fields("NEWS", "Long Film")
            server.move_to_asset("NEWS", "Long Film", "4711", house_number="H1")
        except msauto.RefusedError as error:
            assert_type(error.remedy, str)
    with msauto.MediaServer(
        url, auth=("ops", "secret"), timeout=msauto.Timeouts(read=10)
    ) as server:
        assert all(answer.status == 200 for answer in write(server))


def use_transport() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, text='<Clip link_id="1"><Attr name="title">Film</Attr></Clip>')

    plays: list[dict[str, Any]] = [
        {"hosts": "all", "database": "NEWS", "tasks": [{"asset": {"title": "Film"}}]}
    ]
    play = msauto.load(plays, server="studio-a", transport=httpx2.MockTransport(answer))
    assert not msauto.plan(play).changes


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    with Simulator() as studio:
        use_functions(studio.url, folder / "state")
        asyncio.run(use_functions_with_asyncio(studio.url, folder / "state"))
        use_client(studio.url, folder)
    use_transport()
    print("all used", file=sys.stdout)


if __name__ == "__main__":
    main()
