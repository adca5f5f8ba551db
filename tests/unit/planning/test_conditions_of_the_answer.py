"""Conditions and values that a listing answered are asked again of the clip's own answer, because a listing lags."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import structs

from msauto.model.desired import Desired, DesiredAsset, Intent, SelectRef, Sourced, TaskSource, TitleRef
from msauto.model.facts import Facts
from msauto.model.live import Asset, Entry
from msauto.model.plan import Address
from msauto.model.server import ServerSpec
from msauto.planning.asset_survey import SurveyContext
from msauto.planning.survey import Survey, survey
from tests.entries import listed_entry
from tests.unit.planning.planning_world import Clip, Server, WorldReader
from tests.unit.planning.playbook_forms import asset_intent
from tests.unit.planning.small_ports import DictMemory

Where = Callable[[Facts], bool]


@dataclass
class _Lagging(WorldReader):
    """A server whose listing shows other attributes of clips than their answers, in which ``silent`` ones are not."""

    listed: Mapping[str, str] = field(default_factory=dict)
    silent: str = ""

    async def read_select(self, select: SelectRef) -> Sequence[Entry] | None:
        entries = await WorldReader.read_select(self, select) or ()
        return [
            listed_entry(e.folder, e.title, e.link_id, e.finalized, {**e.attributes, **self.listed}) for e in entries
        ]

    async def read_asset(self, database: str, address: Address) -> Asset | None:
        asset = await WorldReader.read_asset(self, database, address)
        if asset is None:
            return None
        shown = {name: text for name, text in asset.attributes.items() if name != self.silent}
        return structs.replace(asset, attributes=shown)


def lagging(comment: str, *, listed: str, silent: str = "", links: Sequence[str] = ()) -> _Lagging:
    clip = Clip("Film", folder="Raw", fields={"comment": comment}, links=[*links])
    server = Server({"Film": clip}, folders={"Raw", "Playout"})
    return _Lagging(server, listed={"comment": listed}, silent=silent)


def plan(reader: WorldReader, *intents: Intent) -> Survey:
    server = ServerSpec("studio-a", "http://127.0.0.1:7901")
    return asyncio.run(survey(intents, SurveyContext(server, reader, DictMemory()), forks=1))


def source(name: str) -> TaskSource:
    return TaskSource(f"{name}.yml", 1, 1, name)


def says(word: str) -> Where:
    return lambda facts: facts.get("comment") == word


def field_is(name: str, value: str, task: str) -> DesiredAsset:
    return DesiredAsset(source(task), {"field": {name: Sourced(value, source(task))}})


def gone(name: str = "Old ones go") -> DesiredAsset:
    return DesiredAsset(source(name), present=False)


def select(desired: Desired, *, where: Where | None = None, when: Where | None = None, folder: str = "Raw") -> Intent:
    def evaluate(facts: Facts) -> Desired | None:
        return desired if when is None or when(facts) else None

    ref = SelectRef("NEWS", (folder,), where=where)
    return Intent(ref, TaskSource("task.yml", 1, 1, "Old ones go"), evaluate)


def changes(found: Survey) -> list[tuple[str, str, object]]:
    return [(each.action, each.key, each.after) for target in found.targets for each in target.changes]


def test_a_clip_whose_answer_does_not_fulfil_where_is_not_deleted() -> None:
    reader = lagging("KEEP", listed="DELETE")
    found = plan(reader, select(gone(), where=says("DELETE")))
    assert (found.targets, found.skipped) == ((), 1)
    assert reader.asked == ["select Raw", "asset Film"]
    (warning,) = found.warnings
    assert "'Film'" in warning
    assert "comment is 'DELETE' in the listing and 'KEEP' in the answer" in warning
    assert "the task 'Old ones go' (task.yml:1:1)" in warning


def test_a_clip_whose_answer_fulfils_where_is_deleted() -> None:
    found = plan(lagging("DELETE", listed="DELETE"), select(gone(), where=says("DELETE")))
    assert [each.action for target in found.targets for each in target.changes] == ["delete"]
    assert found.warnings == ()


def test_when_is_asked_again_of_the_answer() -> None:
    found = plan(lagging("KEEP", listed="DELETE"), select(gone(), when=says("DELETE")))
    assert (found.targets, found.skipped) == ((), 1)


def test_a_when_that_the_listing_denies_holds_by_the_answer_where_it_is_read_anyway() -> None:
    reader = lagging("Ready", listed="raw")
    marked = select(field_is("user_0", "on air", "mark"), when=says("Ready"))
    assert (plan(reader, marked).targets, reader.asked) == ((), ["select Raw"])
    named = Intent(TitleRef("NEWS", "Film"), source("t"), lambda _: field_is("user_1", "x", "t"))
    assert changes(plan(lagging("Ready", listed="raw"), marked, named)) == [
        ("change", "user_0", "on air"),
        ("change", "user_1", "x"),
    ]


def test_a_value_is_made_of_the_answer() -> None:
    def evaluate(facts: Facts) -> Desired:
        return field_is("user_0", f"was {facts.get('comment')}", "copy")

    copied = Intent(SelectRef("NEWS", ("Raw",)), source("copy"), evaluate)
    assert changes(plan(lagging("new", listed="old"), copied)) == [("change", "user_0", "was new")]


def test_only_the_select_whose_where_does_not_hold_is_left_out() -> None:
    old = select(field_is("user_0", "x", "old"), where=says("DELETE"))
    every = select(field_is("user_1", "y", "every"))
    assert changes(plan(lagging("KEEP", listed="DELETE"), old, every)) == [("change", "user_1", "y")]


def test_what_the_answer_does_not_report_stays_as_the_listing_has_it() -> None:
    reader = lagging("KEEP", listed="DELETE", silent="comment")
    copied = Intent(
        SelectRef("NEWS", ("Raw",), where=says("DELETE")),
        source("copy"),
        lambda facts: field_is("user_0", f"{facts.get('frames')} {facts.get('comment')}", "copy"),
    )
    reader.listed = {"comment": "DELETE", "user_5": "later"}
    assert changes(plan(reader, copied)) == [("change", "user_0", "250 DELETE")]


def test_a_link_that_a_select_chose_by_its_title_is_asked_by_its_own_answer() -> None:
    reader = lagging("x", listed="x", links=["Playout/Film on air"])
    marked = asset_intent({"title": "-", "markers": [{"at": 0, "track": "General"}]}).evaluate(Facts())
    assert marked is not None
    on_air = select(marked, where=lambda facts: facts.get("title") == "Film on air", folder="Playout")
    named = Intent(TitleRef("NEWS", "Film"), source("t"), lambda _: field_is("user_0", "x", "t"))
    found = plan(reader, on_air, named)
    assert [key for _, key, _ in changes(found)] == ["user_0", "General@0"]
    assert found.warnings == ()
