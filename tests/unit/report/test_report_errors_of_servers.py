"""An error of one server for many targets is reported once, in every form."""

from __future__ import annotations

from msgspec import structs

from msauto.report import markdown
from msauto.report.terminal import plan_text
from tests.unit.report.made_plans import episode, plan_of


def test_one_error_of_many_targets_is_told_once() -> None:
    down = [
        structs.replace(episode(), name=f"EP{n}", error="server studio-a: no connection\n  → check it")
        for n in range(5)
    ]
    other = structs.replace(episode(), name="EP9", error="there is no asset EP9")
    plan = plan_of(*down, other)
    for render in (plan_text.render_plan, markdown.render_plan):
        sourced = "".join(render(plan))
        assert sourced.count("no connection") == 1
        assert sourced.count("there is no asset EP9") == 1
        assert "6 targets in" in sourced


def test_one_error_of_several_servers_names_all_of_them() -> None:
    plan = plan_of(*(structs.replace(episode(), server=name, error="no connection") for name in ("a", "b")))
    text = "".join(plan_text.render_plan(plan))
    assert text.startswith("2 servers · NEWS · 2 assets\n    a, b · NEWS: Evening News\n  error: no connection\n")
