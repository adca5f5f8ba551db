"""Where a clip lives whose folder begins with the name of its database: what is asked, and what stays unsure."""

from __future__ import annotations

import asyncio

import pytest

from msauto.errors import RejectedError, UnreachableError
from msauto.model.clip_entries import settle_home
from msauto.model.live import Asset, Entry, Folder, Listing
from msauto.server.clip import parse_clip

RAW: Folder = ("Raw",)
BOTH: Folder = ("NEWS", "Raw")
FILM = Asset("Film", RAW, link_id=7, folder_otherwise=BOTH)


def settled(asset: Asset, *, has: bool | Exception, **entries: list[Entry]) -> tuple[Folder | None, Folder | None]:
    async def has_folder(folder: Folder) -> bool:
        assert folder == ("NEWS",)
        if isinstance(has, Exception):
            raise has
        return has

    async def read(folder: Folder) -> Listing | None:
        name = "without" if folder == RAW else "with_name"
        return Listing(folder, entries[name]) if name in entries else None

    found = asyncio.run(settle_home(asset, "NEWS", has_folder, read))
    return found.folder, found.folder_otherwise


def test_the_answer_keeps_both_readings() -> None:
    asset = parse_clip(b'<Clip folder="NEWS/Raw"/>', database="NEWS")
    assert (asset.folder, asset.folder_otherwise) == (RAW, BOTH)
    other = parse_clip(b'<Clip folder="News/Raw"/>', database="NEWS")
    assert (other.folder, other.folder_otherwise) == (("News", "Raw"), None)


def test_without_such_a_folder_the_database_stands_in_front() -> None:
    assert settled(FILM, has=False) == (RAW, None)


def test_the_clip_itself_tells_by_its_link_id() -> None:
    home, link = Entry(BOTH, "Film", 7), Entry(RAW, "Film", 8)
    assert settled(FILM, has=True, with_name=[home], without=[link]) == (BOTH, None)
    assert settled(FILM, has=True, with_name=[Entry(BOTH, "Film", 8)], without=[Entry(RAW, "Film", 7)]) == (RAW, None)


def test_without_link_ids_the_title_does() -> None:
    bare = Asset("Film", RAW, folder_otherwise=BOTH)
    assert settled(bare, has=True, with_name=[Entry(BOTH, "Film")]) == (BOTH, None)
    assert settled(bare, has=True, without=[Entry(RAW, "Film")], with_name=[]) == (RAW, None)
    assert settled(bare, has=True, with_name=[Entry(BOTH, "Film")], without=[Entry(RAW, "Film")]) == (RAW, BOTH)


def test_what_stands_below_is_not_there() -> None:
    below = Entry((*BOTH, "2026"), "Film", 7)
    assert settled(FILM, has=True, with_name=[below], without=[]) == (RAW, BOTH)


def test_a_server_that_does_not_tell_leaves_it_unsure() -> None:
    assert settled(FILM, has=RejectedError("no", status=500)) == (RAW, BOTH)
    with pytest.raises(UnreachableError):
        settled(FILM, has=UnreachableError("gone"))


def test_nothing_is_asked_of_what_can_be_read_in_one_way() -> None:
    assert settled(Asset("Film", RAW), has=AssertionError()) == (RAW, None)
