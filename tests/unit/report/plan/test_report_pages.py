"""The plan as Markdown."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from msauto.model.plan import Target
from msauto.report import markdown
from msauto.report.layout import Layout
from msauto.report.templates import code
from tests.examples import examples
from tests.unit.report.made_plans import (
    change,
    check_golden,
    episode,
    film,
    lost,
    mixed_result,
    plan_of,
    whole_plan,
)


def test_markdown_reads_as_agreed() -> None:
    check_golden("plan.md", "".join(markdown.render_plan(whole_plan())))


def test_results_read_as_agreed() -> None:
    check_golden("result.md", "".join(markdown.render_result(mixed_result())))


def promos(count: int, name: str = "Promo") -> list[Target]:
    return [structs.replace(film(), name=f"{name} {7 * number} 🏆") for number in range(count)]


def episodes(count: int) -> list[Target]:
    texts = [
        change("change", "field", f"user_{number % 10}", "", f"{number} " * 9)
        for number in range(count)
    ]
    return [
        structs.replace(episode(), name=f"EP {7 * n}", changes=(text,))
        for n, text in enumerate(texts)
    ]


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def test_only_details_are_cut_to_the_size_of_a_comment() -> None:
    plan = plan_of(*episodes(19), *promos(300), lost(), warnings=("careful",))
    whole = "".join(markdown.render_plan(plan, limit=float("inf")))
    comment = "".join(markdown.render_plan(plan, limit=units(whole) - 1500))
    assert units(whole) - 1500 >= units(comment)
    assert all(f"Promo {7 * number} 🏆" in comment for number in range(300))
    assert "did you mean «Evening News»?" in comment
    assert "careful" in comment
    shown = comment.count("<details")
    assert 0 < shown < 19
    assert (
        f"**The details of {19 - shown} targets are not shown here.** For the whole plan: `msauto plan`."
        in comment
    )


def test_deletions_for_which_there_is_no_room_are_counted() -> None:
    comment = "".join(markdown.render_plan(plan_of(*episodes(9), *promos(3000)), limit=20_000))
    named = 20 * comment.count("> - `studio-b · ARCHIVE")
    assert units(comment) <= 20_000
    assert named > 50
    assert "**3000 assets are deleted; this cannot be undone:**" in comment
    assert f"> - **{3000 - named} further deletions that do not fit.**" in comment


@given(st.integers(5000, 30_000), st.integers(0, 40), st.integers(0, 300), st.integers(0, 40))
@settings(max_examples=examples(100))
def test_no_comment_is_longer_than_asked(
    limit: int, changing: int, deleted: int, wrong: int
) -> None:
    errors = [structs.replace(lost(), name=f"Wrong {n}", error=f"{n} " * 200) for n in range(wrong)]
    plan = plan_of(
        *episodes(changing),
        *promos(deleted),
        *errors,
        warnings=tuple(f"{n} " * 99 for n in range(wrong)),
    )
    assert units("".join(markdown.render_plan(plan, limit=limit))) <= limit


def test_the_same_plan_gives_the_same_text() -> None:
    again = structs.replace(whole_plan(), created="2030-01-01T00:00:00+00:00", reads=99)
    assert list(markdown.render_plan(again)) == list(markdown.render_plan(whole_plan()))
    other = structs.replace(whole_plan(), unchanged=13)
    assert list(markdown.render_plan(other)) != list(markdown.render_plan(whole_plan()))


def test_the_marker_is_the_first_line_also_without_changes() -> None:
    text = "".join(markdown.render_plan(plan_of(unchanged=2), Layout(name="news")))
    marker, sentence, *_ = text.splitlines()
    assert re.fullmatch(r"<!-- msauto:plan:news v1 plan=[0-9a-f]{12} -->", marker)
    assert sentence == "### ✅ No changes. 2 targets are as desired."


def test_code_spans_hold_whatever_comes() -> None:
    assert code("plain") == "`plain`"
    assert code("`") == "``` ` ```"
    assert code("a``b") == "```` a``b ````"
    assert code(r"a\|b") == "<code>a&#92;&#124;b</code>"
