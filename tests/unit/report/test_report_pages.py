"""The plan as Markdown."""

from __future__ import annotations

from msgspec import structs

from msauto.report import markdown
from msauto.report.markdown import code
from tests.unit.report.made_plans import check_golden, film, mixed_result, plan_of, whole_plan


def test_markdown_reads_as_agreed() -> None:
    check_golden("plan.md", "".join(markdown.render_plan(whole_plan())))


def test_results_read_as_agreed() -> None:
    check_golden("result.md", "".join(markdown.render_result(mixed_result())))


def test_a_long_plan_still_fits_into_a_comment() -> None:
    plan = plan_of(*(structs.replace(film(), name=f"Promo {number}") for number in range(1000)))
    comment = "".join(markdown.render_plan(plan))
    assert len(comment) < 65_536
    shown = comment.count("| aspect |")
    assert f"**{1000 - shown} further targets not shown.**" in comment
    assert "".join(markdown.render_plan(plan, limit=None)).count("| aspect |") == 1000


def test_code_spans_hold_whatever_comes() -> None:
    assert code("plain") == "`plain`"
    assert code("`") == "``` ` ```"
    assert code("a``b") == "```` a``b ````"
    assert code(r"a\|b") == "<code>a&#92;&#124;b</code>"
