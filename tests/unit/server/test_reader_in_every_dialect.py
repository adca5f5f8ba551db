"""The same server read in every dialect of the simulator: the same live state each time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from msauto.model.desired import SelectRef
from msauto.model.live import Listing
from msauto.model.plan import Address
from msauto.model.server import ServerSpec
from msauto.plugins.simulator.embedded import ServerState, SimDialect, Simulator
from msauto.server.client import AsyncMediaServer
from msauto.server.reader import ServerReader
from tests.tables import table

AWKWARD = "Back\\Slash / Film: 50% @ night?"
NEWS = "Новости дня"


def small_state() -> ServerState:
    state = ServerState()
    news = state.add_database("NEWS")
    clip = news.add_clip(
        NEWS, "Raw/2026", frames=1000, create_time="2026-11-19T10:00:00", mime_type=2
    )
    clip.xmp = {"dc:subject": ["news", "evening"], "dc:title": ["Вечер"]}
    news.add_clip(AWKWARD, ("A/B", "C\\D"), frames=50, create_time="2026-11-10T10:00:00")
    news.add_entry(clip, "Playout/Tonight", f"{NEWS} tonight")
    news.make_folder("Empty/Deep")
    state.add_channel("ticker")
    return state


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with Simulator(small_state()) as running:
        yield running


async def read_all(url: str) -> dict[str, Any]:
    async with AsyncMediaServer(ServerSpec("sim", url), read_only=True) as client:
        reader = ServerReader(client)
        asset = await reader.read_asset("NEWS", Address(NEWS))
        awkward = await reader.read_asset("NEWS", Address(AWKWARD))
        assert asset
        assert awkward
        everything = SelectRef("NEWS", recursive=True, created_after=date(2026, 11, 15))
        return {
            "asset": (asset.title, asset.folder, asset.frames, asset.rate, asset.finalized),
            "awkward": (awkward.title, awkward.folder),
            "nothing": await reader.read_asset("NEWS", Address("nothing")),
            "xmp": await reader.read_xmp(
                "NEWS", Address(NEWS), frozenset({"dc:subject", "dc:title"})
            ),
            "no xmp": await reader.read_xmp("NEWS", Address(AWKWARD), frozenset({"dc:subject"})),
            "folder": shown(await reader.read_folder("NEWS", ("Playout", "Tonight"))),
            "awkward folder": shown(await reader.read_folder("NEWS", ("A/B", "C\\D"))),
            "no folder": await reader.read_folder("NEWS", ("Nowhere",)),
            "select": {(e.folder, e.title) for e in await reader.read_select(everything) or ()},
            "flat": [
                e.title for e in await reader.read_select(SelectRef("NEWS", ("Raw", "2026"))) or ()
            ],
            "unknown select": await reader.read_select(
                SelectRef("NEWS", ("Nowhere",), recursive=True)
            ),
            "links": [(link.folder, link.title) for link in await reader.read_links("NEWS", asset)],
            "databases": (await reader.has_database("NEWS"), await reader.has_database("OTHER")),
            "no channel": await reader.read_channel("other"),
            "channel": (await client.channel("ticker")).items,
        }


def shown(listing: Listing | None) -> list[tuple[object, str]] | None:
    return [(entry.folder, entry.title) for entry in listing.entries] if listing else None


@table("server/dialects_read_alike", "switch")
def test_live_state_is_the_same(simulator: Simulator, switch: str) -> None:
    simulator.dialect = SimDialect.parse([switch])
    live = asyncio.run(read_all(simulator.url))
    subject, title = live["xmp"].pop("dc:subject"), live["xmp"].pop("dc:title")
    assert (subject, title, live.pop("xmp")) == (("news", "evening"), ("Вечер",), {})
    assert not any((live.pop("no xmp") or {}).values())
    assert live == {
        "asset": (NEWS, ("Raw", "2026"), 1000, 25, True),
        "awkward": (AWKWARD, ("A/B", "C\\D")),
        "nothing": None,
        "folder": [(("Playout", "Tonight"), f"{NEWS} tonight")],
        "awkward folder": [(("A/B", "C\\D"), AWKWARD)],
        "no folder": None,
        "select": {(("Raw", "2026"), NEWS), (("Playout", "Tonight"), f"{NEWS} tonight")},
        "flat": [NEWS],
        "unknown select": None,
        "links": [(("Playout", "Tonight"), f"{NEWS} tonight")],
        "databases": (True, False),
        "no channel": None,
        "channel": (),
    }
    assert simulator.writes() == []
    targets = [entry.target for entry in simulator.log]
    assert "/storage" not in targets
    assert not any("/WP" in target for target in targets)
    simulator.clear_log()


def test_unreadable_xmp_is_an_answer_too(simulator: Simulator) -> None:
    simulator.dialect = SimDialect.parse(["xmp_shape=unreadable"])

    async def main() -> None:
        async with AsyncMediaServer(simulator.url) as client:
            reader = ServerReader(client)
            assert await reader.read_xmp("NEWS", Address(NEWS), frozenset({"dc:subject"})) is None
            assert await reader.read_xmp("NEWS", Address(NEWS), frozenset()) is None

    asyncio.run(main())
