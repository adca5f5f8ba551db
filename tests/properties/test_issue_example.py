"""The example that msauto was asked for: the fewest requests; a second plan reads three times and finds nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msauto.simulator import SimMarker, SimSegment, Simulator, empty_state
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
            "segments": [{"number": 1, "start": "00:00:00:00", "duration": "00:00:10:00", "title": "Part, 1"}],
            "markers": [
                {"uid": 3, "at": "00:00:05:00"},
                {"at": 100, "track": "Cue Point", "title": "Ad break"},
            ],
            "links": [{"folder": "Playout/AC\\/DC"}],
        },
    }


@pytest.mark.parametrize("title", AWKWARD)
def test_fewest_requests_and_nothing_left(title: str, tmp_path: Path) -> None:
    state = empty_state()
    state.databases["NEWS"].make_folder("Playout/AC\\/DC")
    clip = state.add_clip(title, "Raw", frames=1000)
    clip.segments.append(SimSegment(1, 0, 100, ["Part, 1"]))
    clip.markers.append(SimMarker(3, 50, {"track": "General", "title": "Kept", "comment": "kept too"}))
    with Simulator(state=state) as sim:
        stage = Stage(sim, tmp_path)
        result = stage.apply(asset(title))
        assert result.ok, result
        assert len(stage.sent()) == 2 + 1 + 2 + 2 + 1, lines(stage.sent())
        assert clip.home.fields["comment"] == "Ready, 50% & more\nsecond line"
        assert clip.home.fields["user_0"] == "Kanal+5"
        assert clip.xmp == {"dc:title": ["Новости & more"], "dc:subject": ["news", "50%"]}
        assert [(s.number, s.start, s.duration, s.titles) for s in clip.segments] == [(1, 0, 250, ["Part, 1"])]
        moved = clip.marker(3)
        assert moved is not None
        assert (moved.pos, moved.fields["title"], moved.fields["comment"]) == (125, "Kept", "kept too")
        assert [(e.folder, e.title) for e in clip.entries[1:]] == [(("Playout", "AC/DC"), title)]
        sim.clear_log()
        again = stage.plan(asset(title))
        assert (again.requests, again.unchanged, again.errors) == (0, 1, 0)
        assert len(stage.reads()) == 3, stage.reads()
