"""A hostile text in every place of a plan, a result and a batch is shown in every form, and does nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from xml.etree import ElementTree as ET

import pytest
from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families

from msauto.documents.csv_cells import as_written, csv_line, defused
from msauto.errors import Problem, SourceLocation
from msauto.model.plan import Outside, Plan
from msauto.model.result import Result
from msauto.plugins.batch.batch_result import BatchResult
from msauto.plugins.batch.monitoring import metrics_text, plain_notice
from msauto.plugins.batch.pages import render_index
from msauto.plugins.batch.summary import SUMMARY_FORMS
from msauto.plugins.pages import html
from msauto.report import ci_forms, markdown, text
from msauto.report.json import dump
from msauto.report.layout import Layout
from msauto.report.templates import markdown_text
from tests.hostile_texts import HOSTILE, ONE_LINE_TOGETHER, TOGETHER, poisoned
from tests.markdown_pages import MarkdownPage
from tests.properties.shown.test_report_is_harmless import Skeleton, is_harmless
from tests.tables import one_fast_in
from tests.unit.batch.test_batch_summary import RESULT
from tests.unit.batch.test_pages import SCHEDULE, bad_night
from tests.unit.report.made_plans import change, episode, mixed_result, whole_plan

COMMAND = re.compile(r"^\s*::|##\w*\[", re.MULTILINE)
BATCHES = structs.replace(RESULT, jobs=(*RESULT.jobs, *bad_night(0).jobs))


def plan() -> Plan:
    """A plan with everything that a plan may show, also handlers and what others changed."""
    outside = Outside("left", "run", "2026-11-20T02:10:00.000Z", "anna")
    handled = [
        structs.replace(
            change("change", "field", "comment", "a", "b"),
            handler="Post",
            pending="run",
            outside=outside,
        ),
        change("add", "marker", "new", None, {"at": 3, "track": "Cue", "title": "t"}),
    ]
    more = structs.replace(episode(), name="Other", changes=tuple(handled), rate=Fraction(25))
    whole = whole_plan()
    return structs.replace(whole, targets=(*whole.targets, more))


def with_text(sourced: str) -> tuple[Plan, Result, BatchResult]:
    shown = poisoned(plan(), sourced)
    came = structs.replace(poisoned(mixed_result(), sourced))
    return shown, came, poisoned(BATCHES, sourced)


@cache
def pages_of_markdown(sourced: str) -> list[str]:
    shown, came, batch = with_text(sourced)
    layout = Layout(name=sourced, verbosity=1)
    rendered: list[Iterable[str]] = [
        markdown.render_plan(shown, layout),
        markdown.render_plan(shown, Layout(name=sourced)),
        markdown.render_result(came, layout),
        SUMMARY_FORMS["markdown"][1](batch, None),
    ]
    return ["".join(pieces) for pieces in rendered]


@cache
def pages_of_html(sourced: str) -> list[str]:
    shown, came, batch = with_text(sourced)
    return [
        "".join(html.render_plan(shown, Layout(by=sourced))),
        "".join(html.render_result(came)),
        SUMMARY_FORMS["html"][1](batch, None),
        "".join(render_index([batch], SCHEDULE, {f"{sourced}.html"})),
    ]


@cache
def of_xml(sourced: str) -> list[str]:
    shown, came, _ = with_text(sourced)
    suites = [*ci_forms.render_plan(shown), *ci_forms.render_result(came)]
    return ["".join(suite) for suite in suites]


@pytest.mark.parametrize("sourced", one_fast_in(3, TOGETHER))
def test_markdown(sourced: str) -> None:
    plain = [MarkdownPage(page) for page in pages_of_markdown("q")]
    for page, expected in zip(pages_of_markdown(f"q {sourced}"), plain, strict=True):
        shown = MarkdownPage(page)
        assert shown.active == []
        assert is_harmless(page)
        assert not COMMAND.search(page)
        assert set(shown.structure) == set(expected.structure)
        if sourced in ONE_LINE_TOGETHER:
            assert shown.structure == expected.structure


@pytest.mark.parametrize(
    "place",
    ["{}", "- {}", "1. {}", "### {}", "> {}", "| a |\n|-|\n| {} |", "**a {}**", "<sub>{}</sub>"],
)
def test_any_text_of_a_template_in_any_place(place: str) -> None:
    expected = MarkdownPage(place.format("q")).structure
    for sourced in HOSTILE:
        page = MarkdownPage(place.format(markdown_text(sourced)))
        assert page.active == [], sourced
        assert page.structure == expected, sourced


HONEST = [
    "Film (1)", "A & B", "50 %", "Über", "news_2026_final", "Part 1. Intro", "studio-a, studio-b", 'by "anna"',
    "10:30:00", "2 targets are as desired.", "Playout/Tonight", "it's done", "100%", "1,5 GB", "a · b → c",
    "Evening News — late", "«Film»",
]  # fmt: skip


def test_honest_text_is_as_it_was() -> None:
    assert list(map(markdown_text, HONEST)) == HONEST


@pytest.mark.parametrize("sourced", one_fast_in(3, TOGETHER))
def test_html(sourced: str) -> None:
    for hostile, plain in zip(pages_of_html(f"q{sourced}"), pages_of_html("q"), strict=True):
        pages = (re.sub(r' (href|title|data-job)="[^"]*"', "", page) for page in (hostile, plain))
        tags, expected = (Skeleton(page).tags for page in pages)
        # A second sentence and a second line have elements of their own.
        is_one_sentence = sourced in ONE_LINE_TOGETHER and ". " not in sourced
        own = set() if is_one_sentence else {"('br', [])", "('p', [('class', 'more')])", "p"}
        assert set(map(str, tags)) <= set(map(str, expected)) | own
        if is_one_sentence:
            assert tags == expected
        assert is_harmless(hostile)


@pytest.mark.parametrize("sourced", one_fast_in(3, TOGETHER))
def test_junit(sourced: str) -> None:
    for hostile, plain in zip(of_xml(f"q{sourced}"), of_xml("q"), strict=True):
        tags, expected = (
            [element.tag for element in ET.fromstring(page).iter()] for page in (hostile, plain)
        )
        assert tags == expected
        assert is_harmless(hostile)


@pytest.mark.parametrize("sourced", one_fast_in(3, TOGETHER))
def test_text(sourced: str) -> None:
    shown, came, batch = with_text(sourced)
    forms = [
        *(
            "".join(text.render_plan(shown, Layout(verbosity=verbosity, width=70)))
            for verbosity in (0, 2)
        ),
        "".join(text.render_result(came, Layout(verbosity=2))),
        SUMMARY_FORMS["text"][1](batch, None),
    ]
    for form in forms:
        assert is_harmless(form)
        assert not COMMAND.search(form)


def test_json() -> None:
    for sourced in HOSTILE:
        written = dump({sourced: [sourced]})
        assert json.loads(written) == {sourced: [sourced]}
        assert is_harmless(written), written
        assert not COMMAND.search(written), written


def test_annotations() -> None:
    form = re.compile(r"::error file=([^:,]*),line=3,col=4,title=([^:,]*)::(.*)\n")
    for sourced in HOSTILE:
        problem = Problem(sourced, SourceLocation(f"{sourced}.yml", 3, 4), sourced, sourced)
        (command,) = ci_forms.render_github([problem])
        assert form.fullmatch(command), command
        assert is_harmless(command), command
        (report,) = ci_forms.problems_gitlab([problem])
        assert is_harmless(report["location"]["path"]), report
        assert is_harmless(report["description"]), report


@pytest.mark.parametrize("sourced", TOGETHER)
def test_metrics(sourced: str) -> None:
    batch = with_text(sourced)[2]
    written = metrics_text(batch)
    samples = [
        sample for family in text_string_to_metric_families(written) for sample in family.samples
    ]
    expected = [
        sample
        for family in text_string_to_metric_families(metrics_text(BATCHES))
        for sample in family.samples
    ]
    assert {sample.labels["batch"] for sample in samples} == {sourced}
    assert [sample.name for sample in samples] == [sample.name for sample in expected]


MEANING = re.compile(r"[@<>\[\]`|*~#]|://|www\.")


@pytest.mark.parametrize("sourced", TOGETHER)
def test_notices(sourced: str) -> None:
    notice = plain_notice(SUMMARY_FORMS["text"][1](with_text(sourced)[2], None))
    assert not MEANING.search(notice)


FORMULA = re.compile(r'(?:^|[;|\t\r\n])"?\s*[=+\-@＝＋－＠]')
CELLS = [
    *HOSTILE, "=1", "+x", "-x", "@x", " =1", "\t=1", "\r=1", "＝1", "\u200b=1", "a;=1", "a\n=1", "a\t@x", "'=1",
    "''-x", "-5", "'-5", "+3,5", "1e-5", "",
]  # fmt: skip


def test_csv() -> None:
    for cell in CELLS:
        written = defused(cell)
        assert as_written(written) == cell
        assert csv_line([cell]).startswith('"'), cell
        if re.fullmatch(r"[-+]?[\d.,]+", cell):
            assert written == cell
        else:
            assert not FORMULA.search(written), cell
