"""An unknown title offers the nearest live ones, from one listing, which is only read after the error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msauto.planning.titles import nearest_titles
from tests.unit.planning.planning_world import Clip, stage
from tests.unit.planning.test_survey_of_a_server import comment, film, intent

LIVE = ["EP001", "EP002", "Evening News", "Вечерние новости", "Promo 7 – Weekend"]


@pytest.mark.parametrize(
    ("title", "near"),
    [
        ("ep 1", ("EP001",)),
        ("Evening  news", ("Evening News",)),
        ("Evning News", ("Evening News",)),
        ("Вечерние новсти", ("Вечерние новости",)),
        ("Promo 7 - Weekend", ("Promo 7 – Weekend",)),
        ("Evening News", ()),
        ("Long Film", ()),
        ("", ()),
    ],
)
def test_nearest_titles(title: str, near: tuple[str, ...]) -> None:
    assert nearest_titles(title, LIVE) == near


@given(st.text(min_size=1, max_size=20), st.lists(st.text(max_size=20), max_size=20))
def test_at_most_three_live_titles_are_offered(title: str, live: list[str]) -> None:
    near = nearest_titles(title, live)
    assert set(near) <= set(live)
    assert len(near) == len(set(near)) <= 3


def test_each_unknown_title_names_the_nearest() -> None:
    scene = stage(Clip("EP001"), Clip("EP002", link_id=2))
    found = scene.plan(*(intent(film(title), comment("a")) for title in ("EP1", "EP2", "EP001")))
    errors = {target.name: str(target.error) for target in found.targets if target.error}
    assert "did you mean 'EP001'? Else correct the title" in errors["EP1"]
    assert "did you mean 'EP002'?" in errors["EP2"]
    assert sum(each.startswith("select") for each in scene.reader.asked) == 2  # the reader of the client keeps it


def test_several_titles_are_listed_in_a_sentence() -> None:
    found = stage(Clip("EP 001"), Clip("EP-001", link_id=2), Clip("EP_001", link_id=3)).plan(
        intent(film("EP1"), comment("a"))
    )
    assert "did you mean 'EP 001', 'EP-001' or 'EP_001'? Else" in str(found.targets[0].error)


def test_without_an_error_nothing_is_listed() -> None:
    scene = stage(Clip("EP001"))
    scene.plan(intent(film("EP001"), comment("a")))
    assert not any(each.startswith("select") for each in scene.reader.asked)
