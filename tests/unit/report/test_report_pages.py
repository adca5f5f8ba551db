"""The plan as Markdown and HTML."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html import unescape

from msgspec import structs

from msauto.report import html, markdown
from msauto.report.markdown import code
from tests.unit.report.made_plans import check_golden, episode, film, mixed_result, plan_of, whole_plan


def test_markdown_reads_as_agreed() -> None:
    check_golden("plan.md", "".join(markdown.render_plan(whole_plan())))


def test_html_reads_as_agreed() -> None:
    check_golden("plan.html", "".join(html.render_plan(whole_plan())))


def test_results_read_as_agreed() -> None:
    check_golden("result.md", "".join(markdown.render_result(mixed_result())))
    check_golden("result.html", "".join(html.render_result(mixed_result())))


def test_html_allows_its_own_style_and_nothing_else() -> None:
    page = "".join(html.render_plan(plan_of(episode())))
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert style is not None
    assert policy is not None
    digest = b64encode(sha256(style[1].encode()).digest()).decode()
    assert unescape(policy[1]) == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert "<script" not in page
    assert " style=" not in page


def test_html_escapes_a_hostile_title() -> None:
    page = "".join(html.render_plan(plan_of(structs.replace(film(), name='<img src=x onerror="alert(1)">'))))
    assert "&lt;img src=x onerror=&quot;alert(1)&quot;&gt;" in page
    assert "<img" not in page


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
