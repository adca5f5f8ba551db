"""Markers: effects as the server counts, what may not be new, what counts as lost, and what can be exported."""

from __future__ import annotations

from typing import Any

from msauto.aspects.marker import Markers
from msauto.documents.writer import CommentedValue, FlowStyle
from msauto.model.live import Asset, AssetSnapshot, Marker
from msauto.model.plan import Target
from msauto.model.server import Dialect
from msauto.model.snapshot import Effect
from tests.unit.planning.planning_world import Clip, stage
from tests.unit.planning.playbook_forms import asset_intent

LIVE = [
    {"uid": 1, "frame": 0, "track": "General", "title": "one", "comment": "said"},
    {"uid": 7, "frame": 20, "track": "icon", "title": "seven", "comment": ""},
]
FROM_IN = Dialect(position_origin="in")


def plan(*markers: dict[str, Any], dialect: Dialect = FROM_IN, **args: Any) -> Target:
    """Return the plan for a clip whose in point is frame 50."""
    clip = Clip("Film", fields={"first_frame": "50"}, markers=[dict(marker) for marker in LIVE])
    intent = asset_intent({"title": "Film", "markers": [*markers], **args})
    (target,) = stage(clip, dialect=dialect).plan(intent).targets
    assert target.error is None
    return target


def test_effects_have_the_whole_value_before_and_what_is_sent_after() -> None:
    target = plan(
        {"uid": 7, "state": "absent"}, {"at": 50, "title": "new"}, {"at": 90, "rating": 2}
    )
    assert target.effects == (
        (
            Effect(
                "marker", "7", {"frame": 70, "track": "Icon", "title": "seven", "comment": ""}, None
            ),
        ),
        (
            Effect(
                "marker",
                "1",
                {"frame": 50, "track": "General", "title": "one", "comment": "said"},
                {"frame": 50, "track": "General", "title": "new"},
            ),
        ),
        (Effect("marker", "new 1", None, {"frame": 90, "track": "General", "rating": "2"}),),
    )
    assert target.changes[0].before == {"uid": 7, "frame": 70, "track": "Icon", "title": "seven"}


def test_what_needs_no_change_is_held() -> None:
    target = plan({"at": 50, "title": "one"}, {"at": 90})
    (held,) = target.holding or ()
    assert (held.key, held.after) == ("1", {"frame": 50, "track": "General", "title": "one"})


def test_what_is_absent_by_place_may_not_be_new() -> None:
    target = plan({"at": 60, "title": "x", "state": "absent"}, {"at": 90})
    assert target.unwanted == (("marker", {"frame": 60, "track": "General", "title": "x"}),)


def test_of_a_complete_list_nothing_may_be_new_in_its_tracks() -> None:
    target = plan({"at": 90}, exactly={"markers": {"tracks": ["Icon", "Cue Point"]}})
    assert target.unwanted == (("marker", {"track": "Cue Point"}), ("marker", {"track": "Icon"}))
    assert plan({"at": 90}, exactly=["markers"]).unwanted == (("marker", {}),)


def test_positions_that_count_from_the_in_point_depend_on_it() -> None:
    assert "field first_frame" in plan({"at": 90}).depends_on.names
    assert "field first_frame" not in plan({"at": 90}, dialect=Dialect()).depends_on.names


def test_what_goes_counts_as_lost_unless_a_task_names_its_uid() -> None:
    twins = [*LIVE, {"uid": 7, "frame": 30, "track": "Icon"}]
    for args in (
        {"markers": [{"uid": 7, "state": "absent"}]},
        {"markers": [{"at": 50}], "exactly": ["markers"]},
    ):
        world = stage(Clip("Film", markers=[dict(marker) for marker in twins]))
        (target,) = world.plan(asset_intent({"title": "Film", "lossy": True, **args})).targets
        gone = [change.losses for change in target.changes if change.action == "delete"]
        assert gone == ([0, 0] if "exactly" not in args else [1, 1, 1])


def test_a_list_that_is_emptied_in_its_tracks_counts() -> None:
    exactly = {"markers": {"tracks": ["General"]}}
    target = plan({"uid": 7, "title": "x"}, exactly=exactly)
    assert [(each.aspect, each.count) for each in target.emptied] == [("marker", 1)]
    assert plan({"at": 90, "track": "Icon"}, exactly=exactly).emptied
    assert not plan({"at": 90}, exactly=exactly).emptied


def test_markers_of_one_uid_are_not_exported() -> None:
    markers = (Marker(7, 10), Marker(7, 20), Marker(8, 30))
    part = Markers().export(AssetSnapshot("Film", Asset("Film", markers=markers)), Dialect())
    assert part.items == [
        CommentedValue(("several markers have the uid 7: none of them can be named",)),
        FlowStyle({"at": 30, "track": "General"}),
    ]
    assert not part.complete
