"""Values that are possible but probably mistakes: warnings about what a task sets, and none about other values."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.planning.planning_world import Clip, stage
from tests.unit.planning.playbook_forms import asset_intent

START, END = "Profanity Start", "Profanity End"


def plan(args: dict[str, Any], **clip: Any) -> tuple[str | None, list[str]]:
    """Return the error and the warnings, without server and place."""
    found = stage(Clip("Film", **clip), folders={"Playout"}).plan(asset_intent({"title": "Film", **args}))
    errors = [target.error for target in found.targets if target.error]
    assert all("task.yml:" in warning for warning in found.warnings)
    return (errors[0] if errors else None), [text.partition(" (task.yml")[0] for text in found.warnings]


def marker(at: int, track: str, **more: Any) -> dict[str, Any]:
    return {"at": at, "track": track, **more}


def live(uid: int, frame: int, track: str) -> dict[str, Any]:
    return {"uid": uid, "frame": frame, "track": track}


REVERSED = "the IN point (first_frame, frame 200) lies after the OUT point (last_frame, frame 100)"


def test_in_after_out_in_one_task_is_an_error() -> None:
    error, _ = plan({"fields": {"first_frame": 200, "last_frame": 100}})
    assert error is not None
    assert REVERSED in error
    assert "task.yml:" in error


@pytest.mark.parametrize(
    ("fields", "there", "warnings"),
    [
        ({"first_frame": 200}, {"last_frame": "100"}, [f"Film: {REVERSED}"]),
        ({"last_frame": 100}, {"first_frame": "200"}, [f"Film: {REVERSED}"]),
        ({"first_frame": 100, "last_frame": 100}, {}, []),
        ({"first_frame": 200}, {"last_frame": "0"}, []),
        ({"first_frame": 200}, {}, []),
        ({"comment": "x"}, {"first_frame": "200", "last_frame": "100"}, []),
        ({"first_frame": 200}, {"first_frame": "200", "last_frame": "100"}, []),
    ],
)
def test_in_after_an_out_that_is_there(fields: dict[str, Any], there: dict[str, str], warnings: list[str]) -> None:
    assert plan({"fields": fields}, fields=there) == (None, warnings)


@pytest.mark.parametrize(
    ("markers", "there", "warnings"),
    [
        ([marker(10, START), marker(20, END)], [], []),
        ([marker(10, START)], [], [f"Film: {START} at frame 10 has no {END}"]),
        ([marker(10, END)], [], [f"Film: {END} at frame 10 has no {START}"]),
        ([marker(10, START)], [live(1, 20, END)], []),
        ([marker(20, START)], [live(1, 10, END)], [f"Film: {START} at frame 20 has no {END}"]),
        ([marker(5, START)], [live(1, 10, START), live(2, 20, END)], [f"Film: {START} at frame 5 has no {END}"]),
        (
            [marker(20, END, state="absent")],
            [live(1, 10, START), live(2, 20, END)],
            [f"Film: {START} at frame 10 has no {END}"],
        ),
        ([marker(10, START)], [live(1, 10, START)], []),
        ([marker(30, "Icon")], [live(1, 10, START)], []),
        ([marker(30, START), marker(40, END)], [live(1, 10, END)], []),
        (
            [marker(10, START), marker(10, END)],
            [],
            [f"Film: {END} at frame 10 has no {START}", f"Film: {START} at frame 10 has no {END}"],
        ),
    ],
)
def test_profanity_comes_in_pairs(markers: list[Any], there: list[Any], warnings: list[str]) -> None:
    assert plan({"markers": markers}, markers=there) == (None, warnings)


INSIDE = {"first_frame": "50", "last_frame": "150"}


@pytest.mark.parametrize(
    ("args", "warnings"),
    [
        ({"markers": [{"at": 50}, {"at": 150}]}, []),
        ({"markers": [{"at": 49}]}, ["Film: marker General@49 lies before the IN point (frame 50)"]),
        ({"markers": [{"at": 151}]}, ["Film: marker General@151 lies after the OUT point (frame 150)"]),
        ({"markers": [{"at": 200, "state": "absent"}]}, []),
        ({"segments": [{"number": 1, "start": 50, "duration": 101}]}, []),
        (
            {"segments": [{"number": 1, "start": 50, "duration": 102}]},
            ["Film: segment 1 (frames 50 to 151) ends after the OUT point (frame 150)"],
        ),
        ({"markers": [{"at": 49}], "fields": {"first_frame": 0}}, []),
        (
            {"markers": [{"at": 60}], "fields": {"last_frame": 55}},
            ["Film: marker General@60 lies after the OUT point (frame 55)"],
        ),
    ],
)
def test_outside_in_and_out(args: dict[str, Any], warnings: list[str]) -> None:
    assert plan(args, fields=INSIDE) == (None, warnings)


def test_what_is_there_is_told_only_where_the_points_move() -> None:
    there = [live(1, 60, "General"), live(2, 20, "Icon")]
    task = {"markers": [{"at": 60}]}
    assert plan({**task, "fields": {"comment": "x"}}, fields=INSIDE, markers=there) == (None, [])
    assert plan({**task, "fields": {"last_frame": 55}}, fields=INSIDE, markers=there) == (
        None,
        ["Film: marker General@60 lies after the OUT point (frame 55)"],
    )


@pytest.mark.parametrize(
    ("args", "what"),
    [
        ({"markers": [{"at": 5, "title": "Ad "}]}, "the title of marker 'General@5' has blanks at an end: 'Ad '"),
        ({"segments": [{"number": 1, "start": 0, "duration": 5, "title": " Part"}]}, "the title of segment '1' has"),
        ({"segmentation": {"duration": 50, "title": "Part "}}, "the title of segmentation '50' has"),
        ({"links": [{"folder": "Playout", "title": "Film\t"}]}, "the title of link 'Playout/Film\\t' has blanks"),
        ({"title": "Film 2 ", "was": ["Film"]}, "the title has blanks at an end: 'Film 2 '"),
    ],
)
def test_titles_with_blanks_at_an_end(args: dict[str, Any], what: str) -> None:
    error, (warning,) = plan(args)
    assert error is None
    assert what in warning


def test_a_title_that_is_so_already_is_not_told() -> None:
    there = [{**live(1, 5, "General"), "title": "Ad "}]
    assert plan({"markers": [{"at": 5, "title": "Ad ", "comment": "x"}]}, markers=there) == (None, [])
