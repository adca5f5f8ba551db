"""What others change between two runs, in every form of a plan; see ``tests/cases/stories/changed_outside.yml``."""

from __future__ import annotations

from typing import Any

from msauto.plugins.pages import html
from msauto.report import markdown
from msauto.report.text import render_plan
from tests.stage import Stage, errors


def film(comment: str) -> dict[str, Any]:
    return {"name": "Film", "asset": {"title": "Film", "fields": {"comment": comment}}}


def test_every_form_names_it(stage: Stage) -> None:
    run = stage.apply(film("Week 47")).run
    stage.sim.state.clip("Film").home.fields["comment"] = "CALL THE DESK"
    plan = stage.plan(film("Week 48"))
    assert 'was "Week 47"' in "".join(markdown.render_plan(plan))
    assert "changed outside since" in "".join(html.render_plan(plan))
    (change,) = plan.targets[0].changes
    assert (change.outside and change.outside.run, plan.summary.outside) == (run, 1)


def test_many_that_others_changed_are_all_named(stage: Stage) -> None:
    def week(number: int) -> list[dict[str, Any]]:
        return [
            {"asset": {"title": each, "fields": {"comment": f"week {number} of {each}"}}}
            for each in promos
        ]

    news = stage.sim.state.databases["NEWS"]
    promos = [f"Promo {number:03}" for number in range(210)]
    for each in promos:
        news.add_clip(each, "Promos", frames=100)
    stage.apply(*week(1))
    for each in promos:
        news.clip(each).home.fields["comment"] = f"by hand {each}"
    shown = " ".join(" ".join(render_plan(stage.plan(*week(2)))).split())
    assert [each for each in promos if f'was "week 1 of {each}"' not in shown] == []


def test_a_clip_is_known_whose_entries_got_other_numbers(stage: Stage) -> None:
    run = stage.apply(film("Ready")).run
    news = stage.sim.state.databases["NEWS"]
    home = news.clip("Film").home
    news._hide(home)
    home.link_id += 100
    news._show(home)
    home.fields["comment"] = "CLEARED by legal"
    for title in ("Film", "Feature"):
        news.change_entry(home, title)
        asset = {"title": title, "fields": {"comment": "Ready"}}
        plan = stage.plan({"name": "Film", "outside": "keep", "asset": asset})
        assert (errors(plan), plan.requests) == ([], 0)
        assert f"was changed outside since run {run}" in " ".join(plan.warnings)


def test_too_many_clips_of_equal_values_are_not_compared_and_that_is_told(stage: Stage) -> None:
    """What runs left of them counts under their titles alone."""
    stage.sim.dialect = stage.sim.dialect.with_values({"orig_name": "hidden"})
    news = stage.sim.state.databases["NEWS"]
    for number in range(101):
        clip = news.add_clip(f"Promo {number}", "Promos", frames=100, online=False)
        clip.omitted = ("create_time",)
    every = {"select": {"folder": "Promos"}, "fields": {"comment": "new"}}
    stage.apply({"name": "All", "asset": every})
    news.change_entry(news.clip("Promo 7").home, "Renamed")
    for outside, told in (("keep", True), ("overwrite", False)):
        asset = {"title": "Renamed", "fields": {"comment": "new"}}
        plan = stage.plan({"name": "One", "outside": outside, "asset": asset})
        assert ("so many clips report the same values" in " ".join(plan.warnings)) is told
