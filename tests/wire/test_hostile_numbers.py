"""Numbers of answers that no server should send: each clip is a target of its own, and the good ones are written."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import yaml

from msauto.plugins.simulator.embedded import Simulator, empty_state
from msauto.plugins.simulator.embedded.state import SimClip, SimDatabase, SimMarker, SimSegment
from tests.cli.command_line import Desk
from tests.tables import CASES

HOSTILE: dict[str, str] = yaml.safe_load(
    (CASES / "server/hostile_numbers.yml").read_text(encoding="utf-8")
)
HOSTILE |= {"many digits": "9" * 5000}
FURTHER = (
    "first_frame", "last_frame", "icon_pos", "layer", "bps", "channels", "width", "height", "sample_rate", "mime_type",
)  # fmt: skip


@pytest.fixture
def sim() -> Iterator[Simulator]:
    with Simulator(state=empty_state()) as simulator:
        yield simulator


@pytest.fixture
def news(sim: Simulator) -> SimDatabase:
    database = sim.state.databases["NEWS"]
    database.add_clip("Good", "Raw", frames=500)
    return database


@pytest.fixture
def desk(sim: Simulator, tmp_path: Path) -> Desk:
    desk = Desk(tmp_path, sim.url)
    desk.inventory({"studio-a": {"server": {"url": sim.url}, "database": "NEWS"}})
    return desk


def add_hostile(news: SimDatabase, values: dict[str, str]) -> None:
    """Add clips, each with one hostile number; of the attributes that decide little, each value has one."""
    of_clips, of_markers = cycle(FURTHER), cycle(["pos", "rating"])
    of_segments = cycle(["start", "duration", "rating"])
    for about, text in values.items():
        for name in ("frame_time", "frames", next(of_clips)):
            clip = news.add_clip(f"{name} is {about}", "Raw", frames=500)
            clip.shown[name] = text
        for name in ("uid", next(of_markers)):
            clip = news.add_clip(f"marker {name} is {about}", "Raw", frames=500)
            _with_marker(clip, name, text)
        for name in ("number", next(of_segments)):
            clip = news.add_clip(f"segment {name} is {about}", "Raw", frames=500)
            _with_segment(clip, name, text)


def _with_marker(clip: SimClip, name: str, text: Any) -> None:
    marker = SimMarker(7, 100, {"track": "General", "rating": "3"})
    if name == "rating":
        marker.fields["rating"] = text
    else:
        setattr(marker, name, _Written(text))
    clip.markers.append(marker)


def _with_segment(clip: SimClip, name: str, text: Any) -> None:
    segment = SimSegment(3, 100, 50)
    setattr(segment, name, _Written(text))
    clip.segments.append(segment)


class _Written(str):
    """A text in place of a number of the simulator, which counts positions from 0."""

    __slots__ = ()

    def __sub__(self, _: int) -> _Written:
        return self


def select(**more: Any) -> list[dict[str, Any]]:
    task = {
        "name": "Describe",
        "asset": {"select": {"folder": "Raw"}, "fields": {"comment": "checked"}, **more},
    }
    return [{"hosts": "all", "tasks": [task]}]


def one(title: str, **asset: Any) -> list[dict[str, Any]]:
    return [{"hosts": "all", "tasks": [{"name": "One", "asset": {"title": title, **asset}}]}]


def test_a_hostile_clip_ends_no_run(desk: Desk, news: SimDatabase) -> None:
    add_hostile(news, HOSTILE)
    desk.write("play.yml", select())
    planned = desk.run("plan", "-i", "inventory.yml", "play.yml", "--format", "json")
    assert planned.code == 0, [
        target["error"] for target in planned.json["targets"] if target["error"]
    ]
    assert planned.json["summary"]["change"] == len(list(news.clips()))
    assert any("frame_time is '1e-400000000'" in warning for warning in planned.json["warnings"])
    assert all(len(warning) < 400 for warning in planned.json["warnings"])
    applied = desk.run("apply", "-i", "inventory.yml", "play.yml", "--yes", "--summary")
    assert applied.code == 0, applied.err
    assert {clip.home.fields["comment"] for clip in news.clips()} == {"checked"}
    assert desk.run("plan", "-i", "inventory.yml", "play.yml", "--detailed-exitcode").code == 0


@pytest.mark.scale
def test_hostile_clips_are_shown_and_exported(desk: Desk, news: SimDatabase) -> None:
    add_hostile(news, HOSTILE)
    for command in (
        ("show", "assets", "--recursive"),
        ("show", "assets", "--recursive", "--format", "json"),
    ):
        shown = desk.run(*command, "-i", "inventory.yml")
        assert shown.code == 0, shown.err
        assert "Good" in shown.out
    exported = desk.run("export", "-i", "inventory.yml", "--out", "out")
    assert exported.code == 0, exported.err
    assert "title: Good" in (desk.folder / "out" / "NEWS" / "Raw.yml").read_text(encoding="utf-8")
    for title in ("frame_time is tiny", "marker uid is grouped", "segment number is exponent"):
        shown = desk.run("show", "asset", title, "-i", "inventory.yml")
        assert shown.code == 0, shown.err
        assert "which is not a number that msauto can read" in shown.err


@pytest.mark.parametrize(
    ("frame_time", "reason"),
    [
        ("3600", "not one of the known rates: set `frame_rate`"),
        ("0.0001", "not one of the known rates: set `frame_rate`"),
        ("0", "may be 23.98 fps to 120 fps: set `frame_rate`"),
        ("-1", "not a number that msauto can read"),
        ("1e-400000000", "not a number that msauto can read"),
    ],
)
def test_without_a_rate_time_codes_are_refused_and_frames_work(
    desk: Desk, news: SimDatabase, frame_time: str, reason: str
) -> None:
    clip = news.add_clip("Still", "Raw", frames=500)
    clip.shown["frame_time"] = frame_time
    desk.write("play.yml", one("Still", markers=[{"at": "00:00:01:00", "title": "Ad"}]))
    refused = desk.run("plan", "-i", "inventory.yml", "play.yml")
    assert refused.code == 1
    refused.one_error(
        "00:00:01:00 needs a frame rate", reason, "write the position as a number of frames"
    )
    desk.write("play.yml", one("Still", markers=[{"at": 25, "title": "Ad"}]))
    assert desk.run("apply", "-i", "inventory.yml", "play.yml", "--yes").code == 0
    assert [marker.pos for marker in clip.markers] == [25]


def test_a_length_of_a_billion_frames_is_not_divided_into_as_many_pieces(
    desk: Desk, news: SimDatabase
) -> None:
    news.add_clip("Long", "Raw", frames=500).shown["frames"] = "999999999"
    desk.write("play.yml", one("Long", segmentation={"duration": 1}))
    refused = desk.run("plan", "-i", "inventory.yml", "play.yml")
    assert refused.code == 1
    refused.one_error("999999999 pieces, more than 10000", "write a longer duration")


# Items without a readable number


def test_an_item_without_a_readable_number_is_touched_by_nothing(
    desk: Desk, news: SimDatabase
) -> None:
    clip = news.add_clip("Film", "Raw", frames=500)
    _with_marker(clip, "uid", "1_0")
    clip.markers.append(SimMarker(10, 200, {"track": "General", "title": "Old"}))
    _with_segment(clip, "number", "1e0")
    clip.segments.append(SimSegment(1, 0, 50))
    part = {"number": 1, "start": 0, "duration": 50, "title": "Part"}
    desk.write("play.yml", one("Film", markers=[{"uid": 10, "title": "New"}], segments=[part]))
    assert desk.run("apply", "-i", "inventory.yml", "play.yml", "--yes").code == 0
    assert [(str(each.uid), each.fields.get("title")) for each in clip.markers] == [
        ("1_0", None),
        ("10", "New"),
    ]
    assert sorted(str(each.number) for each in clip.segments) == ["1", "1e0"]


@pytest.mark.parametrize(
    ("asset", "words"),
    [
        (
            {"markers": [{"uid": 10, "state": "absent"}], "exactly": ["markers"]},
            "the uid of a marker is '1_0'",
        ),
        ({"markers": [{"at": 100, "title": "Ad"}]}, "the uid of a marker is '1_0'"),
        (
            {"segments": [{"number": 1, "start": 0, "duration": 50}]},
            "the number of a segment is '1e0'",
        ),
        ({"segments": [{"start": 0, "duration": 50}]}, "the number of a segment is '1e0'"),
        (
            {"segments": [{"title": "Part", "state": "absent"}], "exactly": ["segments"]},
            "the number of a segment",
        ),
        ({"segmentation": {"duration": 250}}, "the number of a segment is '1e0'"),
    ],
)
def test_what_may_concern_such_an_item_is_refused(
    desk: Desk, news: SimDatabase, asset: Any, words: str
) -> None:
    clip = news.add_clip("Film", "Raw", frames=500)
    _with_marker(clip, "uid", "1_0")
    _with_segment(clip, "number", "1e0")
    desk.write("play.yml", one("Film", **asset))
    refused = desk.run("plan", "-i", "inventory.yml", "play.yml")
    assert refused.code == 1, refused.out
    refused.one_error(words)


def test_nothing_is_tried_on_a_clip_with_such_an_item(
    desk: Desk, sim: Simulator, news: SimDatabase
) -> None:
    _with_segment(news.add_clip("Film", "Raw", frames=500), "number", "1e0")
    refused = desk.run("probe", "-i", "inventory.yml", "--scratch", "Film", "-y")
    assert refused.code == 4
    refused.one_error("the number of a segment is '1e0'", "nothing is tried on it")
    assert not sim.writes()
