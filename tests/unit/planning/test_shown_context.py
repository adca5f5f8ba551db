"""What surrounds the changes of a target: all that stays, nothing that a change shows already."""

from __future__ import annotations

from typing import Any

from msauto.model.desired import TaskSource
from msauto.model.live import Asset, Marker, Segment
from msauto.model.plan import Change, Json, ShownMarker, ShownSegment, Target, TargetContext
from msauto.model.server import Dialect, ServerSpec
from msauto.planning.asset_survey import shown_context
from msauto.secrets.redaction import Secrets
from msauto.secrets.redactor import Redactor

ASSET = Asset(
    "Film",
    attributes={"frames": "1000", "first_frame": "100"},
    markers=(Marker(1, 5, {"track": "cue point", "title": "Break"}), Marker(2, 9)),
    segments=(Segment(1, 0, 10, "One"), Segment(2, 10, 20, "Two"), Segment(3, 30, 5, "Three")),
)
SERVER = ServerSpec("studio", "http://studio")


def change(aspect: Any, before: Json) -> Change:
    """Return a change of something live."""
    return Change("change", aspect, "key", before, None, "live", True, TaskSource("a.yml"))


def test_what_a_change_shows_is_not_repeated() -> None:
    changes = [change("segmentation", [{"number": 1}, {"number": 3}]), change("marker", {"uid": 2}), change("xmp", [])]
    assert shown_context(ASSET, SERVER, changes) == TargetContext(
        1000, (ShownSegment(2, 10, 20, "Two"),), (ShownMarker(1, 5, "Cue Point", "Break"),)
    )


def test_other_changes_need_the_length_alone() -> None:
    assert shown_context(ASSET, SERVER, [change("field", "a")]) == TargetContext(1000)


def test_positions_count_from_the_first_frame_of_the_file() -> None:
    from_in = ServerSpec("studio", "http://studio", dialect=Dialect(position_origin="in"))
    context = shown_context(ASSET, from_in, [change("marker", None)])
    assert [marker.frame for marker in context.markers] == [105, 109]
    assert [segment.start for segment in context.segments] == [100, 110, 130]


def test_a_secret_in_a_title_or_track_is_redacted() -> None:
    markers = ShownMarker(1, 2, "General", "topsecret"), ShownMarker(2, 3, "my topsecret")
    context = TargetContext(9, (ShownSegment(1, 0, 1, "a topsecret"),), markers)
    shown = Redactor(Secrets(["topsecret"]))(Target("studio", "NEWS", "asset", "Film", context=context))
    assert "topsecret" not in repr(shown)
    assert shown.context is not None
    assert shown.context.segments[0].title == "a ***"
