"""Titles that are not found offer the nearest; names that servers make up; many targets are only counted."""

from __future__ import annotations

import asyncio
import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msauto.model.desired import DesiredAsset, Intent, SelectRef, ServerIntents, Sourced, TaskSource
from msauto.model.live import Asset
from msauto.model.plan import Address
from msauto.model.server import ServerSpec
from msauto.planning.asset_survey import SurveyContext
from msauto.planning.similar_titles import nearest_titles, not_found
from msauto.planning.survey import Survey, survey
from tests.small_ports import DictDisk, DictMemory
from tests.tables import table
from tests.unit.planning.planning_world import Clip, Server, WorldReader, stage
from tests.unit.planning.playbook_forms import asset_intent

LIVE = ["EP001", "EP002", "Evening News", "Вечерние новости", "Promo 7 – Weekend"]


@table("planning/nearest_titles", "title", "near")
def test_nearest_titles(title: str, near: list[str]) -> None:
    assert list(nearest_titles(title, LIVE)) == near


@given(st.text(min_size=1, max_size=20), st.lists(st.text(max_size=20), max_size=20))
def test_at_most_three_live_titles_are_offered(title: str, live: list[str]) -> None:
    near = nearest_titles(title, live)
    assert set(near) <= set(live)
    assert len(near) == len(set(near)) <= 3


@pytest.mark.parametrize(
    ("database", "message"),
    [("NEWS", "folder 'Raww' not found in database NEWS"), ("NEWZ", "database 'NEWZ' not found")],
)
def test_a_missing_folder_may_be_that_of_a_missing_database(database: str, message: str) -> None:
    reader = WorldReader(Server(clips={"Film": Clip("Film", folder="Raw")}, folders={"Raw"}))
    spec = ServerSpec("studio-a", "http://studio-a:7901")
    error = asyncio.run(not_found(reader, spec, "folder", "Raww", None, database))
    assert error.message == f"server studio-a: {message}"
    assert ("did you mean 'Raw'" in error.remedy) == (database == "NEWS")


# An empty title is desired and the server shows a name: it may be generated, so a warning reports it


@table("planning/names_made_up", "shown", "title", "told")
def test_a_name_that_may_be_made_up(shown: dict[str, str], title: str, told: bool) -> None:
    context = stage(Clip("Film", segments={3: {"start": 0, "duration": 10, **shown}}))
    desired = {"number": 3, "start": 0, "duration": 10, "title": title}
    survey = context.plan(asset_intent({"title": "Film", "segments": [desired]}))
    warnings = [each for each in survey.warnings if "omit `title`" in each]
    assert bool(warnings) is told
    assert all("segment 3 shows the name 'Segment 3' and no title" in each for each in warnings)


# A select that leads to many: what is unchanged is counted, and no live state is kept once a target is planned


MANY = 100
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
    clips = [
        Clip(f"Film {number}", folder="Raw", fields={"comment": "as it is"})
        for number in range(MANY)
    ]
    reader = Watcher(Server(clips={clip.title: clip for clip in clips}, folders={"Raw"}))
    reader.before = alive_assets()
    desired = DesiredAsset(SOURCE, parts={"field": {"comment": Sourced(comment, SOURCE)}})
    everything = Intent(SelectRef("NEWS", ("Raw",)), SOURCE, lambda _: desired)
    work = ServerIntents(ServerSpec("studio-a", "http://studio-a:7901"), (everything,))
    return asyncio.run(
        survey(
            work.intents,
            SurveyContext(work.server, reader, DictMemory(), DictDisk().sha256),
            forks=FORKS,
        )
    ), reader.held


def test_of_what_is_unchanged_nothing_is_kept_but_the_count() -> None:
    found, held = surveyed("as it is")
    assert (found.unchanged, found.targets) == (MANY, ())
    assert held <= 4 * FORKS


def test_of_what_changes_the_target_is_kept_in_order() -> None:
    found, held = surveyed("another")
    assert [target.name for target in found.targets] == [f"Film {number}" for number in range(MANY)]
    assert found.unchanged == 0
    assert held <= 4 * FORKS
