"""What distinguishes clips: enough must be reported, and a length or a name alone is not enough."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from msauto.model.clip_entries import count_clips
from msauto.model.identity import ClipEntries, ClipIdentity, compare_clips, is_another_clip
from msauto.model.live import Asset, show_folder
from tests.entries import listed_entry
from tests.tables import table

WHOLE = {"orig_name": "film.mxf", "create_time": "2026-11-13T10:00:00", "frames": "100"}


@table("model/known_identities", "identity", "known")
def test_a_length_or_a_name_alone_is_not_enough(identity: dict[str, Any], known: bool) -> None:
    assert ClipIdentity(**identity).is_known is known


FILM = ClipIdentity(7, "2026-11-13T10:00:00", 100, "film.mxf", "$(video)/film.mxf", "LTO/1")


@table("model/sightings", "other", "answer")
def test_two_sightings_are_of_one_clip_or_of_two_or_it_is_unknown(
    other: dict[str, Any], answer: str
) -> None:
    now = structs.replace(FILM, **other)
    assert compare_clips(FILM, now).answer == compare_clips(now, FILM).answer == answer


def test_the_proxy_shows_nothing() -> None:
    for proxy in ("a.mp4", "b.mp4"):
        compared = compare_clips(Asset("Film", proxy="a.mp4"), Asset("Film", proxy=proxy))
        assert compared == ((), (), False)


@pytest.mark.parametrize("finalized", [True, False, None])
def test_the_length_of_a_clip_that_is_recorded_shows_nothing(finalized: bool | None) -> None:
    entry = listed_entry((), "Film", attributes=WHOLE)
    longer = Asset("Film", finalized=finalized, attributes=WHOLE | {"frames": "200"})
    assert compare_clips(entry, longer).answer == ("same" if finalized is False else "other")


@pytest.mark.parametrize(
    ("rate", "frames", "answer"),
    [
        ("0.0400000000", "124", "unknown"),
        ("0.0400000000", "76", "unknown"),
        ("0.0400000000", "125", "other"),
        ("0.0200000000", "149", "unknown"),
        ("0.0200000000", "150", "other"),
        ("", "123", "unknown"),
        ("", "124", "other"),
    ],
)
def test_a_length_that_differs_by_less_than_a_second_leaves_it_unknown(
    rate: str, frames: str, answer: str
) -> None:
    """All else must be equal; what is kept of a clip has no rate of its own."""
    shown = WHOLE | {"frame_time": rate}
    clip, other = (
        Asset("Film", link_id=7, finalized=True, attributes=shown),
        Asset("Film", link_id=7, finalized=True, attributes=shown | {"frames": frames}),
    )
    for one in (clip, ClipIdentity.of(clip)):
        assert compare_clips(one, other).answer == compare_clips(other, one).answer == answer
        assert is_another_clip(one, other) is (answer == "other")
    bare = {"frames": "100", "frame_time": rate}
    alone = Asset("Film", attributes=bare), Asset("Film", attributes=bare | {"frames": frames})
    assert compare_clips(*alone).answer == "other"


def test_a_clip_and_its_links_count_once() -> None:
    shown = [
        listed_entry(("Raw",), "Film", attributes=WHOLE),
        listed_entry(("Playout",), "Film tonight", attributes=WHOLE),
    ]
    assert count_clips(shown) == 1
    bare = [listed_entry(("Raw",), "Film"), listed_entry(("Playout",), "Film tonight")]
    assert count_clips(bare) == 2


def test_another_file_alone_is_another_clip_unless_it_was_archived() -> None:
    planned = ClipIdentity(hires="film.mxf", archive="LTO/1")
    assert is_another_clip(planned, Asset("Film", hires="other.mxf"))
    assert not is_another_clip(planned, Asset("Film", archive="LTO/1"))


@table("model/times_and_zones", "one", "other", "differs")
def test_times_with_and_without_a_zone(one: str, other: str, differs: bool) -> None:
    """A time without a zone may be one with a zone, but it does not have to be."""
    clip, its = Asset("Film", link_id=7, attributes={"create_time": one}), {"create_time": other}
    entry = listed_entry((), "Film", 8, attributes=its)
    both = compare_clips(clip, entry), compare_clips(entry, clip)
    assert [found.answer == "other" for found in both] == [differs, differs]
    assert is_another_clip(ClipIdentity(create_time=one), Asset("Film", attributes=its)) is differs


@pytest.mark.parametrize(
    ("titles", "home"),
    [
        (["Film"], "Raw/Film"),
        (["Film", "Copy"], "Raw/Film"),
        (["Copy"], "Raw/Copy"),
        (["Film", "Film"], None),
    ],
)
def test_the_home_of_a_clip_that_a_link_answered_for(titles: list[str], home: str | None) -> None:
    at_home = [listed_entry(("Raw",), title, number) for number, title in enumerate(titles, 1)]
    link = listed_entry(("Playout",), "Film", 9)
    entries = ClipEntries(Asset("Film", folder=("Raw",), link_id=9), (link, *at_home))
    shown = entries.home
    assert entries.own is link
    assert (shown and show_folder((*shown.folder, shown.title))) == home


def test_the_entry_of_an_answer_without_a_link_id_is_that_of_its_title() -> None:
    entries = [listed_entry(("Raw",), "Film", 1), listed_entry(("Playout",), "Feature", 2)]
    assert ClipEntries(Asset("Film"), tuple(entries)).own is entries[0]
