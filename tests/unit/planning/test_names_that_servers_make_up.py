"""An empty title is desired and the server shows a name: it may be generated, so a warning reports it."""

from __future__ import annotations

import pytest

from tests.unit.planning.planning_world import Clip, stage
from tests.unit.planning.playbook_forms import asset_intent


@pytest.mark.parametrize(
    ("shown", "title", "told"),
    [
        ({"name": "Segment 3"}, "", True),
        ({"name": "Segment 3"}, "Part 3", False),
        ({"title": "Part 3"}, "", False),
        ({}, "", False),
    ],
)
def test_a_name_that_may_be_made_up(shown: dict[str, str], title: str, told: bool) -> None:
    context = stage(Clip("Film", segments={3: {"start": 0, "duration": 10, **shown}}))
    desired = {"number": 3, "start": 0, "duration": 10, "title": title}
    survey = context.plan(asset_intent({"title": "Film", "segments": [desired]}))
    warnings = [each for each in survey.warnings if "omit `title`" in each]
    assert bool(warnings) is told
    assert all("segment 3 shows the name 'Segment 3' and no title" in each for each in warnings)
