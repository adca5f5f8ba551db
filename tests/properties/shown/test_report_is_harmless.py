"""With any text in any field, a report is valid: no text is executed, and no text breaks the form."""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from html.parser import HTMLParser
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from msauto.errors import Problem, SourceLocation
from msauto.model.desired import TaskSource
from msauto.model.identity import ClipIdentity
from msauto.model.plan import Action, Body, Change, Plan, PlannedServer, Refusal, Request, Target
from msauto.model.result import Difference, RequestResult, Result, TargetResult
from msauto.model.snapshot import AspectName
from msauto.plugins.pages import html
from msauto.report import markdown, text
from msauto.report.json import dump
from msauto.report.layout import Layout, render_table
from tests.examples import examples
from tests.markdown_pages import MarkdownPage

NASTY = [
    *["\x1b[2J", "\x9b31m", "\u202e", "\u200b", "\u2028", "\x00", "\ud800", "\n", "\r\n", "\t"],
    *[
        "|",
        "`",
        "```",
        "\\",
        "\\|",
        "*_[x](y)",
        "@all",
        "#12",
        "www.x.y",
        ":+1:",
        "<script>",
        "</td>",
        "&lt;",
        "-->",
        "]]>",
        '"',
        "'",
    ],
    *["→", "日本", "и\u0306", "x"],
]
TEXT = st.lists(st.sampled_from(NASTY) | st.text(max_size=6), max_size=5).map("".join)
ACTIONS: tuple[Action, ...] = ("add", "change", "delete", "run")
ASPECTS: tuple[AspectName, ...] = (
    "asset",
    "field",
    "xmp",
    "marker",
    "link",
    "rss_item",
    "command",
    "restore",
)


@st.composite
def changes(draw: st.DrawFn) -> Change:
    value: st.SearchStrategy[Any] = (
        st.none()
        | TEXT
        | st.lists(TEXT, max_size=3)
        | st.dictionaries(TEXT, TEXT, max_size=3)
        | st.integers()
    )
    place = SourceLocation(draw(TEXT), 3, 4)
    return Change(
        draw(st.sampled_from(ACTIONS)),
        draw(st.sampled_from(ASPECTS)),
        draw(TEXT),
        draw(value),
        draw(value),
        draw(st.sampled_from(["live", "ledger", "none"])),
        draw(st.booleans()),
        TaskSource.at(place, draw(TEXT)),
        losses=draw(st.integers(0, 2)),
    )


def body_of(text: str) -> Body:
    return Body.of(text.encode(errors="replace"), text)


@st.composite
def targets(draw: st.DrawFn) -> Target:
    body = draw(st.none() | st.binary(max_size=8).map(Body.of) | TEXT.map(body_of))
    return Target(
        draw(TEXT),
        draw(TEXT),
        draw(st.sampled_from(["asset", "rss_channel", "database"])),
        draw(TEXT),
        draw(st.none() | TEXT),
        changes=tuple(draw(st.lists(changes(), min_size=1, max_size=3))),
        requests=(Request("PUT", draw(TEXT), (0,), body),),
        error=draw(st.none() | TEXT),
        rate=draw(st.sampled_from([None, Fraction(25), Fraction(30000, 1001)])),
        clip=ClipIdentity(create_time=draw(st.none() | TEXT)),
        places=tuple(draw(st.lists(TEXT, max_size=2))),
    )


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    return Plan(
        draw(TEXT),
        draw(TEXT),
        targets=tuple(draw(st.lists(targets(), max_size=2))),
        refusals=tuple(Refusal(t, t, t, t) for t in draw(st.lists(TEXT, max_size=1))),
        warnings=tuple(draw(st.lists(TEXT, max_size=2))),
        servers=(PlannedServer(draw(TEXT), 0),),
    )


COLOURS = re.compile(r"\x1b\[(?:1|2|3[1-6]|0)m")


def is_harmless(shown: str) -> bool:
    """Only our own colours and line ends are left of what a terminal obeys; nothing is hidden."""
    rest = COLOURS.sub("", shown).replace("\n", "")
    return not any(
        unicodedata.category(sign) in {"Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"} for sign in rest
    )


@given(plans(), st.integers(0, 2), st.integers(1, 200))
@settings(deadline=None, max_examples=examples(150, fast=5))
def test_text_of_a_plan_writes_nothing_but_text(plan: Plan, verbosity: int, width: int) -> None:
    plain = "".join(text.render_plan(plan, Layout(verbosity=verbosity, width=width)))
    assert "\x1b" not in plain
    assert is_harmless(plain)
    coloured = "".join(
        text.render_plan(plan, Layout(colour=True, verbosity=verbosity, width=width))
    )
    assert is_harmless(coloured)
    assert COLOURS.sub("", coloured) == plain


@given(targets(), TEXT, TEXT)
@settings(deadline=None, max_examples=examples(100))
def test_text_of_a_result_writes_nothing_but_text(target: Target, message: str, value: str) -> None:
    came = TargetResult(
        target,
        "failed",
        message,
        (RequestResult("failed", 500, message, 1),),
        (Difference("field", value, {value: message}, {}), Difference("xmp", message, value, None)),
    )
    result = Result("r", Plan("", "", servers=(PlannedServer(value, 0),)), (came,))
    shown = "".join(text.render_result(result, Layout(verbosity=1)))
    assert is_harmless(shown)
    assert "\x1b" not in shown
    pages = "".join(markdown.render_result(result)), "".join(html.render_result(result))
    assert all(map(is_harmless, pages))
    assert len({line.count("|") for line in pages[0].split("\n") if line.startswith("|")}) == 1
    plain = TargetResult(structs.replace(target, error=None, changes=(), requests=()), "failed")
    empty = "".join(html.render_result(Result("r", Plan("", ""), (plain,))))
    assert pages[1].count("<script") == empty.count("<script")


@given(TEXT, TEXT, TEXT, TEXT)
@settings(deadline=None)
def test_problems_tables_and_json_write_nothing_but_text(
    one: str, two: str, three: str, four: str
) -> None:
    problem = Problem(one, SourceLocation(two, 1, 1), three, four)
    assert is_harmless(text.render_problems([problem], colour=True))
    assert is_harmless(
        render_table(["a", "b"], [[one, two], [three, four]], colour=False, width=40)
    )
    assert is_harmless(dump({one: [two, three], "x": four}))


class Skeleton(HTMLParser):
    """Which tags and attributes a page has, foreign texts left out."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[object] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # A link within the page holds the name of its target, percent-encoded.
        plain = [
            (name, "#" if name == "href" and value and value[0] == "#" else value)
            for name, value in attrs
        ]
        self.tags.append((tag, plain))

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(tag)

    def handle_comment(self, data: str) -> None:
        self.tags.append(("comment", data))

    def handle_pi(self, data: str) -> None:
        self.tags.append(("instruction", data))

    def unknown_decl(self, data: str) -> None:
        self.tags.append(("declaration", data))


def with_text(plan: Plan, sourced: str) -> Plan:
    """The same plan, with one text in each place that may hold any text."""

    def one(target: Target) -> Target:
        told = tuple(
            structs.replace(item, key=sourced, before=sourced, after={"at": 3, sourced: sourced})
            for item in target.changes
        )
        paths = tuple(
            structs.replace(request, path=sourced, body=body_of(sourced))
            for request in target.requests
        )
        return structs.replace(
            target, server=sourced, database=sourced, name=sourced, folder=sourced, changes=told, requests=paths,
            clip=ClipIdentity(create_time=sourced),
            error=None if target.error is None else "x" + " ".join(sourced.split()),
        )  # fmt: skip

    flat = " ".join(sourced.split())
    return structs.replace(
        plan,
        created=sourced,
        msauto=sourced,
        targets=tuple(map(one, plan.targets)),
        warnings=tuple("x" + flat for _ in plan.warnings),
        refusals=tuple(Refusal("x", flat, flat, "x" + flat) for _ in plan.refusals),
    )


@given(plans(), TEXT)
@settings(deadline=None, max_examples=examples(150))
def test_html_has_the_same_tags_whatever_the_texts(plan: Plan, sourced: str) -> None:
    hostile = "".join(html.render_plan(with_text(plan, f"q{sourced}")))
    plain = "".join(html.render_plan(with_text(plan, "q")))
    pages = (
        re.sub(r' href="#[^"]*"', ' href="#"', page) for page in (hostile, plain)
    )  # they hold the title
    tags, expected = (Skeleton(page).tags for page in pages)
    assert tags == expected
    assert is_harmless(hostile)


COUNTS = re.compile(r"\| [a-z_]+ \| (\d+|·|add) \||\|-\|-:\|")


def is_whole_row(line: str) -> bool:
    """Five cells, six for counts, and no bar that could be taken for another one."""
    return not line.startswith("|") or line.count("|") == (7 if COUNTS.match(line) else 6)


@given(plans(), TEXT)
@settings(deadline=None, max_examples=examples(150))
def test_markdown_has_the_same_tables_whatever_the_texts(plan: Plan, sourced: str) -> None:
    hostile = "".join(markdown.render_plan(with_text(plan, f"q{sourced}")))
    page = MarkdownPage(hostile)
    assert (
        page.structure
        == MarkdownPage("".join(markdown.render_plan(with_text(plan, "q")))).structure
    )
    assert page.active == []
    assert all(map(is_whole_row, hostile.split("\n")))
    assert is_harmless(hostile)


@given(plans())
@settings(deadline=None, max_examples=examples(50))
def test_pages_of_any_plan_are_harmless(plan: Plan) -> None:
    assert is_harmless("".join(html.render_plan(plan)))
    shown = "".join(markdown.render_plan(plan, limit=float("inf")))
    assert is_harmless(shown)
    assert all(map(is_whole_row, shown.split("\n")))
