"""Editorial checks at their edges: the last frame that is inside, and the first that is not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.planning.planning_world import Clip, stage
from tests.unit.planning.playbook_forms import asset_intent

LENGTH = "250 frames long (00:00:10:00 at 25 fps)"
NTSC = "0.0333666667"


def plan(args: dict[str, Any], **clip: Any) -> tuple[str | None, list[str], int]:
    """Return the error, the warnings and the number of requests."""
    found = stage(Clip("Film", **clip)).plan(asset_intent({"title": "Film", **args}))
    errors = [target.error for target in found.targets if target.error]
    requests = sum(len(target.requests) for target in found.targets)
    return (errors[0] if errors else None), list(found.warnings), requests


def segment(start: object, duration: object, number: int = 1) -> dict[str, Any]:
    return {"number": number, "start": start, "duration": duration}


@pytest.mark.parametrize(
    "args",
    [
        {"markers": [{"at": 0}]},
        {"markers": [{"at": 249}]},
        {"markers": [{"at": "00:00:09:24"}]},
        {"markers": [{"at": "10:00:09:24"}], "origin": "10:00:00:00"},
        {"markers": [{"at": "00:00:09.96"}]},
        {"segments": [segment(0, 250)]},
        {"segments": [segment(249, 1)]},
        {"segments": [segment("00:00:09:24", "00:00:00:01")]},
        {"fields": {"first_frame": 249}},
        {"fields": {"last_frame": 250}},
        {"fields": {"icon_pos": "00:00:09:24"}},
        {"segmentation": {"duration": 250}},
        {"segmentation": {"duration": 9999}},
    ],
)
def test_just_inside(args: dict[str, Any]) -> None:
    assert plan(args) == (None, [], 1)


@pytest.mark.parametrize(
    ("args", "what"),
    [
        ({"markers": [{"at": 250}]}, "frame 250 lies beyond the end"),
        ({"markers": [{"at": "00:00:10:00"}]}, "00:00:10:00 (frame 250) lies beyond the end"),
        ({"markers": [{"at": "00:00:09.98"}]}, "00:00:09.98 (frame 250) lies beyond the end"),
        ({"markers": [{"at": "09:59:59:24"}], "origin": "10:00:00:00"}, "1 frame before the clip's first frame"),
        ({"markers": [{"at": "10:00:10:00"}], "origin": "10:00:00:00"}, "10:00:10:00 (frame 250) lies beyond the end"),
        ({"segments": [segment(0, 251)]}, "segment 1 ends at frame 251, beyond the end"),
        ({"segments": [segment(250, 1)]}, "segment 1 ends at frame 251, beyond the end"),
        ({"fields": {"first_frame": 250}}, "first_frame 250 (frame 250) lies beyond the end"),
        ({"fields": {"last_frame": 251}}, "last_frame 251 (frame 251) lies beyond the end"),
        ({"fields": {"icon_pos": 250}}, "icon_pos 250 (frame 250) lies beyond the end"),
        ({"markers": [{"at": "00:00:01;00"}]}, "which 25 fps does not have"),
        ({"segments": [segment("00:00:01;00", 5)]}, "which 25 fps does not have"),
        ({"segments": [segment(0, "00:00:01;00")]}, "which 25 fps does not have"),
        ({"segmentation": {"duration": "00:00:01;00"}}, "which 25 fps does not have"),
        ({"fields": {"icon_pos": "00:00:01;00"}}, "which 25 fps does not have"),
        ({"markers": [{"at": "00:00:01:25"}]}, "a second has frames 00 to 24 at 25 fps"),
        ({"markers": [{"at": 5}, {"at": 400}]}, "frame 400 lies beyond the end"),
    ],
)
def test_just_outside_names_the_length(args: dict[str, Any], what: str) -> None:
    error, _, requests = plan(args)
    assert error is not None
    assert what in error
    assert LENGTH in error
    assert requests == 0


@pytest.mark.parametrize(
    ("at", "remedy"),
    [
        ("00:00:04:00", "write the task's positions from 10:00:00:00 on (10:00:04:00 for frame 100), or take"),
        ("00:00:04.00", "write the task's positions from 10:00:00:00 on (10:00:04:00 for frame 100), or take"),
        ("09:00:00:00", "write the task's positions from 10:00:00:00 on, or take `origin` out"),
    ],
)
def test_a_position_before_the_origin_says_what_may_be_meant(at: str, remedy: str) -> None:
    error, *_ = plan({"markers": [{"at": at}], "origin": "10:00:00:00"})
    assert error is not None
    assert "the clip's first frame, which has the position 10:00:00:00 in this task (`origin`)" in error
    assert remedy in error


def test_drop_frame_where_it_is() -> None:
    assert plan({"markers": [{"at": "00:01:00;02"}]}, frames=1801, frame_time=NTSC) == (None, [], 1)
    error, *_ = plan({"markers": [{"at": "00:01:00;02"}]}, frames=3601, frame_time="0.0166833333")
    assert error is not None
    assert "00:01:00;02 does not exist: drop frame omits it" in error
    assert "3601 frames long" in error
    error, *_ = plan({"markers": [{"at": "00:01:00;02"}]}, frames=1800, frame_time=NTSC)
    assert error is not None
    assert "(frame 1800) lies beyond the end" in error


def test_a_clip_without_a_length_is_not_judged() -> None:
    assert plan({"markers": [{"at": 99_999}]}, frames=None) == (None, [], 1)
    assert plan({"segments": [segment(0, 99_999)]}, frames=None) == (None, [], 1)


@pytest.mark.parametrize(
    ("second", "warning"),
    [
        (segment(100, 50, 2), None),
        (segment(99, 50, 2), "Film: segments 1 and 2 overlap by 1 frames"),
        (segment(101, 50, 2), "Film: 1 frames lie between segments 1 and 2"),
        (segment(0, 100, 2), "Film: segments 1 and 2 overlap by 100 frames"),
    ],
)
def test_segments_that_overlap_or_leave_gaps(second: dict[str, Any], warning: str | None) -> None:
    error, warnings, requests = plan({"segments": [segment(0, 100), second]})
    assert (error, requests) == (None, 2)
    assert [text.removeprefix("127.0.0.1 · ").split(" · ")[-1] for text in warnings] == ([warning] if warning else [])


def test_one_inside_a_longer_one_is_an_overlap_with_each() -> None:
    _, warnings, _ = plan({"segments": [segment(0, 200), segment(50, 10, 2), segment(100, 10, 3)]})
    assert "segments 1 and 2 overlap by 10 frames" in " ".join(warnings)
    assert "segments 1 and 3 overlap by 10 frames" in " ".join(warnings)
    assert "lie between" not in " ".join(warnings)


def test_what_stays_on_the_server_counts() -> None:
    live = {7: {"start": 50, "duration": 10, "title": "x"}}
    _, warnings, _ = plan({"segments": [segment(55, 5)]}, segments=live)
    assert "segments 7 and 1 overlap by 5 frames" in " ".join(warnings)


@pytest.mark.parametrize("track", ["Cue point", "Nonsense", ""])
def test_unknown_marker_tracks(track: str) -> None:
    with pytest.raises(Exception, match="track cannot be"):
        plan({"markers": [{"at": 5, "track": track}]})
