"""What each step does where nothing shows whether two sightings are of one clip (docs/explanation/identity.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from msauto.errors import PlanningError
from msauto.model.clip_entries import ClipEntries, are_one_clip, entries_in_doubt, entries_of
from msauto.model.desired import TaskSource
from msauto.model.identity import ClipIdentity, compare_clips, is_another_clip
from msauto.model.live import Asset, Entry, Folder, Link, Listing
from msauto.model.plan import Address, Change
from msauto.planning.deletion import check_link_titles
from tests.entries import listed_entry

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

    async def read_links(self, _: str, asset: Asset) -> tuple[Link, ...]:
        return entries_of(asset, self.entries).links

    async def read_folder(self, _: str, folder: Folder) -> Listing:
        return Listing(folder, tuple(each for each in self.entries if each.folder == folder))


SERVER: Any = OneListing([HOME, LINK], [FILM, TONIGHT])


def test_these_two_are_unknown() -> None:
    assert {compare_clips(FILM, each).answer for each in (TONIGHT, LINK)} == {"unknown"}


def test_a_later_read_goes_by_the_title() -> None:
    assert not is_another_clip(ClipIdentity.of(FILM), Asset("Film", attributes={"frames": "250"}))


def test_in_a_listing_only_the_title_makes_an_entry_a_link() -> None:
    assert entries_of(FILM, [HOME, LINK]).links == ()
    same = listed_entry(("Playout",), "Film", 7, attributes={"frames": "250"})
    assert entries_of(FILM, [HOME, same]).links == (Link(("Playout",), "Film", 7),)


@pytest.mark.parametrize("in_doubt", [True, False])
def test_for_a_deletion_it_may_be_a_link(in_doubt: bool) -> None:
    assert (LINK in entries_of(FILM, SERVER.entries, in_doubt=in_doubt).same) is in_doubt
    assert LINK in asyncio.run(entries_in_doubt(SERVER, "NEWS", FILM)).same


def test_a_link_is_not_removed_by_its_title() -> None:
    change = Change("delete", "link", "Playout/Tonight", {"link_id": 7}, None, "live", True, TaskSource(""))
    with pytest.raises(PlanningError, match="the server reports too little to decide"):
        asyncio.run(check_link_titles(SERVER, "NEWS", FILM, [change]))


def test_two_names_are_two_targets() -> None:
    assert not asyncio.run(are_one_clip(SERVER, "NEWS", FILM, TONIGHT))


@pytest.mark.parametrize(("link_id", "goes_on"), [(7, True), (None, True), (8, False)])
def test_what_select_found_needs_the_link_id(link_id: int | None, goes_on: bool) -> None:
    bare = listed_entry(("Playout",), "Tonight", link_id)
    assert is_another_clip(bare, TONIGHT, {"link_id"}) is not goes_on


def test_a_clip_that_is_recorded_meanwhile_is_no_link_if_it_has_another_file() -> None:
    """No entry has a ``link_id``: the listing shows it as long as the clip that is deleted, the answer longer."""
    film = Asset("Film", ("Raw",), hires="film.mxf", attributes={"frames": "250"})
    entry = listed_entry(("Raw",), "Live", None, attributes={"frames": "250"})
    for hires, is_link in (("live.mxf", False), (None, True)):
        live = Asset("Live", ("Raw",), hires=hires, attributes={"frames": "300"})
        server: Any = OneListing([entry], [live])
        found = asyncio.run(entries_in_doubt(server, "NEWS", film))
        assert (entry in found.same) is is_link
