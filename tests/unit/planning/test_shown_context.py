"""What surrounds the changes of a target: all that stays, nothing that a change shows already."""

from __future__ import annotations

from typing import Any

from msauto.model.live import Asset, Marker, Segment
from msauto.model.plan import Request, Target, TargetContext
from msauto.model.ports import LiveTarget
from msauto.model.snapshot import Effect
from msauto.planning.asset_survey import shown_context
from msauto.secrets.redacted_plans import Redactor
from msauto.secrets.redaction import Secrets
from tests.shown_items import shown_marker, shown_segment

ASSET = Asset(
    "Film",
    attributes={"frames": "1000", "first_frame": "100"},
    markers=(Marker(1, 5, {"track": "cue point", "title": "Break"}), Marker(2, 9)),
    segments=(Segment(1, 0, 10, "One"), Segment(2, 10, 20, "Two"), Segment(3, 30, 5, "Three")),
)


def shown(*things: tuple[Any, str]) -> TargetContext | None:
    """What surrounds changes of these things."""
    requests = [Request("POST", "/x", effects=(Effect(*thing),)) for thing in things]
    return shown_context(LiveTarget(asset=ASSET), requests)


def test_what_a_change_shows_is_not_repeated() -> None:
    assert shown(
        ("segment", "1"), ("segment", "3"), ("marker", "2"), ("xmp", "dc:a")
    ) == TargetContext(
        1000, (shown_segment(2, 10, 20, "Two"), shown_marker(1, 5, "Cue Point", "Break"))
    )


def test_other_changes_need_the_length_alone() -> None:
    assert shown(("field", "comment")) == TargetContext(1000)


def test_a_secret_in_a_title_or_track_is_redacted() -> None:
    markers = shown_marker(1, 2, "General", "topsecret"), shown_marker(2, 3, "my topsecret")
    context = TargetContext(9, (shown_segment(1, 0, 1, "a topsecret"), *markers))
    target = Redactor(Secrets(["topsecret"]))(
        Target("studio", "NEWS", "asset", "Film", context=context)
    )
    assert target.context is not None
    assert "topsecret" not in repr(target.context)
    assert target.context.items[0].title == "a ***"
