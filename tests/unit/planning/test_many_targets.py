"""A select that leads to many: what is unchanged is counted, and no live state is kept once a target is planned."""

from __future__ import annotations

import asyncio
import gc

from msauto.model.desired import DesiredAsset, Intent, SelectRef, ServerIntents, Sourced, TaskSource
from msauto.model.live import Asset
from msauto.model.plan import Address
from msauto.model.server import ServerSpec
from msauto.planning.asset_survey import SurveyContext
from msauto.planning.survey import Survey, survey
from tests.unit.planning.planning_world import Clip, Server, WorldReader
from tests.unit.planning.small_ports import DictMemory

MANY = 400
FORKS = 4
SOURCE = TaskSource("all.yml", 1, 1, "All of them")


class Watcher(WorldReader):
    """Counts, while the last assets are read, what is still held of the others."""

    held = 0
    before = 0  # what earlier tests of this process still hold

    async def read_asset(self, database: str, address: Address) -> Asset | None:
        if address.name == f"Film {MANY - 1}":
            self.held = alive_assets() - self.before
        return await super().read_asset(database, address)


def alive_assets() -> int:
    gc.collect()
    return sum(isinstance(each, Asset) for each in gc.get_objects())


def surveyed(comment: str) -> tuple[Survey, int]:
    clips = [Clip(f"Film {number}", folder="Raw", fields={"comment": "as it is"}) for number in range(MANY)]
    reader = Watcher(Server(clips={clip.title: clip for clip in clips}, folders={"Raw"}))
    reader.before = alive_assets()
    desired = DesiredAsset(SOURCE, parts={"field": {"comment": Sourced(comment, SOURCE)}})
    everything = Intent(SelectRef("NEWS", ("Raw",)), SOURCE, lambda _: desired)
    work = ServerIntents(ServerSpec("studio-a", "http://studio-a:7901"), (everything,))
    return asyncio.run(survey(work.intents, SurveyContext(work.server, reader, DictMemory()), forks=FORKS)), reader.held


def test_of_what_is_unchanged_nothing_is_kept_but_the_count() -> None:
    found, held = surveyed("as it is")
    assert (found.unchanged, found.targets) == (MANY, ())
    assert held <= 4 * FORKS


def test_of_what_changes_the_target_is_kept_in_order() -> None:
    found, held = surveyed("another")
    assert [target.name for target in found.targets] == [f"Film {number}" for number in range(MANY)]
    assert found.unchanged == 0
    assert held <= 4 * FORKS
