"""An error of one server for many targets is reported once, in every form."""

from __future__ import annotations

from msgspec import structs

from msauto.report import html, markdown, text
from tests.unit.report.made_plans import episode, plan_of


def test_one_error_of_many_targets_is_told_once() -> None:
    down = [
        structs.replace(episode(), name=f"EP{n}", error="server studio-a: no connection\n  → check it")
        for n in range(5)
    ]
    other = structs.replace(episode(), name="EP9", error="there is no asset EP9")
    plan = plan_of(*down, other)
    for render in (lambda p: text.render_plan(p, colour=False), markdown.render_plan, html.render_plan):
        sourced = "".join(render(plan))
        assert sourced.count("no connection") == 1
        assert "studio-a · 5 targets: EP0, EP1, EP2 and 2 more" in sourced
        assert sourced.count("there is no asset EP9") == 1
        assert "6 targets in error" in sourced


def test_the_same_words_of_two_servers_are_two_errors() -> None:
    plan = plan_of(*(structs.replace(episode(), server=name, error="no connection") for name in ("a", "b")))
    assert "".join(text.render_plan(plan, colour=False)).count("no connection") == 2
