"""Every answer of tests/cases/xml, and what other servers bend: what must be read from it."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from msauto.errors import RejectedError, UnreachableError, UnreadableError
from msauto.model.clip_entries import settle_home
from msauto.model.live import Asset, Entry, Folder, Listing, Segment, parse_folder, show_folder
from msauto.server.error_answers import parse_failure
from msauto.server.parsers import parse_channel, parse_clip, parse_xmp
from tests.entries import listed_entry
from tests.listing_bytes import parse_listing
from tests.tables import table

CASES = Path(__file__).parents[2] / "cases" / "xml"


def cases(kind: str) -> list[Any]:
    found = sorted((CASES / kind).glob("*.json"))
    assert found
    return [pytest.param(path, id=path.stem) for path in found]


def load(path: Path) -> tuple[bytes, dict[str, Any]]:
    return path.with_suffix(".answer").read_bytes(), json.loads(path.read_text(encoding="utf-8"))


def refused(case: dict[str, Any]) -> pytest.RaisesExc[UnreadableError]:
    return pytest.raises(UnreadableError, match=re.escape(case["error"]))


@table("xml/finalized", "text", "finalized")
def test_only_true_is_finalized(text: str, finalized: bool) -> None:
    """Any other text may be a clip that is still recorded; without the attribute, it is unknown."""
    clip = f'<Clip link_id="1" finalized="{text}"><Attr name="title">T</Attr></Clip>'
    assert parse_clip(clip.encode()).finalized is finalized
    (entry,) = parse_listing(f"<StoredTree>{clip}</StoredTree>".encode(), "NEWS", ()).entries
    assert entry.finalized is finalized


def test_every_answer_has_its_expectation() -> None:
    answers = {path.with_suffix("") for path in CASES.glob("*/*.answer")}
    assert answers == {path.with_suffix("") for path in CASES.glob("*/*.json")}


@pytest.mark.parametrize("path", cases("listing"))
def test_listing(path: Path) -> None:
    data, case = load(path)
    asked = parse_folder(case["asked"])
    if "error" in case:
        with refused(case):
            parse_listing(data, "NEWS", asked, case.get("charset"))
        return
    listing = parse_listing(data, "NEWS", asked, case.get("charset"))
    entries = [[show_folder(entry.folder), entry.title, entry.link_id] for entry in listing.entries]
    assert entries == case["entries"]
    assert [show_folder(folder) for folder in listing.folders] == case["folders"]
    assert listing.folder == asked


@pytest.mark.parametrize("path", cases("clip"))
def test_clip(path: Path) -> None:
    data, case = load(path)
    if "error" in case:
        with refused(case):
            parse_clip(data)
        return
    clip = parse_clip(data)
    assert list(clip.warnings) == case.get("warnings", [])
    if "warnings" in case:
        return
    expected = case.get("expect") or load(CASES / "clip" / f"{case['like']}.json")[1]["expect"]
    found = json.loads(json.dumps(to_builtins(clip)))
    assert (found.pop("unread"), found.pop("unread_items")) == ([], [])
    assert found.pop("folder_otherwise") is None, "no database is named"
    assert found.pop("frame_rates") == [], "no inventory is given"
    assert found == expected


@pytest.mark.parametrize("path", cases("xmp"))
def test_xmp(path: Path) -> None:
    data, case = load(path)
    fields = parse_xmp(
        data, case.get("separator", ","), case.get("charset"), asked=case.get("asked")
    )
    assert json.loads(json.dumps(fields)) == case["fields"]


@pytest.mark.parametrize("path", cases("channel"))
def test_channel(path: Path) -> None:
    data, case = load(path)
    if "error" in case:
        with refused(case):
            parse_channel(data, "ticker")
        return
    assert [to_builtins(item) for item in parse_channel(data, "ticker").items] == case["items"]


@pytest.mark.parametrize("path", cases("failure"))
def test_failure(path: Path) -> None:
    data, case = load(path)
    failure = parse_failure(data, case.get("charset"))
    assert (failure.text if failure else None) == case["text"]
    assert bool(failure and failure.not_found) == case["not_found"]


# Numbers, folders and identifiers of a clip as other servers may spell them


@pytest.mark.parametrize("uid", [0, 2**31 + 5, 2**53 + 1, 2**63 - 1, 2**64 - 1, -(2**63)])
def test_a_uid_may_be_any_integer_of_64_bits(uid: int) -> None:
    (marker,) = parse_clip(f'<Clip><Marker uid="{uid}" pos="0"/></Clip>'.encode()).markers
    assert marker.uid == uid


@pytest.mark.parametrize(
    ("text", "number"), [("7", 7), ("0007", 7), (" 7\n", 7), ("7.0", 7), ("7.", 7), ("+7", 7)]
)
def test_whole_numbers_however_they_are_padded(text: str, number: int) -> None:
    clip = parse_clip(
        f'<Clip link_id="{text}"><Attr name="frames">{text}</Attr><Marker uid="{text}" pos="{text}"/>'
        f'<Segment seg_num="{text}" start_frame="{text}" duration="{text}"/></Clip>'.encode()
    )
    assert (clip.link_id, clip.frames, clip.markers[0].uid, clip.segments[0].duration) == (
        number,
    ) * 4


@pytest.mark.parametrize("text", ["7.5", "7e3", "seven", "", "0x7", "1_000", "9" * 30])
def test_a_marker_without_a_readable_uid_is_no_other_one(text: str) -> None:
    clip = parse_clip(
        f'<Clip><Marker uid="{text}" pos="0"/><Marker uid="7" pos="0"/></Clip>'.encode()
    )
    assert [marker.uid for marker in clip.markers] == [7]
    (item,) = clip.unread_items
    assert (item.aspect, item.key, item.number.name) == (
        "marker",
        f"?{text}",
        "the uid of a marker",
    )


@table("xml/folders_of_clips", "text", "folder")
def test_the_folder_of_a_clip_is_the_one_that_listings_show(text: str, folder: list[str]) -> None:
    assert parse_clip(f'<Clip folder="{text}"/>'.encode(), database="NEWS").folder == tuple(folder)


# A segment without a title: its name is what the server makes up, where the clip shows titles otherwise


def segments_of(*inner: str) -> tuple[Segment, ...]:
    shown = "".join(
        f'<Segment seg_num="{number}" seg_name="Segment {number}" start_frame="0" duration="5">{text}</Segment>'
        for number, text in enumerate(inner, 1)
    )
    return parse_clip(f'<Clip folder="News">{shown}</Clip>'.encode()).segments


def test_the_name_is_no_title_where_another_segment_shows_one() -> None:
    first, second = segments_of("<title>Part 1</title>", "<track>A</track>")
    assert (first.title, second.title, second.name) == ("Part 1", "", "Segment 2")


def test_nor_where_it_shows_an_empty_one() -> None:
    (segment,) = segments_of("<title></title>")
    assert segment.title == ""


def test_where_no_segment_shows_a_title_the_name_may_be_one() -> None:
    first, second = segments_of("", "")
    assert (first.title, second.title) == ("Segment 1", "Segment 2")


# Where a clip lives whose folder begins with the name of its database: what is asked, and what stays unsure


RAW: Folder = ("Raw",)
BOTH: Folder = ("NEWS", "Raw")
FILM = Asset("Film", RAW, link_id=7, folder_otherwise=BOTH)


def settled(
    asset: Asset, *, has: bool | Exception, **entries: list[Entry]
) -> tuple[Folder | None, Folder | None]:
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
    home, link = listed_entry(BOTH, "Film", 7), listed_entry(RAW, "Film", 8)
    assert settled(FILM, has=True, with_name=[home], without=[link]) == (BOTH, None)
    assert settled(
        FILM,
        has=True,
        with_name=[listed_entry(BOTH, "Film", 8)],
        without=[listed_entry(RAW, "Film", 7)],
    ) == (RAW, None)


def test_without_link_ids_the_title_does() -> None:
    bare = Asset("Film", RAW, folder_otherwise=BOTH)
    assert settled(bare, has=True, with_name=[listed_entry(BOTH, "Film")]) == (BOTH, None)
    assert settled(bare, has=True, without=[listed_entry(RAW, "Film")], with_name=[]) == (RAW, None)
    assert settled(
        bare, has=True, with_name=[listed_entry(BOTH, "Film")], without=[listed_entry(RAW, "Film")]
    ) == (
        RAW,
        BOTH,
    )


def test_what_stands_below_is_not_there() -> None:
    below = listed_entry((*BOTH, "2026"), "Film", 7)
    assert settled(FILM, has=True, with_name=[below], without=[]) == (RAW, BOTH)


def test_a_server_that_does_not_tell_leaves_it_unsure() -> None:
    assert settled(FILM, has=RejectedError("no", status=500)) == (RAW, BOTH)
    with pytest.raises(UnreachableError):
        settled(FILM, has=UnreachableError("gone"))


def test_nothing_is_asked_of_what_can_be_read_in_one_way() -> None:
    assert settled(Asset("Film", RAW), has=AssertionError()) == (RAW, None)


# XMP fields as JSON: unreadable, because the interface does not define it; as a text it would never match


@pytest.mark.parametrize("asked", [None, "dc:subject"])
@pytest.mark.parametrize(
    "data", [b'{"dc:subject": ["news", "evening"]}', b'\xef\xbb\xbf {"a": "x=1"}\r\n', b"{}"]
)
def test_json_cannot_be_read(data: bytes, asked: str | None) -> None:
    assert parse_xmp(data, asked=asked) is None


def test_a_value_in_braces_is_a_value() -> None:
    assert parse_xmp(b"{draft}", asked="dc:title") == {"dc:title": ("{draft}",)}
    assert parse_xmp(b"{" * 100_000 + b"}", asked="dc:title") == {
        "dc:title": ("{" * 100_000 + "}",)
    }
