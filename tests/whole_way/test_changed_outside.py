"""What others change between two runs, in every form of a plan; see ``tests/cases/stories/changed_outside.yml``."""

from __future__ import annotations

from typing import Any

from msauto.plugins.pages import html
from msauto.report import markdown
from msauto.report.text import render_plan
from tests.stage import Stage


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
    promos = [f"Promo {number:03}" for number in range(450)]
    for each in promos:
        news.add_clip(each, "Promos", frames=100)
    stage.apply(*week(1))
    for each in promos:
        news.clip(each).home.fields["comment"] = f"by hand {each}"
    shown = " ".join(" ".join(render_plan(stage.plan(*week(2)))).split())
    assert [each for each in promos if f'was "week 1 of {each}"' not in shown] == []


def test_a_link_under_the_former_title_of_a_renamed_clip_is_named_by_its_link_id(
    stage: Stage,
) -> None:
    clip, fields = stage.sim.state.clip("Film"), {"comment": "Ready"}
    stage.apply({"asset": {"title": "Film", "fields": fields, "links": [{"folder": "Playout"}]}})
    clip.home.title = "Film, final"
    plan = stage.plan({"asset": {"title": "Film", "fields": fields}})
    text = " ".join(" ".join(render_plan(plan)).split())
    now, was = clip.entries[1].link_id, clip.home.link_id
    assert (
        f"another entry (link_id {now}) than the one that earlier runs wrote to (link_id {was})"
        in text
    )
