"""Two live items of one key do not count as an item of that key, whatever a task or a plan names of it."""

from __future__ import annotations

import pytest

from msauto.aspects import ASPECTS
from msauto.model.snapshot import TWINS, Json

PAIR: Json = {TWINS: [{"title": "a"}, {"title": "a"}]}
SINGLE: Json = {"title": "a"}


@pytest.mark.parametrize("aspect", ["marker", "segment", "link", "rss_item"])
def test_twins_are_as_the_same_twins_alone(aspect: str) -> None:
    rule = ASPECTS[aspect]
    assert rule.misses(PAIR, PAIR) == ()
    for named, shown in [({}, PAIR), (SINGLE, PAIR), (PAIR, SINGLE), (PAIR, None)]:
        assert rule.misses(named, shown) == (TWINS,), (named, shown)
