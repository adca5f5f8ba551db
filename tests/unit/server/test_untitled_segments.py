"""A segment without a title: its name is what the server makes up, where the clip shows titles otherwise."""

from __future__ import annotations

from msauto.aspects.segment_frames import segment_matches
from msauto.model.live import Segment
from msauto.server.clip import parse_clip


def segments_of(*inner: str) -> tuple[Segment, ...]:
    shown = "".join(
        f'<Segment seg_num="{number}" seg_name="Segment {number}" start_frame="0" duration="5">{text}</Segment>'
        for number, text in enumerate(inner, 1)
    )
    return parse_clip(f'<Clip folder="News">{shown}</Clip>'.encode()).segments


def test_the_name_is_no_title_where_another_segment_shows_one() -> None:
    first, second = segments_of("<title>Part 1</title>", "<track>A</track>")
    assert (first.title, second.title, second.name) == ("Part 1", "", "Segment 2")
    assert segment_matches({"title": ""}, second)
    assert not segment_matches({"title": "Segment 2"}, second)


def test_nor_where_it_shows_an_empty_one() -> None:
    (segment,) = segments_of("<title></title>")
    assert segment_matches({"title": ""}, segment)


def test_where_no_segment_shows_a_title_the_name_may_be_one() -> None:
    first, second = segments_of("", "")
    assert (first.title, second.title) == ("Segment 1", "Segment 2")
    assert segment_matches({"title": "Segment 1"}, first)
    assert not segment_matches({"title": ""}, first)
