"""The example that msauto was asked for, with awkward titles, on servers of every habit: the fewest requests, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msauto.plugins.simulator.embedded import SimClip, SimMarker, SimSegment, Simulator, empty_state
from tests.dialects.fitting import ours_of, rows, server_of
from tests.dialects.pairwise import Row
from tests.stage import Stage, lines

AWKWARD = (
    "Back\\Slash / Film: 50% @ night?",
    "Новости дня",
    "a&b+c=d;e,f#g",
    "..",
    ".",
    "100%41",
    " leading and trailing ",
    "new\nline",
    "title:looks like an id",
    "handle:4711",
    "quotes \" and ' and <tags>",
    "é composed, é decomposed",
)


def asset(title: str) -> dict[str, Any]:
    return {
        "name": "Ready for air",
        "asset": {
            "title": title,
            "fields": {"comment": "Ready, 50% & more\nsecond line", "user_0": "Kanal+5"},
            "xmp": {"dc:title": ["Новости & more"], "dc:subject": ["news", "50%"]},
            "segments": [
                {"number": 1, "start": "00:00:00:00", "duration": "00:00:10:00", "title": "Part, 1"}
            ],
            "markers": [
                {"uid": 3, "at": "00:00:05:00"},
                {"at": 100, "track": "Cue Point", "title": "Ad break"},
            ],
            "links": [{"folder": "Playout/AC\\/DC"}],
        },
    }


def put(sim: Simulator, title: str, row: Row) -> SimClip:
    sim.state, sim.dialect = empty_state(), server_of(row)
    sim.state.databases["NEWS"].make_folder("Playout/AC\\/DC")
    clip = sim.state.add_clip(title, "Raw", frames=1000)
    clip.segments.append(SimSegment(1, 0, 100, ["Part, 1"]))
    clip.markers.append(
        SimMarker(3, 50, {"track": "General", "title": "Kept", "comment": "kept too"})
    )
    return clip


def check(clip: SimClip, title: str) -> None:
    assert clip.home.fields == {"comment": "Ready, 50% & more\nsecond line", "user_0": "Kanal+5"}
    assert clip.xmp == {"dc:title": ["Новости & more"], "dc:subject": ["news", "50%"]}
    assert [(s.number, s.start, s.duration, s.titles) for s in clip.segments] == [
        (1, 0, 250, ["Part, 1"])
    ]
    moved, new = sorted(clip.markers, key=lambda marker: -marker.pos)
    assert (moved.uid, moved.pos, moved.fields["title"], moved.fields["comment"]) == (
        3,
        125,
        "Kept",
        "kept too",
    )
    assert (new.pos, new.fields["track"], new.fields["title"]) == (100, "Cue Point", "Ad break")
    assert [(entry.folder, entry.title) for entry in clip.entries[1:]] == [
        (("Playout", "AC/DC"), title)
    ]


def play(title: str, row: Row, sim: Simulator, folder: Path) -> None:
    clip, ours = put(sim, title, row), ours_of(row)
    stage = Stage(sim, folder, ours)
    resolved = stage.resolved(asset(title))
    plan = stage.planned(resolved)
    result = stage.applied(plan, resolved)
    assert result.ok, (
        [(each.outcome, each.message, each.differences) for each in result.targets],
        row,
    )
    fewest = 2 + 1 + (2 if ours["segment_update"] == "recreate" else 1) + 2 + 1
    assert len(stage.sent()) == fewest, (lines(stage.sent()), row)
    check(clip, title)
    again = stage.planned(resolved)
    assert (again.requests, again.unchanged, again.errors) == (0, 1, 0), row
    if not row:
        assert len(stage.reads()) == 3, stage.reads()


@pytest.mark.parametrize("title", AWKWARD)
def test_on_a_plain_server(title: str, sim: Simulator, tmp_path: Path) -> None:
    play(title, {}, sim, tmp_path)


@pytest.mark.scale
@pytest.mark.parametrize(
    "number", range(len(AWKWARD)), ids=lambda number: AWKWARD[number].strip() or "blank"
)
def test_on_a_share_of_the_rows(number: int, sim: Simulator, tmp_path: Path) -> None:
    for turn in range(12):
        row = rows()[(12 * number + turn) % len(rows())]
        if AWKWARD[number].startswith(" "):
            # Where texts stand on lines of their own, blanks at their ends cannot be read.
            row = {**row, "xml_layout": "compact"}
        (tmp_path / str(turn)).mkdir()
        play(AWKWARD[number], row, sim, tmp_path / str(turn))
