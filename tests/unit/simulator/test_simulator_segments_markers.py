"""Segments and markers: what the commands make, and what the dialect makes of what the interface leaves open."""

from __future__ import annotations

import pytest

from msauto.simulator import SimClip, SimDialect, SimMarker, SimSegment, Simulator
from tests.unit.simulator.asking import Asker


@pytest.fixture
def clip(sim: Simulator) -> SimClip:
    return sim.state.add_clip("C", frames=1000, rate=25)


def spans(clip: SimClip) -> list[tuple[int, int, int, list[str]]]:
    return [(segment.number, segment.start, segment.duration, segment.titles) for segment in clip.segments]


def test_segments_in_frames_and_time_codes(clip: SimClip, ask: Asker) -> None:
    ask.command("C", "CREATESEGMENT", seg_num=1, start_frame=0, duration="00:00:10:05", title="Ä", keywords="a b")
    ask.command("C", "CREATESEGMENT", seg_num=2, start_frame="00:00:20.02", duration=100)
    assert spans(clip) == [(1, 0, 255, ["Ä"]), (2, 500, 100, [])]
    assert clip.segments[0].keywords == "a b"
    shown = ask.clip("C").findall("Segment")[0]
    assert (shown.findtext("title"), shown.findtext("keywords")) == ("Ä", "a b")
    ask.command("C", "DELETESEGMENT", seg_num=1)
    assert spans(clip) == [(2, 500, 100, [])]


@pytest.mark.parametrize(
    "params",
    [
        {"start_frame": 0, "duration": 10},
        {"seg_num": 1, "duration": 10},
        {"seg_num": 1, "start_frame": 0},
        {"seg_num": "one", "start_frame": 0, "duration": 10},
        {"seg_num": 1, "start_frame": 0, "duration": 0},
        {"seg_num": 1, "start_frame": "00:00:00;00", "duration": 10},
        {"seg_num": 1, "start_frame": 991, "duration": 10},
    ],
)
def test_a_bad_segment_is_refused(clip: SimClip, ask: Asker, params: dict[str, object]) -> None:
    assert ask.command("C", "CREATESEGMENT", **params).status == 400
    assert clip.segments == []


@pytest.mark.parametrize(
    ("update", "status", "after"),
    [
        ("refuse", 409, [(1, 0, 10, ["old"])]),
        ("overwrite", 200, [(1, 5, 20, [])]),
        ("duplicate", 200, [(1, 0, 10, ["old"]), (1, 5, 20, [])]),
        ("ignore", 200, [(1, 0, 10, ["old"])]),
    ],
)
def test_a_number_that_exists(
    sim: Simulator, clip: SimClip, ask: Asker, update: str, status: int, after: list[object]
) -> None:
    clip.segments = [SimSegment(1, 0, 10, ["old"])]
    sim.dialect = SimDialect(segment_update=update)
    assert ask.command("C", "CREATESEGMENT", seg_num=1, start_frame=5, duration=20).status == status
    assert spans(clip) == after


def test_segmentation_divides_the_whole(clip: SimClip, ask: Asker) -> None:
    clip.segments = [SimSegment(5, 0, 10)]
    ask.command("C", "CREATESEGMENTATION", duration="00:00:16:00", title="Part")
    assert spans(clip) == [(1, 0, 400, ["Part"]), (2, 400, 400, ["Part"]), (3, 800, 200, ["Part"])]
    assert ask.command("C", "CREATESEGMENTATION", duration=0).status == 400
    assert ask.command("C", "CREATESEGMENTATION").status == 400
    assert len(clip.segments) == 3


def test_what_is_not_there_to_delete(clip: SimClip, ask: Asker) -> None:
    assert ask.command("C", "DELETESEGMENT", seg_num=9).status == 404
    assert ask.command("C", "DELETEMARKER", uid=9).status == 404
    assert ask.command("C", "DELETEMARKER").status == 400


def test_markers(clip: SimClip, ask: Asker) -> None:
    ask.command("C", "CREATEMARKER", uid=-1, frame=10, track="Cue Point", title="t", comment="c", user="u",
                keywords="k", rating=3, extra="Ж")  # fmt: skip
    ask.command("C", "CREATEMARKER", uid=-1, frame=0)
    assert [(marker.uid, marker.pos) for marker in clip.markers] == [(1, 10), (2, 0)]
    assert clip.markers[0].fields == {
        "user": "u", "title": "t", "comment": "c", "track": "Cue Point", "keywords": "k", "rating": "3", "extra": "Ж",
    }  # fmt: skip
    assert clip.markers[1].fields["track"] == "General"
    shown = ask.clip("C").findall("Marker")[0]
    assert shown.findtext("Attr[@name='extra']") == "Ж"
    ask.command("C", "DELETEMARKER", uid=1)
    assert [marker.uid for marker in clip.markers] == [2]


def test_a_uid_is_not_given_twice_at_once(clip: SimClip, ask: Asker) -> None:
    clip.markers = [SimMarker(41, 0), SimMarker(7, 1)]
    ask.command("C", "CREATEMARKER", uid=-1, frame=2)
    assert clip.markers[-1].uid == 42


@pytest.mark.parametrize(
    ("update", "fields"),
    [
        ("clear", {"user": "", "title": "new", "comment": "", "track": "General", "keywords": "", "rating": "0"}),
        ("keep", {"title": "new", "comment": "old", "track": "Icon"}),
    ],
)
def test_changing_a_marker(sim: Simulator, clip: SimClip, ask: Asker, update: str, fields: dict[str, str]) -> None:
    clip.markers = [SimMarker(3, 5, {"title": "old", "comment": "old", "track": "Icon"})]
    sim.dialect = SimDialect(marker_update=update)
    ask.command("C", "CREATEMARKER", uid=3, frame=6, title="new")
    assert clip.markers == [SimMarker(3, 6, fields)]
    ask.command("C", "CREATEMARKER", uid=3, title="new")
    assert clip.markers[0].pos == 6


def test_a_uid_that_does_not_exist(clip: SimClip, ask: Asker) -> None:
    assert ask.command("C", "CREATEMARKER", uid=99, frame=1).status == 200
    assert [marker.uid for marker in clip.markers] == [99]


@pytest.mark.parametrize(
    "params",
    [{"frame": 1}, {"uid": -1}, {"uid": "x", "frame": 1}, {"uid": -1, "frame": 1000}, {"uid": -1, "frame": -1},
     {"uid": -1, "frame": "00:00:01:00"}, {"uid": -1, "frame": 1, "track": "Cue point"}],
)  # fmt: skip
def test_a_bad_marker_is_refused(clip: SimClip, ask: Asker, params: dict[str, object]) -> None:
    assert ask.command("C", "CREATEMARKER", **params).status == 400
    assert clip.markers == []
