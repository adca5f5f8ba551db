"""The survey: who is read, how often, what becomes one target, and that errors stay with their target."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Callable
from typing import Any

from msgspec import structs

from msauto.aspects.marker import DesiredMarkers
from msauto.errors import InDoubtError
from msauto.model.desired import (
    Desired,
    DesiredAsset,
    Handler,
    IdRef,
    Intent,
    Ref,
    SelectRef,
    ServerIntents,
    Sourced,
    TaskSource,
    TitleRef,
)
from msauto.model.facts import Facts
from msauto.model.live import Asset
from msauto.model.plan import Address, Change, Target
from msauto.model.server import ServerSpec
from msauto.model.snapshot import Json
from msauto.planning.asset_survey import SurveyContext
from msauto.planning.handlers import due_handlers
from msauto.planning.limits import Protection
from msauto.planning.survey import Survey, survey
from tests.small_ports import DictDisk, DictMemory
from tests.unit.planning.planning_world import Clip, Server, WorldReader, stage
from tests.unit.planning.playbook_forms import asset_intent


def source(name: str) -> TaskSource:
    return TaskSource(f"{name}.yml", 1, 1, name)


def comment(text: str, name: str = "task") -> DesiredAsset:
    return DesiredAsset(source(name), parts={"field": {"comment": Sourced(text, source(name))}})


def absent(name: str = "task", *, with_links: bool = False) -> DesiredAsset:
    return DesiredAsset(source(name), present=False, with_links=with_links)


def intent(
    ref: Ref,
    desired: Desired | None,
    name: str = "task",
    when: Callable[[Facts], bool] | None = None,
) -> Intent:
    def evaluate(facts: Facts) -> Desired | None:
        return desired if when is None or when(facts) else None

    return Intent(ref, source(name), evaluate)


def film(title: str = "Film") -> TitleRef:
    return TitleRef("NEWS", title)


def raw(title: str, **clip: Any) -> Clip:
    return Clip(title, **{"folder": "Raw", "fields": {"comment": ""}, **clip})


def only(found: Survey) -> Target:
    (target,) = found.targets
    return target


# One clip, one target ------------------------------------------------------------------------------------------


def test_a_former_title_in_two_unicode_forms_is_no_chain() -> None:
    context = stage(raw("\u00e9"))
    itself = asset_intent({"title": "\u00e9", "was": ["e\u0301"], "fields": {"comment": "x"}})
    found = context.plan(asset_intent({"title": "Film", "was": ["\u00e9"]}), itself)
    assert all("tuple" not in str(target.error) for target in found.targets)


# Select --------------------------------------------------------------------------------------------------------


def test_a_clip_is_not_deleted_for_a_link_where_no_folder_is_reported() -> None:
    context = stage(
        raw("Film", links=["Playout/Film", "Late/Film on air"]), folders={"Raw", "Playout", "Late"}
    )
    context.server.clips["Film"].folder = None
    consented = absent(with_links=True)
    for ref in (film("Film on air"), SelectRef("NEWS", ("Late",)), SelectRef("NEWS", ("Playout",))):
        assert "may be a link of" in str(only(context.plan(intent(ref, consented))).error)
    assert "may be a link of Late/Film on air" in str(
        only(context.plan(intent(film(), consented))).error
    )
    context.server.ids = {"handle:7": "Film"}
    assert (
        only(context.plan(intent(IdRef("NEWS", "handle", "7"), consented))).requests[0].method
        == "DELETE"
    )


# Errors stay with their target ---------------------------------------------------------------------------------


class _Failing(WorldReader):
    """Reading one clip fails; and it counts how many readings are under way."""

    busy = 0
    busiest = 0

    async def read_asset(self, database: str, address: Address) -> Asset | None:
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        await asyncio.sleep(0)
        self.busy -= 1
        if address.name == "Bad":
            raise InDoubtError("the connection was cut", server="studio-a")
        return await WorldReader.read_asset(self, database, address)


def _survey(reader: WorldReader, *intents: Intent, forks: int = 3) -> Survey:
    work = ServerIntents(ServerSpec("studio-a", "http://127.0.0.1:7901"), intents)
    return asyncio.run(
        survey(
            work.intents,
            SurveyContext(work.server, reader, DictMemory(), DictDisk().sha256),
            forks=forks,
        )
    )


def test_a_server_error_stays_with_its_target_and_forks_bound_the_reading() -> None:
    titles = [*(f"Clip {n}" for n in range(40)), "Bad"]
    reader = _Failing(Server({title: raw(title) for title in titles}))
    found = _survey(reader, *(intent(film(title), comment("x")) for title in titles))
    assert [target.name for target in found.targets if target.error] == ["Bad"]
    assert "connection was cut" in str(found.targets[-1].error)
    assert len(found.targets) == 41
    assert reader.busiest == 3


class _Folding(WorldReader):
    """A server that finds titles in any case, and whose answers have no title."""

    async def read_asset(self, database: str, address: Address) -> Asset | None:
        asset = await WorldReader.read_asset(
            self, database, Address(address.name.lower(), address.namespace)
        )
        return (
            None
            if asset is None
            else structs.replace(asset, title=None if address.namespace else address.name)
        )


def test_a_clip_that_is_listed_under_another_title_is_not_deleted() -> None:
    reader = _Folding(Server({"film": raw("film")}, folders={"Raw"}))
    assert "lists as Raw/film" in str(only(_survey(reader, intent(film(), absent()))).error)
    assert only(_survey(reader, intent(film("film"), absent()))).requests[0].method == "DELETE"


def test_the_listed_title_of_a_clip_found_by_its_id_is_a_place_of_it() -> None:
    """So a protected title protects it, although its answer has no title."""
    reader = _Folding(Server({"film": raw("film")}, folders={"Raw"}, ids={"handle:7": "film"}))
    assert only(_survey(reader, intent(IdRef("NEWS", "handle", "7"), absent()))).places == (
        "Raw/film",
    )


def test_a_template_has_the_id_as_title_of_a_clip_whose_answer_has_none() -> None:
    reader = _Folding(Server({"film": raw("film")}, folders={"Raw"}, ids={"handle:7": "film"}))
    by_id = Intent(
        IdRef("NEWS", "handle", "7"),
        source("task"),
        lambda facts: comment(f"of {facts.get('title')}"),
    )
    assert only(_survey(reader, by_id)).changes[0].after == "of handle:7"


class _Normalizing(WorldReader):
    """A server that finds titles in any normalization form, and whose answers have no title."""

    async def read_asset(self, database: str, address: Address) -> Asset | None:
        found = await WorldReader.read_asset(
            self, database, Address(unicodedata.normalize("NFC", address.name))
        )
        return None if found is None else structs.replace(found, title=address.name)


def test_two_forms_of_a_title_that_no_answer_has_are_one_clip() -> None:
    composed, decomposed = "\u00c9t\u00e9", "E\u0301te\u0301"
    tasks = intent(film(composed), comment("x")), intent(film(decomposed), comment("y"))
    clip = raw(composed, create_time="", hires=None)
    reader = _Normalizing(Server({composed: clip}, folders={"Raw"}, reports_names=False))
    assert "different values" in str(only(_survey(reader, *tasks)).error)


def test_a_title_and_an_id_that_get_one_answer_are_one_target_without_a_link_id() -> None:
    context = stage(raw("Film", link_id=None), ids={"handle:7": "Film"})
    by_id = intent(IdRef("NEWS", "handle", "7"), comment("x"))
    assert "different values" in str(only(context.plan(by_id, intent(film(), comment("y")))).error)


def test_a_version_without_key_ids_is_an_error() -> None:
    context = stage(raw("Film"), ids={"handle:7": "Film"}, version=(2, 9, 68))
    assert "2.9.69" in str(
        only(context.plan(intent(IdRef("NEWS", "handle", "7"), comment("x")))).error
    )


# Commands ------------------------------------------------------------------------------------------------------


def test_entries_of_what_is_deleted_are_read_once_and_those_of_removals_where_a_limit_needs_them() -> (
    None
):
    context = stage(raw("Film", links=["Master/Film"]), raw("Other", link_id=2))
    gone = only(context.plan(intent(film(), absent(with_links=True))))
    assert gone.places == ("Master/Film",)
    assert gone.changes[0].before == {
        "folder": "Raw",
        "frames": 250,
        "create_time": "2026-11-20T08:00:00",
        "links": ["Master/Film"],
    }
    cleared = intent(
        film(), DesiredAsset(source("task"), {"marker": DesiredMarkers(exactly=source("task"))})
    )
    context.server.clips["Film"].markers = [{"uid": 1, "frame": 0, "track": "General"}]
    assert only(context.plan(cleared)).places == ()
    assert only(context.plan(cleared, protection=Protection(["Master/*"]))).places == (
        "Master/Film",
    )


def test_all_handlers_of_a_name_whose_answer_was_lost_are_held() -> None:
    handlers = tuple(
        Handler("Export", source("handler"), lambda _: None, order=(play,)) for play in range(2)
    )
    desired = comment("Ready")
    unknown = Change("change", "field", "comment", None, "Ready", "none", False, source("task"))
    memory: dict[str, Json] = {"pending:handler:Export": {"run": "r1", "unknown": True}}
    due = due_handlers(handlers, [(handlers, desired)], desired, [unknown], memory)
    assert due.calls == []
    assert "it is not sent again, because the changed value is not reported" in due.warnings[0]
    assert due.warnings[0].endswith(
        "\nof its 2 calls for this target, those after the one in question were not sent"
    )
    certain = structs.replace(unknown, before="raw", basis="live")
    assert len(due_handlers(handlers, [(handlers, desired)], desired, [certain], memory).calls) == 2
