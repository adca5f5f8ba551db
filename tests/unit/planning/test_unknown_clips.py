"""What each step does where nothing shows whether two sightings are of one clip (docs/explanation/identity.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec import structs

from msauto.aspects import ASPECTS
from msauto.errors import PlanningError
from msauto.model.clip_entries import are_one_clip, entries_in_doubt, entries_of
from msauto.model.desired import DesiredAsset, TaskSource
from msauto.model.identity import ClipEntries, ClipIdentity, compare_clips, is_another_clip
from msauto.model.live import Asset, Entry, Folder, Link, Listing
from msauto.model.plan import Address, Change, Target
from msauto.model.ports import LiveTarget
from msauto.planning.deletion import check_deletion, check_link_titles, why_not_deleted
from msauto.planning.fact_layers import FoundClip
from msauto.planning.target_groups import check_entry
from msauto.planning.target_reading import why_title_is_taken
from tests.entries import listed_entry
from tests.unit.planning.planning_world import Clip, Stage, stage
from tests.unit.planning.playbook_forms import asset_intent

KNOWN = {"create_time": "2026-11-20T08:00:00", "frames": "250"}
FILM = Asset("Film", ("Raw",), link_id=1, attributes=KNOWN)
TONIGHT = Asset("Tonight", ("Raw",), link_id=7, attributes={"frames": "250"})
HOME = listed_entry(("Raw",), "Film", 1, attributes=KNOWN)
LINK = listed_entry(("Playout",), "Tonight", 7, attributes={"frames": "250"})


@dataclass
class OneListing:
    """A server by its entries, and its answers by title."""

    entries: Sequence[Entry]
    answers: Sequence[Asset]

    async def read_asset(self, _: str, address: Address) -> Asset | None:
        return next((each for each in self.answers if each.title == address.name), None)

    async def read_entries(self, _: str, asset: Asset, *, in_doubt: bool = False) -> ClipEntries:
        return entries_of(asset, self.entries, in_doubt=in_doubt)

    def fresh(self) -> OneListing:
        return self

    async def read_links(self, _: str, asset: Asset) -> tuple[Link, ...]:
        return entries_of(asset, self.entries).links

    async def read_folder(self, _: str, folder: Folder) -> Listing:
        return Listing(folder, tuple(each for each in self.entries if each.folder == folder))


SERVER: Any = OneListing([HOME, LINK], [FILM, TONIGHT])


def test_these_two_are_unknown() -> None:
    assert {compare_clips(FILM, each).answer for each in (TONIGHT, LINK)} == {"unknown"}


def test_a_later_read_goes_by_the_title() -> None:
    assert not is_another_clip(ClipIdentity.of(FILM), Asset("Film", attributes={"frames": "250"}))


def test_a_later_read_of_another_entry_stops() -> None:
    kept = ClipIdentity.of(FILM)
    assert is_another_clip(kept, TONIGHT, {"link_id"})
    assert not is_another_clip(kept, structs.replace(TONIGHT, attributes=KNOWN), {"link_id"})


@pytest.mark.parametrize(("link_id", "goes_on"), [(7, True), (None, True), (8, False)])
def test_what_select_found_needs_the_link_id(link_id: int | None, goes_on: bool) -> None:
    bare = listed_entry(("Playout",), "Tonight", link_id)
    if goes_on:
        check_entry(bare, TONIGHT, TaskSource(""))
        return
    with pytest.raises(
        PlanningError, match="another link_id, not reported by both: file, original name, creation"
    ):
        check_entry(bare, TONIGHT, TaskSource(""))


def test_in_a_listing_only_the_title_makes_an_entry_a_link() -> None:
    assert entries_of(FILM, [HOME, LINK]).links == ()
    same = listed_entry(("Playout",), "Film", 7, attributes={"frames": "250"})
    assert entries_of(FILM, [HOME, same]).links == (Link(("Playout",), "Film", 7),)


def test_at_the_place_that_a_task_names_it_is_a_link() -> None:
    shown = ASPECTS["link"].things(LiveTarget(asset=FILM, places={("Playout", "Tonight"): [LINK]}))
    assert shown == {"Playout/Tonight": {"link_id": 7, "entries": 1}}


def test_links_are_looked_for_in_the_same_order_in_every_run() -> None:
    """Their keys are a set, and the folders are read one by one."""
    needed = ASPECTS["link"].needs(("Playout/Film", "Films/Film"))
    assert needed.places == (("Films", "Film"), ("Playout", "Film"))


@pytest.mark.parametrize(("link_id", "goes_on"), [(7, True), (None, False), (8, False)])
def test_the_fields_of_a_link_need_its_link_id(link_id: int | None, goes_on: bool) -> None:
    server: Any = OneListing([HOME, LINK], [FILM, structs.replace(TONIGHT, link_id=link_id)])
    change = Change(
        "change",
        "link",
        "Playout/Tonight",
        {"comment": ""},
        {"comment": "x"},
        "live",
        True,
        TaskSource(""),
    )
    if goes_on:
        asyncio.run(check_link_titles(server, "NEWS", FILM, [change]))
        return
    with pytest.raises(PlanningError, match="does not report to which"):
        asyncio.run(check_link_titles(server, "NEWS", FILM, [change]))


@pytest.mark.parametrize("losses", [0, 1], ids=["named", "exactly"])
def test_a_link_is_not_removed_by_its_title(losses: int) -> None:
    change = Change(
        "delete",
        "link",
        "Playout/Tonight",
        {"link_id": 7},
        None,
        "live",
        True,
        TaskSource(""),
        losses,
    )
    with pytest.raises(
        PlanningError,
        match=r"too little to decide .* \(the same length; not reported by both: file",
    ):
        asyncio.run(check_link_titles(SERVER, "NEWS", FILM, [change], home=("Raw",)))


def test_what_a_clip_that_loses_something_is_protected_by() -> None:
    assert asyncio.run(entries_in_doubt(SERVER, "NEWS", FILM)).places == (("Playout", "Tonight"),)


def test_a_deletion_needs_consent() -> None:
    desired = DesiredAsset(TaskSource(""), present=False)
    found = FoundClip(FILM, Address("Film"), "Film")
    with pytest.raises(
        PlanningError,
        match=r"several entries .*; Playout/Tonight may be one \(the same length; not",
    ):
        asyncio.run(check_deletion(SERVER, "NEWS", found, (), desired))
    consented = structs.replace(desired, with_links=True)
    assert asyncio.run(check_deletion(SERVER, "NEWS", found, (), consented)) is not None


@pytest.mark.parametrize(
    "named", [{"title": "Tonight"}, {"select": {"folder": "Playout"}}], ids=["title", "select"]
)
def test_a_clip_is_not_deleted_while_a_task_names_what_may_be_its_link(
    named: dict[str, Any],
) -> None:
    other = asset_intent({**named, "fields": {"comment": "x"}})
    for tasks in ((DELETED, other), (other, DELETED)):
        errors = {target.name: target.error for target in spare().plan(*tasks).targets}
        why = errors["Film"] or ""
        assert "'Film' is to be deleted, and" in why
        assert "names Playout/Tonight, which may be a link of it" in why
        assert errors["Tonight"] is None
    (left_out,) = spare().plan(DELETED, left_out=(other,)).targets
    assert "names Playout/Tonight, which may be a link of it" in str(left_out.error)


def test_a_task_that_asks_nothing_of_a_possible_link_does_not_protect_its_clip() -> None:
    absent = asset_intent({"title": "Tonight", "state": "absent", "with_links": True})
    idle = structs.replace(absent, evaluate=lambda _: None)
    for other in (absent, idle):
        assert [
            str(each.error) for each in spare().plan(DELETED, other).targets if each.name == "Film"
        ] == ["None"]
        (film,) = spare().plan(DELETED, left_out=(other,)).targets
        assert film.error is None


DELETED = asset_intent({"title": "Film", "state": "absent", "with_links": True})


def spare() -> Stage:
    """A server that reports the length alone, so that Tonight may be a link of Film, or another clip."""
    film = Clip("Film", folder="Raw", links=["Playout/Tonight"], create_time="", hires=None)
    context = stage(film, folders={"Raw", "Playout"})
    context.server.reports_names = False
    return context


def test_an_entry_that_the_plan_did_not_show_stops_a_deletion() -> None:
    target = Target("studio-a", "NEWS", "asset", "Film", folder="Raw", clip=ClipIdentity.of(FILM))
    for places, why in (((), "Playout/Tonight shows it, too"), (("Playout/Tonight",), None)):
        planned = structs.replace(target, places=places)
        assert (
            asyncio.run(why_not_deleted(planned, 0, FILM, SERVER, SERVER, is_resent=False)) == why
        )


def test_a_clip_that_was_deleted_while_open_is_there_if_its_title_may_lead_to_it() -> None:
    desired = DesiredAsset(TaskSource(""), present=False)
    found = FoundClip(FILM, Address("7", "handle"), "Film")
    for frames, is_there in (("250", True), ("99", False)):
        server: Any = OneListing([], [Asset("Film", attributes={"frames": frames})])
        entries = asyncio.run(check_deletion(server, "NEWS", found, (), desired))
        assert (entries is not None) is is_there


def test_two_names_are_two_targets() -> None:
    assert not asyncio.run(are_one_clip(SERVER, "NEWS", FILM, TONIGHT))


def test_a_rename_does_not_take_the_title_of_what_may_be_another_clip() -> None:
    target = Target(
        "studio-a",
        "NEWS",
        "asset",
        "Film",
        address=Address("Film"),
        address_after=Address("Tonight"),
    )
    why = asyncio.run(why_title_is_taken(target, SERVER, FILM))
    assert why == "another asset now has the title 'Tonight'"


def test_a_clip_that_is_recorded_meanwhile_is_no_link_if_it_has_another_file() -> None:
    """No entry has a ``link_id``: the listing shows it as long as the clip that is deleted, the answer longer."""
    film = Asset("Film", ("Raw",), hires="film.mxf", attributes={"frames": "250"})
    entry = listed_entry(("Raw",), "Live", None, attributes={"frames": "250"})
    for hires, is_link in (("live.mxf", False), (None, True)):
        live = Asset("Live", ("Raw",), hires=hires, attributes={"frames": "300"})
        server: Any = OneListing([entry], [live])
        found = asyncio.run(entries_in_doubt(server, "NEWS", film))
        assert (entry in found.same) is is_link
