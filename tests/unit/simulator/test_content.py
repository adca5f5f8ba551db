"""Content of the embedded server as people write it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from msauto import MediaServer
from msauto.plugins.simulator.embedded import Simulator
from msauto.plugins.simulator.embedded.seed import state_from_content
from tests.tables import CASES, load, table

CONTENT = load(CASES / "simulator" / "content.yml")


def test_content_is_what_the_server_reports() -> None:
    with Simulator(state_from_content(CONTENT)) as simulator, MediaServer(simulator.url) as server:
        clip = server.asset("NEWS", "Evening News")
        assert (clip.folder, clip.frames, clip.fps, clip.attributes["comment"]) == (
            ("Raw", "2026"),
            45000,
            25,
            "raw",
        )
        (segment,) = clip.segments
        assert (segment.number, segment.start, segment.duration, segment.title) == (
            1,
            0,
            9000,
            "Part 1",
        )
        assert segment.rating == "2"
        assert [(marker.uid, marker.frame, marker.track) for marker in clip.markers] == [
            (1, 250, "Cue Point"),
            (9, 5, "General"),
        ]
        assert server.xmp("NEWS", "Evening News") == {
            "dc:subject": ("news",),
            "dc:title": ("Evening",),
        }
        assert [entry.title for entry in server.list("NEWS", "Playout").entries] == ["Evening News"]
        assert server.asset("NEWS", "Film").rate == Fraction(30000, 1001)
        assert [item.title for item in server.channel("ticker").items] == ["Headline"]


@table("simulator/wrong_content", "content", "words")
def test_wrong_content_is_named(content: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        state_from_content(content or [1])
