"""Numbers, folders and identifiers of a clip as other servers may spell them."""

from __future__ import annotations

import pytest

from msauto.errors import UnreadableError
from msauto.model.live import whole
from msauto.server.clip import parse_clip


@pytest.mark.parametrize("uid", [0, 2**31 + 5, 2**53 + 1, 2**63 - 1, 2**64 - 1, -(2**63)])
def test_a_uid_may_be_any_integer_of_64_bits(uid: int) -> None:
    (marker,) = parse_clip(f'<Clip><Marker uid="{uid}" pos="0"/></Clip>'.encode()).markers
    assert marker.uid == uid


@pytest.mark.parametrize(("text", "number"), [("7", 7), ("0007", 7), (" 7\n", 7), ("7.0", 7), ("7.", 7), ("+7", 7)])
def test_whole_numbers_however_they_are_padded(text: str, number: int) -> None:
    clip = parse_clip(
        f'<Clip link_id="{text}"><Attr name="frames">{text}</Attr><Marker uid="{text}" pos="{text}"/>'
        f'<Segment seg_num="{text}" start_frame="{text}" duration="{text}"/></Clip>'.encode()
    )
    assert (clip.link_id, clip.frames, clip.markers[0].uid, clip.segments[0].duration) == (number,) * 4


@pytest.mark.parametrize("text", ["7.5", "7e3", "seven", "", "0x7", "1_000", "9" * 30])
def test_what_is_no_whole_number_is_none(text: str) -> None:
    assert whole(text) is None
    with pytest.raises(UnreadableError, match="the uid of a marker"):
        parse_clip(f'<Clip><Marker uid="{text}" pos="0"/></Clip>'.encode())


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("Raw/2026", ("Raw", "2026")),
        ("/Raw/2026/", ("Raw", "2026")),
        ("NEWS/Raw/2026", ("Raw", "2026")),
        ("/NEWS/Raw/2026", ("Raw", "2026")),
        (r"Raw\2026", ("Raw", "2026")),
        (r"\Raw\2026", ("Raw", "2026")),
        (r"NEWS\Raw\2026", ("Raw", "2026")),
        ("NEWS", ()),
        ("", ()),
        ("Raw/NEWS", ("Raw", "NEWS")),
        (r"a\/b/c", ("a/b", "c")),
        (r"a\\b", (r"a\b",)),
        (r"a\\b/c", (r"a\b", "c")),
        (r"a\b/c", (r"a\b", "c")),
    ],
)
def test_the_folder_of_a_clip_is_the_one_that_listings_show(text: str, folder: tuple[str, ...]) -> None:
    assert parse_clip(f'<Clip folder="{text}"/>'.encode(), database="NEWS").folder == folder
