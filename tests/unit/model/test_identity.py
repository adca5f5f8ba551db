"""What distinguishes clips: enough must be reported, and a length or a name alone is not enough."""

from __future__ import annotations

import pytest

from msauto.model.clip_entries import count_clips
from msauto.model.identity import ClipIdentity, clip_key, is_another_clip
from msauto.model.live import Asset
from tests.entries import listed_entry

WHOLE = {"orig_name": "film.mxf", "create_time": "2026-11-13T10:00:00", "frames": "100"}


@pytest.mark.parametrize(
    ("identity", "known"),
    [
        (ClipIdentity(), False),
        (ClipIdentity(frames=100, orig_name="film.mxf"), False),
        (ClipIdentity(link_id=7), True),
        (ClipIdentity(create_time="2026-11-13T10:00:00"), True),
        (ClipIdentity(files=("film.mxf",)), True),
    ],
)
def test_a_length_or_a_name_alone_is_not_enough(identity: ClipIdentity, known: bool) -> None:
    assert identity.is_known is known


@pytest.mark.parametrize(("reported", "enough"), [(3, True), (2, True), (1, False), (0, False)])
def test_an_archived_clip_is_known_by_two_values(reported: int, enough: bool) -> None:
    attributes = dict(list(WHOLE.items())[:reported])
    assert (clip_key(Asset("Film", archive="LTO/1", attributes=attributes)) is not None) is enough
    assert (clip_key(Asset("Film", attributes=attributes)) is not None) is (reported == 3)
    assert clip_key(Asset("Film", hires="film.mxf", attributes=attributes)) is not None


def test_a_clip_and_its_links_count_once() -> None:
    shown = [
        listed_entry(("Raw",), "Film", attributes=WHOLE),
        listed_entry(("Playout",), "Film tonight", attributes=WHOLE),
    ]
    assert count_clips(shown) == 1
    bare = [listed_entry(("Raw",), "Film"), listed_entry(("Playout",), "Film tonight")]
    assert count_clips(bare) == 2


def test_another_file_alone_is_another_clip_unless_it_was_archived() -> None:
    planned = ClipIdentity(files=("film.mxf", "LTO/1"))
    assert is_another_clip(planned, Asset("Film", hires="other.mxf"))
    assert not is_another_clip(planned, Asset("Film", archive="LTO/1"))
