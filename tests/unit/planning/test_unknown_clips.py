"""What each step does where nothing shows whether two sightings are of one clip (docs/explanation/identity.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from msauto.errors import PlanningError
from msauto.model.clip_entries import are_one_clip, index_links, links_of, read_entries_of
from msauto.model.desired import TaskSource
from msauto.model.identity import ClipIdentity, compare_clips, fits, is_another_clip
from msauto.model.live import Asset, ClipEntries, Entry, Folder, Link, Listing
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
        return (await index_links(self.entries)).entries_of(asset, in_doubt=in_doubt)

    async def read_other_clips(self, _: str, asset: Asset, most: int) -> list[Entry]:
        return (await index_links(self.entries)).others(asset, most)

    async def read_links(self, _: str, asset: Asset) -> tuple[Link, ...]:
        return links_of(asset, self.entries)

    async def read_folder(self, _: str, folder: Folder) -> Listing:
        return Listing(folder, tuple(each for each in self.entries if each.folder == folder))


SERVER: Any = OneListing([HOME, LINK], [FILM, TONIGHT])


def test_these_two_are_unknown() -> None:
    assert {compare_clips(FILM, each).answer for each in (TONIGHT, LINK)} == {"unknown"}


def test_a_later_read_goes_by_the_title() -> None:
    assert not is_another_clip(ClipIdentity.of(FILM), Asset("Film", attributes={"frames": "250"}))


def test_in_a_listing_only_the_title_makes_an_entry_a_link() -> None:
    assert links_of(FILM, [HOME, LINK]) == ()
    same = listed_entry(("Playout",), "Film", 7, attributes={"frames": "250"})
    assert links_of(FILM, [HOME, same]) == (Link(("Playout",), "Film", 7),)


@pytest.mark.parametrize("in_doubt", [True, False])
def test_for_a_deletion_it_may_be_a_link(in_doubt: bool) -> None:
    found = asyncio.run(read_entries_of(SERVER, "NEWS", FILM, in_doubt=in_doubt))
    assert (LINK in found.same) is in_doubt


def test_a_link_is_not_removed_by_its_title() -> None:
    change = Change("delete", "link", "Playout/Tonight", {"link_id": 7}, None, "live", True, TaskSource(""))
    with pytest.raises(PlanningError, match="the server reports too little to decide"):
        asyncio.run(check_link_titles(SERVER, "NEWS", FILM, "Film", [change]))


def test_two_names_are_two_targets() -> None:
    assert not asyncio.run(are_one_clip(SERVER, "NEWS", FILM, TONIGHT))


@pytest.mark.parametrize(("link_id", "goes_on"), [(7, True), (None, True), (8, False)])
def test_what_select_found_needs_the_link_id(link_id: int | None, goes_on: bool) -> None:
    bare = listed_entry(("Playout",), "Tonight", link_id)
    assert fits(bare, TONIGHT) is goes_on
